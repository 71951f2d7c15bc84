/* One round, and what it costs in virtual time, bytes and joules. */
#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/try.h"
#include "sim/learn/close.h"
#include "sim/learn/flight.h"
#include "sim/learn/rand_index.h"

uint32_t kedgei_learn_first_rounds(const struct kedgei_learn *l)
{
    const bool grouped = kedgei_learn_pretrains(l) || kedge_job_spec_has_model_per_group_at_start(&l->job);
    uint32_t k = kedge_learn_spec_each_round(l->spec, l->n);
    return grouped && k > 0 ? (l->n + k - 1) / k : 0;
}

/* ---- who takes part ---- */

static bool is_available(const struct kedgei_learn *l, uint32_t round, uint32_t site)
{
    double share = l->spec->devices[l->sites[site].device].available;
    struct kedge_rng rng;
    if (!kedgei_learn_is_there(l, site)) {
        return false;
    }
    if (share >= 1) {
        return true;
    }
    kedge_rng_init(&rng, l->spec->job.seed, KEDGE_RNG_LEARN,
                   kedgei_learn_stream(KEDGEI_LEARN_STREAM_AVAILABLE, round), site);
    return kedge_rng_unit(&rng) < share;
}

/* As jobs draw: of all that can be asked, in the order of their names. The root is asked in every round. */
static int select_sites(struct kedgei_learn *l, uint32_t round)
{
    const uint32_t wanted = kedge_learn_spec_each_round(l->spec, l->n);
    uint32_t *there = kedge_mem_new(2 * (size_t)l->n + 1, sizeof *there), *picks = l->order, count = 0;
    if (!there) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u sites", l->n);
    }
    const double from = l->has_trace ? kedgei_learn_somebody_s(l) : l->line.virtual_s;
    l->line.virtual_s = isfinite(from) ? from : l->line.virtual_s; /* where nobody comes, rounds stay empty */
    for (uint32_t i = 0; i < l->names.sites; i++) {
        const uint32_t site = l->names.order[i];
        if (site < l->n && is_available(l, round, site)) {
            there[count++] = site;
        }
    }
    l->selected_count = wanted < count ? wanted : count;
    kedge_coord_pick(l->job.seed, kedgei_learn_job_round(round), count, l->selected_count, there + l->n,
                     picks);
    for (uint32_t i = 0; i < l->selected_count; i++) {
        l->selected[i] = there[picks[i]];
    }
    kedge_mem_free(there);
    return KEDGE_OK;
}

/* ---- what it costs ---- */

bool kedgei_learn_fails(const struct kedgei_learn *l, uint64_t round, uint32_t site)
{
    struct kedge_rng rng;
    if (l->spec->fail <= 0) {
        return false;
    }
    kedge_rng_init(&rng, l->spec->job.seed, KEDGE_RNG_LEARN,
                   kedgei_learn_stream(KEDGEI_LEARN_STREAM_FAIL, (uint32_t)round), site);
    return kedge_rng_unit(&rng) < l->spec->fail;
}

/* The server trains on its root data, from every model that a selected site trains from. */
static int plan_root(struct kedgei_learn *l)
{
    bool wanted[KEDGE_LEARN_GROUPS_MAX] = {false};
    for (uint32_t i = 0; i < l->items_count; i++) {
        wanted[l->sites[l->items[i].site].group] = true;
    }
    for (uint32_t j = 0; j < l->groups && l->rule->needs_root; j++) {
        if (wanted[j]) {
            l->items[l->items_count++] =
                (struct kedgei_learn_item){.site = l->n,
                                           .base = kedgei_learn_model(l, j),
                                           .control = l->control,
                                           .round = kedgei_learn_job_round(l->line.round)};
        }
    }
    bool twice = l->spec->job.strategy->local->variate && l->rule->needs_root;
    return twice ? kedgei_learn_control(l, l->n) : KEDGE_OK;
}

