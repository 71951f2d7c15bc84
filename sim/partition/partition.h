/* Splits of a labelled data set over sites: who gets which samples. No sample goes to two sites, and none
 * is in a site's training and test part at once. The same labels and spec give the same split on any
 * machine. Pure.
 *
 * KEDGE_PARTITION_IID: all samples shuffled and dealt in equal shares.
 *
 * KEDGE_PARTITION_RING: site u holds the classes (u + j) mod C, j = 0 … classes_per_site − 1. Neighbours
 * overlap, so that groups of any size exist (the letters recipe, with equal shares for its log-normal ones).
 *
 * KEDGE_PARTITION_PLANTED: site u is of group u mod groups, and a group holds its own consecutive classes, no
 * class in two groups: the truth that grouping should find.
 *
 * A class is shared equally among the sites that hold it (the first ones get one more where it does not
 * divide); classes that no site holds are left out. */
#ifndef KEDGE_SIM_PARTITION_PARTITION_H
#define KEDGE_SIM_PARTITION_PARTITION_H

#include <stdint.h>

#include "common/base/diag.h"

enum kedge_partition_kind { KEDGE_PARTITION_IID = 1, KEDGE_PARTITION_RING, KEDGE_PARTITION_PLANTED };

struct kedge_partition_spec {
    enum kedge_partition_kind kind;
    uint32_t sites;            /* 1 to KEDGE_SITES_MAX */
    uint32_t classes_per_site; /* ring: 1 to classes */
    uint32_t groups;           /* planted: 1 to the smaller of sites and classes */
    double train_share;        /* of each site's samples, e.g. 0.8; in (0, 1) */
    uint64_t seed;
};

/* Site s has order[begin .. begin + train_count) for training, the next test_count for testing. */
struct kedge_partition_site {
    uint32_t begin, train_count, test_count; /* both counts at least 1 */
};
struct kedge_partition {
    uint32_t sites_count;
    struct kedge_partition_site *sites; /* owned */
    uint32_t *order;                    /* owned: sample indices, those of a site next to each other */
};

/* labels: n values in [0, classes). KEDGE_E_ARG says what is out of range, or which site would get fewer
 * than two samples. The caller deinits ret after success. */
KEDGE_NODISCARD int kedge_partition_make(const struct kedge_partition_spec *spec, const int32_t *labels,
                                         uint32_t n, uint32_t classes, struct kedge_partition *ret,
                                         struct kedge_diag *reterr);
void kedge_partition_deinit(struct kedge_partition *p);

/* Whether the site holds the class under a valid spec. */
bool kedge_partition_holds(const struct kedge_partition_spec *spec, uint32_t classes, uint32_t site,
                           uint32_t class_index);

/* Sample indices of a site, borrowed from p. */
const uint32_t *kedge_partition_train(const struct kedge_partition *p, uint32_t site, uint32_t *ret_count);
const uint32_t *kedge_partition_test(const struct kedge_partition *p, uint32_t site, uint32_t *ret_count);

/* "iid", "ring" or "planted" to its kind; KEDGE_E_NOT_FOUND. */
KEDGE_NODISCARD int kedge_partition_kind_find(const char *name, enum kedge_partition_kind *ret);

#endif
