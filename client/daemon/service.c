/* The daemon as a service: signals, the service manager, a new policy, status.json. All but the thread of
 * signals and the last step of a new policy (on the work thread) is the loop's.
 *
 * Everything that happens at a time of its own is looked at in kedge_client_service_turn, once for each turn
 * of the loop, and has a deadline in the function below it; the two must name the same times, or the loop
 * sleeps past one of them. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client/daemon/energy/energy.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/os/notify.h"
#include "common/base/try.h"

#define NS_PER_S UINT64_C(1000000000)
enum {
    STATUS_PAUSE_S = 1,
    /* the age of the last answer may be so much too high */ EXTEND_S = 10,
    US_PER_S = 1000000
};

/* ---- what is done ---- */

/* What a stop waits for: trainings, and results on their way. A fetch is not waited for, it costs little to
 * repeat. */
static bool is_unfinished(const struct kedge_site_host *h)
{
    struct kedge_site_view v;
    bool any = false;
    kedge_site_view(h->site, &v);
    for (uint32_t i = 0; i < v.work_count; i++) {
        enum kedge_site_state state = v.works[i].state;
        any = any || state == KEDGE_SITE_TRAINING || state == KEDGE_SITE_PERSISTING
              || state == KEDGE_SITE_UPLOADING || state == KEDGE_SITE_SUBMITTING;
    }
    return any;
}

/* ---- work begins anew ---- */

struct policy_item {
    struct kedge_site_item item;
    const struct kedge_site_policy *policy; /* held */
};

/* The work thread has nothing in hand: what it does next, it does under the new policy. */
static void policy_run(struct kedge_client_work *w, struct kedge_site_item *item)
{
    struct policy_item *p = (struct policy_item *)item;
    kedge_client_trainer_stop(w);
    kedge_client_policy_let_go(w->policy);
    w->policy = p->policy;
    memset(&w->spec_digest, 0, sizeof w->spec_digest); /* whether its data are bound is looked at again */
}

static void policy_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    (void)h;
    kedge_mem_free(item);
}

/* To a work: at once where it has no thread yet, else behind what it has in hand. */
static void hand_over(struct kedge_client_work *w, const struct kedge_site_policy *policy)
{
    struct policy_item *p = kedge_mem_new(1, sizeof *p);
    KEDGE_ASSERT(p);
    *p = (struct policy_item){.item = {.run = policy_run, .handle = policy_handle}, .policy = policy};
    kedge_client_policy_hold(policy);
    if (w->started) {
        kedge_client_works_do(w, &p->item);
    } else {
        policy_run(w, &p->item);
        kedge_mem_free(p);
    }
}

/* All jobs are tried again, under the policy in force: trainers begin anew, and what was told of jobs holds
 * no more. Places are handed the policy first, so that a task that the core asks for as it learns of the
 * policy is done under it. */
static void begin_anew(struct kedge_site_host *h)
{
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        hand_over(&h->works[i], h->policy);
    }
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_POLICY,
                                  .allow_all = h->service.allow_all,
                                  .at_once = h->service.jobs_at_once,
                                  .allowed_count = h->service.allowed_count,
                                  .allowed = h->service.allowed};
    kedge_client_step(h, &ev);
}

/* ---- what is true of the connection ---- */

/* The loop looks at the connection before it waits again. */
static void connection_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    (void)h;
    (void)item;
}

void kedge_client_service_connection(void *host)
{
    static struct kedge_site_item changed = {.handle = connection_handle};
    kedge_client_post(host, &changed);
}

/* At most once a second, and never synced: status.json is for people, and a device's flash must not wear out
 * by it. That it cannot be written is no reason to stop work. */
static void write_status(struct kedge_site_host *h, uint64_t now)
{
    struct kedge_site_service *s = &h->service;
    struct kedge_buf text;
    char path[KEDGE_PATH_MAX];
    s->status.connected = kedge_net_client_connected(h->net);
    s->status.written_ms = kedge_os_unix_ms();
    kedge_buf_init(&text, KEDGE_STATUS_FILE_MAX);
    int err = kedge_client_path(h, path, "status.json");
    if (!err) {
        err = kedge_status_encode(&s->status, &text);
    }
    if (!err) {
        err = kedge_client_put_file(path, kedge_buf_view(&text));
    }
    kedge_buf_deinit(&text);
    if (err) {
        kedge_log(KEDGE_LOG_DEBUG, "status", "%s", kedge_strerror(err));
    }
    s->changed = false;
    s->next_write_ns = now + STATUS_PAUSE_S * NS_PER_S;
}

