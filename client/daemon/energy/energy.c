/* Around one task: may it begin, with which batch and power, what did it use. On the work thread.
 *
 * There are two locks. work_lock is for everything that trainings do with meters, caps and what is learnt; it
 * may be held for as long as a meter takes to read. `lock` is for the few fields that the loop shows and
 * asks, and is held for some instructions only, so that the loop never waits for a meter. Where both are
 * needed, work_lock is taken first.
 *
 * Where a budget is set, joules are reserved before a task begins and the reservation is durable: a device
 * that loses power while it trains has used energy, and counts what was reserved as used when it starts again
 * (kedge_budget_recover). */
#include "client/daemon/energy/energy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/daemon/energy/energy_impl.h"
#include "client/energy/host/perf.h"
#include "common/base/mem.h"
#include "common/base/os/entropy.h"
#include "common/base/os/log.h"
#include "common/base/try.h"

static const double upload_share = 0.2; /* of the round's time is left to the upload */

/* ---- begin and end of the daemon ---- */

static void open_caps(struct kedge_site_host *h, const struct kedge_energy_policy *p)
{
    struct kedge_client_energy *e = h->energy;
    struct kedge_diag d = {.text = ""};
    char kept[KEDGE_PATH_MAX];
    int err = kedge_client_path(h, kept, "power-found");
    if (!err && p->power != KEDGE_POWER_CPU && p->power != KEDGE_POWER_GPU) {
        err = kedge_caps_restore_kept(&e->meters, kept, &d); /* the owner may have changed his mind since */
    } else if (!err) {
        err = kedge_caps_open(&e->caps, &e->meters, kept, p->power == KEDGE_POWER_GPU, &d);
        e->has_caps = !err;
    }
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "power", "%s", d.text[0] ? d.text : kedge_strerror(err));
    }
}

