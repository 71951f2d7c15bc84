/* Training: asks the trainer process, then has the update made and the statements signed. On the work thread.
 *
 * The order in run_task is what a crash relies on. Everything that the site keeps from its last training is
 * opened first (control variate, residual, own model, head), each in the version that belongs to the update
 * which the coordinator accepted. Then the trainer is asked. Then the new versions are written, under the
 * digest of the update that they will belong to, and only after that the update is signed: a signed update
 * whose variate is lost would bend the job, a variate without a signed update is just never used. Nothing is
 * in force before the core's PERSIST names the update. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client/daemon/energy/energy.h"
#include "client/daemon/trainer/measured.h"
#include "client/daemon/trainer/part.h"
#include "client/daemon/trainer/train.h"
#include "client/daemon/trainer/trainer.h"
#include "client/daemon/update/base.h"
#include "client/daemon/update/choose.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "common/base/try.h"

/* A key that trainers need not know while a job has no use for it. */
static void put_positive(json_t *o, const char *key, double v)
{
    char text[KEDGE_REAL_MAX];
    if (v > 0) {
        kedge_real_encode(v, text);
        json_object_set_new(o, key, json_string(text));
    }
}

/* The tensors that are shared, or those that are not, and how often they are passed over by themselves. */
static json_t *phase_of(const struct kedge_client_work *w, bool shared, uint32_t epochs)
{
    json_t *tensors = json_array();
    for (uint32_t i = 0; i < w->whole.count; i++) {
        if (kedge_part_has(&w->spec->share, &w->whole, i) == shared) {
            json_array_append_new(tensors, json_string(w->whole.tensors[i].name));
        }
    }
    return json_pack("{s:o,s:I}", "tensors", tensors, "epochs", (json_int_t)epochs);
}

static void put_phases(json_t *o, const struct kedge_client_work *w, uint32_t head_epochs)
{
    json_t *list = json_array();
    if (head_epochs > 0) {
        json_array_append_new(list, phase_of(w, false, head_epochs));
    }
    json_array_append_new(list, phase_of(w, true, w->spec->local_epochs));
    json_object_set_new(o, "phases", list);
}

/* The tensors that may change, in the spec's words. */
static void put_trainable(json_t *o, const struct kedge_job_spec *s)
{
    json_t *list = json_array();
    const char *word = s->share.words;
    for (uint32_t i = 0; i < s->share.count; i++, word += strlen(word) + 1) {
        json_array_append_new(list, json_string(word));
    }
    json_object_set_new(o, "trainable", list);
}

/* What the job's strategy asks of a round's training; a pre-training is plain. */
static void put_strategy(json_t *o, const struct kedge_client_work *w, const struct kedge_site_task *t,
                         const char *personal)
{
    const struct kedge_site_plan plan = kedge_job_spec_site_plan(w->spec);
    char pull[KEDGE_REAL_MAX];
    if (personal[0]) {
        kedge_real_encode(plan.numbers.personal_pull, pull);
        json_object_set_new(o, "personal", json_string(personal));
        if (t->kind == KEDGE_SITE_TRAIN) {
            json_object_set_new(o, "personal_pull", json_string(pull));
        }
    }
    if (t->kind != KEDGE_SITE_TRAIN) {
        return;
    }
    put_positive(o, "proximal", plan.numbers.pull);
    if (plan.is_head_first) {
        put_phases(o, w, plan.numbers.head_epochs);
    }
    if (plan.sends_loss && t->choice_count == 0) {
        json_object_set_new(o, "base_loss", json_true());
    }
}

/* Whether this site keeps a model of its own of the job. It never leaves the site. */
static bool is_personal(const struct kedge_client_work *w, const struct kedge_site_task *t)
{
    return kedge_job_spec_site_plan(w->spec).has_own_model && t->kind != KEDGE_SITE_PRETRAIN;
}

/* Its file, which the trainer reads and writes and the owner may use. What counts is what is kept: the file
 * is made of that before each task. */
