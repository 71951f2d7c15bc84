/* FashionMNIST-500. Everything but the order inside a site is drawn as NumPy's legacy generator would. */
#include <math.h>

#include "common/base/try.h"
#include "sim/partition/deal.h"
#include "sim/partition/draw.h"

enum { SITES = KEDGE_FASHION_SITES, SHARES = KEDGE_FASHION_CLASSES_PER_SITE, CLASSES = KEDGE_RECIPE_CLASSES };
enum { TRAIN_PER_CLASS = 6000, TEST_PER_CLASS = 1000, SEED = 233 };

/* The sum of NumPy: pairs of eight lanes below 128 elements, halves above. Adding in another order differs in
 * the last bits, and amounts that are cut to whole samples would differ with them: the partition would no
 * longer be the published one. */
static double sum_pairwise(const double *v, uint32_t n)
{
    double sum = 0;
    if (n < 8) {
        for (uint32_t i = 0; i < n; i++) {
            sum += v[i];
        }
        return sum;
    }
    double lane[8];
    for (uint32_t k = 0; k < 8; k++) {
        lane[k] = v[k];
    }
    uint32_t i = 8;
    for (; i < n - n % 8; i += 8) {
        for (uint32_t k = 0; k < 8; k++) {
            lane[k] += v[i + k];
        }
    }
    sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    for (; i < n; i++) {
        sum += v[i];
    }
    return sum;
}

static double sum_sizes(const double size[SITES])
{
    /* 500 = 248 + 252, then 120 + 128 and 120 + 132 = 120 + (64 + 68): halves are cut at multiples of eight
     */
    double left = sum_pairwise(size, 120) + sum_pairwise(size + 120, 128);
    double right =
        sum_pairwise(size + 248, 120) + (sum_pairwise(size + 368, 64) + sum_pairwise(size + 432, 68));
    return left + right;
}

void kedge_fashion_slices(struct kedge_fashion_slice slices[SITES * SHARES])
{
    struct kedge_mt19937 mt;
    double size[SITES];
    uint32_t train[CLASSES] = {0}, test[CLASSES] = {0};
    kedge_mt19937_init(&mt, SEED);
    for (uint32_t u = 0; u < SITES; u++) {
        size[u] = kedge_mt19937_lognormal(&mt, 3.0, 1.0) + 10.0;
    }
    double sum = sum_sizes(size);
    for (uint32_t u = 0; u < SITES; u++) {
        double share[SHARES], all = 0, own = 60000.0 * size[u] / sum;
        for (uint32_t j = 0; j < SHARES; j++) {
            share[j] = kedge_mt19937_lognormal(&mt, 1.0, 1.0);
            all += share[j];
        }
        for (uint32_t j = 0; j < SHARES; j++) {
            struct kedge_fashion_slice *s = &slices[u * SHARES + j];
            uint32_t c = (u + j) % CLASSES;
            s->class_index = c;
            s->train_count = (uint32_t)(share[j] / all * own) + 1;
            s->test_count = (uint32_t)(share[j] / all * own / 6.0) + 1;
            train[c] = train[c] + s->train_count > TRAIN_PER_CLASS ? 0 : train[c];
            test[c] = test[c] + s->test_count > TEST_PER_CLASS ? 0 : test[c];
            s->train_start = train[c];
            s->test_start = test[c];
            train[c] += s->train_count;
            test[c] += s->test_count;
        }
    }
}

static int deal_site(struct kedgei_deal *deal, const struct kedgei_classes *train,
                     const struct kedgei_classes *test, const struct kedge_fashion_slice slices[SHARES],
                     uint64_t seed, struct kedge_diag *reterr)
{
    uint32_t begin = deal->rows;
    int err = KEDGE_OK;
    for (uint32_t j = 0; j < SHARES; j++) {
        const struct kedge_fashion_slice *s = &slices[j];
        for (uint32_t i = 0; i < s->train_count && !err; i++) {
            err = kedgei_deal_row(deal, train->rows[train->begin[s->class_index] + s->train_start + i]);
        }
    }
    uint32_t count = deal->rows - begin;
    for (uint32_t j = 0; j < SHARES; j++) {
        const struct kedge_fashion_slice *s = &slices[j];
        for (uint32_t i = 0; i < s->test_count && !err; i++) {
            err = kedgei_deal_row(deal, test->rows[test->begin[s->class_index] + s->test_start + i]);
        }
    }
    return err ? err : kedgei_deal_parts(deal, count, seed, reterr);
}

static int check_classes(const struct kedgei_classes *c, uint32_t each, const char *part,
                         struct kedge_diag *reterr)
{
    for (uint32_t k = 0; k < CLASSES; k++) {
        if (c->count != CLASSES || c->begin[k + 1] - c->begin[k] != each) {
            return kedge_diag_set(reterr, KEDGE_E_ARG,
                                  "partition: this recipe is for Fashion-MNIST, ten classes of %u %s samples",
                                  each, part);
        }
    }
    return KEDGE_OK;
}

/* All three are the caller's to release, also after an error. */
static int begin(struct kedgei_deal *deal, struct kedgei_classes *train, struct kedgei_classes *test,
                 const struct kedge_pool_labels *pool, struct kedge_diag *reterr)
{
    KEDGE_TRY(kedgei_deal_init(deal, pool, SITES, reterr));
    KEDGE_TRY(kedgei_classes_init(train, pool, 0, pool->train_n));
    KEDGE_TRY(kedgei_classes_init(test, pool, pool->train_n, pool->n));
    KEDGE_TRY(check_classes(train, TRAIN_PER_CLASS, "training", reterr));
    return check_classes(test, TEST_PER_CLASS, "test", reterr);
}

int kedge_recipe_fashion(const struct kedge_pool_labels *pool, uint64_t seed, struct kedge_partition *ret,
                         struct kedge_diag *reterr)
{
    static _Thread_local struct kedge_fashion_slice slices[SITES * SHARES];
    struct kedgei_deal deal = {0};
    struct kedgei_classes train = {0}, test = {0};
    int err = begin(&deal, &train, &test, pool, reterr);
    if (!err) {
        kedge_fashion_slices(slices);
    }
    for (uint32_t u = 0; u < SITES && !err; u++) {
        err = deal_site(&deal, &train, &test, slices + (size_t)u * SHARES, seed, reterr);
    }
    kedgei_classes_deinit(&train);
    kedgei_classes_deinit(&test);
    return kedgei_deal_end(&deal, err, ret);
}
