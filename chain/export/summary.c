/* What a report tells people of a job: when it was, who gave what to it, and how good its models were round
 * by round. Everything is summed up while the logs are read, so that nothing is read again for it; memory is
 * bound by the numbers of sites and of points in a picture, however long the job was. */
#include <stdio.h>
#include <string.h>

#include "chain/export/record.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* ---- the main chain ---- */

static int take_opened(struct kedgei_ex_job *job, const struct kedge_st_job_opened *o)
{
    job->parts = kedge_mem_new((size_t)o->tenant_count + 1, sizeof *job->parts);
    KEDGE_TRY_MEM(job->parts);
    job->opened_ms = o->time_ms;
    job->part_count = o->tenant_count;
    for (uint32_t i = 0; i < o->tenant_count; i++) {
        job->parts[i].id = o->tenants[i];
    }
    return KEDGE_OK;
}

static void take_aggregate(struct kedgei_ex_job *job, struct kedgei_ex_round *round,
                           const struct kedge_st_aggregate *a)
{
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        round->used += a->tenants[t].accepted;
        round->refused += a->tenants[t].refused;
        for (uint32_t i = 0; i < job->part_count; i++) {
            struct kedgei_ex_part *part = &job->parts[i];
            if (kedge_hash_eq(&part->id, &a->tenants[t].id)) {
                part->used += a->tenants[t].accepted;
                part->refused += a->tenants[t].refused;
                part->weight += round->pretrain ? 0 : (double)a->tenants[t].weight_sum;
            }
        }
    }
}

int kedgei_ex_job_take(struct kedgei_ex_job *job, const struct kedge_statement *st)
{
    struct kedgei_ex_round *round = job->round_count ? &job->rounds[job->round_count - 1] : NULL;
    if (st->kind == KEDGE_ST_JOB_OPENED) {
        return take_opened(job, &st->u.job_opened);
    }
    if (st->kind == KEDGE_ST_JOB_CLOSED) {
        job->closed_ms = st->u.job_closed.time_ms;
        job->outcome = st->u.job_closed.outcome;
        snprintf(job->reason, sizeof job->reason, "%s", st->u.job_closed.reason);
    } else if (round && st->kind == KEDGE_ST_ROUND_OPENED) {
        round->pretrain = st->u.round_opened.round_kind == KEDGE_TRAIN_PRETRAIN;
        round->opened_ms = st->u.round_opened.time_ms;
    } else if (round && st->kind == KEDGE_ST_AGGREGATE) {
        take_aggregate(job, round, &st->u.aggregate);
    } else if (round && st->kind == KEDGE_ST_STEP) {
        round->closed_ms = st->u.step.time_ms;
    }
    return KEDGE_OK;
}

uint32_t kedgei_ex_job_groups(const struct kedgei_ex_job *job)
{
    uint32_t most = kedge_job_spec_groups_most(&job->spec),
             groups = most > 1 && most <= KEDGE_GROUPS_MAX ? most : 1;
    for (uint32_t g = groups; g < KEDGE_GROUPS_MAX; g++) {
        groups = job->releases[g] != KEDGEI_EX_NONE ? g + 1 : groups;
    }
    return groups;
}

/* ---- sites ---- */

