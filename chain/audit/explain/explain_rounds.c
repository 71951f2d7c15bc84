/* The rounds that lead to a model, and what each tenant and site has in them.
 *
 * Rounds are told from the newest back, for the group whose model it is. Which groups are looked at
 * changes on the way: a cut, a join or groups made anew mean that the model before came from other
 * groups. */
#include <string.h>

#include "chain/audit/explain/explain_impl.h"
#include "common/base/mem.h"
#include "common/json/json.h"

/* What a tenant or a site put in, over all rounds. */
struct total {
    uint32_t tenant; /* place in the job */
    struct kedge_id site;
    uint64_t updates, refused, samples, unknown; /* unknown: updates without a figure of energy */
    double share;                                /* sum over rounds of its part of the weights, 0…1 each */
    double measured_j, modelled_j;
};

struct view {
    const struct kedgei_audit *a;
    const struct kedgei_origin *origin;
    struct total *sites;
    size_t site_count, site_cap, next; /* next: where the next site is looked for first */
    uint64_t rounds;                   /* with an aggregate of the group */
    bool nomem;
};

/* The search begins after the last hit, so a sorted list of sites costs one comparison each. */
static struct total *total_of(struct view *v, uint32_t tenant, const struct kedge_id *site)
{
    for (size_t k = 0; k < v->site_count; k++) { /* lists are sorted: mostly the one behind the last */
        size_t i = (v->next + k) % v->site_count;
        if (v->sites[i].tenant == tenant && kedge_id_eq(&v->sites[i].site, site)) {
            v->next = i + 1;
            return &v->sites[i];
        }
    }
    if (!kedge_mem_grow(&v->sites, &v->site_cap, v->site_count, 64, sizeof *v->sites)) {
        v->nomem = true;
        return NULL;
    }
    struct total *t = &v->sites[v->site_count++];
    *t = (struct total){.tenant = tenant, .site = *site};
    return t;
}

static void set(struct view *v, json_t *o, const char *name, json_t *value)
{
    kedgei_json_set(o, name, value, &v->nomem);
}

static void add(struct view *v, json_t *list, json_t *value)
{
    v->nomem = json_array_append_new(list, value) != 0 || v->nomem;
}

static json_t *percent(double part)
{
    return kedgei_json_number(100 * part);
}

static void set_energy(struct view *v, json_t *o, double measured, double modelled, uint64_t unknown)
{
    json_t *e = json_object();
    set(v, e, "measured_joules", kedgei_json_number(measured));
    set(v, e, "modelled_joules", kedgei_json_number(modelled));
    set(v, e, "updates_without_figure", json_integer((json_int_t)unknown));
    set(v, o, "energy", e);
}

/* ---- one row ---- */

/* Measured and modelled joules are never added to each other; updates without a figure are counted, so
 * that a sum does not look complete. */
static void add_energy(struct total *t, const struct kedge_st_update *u)
{
    switch (u->energy_quality) {
    case KEDGE_ENERGY_MEASURED:
        t->measured_j += u->energy_joules;
        break;
    case KEDGE_ENERGY_MODELLED:
        t->modelled_j += u->energy_joules;
        break;
    case KEDGE_ENERGY_UNKNOWN:
        t->unknown++;
        break;
    }
}

static json_t *explain_used(struct view *v, const struct kedgei_log *log, uint32_t place,
                            const struct kedge_input_row *row, uint64_t weight_sum)
{
    static const char *const quality[] = {"measured", "modelled", "unknown"};
    double share = weight_sum ? (double)row->weight / (double)weight_sum : 0;
    const struct kedgei_fact *fact = row->leaf < log->count ? kedgei_fact_at(log, row->leaf) : NULL;
    const struct kedge_st_update *u = fact && fact->kind == KEDGE_ST_UPDATE ? fact->body : NULL;
    struct total *t = total_of(v, place, &row->site);
    json_t *o = json_object();
    set(v, o, "site", json_string(row->site.s));
    set(v, o, "update", kedgei_json_hash(&row->update));
    set(v, o, "weight", json_integer((json_int_t)row->weight));
    set(v, o, "share_percent", percent(share));
    if (u) {
        set(v, o, "samples", json_integer((json_int_t)u->samples));
        set(v, o, "energy_quality", json_string(quality[u->energy_quality]));
        if (u->energy_quality != KEDGE_ENERGY_UNKNOWN) {
            set(v, o, "energy_joules", kedgei_json_number(u->energy_joules));
        }
        set(v, o, "seconds", kedgei_json_number(u->seconds));
        set(v, o, "engine", json_string(u->engine));
        set(v, o, "source", kedgei_json_source(log, fact));
    }
    if (t) {
        t->updates++;
        t->share += share;
        t->samples += u ? u->samples : 0;
        if (u) {
            add_energy(t, u);
        }
    }
    return o;
}

