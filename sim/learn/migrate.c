/* Sites whose data changed look for their group again, clustering.md §2.6 and §8. Labels are known to the
 * site at no cost, so all sites look in every round; whether the direction of a fresh pre-training still is
 * the old one, a site can tell when it is asked to train, at the cost of that pre-training. */
#include <math.h>

#include "common/base/mem.h"
#include "grouping/shift.h"
#include "sim/learn/engine.h"

static bool labels_shifted(const struct kedgei_learn *l, uint32_t site, uint64_t *now)
{
    const struct kedgei_learn_site *s = &l->sites[site];
    bool shifted = false;
    if (s->group == KEDGE_GROUP_NONE || l->spec->job.shift == KEDGE_SHIFT_TEST_UPDATE) {
        return false;
    }
    kedgei_learn_count_labels(l, site, now);
    if (l->spec->job.shift == KEDGE_SHIFT_TEST_COUNTS) {
        int err = kedge_shift_counts(s->counts, now, l->pool.classes, s->first_count, &shifted);
        return !err && shifted;
    }
    return kedge_shift_labels(s->counts, now, l->pool.classes) > l->spec->job.options.shift;
}

/* l->asked = the sites whose labels shifted. */
static void ask_shifted(struct kedgei_learn *l)
{
    uint64_t now[KEDGEI_LEARN_CLASSES_MAX];
    l->asked_count = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        l->sites[i].shifted = labels_shifted(l, i, now);
        if (l->sites[i].shifted) {
            l->asked[l->asked_count++] = i;
        }
    }
}

/* Pre-trainings of the sites asked, as items. */
static int pretrain_asked(struct kedgei_learn *l)
{
    int err = kedgei_learn_items_reserve(l, l->asked_count);
    l->items_count = 0;
    for (uint32_t i = 0; i < l->asked_count && !err; i++) {
        kedgei_learn_add_pretraining(l, l->asked[i]);
    }
    err = err ? err : kedgei_learn_train(l);
    kedgei_learn_attack_pretraining(l);
    return err;
}

double kedgei_learn_cosine(const struct kedgei_learn *l, const int32_t *a, const int32_t *b)
{
    const int32_t *const one[1] = {b};
    uint32_t group;
    double cosine;
    return kedge_nearest_group(a, one, 1, l->d, &group, &cosine) ? (double)NAN : cosine;
}

int kedgei_learn_repeat(struct kedgei_learn *l)
{
    if (l->spec->job.shift != KEDGE_SHIFT_TEST_UPDATE) {
        return KEDGE_OK;
    }
    int err = pretrain_asked(l);
    for (uint32_t i = 0; i < l->items_count && !err; i++) {
        struct kedgei_learn_site *s = &l->sites[l->items[i].site];
        bool ok = !kedgei_learn_result(l, i)->err && s->pretraining;
        s->repeat = ok ? kedgei_learn_cosine(l, s->pretraining, kedgei_learn_vector(l, i, 0)) : (double)NAN;
    }
    return err;
}

/* Of the sites selected, those whose direction changed: their fresh updates give them their groups. */
static int look_at_updates(struct kedgei_learn *l)
{
    l->asked_count = 0;
    for (uint32_t i = 0; i < l->selected_count; i++) {
        const struct kedgei_learn_site *s = &l->sites[l->selected[i]];
        if (s->group != KEDGE_GROUP_NONE && s->pretraining && !isnan(s->repeat) && !s->shifted) {
            l->asked[l->asked_count++] = l->selected[i];
        }
    }
    int err = pretrain_asked(l);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->items_count && !err; i++) {
        uint32_t site = l->items[i].site;
        double cosine = kedgei_learn_result(l, i)->err ? 1
                                                       : kedgei_learn_cosine(l, l->sites[site].pretraining,
                                                                             kedgei_learn_vector(l, i, 0));
        if (kedge_shift_update(cosine, l->sites[site].repeat)) {
            l->line.detections++;
            err = kedgei_learn_assign(l, site, kedgei_learn_vector(l, i, 0));
            l->asked[kept++] = site;
        }
    }
    l->asked_count = kept;
    return err ? err : kedgei_learn_repeat(l);
}

int kedgei_learn_migrate(struct kedgei_learn *l)
{
    enum kedge_shift_test d = l->spec->job.shift;
    if (d == KEDGE_SHIFT_TEST_NONE) {
        return KEDGE_OK;
    }
    ask_shifted(l);
    l->line.detections += l->asked_count;
    int err = l->asked_count ? pretrain_asked(l) : KEDGE_OK;
    for (uint32_t i = 0; i < l->items_count && l->asked_count && !err; i++) {
        if (!kedgei_learn_result(l, i)->err) {
            err = kedgei_learn_assign(l, l->items[i].site, kedgei_learn_vector(l, i, 0));
        }
    }
    err = err || !l->asked_count ? err : kedgei_learn_repeat(l);
    return err || d != KEDGE_SHIFT_TEST_UPDATE ? err : look_at_updates(l);
}
