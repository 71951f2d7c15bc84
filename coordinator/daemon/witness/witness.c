/* How the main chain's checkpoints get the cosignatures of a quorum.
 *
 * The chain may grow faster than witnesses come by, and a cosignature is for one checkpoint only: if each
 * witness were shown the newest one, their lines might never meet under one text. So a checkpoint is
 * proposed and stays the one that all witnesses are shown until the quorum has cosigned it, or until the
 * slowest witness that counts could have come round twice; only then the newest takes its place.
 *
 * What the quorum has cosigned is final. It is durable before it is told, and a final size never becomes
 * smaller. A witness that shows a checkpoint beyond what is here is no error of its own: this coordinator
 * is an old copy, or not alone, and it stops before it signs anything more. */
#include "coordinator/daemon/witness/witness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/cosignature.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/web/log_read.h"
#include "coordinator/daemon/witness/witness_impl.h"

static bool is_main(uint32_t log)
{
    return log == KEDGE_COORD_NONE;
}

/* ---- proposals ---- */

/* Logs are named as everywhere in the daemon: a tenant's handle, or NONE for the main chain. */
static struct kedge_ledger *ledger_of(const struct kedge_host *h, uint32_t log)
{
    return is_main(log) ? h->main.ledger : h->tenants[log].log.ledger;
}

static struct kedgei_proposal *proposal_of(struct kedge_host *h, uint32_t log)
{
    struct kedgei_proposal *p = is_main(log) ? &h->witnesses->main : &h->witnesses->tenants[log];
    if (p->note.max == 0) {
        kedgei_proposal_init(p);
    }
    return p;
}

/* How long a proposal stands without its quorum: until the slowest of those who count has come round twice.
 */
static uint64_t hold_ns(const struct kedge_witnesses *w)
{
    uint64_t hold = (uint64_t)KEDGE_PROPOSAL_HOLD_MS * 1000000u;
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->rows[i].active && w->rows[i].in_policy && 2 * w->rows[i].every_ns > hold) {
            hold = 2 * w->rows[i].every_ns;
        }
    }
    return 2 * w->outside_every_ns > hold ? 2 * w->outside_every_ns : hold;
}

/* The proposal of a log as of now; an old one gives way to the newest checkpoint. */
static struct kedgei_proposal *propose(struct kedge_host *h, uint32_t log)
{
    struct kedgei_proposal *p = proposal_of(h, log);
    uint64_t now = kedge_os_now_ns(), size;
    bool awaited = is_main(log) && h->witnesses->has_quorum && p->size > h->witnesses->final_size;
    if (p->note.len > 0 && awaited && now - p->since_ns < hold_ns(h->witnesses)) {
        return p;
    }
    if (kedge_ledger_checkpoint(ledger_of(h, log), NULL, &size) == KEDGE_OK
        && (p->note.len == 0 || size > p->size)) {
        kedge_buf_clear(&p->bare);
        kedge_buf_clear(&p->note);
        if (kedge_ledger_checkpoint(ledger_of(h, log), &p->bare, &p->size) == KEDGE_OK) {
            kedge_buf_put(&p->note, p->bare.ptr, p->bare.len);
            p->since_ns = now;
        }
    }
    return p;
}

/* ---- cosignatures ---- */

/* Stores what a log's witnesses cosigned. Here and not on a worker: files of one log must not overtake each
 * other, they are small, and a witness may cosign a log a few times a second at most. */
static int keep(struct kedge_host *h, uint32_t log, const struct kedgei_proposal *p, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = is_main(log)
                  ? kedge_state_path(path, d, h->state, "main/cosigned.note")
                  : kedge_state_path(path, d, h->state, "tenants/%s/cosigned.note", h->tenants[log].id.s);
    if (!err) {
        err = kedge_file_write(path, kedge_buf_view(&p->note), 0600, d);
    }
    if (err) {
        kedge_log(KEDGE_LOG_ERROR, "cosigned checkpoint", "%s", d->text);
    }
    return err;
}

