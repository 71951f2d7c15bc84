/* Clustered federated learning by splitting (Sattler et al.): a group whose mean update is short while some
 * of its updates are long is cut in two. A Gram matrix takes 512 updates: where a round has more, the first
 * 512 decide, and the others go with the part whose mean update is nearer to theirs. */
#include "grouping/split.h"

#include <string.h>

#include "aggregation/gram.h"
#include "common/base/mem.h"
#include "grouping/flexcfl.h"
#include "sim/learn/regroup.h"

/* part[k] of the items beyond the first `known`, by the nearer mean. */
static int place_rest(const struct kedgei_learn *l, const uint32_t *items, uint32_t count, uint32_t known,
                      const int32_t **vector, uint32_t *part)
{
    int32_t *mean[2] = {kedge_mem_new(l->d, sizeof **mean), kedge_mem_new(l->d, sizeof **mean)};
    int err = mean[0] && mean[1] ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t p = 0; p < 2 && !err; p++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < known; k++) {
            if (part[k] == p) {
                vector[n++] = kedgei_learn_vector(l, items[k], 0);
            }
        }
        err = n ? kedge_direction_tile(vector, n, 0, l->d, mean[p]) : KEDGE_E_NO_DIRECTION;
    }
    for (uint32_t k = known; k < count && !err; k++) {
        const int32_t *const means[2] = {mean[0], mean[1]};
        if (kedge_nearest_group(kedgei_learn_vector(l, items[k], 0), means, 2, l->d, &part[k], NULL)) {
            part[k] = 0;
        }
    }
    kedge_mem_free(mean[0]);
    kedge_mem_free(mean[1]);
    return err;
}

/* Members that did not take part in the round stay with the group. */
static void cut(struct kedgei_learn *l, uint32_t group, const uint32_t *items, uint32_t count,
                const uint32_t *part)
{
    uint32_t fresh = l->groups++;
    memcpy(kedgei_learn_model(l, fresh), kedgei_learn_model(l, group), l->d * sizeof(float));
    for (size_t k = 0; k < KEDGE_SERVER_STATES_MAX; k++) {
        if (l->states[k]) {
            memcpy(l->states[k] + (size_t)fresh * l->d, l->states[k] + (size_t)group * l->d,
                   l->d * sizeof(float));
        }
    }
    l->trained[fresh] = true;
    for (uint32_t k = 0; k < count; k++) {
        if (part[k] == 1) {
            l->sites[l->items[items[k]].site].group = fresh;
        }
    }
}

int kedgei_learn_split(struct kedgei_learn *l, uint32_t round, uint32_t group, const uint32_t *items,
                       uint32_t count)
{
    const struct kedge_strategy_options *o = &l->spec->job.options;
    uint32_t known = count < KEDGE_GRAM_VECTORS_MAX ? count : KEDGE_GRAM_VECTORS_MAX;
    double mean = 0, most = 0;
    if (l->groups == l->slots || (double)round < o->split_after) {
        return KEDGE_OK;
    }
    const int32_t **vector = kedge_mem_new(count, sizeof *vector);
    uint32_t *maxima = kedge_mem_new(count, sizeof *maxima), *part = kedge_mem_new(count, sizeof *part);
    int64_t *gram = kedge_mem_new((size_t)known * known, sizeof *gram);
    int err = vector && maxima && part && gram ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t k = 0; k < known && !err; k++) {
        vector[k] = kedgei_learn_vector(l, items[k], 0);
    }
    err = err ? err : kedge_gram(vector, known, l->d, maxima, gram);
    err = err ? err : kedge_split_norms(gram, maxima, known, l->spec->job.scale, &mean, &most);
    if (!err && kedge_split_due(mean, most, o->split_mean, o->split_max, count)) {
        err = kedge_split(gram, maxima, known, part, NULL);
        err = err || known == count ? err : place_rest(l, items, count, known, vector, part);
        if (!err) {
            cut(l, group, items, count, part);
        }
        err = err == KEDGE_E_NO_DIRECTION ? KEDGE_OK : err; /* nothing to cut by */
    }
    kedge_mem_free(vector);
    kedge_mem_free(maxima);
    kedge_mem_free(part);
    kedge_mem_free(gram);
    return err;
}
