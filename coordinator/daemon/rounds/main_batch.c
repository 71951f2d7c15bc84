/* Batches for the main chain: all or nothing, and the same bytes again until the outcome is known.
 *
 * A round's close is several statements that mean nothing one by one: checkpoints of the tenants'
 * ledgers, aggregates, the step. They are one append. What was signed once is kept until the ledger
 * says what became of it: made anew it would have other bytes (its checkpoints, its times), and if
 * the first append had succeeded after all, the chain would hold two truths. */
#include "coordinator/daemon/rounds/main_batch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "chain/statement/entry_index.h"
#include "common/base/mem.h"
#include "common/base/os/entropy.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"

enum { BATCH_BYTES_MAX = 16 * 1024 * 1024, BATCH_REFS_MAX = 1 << 20, ENVELOPE_REST = 512 };

int kedge_main_batch_new(struct kedge_main_batch **ret)
{
    struct kedge_main_batch *b = kedge_mem_new(1, sizeof *b);
    if (!b) {
        return KEDGE_E_NOMEM;
    }
    kedge_buf_init(&b->bytes, BATCH_BYTES_MAX);
    kedge_buf_init(&b->entries, 2 * BATCH_BYTES_MAX);
    *ret = b;
    return KEDGE_OK;
}

void kedge_main_batch_free(struct kedge_main_batch *b)
{
    if (b) {
        kedge_buf_deinit(&b->bytes);
        kedge_buf_deinit(&b->entries);
        kedge_mem_free(b->items);
        kedge_mem_free(b->appends);
        kedge_mem_free(b->refs);
        kedge_mem_free(b);
    }
}

static int make_room(struct kedge_main_batch *b)
{
    if (b->count == KEDGE_MAIN_BATCH_MAX) {
        return KEDGE_E_FULL;
    }
    KEDGE_TRY_MEM(kedge_mem_grow(&b->items, &b->item_cap, b->count, 16, sizeof *b->items));
    return KEDGE_OK;
}

/* References name the blobs that an entry needs. The sweep keeps exactly what some entry refers to,
 * so a blob that is forgotten here would be removed at the next start. */