static int personal_path(struct kedge_client_work *w, const struct kedge_id *job, char out[KEDGE_PATH_MAX],
                         struct kedge_diag *d)
{
    KEDGE_TRY(kedge_client_path(w->h, out, "personal"));
    int err = kedge_dir_make(out, 0700, d);
    return err ? err : kedge_client_path(w->h, out, "personal/%s.safetensors", job->s);
}

static int open_personal(struct kedge_client_work *w, struct kedge_train_item *item)
{
    const struct kedge_id *job = &item->fx.task.job;
    char path[KEDGE_PATH_MAX];
    if (!is_personal(w, &item->fx.task)) {
        return KEDGE_OK;
    }
    KEDGE_TRY(personal_path(w, job, path, &item->diag));
    int err = kedge_kept_open_or_begin(w->h->dir, job, "personal", &item->in_force, w->whole.values_count,
                                       &item->personal, &item->diag);
    return err ? err : kedge_kept_to_model(&item->personal, &w->whole, path, &item->diag);
}

/* The paths as the trainer is told them. */
static json_t *request_of(struct kedge_client_work *w, const struct kedge_train_item *item,
                          const struct kedge_trainer_given *given)
{
    const struct kedge_job_spec *s = w->spec;
    const struct kedge_site_task *t = &item->fx.task;
    const struct kedge_energy_plan *plan = &item->plan;
    char seed[24], lr[KEDGE_REAL_MAX], l2[KEDGE_REAL_MAX];
    bool evaluate = t->kind == KEDGE_SITE_EVALUATE;
    kedge_real_encode(plan->learning_rate, lr);
    kedge_real_encode(s->l2, l2);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)t->seed);
    json_t *data = NULL;
    if (kedge_policy_binding(w->policy, s, item->classes, &data, NULL) != KEDGE_OK) {
        return NULL;
    }
    json_t *o = json_pack("{s:s,s:s,s:o,s:s,s:o}", "id", t->job.s, "op", evaluate ? "evaluate" : "train",
                          "model", kedge_client_model_json(s), "base", given->base, "data", data);
    if (o && !evaluate) {
        json_object_set_new(o, "out", json_string(given->out));
        json_object_set_new(o, "epochs", json_integer(s->local_epochs));
        json_object_set_new(o, "steps", json_integer(t->kind == KEDGE_SITE_PRETRAIN ? s->pretrain_steps : 0));
        json_object_set_new(o, "batch", json_integer(plan->batch));
        json_object_set_new(o, "lr", json_string(lr));
        json_object_set_new(o, "l2", json_string(l2));
        put_positive(o, "momentum", s->local_momentum);
        put_positive(o, "clip", s->clip);
        json_object_set_new(o, "seed", json_string(seed));
        json_object_set_new(o, "evaluate_base", json_boolean(t->evaluate_base));
        json_object_set_new(o, "threads", json_integer(plan->threads));
        if (t->percent > 0) {
            json_object_set_new(o, "percent", json_integer(t->percent));
        }
    }
    if (o) {
        put_strategy(o, w, t, given->personal);
    }
    if (o && !evaluate && kedge_job_spec_has_base(s)) {
        put_trainable(o, s);
    }
    if (o && given->drift[0]) {
        json_object_set_new(o, "drift", json_string(given->drift));
    }
    return o;
}

static int name_files(struct kedge_client_work *w, struct kedge_train_item *t, const char *base,
                      const char *out, struct kedge_trainer_given *ret, struct kedge_diag *d)
{
    const char *drift = t->has_control ? t->control.drift : NULL;
    char personal[KEDGE_PATH_MAX] = "";
    KEDGE_TRY(is_personal(w, &t->fx.task) ? personal_path(w, &t->fx.task.job, personal, d) : KEDGE_OK);
    if (w->spec->is_external) {
        return kedge_client_trainer_give(w, base, drift, personal[0] ? personal : NULL, ret, d);
    }
    snprintf(ret->personal, sizeof ret->personal, "%s", personal);
    snprintf(ret->base, sizeof ret->base, "%s", base);
    snprintf(ret->out, sizeof ret->out, "%s", out);
    snprintf(ret->drift, sizeof ret->drift, "%s", drift ? drift : "");
    return KEDGE_OK;
}

