/* Matching: the most sites keep theirs where prices of clusters and slots, found by shortest augmenting paths
 * (the Hungarian method), leave no pair better than its prices. A choice is one of the best exactly where all
 * its pairs are worth their prices, so among these pairs the lexicographically least choice is looked for. */
#include "grouping/merge.h"

#include "common/base/try.h"
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
    KEDGE_TRY(kedge_linkage(distance, groups, KEDGE_LINKAGE_COMPLETE, &cut, cluster, &left));
    for (size_t i = 0; i < groups; i++) {
        size_t first = 0;
        while (cluster[first] != cluster[i]) { /* at most i */
            first++;
        }
        into[i] = (uint32_t)first;
    }
    *ret_groups = left;
    return KEDGE_OK;
}

/* Slots without a cluster are those of clusters without sites, behind all others: so every slot has one. */
struct matching {
    int64_t overlap[KEDGE_GROUPS_MAX][KEDGE_GROUPS_MAX]; /* cluster, slot */
    size_t slots;
    int64_t cluster_price[KEDGE_GROUPS_MAX], slot_price[KEDGE_GROUPS_MAX]; /* sums are at least the overlap */
    size_t slot_of[KEDGE_GROUPS_MAX], cluster_of[KEDGE_GROUPS_MAX];        /* cluster_of: `slots`, none yet */
};

static int64_t slack(const struct matching *m, size_t cluster, size_t slot)
{
    return m->cluster_price[cluster] + m->slot_price[slot] - m->overlap[cluster][slot];
}

/* Along the path by which a slot was reached each cluster takes the slot after it. before[slot]: the slot
 * before it on the path, `slots` where it is the first one, which `cluster` takes. */
static void take_path(struct matching *m, size_t cluster, const size_t *before, size_t slot)
{
    while (slot < m->slots) {
        const size_t from = before[slot];
        const size_t taker = from < m->slots ? m->cluster_of[from] : cluster;
        m->cluster_of[slot] = taker;
        m->slot_of[taker] = slot;
        slot = from;
    }
}

/* A slot for one more cluster: the shortest way by slacks to a free one, over clusters that move on. Prices
 * change by what is left of the way, so that they stay prices. */
static void add_cluster(struct matching *m, size_t cluster)
{
    int64_t way[KEDGE_GROUPS_MAX];
    size_t before[KEDGE_GROUPS_MAX], last = m->slots, at = cluster;
    bool is_reached[KEDGE_GROUPS_MAX] = {false};
    int64_t so_far = 0;
    for (size_t s = 0; s < m->slots; s++) {
        way[s] = INT64_MAX;
        before[s] = last;
    }
    do {
        size_t next = m->slots;
        for (size_t s = 0; s < m->slots; s++) {
            if (is_reached[s]) {
                continue;
            }
            const int64_t by = so_far + slack(m, at, s);
            if (by < way[s]) {
                way[s] = by;
                before[s] = last;
            }
            next = next == m->slots || way[s] < way[next] ? s : next;
        }
        KEDGE_ASSERT(next < m->slots);
        so_far = way[next];
        is_reached[next] = true;
        last = next;
        at = m->cluster_of[next];
    } while (at < m->slots);
    m->cluster_price[cluster] -= so_far;
    for (size_t s = 0; s < m->slots; s++) {
        if (is_reached[s] && s != last) {
            m->cluster_price[m->cluster_of[s]] -= so_far - way[s];
            m->slot_price[s] += so_far - way[s];
        }
    }
    take_path(m, cluster, before, last);
}

static void find_best(struct matching *m)
{
    for (size_t i = 0; i < m->slots; i++) {
        m->cluster_of[i] = m->slots;
        m->slot_price[i] = 0;
        m->cluster_price[i] = 0;
        for (size_t s = 0; s < m->slots; s++) {
            m->cluster_price[i] =
                m->overlap[i][s] > m->cluster_price[i] ? m->overlap[i][s] : m->cluster_price[i];
        }
    }
    for (size_t i = 0; i < m->slots; i++) {
        add_cluster(m, i);
    }
}

/* The cluster takes the slot if the one that has it, and any that has to move for that one, find others that
 * are worth their prices, as far as to the slot that the cluster leaves. Clusters before it stay. */
static bool can_take(struct matching *m, size_t cluster, size_t slot)
{
    size_t before[KEDGE_GROUPS_MAX], queue[KEDGE_GROUPS_MAX], count = 0;
    bool is_reached[KEDGE_GROUPS_MAX] = {false};
    const size_t left = m->slot_of[cluster];
    for (size_t s = 0; s < m->slots; s++) {
        before[s] = m->slots;
    }
    queue[count++] = slot;
    is_reached[slot] = true;
    for (size_t k = 0; k < count && !is_reached[left]; k++) {
        const size_t mover = m->cluster_of[queue[k]];
        for (size_t s = 0; s < m->slots; s++) {
            if (!is_reached[s] && m->cluster_of[s] >= cluster && slack(m, mover, s) == 0) {
                is_reached[s] = true;
                before[s] = queue[k];
                queue[count++] = s;
            }
        }
    }
    if (is_reached[left]) {
        take_path(m, cluster, before, left);
    }
    return is_reached[left];
}

/* Clusters in order, each with the lowest slot that leaves the rest a best choice. */
static void lower_slots(struct matching *m, size_t clusters)
{
    for (size_t c = 0; c < clusters; c++) {
        for (size_t s = 0; s < m->slot_of[c]; s++) {
            if (m->cluster_of[s] > c && slack(m, c, s) == 0 && can_take(m, c, s)) {
                break;
            }
        }
    }
}

int kedge_match(const uint32_t *then, const uint32_t *now, size_t sites, size_t clusters, size_t slots,
                uint32_t *slot, size_t *ret_kept)
{
    struct matching m = {.slots = slots};
    size_t kept = 0;
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
    find_best(&m);
    lower_slots(&m, clusters);
    for (size_t c = 0; c < clusters; c++) {
        slot[c] = (uint32_t)m.slot_of[c];
        kept += (size_t)m.overlap[c][m.slot_of[c]];
    }
    if (ret_kept) {
        *ret_kept = kept;
    }
    return KEDGE_OK;
}
