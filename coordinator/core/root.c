/* A job whose rule judges updates by one site's, the root of trust: that site is one of the selected in every
 * round, a round does not open while it is away and does not close without its update. Otherwise who can
 * silence one machine could switch the rule off. */
#include <string.h>

#include "coordinator/core/core.h"

static int compare_root(const struct kedge_coord *c, const struct job *j, uint32_t site)
{
    const struct site *s = &c->sites[site];
    int by_tenant = kedge_id_cmp(&c->tenants[j->params.root_tenant].id, &c->tenants[s->tenant].id);
    return by_tenant != 0 ? by_tenant : kedge_id_cmp(&j->params.root_site, &s->id);
}

uint32_t kedgei_root_find(const struct kedge_coord *c, const struct job *j)
{
    uint32_t lo = 0, hi = c->site_count;
    while (lo < hi) { /* the order is by (tenant, site) */
        uint32_t mid = lo + (hi - lo) / 2;
        int at = compare_root(c, j, c->order[mid]);
        if (at == 0) {
            return c->order[mid];
        }
        lo = at > 0 ? mid + 1 : lo;
        hi = at > 0 ? hi : mid;
    }
    return KEDGE_COORD_NONE;
}

bool kedgei_root_is_there(const struct kedge_coord *c, const struct job *j)
{
    uint32_t site = j->params.has_root ? kedgei_root_find(c, j) : KEDGE_COORD_NONE;
    return !j->params.has_root
           || (site != KEDGE_COORD_NONE && kedgei_is_member(c, j, site)
               && c->sites[site].presence == PRESENCE_ONLINE);
}

bool kedgei_root_is_in(const struct kedge_coord *c, const struct job *j)
{
    uint32_t site = j->params.has_root ? kedgei_root_find(c, j) : KEDGE_COORD_NONE;
    return !j->params.has_root || (site != KEDGE_COORD_NONE && j->rows[site].accepted);
}

/* ---- the selection rule ---- */

void kedge_coord_pick_root(uint64_t seed, uint32_t round, uint32_t count, uint32_t root, uint32_t k,
                           uint32_t *scratch, uint32_t *ret_picks)
{
    KEDGE_ASSERT(root < count && k >= 1 && k <= count);
    ret_picks[k - 1] = root;
    if (k > 1) {
        kedge_coord_pick(seed, round, count - 1, k - 1, scratch, ret_picks);
    }
    for (uint32_t i = 0; i + 1 < k; i++) {
        ret_picks[i] += ret_picks[i] >= root; /* the others close the gap that it leaves */
    }
}

void kedge_coord_select_root(uint64_t seed, uint32_t round, uint32_t count, uint32_t root, uint32_t k,
                             uint32_t *scratch, bool *ret_selected)
{
    KEDGE_ASSERT(root < count);
    bool all = k == 0 || k >= count;
    if (all || k == 1) {
        memset(ret_selected, all, count * sizeof *ret_selected);
    } else {
        kedge_coord_select(seed, round, count - 1, k - 1, scratch, ret_selected);
        memmove(ret_selected + root + 1, ret_selected + root, (count - 1 - root) * sizeof *ret_selected);
    }
    ret_selected[root] = true;
}
