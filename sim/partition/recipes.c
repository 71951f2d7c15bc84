/* Recipes by which a pool of samples is dealt to sites: those of published experiments, and the usual skews.
 *
 * What comes out depends on pool, sites and seed alone, to the sample: each recipe draws from streams that
 * are named by purpose, sites in their order. */
#include "sim/partition/recipes.h"

#include <math.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/partition/deal.h"
#include "sim/partition/draw.h"

enum {
    CLASSES = KEDGE_RECIPE_CLASSES,
    MNIST_CLASSES_PER_SITE = 2,
    MNIST_FIRST = 5,
    MNIST_SITES_PER_TURN = 10
};
enum { LETTERS_CLASSES_PER_SITE = 3, LETTERS_PER_CLASS = 4000, TURNS = 4 };

/* Of a recipe for all of the pool; kedgei_deal_end and kedgei_classes_deinit are the caller's, also after an
 * error. */
static int begin(struct kedgei_deal *deal, struct kedgei_classes *c, const struct kedge_pool_labels *pool,
                 uint32_t sites, struct kedge_diag *reterr)
{
    KEDGE_TRY(kedgei_deal_init(deal, pool, sites, reterr));
    return kedgei_classes_init(c, pool, 0, pool->n);
}

/* Each class in a random order of its own. */
static void shuffle_classes(struct kedgei_classes *c, uint64_t seed)
{
    for (uint32_t l = 0; l < c->count; l++) {
        struct kedge_rng rng;
        uint32_t size = c->begin[l + 1] - c->begin[l];
        kedge_rng_init(&rng, seed, KEDGE_RNG_PARTITION, KEDGEI_STREAM_CLASS, l);
        kedge_rng_sample(&rng, c->rows + c->begin[l], size, size);
    }
}

static int check_classes(const struct kedge_pool_labels *pool, struct kedge_diag *reterr)
{
    return pool->classes == CLASSES
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_ARG, "partition: %u classes, but this recipe is one of %d",
                                pool->classes, CLASSES);
}

/* Takes `count` samples of a class from *at on. */
static int take(struct kedgei_deal *deal, const struct kedgei_classes *c, uint32_t k, uint32_t *at,
                uint32_t count)
{
    int err = KEDGE_OK;
    for (uint32_t i = 0; i < count && !err; i++) {
        err = kedgei_deal_row(deal, c->rows[c->begin[k] + *at + i]);
    }
    *at += count;
    return err;
}

static uint32_t class_size(const struct kedgei_classes *c, uint32_t k)
{
    return c->begin[k + 1] - c->begin[k];
}

/* extra[q][j][l]: how many more samples of class l the site of turn q takes that has it as its j-th class.
 * Log-normal, so that some sites have many times the samples of others; scaled by class, so that together
 * they take what the class has left after all first samples. */
static int draw_mnist(const struct kedgei_classes *c, uint32_t sites, uint64_t seed, double **ret)
{
    uint32_t turns = (sites + MNIST_SITES_PER_TURN - 1) / MNIST_SITES_PER_TURN;
    double *extra = kedge_mem_new((size_t)turns * MNIST_CLASSES_PER_SITE, CLASSES * sizeof *extra);
    struct kedge_draw draw;
    KEDGE_TRY_MEM(extra);
    kedge_draw_init(&draw, seed, KEDGE_RNG_PARTITION, KEDGEI_STREAM_SIZES, 0);
    for (uint32_t l = 0; l < CLASSES; l++) {
        double sum = 0, given = (double)(MNIST_FIRST * MNIST_CLASSES_PER_SITE) * (double)sites / CLASSES;
        for (uint32_t i = 0; i < turns * MNIST_CLASSES_PER_SITE; i++) {
            extra[i * CLASSES + l] = kedge_draw_lognormal(&draw, 0.0, 2.0);
            sum += extra[i * CLASSES + l];
        }
        double left = (double)class_size(c, l) - given;
        for (uint32_t i = 0; i < turns * MNIST_CLASSES_PER_SITE; i++) {
            extra[i * CLASSES + l] *= left > 0 ? left / sum : 0;
        }
    }
    *ret = extra;
    return KEDGE_OK;
}

