/* A tenant's order to erase an update's file. The statement of the update stays, since later entries rest
 * on its leaf; only the file goes. Replay and blobs ask here whether a file that is missing is missing by
 * order. */
#include "chain/audit/facts/erased.h"

#include <inttypes.h>

/* Asked for every update of every decision, so records without any order are answered at once. */
const struct kedgei_fact *kedgei_erased(const struct kedgei_audit *a, const struct kedgei_log *log,
                                        const struct kedge_hash *update)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    if (a->counts.statements[KEDGE_ST_ERASED] == 0) {
        return NULL;
    }
    kedge_hash_hex(update, hex);
    return kedgei_log_find(log, "erased/%s", hex);
}

/* The order must name an update that stands before it, or a coordinator could get rid of a file by an
 * order that was never about it. */
static void check_statement(struct kedgei_audit *a, const struct kedgei_log *log,
                            const struct kedgei_fact *fact)
{
    const struct kedge_st_erased *e = fact->body;
    const struct kedgei_fact *named = e->entry < fact->index ? kedgei_fact_at(log, e->entry) : NULL;
    if (!named || named->kind != KEDGE_ST_UPDATE || !kedge_hash_eq(&named->subject, &fact->subject)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_ERASED, log, fact->index,
                     "names entry %" PRIu64 ", which is no update before it of that file", e->entry);
    }
}

/* An update of an erased file that comes after the order would bring back what must be gone; and the
 * order has to name the first update of the file, so that there is one order for each. */
static void check_update(struct kedgei_audit *a, const struct kedgei_log *log, const struct kedgei_fact *fact)
{
    const struct kedgei_fact *by = kedgei_erased(a, log, &fact->subject);
    const struct kedge_st_erased *e = by ? by->body : NULL;
    if (by && fact->index > by->index) {
        kedgei_error(&a->findings, KEDGE_AUDIT_ERASED, log, fact->index,
                     "an update whose file was erased by entry %" PRIu64 " before", by->index);
    } else if (by && fact->index < e->entry) {
        kedgei_error(&a->findings, KEDGE_AUDIT_ERASED, log, by->index,
                     "names entry %" PRIu64 ", but the first update of that file is entry %" PRIu64, e->entry,
                     fact->index);
    }
}

void kedgei_check_erased(struct kedgei_audit *a)
{
    for (uint32_t t = 0; t < a->tenant_count && a->counts.statements[KEDGE_ST_ERASED] > 0; t++) {
        const struct kedgei_log *log = &a->tenants[t];
        for (uint64_t i = 0; i < log->count; i++) {
            const struct kedgei_fact *fact = kedgei_fact_at(log, i);
            if (fact->kind == KEDGE_ST_ERASED) {
                check_statement(a, log, fact);
            } else if (fact->kind == KEDGE_ST_UPDATE) {
                check_update(a, log, fact);
            }
        }
    }
}
