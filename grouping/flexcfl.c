/* The Gram short-cut: with the eigenpairs (lambda_k, v_k) of the n x n matrix of inner products (or
 * cosines), e_i[k] = sqrt(lambda_k) v_k[i] / |update_i| is the cosine of update i and the k-th left
 * singular vector, without any decomposition of dimension-sized matrices. Updates left out shrink the
 * matrix; `index` maps back. */
#include "grouping/flexcfl.h"

#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "grouping/distance.h"
#include "grouping/eigen.h"
#include "grouping/kmeans.h"
#include "grouping/linkage.h"
#include "grouping/quality.h"

struct grouping {
    const struct kedge_flexcfl_params *params;
    size_t n;         /* usable updates */
    size_t most;      /* groups at most */
    size_t m;         /* groups */
    size_t *index;    /* n: place among all updates */
    double *matrix;   /* n * n: what is decomposed, destroyed by it */
    double *cosine;   /* n * n, where MADC or the choice of m need them */
    double *weight;   /* n; NULL: 1 each */
    double *norm;     /* n: divisor of e_i */
    double *values;   /* n */
    double *vectors;  /* n * n */
    double *points;   /* n * m */
    double *distance; /* n * n, in the space in which clusterings are judged */
    uint32_t *group;  /* n */
    double inertia, silhouette;
};

static void close_grouping(struct grouping *g)
{
    kedge_mem_free(g->index);
    kedge_mem_free(g->matrix);
    kedge_mem_free(g->cosine);
    kedge_mem_free(g->weight);
    kedge_mem_free(g->norm);
    kedge_mem_free(g->values);
    kedge_mem_free(g->vectors);
    kedge_mem_free(g->points);
    kedge_mem_free(g->distance);
    kedge_mem_free(g->group);
}

/* Updates that are zero have no direction and are left out before anything is computed: their rows would
 * divide by 0. */
static int open_grouping(struct grouping *g, const uint32_t *maxima, size_t count,
                         const struct kedge_flexcfl_params *params)
{
    *g = (struct grouping){.params = params};
    for (size_t i = 0; i < count; i++) {
        g->n += maxima[i] != 0;
    }
    if (g->n == 0) {
        return KEDGE_E_NO_DIRECTION;
    }
    g->most = params->groups < g->n ? params->groups : g->n;
    g->m = g->most;
    g->index = kedge_mem_new(g->n, sizeof *g->index);
    g->matrix = kedge_mem_new(g->n * g->n, sizeof *g->matrix);
    g->cosine = kedge_mem_new(g->n * g->n, sizeof *g->cosine);
    g->norm = kedge_mem_new(g->n, sizeof *g->norm);
    g->values = kedge_mem_new(g->n, sizeof *g->values);
    g->vectors = kedge_mem_new(g->n * g->n, sizeof *g->vectors);
    g->points = kedge_mem_new(g->n * g->most, sizeof *g->points);
    g->distance = kedge_mem_new(g->n * g->n, sizeof *g->distance);
    g->group = kedge_mem_new(g->n, sizeof *g->group);
    g->weight = params->weight ? kedge_mem_new(g->n, sizeof *g->weight) : NULL;
    if (!g->index || !g->matrix || !g->cosine || !g->norm || !g->values || !g->vectors || !g->points
        || !g->distance || !g->group || (params->weight && !g->weight)) {
        close_grouping(g);
        return KEDGE_E_NOMEM;
    }
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        if (maxima[i] != 0) {
            g->index[next] = i;
            if (g->weight) {
                g->weight[next] = params->weight[i];
            }
            next++;
        }
    }
    return KEDGE_OK;
}

