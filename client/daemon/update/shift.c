/* Whether the data of a job have moved since the site got its group. Pure; the tests themselves are in
 * grouping/shift.h.
 *
 * What is compared with is what the trainer told at the site's last pre-training, as that is what the group
 * was chosen by. A trainer that tells no labels is never said to have shifted by them: it is better to miss a
 * shift than to send a site from group to group for want of knowledge. */
#include "client/daemon/update/shift.h"

#include <string.h>

#include "grouping/shift.h"

static uint64_t samples_of(const struct kedge_labels *labels)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < labels->classes; i++) {
        sum += labels->counts[i];
    }
    return sum;
}

static uint32_t find(const struct kedge_groupeds *g, const struct kedge_id *job)
{
    uint32_t i = 0;
    while (i < g->count && !kedge_id_eq(&g->items[i].job, job)) {
        i++;
    }
    return i;
}

/* The number of samples is that of the first note of a job: the published test on counts measures all later
 * ones against it (grouping/shift.h). */
void kedge_grouped_note(struct kedge_groupeds *g, const struct kedge_id *job, uint32_t round,
                        const struct kedge_labels *labels)
{
    uint32_t at = find(g, job);
    uint64_t samples = at < g->count ? g->items[at].samples : samples_of(labels);
    bool told_blind = at < g->count && g->items[at].told_blind;
    if (at == KEDGE_GROUPED_MAX) {
        at = 0;
    }
    if (at < g->count) { /* the newest stands last */
        g->count--;
        memmove(g->items + at, g->items + at + 1, (g->count - at) * sizeof g->items[0]);
    }
    g->items[g->count++] = (struct kedge_grouped){
        .job = *job, .round = round, .samples = samples, .labels = *labels, .told_blind = told_blind};
}

bool kedge_grouped_shifted(const struct kedge_groupeds *g, const struct kedge_id *job,
                           enum kedge_shift_test test, uint32_t pause, uint32_t round,
                           const struct kedge_labels *now)
{
    uint32_t at = find(g, job);
    if (at == g->count) {
        return false;
    }
    const struct kedge_grouped *then = &g->items[at];
    /* counts behind the classes of each are 0 */
    uint32_t classes = now->classes > then->labels.classes ? now->classes : then->labels.classes;
    bool known = now->classes > 0 && then->labels.classes > 0, shifted = false;
    switch (test) {
    case KEDGE_SHIFT_TEST_NONE:
        return false;
    case KEDGE_SHIFT_TEST_LABELS:
        return known && kedge_shift_labels(then->labels.counts, now->counts, classes) > KEDGE_SHIFT_LABELS;
    case KEDGE_SHIFT_TEST_COUNTS:
        return known
               && kedge_shift_counts(then->labels.counts, now->counts, classes, then->samples, &shifted)
                      == KEDGE_OK
               && shifted;
    case KEDGE_SHIFT_TEST_LOSS:
        return false;
    case KEDGE_SHIFT_TEST_UPDATE:
        break;
    }
    return round >= then->round && round - then->round >= pause;
}

static bool has_error(uint64_t samples, double deviation)
{
    return samples >= 2 && deviation >= 0; /* a NaN has none */
}

bool kedge_grouped_is_blind(struct kedge_groupeds *g, const struct kedge_id *job, uint64_t samples,
                            double deviation)
{
    uint32_t at = find(g, job);
    if (at == g->count || has_error(samples, deviation) || g->items[at].told_blind) {
        return false;
    }
    g->items[at].told_blind = true;
    return true;
}

/* The loss of the base is told once a round and rises and falls with the model, so it is compared with the
 * last one and not with that of the pre-training; that last one is replaced unless it shows a shift, for a
 * loss that has risen must not become the new normal before the site has looked for another group. At least
 * two samples are needed for a deviation. */
bool kedge_grouped_lost(struct kedge_groupeds *g, const struct kedge_id *job, uint32_t pause, uint32_t round,
                        uint64_t samples, double loss, double deviation)
{
    uint32_t at = find(g, job);
    if (at == g->count || !has_error(samples, deviation)) {
        return false;
    }
    struct kedge_grouped *then = &g->items[at];
    const double square = deviation * deviation / (double)samples;
    const bool is_time = round >= then->round && round - then->round >= pause;
    if (is_time && then->has_loss && kedge_shift_loss(then->loss, then->loss_square, loss, square)) {
        return true; /* what is remembered stays until the site has pre-trained */
    }
    then->has_loss = true;
    then->loss = loss;
    then->loss_square = square;
    return false;
}
