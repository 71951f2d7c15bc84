/* The processes of `kedge poc`: started, watched, started again, stopped; and the job that they run.
 *
 * Everything that is asked of the coordinator goes through kedge_poc_ask, which waits and tries again while
 * children are being started again: killing any of them at any time is part of what this command
 * demonstrates. Times are counted by a clock that does not run while the machine sleeps (active_clock.h). */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/poc/poc.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "job/job_spec.h"
#include "strategy/grouping.h"

enum {
    STOP_MS = 8000,
    POLL_MS = 60,
    RESTART_PAUSE_MS = 150,
    EARLY_MS = 2000,
    JOB_TIMEOUT_MS = 900000,
    JOIN_MS = 20000,
    SIGN_IN_MS = 600000,
    QUIET_MS = 20000, /* without a finished round: something is said */
    LAST_WORDS = 1024
};

/* A site with a folder that is whole (site.json) has used its token; a new one is handed its token. All
 * children die with this process, also when it is killed. */
int kedge_poc_start(struct kedge_poc *p, struct kedge_poc_child *child, struct kedge_diag *d)
{
    bool server = child == &p->coordinator;
    const char *argv[8] = {child->program, server ? "--state" : "--site", child->folder, NULL};
    char site_json[KEDGE_PATH_MAX];
    if (!server && child->token[0] && kedge_path_join(site_json, child->folder, "site.json") == KEDGE_OK
        && !kedge_file_exists(site_json)) {
        argv[3] = "--enroll-file";
        argv[4] = child->token;
    }
    struct kedge_process_options options = {.argv = argv, .stderr_path = child->log, .die_with_parent = true};
    child->started_ms = kedge_os_unix_ms();
    child->started_ns = kedge_poc_now_ns(p);
    return kedge_process_start(&options, &child->process, d);
}