/* WATCHDOG=1 is sent from here and nowhere else, so that the service manager learns that the loop turns: a
 * helper thread that works well must not hide a loop that hangs. A changed state line is sent at once and
 * counts as a sign of life. */
void kedge_client_service_turn(struct kedge_site_host *h)
{
    struct kedge_site_service *s = &h->service;
    char line[KEDGE_STATUS_TEXT_MAX];
    uint64_t now = kedge_os_now_ns();
    if (s->status.finishing && !h->stop && (!is_unfinished(h) || now >= s->finish_ns)) {
        if (is_unfinished(h)) {
            kedge_log(KEDGE_LOG_WARN, "stopping",
                      "not finished within %u s (policy.json: stop_seconds); what is not signed yet is done "
                      "again after the next start, if its round is still open",
                      s->stop_seconds);
        }
        h->stop = true;
    }
    s->changed = s->changed || s->status.connected != kedge_net_client_connected(h->net);
    kedge_site_view(h->site, &s->status.view);
    if (!s->status.finishing
        && kedge_data_files_turn(&s->data, h->policy->data, s->status.view.lacks_data, now)) {
        kedge_log(KEDGE_LOG_INFO, "data",
                  "a file that policy.json binds has changed: its jobs are tried again");
        begin_anew(h);
        kedge_site_view(h->site, &s->status.view);
    }
    kedge_client_work_idle_turn(h, &s->status.view, now);
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        s->status.works_wait[i] = h->works[i].waits ? h->works[i].why : NULL;
        const int64_t trainer = atomic_load(&h->works[i].trainer_pid);
        s->changed = s->changed || s->status.trainers[i] != trainer;
        s->status.trainers[i] = trainer;
    }
    kedge_status_line(&s->status, line);
    if (strcmp(line, s->line) != 0) {
        memcpy(s->line, line, sizeof s->line);
        s->changed = true;
        (void)kedge_notify("WATCHDOG=1", line);
        s->bark_ns = now + s->watchdog_ns;
    } else if (s->watchdog_ns > 0 && now >= s->bark_ns) {
        (void)kedge_notify("WATCHDOG=1", NULL);
        s->bark_ns = now + s->watchdog_ns;
    }
    if (s->changed && now >= s->next_write_ns) {
        write_status(h, now);
    }
}

uint64_t kedge_client_service_deadline_ns(const struct kedge_site_host *h)
{
    const struct kedge_site_service *s = &h->service;
    uint64_t at = s->watchdog_ns > 0 ? s->bark_ns : KEDGE_TIME_NEVER;
    const uint64_t look = kedge_data_files_deadline_ns(&s->data),
                   idle = kedge_client_work_idle_deadline_ns(h);
    at = s->changed && s->next_write_ns < at ? s->next_write_ns : at;
    at = look < at ? look : at;
    at = idle < at ? idle : at;
    return s->status.finishing && s->finish_ns < at ? s->finish_ns : at;
}

/* ---- a policy comes into force ---- */

/* The loop has copies of what it needs of a policy, because the core keeps a pointer to the list of jobs for
 * as long as this policy is in force, and h->policy is let go when the next one comes. */
static void take_loops_part(struct kedge_site_host *h, const struct kedge_site_policy *p, json_t *shown)
{
    struct kedge_site_service *s = &h->service;
    memcpy(s->allowed, p->jobs, sizeof s->allowed);
    s->allowed_count = p->job_count;
    s->allow_all = p->allow_all;
    s->jobs_at_once = p->jobs_at_once;
    s->stop_seconds = p->stop_seconds;
    s->status.trainer_idle_seconds = p->trainer_idle_seconds;
    s->idle = (struct kedge_idle){.rules = p->idle};
    atomic_store(&h->witness_age_max_s, p->witness_age_max_s);
    json_decref(s->policy);
    s->policy = shown;
    s->status.policy = shown;
    s->status.policy_ms = kedge_os_unix_ms();
    s->policy_error[0] = '\0';
    s->changed = true;
}

/* Whole or not at all: the new policy is read and checked completely before anything of the old one is
 * touched. The server's address, proxy and login belong to a connection that is open, so they are said to
 * need a start instead of being half applied. */
