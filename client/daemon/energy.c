/* Around one task: may it begin, with which batch and power, what did it use. On the work thread. */
#include "client/daemon/energy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/daemon/energy_impl.h"
#include "client/energy/host/perf.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/entropy.h"
#include "common/base/os/log.h"

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
    const struct kedge_energy_policy *p = &h->policy.energy;
    struct kedge_client_energy *e = h->energy = kedge_mem_new(1, sizeof *e);
    char found[KEDGE_METER_HINT_MAX];
    uint64_t seed;
    if (!e || pthread_mutex_init(&e->lock, NULL) != 0) {
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
    err = err ? err : kedgei_energy_read(h, d);
    if (err) {
        return err;
    }
    e->budget = e->stored.budget;
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
        json_decref(e->status);
        kedge_mem_free(e);
        h->energy = NULL;
        h->service.status.energy = NULL;
    }
}

void kedge_client_energy_policy(struct kedge_site_host *h)
{
    pthread_mutex_lock(&h->energy->lock);
    h->energy->policy = h->policy.energy;
    h->energy->shown = false;
    pthread_mutex_unlock(&h->energy->lock);
}

/* ---- before ---- */

/* Reserves what the task may use. */
static int reserve(struct kedge_site_host *h, const struct kedge_site_task *t, struct kedge_diag *d)
{
    struct kedge_client_energy *e = h->energy;
    const struct kedge_energy_policy *p = &h->policy.energy;
    const struct kedge_budget_clock clock = kedgei_energy_clock();
    struct kedge_surroundings s;
    char text[KEDGE_BUDGET_TEXT_MAX];
    double longest = (double)h->policy.train_seconds_max;
    longest = t->remaining_ns > 0 ? fmin(longest, (double)t->remaining_ns / 1e9) : longest;
    kedge_surroundings_see(&e->meters, &s);
    pthread_mutex_lock(&e->lock);
    const double first = kedgei_energy_most_w(e, p) * longest;
    enum kedge_budget_answer a = kedge_budget_ask(&p->rules, &e->budget, &s, &clock);
    a = a == KEDGE_BUDGET_YES ? kedge_budget_begin(&p->rules, &e->budget, &t->job, first, &clock) : a;
    kedge_budget_text(a, &p->rules, &e->budget, &s, &t->job, first, text);
    e->refused_day = a == KEDGE_BUDGET_DAY ? e->budget.day : 0;
    memcpy(e->refused, text, sizeof e->refused);
    e->shown = false;
    const struct kedge_budget budget = e->budget;
    pthread_mutex_unlock(&e->lock);
    if (a != KEDGE_BUDGET_YES) {
        return kedge_diag_set(d, KEDGE_E_DENIED, "energy: %s", text);
    }
    const bool limited = p->rules.joules_per_day > 0 || p->rules.joules_per_job > 0;
    return limited ? kedgei_energy_write(h, &budget, d) : KEDGE_OK;
}

static void choose_batch(struct kedge_site_host *h, struct kedge_energy_plan *p, double seconds)
{
    struct kedge_client_energy *e = h->energy;
    struct kedge_rounds *r = &e->stored.tasks[p->task].rounds;
    const struct kedge_rounds_ask ask = {.fixed = h->policy.energy.batch_fixed, .seconds = seconds};
    const struct kedge_rounds_choice c = kedge_rounds_choose(r, &ask, &e->rng);
    p->place = c.place;
    p->batch = c.size;
    p->learning_rate = kedge_job_spec_rate(h->spec, c.size);
    p->wants_noise = c.wants_noise;
    snprintf(p->choice, sizeof p->choice, "batch %u of %u to %u: %s", c.size, r->batch.sizes[0].size,
             r->batch.sizes[r->batch.count - 1].size, c.why);
}

/* The cap, or the number of threads, by the table of the batch that was chosen. */
static int choose_power(struct kedge_site_host *h, struct kedge_energy_plan *p, double seconds,
                        struct kedge_diag *d)
{
    struct kedge_client_energy *e = h->energy;
    const struct kedge_energy_policy *policy = &h->policy.energy;
    struct kedge_profile *profile = &e->stored.tasks[p->task].profiles[p->place];
    const bool threads = policy->power == KEDGE_POWER_THREADS;
    if (!threads && !e->has_caps) {
        return KEDGE_OK;
    }
    const double found = threads ? h->policy.threads : kedge_caps_found_w(&e->caps);
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
                                            .work = e->stored.tasks[p->task].rounds.samples,
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
    return kedge_caps_set(&e->caps, level, d);
}

