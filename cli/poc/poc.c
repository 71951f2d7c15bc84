/* `kedge poc DIR`: a whole federation on this machine as real processes over TLS, one grouped job and one
 * without groups beside it; everything is left in DIR for the auditor. The same DIR again goes on with what
 * is unfinished. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/blob/blob_file.h"
#include "cli/local.h"
#include "cli/poc/poc.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/process.h"
#include "common/base/try.h"
#include "job/job_spec.h"

/* Paths are cut and not refused: DIR is bounded by KEDGE_POC_DIR_MAX, which leaves room for all that stands
 * below it. */
static int name_children(struct kedge_poc *p, struct kedge_diag *d)
{
    uint64_t count = p->tenants * p->sites;
    p->clients = kedge_mem_new((size_t)count, sizeof *p->clients);
    if (!p->clients) {
        return KEDGE_E_NOMEM;
    }
    char logs[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_path_join(logs, p->dir, "logs"));
    KEDGE_TRY(kedge_dir_make(logs, 0700, d));
    struct kedge_poc_child *c = &p->coordinator;
    snprintf(c->name, sizeof c->name, "kedge-coordinator");
    snprintf(c->folder, sizeof c->folder, "%.900s/state", p->dir);
    snprintf(c->log, sizeof c->log, "%.900s/coordinator.log", logs);
    snprintf(c->program, sizeof c->program, "%.900s/kedge-coordinator", p->bin);
    c->process = (struct kedge_process){.in_fd = -1, .out_fd = -1, .err_fd = -1};
    for (uint64_t i = 0; i < count; i++) {
        const char *tenant = p->tenant_ids[i / p->sites].s;
        unsigned site = (unsigned)(i % p->sites + 1);
        c = &p->clients[i];
        snprintf(c->name, sizeof c->name, "kedge-client %s/site-%u", tenant, site);
        snprintf(c->folder, sizeof c->folder, "%.850s/sites/%s/site-%u", p->dir, tenant, site);
        snprintf(c->log, sizeof c->log, "%.850s/%s-site-%u.log", logs, tenant, site);
        snprintf(c->program, sizeof c->program, "%.900s/kedge-client", p->bin);
        c->process = (struct kedge_process){.in_fd = -1, .out_fd = -1, .err_fd = -1};
        KEDGE_TRY(kedge_dir_make(c->folder, 0700, d));
    }
    return KEDGE_OK;
}

/* Each step asks first what is there already, so that the same folder goes on after any interruption: folders
 * and keys are kept, tenants that exist are no error, tokens are made for sites that have not used one. */
static int bring_up(struct kedge_poc *p, struct kedge_diag *d)
{
    json_t *status = NULL;
    char token[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_poc_state(p, d));
    KEDGE_TRY(kedge_poc_data(p, d));
    KEDGE_TRY(kedge_poc_start(p, &p->coordinator, d));
    int err = kedge_poc_ask(p, json_pack("{s:s}", "verb", "status"), 15000, &status, d);
    json_decref(status);
    KEDGE_TRY(err);
    KEDGE_TRY(kedge_poc_tenants(p, d));
    KEDGE_TRY(kedge_poc_trust(p, true, d));
    KEDGE_TRY(kedge_poc_tokens(p, d));
    for (uint64_t i = 0; i < p->tenants * p->sites; i++) {
        KEDGE_TRY(kedge_poc_start(p, &p->clients[i], d));
    }
    KEDGE_TRY(kedge_poc_sign_in(p, d));
    for (uint64_t i = 0; i < p->tenants * p->sites;
         i++) { /* used tokens are worth nothing, but are secrets */
        if (kedge_path_join(token, p->clients[i].folder, "enroll.token") == KEDGE_OK) {
            (void)unlink(token);
        }
    }
    return KEDGE_OK;
}

static int copy_model(const char *from, const char *to, struct kedge_diag *d)
{
    struct kedge_blob_at at = {.path = from};
    struct kedge_blob_file file;
    KEDGE_TRY(kedge_blob_file_open(&at, KEDGE_BLOB_MAP, &file, d));
    int err = kedge_file_write(to, kedge_view_of(file.map.ptr, file.map.len), 0600, d);
    kedge_blob_file_close(&file);
    return err;
}

