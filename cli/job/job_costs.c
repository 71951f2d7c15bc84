/* What a job's sites said that rounds cost, read from the record: seconds, samples and joules of each update
 * statement, for `kedge job plan --job`.
 *
 * Two passes over the tenants' ledgers: the first finds the last round, the second gathers what lies in the
 * last rounds before it. Joules of different quality are never added up: where a site has measured ones,
 * those that it modelled are left out. */
#include "cli/job/job_costs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum { ROUNDS_MAX = 1000, SITES_MAX = 100000 };

struct cost {
    struct kedge_id tenant, site;
    uint64_t updates, samples, last_samples;
    uint32_t last_round;
    double seconds;
    struct {
        uint64_t updates, samples;
        double joules;
    } of[2]; /* measured, modelled */
};

struct walk {
    const struct kedge_cli_costs *q;
    struct kedge_ledger *ledger;
    struct kedge_statement *st;
    struct kedge_buf entry, payload;
    char prefix[KEDGE_ID_MAX + 16];
    bool collects; /* else it looks for the last round */
    uint32_t last;
    uint64_t found;
    double slowest[ROUNDS_MAX]; /* of round last − i */
    struct cost *sites;
    size_t count, cap, first; /* first: of this log */
};

/* Sites are looked for only among those of the log at work (w->first): names are unique within a tenant and
 * not beyond it. */
static struct cost *site_of(struct walk *w, const struct kedge_st_update *u)
{
    for (size_t i = w->first; i < w->count; i++) {
        if (kedge_id_eq(&w->sites[i].site, &u->site)) {
            return &w->sites[i];
        }
    }
    if (w->count == 2 * SITES_MAX || !kedge_mem_grow(&w->sites, &w->cap, w->count, 64, sizeof *w->sites)) {
        return NULL;
    }
    w->sites[w->count] = (struct cost){.tenant = u->tenant, .site = u->site};
    return &w->sites[w->count++];
}

/* A mean over samples and not over updates: a site that trained on twice as much counts twice. The slowest
 * site of each round is kept, too, since a round takes as long as that one. */
static int collect(struct walk *w, const struct kedge_st_update *u)
{
    const int which = u->energy_quality == KEDGE_ENERGY_MEASURED   ? 0
                      : u->energy_quality == KEDGE_ENERGY_MODELLED ? 1
                                                                   : 2;
    if (u->samples == 0 || !(u->seconds > 0)) { /* says nothing about its speed */
        return KEDGE_OK;
    }
    struct cost *c = site_of(w, u);
    if (!c) {
        return KEDGE_E_NOMEM;
    }
    c->updates++;
    c->samples += u->samples;
    c->seconds += u->seconds;
    if (u->round >= c->last_round) {
        c->last_round = u->round;
        c->last_samples =
            u->data_samples > 0 ? u->data_samples : u->samples; /* of which it took a planned part */
    }
    if (which < 2 && u->energy_joules >= 0) { /* NaN is not */
        c->of[which].updates++;
        c->of[which].samples += u->samples;
        c->of[which].joules += u->energy_joules;
    }
    double *slowest = &w->slowest[w->last - u->round];
    *slowest = u->seconds > *slowest ? u->seconds : *slowest;
    return KEDGE_OK;
}

/* Pre-training is left out: it is one round of another length, and would make every site look slower or
 * faster than it is. */
static int take(struct walk *w)
{
    const struct kedge_st_update *u = &w->st->u.update;
    if (w->st->kind != KEDGE_ST_UPDATE || !kedge_id_eq(&u->job, &w->q->job)
        || u->update_kind != KEDGE_TRAIN_TRAIN) {
        return KEDGE_OK;
    }
    if (!w->collects) {
        w->last = u->round > w->last ? u->round : w->last;
        w->found++;
        return KEDGE_OK;
    }
    return u->round <= w->last && w->last - u->round < w->q->rounds ? collect(w, u) : KEDGE_OK;
}

static int read_entry(struct walk *w, struct kedge_view entry)
{
    struct kedge_dsse_entry dsse;
    kedge_buf_clear(&w->payload);
    int err = kedge_dsse_decode(entry, &w->payload, &dsse);
    return err ? err : kedge_statement_decode(kedge_buf_view(&w->payload), w->st, NULL);
}

/* Updates are found by their keys in the store ("update/JOB/…"), without reading what other jobs wrote. */
static int visit_key(void *arg, struct kedge_view key, uint64_t index)
{
    struct walk *w = arg;
    (void)key;
    kedge_buf_clear(&w->entry);
    KEDGE_TRY(kedge_ledger_get(w->ledger, index, &w->entry));
    KEDGE_TRY(read_entry(w, kedge_buf_view(&w->entry)));
    return take(w);
}