/* The first place in the order at or behind which (tenant, site) stands. */
static size_t place_of(const struct kedgei_ex_job *job, uint32_t tenant, const struct kedge_id *site)
{
    size_t low = 0, high = job->site_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct kedgei_ex_site *s = &job->sites[middle];
        bool before = s->tenant != tenant ? s->tenant < tenant : kedge_id_cmp(&s->id, site) < 0;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

/* Its row, made when it is new; NULL: no memory. */
static struct kedgei_ex_site *site_of(struct kedgei_ex_job *job, uint32_t tenant, const struct kedge_id *site)
{
    size_t at = place_of(job, tenant, site);
    if (at < job->site_count && job->sites[at].tenant == tenant && kedge_id_eq(&job->sites[at].id, site)) {
        return &job->sites[at];
    }
    if (!kedge_mem_grow(&job->sites, &job->site_cap, job->site_count, 16, sizeof *job->sites)) {
        return NULL;
    }
    memmove(&job->sites[at + 1], &job->sites[at], (job->site_count - at) * sizeof *job->sites);
    job->site_count++;
    job->sites[at] = (struct kedgei_ex_site){.tenant = tenant, .id = *site};
    return &job->sites[at];
}

int kedgei_ex_job_used(struct kedgei_ex_job *job, uint32_t tenant, const struct kedge_id *site)
{
    struct kedgei_ex_site *s = site_of(job, tenant, site);
    KEDGE_TRY_MEM(s);
    s->used++;
    return KEDGE_OK;
}

/* ---- how good the models were ---- */

/* Where a round is among the job's points. A picture has a bounded number of them: of a longer job,
 * neighbouring rounds share a point, and their evaluations are added up there. */
static size_t ex_point_of(const struct kedgei_ex_job *job, size_t round)
{
    return job->points < job->round_count ? round * job->points / job->round_count : round;
}

/* Where the round of that number is among the job's; round_count: nowhere. */
static size_t find_round(const struct kedgei_ex_job *job, uint32_t number)
{
    size_t low = 0, high = job->round_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool before = job->rounds[middle].number < number;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low < job->round_count && job->rounds[low].number == number ? low : job->round_count;
}

static void add_evaluation(struct kedgei_ex_metrics *m, const struct kedge_st_evaluation *e)
{
    m->round = e->round > m->round ? e->round : m->round;
    m->sites++;
    m->samples += e->samples;
    m->correct += e->correct;
    m->loss_sum += e->loss * (double)e->samples;
}

static int take_evaluation(struct kedgei_ex_job *job, const struct kedge_st_evaluation *e)
{
    uint32_t groups = kedgei_ex_job_groups(job);
    size_t round = find_round(job, e->round);
    struct kedgei_ex_metrics *last = &job->metrics[e->group];
    if (e->round > last->round || last->samples == 0) {
        *last = (struct kedgei_ex_metrics){.round = e->round};
    }
    if (e->round == last->round) {
        add_evaluation(last, e);
    }
    if (round == job->round_count || e->group >= groups) {
        return KEDGE_OK; /* a copy may lack the round */
    }
    if (!job->evaluated) {
        size_t points = job->round_count < KEDGEI_EX_POINTS_MAX ? job->round_count : KEDGEI_EX_POINTS_MAX;
        job->evaluated = kedge_mem_new(points * groups, sizeof *job->evaluated);
        KEDGE_TRY_MEM(job->evaluated);
        job->points = points;
    }
    add_evaluation(&job->evaluated[ex_point_of(job, round) * groups + e->group], e);
    return KEDGE_OK;
}

/* ---- a tenant's ledger ---- */

static int take_update(struct kedgei_ex_job *job, uint32_t tenant, const struct kedge_st_update *u)
{
    struct kedgei_ex_site *site = site_of(job, tenant, &u->site);
    KEDGE_TRY_MEM(site);
    site->sent++;
    site->samples = u->samples;
    job->joules_known = (job->updates == 0 || job->joules_known) && u->energy_quality != KEDGE_ENERGY_UNKNOWN;
    job->joules_modelled = job->joules_modelled || u->energy_quality == KEDGE_ENERGY_MODELLED;
    job->joules += u->energy_quality != KEDGE_ENERGY_UNKNOWN ? u->energy_joules : 0;
    job->updates++;
    return KEDGE_OK;
}

int kedgei_ex_job_sum(struct kedgei_ex_job *job, uint32_t tenant, const struct kedge_statement *st)
{
    if (st->kind == KEDGE_ST_UPDATE) {
        return take_update(job, tenant, &st->u.update);
    }
    if (st->kind == KEDGE_ST_EVALUATION && st->u.evaluation.group < KEDGE_GROUPS_MAX) {
        return take_evaluation(job, &st->u.evaluation);
    }
    return KEDGE_OK;
}

void kedgei_ex_job_deinit(struct kedgei_ex_job *job)
{
    kedge_mem_free(job->rounds);
    kedge_mem_free(job->parts);
    kedge_mem_free(job->sites);
    kedge_mem_free(job->evaluated);
}
