/* Distances between n things as an n × n matrix, symmetric, zero diagonal, binary64 in a fixed order. What
 * linkage.h and quality.h take. Pure, no heap, any thread. */
#ifndef KEDGE_GROUPING_DISTANCE_H
#define KEDGE_GROUPING_DISTANCE_H

#include <stddef.h>

/* 1 − C_ij, at least 0. cosine: n × n (kedge_gram_cosine); may be distance itself. */
void kedge_distance_cosine(const double *cosine, size_t n, double *distance);
/* MADC (FlexCFL): 1/(n−2) · Σ_{z≠i,j} |C_iz − C_jz|, z ascending; 1 − C_ij for n = 2. Not the same array. */
void kedge_distance_madc(const double *cosine, size_t n, double *distance);
/* Euclidean, of rows of dims. */
void kedge_distance_points(const double *points, size_t n, size_t dims, double *distance);

#endif
