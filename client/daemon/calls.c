/* Requests to the coordinator: ENROLL, POLL, SUBMIT, ENDED. Each is built, sent and checked on a helper
 * thread and then handed to the core.
 *
 * The check is the point of this file. The core believes what a reply says, so nothing becomes a reply that
 * is not proven as far as the owner's trust file allows: a receipt must prove that our very statement is in
 * the tenant's ledger, a "closed" and a refusal must be signed and about our envelope, checkpoints of the
 * main chain must be signed. What does not hold becomes CALL_FAILED, as if nothing had come: the site asks
 * again, and a coordinator gains nothing by a bad answer that it would not gain by silence. */
#include <inttypes.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/statement/mainbook.h"
#include "client/daemon/energy/energy.h"
#include "client/daemon/host.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "common/base/try.h"

enum { CALL_MARGIN_MS = 15000, NS_PER_MS = 1000000 };

struct call_item {
    struct kedge_site_item item;
    uint64_t serial, wait_ns;
    struct kedge_site_chain seen; /* when asking */
    struct kedge_buf envelope;    /* SUBMIT */
    struct kedge_buf note;        /* the checkpoint that reply.shown is */
    struct kedge_site_result result;
    struct kedge_msg ended; /* ENDED … */
    struct kedge_site_reply reply;
    enum kedge_site_call call;
    uint32_t battery; /* enum kedge_battery_class */
    uint32_t shifted_count, at_work_count;
    int err;
    bool busy, anew;
    struct kedge_id at_work[KEDGE_SITE_WORKS_MAX - 1], shifted[KEDGE_SITE_SHIFTS_MAX];
    char text[KEDGE_TROUBLE_TEXT_MAX + 1]; /* … and its text */
    char classes[KEDGE_CLASS_NAMES_ROOM];  /* of the task that came */
};

/* ---- checks ---- */

/* What an answer shows of the main chain, for the core to judge. No note: nothing is shown, and the core
 * takes the answer for none. */
static int take_chain(struct kedge_site_host *h, const struct kedge_shown_main *shown, struct call_item *c)
{
    if (c->call != KEDGE_SITE_CALL_POLL) {
        return KEDGE_E_FORMAT;
    }
    if (shown->newest.len == 0) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedge_client_check_main(h, &c->seen, shown, &c->reply.shown, &c->reply.breaks));
    kedge_buf_put(&c->note, shown->newest.ptr, shown->newest.len);
    return c->note.err;
}

/* The receipt proves that the envelope is entry leaf_index of a tree whose signed root we were given (RFC
 * 6962, section 2.1.1). The leaf is computed from our own bytes and not taken from the receipt. The proof's
 * length is bounded by the decoder of messages (KEDGE_PROOF_MAX hashes), so the copy below fits. Without a
 * trust file the signature on the root cannot be checked; that still catches a coordinator that errs, not one
 * that lies. */
static int check_receipt(struct kedge_site_host *h, const struct kedge_msg_receipt *r,
                         struct kedge_view envelope)
{
    struct kedge_hash leaf, path[KEDGE_PROOF_MAX];
    struct kedge_note note;
    struct kedge_checkpoint cp;
    kedge_merkle_leaf(envelope, &leaf);
    if (memcmp(leaf.b, r->leaf_hash, sizeof leaf.b) != 0 || !kedge_id_eq(&r->log, &h->config.tenant)) {
        return KEDGE_E_VERIFY;
    }
    if (kedge_note_parse(r->checkpoint, &note) != KEDGE_OK
        || kedge_checkpoint_parse(note.text, &cp) != KEDGE_OK
        || (h->trust.known && kedge_note_verify(&note, &h->trust.tenant_log, 1, NULL, NULL) != KEDGE_OK)) {
        return KEDGE_E_VERIFY;
    }
    if (r->proof.len > 0) {
        memcpy(path, r->proof.ptr, r->proof.len);
    }
    if (kedge_inclusion_verify(r->leaf_index, cp.size, &leaf, path, r->proof.len / sizeof path[0], &cp.root)
        != KEDGE_OK) {
        return KEDGE_E_VERIFY;
    }
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&leaf, hex);
    kedge_log(KEDGE_LOG_INFO, "acknowledged", "index=%" PRIu64 " leaf=%s size=%" PRIu64, r->leaf_index, hex,
              cp.size);
    return KEDGE_OK;
}

/* A signed "closed" about our envelope, by the trust file's statement key or the one that it was rotated to.
 * Without a trust file there is no key to check it by. */
