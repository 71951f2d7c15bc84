/* The Gram short-cut: with the eigenpairs (lambda_k, v_k) of the n x n matrix of inner products (or
 * cosines), e_i[k] = sqrt(lambda_k) v_k[i] / |update_i| is the cosine of update i and the k-th left
 * singular vector, without any decomposition of dimension-sized matrices. Updates left out shrink the
 * matrix; `index` maps back. */
#include "grouping/flexcfl.h"

#include <math.h>
#include <string.h>

#include "grouping/eigen.h"
#include "grouping/kmeans.h"
#include "common/base/mem.h"

struct grouping {
    size_t n;        /* usable updates */
    size_t m;        /* groups */
    size_t *index;   /* n: place among all updates */
    double *matrix;  /* n * n: what is decomposed */
    double *norm;    /* n: divisor of e_i; 1 for unit-norm updates */
    double *values;  /* n */
    double *vectors; /* n * n */
    double *points;  /* n * m */
    uint32_t *group; /* n */
};

static void close_grouping(struct grouping *g)
{
    kedge_mem_free(g->index);
    kedge_mem_free(g->matrix);
    kedge_mem_free(g->norm);
    kedge_mem_free(g->values);
    kedge_mem_free(g->vectors);
    kedge_mem_free(g->points);
    kedge_mem_free(g->group);
}

static int open_grouping(struct grouping *g, const uint32_t *maxima, size_t count, size_t groups)
{
    *g = (struct grouping){.n = 0};
    for (size_t i = 0; i < count; i++) {
        g->n += maxima[i] != 0;
    }
    if (g->n == 0) {
        return KEDGE_E_NO_DIRECTION;
    }
    g->m = groups < g->n ? groups : g->n;
    g->index = kedge_mem_new(g->n, sizeof *g->index);
    g->matrix = kedge_mem_new(g->n * g->n, sizeof *g->matrix);
    g->norm = kedge_mem_new(g->n, sizeof *g->norm);
    g->values = kedge_mem_new(g->n, sizeof *g->values);
    g->vectors = kedge_mem_new(g->n * g->n, sizeof *g->vectors);
    g->points = kedge_mem_new(g->n * g->m, sizeof *g->points);
    g->group = kedge_mem_new(g->n, sizeof *g->group);
    if (!g->index || !g->matrix || !g->norm || !g->values || !g->vectors || !g->points || !g->group) {
        close_grouping(g);
        return KEDGE_E_NOMEM;
    }
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        if (maxima[i] != 0) {
            g->index[next++] = i;
        }
    }
    return KEDGE_OK;
}

/* Cosines, as kedge_gram_cosine defines them. */
static void fill_unit(struct grouping *g, const int64_t *gram, size_t count)
{
    for (size_t a = 0; a < g->n; a++) {
        const size_t i = g->index[a];
        g->norm[a] = 1.0;
        g->matrix[a * g->n + a] = 1.0;
        for (size_t b = a + 1; b < g->n; b++) {
            const size_t j = g->index[b];
            double dot = (double)gram[i * count + j];
            double cosine = (dot / sqrt((double)gram[i * count + i])) / sqrt((double)gram[j * count + j]);
            g->matrix[a * g->n + b] = cosine;
        }
    }
}

/* Inner products in the scale of the updates themselves: 12-bit products times both largest magnitudes,
 * the common factor 2047^-2 left away since e_i does not depend on it. */
static void fill_plain(struct grouping *g, const int64_t *gram, const uint32_t *maxima, size_t count)
{
    for (size_t a = 0; a < g->n; a++) {
        const size_t i = g->index[a];
        for (size_t b = a; b < g->n; b++) {
            const size_t j = g->index[b];
            double dot = (double)gram[i * count + j] * ((double)maxima[i] * (double)maxima[j]);
            g->matrix[a * g->n + b] = dot;
        }
        g->norm[a] = sqrt(g->matrix[a * g->n + a]);
    }
}

static void make_points(struct grouping *g)
{
    for (size_t k = 0; k < g->m; k++) {
        const double root = g->values[k] > 0.0 ? sqrt(g->values[k]) : 0.0; /* a rounding below 0 is 0 */
        for (size_t a = 0; a < g->n; a++) {
            g->points[a * g->m + k] = (root * g->vectors[k * g->n + a]) / g->norm[a];
        }
    }
}

static void write_result(const struct grouping *g, size_t count, size_t groups, double inertia,
                         struct kedge_flexcfl_result *result)
{
    for (size_t i = 0; i < count; i++) {
        result->group[i] = KEDGE_GROUP_NONE;
        result->eigenvalues[i] = i < g->n ? g->values[i] : 0.0;
    }
    for (size_t i = 0; i < count * groups; i++) {
        result->embedding[i] = 0.0;
    }
    for (size_t a = 0; a < g->n; a++) {
        const size_t i = g->index[a];
        result->group[i] = g->group[a];
        memcpy(result->embedding + i * groups, g->points + a * g->m, g->m * sizeof *g->points);
    }
    result->groups = g->m;
    result->used = g->n;
    result->inertia = inertia;
}

