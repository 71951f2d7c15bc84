/* Submissions: from an envelope to a receipt. A worker opens the envelope with the site's key, the
 * core decides, a worker checks the update file and makes it a blob, the tenant's committer
 * appends, the receipt proves it.
 *
 * Between these steps the loop goes on, and anything may change: the key is rotated, the site
 * revoked, the round closed. So each step that comes back looks again at what it was based on. A
 * ticket holds the submission all that time; the core knows it by its number only. */
#include "coordinator/daemon/sites/submit.h"

#include <stdio.h>
#include <string.h>

#include "chain/log/merkle.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/erase.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/sites/refused.h"
#include "coordinator/daemon/sites/requests.h"
#include "round/compute.h"
#include "round/fold.h"
#include "round/update_stream.h"

struct open_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    uint32_t site;
    struct kedge_public_key key;
    struct kedge_view envelope;
    struct kedge_hash hash;
    struct kedge_statement *st;
    int err;
    struct kedge_diag diag;
};

/* The signature is checked before anything of the content is believed, with the key that was the
 * site's when the request came. */
static void open_run(struct kedge_host *h, struct kedge_work *work)
{
    (void)h;
    struct open_work *w = (struct open_work *)work;
    kedge_sha256(w->envelope, &w->hash);
    w->err = kedge_statement_open(w->envelope, &w->key, w->st, &w->diag);
}

void kedge_host_ticket_free(struct kedge_host *h, uint32_t ticket)
{
    struct kedge_ticket *t = &h->tickets[ticket];
    kedge_mem_free(t->st);
    kedge_buf_deinit(&t->envelope);
    *t = (struct kedge_ticket){.used = false};
}

/* The search begins where the last one ended, so it is short unless nearly all tickets are taken.
 * Their number bounds the memory that envelopes on their way can take. */
static uint32_t ticket_new(struct kedge_host *h)
{
    for (uint32_t i = 0; i < KEDGE_TICKETS_MAX; i++) {
        uint32_t at = (h->ticket_hint + i) % KEDGE_TICKETS_MAX;
        if (!h->tickets[at].used) {
            h->ticket_hint = at + 1;
            h->tickets[at] = (struct kedge_ticket){.used = true};
            return at;
        }
    }
    return KEDGE_COORD_NONE;
}

/* The facts of an update or evaluation as the core wants them, in a submission and in every completion about
 * it. */
static void event_of(const struct kedge_host *h, uint32_t ticket, enum kedge_coord_event_type type,
                     struct kedge_coord_event *ev)
{
    const struct kedge_ticket *t = &h->tickets[ticket];
    const struct kedge_statement *st = t->st;
    *ev = (struct kedge_coord_event){.type = type,
                                     .tenant = h->sites[t->site].tenant,
                                     .site = t->site,
                                     .job = t->job,
                                     .request = t->request,
                                     .ticket = ticket};
    memcpy(ev->envelope.b, t->envelope_hash.b, sizeof ev->envelope.b);
    if (st->kind == KEDGE_ST_EVALUATION) {
        ev->kind = KEDGE_TASK_EVALUATE;
        ev->round = st->u.evaluation.round;
        ev->group = st->u.evaluation.group;
        ev->weight = st->u.evaluation.samples;
        memcpy(ev->base.b, st->subject.b, sizeof ev->base.b);
        return;
    }
    const struct kedge_st_update *u = &st->u.update;
    ev->kind = u->update_kind == KEDGE_TRAIN_PRETRAIN ? KEDGE_TASK_PRETRAIN : KEDGE_TASK_TRAIN;
    ev->round = u->round;
    bool cold = u->update_kind == KEDGE_TRAIN_PRETRAIN
                && u->group == 0; /* the record says 0 for "not yet in a group" */
    ev->group = cold ? KEDGE_COORD_NONE : u->group;
    bool fits = ev->kind == KEDGE_TASK_PRETRAIN
                || (kedge_job_spec_takes(&h->jobs[t->job].spec, u->samples, u->steps, u->loss)
                    && kedge_job_spec_takes_batch(&h->jobs[t->job].spec, u->samples, u->steps, u->batch,
                                                  u->learning_rate)
                    && kedge_job_spec_takes_classes(&h->jobs[t->job].spec, u->round, u->classes)
                    && kedge_job_spec_takes_part(&h->jobs[t->job].spec, u->round, u->samples, u->data_samples,
                                                 h->jobs[t->job].sites[t->site].percent));
    ev->weight = fits ? u->samples : 0; /* which the core refuses */
    ev->cost = kedge_job_spec_charge(&h->jobs[t->job].spec, u->energy_quality != KEDGE_ENERGY_UNKNOWN,
                                     u->energy_joules, u->seconds);
    memcpy(ev->base.b, u->base.b, sizeof ev->base.b);
    memcpy(ev->update.b, st->subject.b, sizeof ev->update.b);
}