/* What a trainer of the owner's has left in its folder. */
static int take_foreign(struct kedge_client_work *w, const struct kedge_train_item *t,
                        const struct kedge_trainer_given *given, const char *out, struct kedge_diag *d)
{
    char personal[KEDGE_PATH_MAX];
    int err = kedge_client_trainer_take(w, given->out, out, d);
    if (err || !given->personal[0]) {
        return err;
    }
    err = personal_path(w, &t->fx.task.job, personal, d);
    return err ? err : kedge_client_trainer_take(w, given->personal, personal, d);
}

/* A trainer of the owner's gets copies and leaves copies (trainer_files.c); the built-in one reads and writes
 * the site's own files. That a strategy needs the loss of the base is checked here and not by the parser of
 * answers, because only the job's spec says so. */
static int ask_trainer(struct kedge_client_work *w, struct kedge_train_item *t, const char *base,
                       const char *out, struct kedge_metrics *m, struct kedge_diag *d)
{
    struct kedge_trainer_given given;
    bool foreign = w->spec->is_external;
    KEDGE_TRY(name_files(w, t, base, out, &given, d));
    json_t *request = request_of(w, t, &given);
    if (request && t->plan.wants_noise) {
        kedge_client_energy_probe(w, t->fx.serial, request, base, out, foreign ? given.out : NULL, &t->plan);
    }
    bool train = t->fx.task.kind != KEDGE_SITE_EVALUATE;
    bool chosen = t->fx.task.choice_count > 0; /* then the loss is known */
    KEDGE_TRY(kedge_client_ask(w, t->fx.serial, request, train, !train || t->fx.task.evaluate_base, m, d));
    if (foreign && train) {
        KEDGE_TRY(take_foreign(w, t, &given, out, d));
    }
    if (chosen) {
        m->base_loss = t->chosen_loss;
    } else if (t->fx.task.kind == KEDGE_SITE_TRAIN && kedge_job_spec_site_plan(w->spec).sends_loss
               && !m->has_base_loss) {
        return kedge_diag_set(d, KEDGE_E_TRAINER,
                              "trainer: its answer lacks base_loss, which strategy \"%s\" needs",
                              w->spec->strategy->name);
    }
    return KEDGE_OK;
}

/* The names of its classes come with each task of a job that learns them, but in the round in which it does.
 */
static int check_classes(const struct kedge_client_work *w, struct kedge_train_item *item)
{
    const struct kedge_site_task *t = &item->fx.task;
    const bool there = item->classes[0] != '\0';
    const bool asks = kedge_job_spec_asks_classes(w->spec, t->round) && t->kind == KEDGE_SITE_TRAIN;
    const bool fits =
        w->spec->learns_classes && !asks
            ? there && kedge_class_names_count(item->classes) <= kedge_model_outputs(&w->spec->model)
            : !there;
    return fits ? KEDGE_OK
                : kedge_diag_set(&item->diag, KEDGE_E_FORMAT,
                                 "the coordinator's task does not have the names of classes that it should");
}

/* What the trainer found, which the statement will say. */
static int check_found(struct kedge_client_work *w, const struct kedge_train_item *item,
                       const struct kedge_metrics *m, struct kedge_diag *d)
{
    if (item->fx.task.kind != KEDGE_SITE_TRAIN
        || !kedge_job_spec_asks_classes(w->spec, item->fx.task.round)) {
        return KEDGE_OK;
    }
    const uint32_t count = kedge_class_names_count(m->classes), most = kedge_model_outputs(&w->spec->model);
    if (count >= 1 && count <= most) {
        return KEDGE_OK;
    }
    w->trouble = count > most ? KEDGE_TROUBLE_DATA_SHAPE : KEDGE_TROUBLE_TRAINER_FAILED;
    return kedge_diag_set(d, KEDGE_E_TRAINER, "trainer: its answer names %u classes, expected 1 to %u", count,
                          most);
}

/* The control variate, where the job has one: of tasks that train. */
static int open_control(struct kedge_client_work *w, struct kedge_train_item *item)
{
    const struct kedge_site_task *t = &item->fx.task;
    if (t->kind != KEDGE_SITE_TRAIN || !kedge_job_spec_has_control(w->spec)) {
        return KEDGE_OK;
    }
    int err = kedge_client_control_open(w, t, &item->in_force, &item->control, &item->diag);
    item->has_control = !err;
    return err;
}