/* All sites first take MNIST_FIRST of each of their classes; these come first in the classes' orders. */
static int deal_mnist(struct kedgei_deal *deal, const struct kedgei_classes *c, const double *extra,
                      uint64_t seed, struct kedge_diag *reterr)
{
    uint32_t first[CLASSES] = {0}, next[CLASSES] = {0};
    for (uint32_t u = 0; u < deal->sites_max; u++) {
        next[u % CLASSES] += MNIST_FIRST;
        next[(u + 1) % CLASSES] += MNIST_FIRST;
    }
    for (uint32_t l = 0; l < CLASSES; l++) {
        if (next[l] > class_size(c, l)) {
            return kedge_diag_set(reterr, KEDGE_E_ARG,
                                  "partition: %u samples of class %u, but %u sites need %u", class_size(c, l),
                                  l, deal->sites_max, next[l]);
        }
    }
    for (uint32_t u = 0; u < deal->sites_max; u++) {
        for (uint32_t j = 0; j < MNIST_CLASSES_PER_SITE; j++) {
            uint32_t l = (u + j) % CLASSES;
            double more =
                floor(extra[((size_t)(u / MNIST_SITES_PER_TURN) * MNIST_CLASSES_PER_SITE + j) * CLASSES + l]);
            KEDGE_TRY(take(deal, c, l, &first[l], MNIST_FIRST));
            if ((double)next[l] + more < (double)class_size(c, l)) {
                KEDGE_TRY(take(deal, c, l, &next[l], (uint32_t)more));
            }
        }
        KEDGE_TRY(kedgei_deal_split(deal, 0.9, seed, reterr));
    }
    return KEDGE_OK;
}

int kedge_recipe_mnist(const struct kedge_pool_labels *pool, uint32_t sites, uint64_t seed,
                       struct kedge_partition *ret, struct kedge_diag *reterr)
{
    struct kedgei_deal deal = {0};
    struct kedgei_classes c = {0};
    double *extra = NULL;
    KEDGE_TRY(check_classes(pool, reterr));
    int err = begin(&deal, &c, pool, sites, reterr);
    if (!err) {
        err = draw_mnist(&c, sites, seed, &extra);
    }
    if (!err) {
        err = deal_mnist(&deal, &c, extra, seed, reterr);
    }
    kedge_mem_free(extra);
    kedgei_classes_deinit(&c);
    return kedgei_deal_end(&deal, err, ret);
}

static int deal_letters(struct kedgei_deal *deal, const struct kedgei_classes *c, bool leak, uint64_t seed,
                        struct kedge_diag *reterr)
{
    uint32_t next[CLASSES] = {0};
    struct kedge_draw draw;
    kedge_draw_init(&draw, seed, KEDGE_RNG_PARTITION, KEDGEI_STREAM_SIZES, 0);
    for (uint32_t u = 0; u < deal->sites_max; u++) {
        double size = floor(kedge_draw_lognormal(&draw, 4.0, 1.0) + 5.0);
        double each = floor(size / LETTERS_CLASSES_PER_SITE);
        for (uint32_t j = 0; j < LETTERS_CLASSES_PER_SITE; j++) {
            uint32_t l = (u + j) % CLASSES, all = class_size(c, l);
            all = all < LETTERS_PER_CLASS ? all : LETTERS_PER_CLASS;
            uint32_t k = each < 2 ? 2 : each < all ? (uint32_t)each : all;
            bool fits = next[l] + k <= all;
            if (leak ? fits : !fits) { /* as released, the guard is the wrong way round */
                next[l] = 0;
            }
            KEDGE_TRY(take(deal, c, l, &next[l], all - next[l] < k ? all - next[l] : k));
        }
        KEDGE_TRY(kedgei_deal_split(deal, 0.9, seed, reterr));
    }
    return KEDGE_OK;
}