/* Names of job, tenant and site in the statement; NULL for other kinds. */
static const struct kedge_id *names_of(const struct kedge_statement *st, const struct kedge_id **ret_tenant,
                                       const struct kedge_id **ret_site)
{
    if (st->kind == KEDGE_ST_UPDATE) {
        *ret_tenant = &st->u.update.tenant;
        *ret_site = &st->u.update.site;
        return &st->u.update.job;
    }
    if (st->kind == KEDGE_ST_EVALUATION) {
        *ret_tenant = &st->u.evaluation.tenant;
        *ret_site = &st->u.evaluation.site;
        return &st->u.evaluation.job;
    }
    return NULL;
}

/* What makes two statements the same one: job, round, kind and site. The ledger takes one entry for
 * each key, so a site cannot have two updates counted in a round, even if it signs two. */
static void idem_key(const struct kedge_statement *st, char out[KEDGE_IDEM_KEY_MAX + 1])
{
    if (st->kind == KEDGE_ST_EVALUATION) {
        const struct kedge_st_evaluation *e = &st->u.evaluation;
        snprintf(out, KEDGE_IDEM_KEY_MAX + 1, "evaluation/%s/%08u/%s", e->job.s, e->round, e->site.s);
    } else {
        const struct kedge_st_update *u = &st->u.update;
        snprintf(out, KEDGE_IDEM_KEY_MAX + 1, "update/%s/%08u/%s/%s", u->job.s, u->round,
                 u->update_kind == KEDGE_TRAIN_PRETRAIN ? "pretrain" : "train", u->site.s);
    }
}

/* True when this very envelope is in the tenant's ledger already. Key and bytes: the same key with
 * another envelope is another update, and its sender gets no receipt for what it did not send. */
static bool find_leaf(struct kedge_host *h, uint32_t tenant, const struct kedge_statement *st,
                      struct kedge_view envelope, uint64_t *ret_leaf)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    struct kedge_hash leaf, want;
    uint64_t index;
    idem_key(st, key);
    struct kedge_ledger *l = h->tenants[tenant].log.ledger;
    if (kedge_ledger_find(l, kedge_view_str(key), &index) != KEDGE_OK
        || kedge_ledger_leaf_hash(l, index, &leaf) != KEDGE_OK) {
        return false;
    }
    kedge_merkle_leaf(envelope, &want);
    *ret_leaf = index;
    return kedge_hash_eq(&leaf, &want);
}

/* The envelope is copied: the request's frame goes when it is answered, and the bytes are appended
 * after that, exactly as they were signed. */
static void submit_to_core(struct kedge_host *h, struct open_work *w, struct kedge_job *job)
{
    uint32_t request = kedge_host_request_put(h, w->req, w->site);
    uint32_t ticket = request == KEDGE_COORD_NONE ? KEDGE_COORD_NONE : ticket_new(h);
    if (ticket == KEDGE_COORD_NONE) {
        struct kedge_net_request *req =
            request == KEDGE_COORD_NONE ? w->req : kedge_host_request_take(h, request);
        kedge_host_reply_error(req, KEDGE_E_BUSY, 1000, "too many submissions at once");
        return;
    }
    struct kedge_ticket *t = &h->tickets[ticket];
    t->request = request;
    t->site = w->site;
    t->job = job->slot;
    t->st = w->st;
    t->envelope_hash = w->hash;
    w->st = NULL;
    kedge_buf_init(&t->envelope, KEDGE_ENTRY_MAX);
    kedge_buf_put(&t->envelope, w->envelope.ptr, w->envelope.len);
    h->requests[request].ticket = ticket;
    struct kedge_coord_event ev;
    event_of(h, ticket, KEDGE_EV_SUBMIT, &ev);
    kedge_host_step(h, &ev);
}