/* What the quorum has cosigned is final: durable first, then told. The same size again brings later times. */
static int finish(struct kedge_host *h, const struct kedgei_proposal *p, struct kedge_diag *d)
{
    struct kedge_witnesses *w = h->witnesses;
    struct kedge_diag why = {.text = ""};
    uint64_t size;
    if (kedgei_witness_evaluate(h, kedge_buf_view(&p->note), &size, &why) != KEDGE_OK
        || size < w->final_size) {
        return KEDGE_OK;
    }
    KEDGE_TRY(keep(h, KEDGE_COORD_NONE, p, d));
    if (size > w->final_size) {
        kedge_log(KEDGE_LOG_INFO, "final", "the first %" PRIu64 " entries of the main chain", size);
        kedge_host_event_final(h, size);
    }
    kedge_buf_clear(&w->final_note);
    kedge_buf_put(&w->final_note, p->note.ptr, p->note.len);
    w->final_size = size;
    return KEDGE_OK;
}

/* The log that a note is about: one that this witness may speak of. */
static bool find_log(const struct kedge_host *h, const struct kedgei_witness *w,
                     const struct kedge_note *note, uint32_t *ret_log)
{
    struct kedge_checkpoint c;
    if (kedge_checkpoint_parse(note->text, &c) != KEDGE_OK) {
        return false;
    }
    bool own = kedge_view_eq(c.origin, kedge_view_str(h->tenants[w->tenant].log.origin));
    *ret_log = own ? w->tenant : KEDGE_COORD_NONE;
    return own || kedge_view_eq(c.origin, kedge_view_str(h->main.origin));
}

/* The line of the witness's key in a note; none: an empty view. */
static struct kedge_view line_of(const struct kedge_note *note, const struct kedge_vkey *vkey)
{
    for (uint32_t i = 0; i < note->line_count; i++) {
        const struct kedge_note_line *line = &note->lines[i];
        if (kedge_view_eq(line->name, kedge_view_str(vkey->name))
            && memcmp(line->id, vkey->id, KEDGE_KEY_ID_LEN) == 0) {
            return line->line;
        }
    }
    return kedge_view_of(NULL, 0);
}

/* Puts the cosignature into the proposal. */
static int take(struct kedgei_proposal *p, const struct kedge_note *note, const struct kedge_vkey *vkey,
                struct kedge_diag *d)
{
    struct kedge_buf merged;
    struct kedge_view line = line_of(note, vkey);
    if (p->note.len < note->text.len || memcmp(p->note.ptr, note->text.ptr, note->text.len) != 0
        || p->note.ptr[note->text.len] != '\n') {
        return kedge_diag_set(d, KEDGE_E_STATE,
                              "another checkpoint is to be cosigned by now; ask for it again");
    }
    if (line.len == 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the note has no cosignature of key %s", vkey->name);
    }
    kedge_buf_init(&merged, KEDGE_NOTE_MAX);
    int err = kedge_cosignature_accept(kedge_buf_view(&p->note), line, vkey, 1, &merged, NULL);
    if (err) {
        kedge_buf_deinit(&merged);
        return kedge_diag_set(d, err, "the cosignature of key %s: %s", vkey->name, kedge_strerror(err));
    }
    kedge_buf_deinit(&p->note);
    p->note = merged;
    return KEDGE_OK;
}

/* Each cosignature is written to the disk. A witness that repeats itself without a pause would keep
 * the loop at that. */
static int too_soon(const struct kedgei_witness *w, bool of_main)
{
    uint64_t last = of_main ? w->main_ns : w->own_ns;
    return last != 0 && kedge_os_now_ns() - last < (uint64_t)COSIGN_LEAST_MS * 1000000u ? KEDGE_E_BUSY
                                                                                        : KEDGE_OK;
}

/* Takes the cosignature in. Of the main chain only those are kept that may count: a note has room for so many
 * lines, and a witness outside the policy counts for nobody here. */
static int accept(struct kedge_host *h, struct kedgei_witness *w, uint32_t log, const struct kedge_note *note,
                  struct kedge_diag *d)
{
    struct kedgei_proposal *p = propose(h, log), aside = {.size = p->size};
    bool counts = !is_main(log) || (h->witnesses->has_quorum && w->in_policy);
    int err = KEDGE_OK;
    if (counts) {
        err = take(p, note, &w->vkey, d);
    } else { /* it is checked all the same, and forgotten */
        kedgei_proposal_init(&aside);
        kedge_buf_put(&aside.note, p->bare.ptr, p->bare.len);
        err = aside.note.err ? aside.note.err : take(&aside, note, &w->vkey, d);
        kedgei_proposal_deinit(&aside);
    }
    if (!err && !is_main(log)) {
        err = keep(h, log, p, d);
    } else if (!err && counts) {
        err = finish(h, p, d);
    }
    if (!err) {
        *(is_main(log) ? &w->main_size : &w->own_size) = p->size;
        *(is_main(log) ? &w->main_ns : &w->own_ns) = kedge_os_now_ns();
    }
    return err;
}

