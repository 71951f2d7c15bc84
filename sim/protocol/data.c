/* A site's samples as its trainer sees them: floats in the order in which the simulation deals them out. */
#include <string.h>

#include "common/base/mem.h"
#include "sim/protocol/impl.h"

int kedgei_protocol_data(const struct kedgei_learn *l, uint32_t site, bool test, struct kedge_dataset *ret)
{
    const struct kedgei_learn_site *s = &l->sites[site];
    const uint32_t *rows = test ? s->test : s->train;
    uint32_t n = test ? s->test_count : s->train_count, features = l->pool.features;
    float *reals = kedge_mem_new((size_t)n * features + 1, sizeof *reals);
    int32_t *labels = kedge_mem_new((size_t)n + 1, sizeof *labels);
    if (!reals || !labels) {
        kedge_mem_free(reals);
        kedge_mem_free(labels);
        return KEDGE_E_NOMEM;
    }
    int32_t most = -1;
    for (uint32_t i = 0; i < n; i++) {
        float *x = reals + (size_t)i * features;
        kedgei_learn_pool_row(&l->pool, rows[i], s->turn, x);
        labels[i] = l->pool.labels[rows[i]];
        if (s->attacker && !test) {
            kedgei_learn_poison(l, rows[i], x, &labels[i]);
        }
        most = labels[i] > most ? labels[i] : most;
    }
    *ret = (struct kedge_dataset){.n = n,
                                  .features = features,
                                  .classes = (uint32_t)(most + 1),
                                  .labels = labels,
                                  .reals = reals,
                                  .scale = 1,
                                  .storage = reals};
    return KEDGE_OK;
}