/* A job that is not known any more has three answers. The envelope is in the ledger after all: its
 * receipt, since the site may have missed the first one. It is an update that is refused for good:
 * a signed refusal. Otherwise: no such job. A statement that speaks for another site or tenant is
 * refused before, whatever key signed it. */
static void open_done(struct kedge_host *h, struct kedge_item *item)
{
    struct open_work *w = (struct open_work *)item;
    const struct kedge_id *tenant_id = NULL, *site_id = NULL, *job_id = NULL;
    struct kedge_site_entry *s = &h->sites[w->site];
    uint64_t leaf;
    if (!w->err) {
        job_id = names_of(w->st, &tenant_id, &site_id);
    }
    if (!w->err && !kedge_public_key_eq(&w->key, &s->statement_key)) {
        w->err = KEDGE_E_VERIFY; /* rotated away meanwhile */
    }
    if (w->err) {
        kedge_host_reply_error(w->req, w->err, 0,
                               w->err == KEDGE_E_VERIFY ? "the statement is not signed by this site's key"
                                                        : w->diag.text);
    } else if (!job_id) {
        kedge_host_reply_error(w->req, KEDGE_E_DENIED, 0, "a site submits updates and evaluations only");
    } else if (!kedge_id_eq(tenant_id, &h->tenants[s->tenant].id) || !kedge_id_eq(site_id, &s->id)) {
        kedge_host_reply_error(w->req, KEDGE_E_DENIED, 0, "the statement speaks for another tenant or site");
    } else {
        struct kedge_job *job = kedge_host_job_find(h, job_id, false);
        if (job) {
            submit_to_core(h, w, job);
        } else if (find_leaf(h, s->tenant, w->st, w->envelope, &leaf)) {
            uint32_t request = kedge_host_request_put(h, w->req, w->site);
            kedge_host_receipt(h, request, s->tenant, leaf);
        } else if (kedge_host_refuses(h, w->site, w->st, KEDGE_E_NO_JOB)) {
            kedge_host_refuse(h, &(struct kedge_refused_update){.req = w->req,
                                                                .site = w->site,
                                                                .st = w->st,
                                                                .envelope = w->envelope,
                                                                .hash = w->hash,
                                                                .err = KEDGE_E_NO_JOB});
        } else {
            kedge_host_reply_error(w->req, KEDGE_E_NO_JOB, 0, "no such job, or it has ended");
        }
    }
    kedge_mem_free(w->st);
    kedge_mem_free(w);
}

void kedge_host_submit(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                       struct kedge_view envelope)
{
    struct open_work *w = kedge_mem_new(1, sizeof *w);
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!w || !st) {
        kedge_mem_free(w);
        kedge_mem_free(st);
        kedge_host_reply_error(req, KEDGE_E_NOMEM, 1000, "out of memory");
        return;
    }
    *w = (struct open_work){.work = {.item = {open_done}, .run = open_run},
                            .req = req,
                            .site = site,
                            .key = h->sites[site].statement_key,
                            .envelope = envelope,
                            .st = st};
    kedge_host_work(h, &w->work);
}

/* ---- VERIFY ---- */

struct verify_work {
    struct kedge_work work;
    uint32_t ticket, site;
    struct kedge_blobs *blobs;
    /* The site's upload, if it is this file; NULL: the file must be a blob already, and what the site has
     * open, half a file or another, stays as it is. */
    struct kedge_site_upload *upload;
    bool pretrain;
    struct kedge_hash digest;
    const struct kedge_job *job; /* its layout, limit and spec do not change while it lives */
    int err;
    bool committed;
    struct kedge_diag diag;
};

/* The file is either the site's finished upload or a blob already, when the same bytes were
 * submitted before. Most updates were checked while they came (the stream); then nothing is read
 * again. A file that is refused for its content goes to the refused ones, as evidence, and its
 * upload with it; one that only met a full disk stays for the next attempt. */