/* The look whether a witness is ahead comes before everything that could refuse its note: also a
 * cosignature that does not count is evidence that our own key signed more than is here. Then this
 * process ends. It may be an old backup, and every further signature would make a fork that cannot
 * be taken back. */
static void cosign(struct kedge_host *h, struct kedge_net_request *req, struct kedgei_witness *w,
                   struct kedge_view bytes)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_note *note = kedge_mem_new(1, sizeof *note);
    uint32_t log = KEDGE_COORD_NONE;
    int err = note ? kedge_note_parse(bytes, note) : KEDGE_E_NOMEM;
    if (!err && !find_log(h, w, note, &log)) {
        err = kedge_diag_set(&d, KEDGE_E_DENIED, "no checkpoint of a log that this witness cosigns");
    }
    if (!err && kedgei_witness_is_ahead(h, log, bytes, &d)) {
        kedge_log(KEDGE_LOG_ERROR, "stopping", "%s (shown by witness %s of %s)", d.text, w->id.s,
                  h->tenants[w->tenant].id.s);
        kedge_host_reply_error(req, d.err, 0, d.text);
        kedge_mem_free(note);
        kedge_host_fail(h, d.err, "a witness has seen more of a log than there is");
        return;
    }
    if (!err) {
        err = too_soon(w, is_main(log));
    }
    if (!err) {
        err = accept(h, w, log, note, &d);
    }
    kedge_mem_free(note);
    if (err) {
        uint32_t retry_ms = err == KEDGE_E_STATE || err == KEDGE_E_BUSY ? 2 * COSIGN_LEAST_MS : 0;
        kedge_host_reply_error(req, err, retry_ms, d.text[0] ? d.text : kedge_strerror(err));
        return;
    }
    struct kedge_msg msg = {.type = KEDGE_MSG_COSIGN_OK};
    msg.u.cosign_ok.final_size = kedge_host_final_size(h);
    kedge_host_reply(req, &msg);
}

/* ---- reading ---- */

static void reply_whole(struct kedge_net_request *req, struct kedge_view bytes)
{
    struct kedge_msg reply = {.type = KEDGE_MSG_CHUNK};
    reply.u.chunk = (struct kedge_msg_chunk){.total = bytes.len, .data = bytes};
    kedge_host_reply(req, &reply);
}

/* By its salt a tenant knows its own checkpoints and rows in the main chain. */
static void tell_salt(const struct kedge_host *h, struct kedge_net_request *req, uint32_t tenant)
{
    char hex[2 * KEDGE_SALT_LEN + 1], text[KEDGE_ID_MAX + 256];
    kedge_hex_encode(h->tenants[tenant].log.salt, KEDGE_SALT_LEN, hex);
    snprintf(text, sizeof text, "{\"tenant\": \"%s\", \"salt\": \"%s\"}\n", h->tenants[tenant].id.s, hex);
    reply_whole(req, kedge_view_str(text));
}

/* Somebody who comes back has found nothing wrong with what was shown before. */
static void count_look(struct kedgei_witness *w)
{
    uint64_t now = kedge_os_now_ns();
    if (w->asked > 0 && now - w->asked_ns > w->every_ns) {
        w->every_ns = now - w->asked_ns;
    }
    w->asked += w->asked < UINT32_MAX;
    w->asked_ns = now;
}

