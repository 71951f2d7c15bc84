/* What the open round of a job turned away, kept in coordinator.lmdb so that a restart still records it. One
 * record per site and kind, the first one: repeating a wrong update costs no second write. Those of earlier
 * rounds go when the first of a new one comes. JOB/ROUND/TENANT/SITE/KIND -> be32 error, envelope, update,
 * be64 weight */
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"

enum {
    VALUE_LEN = 4 + 2 * KEDGE_HASH_LEN + 8,
    KEYS_MAX = KEDGE_SITES_MAX * 2 * KEDGE_KV_KEY_MAX,
};

/* "JOB/" with round KEDGE_COORD_NONE, else "JOB/ROUND/". */
static struct kedge_view prefix_of(const struct kedge_job *job, uint32_t round, char out[KEDGE_KV_KEY_MAX])
{
    int n = snprintf(out, KEDGE_KV_KEY_MAX, "%s/", job->spec.name.s);
    if (round != KEDGE_COORD_NONE) {
        n = snprintf(out, KEDGE_KV_KEY_MAX, "%s/%08u/", job->spec.name.s, round);
    }
    KEDGE_ASSERT(n > 0 && n < KEDGE_KV_KEY_MAX);
    return kedge_view_of(out, (size_t)n);
}

/* ---- storing ---- */

struct old {
    struct kedge_view keep; /* prefix of what stays */
    struct kedge_buf keys;  /* u16 length, key */
};

static int collect_old(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct old *o = arg;
    (void)value;
    if (key.len < o->keep.len || memcmp(key.ptr, o->keep.ptr, o->keep.len) != 0) {
        kedge_buf_put_u16(&o->keys, (uint16_t)key.len);
        kedge_buf_put(&o->keys, key.ptr, key.len);
    }
    return o->keys.err;
}

static int drop_old(struct kedge_kv_tx *tx, const struct kedge_job *job, uint32_t round)
{
    char all[KEDGE_KV_KEY_MAX], now[KEDGE_KV_KEY_MAX];
    struct old o = {.keep = prefix_of(job, round, now)};
    kedge_buf_init(&o.keys, KEYS_MAX);
    int err = kedge_kv_scan(tx, KEDGE_KV_ROUND, prefix_of(job, KEDGE_COORD_NONE, all), kedge_view_of(NULL, 0),
                            collect_old, &o);
    struct kedge_reader r = kedge_reader_of(kedge_buf_view(&o.keys));
    while (!err && r.rest.len > 0) {
        err = kedge_kv_del(tx, KEDGE_KV_ROUND, kedge_read_bytes(&r, kedge_read_u16(&r)));
    }
    kedge_buf_deinit(&o.keys);
    return err;
}

static int put_new(struct kedge_kv_tx *tx, const struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    char key[KEDGE_KV_KEY_MAX];
    uint8_t value[VALUE_LEN];
    const struct kedge_ticket *t = &h->tickets[fx->ticket];
    const struct kedge_site_entry *s = &h->sites[fx->site];
    struct kedge_view prefix = prefix_of(&h->jobs[fx->job], fx->round, key);
    int n = snprintf(key + prefix.len, sizeof key - prefix.len, "%s/%s/%u", h->tenants[s->tenant].id.s,
                     s->id.s, (unsigned)fx->kind);
    KEDGE_ASSERT(n > 0 && (size_t)n < sizeof key - prefix.len);
    kedge_store_be64(value,
                     (uint64_t)(uint32_t)fx->err << 32); /* its first half; the second is written over */
    memcpy(value + 4, t->envelope_hash.b, KEDGE_HASH_LEN);
    memcpy(value + 4 + KEDGE_HASH_LEN, t->st->subject.b, KEDGE_HASH_LEN);
    kedge_store_be64(value + 4 + 2 * KEDGE_HASH_LEN, t->st->u.update.samples);
    return kedge_kv_put(tx, KEDGE_KV_ROUND, kedge_view_of(key, prefix.len + (size_t)n),
                        kedge_view_of(value, sizeof value), KEDGE_KV_PUT_IF_ABSENT);
}