static int add_refs(struct kedge_main_batch *b, struct kedge_main_item *item,
                    const struct kedge_statement *st)
{
    struct kedge_hash refs[KEDGE_ENTRY_REFS_MAX];
    const size_t count = kedge_statement_refs(st, refs);
    if (b->ref_count + count > BATCH_REFS_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    if (b->ref_count + count > b->ref_cap) {
        size_t cap = (b->ref_count + count) * 2;
        struct kedge_hash *p = kedge_mem_resize(b->refs, cap, sizeof *p);
        if (!p) {
            return KEDGE_E_NOMEM;
        }
        b->refs = p;
        b->ref_cap = cap;
    }
    if (count > 0) {
        memcpy(b->refs + b->ref_count, refs, count * sizeof *refs);
    }
    item->ref_first = b->ref_count;
    item->ref_count = count;
    b->ref_count += count;
    return KEDGE_OK;
}

/* Only encoded here; signed when the batch is handed over. Whether the envelope will fit an entry
 * is checked now, where the caller can still fail the job: base64 makes 4 bytes of 3, the rest is
 * the envelope's frame. */
int kedge_main_batch_statement(struct kedge_main_batch *b, const struct kedge_statement *st,
                               struct kedge_diag *d, const char *key_format, ...)
{
    KEDGE_TRY(make_room(b));
    struct kedge_main_item *item = &b->items[b->count];
    *item = (struct kedge_main_item){.kind = KEDGE_MAIN_ITEM_STATEMENT, .offset = b->bytes.len};
    va_list ap;
    va_start(ap, key_format);
    vsnprintf(item->key, sizeof item->key, key_format, ap);
    va_end(ap);
    KEDGE_TRY(kedge_statement_encode(st, &b->bytes, d));
    item->len = b->bytes.len - item->offset;
    if ((item->len + 2) / 3 * 4 + ENVELOPE_REST > KEDGE_ENTRY_MAX) {
        return kedge_diag_set(d, KEDGE_E_TOO_LONG, "%s: too long for an entry", item->key);
    }
    KEDGE_TRY(add_refs(b, item, st));
    b->count++;
    return KEDGE_OK;
}

int kedge_main_batch_envelope(struct kedge_main_batch *b, struct kedge_view envelope, struct kedge_view key)
{
    if (key.len > KEDGE_IDEM_KEY_MAX) {
        return KEDGE_E_FULL;
    }
    KEDGE_TRY(make_room(b));
    struct kedge_main_item *item = &b->items[b->count];
    *item = (struct kedge_main_item){
        .kind = KEDGE_MAIN_ITEM_ENVELOPE, .offset = b->bytes.len, .len = envelope.len};
    memcpy(item->key, key.ptr, key.len);
    kedge_buf_put(&b->bytes, envelope.ptr, envelope.len);
    b->count += !b->bytes.err;
    return b->bytes.err;
}

int kedge_main_batch_checkpoint(struct kedge_main_batch *b, uint32_t tenant)
{
    KEDGE_TRY(make_room(b));
    b->items[b->count++] = (struct kedge_main_item){.kind = KEDGE_MAIN_ITEM_CHECKPOINT, .tenant = tenant};
    return KEDGE_OK;
}

/* ---- signing and handing over ---- */

/* The checkpoint that the ledger has now; one that is there or on its way is not written twice. The
 * salt is fresh for each entry: leaf hashes of the main chain are public, and nobody can test a
 * guess of another tenant's checkpoint against them. */
static int put_checkpoint(struct kedge_host *h, struct kedge_main_batch *b, struct kedge_main_item *item)
{
    struct kedge_tenant *t = &h->tenants[item->tenant];
    struct kedge_buf note;
    uint8_t salt[KEDGE_SALT_LEN];
    uint64_t size;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    int err = kedge_ledger_checkpoint(t->log.ledger, &note, &size);
    if (!err && size > t->anchored_size && size > t->anchoring_size) {
        kedge_os_random(salt, sizeof salt);
        err = kedge_main_entry_encode(salt, kedge_buf_view(&note), &b->entries);
        snprintf(item->key, sizeof item->key, "checkpoint/%s/%020" PRIu64, t->id.s, size);
        item->size = size;
    }
    kedge_buf_deinit(&note);
    return err;
}

static int put_entry(struct kedge_host *h, struct kedge_main_batch *b, struct kedge_main_item *item)
{
    struct kedge_view bytes = {b->bytes.ptr ? b->bytes.ptr + item->offset : NULL, item->len};
    switch (item->kind) {
    case KEDGE_MAIN_ITEM_STATEMENT:
        return kedge_dsse_build(KEDGE_DSSE_IN_TOTO, bytes, &h->statement_key, &b->entries);
    case KEDGE_MAIN_ITEM_CHECKPOINT:
        return put_checkpoint(h, b, item);
    case KEDGE_MAIN_ITEM_ENVELOPE:
        kedge_buf_put(&b->entries, bytes.ptr, bytes.len);
        return b->entries.err;
    }
    return KEDGE_E_BUG;
}

/* Two passes: the buffer of entries may move while it grows, so pointers into it are taken only
 * when it is complete. An item that wrote nothing (a checkpoint that is not needed) has equal ends
 * and is left out.
 *
 * anchoring_size is raised here, at hand-over, so that a batch of another job that is handed over
 * before this one is durable does not carry the same checkpoint. */
static int sign_all(struct kedge_host *h, struct kedge_main_batch *b)
{
    size_t start = 0;
    kedge_buf_clear(&b->entries);
    kedge_mem_free(b->appends);
    b->append_count = 0;
    b->appends = kedge_mem_new(b->count + 1, sizeof *b->appends);
    KEDGE_TRY_MEM(b->appends);
    for (size_t i = 0; i < b->count; i++) {
        b->items[i].size = 0;
        KEDGE_TRY(put_entry(h, b, &b->items[i]));
        b->items[i].entry_end = b->entries.len;
    }
    for (size_t i = 0; i < b->count; i++) { /* the buffer moves no more */
        const struct kedge_main_item *item = &b->items[i];
        if (item->entry_end > start) {
            b->appends[b->append_count++] = (struct kedge_ledger_append){
                .entry = kedge_view_of(b->entries.ptr + start, item->entry_end - start),
                .idem_key = kedge_view_str(item->key),
                .refs = item->ref_count ? b->refs + item->ref_first : NULL,
                .ref_count = item->ref_count};
        }
        start = item->entry_end;
    }
    for (size_t i = 0; i < b->count; i++) {
        if (b->items[i].size > 0) {
            h->tenants[b->items[i].tenant].anchoring_size = b->items[i].size;
        }
    }
    b->is_signed = true;
    return KEDGE_OK;
}

bool kedge_main_batch_is_behind(const struct kedge_host *h, uint32_t tenant)
{
    const struct kedge_tenant *t = &h->tenants[tenant];
    uint64_t size;
    return kedge_ledger_checkpoint(t->log.ledger, NULL, &size) == KEDGE_OK && size > t->anchored_size
           && size > t->anchoring_size;
}

int kedge_main_batch_hand_over(struct kedge_host *h, struct kedge_main_batch *b, kedge_commit_done *done,
                               void *arg)
{
    if (!b->is_signed) {
        KEDGE_TRY(sign_all(h, b));
    }
    return kedge_committer_submit(h->main_committer, b->appends, b->append_count, done, arg);
}

void kedge_main_batch_settle(struct kedge_host *h, const struct kedge_main_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct kedge_main_item *item = &b->items[i];
        if (item->size > 0 && item->size > h->tenants[item->tenant].anchored_size) {
            h->tenants[item->tenant].anchored_size = item->size;
        }
    }
}

