/* What sites are, as their tenants say, against what jobs need. A tenant's statements about one site are
 * numbered, so that none can be kept back; and a candidate of a round must have had what its job needs when
 * the round opened. The main chain tells that time only by the checkpoints around it: any set of labels
 * counts that was in force between them. That a site which has what a job needs is no candidate says nothing:
 * it may have been away. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"

static void check_number(struct kedgei_audit *a, const struct kedgei_log *log, const struct kedgei_fact *fact)
{
    const struct kedge_st_site_labels *l = fact->body;
    const struct kedgei_fact *before =
        l->number > 1 ? kedgei_log_find(log, "site-labels/%s/%08u", l->site.s, l->number - 1) : fact;
    if (!before || before->index > fact->index) {
        kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, log, fact->index,
                     "number %u of the labels of site \"%s\", without number %u before it", l->number,
                     l->site.s, l->number - 1);
    }
}

int kedgei_check_labels(struct kedgei_audit *a)
{
    for (uint32_t t = 0; t < a->tenant_count && a->counts.statements[KEDGE_ST_SITE_LABELS] > 0; t++) {
        const struct kedgei_log *log = &a->tenants[t];
        for (uint64_t i = 0; i < log->count; i++) {
            const struct kedgei_fact *fact = kedgei_fact_at(log, i);
            if (fact->kind == KEDGE_ST_SITE_LABELS) {
                check_number(a, log, fact);
            }
        }
    }
    return KEDGE_OK;
}

/* The first of the keys begin … end whose entry is not before that one, found by halves: numbers ascend with
 * their entries, or check_number has told. */
static size_t first_from(const struct kedgei_log *log, size_t begin, size_t end, uint64_t entry)
{
    while (begin < end) {
        const size_t mid = begin + (end - begin) / 2;
        if (kedgei_key_at(log, mid)->index < entry) {
            begin = mid + 1;
        } else {
            end = mid;
        }
    }
    return begin;
}

/* Had the site all these labels at a time when the log had some size from least on, below most? From the
 * newest on: only those that the time in question can have seen are looked at. */
static bool labels_were(const struct kedgei_log *log, const struct kedge_id *site, uint64_t least,
                        uint64_t most, struct kedge_view needs)
{
    char first[KEDGE_IDEM_KEY_MAX + 2], last[KEDGE_IDEM_KEY_MAX + 2];
    if (needs.len == 0) {
        return true;
    }
    snprintf(first, sizeof first, "site-labels/%s/", site->s);
    snprintf(last, sizeof last, "site-labels/%s0", site->s); /* what follows a slash */
    const size_t begin = kedgei_log_lower(log, kedge_view_str(first));
    const size_t end = kedgei_log_lower(log, kedge_view_str(last));
    for (size_t i = first_from(log, begin, end, most); i > begin; i--) {
        const struct kedgei_fact *fact = kedgei_fact_at(log, kedgei_key_at(log, i - 1)->index);
        const struct kedge_st_site_labels *l = fact->body;
        if (fact->kind != KEDGE_ST_SITE_LABELS || fact->index >= most) {
            continue;
        }
        if (kedge_labels_cover(kedge_view_str(l->labels), needs)) {
            return true;
        }
        if (fact->index < least) {
            return false;
        }
    }
    return false;
}

void kedgei_check_needs(const struct kedgei_audit *a, const struct kedgei_job *job,
                        const struct kedgei_log *log, const struct kedge_id *site, uint64_t at,
                        struct kedgei_findings *f)
{
    const char *needs = job->spec.needs.text;
    if (!labels_were(log, site, kedgei_anchored_before(log, at), kedgei_anchored_after(log, at),
                     kedge_view_str(needs))) {
        kedgei_error(f, KEDGE_AUDIT_CANDIDATE, &a->main, at,
                     "candidate \"%s\" of \"%s\" lacks what the job needs: %s", site->s, log->name, needs);
    }
}
