/* Inside the files of rules: what the rows share. */
#ifndef KEDGE_AGGREGATION_RULE_RULE_IMPL_H
#define KEDGE_AGGREGATION_RULE_RULE_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "aggregation/rule/rule.h"

#define KEDGEI_RULE_NORM_SQ_MAX 0x1p102 /* 2^40 values of 2^31 */

/* f: whole votes that may be bad among `votes` (units of 2^-20). */
uint64_t kedgei_rule_bad(const struct kedge_rule_params *params, uint64_t votes);
uint64_t kedgei_rule_sum(const uint64_t *weight, size_t count);

/* ---- distances: rule_distance.c ---- */

/* Inner products in units of the values, of `all` updates: matrix[i · all + j] = G_ij · (s_i · s_j), s_i =
 * max_i / 2047; on the diagonal norm_sq[i], or what the 12 bits show if that is more. */
void kedgei_rule_products(const struct kedge_rule_inputs *inputs, size_t all, double *matrix);
/* Turns them into squared distances (P_ii + P_jj) − 2 · P_ij, at least 0; 0 on the diagonal. What rounding to
 * 12 bits hides of an update is missing from the products but not from the lengths, so that hiding makes no
 * update look nearer to one at right angles to what it hides. */
void kedgei_rule_distances(double *matrix, size_t all);

/* The least value that half of the weight does not exceed: the lower median; order[count] is scratch. */
double kedgei_rule_median(const double *value, const uint64_t *weight, size_t count, uint16_t *order);
/* order = 0 … count − 1 by ascending value, equal ones by index. */
void kedgei_rule_sort(const double *value, size_t count, uint16_t *order);

/* ---- rows ---- */

kedge_rule_weigh_fn kedgei_rule_krum, kedgei_rule_multi_krum, kedgei_rule_bulyan; /* rule_krum.c */
kedge_rule_weigh_fn kedgei_rule_centre;                                           /* rule_centre.c */
kedge_rule_weigh_fn kedgei_rule_clip, kedgei_rule_root;                           /* rule_length.c */

#endif
