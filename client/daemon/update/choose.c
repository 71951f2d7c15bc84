/* A choice of models (IFCA, Ghosh et al. 2020): the site measures each model's loss on its own training
 * samples and trains the best. Of equal losses the lowest group wins, so that the choice is the same whenever
 * it is repeated. Only the choice leaves the site, as the group of its update. */
#include "client/daemon/update/choose.h"

#include "client/daemon/host.h"
#include "client/daemon/trainer/trainer.h"
#include "common/base/try.h"

static json_t *request_of(struct kedge_client_work *w, const struct kedge_site_task *t, const char *op,
                          const char *classes, const char *base)
{
    json_t *data = NULL;
    if (kedge_policy_binding(w->policy, w->spec, classes, &data, NULL) != KEDGE_OK) {
        return NULL;
    }
    return json_pack("{s:s,s:s,s:o,s:s,s:o,s:i}", "id", t->job.s, "op", op, "model",
                     kedge_client_model_json(w->spec), "base", base, "data", data, "threads",
                     (int)kedge_policy_threads(w->policy));
}

static int ask(struct kedge_client_work *w, uint64_t serial, const struct kedge_site_task *t, bool tests,
               const char *classes, const char *base, struct kedge_metrics *ret, struct kedge_diag *d)
{
    struct kedge_trainer_given given;
    bool foreign = w->spec->is_external; /* then it reads copies in its own folder */
    KEDGE_TRY(foreign ? kedge_client_trainer_give(w, base, NULL, NULL, &given, d) : KEDGE_OK);
    json_t *request = request_of(w, t, tests ? "evaluate" : "measure", classes, foreign ? given.base : base);
    return kedge_client_ask(w, serial, request, false, tests, ret, d);
}

int kedge_client_measure(struct kedge_client_work *w, uint64_t serial, const struct kedge_site_task *task,
                         const char *classes, const char *path, struct kedge_metrics *ret,
                         struct kedge_diag *d)
{
    return ask(w, serial, task, true, classes, path, ret, d);
}

static int measure(struct kedge_client_work *w, uint64_t serial, const struct kedge_site_task *t,
                   const char *base, double *ret_loss, struct kedge_diag *d)
{
    struct kedge_metrics m = {.samples = 0};
    int err = ask(w, serial, t, false, "", base, &m, d);
    if (!err && !m.has_base_loss) {
        err =
            kedge_diag_set(d, KEDGE_E_TRAINER,
                           "trainer: its answer to \"measure\" lacks base_loss, by which a site chooses with "
                           "strategy \"%s\"",
                           w->spec->strategy->name);
    }
    *ret_loss = m.base_loss;
    return err;
}

int kedge_client_choose(struct kedge_client_work *w, uint64_t serial, struct kedge_site_task *task,
                        double *ret_loss, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    uint32_t best = 0;
    for (uint32_t g = 0; g < task->choice_count; g++) {
        double loss;
        KEDGE_TRY(kedge_client_work_path(w, "model", &task->choices[g], path));
        KEDGE_TRY(measure(w, serial, task, path, &loss, d));
        if (g == 0 || loss < *ret_loss) {
            best = g;
            *ret_loss = loss;
        }
    }
    /* From here on the task is an ordinary one of that group; the other models are removed, since the next
     * task brings new ones. */
    task->base = task->choices[best];
    task->group = best;
    w->model_digest = task->base; /* the one that is kept */
    kedge_client_work_trim(w, "model", &task->base, 1);
    return KEDGE_OK;
}