/* Witnesses are shown the proposal as the log's checkpoint. */
static void log_read(struct kedge_host *h, struct kedge_net_request *req, struct kedgei_witness *w,
                     const struct kedge_msg_log_read *msg)
{
    char own[KEDGE_ID_MAX + 16], salt[KEDGE_ID_MAX + 16];
    struct kedge_log_reader reader = {.tenant = w->tenant};
    snprintf(own, sizeof own, "%s/checkpoint", h->tenants[w->tenant].id.s);
    snprintf(salt, sizeof salt, "%s/tenant.json", h->tenants[w->tenant].id.s);
    if (kedge_view_eq(msg->path, kedge_view_str(salt))) {
        tell_salt(h, req, w->tenant);
    } else if (kedge_view_eq(msg->path, kedge_view_str(own))) {
        reply_whole(req, kedge_buf_view(&propose(h, w->tenant)->bare));
    } else if (kedge_view_eq(msg->path, kedge_view_str("main/checkpoint"))) {
        count_look(w);
        reply_whole(req, kedge_buf_view(&propose(h, KEDGE_COORD_NONE)->bare));
    } else if (kedge_view_eq(msg->path, kedge_view_str("main/cosigned"))) {
        reply_whole(req, kedge_buf_view(&h->witnesses->final_note));
    } else {
        kedge_host_log_read(h, req, &reader, msg);
    }
}

void kedge_host_witness_request(struct kedge_host *h, struct kedge_net_request *req, uint32_t witness,
                                const struct kedge_msg *msg)
{
    struct kedgei_witness *w = &h->witnesses->rows[witness];
    w->last_seen_ms = kedge_os_unix_ms();
    switch ((int)msg->type) {
    case KEDGE_MSG_COSIGN:
        cosign(h, req, w, msg->u.cosign.note);
        break;
    case KEDGE_MSG_LOG_READ:
        log_read(h, req, w, &msg->u.log_read);
        break;
    default:
        kedge_host_reply_error(req, KEDGE_E_DENIED, 0, "a witness may not ask this");
        break;
    }
}

/* ---- witnesses elsewhere ---- */

/* Witnesses elsewhere are asked by a companion process. Its rhythm is measured as that of a witness
 * (every_ns), so that a proposal stands until they could have been asked twice; it is cut, or one
 * long pause of the companion would keep proposals standing for ever. */
void kedge_host_outside_proposal(struct kedge_host *h, struct kedge_buf *out)
{
    struct kedge_witnesses *w = h->witnesses;
    uint64_t now = kedge_os_now_ns(), most = (uint64_t)OUTSIDE_EVERY_MAX_MS * 1000000u;
    uint64_t gap = w->outside_ns ? now - w->outside_ns : 0;
    if (gap > w->outside_every_ns) {
        w->outside_every_ns = gap < most ? gap : most;
    }
    w->outside_ns = now;
    const struct kedgei_proposal *p = propose(h, KEDGE_COORD_NONE);
    kedge_buf_put(out, p->bare.ptr, p->bare.len);
}

/* Every line of a key that the policy names; at least one. */
static int take_outside(struct kedge_host *h, const struct kedge_note *note, struct kedge_diag *d)
{
    const struct kedge_witness_policy *policy = h->witnesses->policy;
    struct kedgei_proposal *p = propose(h, KEDGE_COORD_NONE);
    uint32_t taken = 0;
    for (uint32_t i = 0; policy && i < policy->witness_count; i++) {
        const struct kedge_witness *witness = &policy->witnesses[i];
        if (!witness->is_supported || line_of(note, &witness->vkey).len == 0) {
            continue;
        }
        KEDGE_TRY(take(p, note, &witness->vkey, d));
        h->witnesses->outside_size[i] = p->size;
        taken++;
    }
    return taken > 0 ? finish(h, p, d)
                     : kedge_diag_set(d, KEDGE_E_FORMAT, "no cosignature of a witness that the policy names");
}

/* What the companion brings was carried over the internet by a process that need not be trusted:
 * the lines count by the keys in the policy, each is verified, and a note about another log is
 * refused. */
int kedge_host_outside_cosign(struct kedge_host *h, struct kedge_view bytes, struct kedge_diag *d)
{
    struct kedge_checkpoint c;
    struct kedge_note *note KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *note);
    int err = note ? kedge_note_parse(bytes, note) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_checkpoint_parse(note->text, &c);
    }
    if (err) {
        return kedge_diag_set(d, err, "expected a signed checkpoint: %s", kedge_strerror(err));
    }
    if (!kedge_view_eq(c.origin, kedge_view_str(h->main.origin))) {
        return kedge_diag_set(d, KEDGE_E_DENIED, "witnesses elsewhere cosign the main chain only");
    }
    return kedgei_witness_is_ahead(h, KEDGE_COORD_NONE, bytes, d) ? d->err : take_outside(h, note, d);
}