static int plan(struct kedge_site_host *h, const struct kedge_site_task *t, struct kedge_energy_plan *p,
                struct kedge_diag *d)
{
    const bool trains = t->kind == KEDGE_SITE_TRAIN;
    const double seconds = (double)t->remaining_ns / 1e9 * (1 - upload_share);
    *p = (struct kedge_energy_plan){
        .batch = h->spec->batch, .threads = h->policy.threads, .learning_rate = h->spec->learning_rate};
    p->joules = kedge_joules_unknown("not trained yet");
    p->is_auto = trains && h->spec->batch_auto;
    if (!trains || (!p->is_auto && h->policy.energy.power == KEDGE_POWER_NONE)) {
        return KEDGE_OK;
    }
    int err = kedgei_energy_task(h, &p->task, d);
    if (!err && p->is_auto) {
        choose_batch(h, p, seconds);
    }
    if (!err && h->policy.energy.power != KEDGE_POWER_NONE) {
        struct kedge_diag wrong = {.text = ""};
        if (choose_power(h, p, seconds, &wrong) != KEDGE_OK) { /* it trains without */
            kedge_log(KEDGE_LOG_WARN, "power", "%s", wrong.text);
            p->has_level = false;
        }
    }
    return err;
}

int kedge_client_energy_begin(struct kedge_site_host *h, const struct kedge_site_task *t,
                              struct kedge_energy_plan *ret, struct kedge_diag *d)
{
    struct kedge_client_energy *e = h->energy;
    uint64_t all, busy;
    int err = reserve(h, t, d);
    err = err ? err : plan(h, t, ret, d);
    if (err) {
        return err;
    }
    if (ret->choice[0]) {
        kedge_log(KEDGE_LOG_INFO, "choice", "job=%s round=%u %s", t->job.s, t->round, ret->choice);
    }
    kedge_sys_cpu(e->meters.root, &all, &busy);
    e->begun_busy_s = (double)busy / 1e9;
    e->metered_pid = h->trainer.process.pid;
    e->started_cpu_ns = kedge_sys_process_cpu(e->metered_pid);
    e->begun_ns = e->ticked_ns = kedge_os_now_ns();
    e->used = 0;
    e->is_metering = true;
    kedge_meters_begin(&e->meters, e->begun_ns);
    return KEDGE_OK;
}

/* ---- while ---- */

/* Joules until now, as the meters have them, or at most. */
static double used_until(const struct kedge_client_energy *e, const struct kedge_energy_policy *p,
                         uint64_t now)
{
    double sum = 0;
    bool any = false;
    for (uint32_t i = 0; i < e->meters.count; i++) {
        const struct kedge_meter *m = &e->meters.meters[i];
        any = any || (m->counts && m->seen > 1 && !m->broken);
        sum += m->counts ? m->joules : 0;
    }
    const double most = kedgei_energy_most_w(e, p);
    return any || !isfinite(most) ? sum : most * (double)(now - e->begun_ns) / 1e9;
}

void kedge_client_energy_tick(struct kedge_site_host *h)
{
    struct kedge_client_energy *e = h->energy;
    const struct kedge_energy_policy *p = &h->policy.energy;
    const uint64_t now = kedge_os_now_ns();
    if (!e || !e->is_metering || now < e->ticked_ns + kedge_meters_period_ns(&e->meters)) {
        return;
    }
    e->ticked_ns = now;
    kedge_meters_tick(&e->meters, now);
    if (p->rules.joules_per_day > 0 || p->rules.joules_per_job > 0) {
        struct kedge_diag d = {.text = ""};
        pthread_mutex_lock(&e->lock);
        const bool grows = kedge_budget_grow(&e->budget, used_until(e, p, now));
        const struct kedge_budget budget = e->budget;
        pthread_mutex_unlock(&e->lock);
        if (grows && kedgei_energy_write(h, &budget, &d) != KEDGE_OK) {
            kedge_log(KEDGE_LOG_WARN, "energy", "%s", d.text);
        }
    }
}

/* ---- behind ---- */

/* What the task used, by the meters, else by the owner's model; of it the trainer's share where that is
 * wanted. */
static struct kedge_joules read_meters(struct kedge_site_host *h, double seconds, double *ret_share)
{
    struct kedge_client_energy *e = h->energy;
    const struct kedge_energy_policy *p = &h->policy.energy;
    struct kedge_joule_sum sum;
    double load, idle;
    uint64_t all, busy;
    kedge_meters_finish(&e->meters, kedge_os_now_ns(), &sum, &load);
    const uint64_t before = h->trainer.process.pid == e->metered_pid ? e->started_cpu_ns : 0;
    const uint64_t cpu = kedge_sys_process_cpu(h->trainer.process.pid);
    const double own = cpu > before ? (double)(cpu - before) / 1e9 : 0;
    kedge_sys_cpu(e->meters.root, &all, &busy);
    const double others = busy > 0 ? (double)busy / 1e9 - e->begun_busy_s : 0;
    struct kedge_joules j = kedge_joules_total(&sum);
    *ret_share = own;
    if (j.quality == KEDGE_QUALITY_UNKNOWN && p->max_w > 0 && p->meters) {
        const long processors = sysconf(_SC_NPROCESSORS_ONLN);
        const double of = processors > 0 ? (double)processors : 1;
        j = kedge_joules_model(p->idle_w, p->max_w, (load >= 0 ? load : own / seconds) / of, seconds);
    }
    return p->share ? kedge_joules_share(&j, p->idle_w, seconds, own, fmax(own, others), &idle) : j;
}

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

