#include "chain/audit/facts/erased.h"

#include <inttypes.h>

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
