/* A site's samples as its trainer sees them: floats in the order in which the simulation deals them out.
 *
 * Where sites judge trials of groups, their judgement must not see the samples by which the simulation tells
 * how good a strategy is. So a tenth of a site's training samples, spread evenly, are its own test set there,
 * and it does not train on them. */
#include <string.h>

#include "common/base/mem.h"
#include "sim/protocol/impl.h"

enum { HELD_PART = 10, HELD_LEAST = 2, HELD_OF_LEAST = 4 };

static uint32_t held_of(const struct kedgei_learn *l, const struct kedgei_learn_site *s)
{
    const uint32_t part = s->train_count / HELD_PART;
    return !kedge_job_spec_tries(&l->spec->job) || s->train_count < HELD_OF_LEAST ? 0
           : part > HELD_LEAST                                                    ? part
                                                                                  : HELD_LEAST;
}

/* Training sample i of `all` is one of the `held`. */
static bool is_held(uint32_t i, uint32_t all, uint32_t held)
{
    return (uint64_t)(i + 1) * held / all != (uint64_t)i * held / all;
}

int kedgei_protocol_data(const struct kedgei_learn *l, uint32_t site, bool test, struct kedge_dataset *ret)
{
    const struct kedgei_learn_site *s = &l->sites[site];
    const uint32_t held = held_of(l, s), features = l->pool.features;
    const bool from_test = test && !kedge_job_spec_tries(&l->spec->job);
    const uint32_t *rows = from_test ? s->test : s->train;
    const uint32_t all = from_test ? s->test_count : s->train_count;
    const uint32_t n = from_test ? all : test ? held : all - held;
    float *reals = kedge_mem_new((size_t)n * features + 1, sizeof *reals);
    int32_t *labels = kedge_mem_new((size_t)n + 1, sizeof *labels);
    if (!reals || !labels) {
        kedge_mem_free(reals);
        kedge_mem_free(labels);
        return KEDGE_E_NOMEM;
    }
    int32_t most = -1;
    for (uint32_t i = 0, at = 0; i < all; i++) {
        float *x = reals + (size_t)at * features;
        if (!from_test && is_held(i, all, held) != test) {
            continue;
        }
        kedgei_learn_pool_row(&l->pool, rows[i], s->turn, x);
        labels[at] = l->pool.labels[rows[i]];
        if (s->attacker && !test) {
            kedgei_learn_poison(l, rows[i], x, &labels[at]);
        }
        most = labels[at] > most ? labels[at] : most;
        at++;
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