static json_t *explain_refused(struct view *v, uint32_t place, const struct kedge_input_row *row)
{
    struct total *t = total_of(v, place, &row->site);
    json_t *o = json_object();
    set(v, o, "site", json_string(row->site.s));
    set(v, o, "reason", json_string(row->reason));
    if (t) {
        t->refused++;
    }
    return o;
}

/* ---- a tenant in a round ---- */

/* Place of a tenant in the job: as its salted id stands in job-opened. */
static uint32_t place_of(const struct kedgei_job *job, const struct kedge_hash *salted)
{
    const struct kedge_st_job_opened *o = job->opened->body;
    uint32_t i = 0;
    while (i < o->tenant_count && !kedge_hash_eq(&o->tenants[i], salted)) {
        i++;
    }
    return i;
}

static void explain_list(struct view *v, const struct kedgei_log *log,
                         const struct kedge_st_aggregate_tenant *line, uint64_t index, uint64_t weight_sum,
                         json_t *row)
{
    struct kedgei_findings ignored = {.items = NULL}; /* verify has named what is wrong with it */
    struct kedge_input_list list;
    uint32_t place = place_of(v->origin->job, &line->id);
    json_t *sites = json_array(), *refused = json_array();
    if (kedgei_list_read(v->a, log, &line->list, index, &list, &ignored)) {
        for (uint32_t i = 0; i < list.count; i++) {
            const struct kedge_input_row *r = &list.rows[i];
            if (r->use == KEDGE_USE_REFUSED) {
                add(v, refused, explain_refused(v, place, r));
            } else if (r->use == KEDGE_USE_AGGREGATED || r->use == KEDGE_USE_GROUPED) {
                add(v, sites, explain_used(v, log, place, r, weight_sum));
            }
        }
        kedge_input_list_deinit(&list);
    }
    v->nomem = v->nomem || ignored.nomem;
    kedgei_findings_deinit(&ignored);
    set(v, row, "sites", sites);
    set(v, row, "refused", refused);
}

static json_t *explain_tenants(struct view *v, const struct kedgei_fact *fact)
{
    const struct kedge_st_aggregate *agg = fact->body;
    json_t *list = json_array();
    for (uint32_t t = 0; t < agg->tenant_count; t++) {
        const struct kedge_st_aggregate_tenant *line = &agg->tenants[t];
        const struct kedgei_log *log = kedgei_job_tenant(v->a, v->origin->job, &line->id);
        json_t *row = json_object();
        set(v, row, "salted_id", kedgei_json_hash(&line->id));
        set(v, row, "accepted", json_integer(line->accepted));
        set(v, row, "weight", json_integer((json_int_t)line->weight_sum));
        set(v, row, "share_percent",
            percent(agg->weight_sum ? (double)line->weight_sum / (double)agg->weight_sum : 0));
        if (log) {
            set(v, row, "tenant", json_string(log->name));
            explain_list(v, log, line, fact->index, agg->weight_sum, row);
        }
        add(v, list, row);
    }
    return list;
}

/* ---- a round ---- */

/* Sites' tests of the group's model after the round, added up. The mean loss is weighed by samples.
 * Models without classes have no "correct". */
