/* Batches for the main chain: all or nothing, and the same bytes again until the outcome is known. */
#include "coordinator/daemon/main_batch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/entropy.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"

enum { BATCH_BYTES_MAX = 16 * 1024 * 1024, BATCH_REFS_MAX = 1 << 20 };

int kedge_main_batch_new(struct kedge_main_batch **ret)
{
    struct kedge_main_batch *b = kedge_mem_new(1, sizeof *b);
    if (!b) {
        return KEDGE_E_NOMEM;
    }
    kedge_buf_init(&b->bytes, BATCH_BYTES_MAX);
    *ret = b;
    return KEDGE_OK;
}

void kedge_main_batch_free(struct kedge_main_batch *b)
{
    if (b) {
        kedge_buf_deinit(&b->bytes);
        kedge_mem_free(b->refs);
        kedge_mem_free(b);
    }
}

static int add_refs(struct kedge_main_batch *b, const struct kedge_hash *refs, size_t count)
{
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
    b->ref_first[b->count] = b->ref_count;
    b->ref_counts[b->count] = count;
    b->ref_count += count;
    return KEDGE_OK;
}

/* The item whose bytes were appended behind `start`. */
static int add_item(struct kedge_main_batch *b, size_t start, const struct kedge_hash *refs, size_t ref_count)
{
    int err = b->bytes.err ? b->bytes.err : add_refs(b, refs, ref_count);
    if (!err) {
        b->offsets[b->count] = start;
        b->lens[b->count] = b->bytes.len - start;
        b->count++;
    }
    return err;
}

int kedge_main_batch_statement(struct kedge_main_batch *b, const struct kedge_key_pair *key,
                               const struct kedge_statement *st, const struct kedge_hash *refs,
                               size_t ref_count, struct kedge_diag *d, const char *key_format, ...)
{
    if (b->count == KEDGE_TENANTS_MAX) {
        return KEDGE_E_FULL;
    }
    va_list ap;
    va_start(ap, key_format);
    vsnprintf(b->keys[b->count], sizeof b->keys[0], key_format, ap);
    va_end(ap);
    size_t start = b->bytes.len;
    int err = kedge_statement_sign(st, key, &b->bytes, d);
    return err ? err : add_item(b, start, refs, ref_count);
}

int kedge_main_batch_checkpoint(struct kedge_main_batch *b, struct kedge_host *h, uint32_t tenant)
{
    struct kedge_tenant *t = &h->tenants[tenant];
    struct kedge_buf note;
    uint8_t salt[KEDGE_SALT_LEN];
    uint64_t size;
    if (b->count == KEDGE_TENANTS_MAX) {
        return KEDGE_E_FULL;
    }
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    int err = kedge_ledger_checkpoint(t->log.ledger, &note, &size);
    if (!err && size > t->anchored_size) {
        size_t start = b->bytes.len;
        kedge_os_random(salt, sizeof salt);
        err = kedge_main_entry_encode(salt, kedge_buf_view(&note), &b->bytes);
        snprintf(b->keys[b->count], sizeof b->keys[0], "checkpoint/%s/%020" PRIu64, t->id.s, size);
        err = err ? err : add_item(b, start, NULL, 0);
        b->tenant_sizes[tenant] = size;
    }
    kedge_buf_deinit(&note);
    return err;
}

struct batch_item {
    struct kedge_item item;
    struct kedge_host *h;
    uint32_t job;
    int err;
    char text[KEDGE_DIAG_TEXT_MAX];
};

static void batch_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct batch_item *a = (struct batch_item *)item;
    struct kedge_job *job = &h->jobs[a->job];
    struct kedge_coord_event ev = {
        .type = KEDGE_EV_MAIN_APPENDED, .job = a->job, .round = job->round, .err = a->err};
    if (a->err == KEDGE_E_IO || a->err == KEDGE_E_EXISTS || kedge_err_class(a->err) == KEDGE_CLASS_CORRUPT) {
        /* EXISTS: another statement stands where this one belongs; only a bug or another writer does that */
        kedge_log(KEDGE_LOG_ERROR, "main chain", "job=%s: %s", job->spec.name.s, a->text);
        kedge_host_fail(h, a->err, "the main chain");
        kedge_mem_free(a);
        return;
    }
    if (a->err) {
        kedge_log(KEDGE_LOG_WARN, "main chain", "job=%s: %s; trying again", job->spec.name.s, a->text);
    } else {
        for (uint32_t i = 0; i < h->tenant_count; i++) {
            if (job->batch->tenant_sizes[i] > h->tenants[i].anchored_size) {
                h->tenants[i].anchored_size = job->batch->tenant_sizes[i];
            }
        }
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
    if (result->diag) {
        snprintf(a->text, sizeof a->text, "%s", result->diag->text);
    }
    kedge_host_post(a->h, &a->item);
}

void kedge_main_batch_submit(struct kedge_host *h, struct kedge_job *job)
{
    struct kedge_main_batch *b = job->batch;
    struct batch_item *a = kedge_mem_new(1, sizeof *a);
    KEDGE_ASSERT(a && b && b->count > 0);
    *a = (struct batch_item){.item = {batch_handle}, .h = h, .job = job->slot};
    for (size_t i = 0; i < b->count; i++) {
        b->items[i] =
            (struct kedge_ledger_append){.entry = kedge_view_of(b->bytes.ptr + b->offsets[i], b->lens[i]),
                                         .idem_key = kedge_view_str(b->keys[i]),
                                         .refs = b->ref_counts[i] ? b->refs + b->ref_first[i] : NULL,
                                         .ref_count = b->ref_counts[i]};
    }
    int err = kedge_committer_submit(h->main_committer, b->items, b->count, batch_done, a);
    if (err) {
        a->err = err;
        snprintf(a->text, sizeof a->text, "%s", kedge_strerror(err));
        kedge_host_post(h, &a->item);
    }
}