/* Copies the released models to DIR/models under the names of their release statements. */
static int take_models(struct kedge_poc *p, const char *job, struct kedge_diag *d)
{
    json_auto_t *answer = NULL;
    const json_t *m;
    char path[KEDGE_PATH_MAX];
    size_t i;
    KEDGE_TRY(kedge_poc_ask(p, json_pack("{s:s,s:s}", "verb", "job.model", "job", job), 10000, &answer, d));
    KEDGE_TRY(kedge_path_join(path, p->dir, "models"));
    KEDGE_TRY(kedge_dir_make(path, 0700, d));
    json_array_foreach(json_object_get(answer, "models"), i, m)
    {
        snprintf(path, sizeof path, "%.850s/models/%s-g%d.safetensors", p->dir, job,
                 (int)kedge_cli_int(m, "group"));
        KEDGE_TRY(copy_model(kedge_cli_text(m, "path"), path, d));
    }
    return KEDGE_OK;
}

/* Accuracy of a round over all groups, -1 when nobody evaluated it. By the number of the round and not by its
 * place: the history of a long job may begin later. */
static double accuracy_at(const json_t *job, int64_t round)
{
    const json_t *history = json_object_get(job, "history");
    for (size_t i = 0; i < json_array_size(history); i++) {
        const json_t *row = json_array_get(history, i);
        if (kedge_cli_int(row, "round") == round && json_object_get(row, "accuracy")) {
            return kedge_cli_real(row, "accuracy");
        }
    }
    return -1;
}

static void percent(double v, char out[16])
{
    if (v < 0) {
        snprintf(out, 16, "-");
    } else {
        snprintf(out, 16, "%.1f %%", 100.0 * v);
    }
}

static void print_summary(struct kedge_poc *p, const json_t *grouped, const json_t *plain)
{
    static const struct kedge_column columns[] = {{"round", 5}, {"with groups", 12}, {"one model", 12}};
    char round[16], a[16], b[16];
    kedge_cli_say(p->cli, "\nGrouped job, round by round:\n");
    kedge_cli_show_rounds(p->cli, grouped, 0);
    if (!plain) {
        return;
    }
    kedge_cli_say(p->cli, "\nAccuracy on the sites' own test samples, grouped beside ungrouped:\n");
    kedge_cli_head(p->cli, columns, 3);
    for (uint64_t r = 1; r <= p->rounds; r++) {
        const char *cells[] = {round, a, b};
        snprintf(round, sizeof round, "%llu", (unsigned long long)r);
        percent(accuracy_at(grouped, (int64_t)r), a);
        percent(accuracy_at(plain, (int64_t)r), b);
        kedge_cli_row(p->cli, columns, 3, cells);
    }
}

/* The jobs one after the other (single NULL: there is one), their models, and the trust file as it is now.
 * What has been answered of a job is the caller's, also after an error. */
static int run_jobs(struct kedge_poc *p, const char *first, const char *single, json_t **grouped,
                    json_t **plain, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_poc_job(p, first, p->groups > 1, grouped, d));
    if (single) {
        KEDGE_TRY(kedge_poc_job(p, single, false, plain, d));
    }
    KEDGE_TRY(take_models(p, first, d));
    if (single) {
        KEDGE_TRY(take_models(p, single, d));
    }
    return kedge_poc_trust(p, false, d);
}