static int reload(struct kedge_site_host *h, struct kedge_diag *d)
{
    json_t *shown = NULL;
    const struct kedge_site_policy *policy;
    KEDGE_TRY(kedge_client_read_policy(h, &policy, &shown, d));
    if (policy->insecure != h->service.insecure || strcmp(policy->proxy, h->service.proxy) != 0
        || strcmp(policy->proxy_login_file, h->service.proxy_login_file) != 0) {
        kedge_log(KEDGE_LOG_WARN, "policy",
                  "\"insecure\", \"proxy\" and its login are read at the start only: start again");
    }
    take_loops_part(h, policy, shown);
    kedge_client_policy_let_go(h->policy);
    h->policy = policy;
    kedge_client_energy_policy(h);
    begin_anew(h);
    kedge_client_works_policy(h);
    return KEDGE_OK;
}

static void reload_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_site_service *s = &h->service;
    (void)item;
    if (kedge_client_heal_reload(h)) {
        return;
    }
    (void)kedge_notify_reloading();
    int err = reload(h, &d);
    if (err) {
        snprintf(s->policy_error, sizeof s->policy_error, "%.*s", KEDGE_STATUS_TEXT_MAX - 1,
                 d.text[0] ? d.text : kedge_strerror(err));
        kedge_log(KEDGE_LOG_ERROR, "policy", "%s; the policy that was in force stays",
                  d.text[0] ? d.text : kedge_strerror(err));
        s->changed = true;
    } else {
        kedge_log(KEDGE_LOG_INFO, "policy", "policy.json is in force, for work that begins from now on");
    }
    (void)kedge_notify("READY=1", s->line);
}

/* ---- signals ---- */

static void end_now_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    (void)item;
    h->stop = true;
}

/* What is unfinished is finished, or at least signed and durable, within stop_seconds; asked twice, it ends
 * at once. */
static void end_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    struct kedge_site_service *s = &h->service;
    (void)item;
    if (s->status.finishing || s->stop_seconds == 0 || !is_unfinished(h)) {
        h->stop = true;
        return;
    }
    char words[80];
    struct kedge_site_event rest = {.type = KEDGE_SITE_EV_REST, .rest = true};
    s->status.finishing = true;
    kedge_client_step(h, &rest); /* no new work is asked for, or taken */
    s->finish_ns = kedge_os_now_ns() + s->stop_seconds * NS_PER_S;
    snprintf(words, sizeof words, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu",
             ((unsigned long long)s->stop_seconds + EXTEND_S) * US_PER_S);
    (void)kedge_notify(words, "finishing what is in hand");
    kedge_log(KEDGE_LOG_INFO, "stopping", "first %s, at most %u s", s->line, s->stop_seconds);
}

static void *signal_main(void *arg)
{
    static struct kedge_site_item end = {.handle = end_handle}, end_now = {.handle = end_now_handle},
                                  again = {.handle = reload_handle};
    struct kedge_site_host *h = arg;
    sigset_t set;
    int got;
    kedge_client_service_signals(&set);
    while (sigwait(&set, &got) == 0) { /* as long as there is a process */
        kedge_log(KEDGE_LOG_INFO, got == SIGHUP ? "reloading" : "stopping", "signal %d", got);
        kedge_client_post(h, got == SIGHUP ? &again : got == SIGINT ? &end_now : &end);
    }
    return NULL;
}

void kedge_client_service_signals(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGHUP);
}

/* ---- begin and end ---- */

void kedge_client_service_open(struct kedge_site_host *h)
{
    struct kedge_site_service *s = &h->service;
    s->status.tenant = h->config.tenant;
    s->status.site = h->config.site;
    s->status.server = h->config.server;
    s->status.pid = getpid();
    s->status.since_ms = kedge_os_unix_ms();
    s->status.policy_error = s->policy_error;
    s->status.waits_for = s->waits_for;
    s->watchdog_ns = kedge_notify_watchdog_ns();
    s->insecure = h->policy->insecure;
    memcpy(s->proxy, h->policy->proxy, sizeof s->proxy);
    memcpy(s->proxy_login_file, h->policy->proxy_login_file, sizeof s->proxy_login_file);
    take_loops_part(h, h->policy, json_incref(s->policy));
}

int kedge_client_service_start(struct kedge_site_host *h, const pthread_attr_t *attr)
{
    pthread_t thread;
    if (pthread_create(&thread, attr, signal_main, h) != 0) {
        return KEDGE_E_NOMEM;
    }
    pthread_detach(thread);
    return KEDGE_OK;
}

void kedge_client_service_end(struct kedge_site_host *h)
{
    if (!h->again) { /* then the manager sees one process that goes on */
        (void)kedge_notify("STOPPING=1", "stopped");
        h->service.status.ended = true;
    }
    write_status(h, kedge_os_now_ns());
    json_decref(h->service.policy);
    h->service.policy = NULL;
    h->service.status.policy = NULL;
}
