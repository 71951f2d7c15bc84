/* A site for each writer of handwriting, as data of real people are split (LEAF's FEMNIST). Writers are not
 * drawn: only which of a writer's samples train and which test depends on the seed. */
#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/partition/deal.h"

enum { WRITERS_MAX = KEDGEI_SITES_MAX };

/* Samples sorted by writer, in file order within one: begin[w] … begin[w + 1]. */
static int sort_by_writer(const struct kedge_pool_labels *pool, const uint32_t *writers, uint32_t count,
                          struct kedgei_classes *ret)
{
    struct kedge_pool_labels as_labels = {.n = pool->n, .train_n = pool->n, .classes = count};
    int32_t *labels KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(pool->n, sizeof *labels);
    KEDGE_TRY_MEM(labels);
    for (uint32_t i = 0; i < pool->n; i++) {
        labels[i] = (int32_t)writers[i];
    }
    as_labels.labels = labels;
    return kedgei_classes_init(ret, &as_labels, 0, pool->n);
}

int kedge_recipe_writers(const struct kedge_pool_labels *pool, const uint32_t *writers, uint64_t seed,
                         struct kedge_partition *ret, struct kedge_diag *reterr)
{
    struct kedgei_deal deal = {0};
    struct kedgei_classes of = {0};
    uint32_t count = 0;
    if (pool->n == 0) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: no samples");
    }
    for (uint32_t i = 0; i < pool->n; i++) {
        if (writers[i] >= WRITERS_MAX) {
            return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: writer %u of sample %u, expected 0 to %d",
                                  writers[i], i, WRITERS_MAX - 1);
        }
        count = writers[i] >= count ? writers[i] + 1 : count;
    }
    int err = kedgei_deal_init(&deal, pool, count, reterr);
    if (!err) {
        err = sort_by_writer(pool, writers, count, &of);
    }
    for (uint32_t w = 0; w < count && !err; w++) {
        if (of.begin[w + 1] - of.begin[w] < 2) {
            continue; /* nothing to test on */
        }
        for (uint32_t r = of.begin[w]; r < of.begin[w + 1] && !err; r++) {
            err = kedgei_deal_row(&deal, of.rows[r]);
        }
        if (!err) {
            err = kedgei_deal_split(&deal, 0.9, seed, reterr);
        }
    }
    if (!err && deal.p.sites_count == 0) {
        err = kedge_diag_set(reterr, KEDGE_E_ARG, "partition: no writer has two samples");
    }
    kedgei_classes_deinit(&of);
    return kedgei_deal_end(&deal, err, ret);
}