/* Only if no later batch has raised it meanwhile: then that one carries the checkpoint. */
void kedge_main_batch_abandon(struct kedge_host *h, const struct kedge_main_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct kedge_main_item *item = &b->items[i];
        if (item->size > 0 && item->size == h->tenants[item->tenant].anchoring_size) {
            h->tenants[item->tenant].anchoring_size = h->tenants[item->tenant].anchored_size;
        }
    }
}

/* The outcome of the last try may be unknown. All items of a batch stand or fall together, so
 * looking for the last of them answers for all. */
void kedge_main_batch_look(struct kedge_host *h, const struct kedge_main_batch *b)
{
    uint64_t index;
    if (b->is_signed && b->append_count > 0) {
        bool there =
            kedge_ledger_find(h->main.ledger, b->appends[b->append_count - 1].idem_key, &index) == KEDGE_OK;
        (there ? kedge_main_batch_settle : kedge_main_batch_abandon)(h, b);
    }
}

void kedge_main_batch_give_up(struct kedge_host *h, struct kedge_job *job)
{
    if (job->batch) {
        kedge_main_batch_look(h, job->batch);
    }
    kedge_main_batch_free(job->batch);
    job->batch = NULL;
}

struct batch_item {
    struct kedge_item item;
    struct kedge_host *h;
    uint32_t job;
    int err;
    uint64_t end; /* of the main chain with it */
    char text[KEDGE_DIAG_TEXT_MAX];
};

/* What came of a batch, on the loop thread. An error that says "this can never be stored" ends the
 * job, one that may pass keeps the batch for the next try, and an error of the disk ends the
 * process: then only opening the ledger again tells what is stored. */
static void batch_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct batch_item *a = (struct batch_item *)item;
    struct kedge_job *job = &h->jobs[a->job];
    struct kedge_coord_event ev = {.type = KEDGE_EV_MAIN_APPENDED,
                                   .job = a->job,
                                   .round = job->round,
                                   .err = a->err,
                                   .useful = kedge_job_is_useful(job),
                                   .reached = kedge_job_is_at_target(job)};
    bool ended = a->err == KEDGE_E_EXISTS && job->batch->closes_job;
    if (a->err == KEDGE_E_IO || ended || kedge_err_class(a->err) == KEDGE_CLASS_CORRUPT) {
        /* EXISTS: another job-closed stands where this one belongs; the next start takes the job as ended */
        kedge_log(KEDGE_LOG_ERROR, "main chain", "job=%s: %s", job->spec.name.s, a->text);
        kedge_host_fail(h, a->err, "the main chain");
        kedge_mem_free(a);
        return;
    }
    if (a->err == KEDGE_E_EXISTS || a->err == KEDGE_E_TOO_LONG) { /* coord.h: the job ends */
        kedge_host_job_fault(job, "a statement for the main chain", "main chain: %s", a->text);
        kedge_main_batch_give_up(h, job);
    } else if (a->err) {
        kedge_log(KEDGE_LOG_WARN, "main chain", "job=%s: %s; trying again", job->spec.name.s, a->text);
    } else {
        h->main_known = a->end > h->main_known ? a->end : h->main_known;
        kedge_main_batch_settle(h, job->batch);
        kedge_job_history_closed(h, job);
        kedge_host_event_batch(h, job, a->end);
        kedge_main_batch_free(job->batch);
        job->batch = NULL;
    }
    kedge_mem_free(a);
    kedge_host_step(h, &ev);
}

static void batch_done(void *arg, const struct kedge_commit_result *result)
{
    struct batch_item *a = arg;
    a->err = kedge_host_commit_err(a->h->main.ledger, result);
    a->end = result->err ? 0 : result->items[result->count - 1].index + 1;
    if (result->diag) {
        snprintf(a->text, sizeof a->text, "%s", result->diag->text);
    }
    kedge_host_post(a->h, &a->item);
}

/* A batch that is not signed yet waits while the statement key changes; what is signed already by
 * the old key goes through before the rotation, which waits for it (admin/authority_change.c). */
void kedge_main_batch_submit(struct kedge_host *h, struct kedge_job *job)
{
    struct kedge_main_batch *b = job->batch;
    KEDGE_ASSERT(b && b->count > 0);
    b->held = !b->is_signed && kedge_host_authority_holds(h);
    if (b->held) {
        return;
    }
    struct batch_item *a = kedge_mem_new(1, sizeof *a);
    KEDGE_ASSERT(a);
    *a = (struct batch_item){.item = {batch_handle}, .h = h, .job = job->slot};
    int err = kedge_main_batch_hand_over(h, b, batch_done, a);
    if (err) {
        a->err = err;
        snprintf(a->text, sizeof a->text, "%s", kedge_strerror(err));
        kedge_host_post(h, &a->item);
    }
}
