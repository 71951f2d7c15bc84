/* Where groups are tried: what else a site's test samples say, beside the loss of its group's model. All of
 * it is measured on the same samples, for the coordinator compares it pair by pair (round/trial.h). */
#include "client/daemon/trainer/measured.h"

#include "client/daemon/update/choose.h"
#include "common/base/os/log.h"

/* The trial of two groups on the same samples. An evaluation is worth having without it. */
static void measure_trial(struct kedge_client_work *w, const struct kedge_train_item *item,
                          struct kedge_metrics *m)
{
    const struct kedge_site_task *t = &item->fx.task;
    struct kedge_metrics trial = {.samples = 0};
    struct kedge_diag d = {.text = ""};
    char path[KEDGE_PATH_MAX];
    if (!t->has_trial) {
        return;
    }
    int err = kedge_client_work_path(w, "trial", &t->trial, path);
    if (!err) {
        err = kedge_client_measure(w, item->fx.serial, t, item->classes, path, &trial, &d);
    }
    m->has_trial = !err && trial.test_samples == m->test_samples;
    m->trial_correct = trial.test_correct;
    m->trial_loss = trial.test_loss;
    if (!m->has_trial) {
        kedge_log(KEDGE_LOG_WARN, "trial of two groups", "job=%s round=%u: %s", t->job.s, t->round,
                  d.text[0] ? d.text : "the trainer evaluates it on other samples");
    }
}

/* Where groups are tried a site that trains says, too, what its training has made of the model that it has
 * just evaluated: whether sites' own models serve them better is decided by that (round/trial.h). It costs a
 * pass over the test samples, no training and no traffic. */
static void measure_trained(struct kedge_client_work *w, const struct kedge_train_item *item,
                            const char *trained, struct kedge_metrics *m)
{
    const struct kedge_site_task *t = &item->fx.task;
    struct kedge_metrics own = {.samples = 0};
    struct kedge_diag d = {.text = ""};
    const bool asked = m->has_trial || kedge_job_spec_asks_own(w->spec, t->round - 1);
    if (!asked || t->kind != KEDGE_SITE_TRAIN) {
        return;
    }
    int err = kedge_client_measure(w, item->fx.serial, t, item->classes, trained, &own, &d);
    m->has_personal = !err && own.test_samples == m->test_samples;
    m->personal_correct = own.test_correct;
    m->personal_loss = own.test_loss;
    if (!m->has_personal) {
        kedge_log(KEDGE_LOG_WARN, "the site's own model", "job=%s round=%u: %s", t->job.s, t->round,
                  d.text[0] ? d.text : "the trainer evaluates it on other samples");
    }
}

void kedge_client_measure_others(struct kedge_client_work *w, const struct kedge_train_item *item,
                                 const char *trained, struct kedge_metrics *m)
{
    measure_trial(w, item, m);
    measure_trained(w, item, trained, m);
}