/* The selected sites as items; a round lasts as long as its slowest site, or until the deadline. */
static int plan_training(struct kedgei_learn *l, uint32_t round)
{
    const struct kedge_learn_spec *spec = l->spec;
    double longest = 0;
    int err = kedgei_learn_items_reserve(l, l->selected_count + l->groups);
    l->items_count = 0;
    bool alone = spec->job.strategy->local->sends_nothing, twice = spec->job.strategy->local->variate != NULL;
    for (uint32_t i = 0; i < l->selected_count && !err; i++) {
        uint32_t site = l->selected[i], group = l->sites[site].group;
        if (group == KEDGE_ROUND_NONE) {
            continue; /* its pre-training failed */
        }
        double seconds = kedgei_learn_seconds(l, site);
        bool late = seconds > spec->job.round_timeout_s,
             lost = kedgei_learn_fails(l, round, site) || !kedgei_learn_stays(l, site, seconds);
        if (twice) {
            err = kedgei_learn_control(l, site);
        }
        l->items[l->items_count++] = (struct kedgei_learn_item){.site = site,
                                                                .base = kedgei_learn_model(l, group),
                                                                .control = l->control,
                                                                .round = kedgei_learn_job_round(round),
                                                                .loss_wanted = spec->job.strategy->needs_loss,
                                                                .failed = late || lost};
        /* A lost site is waited for as long as a round may last. */
        seconds = late || lost ? spec->job.round_timeout_s : seconds;
        longest = seconds > longest ? seconds : longest;
        l->line.joules += kedgei_learn_joules(l, site);
        if (!alone) {
            kedgei_learn_tell_bytes(l, twice ? 2 : 1, late || lost ? 0 : 1);
            l->line.bytes_up += twice && !late && !lost ? l->d * 4 : 0;
        }
    }
    l->line.virtual_s += longest;
    return err ? err : plan_root(l);
}

/* ---- the line ---- */

static uint64_t digest_of(uint64_t h, const float *model, uint64_t d)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    for (uint64_t i = 0; i < d; i++) {
        uint32_t bits;
        memcpy(&bits, &model[i], sizeof bits);
        h = (h ^ bits) * odd;
        h ^= h >> 29;
    }
    return h;
}

static void tell_training(struct kedgei_learn *l)
{
    double loss = 0, moved = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->items_count; i++) {
        const struct kedgei_learn_result *r = kedgei_learn_result(l, i);
        if (!r->err && l->items[i].site != l->n) {
            loss += r->loss;
            moved += r->moved;
            count++;
        }
    }
    l->line.loss = count ? loss / count : (double)NAN;
    l->line.discrepancy = count ? moved / count : (double)NAN;
}

void kedgei_learn_tell_groups(struct kedgei_learn *l)
{
    struct kedge_learn_round *line = &l->line;
    uint32_t *truth = l->order, *found = l->selected, count = 0;
    memset(line->members, 0, sizeof line->members);
    line->groups = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->sites[i].group != KEDGE_ROUND_NONE) {
            line->members[l->sites[i].group]++;
            truth[count] = l->sites[i].truth;
            found[count++] = l->sites[i].group;
        }
    }
    for (uint32_t j = 0; j < KEDGE_LEARN_GROUPS_MAX; j++) {
        line->groups += line->members[j] > 0;
    }
    line->rand_index = l->has_truth && count > 1 ? kedge_rand_adjusted(truth, found, count) : (double)NAN;
    for (uint32_t j = 0; j < l->groups; j++) {
        line->digest = digest_of(line->digest, kedgei_learn_model(l, j), l->d);
    }
}

static int finish(struct kedgei_learn *l, uint32_t round)
{
    KEDGE_TRY(kedgei_learn_evaluate(l, round));
    kedgei_learn_tell_groups(l);
    return KEDGE_OK;
}

/* What the sites of this round do until each has trained. */
static int train_round(struct kedgei_learn *l, uint32_t round)
{
    if (l->spec->job.strategy->asynchronous) {
        KEDGE_TRY(kedgei_learn_fly(l, round));
    } else {
        KEDGE_TRY(select_sites(l, round));
        KEDGE_TRY(kedgei_learn_groups_before(l));
        KEDGE_TRY(plan_training(l, round));
    }
    return kedgei_learn_train(l);
}

/* One round of the engine: data shift, groups or training, what sites do with their updates (compression,
 * attacks, models of their own), the close. A pre-training round has none of the middle. */
int kedgei_learn_round(struct kedgei_learn *l, uint32_t round)
{
    l->line.round = round;
    KEDGE_TRY(kedgei_learn_shift(l, round));
    if (kedgei_learn_kind(l, round) == KEDGE_TASK_PRETRAIN) {
        KEDGE_TRY(kedgei_learn_make_groups(l, kedgei_learn_job_round(round)));
        return finish(l, round);
    }
    KEDGE_TRY(train_round(l, round));
    tell_training(l);
    kedgei_learn_look_for_shifts(l, kedgei_learn_job_round(round));
    KEDGE_TRY(kedgei_learn_compress(l));
    KEDGE_TRY(kedgei_learn_attack(l));
    KEDGE_TRY(kedgei_learn_keep_own(l));
    if (!l->job.strategy->local->sends_nothing) {
        KEDGE_TRY(kedgei_learn_close(l, KEDGE_TASK_TRAIN, kedgei_learn_job_round(round)));
    }
    return finish(l, round);
}
