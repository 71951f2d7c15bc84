/* A tenant's replica, or another copy that does not hold everything: what cannot be checked is counted where
 * it is met and told once. */
#include "chain/audit/record.h"

bool kedgei_holds(const struct kedgei_audit *a, const struct kedge_id *tenant)
{
    bool found = a->options.tenant_count == 0;
    for (size_t i = 0; i < a->options.tenant_count && !found; i++) {
        found = kedge_id_eq(&a->options.tenants[i], tenant);
    }
    return found;
}

bool kedgei_job_names(const struct kedgei_job *job, const struct kedge_hash *salted)
{
    const struct kedge_st_job_opened *o = job->opened->body;
    bool found = false;
    for (uint32_t i = 0; i < o->tenant_count && !found; i++) {
        found = kedge_hash_eq(&o->tenants[i], salted);
    }
    return found;
}

bool kedgei_job_whole(const struct kedgei_job *job)
{
    bool whole = true;
    for (uint32_t i = 0; i < job->spec.tenant_count; i++) {
        whole = whole && job->tenants[i] != UINT32_MAX;
    }
    return whole;
}

/* Told once with a count, at the end: hundreds of notes of one kind would bury what was found. What a
 * partial copy cannot show must be said all the same, or "yes" would claim too much. */
void kedgei_tell_skipped(struct kedgei_audit *a)
{
    if (!a->skipped) {
        return;
    }
    const struct {
        uint64_t count;
        const char *where, *text;
    } rows[] = {
        {a->skipped->withheld, "main", "entries that are withheld from this copy; the tree has their hashes"},
        {a->skipped->anchors, "main", "checkpoints of tenants whose ledgers are not here"},
        {a->skipped->approvals, "main", "approvals by organisations, whose ledgers are not all here"},
        {a->skipped->specs, "main/blobs", "job specs that are not here, and what follows from them"},
        {a->skipped->lists, "tenants", "input lists of tenants or of files that are not here"},
        {a->skipped->blobs, "blobs", "files that statements name and this copy does not hold"},
        {a->skipped->models, "models", "released models that are not here"},
        {a->skipped->decisions, "replay", "decisions over inputs that are not here"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].count > 0) {
            kedgei_find(&a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_NOT_CHECKED, rows[i].where,
                        "not checked: %llu %s", (unsigned long long)rows[i].count, rows[i].text);
        }
    }
    for (uint32_t i = 0; a->trust && i < a->trust->tenant_count; i++) {
        if (!kedgei_holds(a, &a->trust->tenants[i].tenant)) {
            kedgei_find(&a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_NOT_CHECKED, "tenants",
                        "not checked: the ledger of \"%s\" is not here", a->trust->tenants[i].tenant.s);
        }
    }
}
