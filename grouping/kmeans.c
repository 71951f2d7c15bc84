/* Lloyd's algorithm from k-means++ seeds (Arthur & Vassilvitskii 2007), several restarts, the least inertia
 * wins, the first of equals. One workspace for all restarts; every sum runs in index order, so equal inputs
 * give equal bits, on which auditors rely. */
#include "grouping/kmeans.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"

struct run {
    const double *points;
    size_t count;
    size_t dims;
    size_t k;
    const double *weight; /* NULL: 1 each */
    double *centres;      /* k * dims */
    double *distance;     /* count: squared, to the own (while seeding: the nearest) centre */
    double *mass;         /* k: weights of the members */
    size_t *members;      /* k */
    uint32_t *cluster;    /* count */
};

static double distance_squared(const double *a, const double *b, size_t dims)
{
    double sum = 0.0;
    for (size_t d = 0; d < dims; d++) {
        double off = a[d] - b[d];
        sum += off * off;
    }
    return sum;
}

/* Products with a weight of 1 are exact: without weights the bits are those of plain k-means. */
static double weight_of(const struct run *r, size_t i)
{
    return r->weight ? r->weight[i] : 1.0;
}

static const double *point(const struct run *r, size_t i)
{
    return r->points + i * r->dims;
}

/* Distances to the nearest centre are kept up to date as centres are added, so that seeding costs one pass
 * a centre. */
static void take_centre(struct run *r, size_t c, size_t i)
{
    memcpy(r->centres + c * r->dims, point(r, i), r->dims * sizeof *r->centres);
    for (size_t j = 0; j < r->count; j++) {
        double d = distance_squared(point(r, j), point(r, i), r->dims);
        if (c == 0 || d < r->distance[j]) {
            r->distance[j] = d;
        }
    }
    r->cluster[i] = 1; /* while seeding: is a centre */
}

/* A point drawn with probability proportional to its squared distance; where all coincide with centres, the
 * first that is none. Running sums are rounded, so the last one may fall short of `aim`: then the last
 * point with a distance is taken. */
static size_t draw_far_point(const struct run *r, struct kedge_rng *rng)
{
    double total = 0.0;
    for (size_t i = 0; i < r->count; i++) {
        total += weight_of(r, i) * r->distance[i];
    }
    const double aim = kedge_rng_unit(rng) * total;
    size_t last = r->count;
    double sum = 0.0;
    for (size_t i = 0; total > 0.0 && i < r->count; i++) {
        sum += weight_of(r, i) * r->distance[i];
        if (r->distance[i] > 0.0) {
            last = i;
            if (sum > aim) {
                return i;
            }
        }
    }
    for (size_t i = 0; last == r->count && i < r->count; i++) {
        if (r->cluster[i] == 0) {
            last = i;
        }
    }
    return last;
}

/* By weight; uniformly where all are alike. */
static size_t draw_first(const struct run *r, struct kedge_rng *rng)
{
    if (!r->weight) {
        return (size_t)kedge_rng_below(rng, r->count);
    }
    double total = 0.0, sum = 0.0;
    for (size_t i = 0; i < r->count; i++) {
        total += r->weight[i];
    }
    const double aim = kedge_rng_unit(rng) * total;
    for (size_t i = 0; i < r->count; i++) {
        sum += r->weight[i];
        if (sum > aim) {
            return i;
        }
    }
    return r->count - 1;
}

static void seed_centres(struct run *r, struct kedge_rng *rng)
{
    memset(r->cluster, 0, r->count * sizeof *r->cluster);
    take_centre(r, 0, draw_first(r, rng));
    for (size_t c = 1; c < r->k; c++) {
        size_t i = draw_far_point(r, rng);
        KEDGE_ASSERT(i < r->count); /* k <= count */
        take_centre(r, c, i);
    }
}

/* Nearest centres, ties to the lowest; true when any point moved. */
static bool assign_points(struct run *r)
{
    bool moved = false;
    memset(r->members, 0, r->k * sizeof *r->members);
    for (size_t i = 0; i < r->count; i++) {
        uint32_t best = 0;
        double least = distance_squared(point(r, i), r->centres, r->dims);
        for (size_t c = 1; c < r->k; c++) {
            double d = distance_squared(point(r, i), r->centres + c * r->dims, r->dims);
            if (d < least) {
                least = d;
                best = (uint32_t)c;
            }
        }
        moved = moved || r->cluster[i] != best;
        r->cluster[i] = best;
        r->distance[i] = least;
        r->members[best]++;
    }
    return moved;
}

/* An assignment can leave a cluster without points. It gets the point that is farthest from its own centre,
 * of a cluster that has another one; so there are always as many groups as were asked for. */
