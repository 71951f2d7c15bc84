/* quota-set: what the operator lets a tenant have. Numbers of a tenant's quotas follow each other. Of what a
 * quota limits, the record shows how many sites were enrolled; how fast statements came, and how many tokens
 * were made, it does not show. */
#include "chain/audit/record.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* Of the main chain, in its order. */
struct quotas {
    const struct kedgei_fact **facts;
    size_t count;
};

static int list_quotas(const struct kedgei_log *main, struct quotas *ret)
{
    size_t count = 0;
    for (uint64_t i = 0; i < main->count; i++) {
        count += kedgei_fact_at(main, i)->kind == KEDGE_ST_QUOTA_SET;
    }
    ret->facts = kedge_mem_new(count + 1, sizeof(const struct kedgei_fact *));
    KEDGE_TRY_MEM(ret->facts);
    for (uint64_t i = 0; i < main->count; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(main, i);
        if (fact->kind == KEDGE_ST_QUOTA_SET) {
            ret->facts[ret->count++] = fact;
        }
    }
    return KEDGE_OK;
}

/* The tenant's next one from *io on, which becomes what follows it; NULL: there is none. */
static const struct kedgei_fact *next_quota(const struct quotas *quotas, const struct kedge_hash *id,
                                            size_t *io)
{
    while (*io < quotas->count) {
        const struct kedgei_fact *fact = quotas->facts[(*io)++];
        if (kedge_hash_eq(&((const struct kedge_st_quota_set *)fact->body)->id, id)) {
            return fact;
        }
    }
    return NULL;
}

/* How many of the tenant's ledger's entries were looked at, and how many sites they enrol. */
struct enrolled {
    uint64_t at;
    uint32_t sites;
};

/* An enrolment is judged by a quota when it surely came after it and before the next one: it is not covered
 * by the tenant's first checkpoint after the quota, and is covered by the last one before the next. What one
 * quota has gone past no later one judges. */
static void check_sites(struct kedgei_audit *a, const struct kedgei_log *log, const struct kedgei_fact *fact,
                        const struct kedgei_fact *next, struct enrolled *io)
{
    const struct kedge_st_quota_set *q = fact->body;
    const uint64_t from = kedgei_anchored_after(log, fact->index);
    const uint64_t to = next ? kedgei_anchored_before(log, next->index) : log->count;
    for (; io->at < to && io->at < log->count; io->at++) {
        if (kedgei_fact_at(log, io->at)->kind != KEDGE_ST_SITE_ENROLLED) {
            continue;
        }
        io->sites++;
        if (io->at >= from && q->sites > 0 && io->sites > q->sites) {
            kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, log, io->at, "site %u, where the quota is %u",
                         io->sites, q->sites);
        }
    }
}

static void check_tenant(struct kedgei_audit *a, const struct kedgei_log *log, const struct quotas *quotas)
{
    struct enrolled enrolled = {0, 0};
    size_t at = 0;
    const struct kedgei_fact *fact = next_quota(quotas, &log->salted, &at), *next = NULL;
    for (uint64_t number = 1; fact; number++, fact = next) {
        const struct kedge_st_quota_set *q = fact->body;
        next = next_quota(quotas, &log->salted, &at);
        if (q->number != number) {
            kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, &a->main, fact->index,
                         "quota %llu of \"%s\", expected number %llu", (unsigned long long)q->number,
                         log->name, (unsigned long long)number);
        }
        check_sites(a, log, fact, next, &enrolled);
    }
}

int kedgei_check_quotas(struct kedgei_audit *a)
{
    struct quotas quotas = {NULL, 0};
    KEDGE_TRY(list_quotas(&a->main, &quotas));
    for (uint32_t t = 0; t < a->tenant_count && quotas.count > 0; t++) {
        check_tenant(a, &a->tenants[t], &quotas);
    }
    kedge_mem_free(quotas.facts);
    return KEDGE_OK;
}
