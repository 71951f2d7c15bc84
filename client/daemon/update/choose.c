#include "client/daemon/update/choose.h"

#include "client/daemon/host.h"
#include "client/daemon/trainer/trainer.h"

static json_t *request_of(struct kedge_client_work *w, const struct kedge_site_task *t, const char *base)
{
    json_t *data = NULL;
    if (kedge_policy_binding(w->policy, w->spec, "", &data, NULL) != KEDGE_OK) {
        return NULL;
    }
    return json_pack("{s:s,s:s,s:o,s:s,s:o,s:i}", "id", t->job.s, "op", "measure", "model",
                     kedge_client_model_json(w->spec), "base", base, "data", data, "threads",
                     (int)kedge_policy_threads(w->policy));
}

static int measure(struct kedge_client_work *w, uint64_t serial, const struct kedge_site_task *t,
                   const char *base, double *ret_loss, struct kedge_diag *d)
{
    struct kedge_metrics m = {.samples = 0};
    struct kedge_trainer_given given;
    bool foreign = w->spec->is_external; /* then it reads copies in its own folder */
    int err = foreign ? kedge_client_trainer_give(w, base, NULL, false, &given, d) : KEDGE_OK;
    err =
        err ? err
            : kedge_client_ask(w, serial, request_of(w, t, foreign ? given.base : base), false, false, &m, d);
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
        int err = kedge_client_work_path(w, "model", &task->choices[g], path);
        err = err ? err : measure(w, serial, task, path, &loss, d);
        if (err) {
            return err;
        }
        if (g == 0 || loss < *ret_loss) {
            best = g;
            *ret_loss = loss;
        }
    }
    task->base = task->choices[best];
    task->group = best;
    w->model_digest = task->base; /* the one that is kept */
    kedge_client_work_trim(w, "model", &task->base, 1);
    return KEDGE_OK;
}