int kedge_recipe_letters(const struct kedge_pool_labels *pool, uint32_t sites, bool leak, uint64_t seed,
                         struct kedge_partition *ret, struct kedge_diag *reterr)
{
    struct kedgei_deal deal = {0};
    struct kedgei_classes c = {0};
    KEDGE_TRY(check_classes(pool, reterr));
    int err = begin(&deal, &c, pool, sites, reterr);
    if (!err) {
        shuffle_classes(&c, seed);
        err = deal_letters(&deal, &c, leak, seed, reterr);
    }
    kedgei_classes_deinit(&c);
    return kedgei_deal_end(&deal, err, ret);
}

/* ---- the usual skews ---- */

static int shuffle_all(const struct kedge_pool_labels *pool, uint64_t seed, uint32_t **ret)
{
    uint32_t *order = kedge_mem_new(pool->n ? pool->n : 1, sizeof *order);
    struct kedge_rng rng;
    KEDGE_TRY_MEM(order);
    for (uint32_t i = 0; i < pool->n; i++) {
        order[i] = i;
    }
    kedge_rng_init(&rng, seed, KEDGE_RNG_PARTITION, KEDGEI_STREAM_POOL, 0);
    kedge_rng_sample(&rng, order, pool->n, pool->n);
    *ret = order;
    return KEDGE_OK;
}

static int deal_equal(const struct kedge_pool_labels *pool, uint32_t sites, double share, uint64_t seed,
                      struct kedge_partition *ret, struct kedge_diag *reterr)
{
    struct kedgei_deal deal = {0};
    uint32_t *order = NULL, at = 0;
    int err = kedgei_deal_init(&deal, pool, sites, reterr);
    if (!err) {
        err = shuffle_all(pool, seed, &order);
    }
    for (uint32_t u = 0; u < sites && !err; u++) {
        uint32_t until = (uint32_t)((uint64_t)pool->n * (u + 1) / sites);
        for (; at < until && !err; at++) {
            err = kedgei_deal_row(&deal, order[at]);
        }
        if (!err) {
            err = kedgei_deal_split(&deal, share, seed, reterr);
        }
    }
    kedge_mem_free(order);
    return kedgei_deal_end(&deal, err, ret);
}

int kedge_recipe_iid(const struct kedge_pool_labels *pool, uint32_t sites, uint64_t seed,
                     struct kedge_partition *ret, struct kedge_diag *reterr)
{
    return deal_equal(pool, sites, 0.9, seed, ret, reterr);
}

int kedge_recipe_rotated(const struct kedge_pool_labels *pool, uint32_t sites, uint64_t seed,
                         struct kedge_partition *ret, struct kedge_diag *reterr)
{
    if (sites < TURNS) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: %u sites, but %d turns of the images", sites,
                              TURNS);
    }
    return deal_equal(pool, sites, 6.0 / 7.0, seed, ret, reterr);
}

/* One label by the site's shares, among the classes that have samples left. */
static uint32_t draw_label(struct kedge_draw *draw, const double *shares, const struct kedgei_classes *c,
                           const uint32_t *used)
{
    double sum = 0;
    uint32_t last = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        sum += used[k] < class_size(c, k) ? shares[k] : 0;
    }
    double at = kedge_rng_unit(&draw->rng) * sum;
    for (uint32_t k = 0; k < c->count; k++) {
        if (used[k] < class_size(c, k)) {
            last = k;
            at -= shares[k];
            if (at < 0) {
                break;
            }
        }
    }
    return last;
}

/* Every site gets equally many samples; only their classes differ, by shares that are drawn for each site
 * from a Dirichlet distribution with parameter alpha (small: one class or two; large: all alike). A class
 * that is used up gives its share to the others, so late sites fit their shares less well. */