/* Copies have no keys; what cannot be read in one is another's, or a checkpoint. */
static int visit_entry(void *arg, uint64_t index, struct kedge_view entry)
{
    struct walk *w = arg;
    (void)index;
    return entry.len > 0 && read_entry(w, entry) == KEDGE_OK ? take(w) : KEDGE_OK;
}

static int walk_tenant(struct walk *w, const struct kedge_id *tenant, struct kedge_diag *d)
{
    struct kedge_state_log log;
    KEDGE_TRY(kedge_cli_log_open(w->q->state, tenant->s, &log, d));
    w->ledger = log.ledger;
    w->first = w->count;
    int err = kedge_ledger_is_copy(log.ledger)
                  ? kedge_ledger_for_each(log.ledger, 0, visit_entry, w)
                  : kedge_ledger_scan_keys(log.ledger, kedge_view_str(w->prefix), visit_key, w);
    kedge_state_log_close(&log);
    return err && !d->text[0] ? kedge_diag_set(d, err, "log %s: %s", tenant->s, kedge_strerror(err)) : err;
}

/* Where a site has measured joules, those count and the modelled ones do not; the word says which they are.
 */
static json_t *site_json(const struct cost *c)
{
    static const char *const words[] = {"measured", "modelled", "unknown"};
    const int which = c->of[0].updates > 0 ? 0 : c->of[1].updates > 0 ? 1 : 2;
    json_t *o =
        json_pack("{s:s,s:s,s:I,s:I,s:o,s:s}", "tenant", c->tenant.s, "site", c->site.s, "updates",
                  (json_int_t)c->updates, "samples", (json_int_t)c->last_samples, "seconds_per_sample",
                  kedgei_json_number(c->seconds / (double)c->samples), "energy_quality", words[which]);
    json_object_set_new(o, "energy_updates", json_integer(which < 2 ? (json_int_t)c->of[which].updates : 0));
    json_object_set_new(o, "joules_per_sample",
                        which < 2 ? kedgei_json_number(c->of[which].joules / (double)c->of[which].samples)
                                  : json_null());
    return o;
}

static json_t *answer(const struct walk *w)
{
    json_t *sites = json_array(), *rounds = json_array();
    for (size_t i = 0; i < w->count; i++) {
        json_array_append_new(sites, site_json(&w->sites[i]));
    }
    for (uint32_t i = w->q->rounds; i-- > 0;) {
        if (w->slowest[i] > 0) {
            json_array_append_new(rounds, json_pack("{s:I,s:o}", "round", (json_int_t)(w->last - i),
                                                    "seconds", kedgei_json_number(w->slowest[i])));
        }
    }
    return json_pack("{s:o,s:o}", "rounds", rounds, "sites", sites);
}

/* Called under kedge_cli_guarded, in a child. Tenants come in the order of their names, so the answer is the
 * same each time. */
int kedge_cli_costs(void *arg, json_t **ret, struct kedge_diag *d)
{
    struct walk *w = kedge_mem_new(1, sizeof *w);
    struct kedge_id *ids = NULL;
    size_t count = 0;
    int err = w ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err) {
        w->q = arg;
        KEDGE_ASSERT(w->q->rounds >= 1 && w->q->rounds <= ROUNDS_MAX);
        w->st = kedge_mem_new(1, sizeof *w->st);
        kedge_buf_init(&w->entry, 2 * KEDGE_ENTRY_MAX);
        kedge_buf_init(&w->payload, 2 * KEDGE_ENTRY_MAX);
        snprintf(w->prefix, sizeof w->prefix, "update/%s/", w->q->job.s);
        err = w->st ? kedge_state_tenants(w->q->state, &ids, &count, d) : KEDGE_E_NOMEM;
    }
    for (int pass = 0; pass < 2 && !err; pass++) {
        w->collects = pass == 1;
        for (size_t i = 0; i < count && !err; i++) {
            err = walk_tenant(w, &ids[i], d);
        }
    }
    if (!err && w->count == 0) {
        err = kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no site has trained for a job \"%s\" in this record",
                             w->q->job.s);
    }
    if (!err) {
        *ret = answer(w);
        err = *ret ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    if (w) {
        kedge_buf_deinit(&w->entry);
        kedge_buf_deinit(&w->payload);
        kedge_mem_free(w->st);
        kedge_mem_free(w->sites);
    }
    kedge_mem_free(w);
    kedge_mem_free(ids);
    return err;
}
