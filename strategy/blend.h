/* Weighted mean of whole models: where edges meet (hierarchical), where groups merge, where a new group takes
 * after those that its members come from. Binary64, models in ascending order, rounded to float once. Pure,
 * any thread. */
#ifndef KEDGE_STRATEGY_BLEND_H
#define KEDGE_STRATEGY_BLEND_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* out[i] = (Σ weight[k] · models[k][first + i]) / Σ weight, i < n, over the k with weight > 0; the other
 * pointers may be NULL. One such model is copied bit for bit. out may be models[k] + first. weight: samples
 * (edges) or members (groups). KEDGE_E_ARG: every weight is 0, or their sum is above 2^53. */
KEDGE_NODISCARD int kedge_blend_tile(const float *const *models, const uint64_t *weight, size_t count,
                                     size_t first, size_t n, float *out);

#endif
