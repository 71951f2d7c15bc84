/* Comparing runs of several variants over the same seeds: means with 95 % confidence intervals (Student's t),
 * and differences from the first variant, paired by seed, since equal seeds mean equal sites, data,
 * selections and shifts. Pure. */
#ifndef KEDGE_SIM_LEARN_COMPARE_H
#define KEDGE_SIM_LEARN_COMPARE_H

#include "sim/learn/report/report.h"

enum { KEDGE_LEARN_SEEDS_MAX = 1000 };

struct kedge_learn_estimate {
    double mean; /* NAN: a value is missing or there are none */
    double half; /* half of the interval's width; NAN with fewer than two values */
    uint32_t count;
};

/* 97.5 % point of Student's t with so many degrees of freedom, ≥ 1: within 0.0005 of the true one. */
double kedge_learn_t(uint32_t freedom);
/* Of n values, in binary64, summed in their order. */
struct kedge_learn_estimate kedge_learn_estimate_of(const double *values, size_t n);
/* Of the differences a[i] − b[i]. */
struct kedge_learn_estimate kedge_learn_difference_of(const double *a, const double *b, size_t n);

/* Summaries by variant, then seed: at[v * seeds + s]. */
struct kedge_learn_comparison {
    uint32_t variants, seeds;
    const char *const *names;
    const struct kedge_learn_summary *at;
};
/* Measure m of variant v: the estimate, and that of its difference from variant 0 (for which it is 0 ± 0). */
struct kedge_learn_estimate kedge_learn_compare(const struct kedge_learn_comparison *c, uint32_t v,
                                                enum kedge_learn_measure m);
struct kedge_learn_estimate kedge_learn_compare_first(const struct kedge_learn_comparison *c, uint32_t v,
                                                      enum kedge_learn_measure m);
/* {"name":…,"measures":{"accuracy_max":{"mean":…,"half":…,"difference":{"mean":…,"half":…}},…},"runs":[{…}]}
 * of variant v, the runs by seed. */
void kedge_learn_put_comparison(const struct kedge_learn_comparison *c, uint32_t v, struct kedge_buf *out);

#endif
