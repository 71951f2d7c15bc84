/* What a state folder once had and has no more, or has in a form that nothing can use: no log's own check can
 * tell that the log is gone. */
#ifndef KEDGE_CLI_LEDGER_FSCK_GAPS_H
#define KEDGE_CLI_LEDGER_FSCK_GAPS_H

#include <stdbool.h>

#include "common/base/diag.h"

struct kedge_fsck_gap {
    const char *log; /* a tenant's name, or "coordinator" */
    bool is_damage;  /* a record is gone; else what the coordinator alone needs */
    const char *where, *text, *mend;
};
/* What is passed is valid during the call only. */
typedef void kedge_fsck_tell_gap(void *arg, const struct kedge_fsck_gap *gap);

/* Told by the high-water marks, which lie apart from the logs: tenants whose folder or tenant.json is gone,
 * and the coordinator's own store. A tenant.add that a crash interrupted is none. */
KEDGE_NODISCARD int kedge_fsck_gaps(const char *state, kedge_fsck_tell_gap *tell, void *arg,
                                    struct kedge_diag *reterr);

#endif
