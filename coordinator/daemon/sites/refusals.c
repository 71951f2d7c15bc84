/* What the open round of a job turned away, kept in coordinator.lmdb so that a restart still records it. One
 * record per site and kind, the first one: repeating a wrong update costs no second write. Those of earlier
 * rounds go when the first of a new one comes, and all when the job ends; what a crash leaves goes at
 * the next start. */
#include "coordinator/daemon/sites/refusals.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/members.h"
#include "coordinator/daemon/records.h"

enum { SWEEP_MAX = 1 << 20, SWEEPS_MAX = 1024 }; /* bytes of keys at a time; times */

/* ---- removing ---- */

/* Keys are collected first and deleted after the scan: the scan's cursor must not be moved by what
 * it visits. */
struct old {
    struct kedge_view keep; /* prefix of what stays; empty: nothing */
    struct kedge_buf *keys; /* u16 length, key */
};

static int collect_key(struct kedge_buf *keys, struct kedge_view key)
{
    kedge_buf_put_u16(keys, (uint16_t)key.len);
    kedge_buf_put(keys, key.ptr, key.len);
    return keys->err;
}

static int collect_old(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct old *o = arg;
    (void)value;
    bool keep = o->keep.len > 0 && key.len >= o->keep.len && memcmp(key.ptr, o->keep.ptr, o->keep.len) == 0;
    return keep ? KEDGE_OK : collect_key(o->keys, key);
}

/* Lengths of 16 bits before each key, in one buffer: no allocation for each of thousands of keys. */
static int delete_keys(struct kedge_kv_tx *tx, struct kedge_view keys)
{
    int err = KEDGE_OK;
    struct kedge_reader r = kedge_reader_of(keys);
    while (!err && r.rest.len > 0) {
        err = kedge_kv_del(tx, KEDGE_KV_ROUND, kedge_read_bytes(&r, kedge_read_u16(&r)));
    }
    return err;
}

int kedge_host_refusals_drop(struct kedge_kv_tx *tx, const struct kedge_id *job, uint32_t keep)
{
    struct kedge_buf all KEDGE_CLEANUP(kedge_buf_deinit), now KEDGE_CLEANUP(kedge_buf_deinit),
        keys KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&all, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&now, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&keys, 2 * KEDGE_SITES_MAX * (2 + KEDGE_RECORD_KEY_MAX));
    kedge_refusal_prefix(job, KEDGE_COORD_NONE, &all);
    if (keep != KEDGE_COORD_NONE) {
        kedge_refusal_prefix(job, keep, &now);
    }
    KEDGE_TRY(all.err);
    KEDGE_TRY(now.err);
    struct old o = {.keep = kedge_buf_view(&now), .keys = &keys};
    KEDGE_TRY(
        kedge_kv_scan(tx, KEDGE_KV_ROUND, kedge_buf_view(&all), kedge_view_of(NULL, 0), collect_old, &o));
    return delete_keys(tx, kedge_buf_view(&keys));
}

/* ---- storing ---- */

static int put_new(struct kedge_kv_tx *tx, const struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    const struct kedge_ticket *t = &h->tickets[fx->ticket];
    const struct kedge_site_entry *s = &h->sites[fx->site];
    struct kedge_refusal_record r = {.job = h->jobs[fx->job].spec.name,
                                     .tenant = h->tenants[s->tenant].id,
                                     .site = s->id,
                                     .round = h->jobs[fx->job].round,
                                     .kind = fx->kind,
                                     .err = fx->err,
                                     .envelope = t->envelope_hash,
                                     .update = t->st->subject,
                                     .weight = t->st->u.update.samples};
    struct kedge_buf key KEDGE_CLEANUP(kedge_buf_deinit), value KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&value, KEDGE_RECORD_MAX);
    kedge_refusal_record_encode(&r, &key, &value);
    KEDGE_TRY(key.err);
    KEDGE_TRY(value.err);
    return kedge_kv_put(tx, KEDGE_KV_ROUND, kedge_buf_view(&key), kedge_buf_view(&value),
                        KEDGE_KV_PUT_IF_ABSENT);
}

static int store_first(struct kedge_host *h, const struct kedge_job *job, const struct kedge_coord_effect *fx,
                       struct kedge_diag *d)
{
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(h->kv, true, &tx, d));
    /* of the open round, which in an asynchronous job need not be that of the task */
    bool first = !job->has_refusals || job->refused_round != job->round;
    int err = first ? kedge_host_refusals_drop(tx, &job->spec.name, job->round) : KEDGE_OK;
    return kedge_kv_end(tx, err ? err : put_new(tx, h, fx), d);
}

/* The first refusal of a round removes those of earlier rounds in the same transaction, so the
 * table holds one round of each job and never grows. A record that is there already (EXISTS) is the
 * first one, which stays. */
void kedge_host_refusal_store(struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    struct kedge_job *job = &h->jobs[fx->job];
    struct kedge_diag d = {.text = ""};
    int err = store_first(h, job, fx, &d);
    if (!err) {
        job->has_refusals = true;
        job->refused_round = job->round;
    } else if (err != KEDGE_E_EXISTS) { /* it is told all the same: after a restart the site would be asked
                                           again */
        kedge_log(KEDGE_LOG_WARN, "refusal not kept", "job=%s round=%u: %s", job->spec.name.s, fx->round,
                  d.text[0] ? d.text : kedge_strerror(err));
    }
}

