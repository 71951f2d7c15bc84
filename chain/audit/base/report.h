/* Collecting findings: bounded, mergeable, so that parallel tasks report in a fixed order. Internal to this
 * room. */
#ifndef KEDGE_CHAIN_AUDIT_BASE_REPORT_H
#define KEDGE_CHAIN_AUDIT_BASE_REPORT_H

#include <stdarg.h>

#include "chain/audit/audit.h"

/* All zero is empty. */
struct kedgei_findings {
    struct kedge_audit_finding *items; /* owned */
    uint32_t count;
    size_t cap;
    uint64_t errors, notes; /* all that were met */
    uint32_t errors_kept, notes_kept;
    uint32_t kept[KEDGE_AUDIT_CODE_COUNT]; /* by code, of both severities */
    bool nomem;                            /* a finding could not be kept: the audit fails as a whole */
};

/* A finding about a file or place. `where` is copied. */
void kedgei_find(struct kedgei_findings *f, enum kedge_audit_severity severity, enum kedge_audit_code code,
                 const char *where, const char *format, ...) KEDGE_PRINTF(5, 6);
void kedgei_find_v(struct kedgei_findings *f, enum kedge_audit_severity severity, enum kedge_audit_code code,
                   const char *where, const char *format, va_list ap);
/* Moves what src holds behind what dst holds; src is empty afterwards. */
void kedgei_findings_move(struct kedgei_findings *dst, struct kedgei_findings *src);
void kedgei_findings_deinit(struct kedgei_findings *f);

#endif
