/* Which findings can follow from which. One changed byte of an entry makes its signature, every later
 * checkpoint, the other log's anchors of it and what was computed from it wrong: a reader needs the first of
 * these, and how many others it explains. That one finding can follow from another says no more than that:
 * what is listed under a cause is judged anew once the cause is mended. */
#ifndef KEDGE_CHAIN_AUDIT_BASE_CAUSES_H
#define KEDGE_CHAIN_AUDIT_BASE_CAUSES_H

#include "chain/audit/audit.h"

/* For every finding of the report the one from which it can follow, or its own index where there is none: the
 * cause of a cause is always itself. `ret_cause` has room for finding_count. Notes have no causes. */
void kedge_audit_causes(const struct kedge_audit_report *report, uint32_t *ret_cause);

/* The findings of one severity, causes only: calls put(arg, finding, text) for each, with what follows from
 * it as a text such as "7 findings can follow from this: 4 head, 3 checkpoint", which is empty where nothing
 * does. `cause` is what kedge_audit_causes gave. */
typedef void kedge_audit_put_cause(void *arg, const struct kedge_audit_finding *finding, const char *follows);
void kedge_audit_each_cause(const struct kedge_audit_report *report, const uint32_t *cause,
                            enum kedge_audit_severity severity, kedge_audit_put_cause *put, void *arg);

#endif