static void describe(struct kedge_site_host *h, struct kedge_energy_plan *p)
{
    char found[KEDGE_METER_HINT_MAX];
    const struct kedge_energy_policy *policy = &h->policy.energy;
    kedge_meters_describe(&h->energy->meters, found);
    const char *scope = policy->share ? "share" : "device";
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

/* What was learnt of batch and power. */
static void learn(struct kedge_site_host *h, const struct kedge_energy_plan *p, const struct kedge_metrics *m,
                  const struct kedge_joules *j, double seconds, bool diverged)
{
    struct kedge_client_energy *e = h->energy;
    const struct kedge_energy_policy *policy = &h->policy.energy;
    struct kedge_energy_task *t = &e->stored.tasks[p->task];
    const double samples = diverged ? 0 : (double)m->samples * h->spec->local_epochs,
                 most = kedgei_energy_most_w(e, policy);
    const struct kedge_rounds_saw saw = {.place = p->place,
                                         .samples = samples,
                                         .seconds = seconds,
                                         .joules = *j,
                                         .diverged = diverged,
                                         .skip = p->tries_level || p->probed,
                                         .eta = policy->eta,
                                         .power_max_w = isfinite(most) ? most : 0};
    kedge_rounds_saw(&t->rounds, &saw);
    if (p->has_level && j->quality == KEDGE_QUALITY_MEASURED && !p->probed) {
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

void kedge_client_energy_end(struct kedge_site_host *h, struct kedge_energy_plan *p,
                             const struct kedge_metrics *m, int err, const struct kedge_diag *d)
{
    struct kedge_client_energy *e = h->energy;
    const struct kedge_energy_policy *policy = &h->policy.energy;
    struct kedge_diag wrong = {.text = ""};
    double own;
    if (!e->is_metering) {
        return;
    }
    const double seconds = (double)(kedge_os_now_ns() - e->begun_ns) / 1e9;
    const struct kedge_joules j = read_meters(h, seconds, &own);
    e->is_metering = false;
    restore_caps(e);
    const bool diverged = err == KEDGE_E_TRAINER && strstr(d->text, "diverged") != NULL;
    if ((p->is_auto || p->has_level) && (!err || diverged)) {
        learn(h, p, m, &j, seconds, diverged && p->is_auto);
    }
    p->joules = round_off(e, j);
    describe(h, p);
    pthread_mutex_lock(&e->lock);
    kedge_budget_end(&e->budget, &j);
    show(e, p);
    const struct kedge_budget budget = e->budget;
    pthread_mutex_unlock(&e->lock);
    const bool limited = policy->rules.joules_per_day > 0 || policy->rules.joules_per_job > 0;
    if ((limited || p->is_auto || p->has_level) && kedgei_energy_write(h, &budget, &wrong) != KEDGE_OK) {
        kedge_log(KEDGE_LOG_WARN, "energy", "%s", wrong.text);
    }
}

void kedge_client_energy_diverged(struct kedge_site_host *h, const struct kedge_energy_plan *p)
{
    if (p->is_auto) {
        const struct kedge_rounds_saw saw = {.place = p->place, .diverged = true};
        kedge_rounds_saw(&h->energy->stored.tasks[p->task].rounds, &saw);
    }
}

/* ---- noise ---- */

void kedge_client_energy_noise(struct kedge_site_host *h, const struct kedge_energy_plan *p,
                               uint32_t *ret_small, uint32_t *ret_large)
{
    const struct kedge_rounds *r = &h->energy->stored.tasks[p->task].rounds;
    const uint32_t last = r->batch.count - 1, far = 3; /* eight times as many samples tell S and G² apart */
    *ret_small = r->batch.sizes[0].size;
    *ret_large = last > 0 ? r->batch.sizes[last < far ? last : far].size : 0;
}

void kedge_client_energy_saw_noise(struct kedge_site_host *h, struct kedge_energy_plan *p, double small,
                                   double small_sq, double large, double large_sq)
{
    p->probed = true;
    kedge_noise_saw(&h->energy->stored.tasks[p->task].rounds.noise, small, small_sq, large, large_sq);
}
