/* What `kedge job plan` is asked: a setting and devices, as JSON. */
#ifndef KEDGE_CLI_JOB_PLAN_SPEC_H
#define KEDGE_CLI_JOB_PLAN_SPEC_H

#include "common/base/bytes.h"
#include "coordinator/plan/plan.h"

enum { KEDGE_CLI_PLAN_BYTES_MAX = 1 << 20, KEDGE_CLI_PLAN_DEVICES_MAX = 10000 };

struct kedge_cli_plan {
    struct kedge_plan_setting setting;
    double anchor_cost;                /* in units of reward; 0: no anchors */
    struct kedge_plan_device *devices; /* freed with kedge_mem_free */
    uint32_t count;
};

/* Keys that are absent have the value of the published setting. KEDGE_E_FORMAT or KEDGE_E_ARG with the key
 * named, KEDGE_E_NOMEM; ret is written only on success. */
KEDGE_NODISCARD int kedge_cli_plan_parse(struct kedge_view json, struct kedge_cli_plan *ret,
                                         struct kedge_diag *reterr);

#endif
