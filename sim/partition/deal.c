/* Samples are dealt to one site after the other. Their rows go to the end of p.order, and ending a site makes
 * its own all rows since the end of the one before, so a site is a range and needs no list. One sample may be
 * dealt to several sites, as some published partitions do; the list may then grow beyond the pool. */
#include "sim/partition/deal.h"

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/try.h"

int kedgei_deal_init(struct kedgei_deal *deal, const struct kedge_pool_labels *pool, uint32_t sites,
                     struct kedge_diag *reterr)
{
    *deal = (struct kedgei_deal){.sites_max = sites, .rows_max = pool->n > 16 ? pool->n : 16};
    if (sites == 0 || sites > KEDGEI_SITES_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: %u sites, expected 1 to %d", sites,
                              KEDGEI_SITES_MAX);
    }
    deal->p.sites = kedge_mem_new(sites, sizeof *deal->p.sites);
    deal->p.order = kedge_mem_new(deal->rows_max, sizeof *deal->p.order);
    if (!deal->p.sites || !deal->p.order) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "partition: no memory for %u sites", sites);
    }
    return KEDGE_OK;
}

int kedgei_deal_row(struct kedgei_deal *deal, uint32_t row)
{
    if (deal->rows == deal->rows_max) {
        if (deal->rows_max > UINT32_MAX / 2) {
            return KEDGE_E_NOMEM;
        }
        uint32_t *more = kedge_mem_resize(deal->p.order, 2 * (size_t)deal->rows_max, sizeof *more);
        KEDGE_TRY_MEM(more);
        deal->p.order = more;
        deal->rows_max *= 2;
    }
    deal->p.order[deal->rows++] = row;
    return KEDGE_OK;
}

static int add_site(struct kedgei_deal *deal, uint32_t train, struct kedge_diag *reterr)
{
    uint32_t n = deal->rows - deal->open;
    if (n < 2 || train == 0 || train >= n) {
        return kedge_diag_set(
            reterr, KEDGE_E_ARG,
            "partition: site %u would have %u samples: at least one for training and one for "
            "testing are needed (fewer sites help)",
            deal->p.sites_count, n);
    }
    KEDGE_ASSERT(deal->p.sites_count < deal->sites_max);
    deal->p.sites[deal->p.sites_count++] =
        (struct kedge_partition_site){.begin = deal->open, .train_count = train, .test_count = n - train};
    deal->open = deal->rows;
    return KEDGE_OK;
}

int kedgei_deal_split(struct kedgei_deal *deal, double share, uint64_t seed, struct kedge_diag *reterr)
{
    uint32_t n = deal->rows - deal->open, train = (uint32_t)(share * (double)n);
    struct kedge_rng rng;
    kedge_rng_init(&rng, seed, KEDGE_RNG_PARTITION, KEDGEI_STREAM_ORDER, deal->p.sites_count);
    kedge_rng_sample(&rng, deal->p.order + deal->open, n, n);
    train = train == 0 ? 1 : train;
    return add_site(deal, train == n ? n - 1 : train, reterr);
}

int kedgei_deal_parts(struct kedgei_deal *deal, uint32_t train, uint64_t seed, struct kedge_diag *reterr)
{
    uint32_t n = deal->rows - deal->open;
    struct kedge_rng rng;
    KEDGE_ASSERT(train <= n);
    kedge_rng_init(&rng, seed, KEDGE_RNG_PARTITION, KEDGEI_STREAM_ORDER, deal->p.sites_count);
    kedge_rng_sample(&rng, deal->p.order + deal->open, train, train);
    kedge_rng_sample(&rng, deal->p.order + deal->open + train, n - train, n - train);
    return add_site(deal, train, reterr);
}

int kedgei_deal_end(struct kedgei_deal *deal, int err, struct kedge_partition *ret)
{
    if (err) {
        kedge_partition_deinit(&deal->p);
    } else {
        *ret = deal->p;
    }
    return err;
}

/* A counting sort in one array: begin is counted two places further on, so that the second walk, which moves
 * begin[k + 1] from the start of class k to its end, leaves begin[k] as the start of class k. */
int kedgei_classes_init(struct kedgei_classes *c, const struct kedge_pool_labels *pool, uint32_t first,
                        uint32_t until)
{
    *c = (struct kedgei_classes){.count = pool->classes};
    c->begin = kedge_mem_new((size_t)pool->classes + 2, sizeof *c->begin);
    c->rows = kedge_mem_new(until > first ? until - first : 1, sizeof *c->rows);
    if (!c->begin || !c->rows) {
        kedgei_classes_deinit(c);
        return KEDGE_E_NOMEM;
    }
    for (uint32_t i = first; i < until; i++) {
        KEDGE_ASSERT(pool->labels[i] >= 0 && (uint32_t)pool->labels[i] < pool->classes);
        c->begin[pool->labels[i] + 2]++;
    }
    for (uint32_t k = 2; k <= pool->classes; k++) {
        c->begin[k] += c->begin[k - 1];
    }
    for (uint32_t i = first; i < until; i++) { /* begin[k + 1] runs from the start to the end of class k */
        c->rows[c->begin[pool->labels[i] + 1]++] = i;
    }
    return KEDGE_OK;
}

void kedgei_classes_deinit(struct kedgei_classes *c)
{
    kedge_mem_free(c->begin);
    kedge_mem_free(c->rows);
    *c = (struct kedgei_classes){0};
}