void kedge_host_refusal_store(struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    struct kedge_job *job = &h->jobs[fx->job];
    struct kedge_diag d = {.text = ""};
    struct kedge_kv_tx *tx;
    int err = kedge_kv_begin(h->kv, true, &tx, &d);
    if (!err) {
        bool first = !job->has_refusals || job->refused_round != fx->round;
        err = first ? drop_old(tx, job, fx->round) : KEDGE_OK;
        err = err ? err : put_new(tx, h, fx);
        if (err) {
            kedge_kv_abort(tx);
        } else {
            err = kedge_kv_commit(tx, &d);
        }
    }
    if (!err) {
        job->has_refusals = true;
        job->refused_round = fx->round;
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
    size_t prefix_len;
    struct kedge_coord_event *events; /* by order of keys; told when the transaction is over */
    size_t count;
};

/* Cuts the next part of a key off; false when it is no name. */
static bool next_name(struct kedge_view *rest, struct kedge_id *ret)
{
    const uint8_t *end = rest->len ? memchr(rest->ptr, '/', rest->len) : NULL;
    if (!end || kedge_id_from(kedge_view_of(rest->ptr, (size_t)(end - rest->ptr)), ret) != KEDGE_OK) {
        return false;
    }
    *rest = kedge_view_of(end + 1, rest->len - (size_t)(end - rest->ptr) - 1);
    return true;
}

static int load_one(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct loading *l = arg;
    struct kedge_view rest = kedge_view_of(key.ptr + l->prefix_len, key.len - l->prefix_len);
    struct kedge_id tenant_id, site_id;
    if (value.len != VALUE_LEN || !next_name(&rest, &tenant_id) || !next_name(&rest, &site_id)
        || rest.len != 1 || l->count == 2 * KEDGE_SITES_MAX) {
        return KEDGE_E_CORRUPT;
    }
    struct kedge_reader r = kedge_reader_of(value);
    struct kedge_coord_event ev = {
        .type = KEDGE_EV_LOAD_REFUSED, .job = l->job->slot, .round = l->job->round};
    ev.kind = rest.ptr[0] == '0' + (int)KEDGE_TASK_PRETRAIN ? KEDGE_TASK_PRETRAIN : KEDGE_TASK_TRAIN;
    ev.err = (int)(int32_t)kedge_read_u32(&r);
    memcpy(ev.envelope.b, kedge_read_bytes(&r, KEDGE_HASH_LEN).ptr, KEDGE_HASH_LEN);
    memcpy(ev.update.b, kedge_read_bytes(&r, KEDGE_HASH_LEN).ptr, KEDGE_HASH_LEN);
    ev.weight = kedge_read_u64(&r);
    ev.site = KEDGE_COORD_NONE;
    for (uint32_t t = 0; t < l->h->tenant_count; t++) {
        if (kedge_id_eq(&l->h->tenants[t].id, &tenant_id)) {
            ev.tenant = t;
            ev.site = kedge_host_site_find(l->h, t, &site_id);
        }
    }
    if (ev.site != KEDGE_COORD_NONE && ev.err != KEDGE_OK) {
        l->events[l->count++] = ev;
    }
    return KEDGE_OK;
}

int kedge_host_refusals_load(struct kedge_host *h, const struct kedge_job *job, struct kedge_diag *d)
{
    char prefix[KEDGE_KV_KEY_MAX];
    struct kedge_view p = prefix_of(job, job->round, prefix);
    struct loading l = {.h = h, .job = job, .prefix_len = p.len};
    struct kedge_kv_tx *tx;
    l.events = kedge_mem_new(2 * KEDGE_SITES_MAX, sizeof *l.events);
    int err = l.events ? kedge_kv_begin(h->kv, false, &tx, d) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_kv_scan(tx, KEDGE_KV_ROUND, p, kedge_view_of(NULL, 0), load_one, &l);
        kedge_kv_abort(tx);
    }
    for (size_t i = 0; !err && i < l.count; i++) {
        kedge_host_step(h, &l.events[i]);
    }
    kedge_mem_free(l.events);
    return err ? kedge_diag_set(d, err, "coordinator.lmdb: refusals of job %s: %s", job->spec.name.s,
                                kedge_strerror(err))
               : KEDGE_OK;
}
