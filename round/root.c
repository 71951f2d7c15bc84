/* Weights where one site's update is the root of trust: the others' are judged by it, it counts nothing
 * itself (Cao et al., FLTrust, NDSS 2021). The rule wants it behind the others, lists have it where its site
 * stands. */
#include <string.h>

#include "common/base/mem.h"
#include "round/compute_impl.h"

/* The others in their order, then the root; its place in *ret_root. */
static int put_last(const struct kedge_compute_input *inputs, size_t count,
                    struct kedge_compute_input *ordered, size_t *ret_root)
{
    size_t others = 0, roots = 0;
    for (size_t i = 0; i < count; i++) {
        if (inputs[i].is_root) {
            *ret_root = i;
            roots++;
        } else {
            ordered[others++] = inputs[i];
        }
    }
    if (roots != 1 || others == 0) {
        return KEDGE_E_ARG;
    }
    ordered[others] = inputs[*ret_root];
    return KEDGE_OK;
}

/* The strategy and the cap see the others alone (count − 1): the root's site is the job owner's own and
 * must not use up a tenant's share. Weights come back one place short and are moved apart where the root
 * stands in the list. */
int kedgei_weigh_rooted(const struct kedge_job_spec *spec, const struct kedge_layout *layout,
                        const struct kedge_compute_input *inputs, size_t count,
                        struct kedge_compute_weights *ret, struct kedge_diag *reterr)
{
    size_t root = 0;
    struct kedge_compute_input *ordered = kedge_mem_new(count, sizeof *ordered);
    if (!ordered) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for the weights of a round");
    }
    ret->rule = spec->rule;
    int err = put_last(inputs, count, ordered, &root);
    if (err) {
        (void)kedge_diag_set(reterr, err,
                             "weights of %zu updates: expected one of the root site \"%s/%s\" and another",
                             count, spec->tenants[spec->root_tenant].s, spec->root_site.s);
    }
    if (!err) {
        err = kedgei_weigh(spec, layout, false, ordered, count - 1, ret, reterr);
    }
    if (!err) {
        memmove(ret->weight + root + 1, ret->weight + root, (count - 1 - root) * sizeof *ret->weight);
        ret->weight[root] = 0;
    }
    kedge_mem_free(ordered);
    return err;
}

int kedge_compute_weigh(const struct kedge_job_spec *spec, const struct kedge_layout *layout, bool cold_start,
                        const struct kedge_compute_input *inputs, size_t count,
                        struct kedge_compute_weights *ret, struct kedge_diag *reterr)
{
    return spec->rule->needs_root ? kedgei_weigh_rooted(spec, layout, inputs, count, ret, reterr)
                                  : kedgei_weigh(spec, layout, cold_start, inputs, count, ret, reterr);
}
