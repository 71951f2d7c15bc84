/* The job spec: one JSON object that says everything which decides a job's models. Its bytes are a blob of
 * the main chain; job-opened and every tenant's job-joined name it by SHA-256. Strict: unknown keys, wrong
 * types and values out of range are errors that name the key. Parsing fills every field (defaults included).
 * Pure. DESIGN §7. */
#ifndef KEDGE_CHAIN_JOB_SPEC_H
#define KEDGE_CHAIN_JOB_SPEC_H

#include <stdint.h>

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/tensor/layout.h"
#include "common/tensor/model.h"
#include "crypto/hash.h"

enum { KEDGE_SPEC_TENANTS_MAX = 128, KEDGE_DATA_NAME_MAX = 63 };

enum kedge_grouping { KEDGE_GROUPING_NONE, KEDGE_GROUPING_FLEXCFL };
/* How a site finds out that its data are no longer those that it was grouped by (grouping/shift.h). */
enum kedge_shift_test { KEDGE_SHIFT_TEST_NONE, KEDGE_SHIFT_TEST_LABELS, KEDGE_SHIFT_TEST_COUNTS, KEDGE_SHIFT_TEST_UPDATE };

struct kedge_job_spec {
    struct kedge_id name;  /* required */
    uint32_t tenant_count; /* required, 1…128, ascending, no duplicates */
    struct kedge_id tenants[KEDGE_SPEC_TENANTS_MAX];
    uint64_t seed;                 /* decimal string, default "1" */
    struct kedge_model_spec model; /* required: {"preset":…} or {"layers":[…]} */
    bool has_initial_model;        /* initial weights by digest; else made from the seed */
    struct kedge_hash initial_model;
    char data[KEDGE_DATA_NAME_MAX + 1]; /* required: the name that each site binds to its own files */
    uint32_t rounds;                    /* required, 1…1,000,000 */
    uint32_t sites_per_round;           /* 0 = all, default 0 */
    uint32_t sites_min;                 /* default 1 */
    uint32_t quorum;                    /* default 1 */
    uint32_t local_epochs;              /* default 1 */
    uint32_t batch;                     /* default 10 */
    double learning_rate;               /* decimal string, default "0.01", > 0 */
    double l2;                          /* decimal string, default "0", ≥ 0 */
    enum kedge_grouping grouping;       /* "none" (default) or "flexcfl" */
    uint32_t groups;                    /* flexcfl: 2…16, required; else 1 */
    uint32_t pretrain_steps;            /* flexcfl: SGD iterations of a pre-training, default 50 */
    uint32_t pretrain_sites;            /* flexcfl: sites of the cold start, 0 = all, default 20 × groups */
    enum kedge_shift_test shift;        /* flexcfl: "labels" (default), "counts", "update", "none" */
    uint32_t migration_pause; /* rounds from one group of a site to its next, default 1; by updates 10 */
    double mixing;                      /* inter-group rate η_g, decimal string, default "0", 0…1000 */
    double bound;                       /* largest |value| of an update, decimal string, default "64" */
    unsigned scale;                     /* bits s of the fixed point, default 20, 1…30 */
    uint64_t weight_max;                /* largest sample count of an update, default 1,000,000 */
    uint32_t tenant_share_max; /* most of a group's weight that is one tenant's, in millionths: decimal
                                  string in (0, 1] of at most 6 places, default "1" = no cap; at least
                                  one part in as many as there are tenants. aggregation/share_cap.h */
    uint32_t evaluate_every;   /* rounds, 0 = never, default 1 */
    uint32_t round_timeout_s;  /* default 3600 */
};

/* Parses and checks text; *ret is written only on success. reterr names the key. KEDGE_E_FORMAT, _ARG,
 * _TOO_LONG. */
KEDGE_NODISCARD int kedge_job_spec_parse(struct kedge_view text, struct kedge_job_spec *ret,
                                         struct kedge_diag *reterr);
/* Names of the rules that the spec's rounds use: they stand in aggregate and step statements. */
extern const char KEDGE_RULE_FEDAVG[]; /* "fedavg/v1": weights = sample counts */
extern const char
    KEDGE_RULE_COLD_START[]; /* "flexcfl-cold-start/v1": plain mean of a group's pre-training updates */
/* The same two in a job with a cap on a tenant's share (aggregation/share_cap.h): "fedavg-capped/v1",
 * "flexcfl-cold-start-capped/v1". */
extern const char KEDGE_RULE_FEDAVG_CAPPED[], KEDGE_RULE_COLD_START_CAPPED[];
/* The rule of an aggregate of this job: of round 0 of a grouped job (cold_start) or of any other. */
const char *kedge_job_spec_aggregate_rule(const struct kedge_job_spec *spec, bool cold_start);
extern const char KEDGE_RULE_IDENTITY[]; /* step without mixing: "identity/v1" */
extern const char KEDGE_RULE_MIXING[];   /* "flexcfl-mixing/v1" */

#endif
