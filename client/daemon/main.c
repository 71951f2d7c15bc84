/* kedge-client: the daemon of one site. Options, the order in which things are opened, started and ended, and
 * nothing else.
 *
 * The order of a start: the folder (whose lock keeps a second daemon out), the network, threads, then the
 * core, which is given what is durable and begins. Signals are blocked before the first thread exists, so
 * that every thread inherits that and sigwait() in one of them gets all. An end is the same backwards, and
 * has nothing to save: all that matters is durable when it happens. */
#include <dirent.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon/energy/energy.h"
#include "client/daemon/host.h"
#include "client/daemon/owner/owner.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/entropy.h"
#include "common/base/os/log.h"
#include "common/base/os/notify.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "crypto/passphrase.h"

enum { QUEUE_MAX = 64, TOKEN_FILE_MAX = 4096, THREAD_STACK = 1024 * 1024 };

/* Heartbeats are of no work in particular. */
static void *beat_main(void *arg)
{
    struct kedge_site_host *h = arg;
    void *taken;
    while (kedge_queue_take(h->beat_queue, KEDGE_TIME_NEVER, &taken) == KEDGE_OK) {
        struct kedge_site_item *item = taken;
        item->run(&h->works[0], item);
        kedge_client_post(h, item);
    }
    return NULL;
}

/* Models of former tasks and half-written files; what the memory names is kept. */
static void clean_work(const struct kedge_client_work *w, const struct kedge_site_memory *m)
{
    char dir_path[KEDGE_PATH_MAX], keep[KEDGE_SITE_RESULTS_MAX][KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    size_t keep_count = 0;
    for (uint32_t i = 0; i < m->result_count && keep_count < KEDGE_SITE_RESULTS_MAX; i++) {
        const struct kedge_site_result *r = &m->results[i];
        keep_count += r->work == w->index
                      && kedge_client_work_path(w, "update", &r->update, keep[keep_count]) == KEDGE_OK;
    }
    DIR *dir = kedge_client_work_file(w, "", dir_path) == KEDGE_OK ? opendir(dir_path) : NULL;
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL) {
        bool wanted = entry->d_name[0] == '.' || kedge_path_join(path, dir_path, entry->d_name) != KEDGE_OK;
        for (size_t i = 0; i < keep_count && !wanted; i++) {
            wanted = strcmp(keep[i], path) == 0;
        }
        if (!wanted) {
            (void)unlink(path);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* Work folders, and what the site keeps, are cleaned before the core starts, when no thread uses them:
 * whatever the memory does not name is of a task that was not finished, and after a crash there may be
 * half-written files of any size. */
static int start_core(struct kedge_site_host *h, struct kedge_diag *d)
{
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_START};
    struct kedge_site_params params = {.allow_all = h->service.allow_all,
                                       .allowed_count = h->service.allowed_count,
                                       .allowed = h->service.allowed,
                                       .base_max = h->policy->model_bytes_max,
                                       .update_max = 2 * h->policy->model_bytes_max,
                                       .works = KEDGE_SITE_WORKS_MAX,
                                       .at_once = h->service.jobs_at_once};
    kedge_site_times_default(&params.times);
    kedge_os_random(&params.seed, sizeof params.seed);
    h->execute = kedge_client_execute;
    h->site_mem = kedge_mem_new(kedge_site_size(KEDGE_SITE_WORKS_MAX), 1);
    int err = h->site_mem
                  ? kedge_site_init(h->site_mem, kedge_site_size(KEDGE_SITE_WORKS_MAX), &params, &h->site)
                  : KEDGE_E_NOMEM;
    err = err ? kedge_diag_set(d, err, "cannot start: %s", kedge_strerror(err))
              : kedge_client_memory_read(h, &ev.memory, d);
    if (!err) {
        ev.seen = h->seen;
        ev.err = h->refusal.err;
        for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
            clean_work(&h->works[i], &ev.memory);
        }
        kedge_kept_sweep(h->dir);
        kedge_client_step(h, &ev);
    }
    return err;
}

static int start_threads_as(struct kedge_site_host *h, const pthread_attr_t *attr, pthread_t *ret_beat)
{
    KEDGE_TRY(kedge_queue_new(QUEUE_MAX, &h->beat_queue));
    KEDGE_TRY_MEM(pthread_create(ret_beat, attr, beat_main, h) == 0);
    return kedge_client_service_start(h, attr);
}

static int start_threads(struct kedge_site_host *h, pthread_t *ret_beat, struct kedge_diag *d)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, THREAD_STACK);
    int err = start_threads_as(h, &attr, ret_beat);
    pthread_attr_destroy(&attr);
    return err ? kedge_diag_set(d, err, "cannot start threads") : KEDGE_OK;
}

