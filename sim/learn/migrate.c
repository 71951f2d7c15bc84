/* Sites whose data are no longer those that they were grouped by look for their group again, as in jobs
 * (client/daemon/update/shift.h, coordinator/core/migrate.c): a site looks when it has trained, and where it
 * evaluates its group's model; who has found a shift pre-trains in the next round of training, before that
 * begins. */
#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/learn/engine.h"

int kedgei_learn_grouped_init(struct kedgei_learn *l)
{
    const bool moves = l->job.groups > 1 && l->job.shift != KEDGE_SHIFT_TEST_NONE;
    l->grouped = moves ? kedge_mem_new(l->names.sites, sizeof *l->grouped) : NULL;
    return !moves || l->grouped
               ? KEDGE_OK
               : kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for the labels of %u sites", l->n);
}

static struct kedge_labels labels_of(const struct kedgei_learn *l, uint32_t site)
{
    const struct kedgei_learn_site *s = &l->sites[site];
    struct kedge_labels ret = {.classes = l->pool.classes <= KEDGE_LABELS_MAX ? l->pool.classes : 0};
    for (uint32_t i = 0; i < s->train_count && ret.classes > 0; i++) {
        ret.counts[l->pool.labels[s->train[i]]]++;
    }
    return ret;
}

void kedgei_learn_note_labels(struct kedgei_learn *l, uint32_t site, uint32_t job_round)
{
    if (l->grouped) {
        const struct kedge_labels labels = labels_of(l, site);
        kedge_grouped_note(&l->grouped[site], &l->job.name, job_round, &labels);
        l->sites[site].shifted = false;
    }
}

bool kedgei_learn_has_shifted(const struct kedgei_learn *l, uint32_t site, uint32_t job_round)
{
    if (!l->grouped) {
        return false;
    }
    const struct kedge_labels labels = labels_of(l, site);
    return kedge_grouped_shifted(&l->grouped[site], &l->job.name, l->job.shift, l->job.migration_pause,
                                 job_round, &labels);
}

static void look(struct kedgei_learn *l, uint32_t site, uint32_t job_round)
{
    struct kedgei_learn_site *s = &l->sites[site];
    if (!s->shifted && site < l->n && s->group != KEDGE_ROUND_NONE
        && kedgei_learn_has_shifted(l, site, job_round)) {
        s->shifted = true;
        l->line.detections++;
    }
}

void kedgei_learn_look_for_shifts(struct kedgei_learn *l, uint32_t job_round)
{
    for (uint32_t i = 0; i < l->items_count && l->grouped; i++) {
        if (!kedgei_learn_result(l, i)->err) {
            look(l, l->items[i].site, job_round);
        }
    }
}

/* Who is not asked to train evaluates the model of the round before. */
static void look_at_evaluations(struct kedgei_learn *l, uint32_t job_round)
{
    const uint32_t every = l->job.evaluate_every, before = job_round - 1;
    bool *trains = kedge_mem_new(l->n, sizeof *trains);
    for (uint32_t i = 0; i < l->selected_count && trains; i++) {
        trains[l->selected[i]] = true;
    }
    for (uint32_t i = 0; i < l->n && trains && every > 0 && before > 0 && before % every == 0; i++) {
        if (!trains[i]) {
            look(l, i, job_round);
        }
    }
    kedge_mem_free(trains);
}

int kedgei_learn_migrate(struct kedgei_learn *l)
{
    const uint32_t job_round = kedgei_learn_job_round(l->line.round);
    if (!l->grouped) {
        return KEDGE_OK;
    }
    look_at_evaluations(l, job_round);
    KEDGE_TRY(kedgei_learn_items_reserve(l, l->n));
    l->items_count = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct kedgei_learn_site *s = &l->sites[i];
        if (s->shifted && s->group != KEDGE_ROUND_NONE && job_round - s->since >= l->job.migration_pause) {
            kedgei_learn_add_pretraining(l, i, job_round);
        }
    }
    return kedgei_learn_take_in(l, job_round);
}
