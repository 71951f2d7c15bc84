/* A cluster goes by its first member. Each keeps its nearest later cluster, so that a join costs a scan of
 * those whose nearest is gone. Distances to a joined cluster follow from those to its parts (Lance & Williams
 * 1967). */
#include "grouping/linkage.h"

#include <math.h>

#include "common/base/mem.h"
#include "common/base/try.h"

struct links {
    size_t n, left; /* clusters left */
    enum kedge_linkage linkage;
    double *distance; /* n * n between clusters, by first members */
    size_t *size;     /* 0: joined to an earlier one */
    size_t *next;     /* nearest later cluster, n where there is none */
    size_t *into;     /* which cluster a point's first cluster was joined to; itself while it stands */
};

static double distance_of(const struct links *l, size_t i, size_t j)
{
    return l->distance[i * l->n + j];
}

static void find_next(struct links *l, size_t i)
{
    l->next[i] = l->n;
    for (size_t j = i + 1; j < l->n; j++) {
        if (l->size[j] != 0 && (l->next[i] == l->n || distance_of(l, i, j) < distance_of(l, i, l->next[i]))) {
            l->next[i] = j;
        }
    }
}

/* The first of the nearest pairs; l->left >= 2. Only each cluster's own nearest is compared, so a join
 * costs n steps here and not n². */
static size_t find_pair(const struct links *l)
{
    size_t best = l->n;
    for (size_t i = 0; i < l->n; i++) {
        if (l->size[i] != 0 && l->next[i] < l->n
            && (best == l->n || distance_of(l, i, l->next[i]) < distance_of(l, best, l->next[best]))) {
            best = i;
        }
    }
    KEDGE_ASSERT(best < l->n);
    return best;
}

static double join_distance(const struct links *l, size_t i, size_t j, size_t k)
{
    double a = distance_of(l, i, k), b = distance_of(l, j, k);
    switch (l->linkage) {
    case KEDGE_LINKAGE_COMPLETE:
        return a > b ? a : b;
    case KEDGE_LINKAGE_SINGLE:
        return a < b ? a : b;
    case KEDGE_LINKAGE_AVERAGE:
        break;
    }
    double ni = (double)l->size[i], nj = (double)l->size[j];
    return (ni * a + nj * b) / (ni + nj);
}

/* The joined cluster takes the lower place. Its nearest is looked for anew, and so is that of every earlier
 * cluster whose nearest was one of the two. For the others the joined cluster is no nearer than both parts
 * were, but for rounding; a tie goes to the lower place. */
static void join(struct links *l, size_t i, size_t j)
{
    for (size_t k = 0; k < l->n; k++) {
        if (l->size[k] != 0 && k != i && k != j) {
            l->distance[i * l->n + k] = l->distance[k * l->n + i] = join_distance(l, i, j, k);
        }
    }
    l->size[i] += l->size[j];
    l->size[j] = 0;
    l->into[j] = i;
    l->left--;
    find_next(l, i);
    for (size_t k = 0; k < j; k++) {
        if (l->size[k] == 0 || k == i) {
            continue;
        }
        if (l->next[k] == i || l->next[k] == j) {
            find_next(l, k);
        } else if (k < i) {
            double to_i = distance_of(l, k, i), now = distance_of(l, k, l->next[k]);
            if (to_i < now || (to_i <= now && i < l->next[k])) {
                l->next[k] = i;
            }
        }
    }
}

static void number_clusters(struct links *l, uint32_t *cluster)
{
    uint32_t next = 0;
    for (size_t i = 0; i < l->n; i++) { /* a cluster's first member comes before its others */
        size_t first = i;
        while (l->into[first] != first) { /* falls each time */
            first = l->into[first];
        }
        cluster[i] = first == i ? next++ : cluster[first];
    }
}

/* Only the upper triangle of the caller's matrix is read, so that a matrix that is not symmetric to the bit
 * cannot make the result depend on which half was looked at. */
static int open_links(struct links *l, const double *distance)
{
    l->distance = kedge_mem_new(l->n * l->n, sizeof *l->distance);
    l->size = kedge_mem_new(l->n, sizeof *l->size);
    l->next = kedge_mem_new(l->n, sizeof *l->next);
    l->into = kedge_mem_new(l->n, sizeof *l->into);
    KEDGE_TRY_MEM(l->distance && l->size && l->next && l->into);
    for (size_t i = 0; i < l->n; i++) {
        l->size[i] = 1;
        l->into[i] = i;
        for (size_t j = i + 1; j < l->n; j++) {
            double d = distance[i * l->n + j];
            if (!isfinite(d)) {
                return KEDGE_E_NOT_FINITE;
            }
            l->distance[i * l->n + j] = l->distance[j * l->n + i] = d;
        }
    }
    for (size_t i = 0; i < l->n; i++) {
        find_next(l, i);
    }
    return KEDGE_OK;
}

int kedge_linkage(const double *distance, size_t n, enum kedge_linkage linkage,
                  const struct kedge_linkage_cut *cut, uint32_t *cluster, size_t *ret_clusters)
{
    if (n == 0 || n > KEDGE_LINKAGE_POINTS_MAX || cut->least == 0 || cut->most < cut->least
        || isnan(cut->cut)) {
        return KEDGE_E_ARG;
    }
    struct links l = {.n = n, .left = n, .linkage = linkage};
    int err = open_links(&l, distance);
    while (!err && l.left > cut->least) {
        size_t i = find_pair(&l);
        if (l.left <= cut->most && distance_of(&l, i, l.next[i]) > cut->cut) {
            break;
        }
        join(&l, i, l.next[i]);
    }
    if (!err) {
        number_clusters(&l, cluster);
        *ret_clusters = l.left;
    }
    kedge_mem_free(l.distance);
    kedge_mem_free(l.size);
    kedge_mem_free(l.next);
    kedge_mem_free(l.into);
    return err;
}
