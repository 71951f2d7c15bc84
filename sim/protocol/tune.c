/* What a site's own training makes of a model. Where groups are tried sites say how good that is, and the
 * simulation tells what sites are served by, once their record has it that this is what they made themselves.
 */
#include <string.h>

#include "common/base/try.h"
#include "job/task_seed.h"
#include "sim/protocol/impl.h"

struct kedge_train_params kedgei_protocol_params(const struct kedgei_protocol *p,
                                                 const struct kedgei_work *work)
{
    const struct kedge_job_spec *job = &p->job;
    return (struct kedge_train_params){.steps = work->pretrain ? job->pretrain_steps : 0,
                                       .epochs = job->local_epochs,
                                       .batch = job->batch,
                                       .lr = job->learning_rate,
                                       .l2 = job->l2,
                                       .momentum = job->local_momentum,
                                       .clip = job->clip,
                                       .seed = work->seed};
}

int kedgei_protocol_test_trained(const struct kedgei_protocol *p, const struct kedgei_work *work,
                                 struct kedge_net *net, double *ret_loss)
{
    struct kedge_dataset data;
    struct kedge_evaluation e;
    if (!p->found || work->pretrain || work->site >= p->l->n) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedgei_protocol_data(p->l, work->site, true, &data));
    if (kedge_net_evaluate(net, &data, &e, NULL) == KEDGE_OK) { /* else it diverges: nothing to tell */
        *ret_loss = e.loss;
    }
    kedge_dataset_deinit(&data);
    return KEDGE_OK;
}

int kedgei_protocol_tune(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t site,
                         const float *model)
{
    const struct kedgei_protocol *p = l->owner;
    struct kedge_train_result result;
    struct kedge_dataset data;
    struct kedge_net *net = NULL;
    struct kedge_id id;
    kedgei_names_site(&p->names, site, &id);
    const struct kedgei_work work = {.site = site,
                                     .seed = kedge_task_seed(p->job.seed, p->last.r.round + 1, &id)};
    const struct kedge_train_params params = kedgei_protocol_params(p, &work);
    const uint32_t batch = params.batch > KEDGEI_EVALUATE_BATCH ? params.batch : KEDGEI_EVALUATE_BATCH;
    KEDGE_TRY(kedgei_protocol_data(l, site, false, &data));
    int err = kedge_net_new(&p->job.model, batch, &net, NULL);
    if (!err) {
        memcpy(kedge_net_weights(net), model, l->d * sizeof *model);
        err = kedge_net_train(net, &data, &params, &result, NULL);
        memcpy(kedge_net_weights(lane->net), kedge_net_weights(net), l->d * sizeof *model);
    }
    kedge_net_free(net);
    kedge_dataset_deinit(&data);
    return err;
}