static void verify_run(struct kedge_host *h, struct kedge_work *work)
{
    struct verify_work *w = (struct verify_work *)work;
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_at at;
    if (w->upload) {
        kedge_upload_at(w->upload->file, &at);
        w->err = KEDGE_OK;
    } else {
        w->err = kedge_blobs_find(w->blobs, &w->digest, NULL);
        w->err = w->err == KEDGE_E_NOT_FOUND ? KEDGE_E_BLOB_MISSING : w->err;
        w->err = w->err ? w->err : kedge_blobs_at(w->blobs, &w->digest, path, &at);
    }
    const struct kedge_update_stream *stream = w->upload ? kedge_upload_attached(w->upload->file) : NULL;
    bool compact = kedge_job_spec_compact(&w->job->spec, w->pretrain) != NULL;
    if (!w->err && (compact || !kedge_update_stream_accepts(stream, &w->job->spec_digest))) {
        w->err = kedge_compute_check_update(&w->job->update_layout, &at,
                                            kedge_job_spec_compact(&w->job->spec, w->pretrain), w->job->limit,
                                            &w->diag);
    }
    if (!w->err && w->upload) {
        w->err = kedge_upload_commit(w->upload->file, &w->diag);
        if (!w->err) {
            w->upload->file = NULL;
            w->committed = true;
        }
    } else if (w->err && w->upload && kedge_err_class(w->err) == KEDGE_CLASS_REJECT) {
        kedge_host_refused_keep_file(h, w->site, &w->digest, kedge_upload_path(w->upload->file));
        kedge_upload_abort(w->upload->file);
        w->upload->file = NULL;
    }
}

/* The log gets the reason at most once a second for each site: what is refused is decided by the
 * site. */
static void verify_done(struct kedge_host *h, struct kedge_item *item)
{
    struct verify_work *w = (struct verify_work *)item;
    struct kedge_site_entry *s = &h->sites[w->site];
    if (w->upload) {
        s->upload.is_whole = s->upload.file != NULL;
    }
    kedge_uploads_give_back(h, w->site, kedge_os_now_ns());
    h->tickets[w->ticket].blob_committed = w->committed;
    if (w->err && w->err != KEDGE_E_BLOB_MISSING && kedge_host_site_may_say(h, w->site)) {
        kedge_log(KEDGE_LOG_WARN, "update refused", "tenant=%s site=%s: %s", h->tenants[s->tenant].id.s,
                  s->id.s, w->diag.text[0] ? w->diag.text : kedge_strerror(w->err));
    }
    struct kedge_coord_event ev;
    event_of(h, w->ticket, KEDGE_EV_VERIFIED, &ev);
    ev.err = w->err;
    kedge_mem_free(w);
    kedge_host_step(h, &ev);
}

/* Through the queue: the core is in the middle of the effect that asked. */
static void verified_now(struct kedge_host *h, uint32_t ticket, int err)
{
    struct kedge_coord_event ev;
    event_of(h, ticket, KEDGE_EV_VERIFIED, &ev);
    ev.err = err;
    kedge_host_post_event(h, &ev);
}

/* Bytes that were erased by order are refused here, too, and not only at the upload: the order may
 * have come after the file did. */
void kedge_host_verify(struct kedge_host *h, uint32_t ticket)
{
    struct kedge_ticket *t = &h->tickets[ticket];
    struct kedge_site_entry *s = &h->sites[t->site];
    if (t->st->kind == KEDGE_ST_EVALUATION) { /* nothing beside the statement */
        verified_now(h, ticket, KEDGE_OK);
        return;
    }
    if (kedge_host_is_erased(h, s->tenant, &t->st->subject)) {
        if (s->upload.file && kedge_hash_eq(&s->upload.digest, &t->st->subject)) {
            kedge_uploads_drop(h, t->site);
        }
        verified_now(h, ticket, KEDGE_E_DENIED);
        return;
    }
    struct verify_work *w = s->upload.is_busy ? NULL : kedge_mem_new(1, sizeof *w);
    if (!w) {
        verified_now(h, ticket, KEDGE_E_BUSY);
        return;
    }
    *w = (struct verify_work){.work = {.item = {verify_done}, .run = verify_run},
                              .ticket = ticket,
                              .site = t->site,
                              .blobs = h->tenants[s->tenant].log.blobs,
                              .pretrain = t->st->u.update.update_kind == KEDGE_TRAIN_PRETRAIN,
                              .digest = t->st->subject,
                              .job = &h->jobs[t->job]};
    struct kedge_site_upload *upload = kedge_uploads_take(h, t->site);
    if (upload->file && upload->is_whole && kedge_hash_eq(&upload->digest, &t->st->subject)) {
        w->upload = upload;
    }
    kedge_host_work(h, &w->work);
}

/* ---- APPEND ---- */