int kedge_client_energy_open(struct kedge_site_host *h, struct kedge_diag *d)
{
    const struct kedge_energy_policy *p = &h->policy->energy;
    struct kedge_client_energy *e = h->energy = kedge_mem_new(1, sizeof *e);
    char found[KEDGE_METER_HINT_MAX];
    uint64_t seed;
    if (!e || pthread_mutex_init(&e->lock, NULL) != 0 || pthread_mutex_init(&e->work_lock, NULL) != 0) {
        return KEDGE_E_NOMEM;
    }
    e->policy = *p;
    kedge_os_random(&seed, sizeof seed);
    kedge_rng_init(&e->rng, seed, KEDGE_RNG_JITTER, 1, 0);
    const struct kedge_meters_options options = {p->root, p->meters ? p->nvml : "", p->gpu,
                                                 p->meters && strcmp(p->root, "/") == 0 ? &kedge_perf_linux
                                                                                        : NULL};
    int err = kedge_meters_open(&e->meters, &options);
    if (!p->meters) {
        e->meters.count = 0;
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(kedgei_energy_read(h, d));
    e->budget = e->stored.budget;
    e->assumed_w = kedgei_energy_assumed_w(e, h->policy);
    kedge_budget_recover(&e->budget);
    open_caps(h, p);
    kedge_meters_describe(&e->meters, found);
    kedge_log(KEDGE_LOG_INFO, "meters", "%s", found);
    if (e->meters.hint[0] && p->meters) {
        kedge_log(KEDGE_LOG_WARN, "meters", "%s", e->meters.hint);
    }
    return KEDGE_OK;
}

static void restore_caps(struct kedge_client_energy *e)
{
    struct kedge_diag d = {.text = ""};
    if (e->has_caps && kedge_caps_restore(&e->caps, &d) != KEDGE_OK) {
        kedge_log(KEDGE_LOG_ERROR, "power", "%s", d.text);
    }
}

/* What began to rest goes on resting behind a restart, until it is 5 points away. */
static void keep_rest(struct kedge_site_host *h)
{
    const struct kedge_budget *now = &h->energy->budget, *kept = &h->energy->stored.budget;
    struct kedge_diag d = {.text = ""};
    if ((now->below_floor != kept->below_floor || now->too_hot != kept->too_hot)
        && kedgei_energy_write(h, now, &d) != KEDGE_OK) {
        kedge_log(KEDGE_LOG_WARN, "energy", "%s", d.text);
    }
}

void kedge_client_energy_close(struct kedge_site_host *h)
{
    struct kedge_client_energy *e = h->energy;
    if (e) {
        restore_caps(e);
        keep_rest(h);
        kedge_meters_close(&e->meters);
        pthread_mutex_destroy(&e->lock);
        pthread_mutex_destroy(&e->work_lock);
        json_decref(e->status);
        kedge_mem_free(e);
        h->energy = NULL;
        h->service.status.energy = NULL;
    }
}

void kedge_client_energy_policy(struct kedge_site_host *h)
{
    struct kedge_client_energy *e = h->energy;
    pthread_mutex_lock(&e->work_lock);
    const double assumed_w = kedgei_energy_assumed_w(e, h->policy);
    pthread_mutex_lock(&e->lock);
    e->policy = h->policy->energy;
    e->assumed_w = assumed_w;
    e->refused_day = 0; /* what was too much may fit now */
    e->shown = false;
    pthread_mutex_unlock(&e->lock);
    pthread_mutex_unlock(&e->work_lock);
    e->look_ns = 0;
}

/* ---- before ---- */

/* Reserves what the task may use. */
static int reserve(struct kedge_client_work *w, const struct kedge_site_task *t, struct kedge_diag *d)
{
    struct kedge_client_energy *e = w->h->energy;
    const struct kedge_energy_policy *p = &w->policy->energy;
    const struct kedge_budget_clock clock = kedgei_energy_clock();
    struct kedge_surroundings s;
    char text[KEDGE_BUDGET_TEXT_MAX];
    const double first = kedgei_energy_first(w, t);
    kedge_surroundings_see(&e->meters, &s);
    pthread_mutex_lock(&e->lock);
    enum kedge_budget_answer a = kedge_budget_ask(&p->rules, &e->budget, &s, &clock);
    a = a == KEDGE_BUDGET_YES ? kedge_budget_begin(&p->rules, &e->budget, &t->job, first, &clock) : a;
    kedge_budget_text(a, &p->rules, &e->budget, &s, &clock, &t->job, first, text);
    e->last_upper = kedge_budget_upper(&e->budget, &t->job, first);
    e->refused_day = a == KEDGE_BUDGET_DAY ? e->budget.day : 0;
    memcpy(e->refused, text, sizeof e->refused);
    e->shown = false;
    const struct kedge_budget budget = e->budget;
    pthread_mutex_unlock(&e->lock);
    if (a != KEDGE_BUDGET_YES) { /* what is only reserved may be free when the others end */
        return kedge_diag_set(d, a == KEDGE_BUDGET_RESERVED ? KEDGE_E_BUSY : KEDGE_E_DENIED, "energy: %s",
                              text);
    }
    const bool limited = p->rules.joules_per_day > 0 || p->rules.joules_per_job > 0;
    return limited ? kedgei_energy_write(w->h, &budget, d) : KEDGE_OK;
}

static void choose_batch(struct kedge_client_work *w, struct kedge_energy_plan *p, double seconds)
{
    struct kedge_client_energy *e = w->h->energy;
    struct kedge_rounds *r = &kedgei_energy_find(e, p->key)->rounds;
    const struct kedge_rounds_ask ask = {.fixed = w->policy->energy.batch_fixed, .seconds = seconds};
    const struct kedge_rounds_choice c = kedge_rounds_choose(r, &ask, &e->rng);
    p->place = c.place;
    p->batch = c.size;
    p->learning_rate = kedge_job_spec_rate(w->spec, c.size);
    p->wants_noise = c.wants_noise;
    snprintf(p->choice, sizeof p->choice, "batch %u of %u to %u: %s", c.size, r->batch.sizes[0].size,
             r->batch.sizes[r->batch.count - 1].size, c.why);
}

static bool is_another_open(const struct kedge_client_energy *e, const struct kedge_client_work *w)
{
    bool any = false;
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        any = any || (i != w->index && e->windows[i].is_open);
    }
    return any;
}

/* The cap, or the number of threads, by the table of the batch that was chosen: costs of a level differ from
 * batch to batch, so each batch size has a profile of its own. The levels depend on what the device was found
 * with and on the owner's least; where they are not those that were learnt for, the profile begins anew. */