static int run(struct kedge_poc *p, struct kedge_diag *d, json_t **ret)
{
    json_t *grouped = NULL, *plain = NULL;
    const char *single = p->groups > 1 ? "fedavg" : NULL;
    const char *first = p->groups > 1 ? "flexcfl" : "fedavg";
    char path[KEDGE_PATH_MAX];
    bool again = kedge_path_join(path, p->dir, "poc.json") == KEDGE_OK && kedge_file_exists(path);
    KEDGE_TRY(kedge_poc_params(p, d));
    KEDGE_TRY(name_children(p, d));
    kedge_cli_say(p->cli, "Federation in %s: %llu tenants with %llu sites each, data set %s%s.\n", p->dir,
                  (unsigned long long)p->tenants, (unsigned long long)p->sites,
                  p->own ? kedge_cli_text(p->own, "data") : p->dataset,
                  again ? ", begun earlier and going on with the settings of then" : "");
    int err = bring_up(p, d);
    kedge_cli_progress_end(p->cli);
    KEDGE_TRY(err);
    err = run_jobs(p, first, single, &grouped, &plain, d);
    if (!err) {
        print_summary(p, grouped, plain);
        kedge_cli_say(p->cli,
                      "\nFirst round finished %.2f s after the start; %llu processes were started again.\n",
                      (double)p->first_round_ms / 1000.0, (unsigned long long)p->restarts);
        kedge_cli_say(p->cli,
                      "Models, ledgers and trust.json are in %s; check them: "
                      "kedge audit verify %s --trust %s/trust.json\n",
                      p->dir, p->dir, p->dir);
        uint64_t more = p->rounds - p->first_seen_rounds; /* rounds between the two instants */
        double period = more ? (double)(p->last_seen_ms - p->first_seen_ms) / 1000.0 / (double)more : 0;
        *ret = json_pack("{s:s,s:I,s:f,s:f,s:I,s:O,s:o}", "dir", p->dir, "period_rounds", (json_int_t)more,
                         "round_period_seconds", period, "first_round_seconds",
                         (double)p->first_round_ms / 1000.0, "restarts", (json_int_t)p->restarts, "grouped",
                         grouped, "ungrouped", plain ? json_incref(plain) : json_null());
    }
    json_decref(grouped);
    json_decref(plain);
    return err;
}

static bool can_run(const char *program)
{
    struct stat st;
    return stat(program, &st) == 0 && S_ISREG(st.st_mode) && access(program, X_OK) == 0;
}

/* The settings and DIR, which is then the one argument that is left; 2 after a usage error, else 0. With own
 * data many limits are known only when they are read (poc_clients.c), so 0 stands for "as the data say", and
 * what depends on it is checked there. */