/* Cosines, as kedge_gram_cosine defines them. */
static void fill_cosine(struct grouping *g, const int64_t *gram, size_t count)
{
    for (size_t a = 0; a < g->n; a++) {
        const size_t i = g->index[a];
        g->norm[a] = 1.0;
        g->cosine[a * g->n + a] = 1.0;
        for (size_t b = a + 1; b < g->n; b++) {
            const size_t j = g->index[b];
            double dot = (double)gram[i * count + j];
            double cosine = (dot / sqrt((double)gram[i * count + i])) / sqrt((double)gram[j * count + j]);
            g->cosine[a * g->n + b] = cosine;
            g->cosine[b * g->n + a] = cosine;
        }
    }
    memcpy(g->matrix, g->cosine, g->n * g->n * sizeof *g->matrix);
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

/* Each update counts as `weight` of them: rows and columns times √weight, which e_i does not keep. So a
 * tenant's many sites do not turn the axes that all updates are measured along (grouping/quota.h). */
static void apply_weights(struct grouping *g)
{
    for (size_t a = 0; g->weight && a < g->n; a++) {
        double root = sqrt(g->weight[a]);
        for (size_t b = a; b < g->n; b++) {
            g->matrix[a * g->n + b] *= root * sqrt(g->weight[b]);
        }
        g->norm[a] *= root;
    }
}

/* The first m coordinates of every update. */
static void make_points(struct grouping *g, size_t m)
{
    for (size_t k = 0; k < m; k++) {
        const double root = g->values[k] > 0.0 ? sqrt(g->values[k]) : 0.0; /* a rounding below 0 is 0 */
        for (size_t a = 0; a < g->n; a++) {
            g->points[a * m + k] = (root * g->vectors[k * g->n + a]) / g->norm[a];
        }
    }
}

static struct kedge_kmeans_params kmeans_params(const struct grouping *g)
{
    return (struct kedge_kmeans_params){
        .seed = g->params->seed,
        .round = g->params->round,
        .restarts = KEDGE_KMEANS_RESTARTS,
        .iterations_max = KEDGE_KMEANS_ITERATIONS,
        .weight = g->weight,
    };
}

/* Into k groups; g->distance stands, and says how good they are. */
static int cluster_into(struct grouping *g, size_t k)
{
    int err;
    g->m = k;
    g->inertia = 0.0;
    if (g->params->edc == KEDGE_EDC_MADC) {
        const struct kedge_linkage_cut cut = {.least = k, .most = k};
        size_t clusters = 0;
        err = kedge_linkage(g->distance, g->n, KEDGE_LINKAGE_COMPLETE, &cut, g->group, &clusters);
    } else {
        const struct kedge_kmeans_params params = kmeans_params(g);
        make_points(g, k);
        err = kedge_kmeans(g->points, g->n, k, k, &params, g->group, &g->inertia);
    }
    g->silhouette = err ? 0.0 : kedge_silhouette(g->distance, g->n, g->group, k, g->weight);
    return err;
}

/* All candidates are judged in one space: the largest silhouette, then the fewest groups. One group where
 * the cosines of even the best do not tell its groups apart, for k-means finds clusters in noise, too. */
static int choose_by_silhouette(struct grouping *g, size_t least, size_t *ret_k)
{
    size_t best = 0;
    double largest = 0.0, apart = 0.0;
    double *cosines = kedge_mem_new(g->n * g->n, sizeof *cosines);
    int err = cosines ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err) {
        kedge_distance_cosine(g->cosine, g->n, cosines);
    }
    for (size_t k = least > 2 ? least : 2; k <= g->most && !err; k++) {
        err = cluster_into(g, k);
        if (!err && (best == 0 || g->silhouette > largest)) {
            best = k;
            largest = g->silhouette;
            apart = kedge_silhouette(cosines, g->n, g->group, k, g->weight);
        }
    }
    kedge_mem_free(cosines);
    *ret_k = best == 0 || (least == 1 && apart < KEDGE_SILHOUETTE_LEAST) ? 1 : best;
    return err;
}

/* Tibshirani, Walther, Hastie 2001: the least k whose gap is at least the next one's less its error. All
 * candidates are in the space of the most groups. */