/* What compression has left, where the job's updates come compact. */
static int open_residual(struct kedge_client_work *w, struct kedge_train_item *item)
{
    const struct kedge_site_task *t = &item->fx.task;
    if (!kedge_job_spec_compact(w->spec, t->kind != KEDGE_SITE_TRAIN)) {
        return KEDGE_OK;
    }
    const uint32_t group = t->group == KEDGE_SITE_NONE ? 0 : t->group;
    struct kedge_kept *k = &item->residual;
    KEDGE_TRY(kedge_kept_open_or_begin(w->h->dir, &t->job, "residual", &item->in_force,
                                       w->layout.values_count, k, &item->diag));
    kedge_kept_set_group(k, group);
    return KEDGE_OK;
}

/* All that the site keeps, as it is after this training, under the update that it belongs to. */
static int keep_all(struct kedge_client_work *w, struct kedge_train_item *item,
                    const struct kedge_site_digest *update)
{
    const struct kedge_id *job = &item->fx.task.job;
    struct kedge_kept *all[] = {&item->control.kept, &item->residual, &item->personal, &item->head.kept};
    char path[KEDGE_PATH_MAX];
    if (item->fx.task.kind != KEDGE_SITE_TRAIN) {
        return KEDGE_OK; /* a pre-training shows what the data are like; nothing of it is gone on with */
    }
    if (item->personal.count > 0) {
        KEDGE_TRY(personal_path(w, job, path, &item->diag));
        KEDGE_TRY(kedge_kept_from_model(&item->personal, &w->whole, path, &item->diag));
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->count > 0) {
            item->keeps = true;
            KEDGE_TRY(kedge_kept_write(w->h->dir, job, update, all[i], &item->diag));
        }
    }
    return KEDGE_OK;
}

/* The same over a frozen base: the trainer works on both together. */
static int train_over_base(struct kedge_client_work *w, struct kedge_train_item *item, const char *shared,
                           const char *out, struct kedge_metrics *m)
{
    struct kedge_diag *d = &item->diag;
    struct kedge_client_base base;
    KEDGE_TRY(kedge_client_base_join(w, &item->fx.task, shared, &base, d));
    KEDGE_TRY(ask_trainer(w, item, base.whole, base.out, m, d));
    return item->fx.task.kind == KEDGE_SITE_EVALUATE ? KEDGE_OK : kedge_client_base_split(w, &base, out, d);
}

/* Of what is shared from `base` to `out`; the trainer works on it and the site's head together. */
static int train_whole(struct kedge_client_work *w, struct kedge_train_item *item, const char *base,
                       const char *out, struct kedge_metrics *m)
{
    struct kedge_diag *d = &item->diag;
    struct kedge_client_head *head = &item->head;
    if (kedge_job_spec_has_base(w->spec)) {
        return train_over_base(w, item, base, out, m);
    }
    if (!kedge_job_spec_has_head(w->spec)) {
        return ask_trainer(w, item, base, out, m, d);
    }
    KEDGE_TRY(kedge_client_head_open(w, &item->fx.task.job, &item->in_force, base, head, d));
    int err = ask_trainer(w, item, head->base, head->out, m, d);
    return err || item->fx.task.kind == KEDGE_SITE_EVALUATE ? err : kedge_client_head_split(w, head, out, d);
}

/* The update of a training, signed; before that what the site keeps with it is durable. The number of steps
 * divides the change of the control variate, and the trainer may be anybody's program, so 0 is refused before
 * it is used. */
