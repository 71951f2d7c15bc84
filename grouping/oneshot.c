#include "grouping/oneshot.h"

#include <math.h>

#include "aggregation/gram.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "grouping/distance.h"
#include "grouping/flexcfl.h"
#include "grouping/linkage.h"

/* Cosines of the updates that have a direction; index[a] is the place of the a-th among all. */
static double *make_distance(const int64_t *gram, const uint32_t *maxima, size_t count, size_t *index,
                             size_t *ret_n)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (maxima[i] != 0 && gram[i * count + i] > 0) {
            index[n++] = i;
        }
    }
    *ret_n = n;
    double *distance = kedge_mem_new(n ? n * n : 1, sizeof *distance);
    for (size_t a = 0; distance && a < n; a++) {
        const double own = sqrt((double)gram[index[a] * count + index[a]]);
        for (size_t b = a + 1; b < n; b++) {
            const double other = sqrt((double)gram[index[b] * count + index[b]]);
            distance[a * n + b] = ((double)gram[index[a] * count + index[b]] / own) / other;
        }
    }
    if (distance) {
        kedge_distance_cosine(distance, n, distance);
    }
    return distance;
}

/* FedClust (Islam et al., ICPP 2024): average linkage, joined while the distance is at most `link`. Where
 * that leaves more than `most` groups, joining goes on until there are so many, for a job has room for no
 * more. */
int kedge_oneshot(const int64_t *gram, const uint32_t *maxima, size_t count, double link, size_t most,
                  uint32_t *group, size_t *ret_groups)
{
    if (count == 0 || count > KEDGE_GRAM_VECTORS_MAX || most == 0 || most > KEDGE_GROUPS_MAX
        || !isfinite(link)) {
        return KEDGE_E_ARG;
    }
    size_t index[KEDGE_GRAM_VECTORS_MAX], n = 0;
    const struct kedge_linkage_cut cut = {.least = 1, .most = most, .cut = link};
    double *distance KEDGE_CLEANUP(kedge_mem_release) = make_distance(gram, maxima, count, index, &n);
    uint32_t *cluster KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(count, sizeof *cluster);
    KEDGE_TRY_MEM(distance && cluster);
    if (n == 0) {
        return KEDGE_E_NO_DIRECTION;
    }
    KEDGE_TRY(kedge_linkage(distance, n, KEDGE_LINKAGE_AVERAGE, &cut, cluster, ret_groups));
    for (size_t i = 0; i < count; i++) {
        group[i] = KEDGE_GROUP_NONE;
    }
    for (size_t a = 0; a < n; a++) {
        group[index[a]] = cluster[a];
    }
    return KEDGE_OK;
}