static int check_closed(struct kedge_site_host *h, const struct kedge_msg_closed *closed,
                        const struct kedge_site_digest *envelope)
{
    struct kedge_public_key key;
    if (!h->trust.known) {
        return KEDGE_OK;
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err =
        st ? kedge_mainbook_follow(&h->trust.statement_key, h->trust.deployment, closed->rotations, &key)
           : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_statement_open(closed->envelope, &key, st, NULL);
    }
    if (!err
        && (st->kind != KEDGE_ST_CLOSED || memcmp(st->subject.b, envelope->b, sizeof envelope->b) != 0)) {
        err = KEDGE_E_VERIFY;
    }
    kedge_mem_free(st);
    return err;
}

/* ---- requests ---- */

_Static_assert((int)KEDGE_SITE_WORKS_MAX - 1 == (int)KEDGE_AT_WORK_MAX, "a poll tells all that is at work");
_Static_assert((int)KEDGE_SITE_SHIFTS_MAX == (int)KEDGE_SHIFTED_MAX, "a poll tells all that has shifted");

/* A site that has nothing in hand says nothing of it: it sends the plain POLL, which every coordinator knows,
 * and POLL_BESIDE only when it needs it. */
static void build_poll(const struct call_item *c, struct kedge_msg *msg)
{
    struct kedge_msg_poll_beside p = {.wait_ms = (uint32_t)(c->wait_ns / NS_PER_MS),
                                      .flags = c->busy | c->battery << 1 | (uint32_t)c->anew << 3,
                                      .seen_size = c->seen.size,
                                      .shifted_count = (uint8_t)c->shifted_count,
                                      .at_work_count = (uint8_t)c->at_work_count};
    memcpy(p.shifted, c->shifted, sizeof p.shifted);
    memcpy(p.at_work, c->at_work, sizeof p.at_work);
    if (c->at_work_count > 0) {
        msg->type = KEDGE_MSG_POLL_BESIDE;
        msg->u.poll_beside = p;
    } else {
        msg->u.poll =
            (struct kedge_msg_poll){p.wait_ms, p.flags, p.seen_size, .shifted_count = p.shifted_count};
        memcpy(msg->u.poll.shifted, p.shifted, sizeof p.shifted);
    }
}

static int build(struct kedge_site_host *h, const struct call_item *c, struct kedge_buf *frame)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_POLL};
    if (c->call == KEDGE_SITE_CALL_ENROLL) {
        msg.type = KEDGE_MSG_ENROLL;
        memcpy(msg.u.enroll.token_secret, h->config.token_secret, sizeof msg.u.enroll.token_secret);
        msg.u.enroll.tenant = h->config.tenant;
        msg.u.enroll.site = h->config.site;
        memcpy(msg.u.enroll.statement_key, h->statement_key.public.b, sizeof msg.u.enroll.statement_key);
    } else if (c->call == KEDGE_SITE_CALL_SUBMIT) {
        msg.type = KEDGE_MSG_SUBMIT;
        msg.u.submit.envelope = kedge_buf_view(&c->envelope);
    } else if (c->call == KEDGE_SITE_CALL_ENDED) {
        msg = c->ended;
        msg.u.task_ended.text = kedge_view_str(c->text);
    } else {
        build_poll(c, &msg);
    }
    return kedge_msg_encode(&msg, frame);
}

static void take_task(const struct kedge_msg_task *m, struct kedge_site_task *t)
{
    *t = (struct kedge_site_task){
        .job = m->job,
        .spec_len = m->spec_len,
        .base_len = m->base_len,
        .update_len = m->update_len,
        .round = m->round,
        .kind = (enum kedge_site_kind)m->kind,
        .group = m->group,
        .evaluate_base = m->evaluate_base,
        .percent = m->percent,
        .remaining_ns = m->remaining_ms > UINT64_MAX / NS_PER_MS ? UINT64_MAX : m->remaining_ms * NS_PER_MS,
        .seed = m->seed};
    memcpy(t->spec.b, m->spec, sizeof t->spec.b);
    memcpy(t->base.b, m->base, sizeof t->base.b);
    if (m->control.len == sizeof t->control.b) {
        memcpy(t->control.b, m->control.ptr, sizeof t->control.b);
        t->control_len = m->control_len;
    }
    if (m->trial.len == sizeof t->trial.b) {
        memcpy(t->trial.b, m->trial.ptr, sizeof t->trial.b);
        t->has_trial = true;
    }
    t->choice_count = (uint32_t)(m->choices.len / sizeof t->choices[0].b);
    for (uint32_t g = 0; g < t->choice_count; g++) {
        memcpy(t->choices[g].b, m->choices.ptr + g * sizeof t->choices[g].b, sizeof t->choices[g].b);
    }
}

