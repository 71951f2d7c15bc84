#include "bench/bench_federation.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "common/base/text.h"

enum { OUT_MAX = 8 << 20, ROUNDS_MAX = 512, SAMPLE_MS = 10, IDLE_MS = 2500, STOP_MS = 10000 };

/* ---- /proc ---- */

/* The number behind "key:" in /proc/PID/status, in its own unit; -1 when absent. */
static double status_of(pid_t pid, const char *key)
{
    char path[64], line[256];
    double value = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    size_t len = strlen(key);
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, len) == 0 && line[len] == ':') {
            const char *at = line + len + 1 + strspn(line + len + 1, " \t");
            struct kedge_view digits = kedge_view_of(at, strspn(at, "0123456789"));
            uint64_t v;
            value = kedge_decimal_decode(digits, UINT64_MAX, &v) == KEDGE_OK ? (double)v : -1;
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    return value;
}

/* A child of `parent` whose name in the kernel (15 letters) is comm; 0 when there is none. */
static pid_t find_child(pid_t parent, const char *comm)
{
    DIR *dir = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        char path[300], name[32] = "";
        uint64_t pid;
        if (kedge_decimal_decode(kedge_view_str(e->d_name), INT32_MAX, &pid) != KEDGE_OK) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
        FILE *f = fopen(path, "re");
        bool same = f && fgets(name, sizeof name, f) && strncmp(name, comm, 15) == 0;
        if (f) {
            fclose(f);
        }
        if (same && (pid_t)status_of((pid_t)pid, "PPid") == parent) {
            found = (pid_t)pid;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return found;
}

/* ---- one run of kedge poc ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return n == 0 ? 0 : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double real_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    double real = json_number_value(v);
    if (json_is_string(v) && kedge_real_decode(kedge_view_str(json_string_value(v)), &real) != KEDGE_OK) {
        real = 0;
    }
    return real;
}

/* Rounds note the time from their opening to their closing, in ms. What lies between rounds (the durable
 * commit of the closing) is known on average: from the period of all rounds that poc saw pass. */
static int read_answer(const struct kedge_buf *out, const struct kedge_bench_run *run,
                       struct kedge_bench_cost *ret)
{
    unsigned rounds = run->rounds;
    double seconds[ROUNDS_MAX], sum = 0;
    json_t *o = json_loadb((const char *)out->ptr, out->len, 0, NULL);
    const json_t *data = json_object_get(o, "data");
    const json_t *history = json_object_get(json_object_get(data, "grouped"), "history");
    size_t n = json_array_size(history), from = (size_t)(rounds - real_of(data, "period_rounds"));
    ret->first_round_s = real_of(data, "first_round_seconds");
    int err = ret->first_round_s > 0 ? KEDGE_OK : KEDGE_E_FORMAT;
    if (err || !run->inputs || run->groups > 1) { /* the first round, or memory, alone is wanted */
        json_decref(o);
        return err;
    }
    err = n == rounds && n <= ROUNDS_MAX && from <= n ? KEDGE_OK : KEDGE_E_FORMAT;
    for (size_t i = from; !err && i < n; i++) {
        seconds[i - from] = real_of(json_array_get(history, i), "seconds");
        sum += seconds[i - from];
    }
    if (!err) {
        size_t count = n - from;
        double gap = count ? real_of(data, "round_period_seconds") - sum / (double)count : 0;
        ret->round_s = median(seconds, count) + (gap > 0 ? gap : 0);
    }
    json_decref(o);
    return err;
}

/* Reads all that poc prints and watches its coordinator meanwhile. */
static int follow(struct kedge_process *poc, unsigned timeout_s, struct kedge_buf *out, double *ret_peak_kb)
{
    uint64_t end = kedge_os_now_ns() + (uint64_t)timeout_s * 1000000000u;
    pid_t coordinator = 0;
    for (;;) {
        struct pollfd p = {.fd = poc->out_fd, .events = POLLIN};
        uint8_t block[65536];
        int ready = poll(&p, 1, SAMPLE_MS);
        ssize_t n = ready > 0 ? read(poc->out_fd, block, sizeof block) : 1;
        if (n <= 0) {
            return n == 0 ? KEDGE_OK : KEDGE_E_IO;
        }
        if (ready > 0) {
            kedge_buf_put(out, block, (size_t)n);
        }
        coordinator = coordinator ? coordinator : find_child(poc->pid, "kedge-coordinator");
        double kb = coordinator ? status_of(coordinator, "RssAnon") : 0;
        *ret_peak_kb = kb > *ret_peak_kb ? kb : *ret_peak_kb;
        if (kedge_os_now_ns() > end) {
            return KEDGE_E_TIMEOUT;
        }
    }
}

struct paths {
    char bin[KEDGE_PATH_MAX], root[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX], log[KEDGE_PATH_MAX];
};

static int make_paths(struct paths *p)
{
    const char *tmp = getenv("TMPDIR");
    int err = kedge_process_own_dir(p->bin, sizeof p->bin);
    snprintf(p->root, sizeof p->root, "%.700s/kedge-bench-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
    if (err || !mkdtemp(p->root)) {
        return err ? err : KEDGE_E_IO;
    }
    err = kedge_path_join(p->dir, p->root, "poc");
    return err ? err : kedge_path_join(p->log, p->root, "log");
}

static int run_poc(const struct paths *at, const struct kedge_bench_run *run, struct kedge_bench_cost *ret,
                   struct kedge_diag *d)
{
    char kedge[KEDGE_PATH_MAX], trainer[KEDGE_PATH_MAX], n[5][16];
    const char *argv[28] = {kedge, "poc", at->dir, "--format", "json", "--rounds", n[0]};
    struct kedge_process poc = {.in_fd = -1, .out_fd = -1, .err_fd = -1};
    struct kedge_buf out;
    double peak_kb = 0;
    int err = kedge_path_join(kedge, at->bin, "kedge");
    err = err ? err
              : kedge_path_join(trainer, at->bin,
                                run->unchanged ? "kedge-train-identity"
                                : run->noise   ? "kedge-bench-trainer-noise"
                                               : "kedge-bench-trainer");
    snprintf(n[0], sizeof n[0], "%u", run->rounds);
    snprintf(n[1], sizeof n[1], "%u", run->sites);
    snprintf(n[2], sizeof n[2], "%u", run->inputs);
    snprintf(n[3], sizeof n[3], "%u", run->classes);
    snprintf(n[4], sizeof n[4], "%u", run->groups ? run->groups : 1);
    const char *more[] = {"--tenants",
                          "1",
                          "--sites",
                          n[1],
                          "--groups",
                          n[4],
                          "--model-inputs",
                          n[2],
                          "--model-classes",
                          n[3],
                          "--trainer",
                          trainer,
                          run->plain         ? "--insecure"
                          : run->plain_blobs ? "--plain-blobs"
                                             : NULL};
    if (run->inputs) {
        memcpy(argv + 7, more, sizeof more);
    }
    struct kedge_process_options options = {
        .argv = argv, .stderr_path = at->log, .pipe_stdout = true, .die_with_parent = true};
    err = err ? err : kedge_process_start(&options, &poc, d);
    if (err) {
        return err;
    }
    kedge_buf_init(&out, OUT_MAX);
    err = follow(&poc, run->timeout_s, &out, &peak_kb);
    kedge_process_stop(&poc, SIGTERM, STOP_MS);
    err = err ? err : out.err ? out.err : read_answer(&out, run, ret);
    ret->coordinator_mb = peak_kb * 1024e-6;
    kedge_buf_deinit(&out);
    return err;
}

/* The coordinator and one client of a finished run, alone: nothing to do but to stay connected. */
static int measure_idle(const struct paths *at, double *ret_mb, struct kedge_diag *d)
{
    char server[KEDGE_PATH_MAX], client[KEDGE_PATH_MAX], state[KEDGE_PATH_MAX], site[KEDGE_PATH_MAX];
    const char *server_argv[] = {server, "--state", state, NULL};
    const char *client_argv[] = {client, "--site", site, NULL};
    struct kedge_process coordinator = {.in_fd = -1, .out_fd = -1, .err_fd = -1},
                         process = {.in_fd = -1, .out_fd = -1, .err_fd = -1};
    struct kedge_process_options options = {
        .argv = server_argv, .stderr_path = at->log, .die_with_parent = true};
    int err = kedge_path_join(server, at->bin, "kedge-coordinator");
    err = err ? err : kedge_path_join(client, at->bin, "kedge-client");
    err = err ? err : kedge_path_join(state, at->dir, "state");
    err = err ? err : kedge_path_join(site, at->dir, "sites/org-a/site-1");
    err = err ? err : kedge_process_start(&options, &coordinator, d);
    kedge_os_sleep_ms(500);
    options.argv = client_argv;
    err = err ? err : kedge_process_start(&options, &process, d);
    kedge_os_sleep_ms(IDLE_MS);
    double kb = err ? -1 : status_of(process.pid, "VmRSS");
    *ret_mb = kb * 1024e-6;
    kedge_process_stop(&process, SIGTERM, STOP_MS);
    kedge_process_stop(&coordinator, SIGTERM, STOP_MS);
    return err ? err : kb > 0 ? KEDGE_OK : KEDGE_E_STATE;
}

/* Small folders stay until the end: for minutes after files were removed ext4 is slow at making new ones,
 * which the next row would be measured with. Those of large models go at once, for their size. */
enum { KEPT_MAX = 32, LARGE_INPUTS = 1000000 };
static char kept[KEPT_MAX][KEDGE_PATH_MAX];
static unsigned kept_count;

static int leave(const struct paths *at, const struct kedge_bench_run *run)
{
    if (kept_count == KEPT_MAX || run->inputs >= LARGE_INPUTS) {
        return kedge_dir_remove(at->root);
    }
    memcpy(kept[kept_count++], at->root, sizeof at->root);
    return KEDGE_OK;
}

int kedge_bench_clean(void)
{
    int err = KEDGE_OK;
    while (kept_count > 0) {
        int failed = kedge_dir_remove(kept[--kept_count]);
        err = err ? err : failed;
    }
    return err;
}

int kedge_bench_federation(const struct kedge_bench_run *run, struct kedge_bench_cost *ret)
{
    static struct paths at;
    struct kedge_bench_cost cost = {0};
    struct kedge_diag d = {.text = ""};
    int err = make_paths(&at);
    if (err) {
        fprintf(stderr, "kedge-bench: no folder for a run: %s\n", kedge_strerror(err));
        return err;
    }
    err = run_poc(&at, run, &cost, &d);
    err = err || !run->idle ? err : measure_idle(&at, &cost.client_mb, &d);
    if (err) {
        fprintf(stderr, "kedge-bench: a federation failed: %s %s (%s is kept)\n", kedge_strerror(err), d.text,
                at.root);
        return err;
    }
    *ret = cost;
    return leave(&at, run);
}

/* ---- what the machine does ---- */

double kedge_bench_sync(unsigned times)
{
    static struct paths at;
    double seconds[ROUNDS_MAX];
    uint8_t page[4096] = {1};
    if (times > ROUNDS_MAX || make_paths(&at) != KEDGE_OK) {
        return KEDGE_E_IO;
    }
    int fd = open(at.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool ok = fd >= 0;
    for (unsigned i = 0; i < times && ok; i++) {
        uint64_t start = kedge_os_now_ns();
        ok = write(fd, page, sizeof page) == (ssize_t)sizeof page && fdatasync(fd) == 0;
        seconds[i] = (double)(kedge_os_now_ns() - start) * 1e-9;
    }
    if (fd >= 0) {
        close(fd);
    }
    int err = kedge_dir_remove(at.root);
    return ok && !err ? median(seconds, times) : KEDGE_E_IO;
}

double kedge_bench_start(unsigned times)
{
    static char bin[KEDGE_PATH_MAX], kedge[KEDGE_PATH_MAX];
    double seconds[ROUNDS_MAX];
    struct kedge_diag d = {.text = ""};
    const char *argv[] = {kedge, "--version", NULL};
    struct kedge_process_options options = {.argv = argv, .pipe_stdout = true, .die_with_parent = true};
    int err = kedge_process_own_dir(bin, sizeof bin);
    err = err ? err : kedge_path_join(kedge, bin, "kedge");
    for (unsigned i = 0; i < times && i < ROUNDS_MAX && !err; i++) {
        struct kedge_process p = {.in_fd = -1, .out_fd = -1, .err_fd = -1};
        char text[256];
        uint64_t start = kedge_os_now_ns();
        err = kedge_process_start(&options, &p, &d);
        while (!err && read(p.out_fd, text, sizeof text) > 0) {
        }
        seconds[i] = (double)(kedge_os_now_ns() - start) * 1e-9;
        kedge_process_stop(&p, SIGTERM, STOP_MS);
    }
    return err ? err : median(seconds, times);
}