/* The last line of a child's log, for the case that it cannot be kept running. */
static void read_last_words(const struct kedge_poc_child *child, char out[LAST_WORDS])
{
    int64_t size = kedge_file_size(child->log);
    size_t len = size < LAST_WORDS - 1 ? (size_t)(size > 0 ? size : 0) : LAST_WORDS - 1;
    int fd = len ? kedge_file_open(child->log, O_RDONLY, NULL) : -1;
    if (fd < 0 || kedge_fd_read_at(fd, (uint8_t *)out, len, (uint64_t)size - len) != KEDGE_OK) {
        len = 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    while (len > 0 && (out[len - 1] == '\n' || out[len - 1] == ' ')) {
        len--;
    }
    out[len] = '\0';
    const char *line = strrchr(out, '\n');
    line = line ? line + 1 : out;
    memmove(out, line, strlen(line) + 1);
}

static int give_up(const struct kedge_poc_child *child, struct kedge_diag *d)
{
    char words[LAST_WORDS];
    read_last_words(child, words);
    (void)kedge_diag_set(d, KEDGE_E_STATE, "%s keeps ending; its last words: %s", child->name,
                         words[0] ? words : "none");
    (void)kedge_diag_hint(d, "its whole log: %s; kedge doctor %s looks closer", child->log, child->folder);
    return KEDGE_E_STATE;
}

/* A child that is killed is started again, up to a thousand times; one that ends by itself soon after each
 * start, more than twenty times, has a fault that starting again will not mend, and its last words say
 * which. */
static int watch_one(struct kedge_poc *p, struct kedge_poc_child *child, struct kedge_diag *d)
{
    int status;
    if (child->process.pid == 0 || !kedge_process_poll(&child->process, &status)) {
        return KEDGE_OK;
    }
    char how[64];
    if (status > 128) {
        snprintf(how, sizeof how, "was killed by signal %d", status - 128);
    } else {
        snprintf(how, sizeof how, "ended with code %d", status);
    }
    kedge_cli_progress_end(p->cli);
    kedge_cli_say(p->cli, "  ! %s %s, started again\n", child->name, how);
    p->restarts++;
    child->early_ends = kedge_os_unix_ms() - child->started_ms < EARLY_MS ? child->early_ends + 1 : 0;
    bool has_failed = status > 0 && status <= 128; /* who is killed or asked to end has not */
    if (++child->restarts > 1000 || (has_failed && child->early_ends > 20)) {
        return give_up(child, d);
    }
    if (child->early_ends > 1 && has_failed) {
        kedge_os_sleep_ms(RESTART_PAUSE_MS);
    }
    return kedge_poc_start(p, child, d);
}

/* Starts again what died and says so. */
static int poc_watch(struct kedge_poc *p, struct kedge_diag *d)
{
    int err = kedge_cli_interrupted() ? kedge_diag_set(d, KEDGE_E_CANCELLED, "interrupted")
                                      : watch_one(p, &p->coordinator, d);
    for (uint64_t i = 0; p->clients && i < p->tenants * p->sites && !err; i++) {
        err = watch_one(p, &p->clients[i], d);
    }
    return err;
}

/* Sites first and the coordinator last, so that what they are sending still finds somebody. */
void kedge_poc_stop(struct kedge_poc *p)
{
    uint64_t count = p->clients ? p->tenants * p->sites : 0;
    for (uint64_t i = 0; i < count; i++) { /* all at once, then wait for each */
        if (p->clients[i].process.pid) {
            kill(p->clients[i].process.pid, SIGTERM);
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        kedge_process_stop(&p->clients[i].process, SIGTERM, STOP_MS / 4);
    }
    kedge_process_stop(&p->coordinator.process, SIGTERM, STOP_MS);
}

uint64_t kedge_poc_now_ns(struct kedge_poc *p)
{
    return kedge_active_clock_read(&p->clock, kedge_os_now_ns());
}

/* Time counts from the question or from the coordinator's last start, whichever is later (poc.h). An error
 * that a new try cannot change ends the waiting at once. */
bool kedge_poc_wait(struct kedge_poc *p, uint64_t begun_ns, uint32_t timeout_ms, int *err,
                    struct kedge_diag *d)
{
    uint64_t from = p->coordinator.started_ns > begun_ns ? p->coordinator.started_ns : begun_ns;
    if (*err == KEDGE_OK || kedge_err_class(*err) == KEDGE_CLASS_REJECT
        || kedge_poc_now_ns(p) - from > (uint64_t)timeout_ms * 1000000u) {
        return false;
    }
    kedge_os_sleep_ms(30);
    int dead = poc_watch(p, d);
    *err = dead ? dead : *err;
    return !dead;
}

int kedge_poc_ask(struct kedge_poc *p, json_t *request, uint32_t timeout_ms, json_t **ret,
                  struct kedge_diag *d)
{
    uint64_t begun = kedge_poc_now_ns(p);
    int err;
    do {
        err = kedge_cli_admin(p->cli, json_incref(request), ret, d);
    } while (kedge_poc_wait(p, begun, timeout_ms, &err, d));
    json_decref(request);
    return err;
}

/* In turns until all sites are enrolled: sites use their tokens in their own time, and each turn asks anew
 * who waits. */
int kedge_poc_sign_in(struct kedge_poc *p, struct kedge_diag *d)
{
    uint64_t total = p->tenants * p->sites, begun = kedge_poc_now_ns(p);
    for (int tries = 0; tries < 1000; tries++) {
        json_t *pending = NULL, *sites = NULL, *one;
        size_t i, active;
        int err = poc_watch(p, d);
        if (!err) {
            err = kedge_poc_ask(p, json_pack("{s:s}", "verb", "site.pending"), 10000, &pending, d);
        }
        json_array_foreach(json_object_get(pending, "sites"), i, one)
        {
            const char *tenant = kedge_cli_text(one, "tenant");
            for (uint64_t t = 0; t < p->tenants && !err; t++) {
                json_t *answer = NULL;
                if (strcmp(tenant, p->tenant_ids[t].s) == 0) {
                    err = kedge_cli_site_sign_in(p->cli, one, &p->admins[t], &answer, d);
                    json_decref(answer);
                    if (kedge_poc_wait(p, begun, SIGN_IN_MS, &err, d)) {
                        err = KEDGE_OK; /* the next turn asks anew who is pending */
                    }
                }
            }
        }
        json_decref(pending);
        if (!err) {
            err = kedge_poc_ask(p, json_pack("{s:s}", "verb", "site.list"), 10000, &sites, d);
        }
        active = json_array_size(json_object_get(sites, "sites"));
        json_decref(sites);
        if (err || active >= total) {
            return err;
        }
        kedge_cli_progress(p->cli, "enrolling sites", active, total, "");
        kedge_os_sleep_ms(40);
    }
    return kedge_diag_set(d, KEDGE_E_TIMEOUT, "not all sites enrolled in time; logs are in %s/logs", p->dir);
}

/* ---- the job ---- */

static bool has_root(const struct kedge_poc *p)
{
    const struct kedge_rule *rule = kedge_rule_find(p->rule);
    return rule && rule->needs_root;
}

/* The two jobs are to differ in the grouping alone, so both get the same rule and server. Keys are put in
 * only if they were asked for: the spec that is left in the folder is one that a person would write. */
void kedge_poc_put_choices(const struct kedge_poc *p, bool grouped, struct kedge_buf *out)
{
    const struct kedge_strategy *row = kedge_strategy_find(p->strategy);
    if (p->strategy[0] && (grouped || !row || !kedge_grouping_pretrains(row->grouping))) {
        kedge_buf_printf(out, ",\n  \"strategy\": \"%s\"", p->strategy);
    }
    if (p->server[0]) {
        kedge_buf_printf(out, ",\n  \"server\": \"%s\"", p->server);
    }
    if (p->rule[0]) { /* all sites, said so: rules want to know how many updates there may be */
        kedge_buf_printf(out, ",\n  \"rule\": \"%s\",\n  \"sites_per_round\": %llu", p->rule,
                         (unsigned long long)p->tenants * p->sites);
    }
    if (row && row->local->variate) {
        unsigned long long all = (unsigned long long)p->tenants * p->sites;
        kedge_buf_printf(out, ",\n  \"control_sites\": %llu", all);
        if (!p->rule[0]) {
            kedge_buf_printf(out, ",\n  \"sites_per_round\": %llu", all);
        }
    }
    if (has_root(p)) { /* it holds data like the others': a demonstration of the rule, not of trust */
        kedge_buf_put_str(out, ",\n  \"root_site\": \"org-a/site-1\"");
    }
}

void kedge_poc_put_groups(const struct kedge_poc *p, struct kedge_buf *out)
{
    kedge_buf_printf(out, ",\n  \"grouping\": \"flexcfl\",\n  \"groups\": %llu,\n  \"pretrain_steps\": 50",
                     (unsigned long long)p->groups);
    if (p->mixing[0]) {
        kedge_buf_printf(out, ",\n  \"mixing\": \"%s\"", p->mixing);
    }
}

/* The smallest model that there is; of a strategy whose sites keep a head one with a layer to share, too. */
static void put_model(const struct kedge_poc *p, struct kedge_buf *out)
{
    const struct kedge_strategy *row = kedge_strategy_find(p->strategy);
    const bool has_head = row && row->local->has_head;
    kedge_buf_printf(out, "\"model\": {\"preset\": \"%s\", \"inputs\": %u, \"classes\": %u%s}",
                     has_head ? "mlp" : "mclr", p->model_inputs ? (unsigned)p->model_inputs : p->inputs,
                     p->model_classes ? (unsigned)p->model_classes : p->classes,
                     has_head ? ", \"hidden\": 32" : "");
}

/* The job of a demonstration: it ends within seconds, and goes on where sites are missing. One that is for
 * measuring (--model-inputs) waits for all its sites instead. */
static void put_spec(const struct kedge_poc *p, const char *name, bool grouped, struct kedge_buf *out)
{
    bool digits = strcmp(p->dataset, "digits") == 0;
    uint64_t all = p->tenants * p->sites;
    kedge_buf_printf(out, "{\n  \"name\": \"%s\",\n  \"tenants\": [", name);
    for (uint64_t i = 0; i < p->tenants; i++) {
        kedge_buf_printf(out, "%s\"%s\"", i ? ", " : "", p->tenant_ids[i].s);
    }
    kedge_buf_printf(out, "],\n  \"seed\": \"%llu\",\n  ", (unsigned long long)p->seed);
    put_model(p, out);
    kedge_buf_printf(
        out,
        ",\n  \"data\": \"%s\",\n  \"rounds\": %llu,\n  \"sites_min\": %llu,\n  \"quorum\": %llu,\n"
        "  \"batch\": 10,\n  \"l2\": \"0.001\"",
        p->dataset, (unsigned long long)p->rounds,
        (unsigned long long)(p->model_inputs ? all
                             : all > 1       ? 2
                                             : 1),
        (unsigned long long)(p->model_inputs ? all
                             : has_root(p)   ? 2
                                             : 1));
    if (p->own) {
        kedge_poc_put_client_keys(p, out);
    } else {
        kedge_buf_printf(
            out, ",\n  \"local_epochs\": %u,\n  \"learning_rate\": \"%s\",\n  \"round_timeout_s\": 20",
            digits ? 2u : 1u, digits ? "0.1" : "0.03");
    }
    if (p->model_inputs) { /* the data does not fit such a model */
        kedge_buf_put_str(out, ",\n  \"evaluate_every\": 0");
    }
    if (grouped) {
        kedge_poc_put_groups(p, out);
    }
    kedge_poc_put_choices(p, grouped, out);
    kedge_buf_put_str(out, "\n}\n");
}

/* The spec is left in the folder, and its name is its token: the same job that an earlier run submitted is
 * found again and not made twice. */
static int submit(struct kedge_poc *p, const char *name, bool grouped, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf spec;
    json_t *answer = NULL;
    kedge_buf_init(&spec, KEDGE_SPEC_MAX);
    put_spec(p, name, grouped, &spec);
    snprintf(path, sizeof path, "%.900s/%s.json", p->dir, name);
    int err = spec.err ? spec.err : kedge_file_write(path, kedge_buf_view(&spec), 0600, d);
    if (!err) {
        json_t *text = json_stringn((const char *)spec.ptr, spec.len);
        err = kedge_poc_ask(p, json_pack("{s:s,s:s,s:o}", "verb", "job.submit", "token", name, "spec", text),
                            30000, &answer, d);
        err = err == KEDGE_E_EXISTS ? KEDGE_OK : err; /* it was submitted by an earlier run */
    }
    json_decref(answer);
    kedge_buf_deinit(&spec);
    return err;
}

/* As the admin of each tenant: all keys are in this folder, which no real federation would have. */
static int join_all(struct kedge_poc *p, const char *name, struct kedge_diag *d)
{
    int err = KEDGE_OK;
    for (uint64_t i = 0; i < p->tenants && !err; i++) {
        uint64_t begun = kedge_poc_now_ns(p);
        do {
            json_t *answer = NULL;
            err = kedge_cli_job_join(p->cli, name, &p->tenant_ids[i], &p->admins[i], NULL, &answer, d);
            json_decref(answer);
            err = err == KEDGE_E_NO_JOB ? KEDGE_OK : err; /* it has ended */
        } while (kedge_poc_wait(p, begun, JOIN_MS, &err, d));
    }
    return err;
}

static bool has_ended(const char *state)
{
    return strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0;
}

/* Rounds take seconds: when none ends, it is a site that cannot train, and its log tells why. */
struct quiet {
    uint64_t round, since_ns;
    bool said;
};

static void say_when_quiet(struct kedge_poc *p, struct quiet *q, uint64_t round)
{
    uint64_t now = kedge_poc_now_ns(p);
    if (round != q->round || q->since_ns == 0) {
        *q = (struct quiet){round, now, false};
    } else if (!q->said && now - q->since_ns > QUIET_MS * 1000000ull) {
        kedge_cli_progress_end(p->cli);
        kedge_cli_say(p->cli, "  ! no round has ended for %d s; the sites' logs tell why: %s/logs\n",
                      QUIET_MS / 1000, p->dir);
        q->said = true;
    }
}

/* Looks at the processes each time, too: one that has died ends the job with an error instead of a wait
 * without end. */
int kedge_poc_job(struct kedge_poc *p, const char *name, bool grouped, json_t **ret, struct kedge_diag *d)
{
    KEDGE_TRY(submit(p, name, grouped, d));
    KEDGE_TRY(join_all(p, name, d));
    uint64_t end = kedge_poc_now_ns(p) + (uint64_t)JOB_TIMEOUT_MS * 1000000u;
    struct quiet quiet = {.round = 0};
    for (;;) {
        json_auto_t *shown = NULL;
        KEDGE_TRY(poc_watch(p, d));
        KEDGE_TRY(
            kedge_poc_ask(p, json_pack("{s:s,s:s}", "verb", "job.show", "job", name), 30000, &shown, d));
        const char *state = kedge_cli_text(shown, "state");
        uint64_t round = (uint64_t)kedge_cli_int(shown, "round");
        size_t closed = json_array_size(json_object_get(shown, "history"));
        if (!p->first_round_ms && closed > 0) {
            p->first_seen_ms = kedge_os_unix_ms();
            p->first_seen_rounds = round > 0 ? round - 1 : 0;
            p->first_round_ms = p->first_seen_ms - p->begin_ms;
        }
        if (has_ended(state) && !p->last_seen_ms) {
            p->last_seen_ms = kedge_os_unix_ms();
        }
        say_when_quiet(p, &quiet, round);
        kedge_cli_progress(p->cli, name,
                           has_ended(state) ? p->rounds
                           : round > 0      ? round - 1
                                            : 0,
                           p->rounds, state);
        if (has_ended(state)) {
            kedge_cli_progress_end(p->cli);
            if (strcmp(state, "completed") != 0) {
                return kedge_diag_set(d, KEDGE_E_STATE, "job %s %s: %s", name, state,
                                      kedge_cli_text(shown, "reason_text"));
            }
            *ret = json_incref(shown);
            return KEDGE_OK;
        }
        if (kedge_poc_now_ns(p) > end) {
            return kedge_diag_set(d, KEDGE_E_TIMEOUT, "job %s did not end in time", name);
        }
        kedge_os_sleep_ms(POLL_MS);
    }
}

/* As the job's spec will have them. */
int kedge_poc_check_choices(const struct kedge_poc *p, struct kedge_diag *d)
{
    static struct kedge_job_spec spec;
    struct kedge_buf text;
    const struct kedge_strategy *row = kedge_strategy_find(p->strategy);
    if (row && row->local->has_base) { /* which model, and what of it moves, only a spec can say */
        return kedge_diag_set(d, KEDGE_E_USAGE,
                              "--strategy %s: it trains over a model of yours, which this demonstration does "
                              "not have; write a spec with \"share\" and \"initial_model\" and submit it: "
                              "kedge job submit SPEC.json --initial-model FILE (docs/job-spec.md, \"Adapters "
                              "over a frozen base\")",
                              row->name);
    }
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    kedge_buf_put_str(&text, "{\"name\":\"poc\",\"tenants\":[\"org-a\"],\"data\":\"d\","
                             "\"model\":{\"preset\":\"mlp\",\"inputs\":1,\"hidden\":2,\"classes\":2}");
    kedge_buf_printf(&text, ",\"rounds\":%llu", (unsigned long long)p->rounds);
    if (p->own) {
        kedge_buf_printf(&text, ",\"standardize\":\"%s\"", kedge_cli_text(p->own, "standardize"));
    }
    kedge_poc_put_choices(p, true, &text);
    if (p->groups > 1) {
        kedge_poc_put_groups(p, &text);
    }
    kedge_buf_put_str(&text, "}");
    bool plain = !strpbrk(p->strategy, "\"\\") && !strpbrk(p->rule, "\"\\") && !strpbrk(p->server, "\"\\");
    int err = plain ? kedge_job_spec_parse(kedge_buf_view(&text), &spec, d)
                    : kedge_diag_set(d, KEDGE_E_FORMAT, "expected names without quotes");
    kedge_buf_deinit(&text);
    return err ? kedge_diag_wrap(d, KEDGE_E_USAGE, "--strategy, --rule, --server, --groups") : KEDGE_OK;
}