struct append_item {
    struct kedge_item item;
    struct kedge_host *h;
    struct kedge_ledger *ledger;
    uint32_t ticket;
    int err;
    uint64_t leaf;
    bool is_new; /* else the ledger had it already */
};

/* The core hears of it last. First the tables get what follows from the durable statement, so that
 * whatever the core decides next finds them right. A statement that is new in the ledger gives its
 * connection back some of its allowance of requests (common/net/admission/rate.h). */
static void append_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct append_item *a = (struct append_item *)item;
    struct kedge_ticket *t = &h->tickets[a->ticket];
    struct kedge_coord_event ev;
    event_of(h, a->ticket, KEDGE_EV_APPENDED, &ev);
    ev.err = a->err;
    ev.leaf = a->leaf;
    if (a->err == KEDGE_E_IO || kedge_err_class(a->err) == KEDGE_CLASS_CORRUPT) {
        kedge_host_fail(h, a->err, "a tenant's ledger");
    } else if (!a->err && t->st->kind == KEDGE_ST_EVALUATION) {
        kedge_job_metric_add(&h->jobs[t->job], &t->st->u.evaluation);
        kedge_job_evaluated(&h->jobs[t->job], t->site, &t->st->u.evaluation, a->leaf);
    } else if (!a->err && t->st->u.update.update_kind == KEDGE_TRAIN_TRAIN) {
        struct kedge_job *job = &h->jobs[t->job];
        const struct kedge_st_update *u = &t->st->u.update;
        kedge_round_site_trained(&job->spec, u->group, &t->st->subject, &u->base, &job->sites[t->site]);
        kedge_round_cost_of(&job->spec, u, &job->sites[t->site].cost);
    }
    if (a->is_new) {
        kedge_host_request_earn(h, t->request);
    }
    kedge_mem_free(a);
    if (!h->stop) {
        kedge_host_step(h, &ev);
    }
}

static void append_done(void *arg, const struct kedge_commit_result *result)
{
    struct append_item *a = arg;
    kedge_host_log_commit(result);
    a->err = kedge_host_commit_err(a->ledger, result);
    a->leaf = result->err ? 0 : result->items[0].index;
    a->is_new = !a->err && !result->err && !result->items[0].existing;
    kedge_host_post(a->h, &a->item);
}

static const struct kedge_id *job_of(const struct kedge_statement *st)
{
    return st->kind == KEDGE_ST_UPDATE ? &st->u.update.job : &st->u.evaluation.job;
}

/* May something new of this site's come into the ledger? Not after site-revoked, and of a job not after
 * job-left. */
static int check_may_append(struct kedge_host *h, const struct kedge_ticket *t)
{
    const struct kedge_job *job = kedge_host_job_find(h, job_of(t->st), false);
    const struct kedge_site_entry *site = &h->sites[t->site];
    return !site->active ? KEDGE_E_REVOKED : job && job->left[site->tenant] ? KEDGE_E_NOT_JOINED : KEDGE_OK;
}

/* Of a revoked site nothing new is appended, nor of one whose tenant has left the job. But an append of
 * before that failed with an unknown outcome may be in the ledger, and then it counts; so the ledger is
 * asked. */
void kedge_host_append(struct kedge_host *h, uint32_t ticket)
{
    struct kedge_ticket *t = &h->tickets[ticket];
    struct append_item *a = kedge_mem_new(1, sizeof *a);
    KEDGE_ASSERT(a); /* the core waits for an outcome: without memory for it there is no way on */
    const struct kedge_tenant *tenant = &h->tenants[h->sites[t->site].tenant];
    *a =
        (struct append_item){.item = {append_handle}, .h = h, .ledger = tenant->log.ledger, .ticket = ticket};
    const int closed = check_may_append(h, t);
    if (closed) { /* only what is in the ledger already counts */
        bool there = find_leaf(h, h->sites[t->site].tenant, t->st, kedge_buf_view(&t->envelope), &a->leaf);
        a->err = there ? KEDGE_OK : closed;
        kedge_host_post(h, &a->item);
        return;
    }
    char key[KEDGE_IDEM_KEY_MAX + 1];
    idem_key(t->st, key);
    bool update = t->st->kind == KEDGE_ST_UPDATE;
    struct kedge_ledger_append item = {.entry = kedge_buf_view(&t->envelope),
                                       .idem_key = kedge_view_str(key),
                                       .refs = update ? &t->st->subject : NULL,
                                       .ref_count = update ? 1 : 0};
    int err = kedge_committer_submit(tenant->committer, &item, 1, append_done, a);
    if (err) {
        a->err = err;
        kedge_host_post(h, &a->item);
    }
}