static int choose_power(struct kedge_client_work *w, struct kedge_energy_plan *p, double seconds,
                        struct kedge_diag *d)
{
    struct kedge_client_energy *e = w->h->energy;
    const struct kedge_energy_policy *policy = &w->policy->energy;
    struct kedge_energy_task *task = kedgei_energy_find(e, p->key);
    struct kedge_profile *profile = &task->profiles[p->place];
    const bool threads = policy->power == KEDGE_POWER_THREADS;
    if (!threads && (!e->has_caps || is_another_open(e, w))) {
        return KEDGE_OK; /* a cap is for the whole device: not while another one trains */
    }
    const double found = threads ? kedge_policy_threads(w->policy) : kedge_caps_found_w(&e->caps);
    const double least = fmin(found, fmax(policy->power_least, threads ? 1 : kedge_caps_least_w(&e->caps)));
    const bool is_other = profile->count == 0 || profile->levels[0].level > found
                          || profile->levels[0].level < found
                          || profile->levels[profile->count - 1].level < least;
    if (is_other && kedge_profile_init(profile, !threads, found, least) != KEDGE_OK) {
        return KEDGE_OK;
    }
    const double most = kedgei_energy_most_w(e, policy);
    const struct kedge_profile_options o = {.rule = policy->power_rule,
                                            .eta = policy->eta,
                                            .power_max_w = isfinite(most) ? most : 0,
                                            .slowdown = policy->slowdown,
                                            .work = task->rounds.samples,
                                            .time_s = seconds};
    p->level = kedge_profile_choose(profile, &o, &p->tries_level);
    p->has_level = true;
    const double level = profile->levels[p->level].level;
    const size_t len = strlen(p->choice);
    snprintf(p->choice + len, sizeof p->choice - len, "%s%g %s%s", len ? "; " : "", level,
             threads ? "threads" : "W", p->tries_level ? ": tried" : "");
    if (threads) {
        p->threads = (uint32_t)level;
        return KEDGE_OK;
    }
    int err = kedge_caps_set(&e->caps, level, d);
    p->sets_cap = !err;
    return err;
}

static int plan(struct kedge_client_work *w, const struct kedge_site_task *t, struct kedge_energy_plan *p,
                struct kedge_diag *d)
{
    const bool trains = t->kind == KEDGE_SITE_TRAIN;
    const double seconds = (double)t->remaining_ns / 1e9 * (1 - upload_share);
    *p = (struct kedge_energy_plan){.batch = w->spec->batch,
                                    .threads = kedge_policy_threads(w->policy),
                                    .learning_rate = w->spec->learning_rate};
    p->joules = kedge_joules_unknown("not trained yet");
    p->is_auto = trains && w->spec->batch_auto;
    if (!trains || (!p->is_auto && w->policy->energy.power == KEDGE_POWER_NONE)) {
        return KEDGE_OK;
    }
    int err = kedgei_energy_task(w, p->key, d);
    if (!err && p->is_auto) {
        choose_batch(w, p, seconds);
    }
    if (!err && w->policy->energy.power != KEDGE_POWER_NONE) {
        struct kedge_diag wrong = {.text = ""};
        if (choose_power(w, p, seconds, &wrong) != KEDGE_OK) { /* it trains without */
            kedge_log(KEDGE_LOG_WARN, "power", "%s", wrong.text);
            p->has_level = false;
        }
    }
    return err;
}

/* A reservation without a task behind it would hold back all others until the next start, so it is cancelled
 * where planning fails. */
static int begin(struct kedge_client_work *w, const struct kedge_site_task *t, struct kedge_energy_plan *ret,
                 struct kedge_diag *d)
{
    KEDGE_TRY(reserve(w, t, d));
    int err = plan(w, t, ret, d);
    if (!err) {
        kedgei_energy_window_open(w, &t->job);
    } else {
        pthread_mutex_lock(&w->h->energy->lock);
        kedge_budget_cancel(&w->h->energy->budget, &t->job);
        pthread_mutex_unlock(&w->h->energy->lock);
    }
    return err;
}

int kedge_client_energy_begin(struct kedge_client_work *w, const struct kedge_site_task *t,
                              struct kedge_energy_plan *ret, struct kedge_diag *d)
{
    pthread_mutex_lock(&w->h->energy->work_lock);
    int err = begin(w, t, ret, d);
    pthread_mutex_unlock(&w->h->energy->work_lock);
    if (!err && ret->choice[0]) {
        kedge_log(KEDGE_LOG_INFO, "choice", "job=%s round=%u %s", t->job.s, t->round, ret->choice);
    }
    return err;
}

/* ---- while ---- */