static int make_result(struct kedge_client_work *w, struct kedge_train_item *item, const char *base,
                       const char *out, const struct kedge_metrics *m, const struct kedge_site_result *blank)
{
    const struct kedge_site_task *t = &item->fx.task;
    struct kedge_diag *d = &item->diag;
    uint32_t i = item->result_count++;
    struct kedge_site_result *r = &item->results[i];
    *r = *blank;
    if (item->has_control && m->steps == 0) {
        return kedge_diag_set(d, KEDGE_E_TRAINER,
                              "trainer: its answer says 0 steps, by which a control variate "
                              "cannot be divided");
    }
    KEDGE_TRY(kedge_client_make_update(w, base, out, item->has_control ? &item->control : NULL,
                                       item->residual.count > 0 ? &item->residual : NULL, m->steps, r, d));
    int err = keep_all(w, item, &r->update);
    return err ? err : kedge_client_sign_update(w, t, &item->plan, m, r, &item->envelopes[i], d);
}

/* What is kept, each in the version in force, and where the model lies and the trained one goes. Files that
 * are open when a later step fails are closed with the item. */
static int open_inputs(struct kedge_client_work *w, struct kedge_train_item *item, char base[KEDGE_PATH_MAX],
                       char out[KEDGE_PATH_MAX])
{
    KEDGE_TRY(kedge_client_work_path(w, "model", &item->fx.task.base, base));
    KEDGE_TRY(kedge_client_work_file(w, "trained", out));
    KEDGE_TRY(check_classes(w, item));
    KEDGE_TRY(kedge_client_part_check(w->spec, &item->fx.task, &item->diag));
    KEDGE_TRY(open_control(w, item));
    KEDGE_TRY(open_residual(w, item));
    return open_personal(w, item);
}

static int train_with_energy(struct kedge_client_work *w, struct kedge_train_item *item, const char *base,
                             const char *out, struct kedge_metrics *m)
{
    int err = kedge_client_energy_begin(w, &item->fx.task, &item->plan, &item->diag);
    w->trouble = err ? KEDGE_TROUBLE_ENERGY : KEDGE_TROUBLE_NONE;
    if (err) {
        return err;
    }
    KEDGE_TRY(train_whole(w, item, base, out, m));
    KEDGE_TRY(kedge_client_part_trained(&item->fx.task, m, &item->diag));
    return check_found(w, item, m, &item->diag);
}

/* A choice of models comes first because it sets the base that all that follows is about. Energy begins
 * before the trainer and ends after it whatever the trainer did: joules were used even where nothing came of
 * them. An evaluation is added where the task asks for it and there are samples to test with; one that says 0
 * samples would only be noise in the record. */
static int run_task(struct kedge_client_work *w, struct kedge_train_item *item)
{
    const struct kedge_site_task *t = &item->fx.task;
    int chosen = kedge_client_spec(w, &t->job, &t->spec, &item->diag);
    if (!chosen && t->choice_count > 0) {
        chosen = kedge_client_choose(w, item->fx.serial, &item->fx.task, &item->chosen_loss, &item->diag);
    }
    if (chosen) {
        return chosen;
    }
    struct kedge_diag *d = &item->diag;
    struct kedge_metrics m = {.samples = 0};
    char base[KEDGE_PATH_MAX], out[KEDGE_PATH_MAX];
    struct kedge_site_result blank = {.job = t->job,
                                      .kind = t->kind,
                                      .round = t->round,
                                      .base = t->base,
                                      .group = t->group == KEDGE_SITE_NONE ? 0 : t->group};
    int err = open_inputs(w, item, base, out);
    if (!err) {
        err = train_with_energy(w, item, base, out, &m);
    }
    kedge_client_energy_end(w, &item->plan, &m, err, d);
    if (!err) {
        memcpy(item->engine, m.engine, sizeof item->engine);
        memcpy(item->fallback, m.fallback, sizeof item->fallback);
        item->labels = m.labels;
        item->test_samples = m.test_samples;
        item->test_loss = m.test_loss;
        item->test_deviation = m.test_deviation;
        item->shift = w->spec->shift;
        item->pause = w->spec->migration_pause;
    }
    if (!err && t->kind != KEDGE_SITE_EVALUATE) {
        err = make_result(w, item, base, out, &m, &blank);
        if (err == KEDGE_E_BOUND) {
            kedge_client_energy_diverged(w, &item->plan);
        }
    }
    bool evaluated = t->kind == KEDGE_SITE_EVALUATE || (t->evaluate_base && t->round > 0);
    if (!err && evaluated && m.test_samples > 0) {
        kedge_client_measure_others(w, item, out, &m);
        uint32_t i = item->result_count++;
        item->results[i] = blank;
        item->results[i].kind = KEDGE_SITE_EVALUATE;
        item->results[i].round = t->kind == KEDGE_SITE_EVALUATE ? t->round : t->round - 1;
        err = kedge_client_sign_evaluation(w, t, &m, &item->results[i], &item->envelopes[i], d);
    }
    if (!err && item->result_count == 0) {
        err = kedge_diag_set(d, KEDGE_E_DENIED, "there are no test samples to evaluate with");
    }
    return err;
}

