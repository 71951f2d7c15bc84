/* What happens to the sites' data from round to round (clustering.md §2.8), from a stream of its own over all
 * sites: every strategy meets the same data in the same round. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/try.h"
#include "sim/learn/engine.h"

enum { RELEASES = 4, ROUNDS_PER_RELEASE = 50 };

/* Complete data, and what is known of them, go from one site to the other. */
static void swap_all(struct kedgei_learn_site *a, struct kedgei_learn_site *b)
{
    struct kedgei_learn_site t = *a;
    a->train = b->train, a->test = b->test, a->rows = b->rows;
    a->train_count = b->train_count, a->test_count = b->test_count, a->train_all = b->train_all;
    a->turn = b->turn, a->truth = b->truth;
    b->train = t.train, b->test = t.test, b->rows = t.rows;
    b->train_count = t.train_count, b->test_count = t.test_count, b->train_all = t.train_all;
    b->turn = t.turn, b->truth = t.truth;
}

static uint32_t count_of(const struct kedgei_learn *l, const uint32_t *rows, uint32_t n, uint32_t label)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        count += l->pool.labels[rows[i]] == (int32_t)label;
    }
    return count;
}

/* A random label that `has` has, in both parts, and `lacks` does not; UINT32_MAX: there is none. */
static uint32_t pick_label(const struct kedgei_learn *l, struct kedge_rng *rng,
                           const struct kedgei_learn_site *has, const struct kedgei_learn_site *lacks)
{
    uint32_t fit[KEDGEI_LEARN_CLASSES_MAX], count = 0;
    for (uint32_t k = 0; k < l->pool.classes; k++) {
        if (count_of(l, has->train, has->train_count, k) && count_of(l, has->test, has->test_count, k)
            && !count_of(l, lacks->train, lacks->train_count, k)
            && !count_of(l, lacks->test, lacks->test_count, k)) {
            fit[count++] = k;
        }
    }
    return count ? fit[kedge_rng_below(rng, count)] : UINT32_MAX;
}

/* Appends the rows whose label is (or is not) the given one. */
static uint32_t put_rows(const struct kedgei_learn *l, uint32_t *out, const uint32_t *rows, uint32_t n,
                         uint32_t label, bool is)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if ((l->pool.labels[rows[i]] == (int32_t)label) == is) {
            out[count++] = rows[i];
        }
    }
    return count;
}

/* The lists of a site that gives label a away and gets label b of the other; they stand in new storage. */
static int trade(const struct kedgei_learn *l, const struct kedgei_learn_site *own, uint32_t a,
                 const struct kedgei_learn_site *other, uint32_t b, struct kedgei_learn_site *ret)
{
    size_t most = (size_t)own->train_count + own->test_count + other->train_count + other->test_count;
    uint32_t *rows = kedge_mem_new(most, sizeof *rows), n;
    KEDGE_TRY_MEM(rows);
    *ret = *own;
    ret->rows = ret->train = rows;
    n = put_rows(l, rows, own->train, own->train_count, a, false);
    n += put_rows(l, rows + n, other->train, other->train_count, b, true);
    ret->train_count = ret->train_all = n;
    ret->test = rows + n;
    n = put_rows(l, ret->test, own->test, own->test_count, a, false);
    n += put_rows(l, ret->test + n, other->test, other->test_count, b, true);
    ret->test_count = n;
    return KEDGE_OK;
}

/* A pair without labels to exchange stays as it is, as do its other pairs' turns. */
static int swap_part(struct kedgei_learn *l, struct kedge_rng *rng, struct kedgei_learn_site *a,
                     struct kedgei_learn_site *b)
{
    uint32_t give = pick_label(l, rng, a, b), get = pick_label(l, rng, b, a);
    struct kedgei_learn_site x, y = {0};
    if (give == UINT32_MAX || get == UINT32_MAX) {
        return KEDGE_OK;
    }
    KEDGE_TRY(trade(l, a, give, b, get, &x));
    int err = trade(l, b, get, a, give, &y);
    if (err) {
        kedge_mem_free(x.rows);
        return err;
    }
    kedge_mem_free(a->rows);
    kedge_mem_free(b->rows);
    *a = x;
    *b = y;
    kedge_rng_sample(rng, a->train, a->train_count, a->train_count);
    kedge_rng_sample(rng, b->train, b->train_count, b->train_count);
    return KEDGE_OK;
}

static int shift_pairs(struct kedgei_learn *l, struct kedge_rng *rng, bool all)
{
    for (uint32_t i = 0; i < l->n; i++) {
        l->order[i] = i;
    }
    kedge_rng_sample(rng, l->order, l->n, l->n);
    for (uint32_t i = 0; i + 1 < l->n; i += 2) {
        struct kedgei_learn_site *a = &l->sites[l->order[i]], *b = &l->sites[l->order[i + 1]];
        if (kedge_rng_unit(rng) >= l->spec->shift_rate) {
            continue;
        }
        if (all) {
            swap_all(a, b);
        } else {
            KEDGE_TRY(swap_part(l, rng, a, b));
        }
    }
    return KEDGE_OK;
}

void kedgei_learn_release(struct kedgei_learn *l, uint32_t round)
{
    uint32_t stage = round / ROUNDS_PER_RELEASE + 1;
    if (l->spec->shift != KEDGE_LEARN_SHIFT_INCREMENTAL) {
        return;
    }
    stage = stage < RELEASES ? stage : RELEASES;
    for (uint32_t i = 0; i < l->n; i++) { /* a prefix of the original order, which is random */
        struct kedgei_learn_site *s = &l->sites[i];
        s->train_count = (uint32_t)(((uint64_t)s->train_all * stage + RELEASES - 1) / RELEASES);
    }
}

int kedgei_learn_shift(struct kedgei_learn *l, uint32_t round)
{
    struct kedge_rng rng;
    int err = KEDGE_OK;
    kedgei_learn_step(l, round);
    kedge_rng_init(&rng, l->spec->job.seed, KEDGE_RNG_LEARN,
                   kedgei_learn_stream(KEDGEI_LEARN_STREAM_SHIFT, round), 0);
    switch (l->spec->shift) {
    case KEDGE_LEARN_SHIFT_NONE:
        break;
    case KEDGE_LEARN_SHIFT_SWAP_ALL:
    case KEDGE_LEARN_SHIFT_SWAP_PART:
        err = shift_pairs(l, &rng, l->spec->shift == KEDGE_LEARN_SHIFT_SWAP_ALL);
        break;
    case KEDGE_LEARN_SHIFT_INCREMENTAL:
        kedgei_learn_release(l, round);
        break;
    case KEDGE_LEARN_SHIFT_ROTATE:
        for (uint32_t i = 0; i < l->n; i++) {
            if (kedge_rng_unit(&rng) < l->spec->shift_rate) {
                l->sites[i].turn = (l->sites[i].turn + 1) % 4;
                l->sites[i].truth = l->sites[i].turn;
            }
        }
        break;
    }
    return err ? kedge_diag_set(l->reterr, err, "round %u: the shift: %s", round, kedge_strerror(err))
               : KEDGE_OK;
}
