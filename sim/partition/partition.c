/* Idea: samples lie in pools (one a class; one in all for iid), each pool shuffled by its own stream and
 * cut into contiguous equal shares for its holders. Two passes over the holders, one to count and one to
 * fill, give every site a contiguous range of `order` without lists. */
#include "sim/partition/partition.h"

#include <string.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/try.h"

/* Streams of KEDGE_RNG_PARTITION: part of what a seed means, never renumber. */
enum { STREAM_POOL = 1, STREAM_SITE = 2 };

struct pools {
    uint32_t count;
    uint32_t *begin; /* count + 1 offsets into samples */
    uint32_t *samples;
};

int kedge_partition_kind_find(const char *name, enum kedge_partition_kind *ret)
{
    static const char *const names[] = {"iid", "ring", "planted"};
    for (uint32_t i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret = (enum kedge_partition_kind)(KEDGE_PARTITION_IID + i);
            return KEDGE_OK;
        }
    }
    return KEDGE_E_NOT_FOUND;
}

bool kedge_partition_holds(const struct kedge_partition_spec *spec, uint32_t classes, uint32_t site,
                           uint32_t class_index)
{
    if (spec->kind == KEDGE_PARTITION_RING) {
        return (class_index + classes - site % classes) % classes < spec->classes_per_site;
    }
    if (spec->kind == KEDGE_PARTITION_PLANTED) {
        uint64_t group = site % spec->groups;
        return class_index >= group * classes / spec->groups
               && class_index < (group + 1) * classes / spec->groups;
    }
    return true;
}

static int check_spec(const struct kedge_partition_spec *spec, const int32_t *labels, uint32_t n,
                      uint32_t classes, struct kedge_diag *reterr)
{
    if (spec->sites == 0 || spec->sites > KEDGE_SITES_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: %u sites, expected 1 to %d", spec->sites,
                              KEDGE_SITES_MAX);
    }
    if (classes == 0 || n == 0) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: no samples");
    }
    if (!(spec->train_share > 0.0 && spec->train_share < 1.0)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: train share %g, expected between 0 and 1",
                              spec->train_share);
    }
    if (spec->kind == KEDGE_PARTITION_RING
        && (spec->classes_per_site == 0 || spec->classes_per_site > classes)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: %u classes per site, expected 1 to %u",
                              spec->classes_per_site, classes);
    }
    uint32_t groups_max = spec->sites < classes ? spec->sites : classes;
    if (spec->kind == KEDGE_PARTITION_PLANTED && (spec->groups == 0 || spec->groups > groups_max)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG,
                              "partition: %u groups, expected 1 to %u (sites and classes)", spec->groups,
                              groups_max);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (labels[i] < 0 || (uint32_t)labels[i] >= classes) {
            return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: label %d of sample %u, expected 0 to %u",
                                  labels[i], i, classes - 1);
        }
    }
    return KEDGE_OK;
}

static void pools_deinit(struct pools *p)
{
    kedge_mem_free(p->begin);
    kedge_mem_free(p->samples);
}

/* Counting sort of the samples into pools, then a shuffle of each. */
static int fill_pools(const struct kedge_partition_spec *spec, const int32_t *labels, uint32_t n,
                      uint32_t classes, struct pools *p)
{
    bool one = spec->kind == KEDGE_PARTITION_IID;
    p->count = one ? 1 : classes;
    p->begin = kedge_mem_new((size_t)p->count + 2, sizeof *p->begin);
    p->samples = kedge_mem_new(n, sizeof *p->samples);
    KEDGE_TRY_MEM(p->begin && p->samples);
    uint32_t *next = p->begin + 1; /* next[c] starts as the begin of pool c and ends as its end */
    for (uint32_t i = 0; i < n; i++) {
        next[one ? 1 : labels[i] + 1]++;
    }
    for (uint32_t c = 1; c <= p->count; c++) {
        next[c] += next[c - 1];
    }
    for (uint32_t i = 0; i < n; i++) {
        p->samples[next[one ? 0 : labels[i]]++] = i;
    }
    for (uint32_t c = 0; c < p->count; c++) {
        struct kedge_rng rng;
        uint32_t len = p->begin[c + 1] - p->begin[c];
        kedge_rng_init(&rng, spec->seed, KEDGE_RNG_PARTITION, STREAM_POOL, c);
        kedge_rng_sample(&rng, p->samples + p->begin[c], len, len);
    }
    return KEDGE_OK;
}

/* A cursor over the shares of one pool, one for each of its holders in turn. */
struct share {
    uint32_t holders, holder, begin, len;
};

static struct share first_share(const struct kedge_partition_spec *spec, uint32_t classes,
                                const struct pools *pools, uint32_t c)
{
    struct share s = {.begin = pools->begin[c]};
    for (uint32_t site = 0; site < spec->sites; site++) {
        s.holders += kedge_partition_holds(spec, classes, site, c);
    }
    return s;
}