/* The policy names the file, beside itself or absolute. */
static int read_login(const struct kedge_site_host *h, char ret[KEDGE_NET_LOGIN_MAX + 1],
                      struct kedge_diag *d)
{
    const char *name = h->policy->proxy_login_file;
    char path[KEDGE_PATH_MAX];
    int n = name[0] == '/' ? snprintf(path, sizeof path, "%s", name)
                           : snprintf(path, sizeof path, "%s/%s", h->dir, name);
    ret[0] = '\0';
    return !name[0]                         ? KEDGE_OK
           : n < 0 || n >= (int)sizeof path ? KEDGE_E_TOO_LONG
                                            : kedge_net_login_read(path, ret, d);
}

static int open_net(struct kedge_site_host *h, struct kedge_diag *d)
{
    char login[KEDGE_NET_LOGIN_MAX + 1];
    struct kedge_net_client_options options = {.url = h->config.server,
                                               .key = &h->tls_key,
                                               .server_key = &h->config.server_key,
                                               .proxy = h->policy->proxy,
                                               .proxy_login = login,
                                               .insecure = h->policy->insecure,
                                               .reconnect_max_ms = 2000,
                                               .changed = kedge_client_service_connection,
                                               .changed_arg = h};
    if (strncmp(h->config.server, "tcp://", 6) == 0 && h->policy->insecure) {
        kedge_log(KEDGE_LOG_WARN, "INSECURE",
                  "%s is plain: nothing is encrypted and nobody proves who they are", h->config.server);
    }
    int err = read_login(h, login, d);
    if (!err) {
        err = kedge_net_client_open(&options, &h->net, d);
    }
    kedge_wipe(login, sizeof login);
    return err;
}

/* For the tenant's admin, who has them from the coordinator as well and compares. */
static void log_keys(const struct kedge_site_host *h)
{
    char tls[2 * KEDGE_KEY_LEN + 1], statement[2 * KEDGE_KEY_LEN + 1];
    kedge_hex_encode(h->tls_key.public.b, KEDGE_KEY_LEN, tls);
    kedge_hex_encode(h->statement_key.public.b, KEDGE_KEY_LEN, statement);
    kedge_log(KEDGE_LOG_INFO, "public keys", "tls_key=%s statement_key=%s", tls, statement);
}

/* The core comes last: its first effects already use the network, the works' folders, energy and threads. */
static int start_all(struct kedge_site_host *h, pthread_t *ret_beat, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_client_open_folder(h, d));
    KEDGE_TRY(kedge_queue_new(QUEUE_MAX, &h->queue)); /* what the network says of the connection */
    KEDGE_TRY(open_net(h, d));
    kedge_client_service_open(h);
    kedge_client_works_open(h);
    KEDGE_TRY(kedge_client_energy_open(h, d));
    KEDGE_TRY(start_threads(h, ret_beat, d));
    return start_core(h, d);
}

/* A start that failed releases nothing: the process ends then, and the system takes back threads, files and
 * memory. Energy alone is closed even so, for power caps that were lowered outlive a process. */
static int run(struct kedge_site_host *h)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    pthread_t beat;
    int err = start_all(h, &beat, &d);
    if (err) {
        fprintf(stderr, "kedge-client: %s\n", kedge_text_shown(d.text[0] ? d.text : kedge_strerror(err)).s);
        if (d.hint[0]) {
            fprintf(stderr, "  %s\n", kedge_text_shown(d.hint).s);
        }
        kedge_client_energy_close(h);
        return err;
    }
    kedge_log(KEDGE_LOG_INFO, "serving", "tenant=%s site=%s server=%s", h->config.tenant.s, h->config.site.s,
              h->config.server);
    log_keys(h);
    (void)kedge_notify("READY=1", "started");
    err = kedge_client_run(h);
    kedge_client_service_end(h);
    /* Nothing to save: what matters is durable already. Work threads may be in the middle of trainings. */
    kedge_client_works_abort(h);
    kedge_net_client_cancel(h->net);
    kedge_queue_close(h->beat_queue);
    pthread_join(beat, NULL);
    kedge_client_works_close(h);
    kedge_net_client_close(h->net);
    kedge_client_energy_close(h);
    kedge_client_close_folder(h);
    return err;
}

/* The same program in the same process, as after a start: all that it knows is durable, so a restart is the
 * one path by which a changed history is taken up (chain/heal.c). exec keeps the process id, and so the
 * service manager's view of it. Enrolment is over, so its options are left out; how to unseal keys is passed
 * on. */
static int begin_anew(const char *name, const struct kedge_site_host *h, enum kedge_log_level least,
                      const char *passphrase_file)
{
    char own[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    const char *argv[7] = {name, "--site", h->dir};
    int n = 3, err = kedge_process_own_dir(own, sizeof own);
    if (least == KEDGE_LOG_DEBUG) {
        argv[n++] = "--verbose";
    }
    if (passphrase_file) {
        argv[n++] = "--passphrase-file";
        argv[n++] = passphrase_file;
    }
    if (!err) {
        err = kedge_path_join(path, own, "kedge-client");
    }
    if (!err) {
        (void)execv(path, (char *const *)(uintptr_t)argv);
        err = KEDGE_E_UNKNOWN; /* a supervisor starts it again */
    }
    kedge_log(KEDGE_LOG_ERROR, "begin anew", "%s: %s", path, kedge_strerror(err));
    return err;
}

static int enroll(const char *dir, const char *token_file)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf text;
    kedge_buf_init(&text, TOKEN_FILE_MAX);
    int err =
        strcmp(token_file, "-") == 0 ? kedge_stdin_read(&text, &d) : kedge_file_read(token_file, &text, &d);
    while (!err && text.len > 0 && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == ' ')) {
        text.len--;
    }
    if (!err) {
        err = kedge_client_enroll_folder(dir, kedge_buf_view(&text), &d);
    }
    if (text.ptr) {
        kedge_wipe(text.ptr, text.len);
    }
    kedge_buf_deinit(&text);
    if (err) {
        fprintf(stderr, "kedge-client: enrolment: %s\n",
                kedge_text_shown(d.text[0] ? d.text : kedge_strerror(err)).s);
    }
    return err;
}