/* An owner may have put another key's file in the place of the site's, or not know which one was enrolled. */
static void log_keys_used(const struct kedge_site_host *h, int err)
{
    char tls[2 * KEDGE_KEY_LEN + 1], statement[2 * KEDGE_KEY_LEN + 1];
    if (err != KEDGE_E_DENIED && err != KEDGE_E_REVOKED && err != KEDGE_E_NOT_ENROLLED && err != KEDGE_E_KEY
        && err != KEDGE_E_VERIFY && err != KEDGE_E_PEER_AUTH) {
        return;
    }
    kedge_hex_encode(h->tls_key.public.b, KEDGE_KEY_LEN, tls);
    kedge_hex_encode(h->statement_key.public.b, KEDGE_KEY_LEN, statement);
    kedge_log(KEDGE_LOG_WARN, "keys used",
              "%s/keys/tls.pem, whose public key is %s, and %s/keys/statement.pem, whose public key is %s",
              h->dir, tls, h->dir, statement);
}

/* Turns a message into a reply of the core; what cannot be believed is an error. */
static int take_reply(struct kedge_client_work *w, struct call_item *c, const struct kedge_msg *msg,
                      struct kedge_view envelope)
{
    struct kedge_site_host *h = w->h;
    struct kedge_site_reply *r = &c->reply;
    switch ((int)msg->type) {
    case KEDGE_MSG_ENROLL_OK:
        r->kind = KEDGE_SITE_REPLY_ENROLLED;
        r->active = msg->u.enroll_ok.state == KEDGE_ENROLL_ACTIVE;
        r->retry_ns = 500u * NS_PER_MS;
        return c->call == KEDGE_SITE_CALL_ENROLL ? KEDGE_OK : KEDGE_E_FORMAT;
    case KEDGE_MSG_TASK:
        r->kind = KEDGE_SITE_REPLY_TASK;
        take_task(&msg->u.task, &r->task);
        if (kedge_class_names_read(msg->u.task.classes, c->classes) != KEDGE_OK) {
            return KEDGE_E_FORMAT;
        }
        return take_chain(h,
                          &(struct kedge_shown_main){msg->u.task.main_checkpoint, msg->u.task.since_seen,
                                                     msg->u.task.cosigned, msg->u.task.since_cosigned},
                          c);
    case KEDGE_MSG_WAIT:
        r->kind = KEDGE_SITE_REPLY_WAIT;
        r->retry_ns = (uint64_t)msg->u.wait.retry_ms * NS_PER_MS;
        return take_chain(h,
                          &(struct kedge_shown_main){msg->u.wait.main_checkpoint, msg->u.wait.since_seen,
                                                     msg->u.wait.cosigned, msg->u.wait.since_cosigned},
                          c);
    case KEDGE_MSG_RECEIPT:
        r->kind = KEDGE_SITE_REPLY_RECEIPT;
        return c->call == KEDGE_SITE_CALL_SUBMIT ? check_receipt(h, &msg->u.receipt, envelope)
                                                 : KEDGE_E_FORMAT;
    case KEDGE_MSG_CLOSED:
        r->kind = KEDGE_SITE_REPLY_CLOSED;
        return c->call == KEDGE_SITE_CALL_SUBMIT ? check_closed(h, &msg->u.closed, &c->result.envelope)
                                                 : KEDGE_E_FORMAT;
    case KEDGE_MSG_NOTED:
        r->kind = KEDGE_SITE_REPLY_NOTED;
        return c->call == KEDGE_SITE_CALL_ENDED ? KEDGE_OK : KEDGE_E_FORMAT;
    case KEDGE_MSG_REFUSED:
        r->kind = KEDGE_SITE_REPLY_ERROR;
        return c->call == KEDGE_SITE_CALL_SUBMIT
                   ? kedge_client_take_refused(w, msg, &c->result, envelope, &r->err)
                   : KEDGE_E_FORMAT;
    case KEDGE_MSG_ERROR:
        r->kind = KEDGE_SITE_REPLY_ERROR;
        r->err = kedge_msg_error_code(msg);
        r->retry_ns = (uint64_t)msg->u.error.retry_ms * NS_PER_MS;
        kedge_log(KEDGE_LOG_WARN, "coordinator", "%.*s", (int)msg->u.error.text.len,
                  (const char *)msg->u.error.text.ptr);
        log_keys_used(h, r->err);
        if (c->call == KEDGE_SITE_CALL_SUBMIT && c->result.kind != KEDGE_SITE_EVALUATE
            && kedge_err_class(r->err) == KEDGE_CLASS_REJECT) {
            kedge_log(KEDGE_LOG_WARN, "no signed refusal",
                      "the coordinator turned an update away (%s) and did not sign that it did",
                      kedge_err_code(r->err));
        }
        return KEDGE_OK;
    default:
        return KEDGE_E_FORMAT;
    }
}

