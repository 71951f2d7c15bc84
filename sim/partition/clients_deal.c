/* Who trains and tests on which of the clients' samples. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "sim/partition/clients.h"
#include "sim/partition/deal.h"

#define TRAIN_SHARE 0.9

/* Rows of the step by client, those for testing last: begin[u] … begin[u + 1]. */
static void sort_rows(const struct kedge_clients *c, uint32_t step, uint32_t *begin, uint32_t *order)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->step[i] == step) {
            begin[c->client[i] + 2]++;
        }
    }
    for (uint32_t u = 2; u <= c->count; u++) {
        begin[u] += begin[u - 1];
    }
    for (int testing = 0; testing < 2; testing++) {
        for (uint32_t i = 0; i < c->n; i++) {
            if (c->step[i] == step && (c->part[i] == KEDGE_CLIENTS_TEST) == (testing == 1)) {
                order[begin[c->client[i] + 1]++] = i; /* begin[u + 1] runs from the start to the end of u */
            }
        }
    }
}

/* A client's rows in a random order, cut where its files say so or at nine tenths. */
static struct kedge_partition_site cut(const struct kedge_clients *c, uint32_t step, uint32_t site,
                                       uint32_t begin, uint32_t n, uint64_t seed, uint32_t *order)
{
    struct kedge_rng rng;
    uint32_t train = 0;
    uint32_t *rows = order + begin;
    bool dealt = n > 0 && c->part[rows[0]] == KEDGE_CLIENTS_DEALT;
    kedge_rng_init(&rng, seed, KEDGE_RNG_PARTITION, (uint64_t)step << 32 | KEDGEI_STREAM_ORDER, site);
    if (dealt) {
        kedge_rng_sample(&rng, rows, n, n);
        train = (uint32_t)(TRAIN_SHARE * (double)n);
        train = train == 0 ? 1 : train == n && n > 1 ? n - 1 : train;
    } else {
        while (train < n && c->part[rows[train]] == KEDGE_CLIENTS_TRAIN) {
            train++;
        }
        kedge_rng_sample(&rng, rows, train, train);
        kedge_rng_sample(&rng, rows + train, n - train, n - train);
    }
    return (struct kedge_partition_site){.begin = begin, .train_count = train, .test_count = n - train};
}

static int check(const struct kedge_clients *c, uint32_t site, const struct kedge_partition_site *s,
                 struct kedge_diag *reterr)
{
    if (s->train_count > 0 && s->test_count > 0) {
        return KEDGE_OK;
    }
    return kedge_diag_set(
        reterr, KEDGE_E_FORMAT,
        "client \"%.60s\": %u samples for training and %u for testing, expected at least one of "
        "either",
        c->names[site], s->train_count, s->test_count);
}

int kedge_clients_deal(const struct kedge_clients *c, uint32_t step, uint64_t seed,
                       struct kedge_partition *ret, struct kedge_diag *reterr)
{
    struct kedge_partition p = {.sites_count = c->count,
                                .sites = kedge_mem_new(c->count, sizeof *p.sites),
                                .order = kedge_mem_new(c->n, sizeof *p.order)};
    uint32_t *begin = kedge_mem_new((size_t)c->count + 2, sizeof *begin);
    int err = p.sites && p.order && begin
                  ? KEDGE_OK
                  : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u clients", c->count);
    if (!err) {
        sort_rows(c, step, begin, p.order);
    }
    for (uint32_t u = 0; u < c->count && !err; u++) {
        p.sites[u] = cut(c, step, u, begin[u], begin[u + 1] - begin[u], seed, p.order);
        err = step == 0 ? check(c, u, &p.sites[u], reterr) : KEDGE_OK;
    }
    kedge_mem_free(begin);
    if (err) {
        kedge_partition_deinit(&p);
        return err;
    }
    *ret = p;
    return KEDGE_OK;
}