static void train_run(struct kedge_client_work *w, struct kedge_site_item *item)
{
    struct kedge_train_item *t = (struct kedge_train_item *)item;
    w->trouble = KEDGE_TROUBLE_NONE;
    t->err = t->err ? t->err : run_task(w, t);
    t->trouble = w->trouble;
    kedge_client_control_close(&t->control);
    kedge_kept_close(&t->residual);
    kedge_kept_close(&t->personal);
    kedge_client_head_close(&t->head);
    if (w->policy->memory_all > 0) {
        kedge_client_trainer_stop(w); /* what it has would be missing to others */
    }
    if (t->err) {
        kedge_log(KEDGE_LOG_WARN, "training", "job=%s round=%u: %s", t->fx.task.job.s, t->fx.task.round,
                  t->diag.text[0] ? t->diag.text : kedge_strerror(t->err));
    }
}

/* A site whose shifts nobody can see goes on with a group that may no longer be its own: its operator hears
 * once what is missing. */
static void tell_blind(struct kedge_site_host *h, const struct kedge_train_item *t)
{
    const struct kedge_site_task *task = &t->fx.task;
    if (!kedge_grouped_is_blind(&h->groupeds, &task->job, t->test_samples, t->test_deviation)) {
        return;
    }
    kedge_log(KEDGE_LOG_WARN, "shifts of data stay unseen", "job=%s: %s", task->job.s,
              t->test_samples < 2
                  ? "the job compares losses on test samples, and this site has fewer than two: give its "
                    "data a test part"
                  : "the job compares losses on test samples, and the trainer does not tell their "
                    "\"test_deviation\": let it tell (modules/train.md), or give the job another \"shift\"");
}

/* After a pre-training its data are those that the site is grouped by; after anything else they are compared
 * with those. */
static void look_for_shift(struct kedge_site_host *h, const struct kedge_train_item *t)
{
    const struct kedge_site_task *task = &t->fx.task;
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_SHIFTED, .job = task->job};
    if (t->shift == KEDGE_SHIFT_TEST_NONE || task->kind == KEDGE_SITE_PRETRAIN) {
        return;
    }
    if (t->shift == KEDGE_SHIFT_TEST_LOSS) {
        tell_blind(h, t);
    }
    const bool has_shifted =
        t->shift == KEDGE_SHIFT_TEST_LOSS
            ? kedge_grouped_lost(&h->groupeds, &task->job, t->pause, task->round, t->test_samples,
                                 t->test_loss, t->test_deviation)
            : kedge_grouped_shifted(&h->groupeds, &task->job, t->shift, t->pause, task->round, &t->labels);
    if (has_shifted) {
        kedge_log(KEDGE_LOG_INFO, "data have shifted", "job=%s round=%u", task->job.s, task->round);
        kedge_client_step(h, &ev);
    }
}

/* What was signed stands among what waits for its receipt; who has none to wait for any more makes room. */
static void keep_envelopes(struct kedge_site_host *h, struct kedge_train_item *t)
{
    struct kedge_site_view view;
    kedge_site_view(h->site, &view);
    for (uint32_t i = 0; i < KEDGE_SITE_STORED_MAX; i++) {
        struct kedge_site_envelope *place = &h->envelopes[i];
        bool waits = false;
        for (uint32_t k = 0; place->text && k < view.memory->result_count; k++) {
            const struct kedge_site_digest *e = &view.memory->results[k].envelope;
            waits = waits || memcmp(e->b, place->digest.b, sizeof e->b) == 0;
        }
        if (!waits) {
            kedge_envelope_free(place);
        }
    }
    for (uint32_t n = 0; n < t->result_count; n++) {
        uint32_t at = 0;
        while (at < KEDGE_SITE_STORED_MAX && h->envelopes[at].text) {
            at++;
        }
        KEDGE_ASSERT(at < KEDGE_SITE_STORED_MAX); /* each work has room for its own */
        h->envelopes[at] = t->envelopes[n];
        t->envelopes[n] = (struct kedge_site_envelope){.text = NULL};
    }
}