static int usage(FILE *out, int code)
{
    fputs(
        "Usage: kedge-client --site DIR [--enroll-file FILE [--enroll-only]] [--passphrase-file FILE] "
        "[--verbose]\n"
        "       kedge-client status|doctor --site DIR [--format json|text]; doctor also: [--try-trainers]\n"
        "       kedge-client try-data [NAME…] --site DIR: loads what policy.json binds, as training would\n"
        "       kedge-client accept-main FINGERPRINT --site DIR: goes on with a main chain that was refused\n"
        "The daemon of one site. DIR keeps its keys, its owner's policy.json and unfinished work.\n"
        "  --enroll-file FILE  first start: make DIR from the enrolment token in FILE (- reads stdin)\n"
        "  --enroll-only       make DIR and end\n"
        "  --passphrase-file FILE  for keys that `kedge key protect` sealed; or $KEDGE_PASSPHRASE_FILE\n"
        "policy.json: {\"jobs\": \"*\", \"data\": {\"NAME\": {\"train\": {\"format\": \"csv\", \"path\": "
        "\"my.csv\"}, \"split\": \"0.8\"}}}\n"
        "Exit codes: 0 done, 1 a policy.json or token that is none, 2 usage, 3 cannot reach or read, 4 "
        "others may "
        "read a key,\n5 corrupt state, 70 bug. After 1, 2, 4 and 5 it need not be started again before "
        "somebody has "
        "mended it.\n",
        out);
    return code;
}

/* What an owner asks beside running the daemon. */
static bool is_verb(int argc, char **argv, int *ret_code)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } verbs[] = {{"status", kedge_client_status_main},
                 {"doctor", kedge_client_doctor_main},
                 {"try-data", kedge_client_try_data_main},
                 {"accept-main", kedge_client_accept_main}};
    for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            int err = kedge_crypto_init();
            *ret_code = err ? kedge_exit_code(err) : verbs[i].run(argc - 1, argv + 1);
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"site", required_argument, NULL, 's'},  {"enroll-file", required_argument, NULL, 'e'},
        {"enroll-only", no_argument, NULL, 'o'}, {"passphrase-file", required_argument, NULL, 'p'},
        {"verbose", no_argument, NULL, 'v'},     {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    static struct kedge_site_host host;
    enum kedge_log_level least = KEDGE_LOG_INFO;
    const char *token_file = NULL, *dir = NULL, *passphrase_file = NULL;
    bool enroll_only = false;
    char cwd[KEDGE_PATH_MAX];
    int opt, code;
    if (is_verb(argc, argv, &code)) {
        return code;
    }
    while ((opt = getopt_long(argc, argv, "s:e:vVh", options, NULL)) != -1) {
        switch (opt) {
        case 's':
            dir = optarg;
            break;
        case 'e':
            token_file = optarg;
            break;
        case 'o':
            enroll_only = true;
            break;
        case 'p':
            passphrase_file = optarg;
            kedge_passphrase_use_file(optarg);
            break;
        case 'v':
            least = KEDGE_LOG_DEBUG;
            break;
        case 'V':
            puts("kedge-client 0.1.0");
            return 0;
        case 'h':
            return usage(stdout, 0);
        default:
            return usage(stderr, 2);
        }
    }
    if (!dir || optind != argc || (enroll_only && !token_file)) {
        return usage(stderr, 2);
    }
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    sigset_t set;
    kedge_client_service_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kedge_log_init("kedge-client", least);
    int err = kedge_crypto_init();
    if (!err && token_file) {
        err = enroll(dir, token_file);
    }
    if (err || enroll_only) {
        return err ? kedge_exit_code(err) : 0;
    }
    if (dir[0] == '/' ? snprintf(host.dir, sizeof host.dir, "%s", dir) >= KEDGE_PATH_MAX
                      : !getcwd(cwd, sizeof cwd) || kedge_path_join(host.dir, cwd, dir) != KEDGE_OK) {
        return kedge_exit_code(KEDGE_E_TOO_LONG); /* absolute, because the trainer runs inside the folder */
    }
    err = run(&host);
    if (!err && host.again) {
        err = begin_anew(argv[0], &host, least, passphrase_file);
    }
    return err ? kedge_exit_code(err) : 0;
}