static int choose_by_gap(struct grouping *g, size_t least, size_t *ret_k)
{
    struct kedge_kmeans_params params = kmeans_params(g);
    double gap = 0.0, next = 0.0, error = 0.0;
    double *points = kedge_mem_new(g->n * g->most, sizeof *points);
    int err = points ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err) {
        make_points(g, g->most);
        memcpy(points, g->points, g->n * g->most * sizeof *points);
        err = kedge_gap(points, g->n, g->most, least, &params, &gap, &error);
    }
    *ret_k = g->most;
    for (size_t k = least; k < g->most && !err; k++) {
        err = kedge_gap(points, g->n, g->most, k + 1, &params, &next, &error);
        if (!err && gap >= next - error) {
            *ret_k = k;
            break;
        }
        gap = next;
    }
    kedge_mem_free(points);
    return err;
}

/* Clusterings into other numbers of groups are compared in one space, that of the most groups: each space has
 * distances of its own. */
static int cluster(struct grouping *g)
{
    size_t k = g->most, least = g->params->groups_min < g->most ? g->params->groups_min : g->most;
    int err = KEDGE_OK;
    if (g->params->edc == KEDGE_EDC_MADC) {
        kedge_distance_madc(g->cosine, g->n, g->distance);
    } else {
        make_points(g, g->most);
        kedge_distance_points(g->points, g->n, g->most, g->distance);
    }
    if (g->params->choose == KEDGE_CHOOSE_SILHOUETTE) {
        err = choose_by_silhouette(g, least, &k);
    } else if (g->params->choose == KEDGE_CHOOSE_GAP) {
        err = choose_by_gap(g, least, &k);
    }
    if (err) {
        return err;
    }
    err = cluster_into(g, k);
    if (!err && g->params->edc == KEDGE_EDC_MADC) {
        make_points(g, k); /* for show */
    }
    return err;
}

/* Rows and columns go back to the places of all updates; what was left out has no group and zeros. */
static void write_result(const struct grouping *g, size_t count, struct kedge_flexcfl_result *result)
{
    const size_t groups = g->params->groups;
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
    const double next = g->m < g->n ? g->values[g->m] : 0.0;
    result->groups = g->m;
    result->used = g->n;
    result->inertia = g->inertia;
    result->silhouette = g->silhouette;
    result->eigengap = g->values[0] > 0.0 ? (g->values[g->m - 1] - next) / g->values[0] : 0.0;
}

static bool params_ok(const struct kedge_flexcfl_params *p)
{
    bool edc = p->edc == KEDGE_EDC_UNIT || p->edc == KEDGE_EDC_PLAIN || p->edc == KEDGE_EDC_MADC;
    bool choose = p->choose == KEDGE_CHOOSE_FIXED
                  || ((p->choose == KEDGE_CHOOSE_SILHOUETTE
                       || (p->choose == KEDGE_CHOOSE_GAP && p->edc != KEDGE_EDC_MADC))
                      && p->groups_min >= 1 && p->groups_min <= p->groups);
    return p->groups >= 1 && p->groups <= KEDGE_GROUPS_MAX && edc && choose
           && !(p->edc == KEDGE_EDC_MADC && p->weight);
}

int kedge_flexcfl_group_gram(const int64_t *gram, const uint32_t *maxima, size_t count,
                             const struct kedge_flexcfl_params *params, struct kedge_flexcfl_result *result)
{
    if (count == 0 || count > KEDGE_GRAM_VECTORS_MAX || !params_ok(params)) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < count; i++) {
        if (maxima[i] != 0 && gram[i * count + i] <= 0) {
            return KEDGE_E_ARG; /* gram and maxima are not of the same updates */
        }
        if (params->weight && (!isfinite(params->weight[i]) || params->weight[i] <= 0.0)) {
            return KEDGE_E_ARG;
        }
    }
    struct grouping g;
    KEDGE_TRY(open_grouping(&g, maxima, count, params));
    fill_cosine(&g, gram, count);
    if (params->edc == KEDGE_EDC_PLAIN) {
        fill_plain(&g, gram, maxima, count);
    }
    apply_weights(&g);
    int err = kedge_eigen_symmetric(g.matrix, g.n, g.values, g.vectors);
    if (!err) {
        err = cluster(&g);
    }
    if (!err) {
        write_result(&g, count, result);
    }
    close_grouping(&g);
    return err;
}
