/* What a simulation's spec begins with. */
#include "sim/learn/spec/spec_json.h"

void kedge_learn_spec_default(struct kedge_learn_spec *ret)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_learn_spec_parse(kedge_view_str("{\"preset\": \"mnist-1000-mclr\"}"), NULL, ret, &d);
    KEDGE_ASSERT(!err);
    ret->job.groups = 3; /* for strategies that have some */
    ret->job.pretrain_sites = 60;
}