/* A poll is held open by the coordinator for as long as it asked to wait; the time-out is that plus a margin
 * for the network. */
static int ask(struct kedge_client_work *w, struct call_item *c, struct kedge_buf *frame,
               struct kedge_net_reply *reply)
{
    struct kedge_site_host *h = w->h;
    struct kedge_msg msg;
    KEDGE_TRY(build(h, c, frame));
    uint64_t held = c->call == KEDGE_SITE_CALL_POLL ? c->wait_ns : 0;
    uint32_t timeout = (uint32_t)(held / NS_PER_MS) + CALL_MARGIN_MS;
    KEDGE_TRY(kedge_net_call(h->net, kedge_buf_view(frame), timeout, reply));
    KEDGE_TRY(kedge_msg_decode(reply->view, &msg));
    return take_reply(w, c, &msg, kedge_buf_view(&c->envelope));
}

/* The envelope is freed here, since only the check of the answer needs it. */
static void call_run(struct kedge_client_work *w, struct kedge_site_item *item)
{
    struct call_item *c = (struct call_item *)item;
    struct kedge_buf frame;
    struct kedge_net_reply reply = {.impl = NULL};
    kedge_buf_init(&frame, KEDGE_FRAME_MAX);
    if (!c->err) {
        c->err = ask(w, c, &frame, &reply);
    }
    kedge_net_reply_release(&reply);
    kedge_buf_deinit(&c->envelope);
    kedge_buf_deinit(&frame);
}

/* The checkpoint that the answer showed is lent to the core's step by h->shown_note: if the core decides SEEN
 * or REFUSE, those effects write the note's signed bytes, and they do so before the step returns. */
static void call_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    struct call_item *c = (struct call_item *)item;
    struct kedge_site_event ev = {.type = c->err ? KEDGE_SITE_EV_CALL_FAILED : KEDGE_SITE_EV_REPLY,
                                  .serial = c->serial,
                                  .err = c->err,
                                  .reply = c->reply};
    h->shown_note = kedge_buf_view(&c->note);
    if (!c->err) {
        kedge_client_service_answered(h);
    }
    if (!c->err && c->reply.kind == KEDGE_SITE_REPLY_TASK && item->work) {
        memcpy(item->work->classes, c->classes, sizeof c->classes);
    }
    kedge_client_step(h, &ev);
    h->shown_note = kedge_view_of(NULL, 0);
    kedge_buf_deinit(&c->note);
    kedge_mem_free(c);
}

/* Everything that the request needs is copied into the item: the core's effect and the host's memory change
 * while the helper thread works. A heartbeat goes to a thread of its own, since each work's call thread may
 * be held by a long poll. */
void kedge_client_call(struct kedge_site_host *h, const struct kedge_site_effect *fx)
{
    struct call_item *c = kedge_mem_new(1, sizeof *c);
    KEDGE_ASSERT(c);
    *c = (struct call_item){.item = {.run = call_run, .handle = call_handle},
                            .serial = fx->serial,
                            .call = fx->call,
                            .wait_ns = fx->wait_ns,
                            .busy = fx->busy,
                            .anew = fx->anew,
                            .battery = (uint32_t)kedge_client_energy_tells(h),
                            .seen = fx->seen,
                            .shifted_count = fx->shifted_count,
                            .at_work_count = fx->at_work_count,
                            .result = fx->result};
    memcpy(c->shifted, fx->shifted, fx->shifted_count * sizeof c->shifted[0]);
    memcpy(c->at_work, fx->at_work, fx->at_work_count * sizeof c->at_work[0]);
    kedge_buf_init(&c->envelope, KEDGE_ENTRY_MAX);
    kedge_buf_init(&c->note, KEDGE_NOTE_MAX);
    if (fx->call == KEDGE_SITE_CALL_ENDED) {
        kedge_client_ended_put(h, fx, &c->ended);
        memcpy(c->text, c->ended.u.task_ended.text.ptr, c->ended.u.task_ended.text.len);
    }
    if (fx->call == KEDGE_SITE_CALL_SUBMIT) {
        const struct kedge_site_envelope *e = kedge_client_envelope_find(h, &fx->result.envelope);
        KEDGE_ASSERT(e); /* the core submits what is in its memory */
        kedge_buf_put(&c->envelope, e->text, e->len);
        c->err = c->envelope.err;
    }
    if (fx->busy) {
        int err = kedge_queue_put(h->beat_queue, c);
        KEDGE_ASSERT(!err || h->stop);
    } else {
        kedge_client_works_call(&h->works[fx->work], &c->item);
    }
}