/* Shares differ by one sample at most: the first holders get what does not divide. */
static void next_share(const struct pools *pools, uint32_t c, struct share *s)
{
    uint32_t total = pools->begin[c + 1] - pools->begin[c];
    s->begin += s->len;
    s->len = total / s->holders + (s->holder < total % s->holders ? 1 : 0);
    s->holder++;
}

/* With `order` NULL counts the samples of each site into train_count, else copies them behind begin +
 * test_count (a fill mark for the time being). */
static void deal(const struct kedge_partition_spec *spec, uint32_t classes, const struct pools *pools,
                 struct kedge_partition_site *sites, uint32_t *order)
{
    for (uint32_t c = 0; c < pools->count; c++) {
        struct share s = first_share(spec, classes, pools, c);
        for (uint32_t site = 0; site < spec->sites; site++) {
            if (!kedge_partition_holds(spec, classes, site, c)) {
                continue;
            }
            next_share(pools, c, &s);
            if (!order) {
                sites[site].train_count += s.len;
            } else if (s.len > 0) {
                memcpy(order + sites[site].begin + sites[site].test_count, pools->samples + s.begin,
                       s.len * sizeof *order);
                sites[site].test_count += s.len;
            }
        }
    }
}

static int place_sites(const struct kedge_partition_spec *spec, struct kedge_partition_site *sites,
                       struct kedge_diag *reterr)
{
    uint32_t begin = 0;
    for (uint32_t site = 0; site < spec->sites; site++) {
        if (sites[site].train_count < 2) {
            return kedge_diag_set(reterr, KEDGE_E_ARG,
                                  "partition: site %u would get %u samples, at least 2 are "
                                  "needed: fewer sites or more data",
                                  site, sites[site].train_count);
        }
        sites[site].begin = begin;
        begin += sites[site].train_count;
    }
    return KEDGE_OK;
}

/* Each site is shuffled by a stream of its own, then cut: at least one sample to train on and one to test
 * with, however small the share. */
static void split_sites(const struct kedge_partition_spec *spec, struct kedge_partition_site *sites,
                        uint32_t *order)
{
    for (uint32_t site = 0; site < spec->sites; site++) {
        struct kedge_rng rng;
        uint32_t total = sites[site].train_count;
        uint32_t train = (uint32_t)((double)total * spec->train_share);
        kedge_rng_init(&rng, spec->seed, KEDGE_RNG_PARTITION, STREAM_SITE, site);
        kedge_rng_sample(&rng, order + sites[site].begin, total, total);
        sites[site].train_count = train == 0 ? 1 : train == total ? total - 1 : train;
        sites[site].test_count = total - sites[site].train_count;
    }
}

int kedge_partition_make(const struct kedge_partition_spec *spec, const int32_t *labels, uint32_t n,
                         uint32_t classes, struct kedge_partition *ret, struct kedge_diag *reterr)
{
    struct pools pools = {0};
    KEDGE_TRY(check_spec(spec, labels, n, classes, reterr));
    struct kedge_partition p = {.sites_count = spec->sites};
    p.sites = kedge_mem_new(spec->sites, sizeof *p.sites);
    p.order = kedge_mem_new(n, sizeof *p.order);
    int err = p.sites && p.order ? fill_pools(spec, labels, n, classes, &pools) : KEDGE_E_NOMEM;
    if (err) {
        kedge_diag_set(reterr, err, "partition: no memory for %u samples", n);
    } else {
        deal(spec, classes, &pools, p.sites, NULL);
        err = place_sites(spec, p.sites, reterr);
    }
    if (!err) {
        deal(spec, classes, &pools, p.sites, p.order);
        split_sites(spec, p.sites, p.order);
    }
    pools_deinit(&pools);
    if (err) {
        kedge_partition_deinit(&p);
        return err;
    }
    *ret = p;
    return KEDGE_OK;
}

void kedge_partition_deinit(struct kedge_partition *p)
{
    kedge_mem_free(p->sites);
    kedge_mem_free(p->order);
    *p = (struct kedge_partition){0};
}

const uint32_t *kedge_partition_train(const struct kedge_partition *p, uint32_t site, uint32_t *ret_count)
{
    KEDGE_ASSERT(site < p->sites_count);
    *ret_count = p->sites[site].train_count;
    return p->order + p->sites[site].begin;
}

const uint32_t *kedge_partition_test(const struct kedge_partition *p, uint32_t site, uint32_t *ret_count)
{
    KEDGE_ASSERT(site < p->sites_count);
    *ret_count = p->sites[site].test_count;
    return p->order + p->sites[site].begin + p->sites[site].train_count;
}