static void tick(struct kedge_client_work *w)
{
    struct kedge_client_energy *e = w->h->energy;
    const struct kedge_energy_policy *p = &w->policy->energy;
    double used;
    if (!kedgei_energy_window_tick(w, &used)) {
        return;
    }
    if (p->rules.joules_per_day > 0 || p->rules.joules_per_job > 0) {
        struct kedge_diag d = {.text = ""};
        pthread_mutex_lock(&e->lock);
        const bool grows = kedge_budget_grow(&e->budget, &e->windows[w->index].job, used);
        const struct kedge_budget budget = e->budget;
        pthread_mutex_unlock(&e->lock);
        if (grows && kedgei_energy_write(w->h, &budget, &d) != KEDGE_OK) {
            kedge_log(KEDGE_LOG_WARN, "energy", "%s", d.text);
        }
    }
}

void kedge_client_energy_tick(struct kedge_client_work *w)
{
    if (w->h->energy) {
        pthread_mutex_lock(&w->h->energy->work_lock);
        tick(w);
        pthread_mutex_unlock(&w->h->energy->work_lock);
    }
}

/* ---- behind ---- */

/* Whole joules; what is left of one is told with the next task, so that sums stay true. */
static struct kedge_joules round_off(struct kedge_client_energy *e, struct kedge_joules j)
{
    if (j.quality == KEDGE_QUALITY_UNKNOWN) {
        return j;
    }
    const double told = fmax(0, floor(e->carry + j.joules));
    e->carry += j.joules - told;
    j.joules = told;
    j.low = fmin(floor(j.low), told);
    j.high = fmax(ceil(j.high), told);
    return j;
}

static void describe(struct kedge_client_work *w, struct kedge_energy_plan *p, bool shared)
{
    char found[KEDGE_METER_HINT_MAX];
    const struct kedge_energy_policy *policy = &w->policy->energy;
    kedge_meters_describe(&w->h->energy->meters, found);
    const char *scope = shared ? "part of several trainings" : policy->share ? "attributed share" : "device";
    switch (p->joules.quality) {
    case KEDGE_QUALITY_MEASURED:
        snprintf(p->energy_how, sizeof p->energy_how, "%.60s; %s", found, scope);
        return;
    case KEDGE_QUALITY_MODELLED:
        snprintf(p->energy_how, sizeof p->energy_how, "%.50s; %s; %.0f to %.0f J",
                 strcmp(found, "none") == 0 ? "model" : found, scope, p->joules.low, p->joules.high);
        return;
    case KEDGE_QUALITY_UNKNOWN:
        snprintf(p->energy_how, sizeof p->energy_how, "%.50s; %.60s", found, p->joules.why);
        return;
    }
}

/* What was learnt of batch and power. Rounds that say nothing of the batch itself are skipped: those that
 * tried a level, those with probes of noise in them, and those that ran beside another training. */
static void learn(struct kedge_client_work *w, const struct kedge_energy_plan *p,
                  const struct kedge_metrics *m, const struct kedge_joules *j, double seconds, bool diverged,
                  bool shared)
{
    struct kedge_client_energy *e = w->h->energy;
    const struct kedge_energy_policy *policy = &w->policy->energy;
    struct kedge_energy_task *t = kedgei_energy_find(e, p->key);
    if (!t) {
        return; /* forgotten meanwhile */
    }
    const double samples = diverged ? 0 : (double)m->samples * w->spec->local_epochs,
                 most = kedgei_energy_most_w(e, policy);
    const struct kedge_rounds_saw saw = {.place = p->place,
                                         .samples = samples,
                                         .seconds = seconds,
                                         .joules = *j,
                                         .diverged = diverged,
                                         .skip = p->tries_level || p->probed || shared,
                                         .eta = policy->eta,
                                         .power_max_w = isfinite(most) ? most : 0};
    kedge_rounds_saw(&t->rounds, &saw);
    if (p->has_level && j->quality == KEDGE_QUALITY_MEASURED && !p->probed && !shared) {
        kedge_profile_saw(&t->profiles[p->place], p->level, samples, seconds, j->joules);
    }
}

static void show(struct kedge_client_energy *e, const struct kedge_energy_plan *p)
{
    kedge_joules_add(&e->sum, &p->joules);
    memcpy(e->last_choice, p->choice, sizeof e->last_choice);
    memcpy(e->last_how, p->energy_how, sizeof e->last_how);
    e->last = p->joules;
    e->shown = false;
}

/* What counts for budgets. Unknown joules are stated as unknown, but a device without a meter uses energy,
 * too: its budget is kept by its power as it is assumed, and the status says so. */
