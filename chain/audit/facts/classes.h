/* Jobs that learn the names of their classes: what the step of that round states against what the updates in
 * its lists state. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_FACTS_CLASSES_H
#define KEDGE_CHAIN_AUDIT_FACTS_CLASSES_H

#include "chain/audit/record.h"

/* Of a round whose lists have been looked at. incomplete: some of them are not in this copy, so that the step
 * may name more than is seen here. */
void kedgei_check_classes(const struct kedgei_audit *a, const struct kedgei_job *job,
                          const struct kedgei_round *round, bool incomplete, struct kedgei_findings *f);

#endif