static json_t *explain_evaluation(struct view *v, uint32_t round, uint32_t group)
{
    uint64_t samples = 0, correct = 0, sites = 0;
    double loss = 0;
    for (uint32_t t = 0; t < v->a->tenant_count; t++) {
        const struct kedgei_log *log = &v->a->tenants[t];
        for (uint64_t i = 0; i < log->count; i++) {
            const struct kedgei_fact *fact = kedgei_fact_at(log, i);
            const struct kedge_st_evaluation *e = fact->body;
            if (fact->kind == KEDGE_ST_EVALUATION && e->round == round && e->group == group
                && kedge_id_eq(&e->job, &v->origin->job->id)) {
                samples += e->samples;
                correct += e->correct;
                loss += e->loss * (double)e->samples;
                sites++;
            }
        }
    }
    if (sites == 0) {
        return NULL;
    }
    json_t *o = json_object();
    set(v, o, "sites", json_integer((json_int_t)sites));
    set(v, o, "samples", json_integer((json_int_t)samples));
    if (!v->origin->job->spec.shows_loss) {
        set(v, o, "correct", json_integer((json_int_t)correct));
    }
    set(v, o, "loss", kedgei_json_number(samples ? loss / (double)samples : 0));
    return o;
}

/* Groups whose models made that of this group when groups were made anew: of its members that counted. */
static uint64_t former_groups(struct view *v, const struct kedgei_fact *aggregate)
{
    const struct kedge_st_aggregate *agg = aggregate->body;
    struct kedgei_findings ignored = {.items = NULL};
    uint64_t groups = 0;
    for (uint32_t t = 0; t < agg->tenant_count; t++) {
        const struct kedgei_log *log = kedgei_job_tenant(v->a, v->origin->job, &agg->tenants[t].id);
        struct kedge_input_list list;
        if (!log || !kedgei_list_read(v->a, log, &agg->tenants[t].list, aggregate->index, &list, &ignored)) {
            continue;
        }
        for (uint32_t i = 0; i < list.count; i++) {
            const struct kedge_input_row *row = &list.rows[i];
            uint32_t then = kedgei_group_then(log, &v->origin->job->id, row);
            bool counts = row->use == KEDGE_USE_GROUPED && row->weight > 0 && then < KEDGE_GROUPS_MAX;
            groups |= counts ? UINT64_C(1) << then : 0;
        }
        kedge_input_list_deinit(&list);
    }
    v->nomem = v->nomem || ignored.nomem;
    kedgei_findings_deinit(&ignored);
    return groups;
}

/* The groups (a bit each) whose models in front of this round the models of `groups` behind it came from:
 * themselves, but where groups were made anew, cut or joined. The set can only grow or change within
 * KEDGE_GROUPS_MAX bits, so any history of cuts and joins fits. */
static uint64_t groups_before(struct view *v, const struct kedgei_round *round, uint64_t groups)
{
    const struct kedge_st_step *step = round->step ? round->step->body : NULL;
    uint64_t before = 0;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        if ((groups >> g & 1) == 0) {
            continue;
        }
        if (kedgei_regroups(round)) {
            before |= round->aggregates[g] ? former_groups(v, round->aggregates[g]) : 0;
            continue;
        }
        uint32_t cut = step && g < step->group_count ? step->groups[g].split_of : 0;
        before |= UINT64_C(1) << (cut > 0 && cut <= KEDGE_GROUPS_MAX ? cut - 1 : g);
        for (uint32_t other = 0; step && other < step->group_count; other++) {
            before |= step->groups[other].merged_into == g + 1 ? UINT64_C(1) << other : 0;
        }
    }
    return before;
}

static json_t *explain_round(struct view *v, const struct kedgei_round *round, uint32_t group)
{
    const struct kedgei_fact *fact = group < KEDGE_GROUPS_MAX ? round->aggregates[group] : NULL;
    const struct kedge_st_aggregate *agg = fact ? fact->body : NULL;
    const struct kedge_st_step_group *row = round->step ? kedgei_step_group(round->step, group) : NULL;
    json_t *o = json_object();
    set(v, o, "round", json_integer(round->number));
    set(v, o, "group", json_integer(group));
    set(v, o, "opened", kedgei_json_source(&v->a->main, round->opened));
    if (agg) {
        json_t *aggregate = json_object();
        set(v, aggregate, "rule", json_string(agg->rule));
        set(v, aggregate, "base", kedgei_json_hash(&agg->base));
        set(v, aggregate, "result", kedgei_json_hash(&fact->subject));
        set(v, aggregate, "updates", json_integer(agg->count));
        set(v, aggregate, "weight", json_integer((json_int_t)agg->weight_sum));
        set(v, aggregate, "source", kedgei_json_source(&v->a->main, fact));
        set(v, aggregate, "tenants", explain_tenants(v, fact));
        set(v, o, "aggregate", aggregate);
        v->rounds++;
    }
    if (row) {
        const struct kedge_st_step *st = round->step->body;
        json_t *step = json_object();
        set(v, step, "rule", json_string(st->rule));
        set(v, step, "eta", kedgei_json_number(st->eta));
        set(v, step, "after", kedgei_json_hash(&row->after));
        set(v, step, "source", kedgei_json_source(&v->a->main, round->step));
        set(v, o, "step", step);
    }
    return o;
}

