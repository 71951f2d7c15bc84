/* A cap on what one tenant weighs in an aggregate: rules "fedavg-capped/v1" and
 * "flexcfl-cold-start-capped/v2", defined in docs/record.md. In whole numbers, so that an auditor gets the
 * same weights. Pure, no heap, any thread. */
#ifndef KEDGE_AGGREGATION_SHARE_CAP_H
#define KEDGE_AGGREGATION_SHARE_CAP_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum {
    KEDGE_SHARE_ONE = 1000000,      /* a share of the whole, in millionths */
    KEDGE_SHARE_TENANTS_MAX = 128,  /* tenants of one aggregate */
    KEDGE_SHARE_INPUTS_MAX = 65536, /* inputs of one aggregate */
};
#define KEDGE_SHARE_WEIGHT_MAX (UINT64_C(1) << 43) /* of all inputs together */

struct kedge_share_input {
    uint32_t tenant; /* any number below KEDGE_SHARE_TENANTS_MAX, the same for all inputs of a tenant */
    uint64_t weight; /* in: at least 1; out: what it counts */
};

/* Lowers weights until no tenant has more than share_max (1…KEDGE_SHARE_ONE) of their sum, exactly; with
 * fewer tenants than that takes (share_max · tenants < 1), until all tenants have the same. Tenants below
 * keep their inputs' weights, up to one factor common to all inputs. Inputs of one tenant stand in the order
 * of their sites' names, which alone decides who gets the remainders of rounding; the order of tenants is
 * free. KEDGE_E_ARG: share_max or a weight is out of range, or a tenant; KEDGE_E_OVERFLOW: too many inputs or
 * more weight than KEDGE_SHARE_WEIGHT_MAX. Nothing is changed then. */
KEDGE_NODISCARD int kedge_share_cap(struct kedge_share_input *inputs, size_t count, uint32_t share_max);

#endif