/* ---- loading ---- */

struct loading {
    struct kedge_host *h;
    const struct kedge_job *job;
    struct kedge_diag *d;
    struct kedge_coord_event *events; /* by order of keys; told when the transaction is over */
    size_t count;
};

/* A refusal of a site that no ledger knows cannot have been written by this coordinator over this
 * record. */
static int load_one(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct loading *l = arg;
    struct kedge_refusal_record r;
    int err = kedge_refusal_record_decode(key, value, &r, l->d);
    if (err) {
        return err;
    }
    struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_REFUSED,
                                   .job = l->job->slot,
                                   .round = r.round,
                                   .kind = r.kind,
                                   .err = r.err,
                                   .weight = r.weight};
    memcpy(ev.envelope.b, r.envelope.b, sizeof ev.envelope.b);
    memcpy(ev.update.b, r.update.b, sizeof ev.update.b);
    ev.tenant = kedge_host_tenant_find(l->h, &r.tenant);
    ev.site =
        ev.tenant == KEDGE_COORD_NONE ? KEDGE_COORD_NONE : kedge_host_site_find(l->h, ev.tenant, &r.site);
    if (ev.site == KEDGE_COORD_NONE || l->count == 2 * KEDGE_SITES_MAX) {
        return kedge_diag_set(l->d, KEDGE_E_CORRUPT,
                              "coordinator.lmdb: table round, key \"%.*s\": no ledger knows this site",
                              (int)key.len, (const char *)key.ptr);
    }
    l->events[l->count++] = ev;
    return KEDGE_OK;
}

static int load_all(struct loading *l, struct kedge_view prefix)
{
    int err = kedge_kv_scan_once(l->h->kv, KEDGE_KV_ROUND, prefix, load_one, l, l->d);
    return err && !l->d->text[0] ? kedge_diag_set(l->d, err, "coordinator.lmdb: refusals of job %s: %s",
                                                  l->job->spec.name.s, kedge_strerror(err))
                                 : err;
}

int kedge_host_refusals_load(struct kedge_host *h, const struct kedge_job *job, struct kedge_diag *d)
{
    struct kedge_buf prefix KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_coord_event *events KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(2 * KEDGE_SITES_MAX, sizeof *events);
    struct loading l = {.h = h, .job = job, .d = d, .events = events};
    kedge_buf_init(&prefix, KEDGE_RECORD_KEY_MAX);
    kedge_refusal_prefix(&job->spec.name, job->round, &prefix);
    if (!events || prefix.err) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    KEDGE_TRY(load_all(&l, kedge_buf_view(&prefix)));
    for (size_t i = 0; i < l.count; i++) {
        kedge_host_step(h, &events[i]);
    }
    return KEDGE_OK;
}

/* ---- sweeping ---- */

struct sweep {
    struct kedge_host *h;
    struct kedge_diag *d;
    struct kedge_buf keys; /* u16 length, key */
    bool more;             /* than keys can hold */
};

/* Only refusals of rounds that are open now are still to be recorded. */
static bool is_needed(struct kedge_host *h, const struct kedge_refusal_record *r)
{
    struct kedge_coord_job_view view;
    const struct kedge_job *job = kedge_host_job_find(h, &r->job, false);
    return job && kedge_coord_job(h->coord, job->slot, &view) && view.round_open && view.round == r->round;
}

static int sweep_one(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct sweep *s = arg;
    struct kedge_refusal_record r;
    int err = kedge_refusal_record_decode(key, value, &r, s->d);
    if (err || is_needed(s->h, &r)) {
        return err;
    }
    s->more = s->more || s->keys.len + 2 + key.len > SWEEP_MAX;
    return s->more ? KEDGE_OK : collect_key(&s->keys, key);
}

/* As many as fit into one transaction. Removing is only tidy: what a full disk refuses is left for another
 * start. */
static int sweep_some(struct sweep *s)
{
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_scan_once(s->h->kv, KEDGE_KV_ROUND, kedge_view_of(NULL, 0), sweep_one, s, s->d));
    if (s->keys.len == 0) {
        return KEDGE_OK;
    }
    int swept = kedge_kv_begin(s->h->kv, true, &tx, NULL);
    if (!swept) {
        swept = kedge_kv_end(tx, delete_keys(tx, kedge_buf_view(&s->keys)), NULL);
    }
    if (swept) {
        s->more = false;
        kedge_log(KEDGE_LOG_WARN, "refusals of ended rounds stay", "coordinator.lmdb: %s",
                  kedge_strerror(swept));
    }
    return KEDGE_OK;
}

int kedge_host_refusals_sweep(struct kedge_host *h, struct kedge_diag *d)
{
    struct sweep s = {.h = h, .d = d, .more = true};
    int err = KEDGE_OK;
    kedge_buf_init(&s.keys, SWEEP_MAX);
    for (unsigned i = 0; i < SWEEPS_MAX && s.more && !err; i++) {
        s.more = false;
        kedge_buf_clear(&s.keys);
        err = sweep_some(&s);
    }
    kedge_buf_deinit(&s.keys);
    return err && !d->text[0]
               ? kedge_diag_set(d, err, "coordinator.lmdb: cannot read the refusals: %s", kedge_strerror(err))
               : err;
}
