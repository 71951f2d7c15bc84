/* Who is whose, and what it is called: the engine deals the sites out to tenants, jobs know them by name.
 * Numbers have as many digits as the largest, so that names stand in the order of numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "sim/protocol/impl.h"

enum { LETTERS = 26 };

static const struct kedgei_names *sorting; /* qsort has no argument of its own; one thread sorts */

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint32_t s = sorting->tenant[x], t = sorting->tenant[y];
    return s != t ? (s < t ? -1 : 1) : sorting->number[x] < sorting->number[y] ? -1 : 1;
}

int kedgei_names_init(struct kedgei_names *n, const struct kedgei_learn *l)
{
    uint32_t counts[KEDGE_TENANTS_MAX] = {0}, most = 0;
    *n = (struct kedgei_names){.tenants = l->spec->tenants,
                               .tenant = kedge_mem_new(l->n, sizeof *n->tenant),
                               .number = kedge_mem_new(l->n, sizeof *n->number),
                               .order = kedge_mem_new(l->n, sizeof *n->order)};
    if (!n->tenant || !n->number || !n->order) {
        kedgei_names_deinit(n);
        return KEDGE_E_NOMEM;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        n->order[i] = i;
        n->tenant[i] = l->sites[i].tenant;
        n->number[i] = ++counts[n->tenant[i]];
        most = n->number[i] > most ? n->number[i] : most;
    }
    for (n->digits = 1; most >= 10; most /= 10) {
        n->digits++;
    }
    sorting = n;
    qsort(n->order, l->n, sizeof *n->order, compare);
    return KEDGE_OK;
}

void kedgei_names_deinit(struct kedgei_names *n)
{
    kedge_mem_free(n->tenant);
    kedge_mem_free(n->number);
    kedge_mem_free(n->order);
    *n = (struct kedgei_names){.tenants = 0};
}

void kedgei_names_tenant(const struct kedgei_names *n, uint32_t tenant, struct kedge_id *ret)
{
    memset(ret, 0, sizeof *ret);
    if (n->tenants <= LETTERS) {
        (void)snprintf(ret->s, sizeof ret->s, "org-%c", (char)('a' + tenant));
    } else {
        (void)snprintf(ret->s, sizeof ret->s, "org-%04u", tenant);
    }
}

void kedgei_names_site(const struct kedgei_names *n, uint32_t site, struct kedge_id *ret)
{
    memset(ret, 0, sizeof *ret);
    (void)snprintf(ret->s, sizeof ret->s, "site-%0*u", n->digits, n->number[site]);
}
