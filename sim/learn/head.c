/* Sites that keep a head (FedPer, FedRep): the last layer of the model, which no update has. Here models and
 * updates keep the length of the whole; an update's head is zero, so that weights, rules and grouping see
 * what is shared alone, as jobs do. A site's own head is that of the model that it trained last. */
#include <string.h>

#include "common/base/try.h"
#include "common/tensor/part.h"
#include "sim/learn/engine.h"

int kedgei_learn_head_init(struct kedgei_learn *l)
{
    const struct kedge_part *part = &l->spec->job.share; /* without words all but the last layer */
    struct kedge_layout layout;
    bool head = false;
    l->shared = l->d;
    l->travels = l->spec->job.strategy->local->variate ? 4 : 2;
    if (!l->spec->job.strategy->local->has_head) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedge_model_layout(&l->spec->job.model, &layout, l->reterr));
    int err = kedge_part_check(part, &layout, l->reterr);
    for (uint32_t i = 0; i < layout.count && !err; i++) {
        const bool shared = kedge_part_has(part, &layout, i);
        if (shared && head) {
            err = kedge_diag_set(l->reterr, KEDGE_E_FORMAT,
                                 "\"share\": simulated sites keep the last tensors of a model, and share all "
                                 "before them");
        } else if (!shared && !head) {
            head = true;
            l->shared = layout.tensors[i].offset / sizeof(float);
        }
    }
    kedge_layout_deinit(&layout);
    return err ? kedge_diag_wrap(l->reterr, err, "strategy \"%s\"", l->spec->job.strategy->name) : KEDGE_OK;
}

void kedgei_learn_head_join(const struct kedgei_learn *l, uint32_t site, float *w)
{
    const float *own = l->shared < l->d ? l->sites[site].own : NULL;
    if (own) {
        memcpy(w + l->shared, own + l->shared, (l->d - l->shared) * sizeof *w);
    }
}

void kedgei_learn_head_split(const struct kedgei_learn *l, const float *base, float *w, float *ret_own)
{
    if (l->shared < l->d) {
        memcpy(ret_own, w, l->d * sizeof *w);
        memcpy(w + l->shared, base + l->shared, (l->d - l->shared) * sizeof *w);
    }
}