int kedge_flexcfl_group_gram(const int64_t *gram, const uint32_t *maxima, size_t count,
                             const struct kedge_flexcfl_params *params, struct kedge_flexcfl_result *result)
{
    if (count == 0 || count > KEDGE_GRAM_VECTORS_MAX || params->groups == 0
        || params->groups > KEDGE_GROUPS_MAX
        || (params->edc != KEDGE_EDC_UNIT && params->edc != KEDGE_EDC_PLAIN)) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < count; i++) {
        if (maxima[i] != 0 && gram[i * count + i] <= 0) {
            return KEDGE_E_ARG; /* gram and maxima are not of the same updates */
        }
    }
    struct grouping g;
    int err = open_grouping(&g, maxima, count, params->groups);
    if (err) {
        return err;
    }
    if (params->edc == KEDGE_EDC_UNIT) {
        fill_unit(&g, gram, count);
    } else {
        fill_plain(&g, gram, maxima, count);
    }
    double inertia = 0.0;
    err = kedge_eigen_symmetric(g.matrix, g.n, g.values, g.vectors);
    if (!err) {
        make_points(&g);
        const struct kedge_kmeans_params kmeans = {
            .seed = params->seed,
            .round = params->round,
            .restarts = KEDGE_KMEANS_RESTARTS,
            .iterations_max = KEDGE_KMEANS_ITERATIONS,
            .size_min = params->size_min,
        };
        err = kedge_kmeans(g.points, g.n, g.m, g.m, &kmeans, g.group, &inertia);
    }
    if (!err) {
        write_result(&g, count, params->groups, inertia, result);
    }
    close_grouping(&g);
    return err;
}

int kedge_flexcfl_group(const int32_t *const *updates, size_t count, size_t dimension,
                        const struct kedge_flexcfl_params *params, struct kedge_flexcfl_result *result)
{
    if (count == 0 || count > KEDGE_GRAM_VECTORS_MAX) {
        return KEDGE_E_ARG;
    }
    int64_t *gram = kedge_mem_new(count * count, sizeof *gram);
    uint32_t *maxima = kedge_mem_new(count, sizeof *maxima);
    int err = KEDGE_E_NOMEM;
    if (gram && maxima) {
        err = kedge_gram(updates, count, dimension, maxima, gram);
    }
    if (!err) {
        err = kedge_flexcfl_group_gram(gram, maxima, count, params, result);
    }
    kedge_mem_free(gram);
    kedge_mem_free(maxima);
    return err;
}

/* Nearest integer to sum / count, ties to even, for any sign. */
static int32_t divide_half_even(int64_t sum, int64_t count)
{
    int64_t quotient = sum / count;
    int64_t rest = sum % count;
    if (rest < 0) { /* floor division from here on */
        rest += count;
        quotient--;
    }
    int64_t twice = 2 * rest;
    if (twice > count || (twice == count && (quotient & 1) != 0)) {
        quotient++;
    }
    return (int32_t)quotient;
}

int kedge_direction_tile(const int32_t *const *members, size_t count, size_t first, size_t n, int32_t *out)
{
    enum { CHUNK = 512 };
    if (count == 0 || count > KEDGE_SITES_MAX) {
        return KEDGE_E_ARG;
    }
    for (size_t done = 0; done < n; done += CHUNK) {
        size_t chunk = n - done < CHUNK ? n - done : CHUNK;
        int64_t sum[CHUNK] = {0};
        for (size_t k = 0; k < count; k++) {
            const int32_t *values = members[k] + first + done;
            for (size_t i = 0; i < chunk; i++) {
                sum[i] += values[i];
            }
        }
        for (size_t i = 0; i < chunk; i++) {
            out[done + i] = divide_half_even(sum[i], (int64_t)count);
        }
    }
    return KEDGE_OK;
}

void kedge_nearest_scan(struct kedge_nearest *n, const int32_t *update, const int32_t *const *directions,
                        size_t first, size_t len)
{
    n->max_u = kedge_max_abs(update, len, n->max_u);
    for (size_t j = 0; j < n->groups; j++) {
        n->max[j] = kedge_max_abs(directions[j] + first, len, n->max[j]);
    }
}

void kedge_nearest_add(struct kedge_nearest *n, const int32_t *update, const int32_t *const *directions,
                       size_t first, size_t len)
{
    int16_t u[KEDGE_GRAM_TILE];
    int16_t d[KEDGE_GRAM_TILE];
    for (size_t at = 0; at < len && n->max_u != 0; at += KEDGE_GRAM_TILE) {
        size_t tile = len - at < KEDGE_GRAM_TILE ? len - at : KEDGE_GRAM_TILE;
        kedge_scale12(update + at, tile, n->max_u, u);
        n->uu += kedge_dot12(u, u, tile);
        for (size_t j = 0; j < n->groups; j++) {
            if (n->max[j] != 0) {
                kedge_scale12(directions[j] + first + at, tile, n->max[j], d);
                n->uj[j] += kedge_dot12(u, d, tile);
                n->jj[j] += kedge_dot12(d, d, tile);
            }
        }
    }
}

int kedge_nearest_end(const struct kedge_nearest *n, uint32_t *ret_group, double *ret_cosine)
{
    size_t best = n->groups;
    double most = 0.0;
    for (size_t j = 0; j < n->groups && n->max_u != 0; j++) {
        if (n->max[j] == 0) {
            continue;
        }
        double cosine = ((double)n->uj[j] / sqrt((double)n->uu)) / sqrt((double)n->jj[j]);
        if (best == n->groups || cosine > most) {
            best = j;
            most = cosine;
        }
    }
    if (best == n->groups) {
        return KEDGE_E_NOT_FOUND;
    }
    *ret_group = (uint32_t)best;
    if (ret_cosine) {
        *ret_cosine = most;
    }
    return KEDGE_OK;
}

int kedge_nearest_group(const int32_t *update, const int32_t *const *directions, size_t groups,
                        size_t dimension, uint32_t *ret_group, double *ret_cosine)
{
    if (groups == 0 || groups > KEDGE_GROUPS_MAX) {
        return KEDGE_E_ARG;
    }
    struct kedge_nearest n = {.groups = groups};
    kedge_nearest_scan(&n, update, directions, 0, dimension);
    kedge_nearest_add(&n, update, directions, 0, dimension);
    return kedge_nearest_end(&n, ret_group, ret_cosine);
}