static void fill_empty(struct run *r)
{
    for (size_t c = 0; c < r->k; c++) {
        if (r->members[c] != 0) {
            continue;
        }
        size_t far = r->count;
        for (size_t i = 0; i < r->count; i++) {
            if (r->members[r->cluster[i]] > 1 && (far == r->count || r->distance[i] > r->distance[far])) {
                far = i;
            }
        }
        KEDGE_ASSERT(far < r->count); /* k <= count: some cluster has two */
        r->members[r->cluster[far]]--;
        r->cluster[far] = (uint32_t)c;
        r->distance[far] = 0.0;
        r->members[c] = 1;
    }
}

static void move_centres(struct run *r)
{
    memset(r->centres, 0, r->k * r->dims * sizeof *r->centres);
    memset(r->mass, 0, r->k * sizeof *r->mass);
    for (size_t i = 0; i < r->count; i++) {
        double *centre = r->centres + r->cluster[i] * r->dims;
        r->mass[r->cluster[i]] += weight_of(r, i);
        for (size_t d = 0; d < r->dims; d++) {
            centre[d] += weight_of(r, i) * point(r, i)[d];
        }
    }
    for (size_t c = 0; c < r->k; c++) {
        for (size_t d = 0; d < r->dims; d++) {
            r->centres[c * r->dims + d] /= r->mass[c];
        }
    }
}

/* One restart; its inertia. Iterations are bounded: rounding can make two assignments follow each other
 * for ever. */
static double run_once(struct run *r, const struct kedge_kmeans_params *params, uint64_t restart)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, params->seed, KEDGE_RNG_KMEANS, params->round, restart);
    seed_centres(r, &rng);
    /* no cluster yet: the first assignment moves all */
    memset(r->cluster, 0xff, r->count * sizeof *r->cluster);
    for (unsigned it = 0; it < params->iterations_max; it++) {
        if (!assign_points(r)) {
            break;
        }
        fill_empty(r);
        move_centres(r);
    }
    double inertia = 0.0;
    for (size_t i = 0; i < r->count; i++) {
        inertia +=
            weight_of(r, i) * distance_squared(point(r, i), r->centres + r->cluster[i] * r->dims, r->dims);
    }
    return inertia;
}

/* Numbers clusters by their first member, so that the same clusters have the same numbers whichever restart
 * found them; label has k entries. */
static void number_clusters(const uint32_t *from, size_t count, size_t k, size_t *label, uint32_t *to)
{
    uint32_t next = 0;
    for (size_t c = 0; c < k; c++) {
        label[c] = SIZE_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        if (label[from[i]] == SIZE_MAX) {
            label[from[i]] = next++;
        }
        to[i] = (uint32_t)label[from[i]];
    }
}

static void run_all(struct run *r, const struct kedge_kmeans_params *params, uint32_t *cluster,
                    double *ret_inertia)
{
    double best = 0.0;
    for (unsigned restart = 0; restart < params->restarts; restart++) {
        const double inertia = run_once(r, params, restart);
        if (restart == 0 || inertia < best) {
            best = inertia;
            number_clusters(r->cluster, r->count, r->k, r->members, cluster);
        }
    }
    if (ret_inertia) {
        *ret_inertia = best;
    }
}

int kedge_kmeans(const double *points, size_t count, size_t dims, size_t k,
                 const struct kedge_kmeans_params *params, uint32_t *cluster, double *ret_inertia)
{
    if (k == 0 || k > count || count > UINT32_MAX / 2 || dims == 0 || dims > SIZE_MAX / count
        || params->restarts == 0 || params->iterations_max == 0) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < count * dims; i++) {
        if (!isfinite(points[i])) {
            return KEDGE_E_NOT_FINITE;
        }
    }
    for (size_t i = 0; params->weight && i < count; i++) {
        if (!isfinite(params->weight[i]) || params->weight[i] <= 0.0) {
            return KEDGE_E_ARG;
        }
    }
    struct run r = {.points = points, .count = count, .dims = dims, .k = k, .weight = params->weight};
    r.mass = kedge_mem_new(k, sizeof *r.mass);
    r.centres = kedge_mem_new(k * dims, sizeof *r.centres);
    r.distance = kedge_mem_new(count, sizeof *r.distance);
    r.members = kedge_mem_new(k, sizeof *r.members);
    r.cluster = kedge_mem_new(count, sizeof *r.cluster);
    int err = KEDGE_E_NOMEM;
    if (r.mass && r.centres && r.distance && r.members && r.cluster) {
        run_all(&r, params, cluster, ret_inertia);
        err = KEDGE_OK;
    }
    kedge_mem_free(r.mass);
    kedge_mem_free(r.centres);
    kedge_mem_free(r.distance);
    kedge_mem_free(r.members);
    kedge_mem_free(r.cluster);
    return err;
}
