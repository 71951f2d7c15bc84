/* Matching: best[mask] = most sites kept by clusters c … last when the slots of mask are taken by the
 * clusters before c = popcount(mask). From full masks down; then slots are read off in cluster order, the
 * lowest that keeps the best. */
#include "grouping/merge.h"

#include <string.h>

#include "common/base/mem.h"
#include "grouping/distance.h"
#include "grouping/flexcfl.h"
#include "grouping/linkage.h"

int kedge_merge(const double *cosine, size_t groups, double threshold, uint32_t *into, size_t *ret_groups)
{
    if (groups == 0 || groups > KEDGE_GROUPS_MAX) {
        return KEDGE_E_ARG;
    }
    double distance[KEDGE_GROUPS_MAX * KEDGE_GROUPS_MAX];
    uint32_t cluster[KEDGE_GROUPS_MAX];
    for (size_t i = 0; i < groups; i++) {
        for (size_t j = 0; j < groups; j++) { /* only pairs strictly above the threshold may join */
            double c = cosine[i * groups + j];
            distance[i * groups + j] = c > threshold ? 1.0 - c : 4.0;
        }
    }
    const struct kedge_linkage_cut cut = {.least = 1, .most = groups, .cut = 3.0};
    size_t left = 0;
    int err = kedge_linkage(distance, groups, KEDGE_LINKAGE_COMPLETE, &cut, cluster, &left);
    for (size_t i = 0; i < groups && !err; i++) {
        size_t first = 0;
        while (cluster[first] != cluster[i]) { /* at most i */
            first++;
        }
        into[i] = (uint32_t)first;
    }
    if (!err) {
        *ret_groups = left;
    }
    return err;
}

struct matching {
    uint64_t overlap[KEDGE_GROUPS_MAX][KEDGE_GROUPS_MAX]; /* cluster, slot */
    size_t clusters, slots;
    uint64_t *best; /* 2^slots */
};

static size_t count_bits(uint32_t mask)
{
    size_t bits = 0;
    for (; mask != 0; mask &= mask - 1) {
        bits++;
    }
    return bits;
}

static uint64_t with_slot(const struct matching *m, uint32_t mask, size_t cluster, size_t slot)
{
    return m->overlap[cluster][slot] + m->best[mask | UINT32_C(1) << slot];
}

static void fill_best(struct matching *m)
{
    for (uint32_t mask = UINT32_C(1) << m->slots; mask-- > 0;) { /* a mask with one more is larger */
        size_t c = count_bits(mask);
        m->best[mask] = 0;
        for (size_t slot = 0; slot < m->slots && c < m->clusters; slot++) {
            if ((mask >> slot & 1) == 0) {
                uint64_t kept = with_slot(m, mask, c, slot);
                m->best[mask] = kept > m->best[mask] ? kept : m->best[mask];
            }
        }
    }
}

static void read_slots(const struct matching *m, uint32_t *slot)
{
    uint32_t mask = 0;
    for (size_t c = 0; c < m->clusters; c++) {
        size_t s = 0;
        while ((mask >> s & 1) != 0 || with_slot(m, mask, c, s) != m->best[mask]) {
            s++;
            KEDGE_ASSERT(s < m->slots);
        }
        slot[c] = (uint32_t)s;
        mask |= UINT32_C(1) << s;
    }
}

int kedge_match(const uint32_t *then, const uint32_t *now, size_t sites, size_t clusters, size_t slots,
                uint32_t *slot, size_t *ret_kept)
{
    struct matching m = {.clusters = clusters, .slots = slots};
    if (clusters == 0 || clusters > slots || slots > KEDGE_GROUPS_MAX) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < sites; i++) {
        if ((then[i] != KEDGE_GROUP_NONE && then[i] >= slots)
            || (now[i] != KEDGE_GROUP_NONE && now[i] >= clusters)) {
            return KEDGE_E_ARG;
        }
        if (then[i] != KEDGE_GROUP_NONE && now[i] != KEDGE_GROUP_NONE) {
            m.overlap[now[i]][then[i]]++;
        }
    }
    m.best = kedge_mem_new((size_t)1 << slots, sizeof *m.best);
    if (!m.best) {
        return KEDGE_E_NOMEM;
    }
    fill_best(&m);
    read_slots(&m, slot);
    if (ret_kept) {
        *ret_kept = (size_t)m.best[0];
    }
    kedge_mem_free(m.best);
    return KEDGE_OK;
}
