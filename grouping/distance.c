#include "grouping/distance.h"

#include <math.h>

#include "common/base/err.h"

void kedge_distance_cosine(const double *cosine, size_t n, double *distance)
{
    for (size_t i = 0; i < n; i++) {
        distance[i * n + i] = 0.0;
        for (size_t j = i + 1; j < n; j++) {
            double d = 1.0 - cosine[i * n + j];
            distance[i * n + j] = distance[j * n + i] = d > 0.0 ? d : 0.0; /* a cosine may be 1 + 2^-52 */
        }
    }
}

/* MADC (Duan et al. 2022): how differently two updates look at all others. With two updates there is no
 * other, and the cosine itself is taken. */
void kedge_distance_madc(const double *cosine, size_t n, double *distance)
{
    if (n == 2) {
        kedge_distance_cosine(cosine, n, distance);
        return;
    }
    KEDGE_ASSERT(cosine != distance);
    for (size_t i = 0; i < n; i++) {
        distance[i * n + i] = 0.0;
        for (size_t j = i + 1; j < n; j++) {
            double sum = 0.0;
            for (size_t z = 0; z < n; z++) {
                if (z != i && z != j) {
                    sum += fabs(cosine[i * n + z] - cosine[j * n + z]);
                }
            }
            distance[i * n + j] = distance[j * n + i] = sum / (double)(n - 2);
        }
    }
}

void kedge_distance_points(const double *points, size_t n, size_t dims, double *distance)
{
    for (size_t i = 0; i < n; i++) {
        distance[i * n + i] = 0.0;
        for (size_t j = i + 1; j < n; j++) {
            double sum = 0.0;
            for (size_t d = 0; d < dims; d++) {
                double off = points[i * dims + d] - points[j * dims + d];
                sum += off * off;
            }
            distance[i * n + j] = distance[j * n + i] = sqrt(sum);
        }
    }
}