static struct kedge_joules count_of(struct kedge_client_work *w, const struct kedge_joules *j, double seconds,
                                    bool shared)
{
    struct kedge_client_energy *e = w->h->energy;
    if (j->quality == KEDGE_QUALITY_MEASURED && !shared && seconds >= 1) {
        e->seen_w = fmax(e->seen_w, j->joules / seconds);
    }
    if (j->quality != KEDGE_QUALITY_UNKNOWN) {
        return *j;
    }
    const double joules = kedgei_energy_assumed_w(e, w->policy) * seconds;
    return kedge_joules_modelled(joules, 0, 2 * joules);
}

static void end(struct kedge_client_work *w, struct kedge_energy_plan *p, const struct kedge_metrics *m,
                int err, const struct kedge_diag *d)
{
    struct kedge_client_energy *e = w->h->energy;
    const struct kedge_energy_policy *policy = &w->policy->energy;
    struct kedge_diag wrong = {.text = ""};
    const struct kedge_energy_window window = e->windows[w->index];
    if (!window.is_open) {
        return;
    }
    double seconds;
    bool shared;
    const struct kedge_joules j = kedgei_energy_window_close(w, &seconds, &shared);
    const struct kedge_joules counted = count_of(w, &j, seconds, shared);
    if (p->sets_cap) {
        restore_caps(e);
    }
    const bool diverged = err == KEDGE_E_TRAINER && strstr(d->text, "diverged") != NULL;
    if ((p->is_auto || p->has_level) && (!err || diverged)) {
        learn(w, p, m, &j, seconds, diverged && p->is_auto, shared);
    }
    p->joules = round_off(e, j);
    describe(w, p, shared);
    pthread_mutex_lock(&e->lock);
    kedge_budget_end(&e->budget, &window.job, &counted);
    e->assumed_w = kedgei_energy_assumed_w(e, w->policy);
    show(e, p);
    const struct kedge_budget budget = e->budget;
    pthread_mutex_unlock(&e->lock);
    const bool limited = policy->rules.joules_per_day > 0 || policy->rules.joules_per_job > 0;
    if ((limited || p->is_auto || p->has_level) && kedgei_energy_write(w->h, &budget, &wrong) != KEDGE_OK) {
        kedge_log(KEDGE_LOG_WARN, "energy", "%s", wrong.text);
    }
}

void kedge_client_energy_end(struct kedge_client_work *w, struct kedge_energy_plan *p,
                             const struct kedge_metrics *m, int err, const struct kedge_diag *d)
{
    pthread_mutex_lock(&w->h->energy->work_lock);
    end(w, p, m, err, d);
    pthread_mutex_unlock(&w->h->energy->work_lock);
}

void kedge_client_energy_diverged(struct kedge_client_work *w, const struct kedge_energy_plan *p)
{
    struct kedge_client_energy *e = w->h->energy;
    pthread_mutex_lock(&e->work_lock);
    struct kedge_energy_task *t = p->is_auto ? kedgei_energy_find(e, p->key) : NULL;
    if (t) {
        const struct kedge_rounds_saw saw = {.place = p->place, .diverged = true};
        kedge_rounds_saw(&t->rounds, &saw);
    }
    pthread_mutex_unlock(&e->work_lock);
}

/* ---- noise ---- */

void kedge_client_energy_noise(struct kedge_client_work *w, const struct kedge_energy_plan *p,
                               uint32_t *ret_small, uint32_t *ret_large)
{
    struct kedge_client_energy *e = w->h->energy;
    pthread_mutex_lock(&e->work_lock);
    const struct kedge_energy_task *t = kedgei_energy_find(e, p->key);
    const uint32_t far = 3; /* eight times as many samples tell S and G² apart */
    const uint32_t last = t ? t->rounds.batch.count - 1 : 0;
    *ret_small = t ? t->rounds.batch.sizes[0].size : 0;
    *ret_large = last > 0 ? t->rounds.batch.sizes[last < far ? last : far].size : 0;
    pthread_mutex_unlock(&e->work_lock);
}

void kedge_client_energy_saw_noise(struct kedge_client_work *w, struct kedge_energy_plan *p, double small,
                                   double small_sq, double large, double large_sq)
{
    struct kedge_client_energy *e = w->h->energy;
    p->probed = true;
    pthread_mutex_lock(&e->work_lock);
    struct kedge_energy_task *t = kedgei_energy_find(e, p->key);
    if (t) {
        kedge_noise_saw(&t->rounds.noise, small, small_sq, large, large_sq);
    }
    pthread_mutex_unlock(&e->work_lock);
}