static int take_settings(struct kedge_cli *c, struct kedge_poc *p)
{
    int code = kedge_poc_take_data(c, p);
    bool own = code == 0 && p->data[0] != '\0'; /* then the data say how many sites and groups, unless told */
    if (code != 0 || !kedge_cli_number(c, "tenants", 1, KEDGE_POC_TENANTS_MAX, own ? 1 : 3, &p->tenants)
        || !kedge_cli_number(c, "sites", 1, KEDGE_POC_SITES_MAX, own ? 0 : 4, &p->sites)
        || !kedge_cli_number(c, "rounds", 1, KEDGE_POC_ROUNDS_MAX, 10, &p->rounds)
        || !kedge_cli_number(c, "groups", 1, KEDGE_POC_GROUPS_MAX, own ? 0 : 3, &p->groups)
        || !kedge_cli_number(c, "seed", 0, INT64_MAX, 1, &p->seed)
        /* options for kedge-bench, explained in docs/benchmarks.md */
        || !kedge_cli_number(c, "model-inputs", 1, UINT32_MAX, 0, &p->model_inputs)
        || !kedge_cli_number(c, "model-classes", 1, UINT32_MAX, 0, &p->model_classes)) {
        return 2;
    }
    p->trainer = kedge_cli_option(c, "trainer", "");
    p->insecure = kedge_cli_flag(c, "insecure");
    p->plain_blobs = kedge_cli_flag(c, "plain-blobs") || p->insecure;
    p->mixing = kedge_cli_option(c, "mixing", "");
    double mixing = 0;
    if (p->mixing[0]
        && (kedge_real_decode(kedge_view_str(p->mixing), &mixing) != KEDGE_OK
            || !(mixing >= 0 && mixing <= KEDGE_POC_MIXING_MAX))) {
        return kedge_cli_usage(c, "--mixing %s: expected a number from 0 to 1000 like 0.05",
                               kedge_cli_word(p->mixing).s);
    }
    p->strategy = kedge_cli_option(c, "strategy", "");
    p->rule = kedge_cli_option(c, "rule", "");
    p->server = kedge_cli_option(c, "server", "");
    if ((p->model_inputs || p->model_classes) && (!p->model_inputs || !p->model_classes || !p->trainer[0])) {
        return kedge_cli_usage(c, "--model-inputs and --model-classes belong together, with --trainer");
    }
    if (p->trainer[0] && (p->trainer[0] != '/' || strpbrk(p->trainer, "\"\\") || strlen(p->trainer) > 800)) {
        return kedge_cli_usage(
            c, "--trainer: expected an absolute path (it runs in the site's folder), no quotes");
    }
    if (p->trainer[0] && !can_run(p->trainer)) {
        return kedge_cli_usage(c, "--trainer %s: expected a program that can be run", p->trainer);
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    if (c->argc != 1) {
        return kedge_cli_usage(c, "DIR is missing: the folder for the federation");
    }
    if (own) {
        return 0; /* the rest is looked at once the data are read */
    }
    if (p->groups > p->tenants * p->sites) {
        p->groups = p->tenants * p->sites;
    }
    struct kedge_diag d = {.text = ""};
    return kedge_poc_check_choices(p, &d) ? kedge_cli_usage(c, "%s", d.text) : 0;
}

/* The whole path of DIR; KEDGE_E_TOO_LONG when the coordinator's door would find no place below it. */
static int take_dir(struct kedge_poc *p, const char *dir)
{
    char cwd[KEDGE_PATH_MAX];
    int err = dir[0] == '/' ? (snprintf(p->dir, sizeof p->dir, "%s", dir) < KEDGE_PATH_MAX ? KEDGE_OK
                                                                                           : KEDGE_E_TOO_LONG)
              : getcwd(cwd, sizeof cwd) ? kedge_path_join(p->dir, cwd, dir)
                                        : KEDGE_E_IO;
    return !err && strlen(p->dir) > KEDGE_POC_DIR_MAX ? KEDGE_E_TOO_LONG : err;
}

/* All children are stopped before anything is told, whatever ended the run: a federation that nobody watches
 * would go on training. */
int kedge_cmd_poc(struct kedge_cli *c)
{
    static struct kedge_poc p;
    struct kedge_diag d = {.text = "", .hint = ""};
    json_t *data = NULL;
    p.cli = c;
    c->receipts_untold = true; /* they are in the state folder */
    int code = take_settings(c, &p);
    if (code) {
        return code;
    }
    const char *dir = c->argv[0];
    int err = take_dir(&p, dir);
    if (err == KEDGE_E_TOO_LONG) {
        return kedge_cli_usage(
            c, "DIR: its whole path is longer than %d bytes: the coordinator's door is a socket below it",
            KEDGE_POC_DIR_MAX);
    }
    if (!err) {
        err = kedge_process_own_dir(p.bin, sizeof p.bin);
    }
    p.begin_ms = kedge_os_unix_ms();
    if (p.insecure) {
        kedge_cli_say(
            c, "INSECURE: plain tcp:// on loopback; any program of this machine can speak as any site.\n");
    }
    static char state[KEDGE_PATH_MAX];
    if (!err) {
        err = kedge_path_join(state, p.dir, "state");
    }
    c->state = state;
    kedge_cli_catch_interrupt();
    if (!err) {
        err = run(&p, &d, &data);
    }
    kedge_poc_stop(&p);
    kedge_mem_free(p.clients);
    json_decref(p.own);
    if (err && kedge_cli_interrupted()) {
        json_decref(data);
        return kedge_cli_interrupt_end(c, "interrupted; all processes are stopped, nothing is lost",
                                       "the same folder goes on where it was: kedge poc %s", dir);
    }
    return err ? kedge_cli_fail(c, err, &d) : kedge_cli_ok(c, data);
}
