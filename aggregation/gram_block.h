/* The block of exact inner products, written once for the x86 vector kernels and compiled once per width: six
 * vectors of a by two of b, KEDGEI_GRAM_WIDTH values a step. A file includes it behind its own load(),
 * sum_lanes() and add_product(), with KEDGEI_GRAM_TARGET (attribute), KEDGEI_GRAM_NAME (of the function),
 * KEDGEI_GRAM_VECTOR (type), KEDGEI_GRAM_WIDTH (int16 values in one) and KEDGEI_GRAM_ZERO. */
#ifndef KEDGE_AGGREGATION_GRAM_BLOCK_H
#define KEDGE_AGGREGATION_GRAM_BLOCK_H

#include "aggregation/gram_impl.h"

#ifdef KEDGEI_GRAM_WIDTH /* in one of gram_avx*.c */

/* Variables, not an array: an array would live in memory. */
KEDGEI_GRAM_TARGET void KEDGEI_GRAM_NAME(const int16_t *a, const int16_t *b, size_t n,
                                         int64_t cells[KEDGEI_GRAM_CELLS])
{
    const size_t stride = KEDGEI_GRAM_STRIDE;
    KEDGEI_GRAM_VECTOR s00 = KEDGEI_GRAM_ZERO, s10 = s00, s20 = s00, s30 = s00, s40 = s00, s50 = s00;
    KEDGEI_GRAM_VECTOR s01 = s00, s11 = s00, s21 = s00, s31 = s00, s41 = s00, s51 = s00;
    for (size_t i = 0; i < n; i += KEDGEI_GRAM_WIDTH, a += KEDGEI_GRAM_WIDTH, b += KEDGEI_GRAM_WIDTH) {
        const KEDGEI_GRAM_VECTOR b0 = load(b);
        const KEDGEI_GRAM_VECTOR b1 = load(b + stride);
        KEDGEI_GRAM_VECTOR v = load(a);
        add_product(v, b0, &s00);
        add_product(v, b1, &s01);
        v = load(a + stride);
        add_product(v, b0, &s10);
        add_product(v, b1, &s11);
        v = load(a + 2 * stride);
        add_product(v, b0, &s20);
        add_product(v, b1, &s21);
        v = load(a + 3 * stride);
        add_product(v, b0, &s30);
        add_product(v, b1, &s31);
        v = load(a + 4 * stride);
        add_product(v, b0, &s40);
        add_product(v, b1, &s41);
        v = load(a + 5 * stride);
        add_product(v, b0, &s50);
        add_product(v, b1, &s51);
    }
    const KEDGEI_GRAM_VECTOR sums[KEDGEI_GRAM_CELLS] = {s00, s01, s10, s11, s20, s21,
                                                        s30, s31, s40, s41, s50, s51};
    for (size_t k = 0; k < KEDGEI_GRAM_CELLS; k++) {
        cells[k] = sum_lanes(sums[k]);
    }
}

#endif
#endif