/* The loop's part. If the work was given up meanwhile (`taken` is false), nothing of this training is
 * remembered: no envelope, no "signed", no kept vector, so the task may be done again as if it had never run.
 * What is remembered is noted before the core's step, because the step's PERSIST writes it together with the
 * result. */
static void train_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    struct kedge_train_item *t = (struct kedge_train_item *)item;
    struct kedge_client_work *w = item->work;
    struct kedge_site_event ev = {.type = t->err ? KEDGE_SITE_EV_TRAIN_FAILED : KEDGE_SITE_EV_TRAINED,
                                  .serial = t->fx.serial,
                                  .err = t->err,
                                  .result_count = t->result_count};
    memcpy(ev.results, t->results, sizeof ev.results);
    bool taken = !t->err && !kedge_client_aborted(w, t->fx.serial);
    if (t->engine[0]) {
        snprintf(h->service.status.engine, sizeof h->service.status.engine, "%s", t->engine);
        snprintf(h->service.status.fallback, sizeof h->service.status.fallback, "%s", t->fallback);
    }
    kedge_client_ended_note(w, t->trouble, t->diag.text[0] ? t->diag.text : kedge_strerror(t->err), &ev);
    if (taken) {
        keep_envelopes(h, t);
    }
    for (uint32_t i = 0; i < KEDGE_SITE_RESULTS_MAX; i++) {
        kedge_envelope_free(&t->envelopes[i]);
    }
    if (taken && t->fx.task.kind == KEDGE_SITE_PRETRAIN && t->shift != KEDGE_SHIFT_TEST_NONE) {
        kedge_grouped_note(&h->groupeds, &t->fx.task.job, t->fx.task.round, &t->labels);
    }
    if (taken && t->fx.task.kind != KEDGE_SITE_EVALUATE) {
        if (t->keeps) {
            kedge_kept_signed(&h->kept, &t->fx.task.job, &t->results[0].update);
        }
        kedge_signeds_note(&h->signeds, &t->fx.task.job, t->fx.task.kind, t->fx.task.round);
    }
    kedge_client_service_step(h, &ev, t->err ? t->diag.text : "");
    if (taken) {
        look_for_shift(h, t);
    }
    kedge_mem_free(t);
    kedge_client_works_trained(w);
}

/* The refusal to sign twice is here, on the loop, where `signeds` lives: a task for a round that was signed
 * already fails before a thread sees it. */
void kedge_client_train(struct kedge_site_host *h, const struct kedge_site_effect *fx)
{
    struct kedge_client_work *w = &h->works[fx->work];
    const struct kedge_site_task *task = &fx->task;
    struct kedge_train_item *t = kedge_mem_new(1, sizeof *t);
    KEDGE_ASSERT(t);
    *t = (struct kedge_train_item){.item = {.run = train_run, .handle = train_handle},
                                   .fx = *fx,
                                   .in_force = kedge_kept_in_force(&h->kept, &task->job)};
    kedge_data_files_begin(&h->service.data, h->policy->data);
    memcpy(t->classes, w->classes, sizeof t->classes);
    /* The spec was fetched before, and until this item comes its thread leaves it alone. */
    if (w->spec && kedge_id_eq(&w->spec_job, &task->job) && w->spec->is_external) {
        t->trainer = w->spec->external.trainer;
    }
    if (task->kind != KEDGE_SITE_EVALUATE
        && kedge_signeds_has(&h->signeds, &task->job, task->kind, task->round)) {
        t->err = kedge_diag_set(&t->diag, KEDGE_E_DENIED,
                                "an update for this round was signed already, and it was not taken");
    }
    kedge_client_works_train(w, t);
}
