/* Selection that spares batteries: by weights, with turns that forget nobody; re-derivable by anyone who
 * knows seed, round, candidates and weights.
 *
 * Weights alone would ask a device with a low battery so seldom that its data hardly count. So an eighth
 * of the places goes round among all candidates by rank and round number, without chance, and only the
 * rest is drawn. There are three weights, so a draw picks a class by its total weight and then a candidate
 * within it by position: no sums over all candidates for each draw. All is whole numbers, so that every
 * machine draws the same. */

#include "common/base/rng.h"
#include "coordinator/core/core.h"

enum { CLASSES = 3, TURNS = 8 }; /* one place in TURNS goes round */
static const uint8_t weights_of[CLASSES] = {1, 4, 8};

uint8_t kedge_coord_charge_weight(enum kedge_charge charge)
{
    return weights_of[charge == KEDGE_CHARGE_MAINS ? 2 : charge == KEDGE_CHARGE_LOW ? 0 : 1];
}

bool kedge_coord_is_charge_weight(uint64_t weight)
{
    return weight == weights_of[0] || weight == weights_of[1] || weight == weights_of[2];
}

static uint32_t class_of(uint8_t weight)
{
    return weight >= weights_of[2] ? 2 : weight >= weights_of[1] ? 1 : 0;
}

/* Candidates that are left, class by class. */
struct classes {
    uint32_t first[CLASSES], count[CLASSES];
};

/* All but `turns` of them from rank `from` on, around the end. */
static struct classes sort(const uint8_t *weights, uint32_t count, uint32_t from, uint32_t turns,
                           uint32_t *ret)
{
    struct classes c = {.count = {0}};
    uint32_t at[CLASSES];
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < CLASSES; k++) {
            c.first[k] = at[k] = k == 0 ? 0 : c.first[k - 1] + c.count[k - 1];
        }
        for (uint32_t i = 0; i < count; i++) {
            uint32_t k = class_of(weights[i]);
            bool goes_round = ((uint64_t)i + count - from) % count < turns;
            if (!goes_round && pass == 0) {
                c.count[k]++;
            } else if (!goes_round) {
                ret[at[k]++] = i;
            }
        }
    }
    return c;
}

static uint32_t draw(struct kedge_rng *rng, struct classes *c, uint32_t *items)
{
    uint64_t total = 0;
    for (uint32_t k = 0; k < CLASSES; k++) {
        total += (uint64_t)weights_of[k] * c->count[k];
    }
    uint64_t at = kedge_rng_below(rng, total);
    uint32_t k = 0;
    for (; k + 1 < CLASSES && at >= (uint64_t)weights_of[k] * c->count[k]; k++) {
        at -= (uint64_t)weights_of[k] * c->count[k];
    }
    uint32_t *drawn = &items[c->first[k] + (uint32_t)(at / weights_of[k])], item = *drawn;
    *drawn = items[c->first[k] + --c->count[k]];
    return item;
}

void kedge_coord_pick_charged(uint64_t seed, uint32_t round, const uint8_t *weights, uint32_t count,
                              uint32_t k, uint32_t *scratch, uint32_t *ret_picks)
{
    KEDGE_ASSERT(count >= 1 && k >= 1 && k <= count);
    struct kedge_rng rng;
    uint32_t turns = MUTANT(MUTANT_NO_TURNS) ? 0 : (k + TURNS - 1) / TURNS;
    uint32_t from = (uint32_t)((uint64_t)round * turns % count);
    kedge_rng_init(&rng, seed, KEDGE_RNG_SELECT, round, 0);
    struct classes left = sort(weights, count, from, turns, scratch);
    for (uint32_t i = 0; i < k; i++) {
        ret_picks[i] = i < turns ? (uint32_t)(((uint64_t)from + i) % count) : draw(&rng, &left, scratch);
    }
}

void kedge_coord_select_charged(uint64_t seed, uint32_t round, const uint8_t *weights, uint32_t count,
                                uint32_t k, uint32_t *scratch, bool *ret_selected)
{
    bool all = k == 0 || k >= count;
    for (uint32_t i = 0; i < count; i++) {
        ret_selected[i] = all;
    }
    if (all) {
        return;
    }
    kedge_coord_pick_charged(seed, round, weights, count, k, scratch, scratch + count);
    for (uint32_t i = 0; i < k; i++) {
        KEDGE_ASSERT(!ret_selected[scratch[count + i]]);
        ret_selected[scratch[count + i]] = true;
    }
}
