/* Updates that their tenant had erased. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_FACTS_ERASED_H
#define KEDGE_CHAIN_AUDIT_FACTS_ERASED_H

#include "chain/audit/record.h"

/* The statement of that log which says so, or NULL. */
const struct kedgei_fact *kedgei_erased(const struct kedgei_audit *a, const struct kedgei_log *log,
                                        const struct kedge_hash *update);
/* Each erased statement names an update before it, and no update comes behind it. */
void kedgei_check_erased(struct kedgei_audit *a);

#endif
