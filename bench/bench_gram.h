/* Speed of the exact Gram matrix beside a BLAS, and of grouping beside the Gram products alone. One thread.
 */
#ifndef KEDGE_BENCH_BENCH_GRAM_H
#define KEDGE_BENCH_BENCH_GRAM_H

#include <stdbool.h>

/* 10^9 multiply-adds per second, the best of several turns: all that a Gram matrix takes (largest values,
 * scaling, products), counted on the products of the upper triangle; its products alone; OpenBLAS's sgemm for
 * the same matrix in float, both triangles counted; its ssyrk, one counted. KEDGE_E_NOT_FOUND: there is no
 * libopenblas. */
struct kedge_bench_gram {
    double gram, products, sgemm, ssyrk;
};
int kedge_bench_gram(struct kedge_bench_gram *ret);

/* Seconds of processor time, the best of several turns: grouping by FlexCFL of 100 updates of 45 MB from
 * their integers to groups, and the Gram products alone over as many coordinates, scaled before. *ret_right:
 * the planted groups were found. KEDGE_E_NOMEM: less than 8 GB of memory are free. */
struct kedge_bench_grouping {
    double grouping, products;
    bool right;
};
int kedge_bench_grouping(struct kedge_bench_grouping *ret);

#endif