/* ---- answers ---- */

static int make_receipt(struct kedge_ledger *l, uint64_t leaf, struct kedge_buf *ret_note,
                        struct kedge_path *ret_path, struct kedge_hash *ret_leaf_hash)
{
    uint64_t size;
    KEDGE_TRY(kedge_ledger_checkpoint(l, ret_note, &size));
    KEDGE_TRY(kedge_ledger_inclusion(l, leaf, size, ret_path));
    return kedge_ledger_leaf_hash(l, leaf, ret_leaf_hash);
}

/* A receipt is an inclusion proof under a signed checkpoint, made anew each time under the newest
 * one. The site can check it and keep it, and nobody can take the statement out again without
 * contradicting it. */
void kedge_host_receipt(struct kedge_host *h, uint32_t request, uint32_t tenant, uint64_t leaf)
{
    struct kedge_net_request *req = kedge_host_request_take(h, request);
    if (!req) {
        return;
    }
    struct kedge_path path;
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_msg msg = {.type = KEDGE_MSG_RECEIPT};
    struct kedge_hash leaf_hash;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    int err = make_receipt(h->tenants[tenant].log.ledger, leaf, &note, &path, &leaf_hash);
    if (err) {
        kedge_host_reply_error(req, err, 1000, "the receipt cannot be made");
    } else {
        msg.u.receipt.log = h->tenants[tenant].id;
        msg.u.receipt.leaf_index = leaf;
        memcpy(msg.u.receipt.leaf_hash, leaf_hash.b, KEDGE_HASH_LEN);
        msg.u.receipt.checkpoint = kedge_buf_view(&note);
        msg.u.receipt.proof = kedge_view_of(path.hashes, path.count * sizeof path.hashes[0]);
        kedge_host_reply(req, &msg);
    }
}

/* Before every "closed" and "no job": the update may have been counted and its receipt lost on the
 * way. To refuse it then would make a site believe that its work was thrown away. */
bool kedge_host_receipt_if_known(struct kedge_host *h, uint32_t ticket)
{
    struct kedge_ticket *t = &h->tickets[ticket];
    uint32_t tenant = h->sites[t->site].tenant;
    uint64_t leaf;
    if (!find_leaf(h, tenant, t->st, kedge_buf_view(&t->envelope), &leaf)) {
        return false;
    }
    kedge_host_receipt(h, t->request, tenant, leaf);
    return true;
}

/* Signed, so that a site which is told that it is late holds evidence of when the coordinator said
 * so. */
void kedge_host_closed(struct kedge_host *h, uint32_t ticket, uint32_t round)
{
    struct kedge_ticket *t = &h->tickets[ticket];
    struct kedge_site_entry *s = &h->sites[t->site];
    if (kedge_host_receipt_if_known(h, ticket)) {
        return;
    }
    struct kedge_net_request *req = kedge_host_request_take(h, t->request);
    struct kedge_statement *st = req ? kedge_mem_new(1, sizeof *st) : NULL;
    if (!st) {
        if (req) {
            kedge_host_reply_error(req, KEDGE_E_ROUND_CLOSED, 0, "round closed");
        }
        return;
    }
    struct kedge_buf envelope;
    struct kedge_diag d;
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    st->kind = KEDGE_ST_CLOSED;
    st->subject = t->envelope_hash;
    st->u.closed = (struct kedge_st_closed){
        .job = h->jobs[t->job].spec.name, .round = round, .tenant = h->tenants[s->tenant].id, .site = s->id};
    snprintf(st->u.closed.reason, sizeof st->u.closed.reason, "round %u is closed", round);
    int err = kedge_statement_sign(st, &h->statement_key, &envelope, &d);
    if (err) {
        kedge_host_reply_error(req, KEDGE_E_ROUND_CLOSED, 0, "round closed");
    } else {
        struct kedge_msg msg = {.type = KEDGE_MSG_CLOSED};
        msg.u.closed.envelope = kedge_buf_view(&envelope);
        msg.u.closed.rotations = kedge_buf_view(&h->authority.rotations);
        kedge_host_reply(req, &msg);
    }
    kedge_buf_deinit(&envelope);
    kedge_mem_free(st);
}
