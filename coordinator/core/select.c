/* Selection of sites: uniform without replacement, in rounds that make groups tenant by tenant;
 * re-derivable by anyone who knows seed, round and candidates.
 *
 * The draw is the beginning of a Fisher-Yates shuffle over the candidates' ranks. With few places among
 * many candidates, the array that it shuffles is not made: only places that it has touched are kept, in a
 * hash table, and the result is the same to the bit. */
#include <string.h>

#include "common/base/rng.h"
#include "coordinator/core/coord.h"
#include "grouping/quota.h"

/* What a shuffle has moved among the places from k on: place + 1 → what lies there now; free: 0. */
struct moved {
    uint32_t mask;
    uint32_t *places, *items;
};

/* An open-addressed table, at most half full, with Knuth's multiplicative hash. A place that was
 * not moved yet holds its own number. */
static uint32_t *find(const struct moved *m, uint32_t place)
{
    uint32_t at = place * UINT32_C(2654435761) & m->mask;
    while (m->places[at] != 0 && m->places[at] != place + 1) {
        at = (at + 1) & m->mask;
    }
    if (m->places[at] == 0) {
        m->places[at] = place + 1;
        m->items[at] = place;
    }
    return &m->items[at];
}

/* The first k items of kedge_rng_sample over 0 … count − 1, without making the others. */
static void pick_few(struct kedge_rng *rng, uint32_t count, uint32_t k, const struct moved *m, uint32_t *ret)
{
    for (uint32_t i = 0; i < k; i++) {
        ret[i] = i;
    }
    memset(m->places, 0, ((size_t)m->mask + 1) * sizeof *m->places);
    for (uint32_t i = 0; i < k; i++) {
        uint32_t at = i + (uint32_t)kedge_rng_below(rng, count - i);
        uint32_t *other = at < k ? &ret[at] : find(m, at);
        uint32_t item = ret[i];
        ret[i] = *other;
        *other = item;
    }
}

/* The table is used where it fits into the scratch memory. Both ways draw the same numbers from the
 * stream, so the choice between them cannot be seen from outside. */
void kedge_coord_pick(uint64_t seed, uint32_t round, uint32_t count, uint32_t k, uint32_t *scratch,
                      uint32_t *ret_picks)
{
    KEDGE_ASSERT(k <= count);
    struct kedge_rng rng;
    kedge_rng_init(&rng, seed, KEDGE_RNG_SELECT, round, 0);
    uint32_t size = 4;
    while (size < 2 * (uint64_t)k && size < count) {
        size *= 2;
    }
    if (2 * (uint64_t)size <= count) {
        pick_few(&rng, count, k, &(struct moved){size - 1, scratch, scratch + size}, ret_picks);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        scratch[i] = i;
    }
    kedge_rng_sample(&rng, scratch, count, k);
    memcpy(ret_picks, scratch, k * sizeof *ret_picks);
}

void kedge_coord_select(uint64_t seed, uint32_t round, uint32_t count, uint32_t k, uint32_t *scratch,
                        bool *ret_selected)
{
    bool all = k == 0 || k >= count;
    for (uint32_t i = 0; i < count; i++) {
        scratch[i] = i;
        ret_selected[i] = all;
    }
    if (all) {
        return;
    }
    struct kedge_rng rng;
    kedge_rng_init(&rng, seed, KEDGE_RNG_SELECT, round, 0);
    kedge_rng_sample(&rng, scratch, count, k);
    for (uint32_t i = 0; i < k; i++) {
        KEDGE_ASSERT(!ret_selected[scratch[i]]);
        ret_selected[scratch[i]] = true;
    }
}

uint32_t kedge_coord_pretrain_wanted(uint32_t pretrain_sites, uint32_t count)
{
    uint32_t most = count < KEDGE_PRETRAIN_SITES_MAX ? count : KEDGE_PRETRAIN_SITES_MAX;
    return pretrain_sites == 0 || pretrain_sites > most ? most : pretrain_sites;
}

/* Tenants are put into a random order first: where places do not divide evenly, chance and not the
 * name decides which tenants get one more. */
void kedge_coord_pick_by_quota(uint64_t seed, uint32_t round, const uint32_t *available, uint32_t tenants,
                               uint32_t k, uint32_t *scratch, uint32_t *ret_picks)
{
    struct kedge_rng rng;
    uint32_t order[KEDGE_JOB_TENANTS_MAX], share[KEDGE_JOB_TENANTS_MAX] = {0}, first = 0, n = 0;
    uint64_t room[KEDGE_JOB_TENANTS_MAX], take[KEDGE_JOB_TENANTS_MAX];
    KEDGE_ASSERT(tenants >= 1 && tenants <= KEDGE_JOB_TENANTS_MAX);
    kedge_rng_init(&rng, seed, KEDGE_RNG_SELECT, round, 0);
    for (uint32_t t = 0; t < tenants; t++) {
        order[t] = t;
    }
    kedge_rng_sample(&rng, order, tenants, tenants); /* who gets the places that do not divide */
    for (uint32_t t = 0; t < tenants; t++) {
        room[t] = available[order[t]];
    }
    int err = kedge_quota(room, tenants, k, take);
    KEDGE_ASSERT(!err);
    for (uint32_t t = 0; t < tenants; t++) {
        share[order[t]] = (uint32_t)take[t];
    }
    for (uint32_t t = 0; t < tenants; t++) {
        for (uint32_t i = 0; i < available[t]; i++) {
            scratch[i] = first + i;
        }
        kedge_rng_sample(&rng, scratch, available[t], share[t]);
        memcpy(ret_picks + n, scratch, share[t] * sizeof *ret_picks);
        n += share[t];
        first += available[t];
    }
    KEDGE_ASSERT(n == k);
}

void kedge_coord_select_by_quota(uint64_t seed, uint32_t round, const uint32_t *tenant, uint32_t count,
                                 uint32_t pretrain_sites, uint32_t *scratch, bool *ret_selected)
{
    uint32_t available[KEDGE_JOB_TENANTS_MAX], tenants = 0;
    uint32_t wanted = kedge_coord_pretrain_wanted(pretrain_sites, count);
    for (uint32_t i = 0; i < count; i++) {
        ret_selected[i] = wanted == count;
        if (i == 0 || tenant[i] != tenant[i - 1]) {
            KEDGE_ASSERT(tenants < KEDGE_JOB_TENANTS_MAX);
            available[tenants++] = 0;
        }
        available[tenants - 1]++;
    }
    if (wanted == count) {
        return;
    }
    kedge_coord_pick_by_quota(seed, round, available, tenants, wanted, scratch, scratch + count);
    for (uint32_t i = 0; i < wanted; i++) {
        KEDGE_ASSERT(!ret_selected[scratch[count + i]]);
        ret_selected[scratch[count + i]] = true;
    }
}
