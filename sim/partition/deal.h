/* Inside sim/partition: a partition that grows site by site. */
#ifndef KEDGE_SIM_PARTITION_DEAL_H
#define KEDGE_SIM_PARTITION_DEAL_H

#include "sim/partition/recipes.h"

enum { KEDGEI_SITES_MAX = 100000 };

/* Streams of KEDGE_RNG_PARTITION: part of what a seed means, never renumber (1 and 2 are partition.c's). */
enum kedgei_stream {
    KEDGEI_STREAM_SIZES = 3,
    KEDGEI_STREAM_ORDER = 4, /* b = site */
    KEDGEI_STREAM_CLASS = 5, /* b = class */
    KEDGEI_STREAM_POOL = 6,
    KEDGEI_STREAM_SHARES = 7, /* b = site */
    KEDGEI_STREAM_SITES = 8,
    KEDGEI_STREAM_FEATURES = 9, /* b = site */
};

struct kedgei_deal {
    struct kedge_partition p;
    uint32_t sites_max, rows, rows_max, open; /* open: first row of the site that is being dealt to */
};

/* KEDGE_E_ARG when sites is 0 or too large. */
KEDGE_NODISCARD int kedgei_deal_init(struct kedgei_deal *deal, const struct kedge_pool_labels *pool,
                                     uint32_t sites, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedgei_deal_row(struct kedgei_deal *deal, uint32_t row);
/* Ends a site: its rows are shuffled by the stream of the site, and the first ⌊share · n⌋ train, at least one
 * on either side. KEDGE_E_ARG: fewer than two rows. */
KEDGE_NODISCARD int kedgei_deal_split(struct kedgei_deal *deal, double share, uint64_t seed,
                                      struct kedge_diag *reterr);
/* Ends a site whose first `train` rows train and the rest test, each part shuffled. */
KEDGE_NODISCARD int kedgei_deal_parts(struct kedgei_deal *deal, uint32_t train, uint64_t seed,
                                      struct kedge_diag *reterr);
/* Moves the result out, or frees it when err. Returns err. */
int kedgei_deal_end(struct kedgei_deal *deal, int err, struct kedge_partition *ret);

/* Rows of each class in file order, first the rows below `until`. */
struct kedgei_classes {
    uint32_t count;
    uint32_t *begin; /* count + 1 offsets into rows, owned with rows */
    uint32_t *rows;
};
KEDGE_NODISCARD int kedgei_classes_init(struct kedgei_classes *c, const struct kedge_pool_labels *pool,
                                        uint32_t first, uint32_t until);
void kedgei_classes_deinit(struct kedgei_classes *c);

#endif