/* ---- totals ---- */

static json_t *explain_totals(struct view *v)
{
    const struct kedge_st_job_opened *opened = v->origin->job->opened->body;
    json_t *list = json_array();
    for (uint32_t p = 0; p < opened->tenant_count; p++) {
        const struct kedgei_log *log = kedgei_job_tenant(v->a, v->origin->job, &opened->tenants[p]);
        struct total sum = {.tenant = p};
        json_t *sites = json_array(), *row = json_object();
        for (size_t i = 0; i < v->site_count; i++) {
            const struct total *t = &v->sites[i];
            if (t->tenant != p) {
                continue;
            }
            json_t *o = json_object();
            set(v, o, "site", json_string(t->site.s));
            set(v, o, "updates", json_integer((json_int_t)t->updates));
            set(v, o, "refused", json_integer((json_int_t)t->refused));
            set(v, o, "samples", json_integer((json_int_t)t->samples));
            set(v, o, "mean_share_percent", percent(v->rounds ? t->share / (double)v->rounds : 0));
            set_energy(v, o, t->measured_j, t->modelled_j, t->unknown);
            add(v, sites, o);
            sum.updates += t->updates;
            sum.refused += t->refused;
            sum.samples += t->samples;
            sum.share += t->share;
            sum.measured_j += t->measured_j;
            sum.modelled_j += t->modelled_j;
            sum.unknown += t->unknown;
        }
        set(v, row, "salted_id", kedgei_json_hash(&opened->tenants[p]));
        if (log) {
            set(v, row, "tenant", json_string(log->name));
        }
        set(v, row, "updates", json_integer((json_int_t)sum.updates));
        set(v, row, "refused", json_integer((json_int_t)sum.refused));
        set(v, row, "samples", json_integer((json_int_t)sum.samples));
        set(v, row, "mean_share_percent", percent(v->rounds ? sum.share / (double)v->rounds : 0));
        set_energy(v, row, sum.measured_j, sum.modelled_j, sum.unknown);
        set(v, row, "sites", sites);
        add(v, list, row);
    }
    return list;
}

/* A round in which none of these groups was trained is told all the same, by its opening: that nothing
 * went in is part of the answer. */
int kedgei_explain_rounds(const struct kedgei_audit *a, const struct kedgei_origin *origin, json_t *tree)
{
    struct view v = {.a = a, .origin = origin};
    json_t *rounds = json_array();
    uint64_t groups = origin->group < KEDGE_GROUPS_MAX ? UINT64_C(1) << origin->group : 0;
    for (size_t r = origin->round_count; r-- > 0 && !v.nomem;) {
        const struct kedgei_round *round = kedgei_round_at(origin->job, r);
        uint32_t told = 0;
        for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            bool trained = (groups >> g & 1) != 0 && round->aggregates[g];
            told += trained;
            if (trained) {
                add(&v, rounds, explain_round(&v, round, g));
            }
        }
        if (told == 0) { /* nothing of it is in the model, but that it was */
            add(&v, rounds, explain_round(&v, round, origin->group));
        }
        groups = groups_before(&v, round, groups);
    }
    set(&v, tree, "rounds", rounds);
    set(&v, tree, "tenants", explain_totals(&v));
    if (origin->round_count > 0) {
        json_t *e = explain_evaluation(&v, kedgei_round_at(origin->job, origin->round_count - 1)->number,
                                       origin->group);
        if (e) {
            set(&v, tree, "evaluation", e);
        }
    }
    kedge_mem_free(v.sites);
    return v.nomem ? KEDGE_E_NOMEM : KEDGE_OK;
}