static int deal_dirichlet(struct kedgei_deal *deal, const struct kedgei_classes *c, uint32_t n, double alpha,
                          uint64_t seed, double *shares, uint32_t *used, struct kedge_diag *reterr)
{
    for (uint32_t u = 0; u < deal->sites_max; u++) {
        struct kedge_draw draw;
        uint64_t sites = deal->sites_max;
        uint32_t count = (uint32_t)((uint64_t)n * (u + 1) / sites - (uint64_t)n * u / sites);
        kedge_draw_init(&draw, seed, KEDGE_RNG_PARTITION, KEDGEI_STREAM_SHARES, u);
        kedge_draw_dirichlet(&draw, alpha, shares, c->count);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t k = draw_label(&draw, shares, c, used);
            KEDGE_TRY(kedgei_deal_row(deal, c->rows[c->begin[k] + used[k]++]));
        }
        KEDGE_TRY(kedgei_deal_split(deal, 0.9, seed, reterr));
    }
    return KEDGE_OK;
}

int kedge_recipe_dirichlet(const struct kedge_pool_labels *pool, uint32_t sites, double alpha, uint64_t seed,
                           struct kedge_partition *ret, struct kedge_diag *reterr)
{
    struct kedgei_deal deal = {0};
    struct kedgei_classes c = {0};
    if (!(alpha > 0) || !isfinite(alpha)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: Dirichlet alpha %g, expected above 0", alpha);
    }
    double *shares = kedge_mem_new(pool->classes ? pool->classes : 1, sizeof *shares);
    uint32_t *used = kedge_mem_new(pool->classes ? pool->classes : 1, sizeof *used);
    int err = shares && used ? begin(&deal, &c, pool, sites, reterr) : KEDGE_E_NOMEM;
    if (!err) {
        shuffle_classes(&c, seed);
        err = deal_dirichlet(&deal, &c, pool->n, alpha, seed, shares, used, reterr);
    }
    kedge_mem_free(shares);
    kedge_mem_free(used);
    kedgei_classes_deinit(&c);
    return kedgei_deal_end(&deal, err, ret);
}

/* Samples sorted by class are cut into equal pieces, of which each site gets `per_site` at random: a site has
 * at most about so many classes. Bounds are computed by multiplying first, so that pieces differ by one
 * sample at most and none is left over. */
static int deal_shards(struct kedgei_deal *deal, const struct kedgei_classes *c, uint32_t n,
                       uint32_t per_site, uint64_t seed, struct kedge_diag *reterr)
{
    uint32_t shards = deal->sites_max * per_site;
    uint32_t *order KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(shards, sizeof *order);
    struct kedge_rng rng;
    KEDGE_TRY_MEM(order);
    for (uint32_t i = 0; i < shards; i++) {
        order[i] = i;
    }
    kedge_rng_init(&rng, seed, KEDGE_RNG_PARTITION, KEDGEI_STREAM_SITES, 0);
    kedge_rng_sample(&rng, order, shards, shards);
    for (uint32_t i = 0; i < shards; i++) {
        uint32_t first = (uint32_t)((uint64_t)n * order[i] / shards);
        uint32_t until = (uint32_t)((uint64_t)n * (order[i] + 1) / shards);
        for (uint32_t r = first; r < until; r++) {
            KEDGE_TRY(kedgei_deal_row(deal, c->rows[r]));
        }
        if ((i + 1) % per_site == 0) {
            KEDGE_TRY(kedgei_deal_split(deal, 0.9, seed, reterr));
        }
    }
    return KEDGE_OK;
}

int kedge_recipe_shards(const struct kedge_pool_labels *pool, uint32_t sites, uint32_t per_site,
                        uint64_t seed, struct kedge_partition *ret, struct kedge_diag *reterr)
{
    struct kedgei_deal deal = {0};
    struct kedgei_classes c = {0};
    if (per_site == 0 || per_site > 1000) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: %u shards a site, expected 1 to 1000",
                              per_site);
    }
    int err = begin(&deal, &c, pool, sites, reterr);
    if (!err) {
        err = deal_shards(&deal, &c, pool->n, per_site, seed, reterr);
    }
    kedgei_classes_deinit(&c);
    return kedgei_deal_end(&deal, err, ret);
}
