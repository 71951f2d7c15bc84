/* Who is whose, and what it is called: the engine deals the sites out to tenants, jobs know them by name.
 * Numbers have as many digits as the largest, so that names stand in the order of numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "job/task_seed.h"
#include "sim/learn/engine.h"

static const struct kedgei_names *sorting; /* qsort has no argument of its own; one thread sorts */

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint32_t s = sorting->tenant[x], t = sorting->tenant[y];
    return s != t ? (s < t ? -1 : 1) : sorting->number[x] < sorting->number[y] ? -1 : 1;
}

static uint32_t fewest(const uint32_t *counts, uint32_t tenants)
{
    uint32_t best = 0;
    for (uint32_t t = 1; t < tenants; t++) {
        best = counts[t] < counts[best] ? t : best;
    }
    return best;
}

int kedgei_names_init(struct kedgei_names *n, struct kedgei_learn *l)
{
    uint32_t counts[KEDGE_TENANTS_MAX] = {0}, most = 0;
    const uint32_t sites = l->n + (l->spec->job.rule->needs_root ? 1 : 0);
    *n = (struct kedgei_names){.job = &l->spec->job,
                               .sites = sites,
                               .tenant = kedge_mem_new(sites, sizeof *n->tenant),
                               .number = kedge_mem_new(sites, sizeof *n->number),
                               .order = kedge_mem_new(sites, sizeof *n->order)};
    if (!n->tenant || !n->number || !n->order) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for the names of %u sites", sites);
    }
    for (uint32_t i = 0; i < sites; i++) {
        n->order[i] = i;
        n->tenant[i] = i < l->n ? l->sites[i].tenant : fewest(counts, n->job->tenant_count);
        l->sites[i].tenant = n->tenant[i];
        n->number[i] = ++counts[n->tenant[i]];
        most = n->number[i] > most ? n->number[i] : most;
    }
    for (n->digits = 1; most >= 10; most /= 10) {
        n->digits++;
    }
    sorting = n;
    qsort(n->order, sites, sizeof *n->order, compare);
    return KEDGE_OK;
}

void kedgei_names_deinit(struct kedgei_names *n)
{
    kedge_mem_free(n->tenant);
    kedge_mem_free(n->number);
    kedge_mem_free(n->order);
}

void kedgei_names_tenant(const struct kedgei_names *n, uint32_t tenant, struct kedge_id *ret)
{
    *ret = n->job->tenants[tenant];
}

void kedgei_names_site(const struct kedgei_names *n, uint32_t site, struct kedge_id *ret)
{
    memset(ret, 0, sizeof *ret);
    (void)snprintf(ret->s, sizeof ret->s, "site-%0*u", n->digits, n->number[site]);
}

uint64_t kedgei_names_seed(const struct kedgei_names *n, uint32_t round, uint32_t site)
{
    struct kedge_id id;
    kedgei_names_site(n, site, &id);
    return kedge_task_seed(n->job->seed, round, &id);
}
