/* How well sites fit their groups: silhouettes (Rousseeuw 1987), with weights. A point alone in its
 * cluster, and one without another cluster, counts 0. */
#include "grouping/quality.h"

/* Of one point; masses[k]: weights of the clusters. */
static double silhouette_of(const double *row, size_t n, const uint32_t *cluster, size_t k,
                            const double *weight, const double *masses, size_t i)
{
    double sum[KEDGE_CLUSTERS_MAX] = {0};
    for (size_t j = 0; j < n; j++) {
        if (j != i) {
            sum[cluster[j]] += (weight ? weight[j] : 1.0) * row[j];
        }
    }
    const size_t own = cluster[i];
    double near = -1.0;
    for (size_t c = 0; c < k; c++) {
        if (c != own && masses[c] > 0.0 && (near < 0.0 || sum[c] / masses[c] < near)) {
            near = sum[c] / masses[c];
        }
    }
    double rest = 0.0; /* of the others in its cluster, added up anew: masses[own] − weight would round */
    for (size_t j = 0; j < n; j++) {
        rest += j != i && cluster[j] == own ? (weight ? weight[j] : 1.0) : 0.0;
    }
    if (near < 0.0 || rest <= 0.0) {
        return 0.0;
    }
    double a = sum[own] / rest;
    double most = a > near ? a : near;
    return most > 0.0 ? (near - a) / most : 0.0;
}

double kedge_silhouette(const double *distance, size_t n, const uint32_t *cluster, size_t k,
                        const double *weight)
{
    KEDGE_ASSERT(k <= KEDGE_CLUSTERS_MAX);
    double masses[KEDGE_CLUSTERS_MAX] = {0};
    double total = 0.0, all = 0.0;
    for (size_t i = 0; i < n; i++) {
        KEDGE_ASSERT(cluster[i] < k);
        masses[cluster[i]] += weight ? weight[i] : 1.0;
    }
    for (size_t i = 0; i < n; i++) {
        double w = weight ? weight[i] : 1.0;
        total += w * silhouette_of(distance + i * n, n, cluster, k, weight, masses, i);
        all += w;
    }
    return all > 0.0 ? total / all : 0.0;
}
