/* What others saw of the logs and what holds: of each log and source that which proves most. */
#include <stdio.h>

#include "chain/audit/record.h"
#include "common/base/mem.h"

/* One row for each log and source: what covers more entries makes the smaller claims of the same source
 * superfluous. */
void kedgei_add_evidence(struct kedgei_audit *a, const struct kedgei_log *log, uint64_t size,
                         enum kedge_audit_source source, const char *from)
{
    uint32_t number = log == &a->main ? 0 : (uint32_t)(log - a->tenants) + 1;
    struct kedge_audit_evidence *e = NULL;
    if (size == 0) { /* of an empty log: says nothing */
        return;
    }
    for (uint32_t i = 0; i < a->evidence_count && !e; i++) {
        struct kedge_audit_evidence *row = &a->evidence[i];
        e = row->log == number && row->source == source ? row : NULL;
    }
    if (!e) {
        e = kedge_mem_resize(a->evidence, (size_t)a->evidence_count + 1, sizeof *e);
        if (!e) {
            a->findings.nomem = true;
            return;
        }
        a->evidence = e;
        e = &a->evidence[a->evidence_count++];
        *e = (struct kedge_audit_evidence){.log = number, .source = source};
    }
    if (size > e->size) {
        e->size = size;
        snprintf(e->from, sizeof e->from, "%s", from);
    }
}
