/* What a site trained last, in jobs in which that says more of it than group-assigned statements do: where
 * sites choose, their group. And the models that groups begin with. */
#include <string.h>

#include "chain/audit/record.h"
#include "common/base/mem.h"

static int compare_rows(const void *pa, const void *pb)
{
    const struct kedgei_trained *a = pa, *b = pb;
    const struct kedge_st_update *u = a->fact->body, *v = b->fact->body;
    int c = (a->tenant > b->tenant) - (a->tenant < b->tenant);
    c = c ? c : kedge_id_cmp(&u->job, &v->job);
    c = c ? c : kedge_id_cmp(&u->site, &v->site);
    return c ? c : (a->fact->index > b->fact->index) - (a->fact->index < b->fact->index);
}

static bool is_wanted(const struct kedgei_audit *a, const struct kedgei_fact *fact)
{
    const struct kedge_st_update *u = fact->body;
    if (fact->kind != KEDGE_ST_UPDATE || u->update_kind != KEDGE_TRAIN_TRAIN) {
        return false;
    }
    const struct kedgei_job *job = kedgei_job_find(a, &u->job);
    return job && job->usable && kedge_job_spec_has_model_per_group_at_start(&job->spec);
}

/* Two passes, to count and to fill, so that the table has its size from the start; then sorted by tenant,
 * job, site and index, which makes "the last one before entry N" a search by halves. */
int kedgei_trained_collect(struct kedgei_audit *a)
{
    for (int pass = 0; pass < 2; pass++) {
        size_t count = 0;
        for (uint32_t t = 0; t < a->tenant_count; t++) {
            const struct kedgei_log *log = &a->tenants[t];
            for (uint64_t i = 0; i < log->count; i++) {
                const struct kedgei_fact *fact = kedgei_fact_at(log, i);
                if (is_wanted(a, fact)) {
                    if (pass == 1) {
                        a->trained[count] = (struct kedgei_trained){t, fact};
                    }
                    count++;
                }
            }
        }
        if (pass == 0) {
            a->trained = kedgei_scratch_new(&a->scratch, count + 1, sizeof *a->trained);
            if (!a->trained) {
                return kedgei_scratch_error(&a->scratch, &a->diag);
            }
        }
        a->trained_count = count;
    }
    return kedgei_scratch_sort(&a->scratch, a->trained, a->trained_count, sizeof *a->trained, compare_rows);
}

/* As kedgei_fact_at. */
static const struct kedgei_trained *trained_at(const struct kedgei_audit *a, size_t i)
{
    kedgei_scratch_evict_if_large(a->main.scratch);
    return &a->trained[i];
}

const struct kedgei_fact *kedgei_trained_before(const struct kedgei_audit *a, const struct kedgei_log *log,
                                                const struct kedge_id *job, const struct kedge_id *site,
                                                uint64_t index)
{
    struct kedge_st_update key = {.job = *job, .site = *site};
    struct kedgei_fact sought = {.index = index, .body = &key};
    const struct kedgei_trained row = {(uint32_t)(log - a->tenants), &sought};
    size_t lo = 0, hi = a->trained_count; /* the first that is not below the key */
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (compare_rows(trained_at(a, mid), &row) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo == 0) {
        return NULL;
    }
    const struct kedgei_trained *last = trained_at(a, lo - 1);
    const struct kedge_st_update *u = last->fact->body;
    bool is_own = last->tenant == row.tenant && kedge_id_eq(&u->job, job) && kedge_id_eq(&u->site, site);
    return is_own ? last->fact : NULL;
}

static bool chose(const struct kedgei_fact *trained, uint32_t group)
{
    return trained && ((const struct kedge_st_update *)trained->body)->group == group;
}

/* A site may choose anew while its evaluation is under way: its choice at the close counts as well as its
 * newest. */
bool kedgei_choice_matches(const struct kedgei_audit *a, const struct kedgei_round *round,
                           const struct kedgei_log *log, const struct kedge_st_evaluation *e, uint64_t index)
{
    uint64_t closed = round && round->step ? kedgei_anchored_before(log, round->step->index) : index;
    return chose(kedgei_trained_before(a, log, &e->job, &e->site, index), e->group)
           || chose(kedgei_trained_before(a, log, &e->job, &e->site, closed), e->group);
}

/* Groups that have a model from the start are numbered without gaps, so that a site's choice always means
 * one of them. */
void kedgei_check_first_models(struct kedgei_audit *a, const struct kedgei_job *job)
{
    const struct kedge_st_job_opened *o = job->opened->body;
    uint32_t expected = kedge_job_spec_has_model_per_group_at_start(&job->spec) ? job->spec.groups - 1 : 0;
    bool fits = o->first_model_count == expected;
    for (uint32_t i = 0; i < o->first_model_count; i++) {
        fits = fits && o->first_models[i].group == i + 1;
    }
    if (!fits) {
        kedgei_error(
            &a->findings, KEDGE_AUDIT_JOB, &a->main, job->opened->index,
            "job \"%s\": states first models of %u groups besides the initial model, expected %u, from 1 on",
            job->id.s, o->first_model_count, expected);
    }
}
