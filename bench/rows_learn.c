#include "bench/rows_learn.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/mem.h"
#include "common/base/os/process.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/idx.h"
#include "sim/learn/learn.h"
#include "tests/fixtures/learn_spec.h"

enum { IMAGES = 60000, TESTS = 10000, SIDE = 28, ROUNDS = 150 };
enum { LATE_S = 100 }; /* of virtual time: after thirty rounds or so */

/* ---- speed ---- */

/* What the script says under a name, "NAME RATE" on a line of its own; 0 without. */
static double rate_of(const char *said, const char *name)
{
    double rate = 0;
    const char *line = strstr(said, name);
    line = line ? line + strlen(name) : "";
    const struct kedge_view number = kedge_view_of(line, strcspn(line, "\n"));
    return kedge_real_decode(number, &rate) == KEDGE_OK ? rate : 0;
}

/* On one core, by its processor time, or on the whole machine, by the clock. */
static void ask(const char *python, bool whole, double ret_rates[2])
{
    const char *const argv[] = {python, KEDGE_BENCH_SCRIPTS "/compare_learn.py", whole ? "--machine" : NULL,
                                NULL};
    const struct kedge_process_options options = {.argv = argv, .pipe_stdout = true, .die_with_parent = true};
    struct kedge_process process;
    char said[1024] = "\n";
    size_t len = 1;
    if (kedge_process_start(&options, &process, NULL) != KEDGE_OK) {
        return;
    }
    for (ssize_t n = 1; n > 0 && len + 1 < sizeof said; len += n > 0 ? (size_t)n : 0) {
        n = read(process.out_fd, said + len, sizeof said - 1 - len);
    }
    said[len] = '\0';
    kedge_process_stop(&process, SIGTERM, 1000);
    ret_rates[0] = rate_of(said, "\ntorch ");
    ret_rates[1] = rate_of(said, "\nnumpy ");
}

static int write_part(const char *folder, const char *part, uint32_t count)
{
    uint32_t dims[3] = {count, SIDE, SIDE};
    uint8_t *values = kedge_mem_new((size_t)count * SIDE * SIDE, 1);
    int err = values ? KEDGE_OK : KEDGE_E_NOMEM;
    for (int kind = 0; kind < 2 && !err; kind++) {
        struct kedge_buf out;
        char path[1200];
        for (size_t i = 0; i < (kind ? count : (size_t)count * SIDE * SIDE); i++) {
            values[i] = (uint8_t)(kind ? i % 10 : i * 2654435761u >> 13);
        }
        kedge_buf_init(&out, SIZE_MAX);
        kedge_idx_put_header(dims, kind ? 1 : 3, &out);
        kedge_buf_put(&out, values, kind ? count : (size_t)count * SIDE * SIDE);
        snprintf(path, sizeof path, "%s/%s-%s", folder, part,
                 kind ? "labels-idx1-ubyte" : "images-idx3-ubyte");
        FILE *f = fopen(path, "wb");
        err = f && fwrite(out.ptr, 1, out.len, f) == out.len ? KEDGE_OK : KEDGE_E_IO;
        err = f && fclose(f) != 0 ? KEDGE_E_IO : err;
        kedge_buf_deinit(&out);
    }
    kedge_mem_free(values);
    return err;
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    for (int i = 0; i < 4; i++) {
        char path[1200];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

struct watch {
    clockid_t clock;
    double first_s, last_s, first_visits, last_visits;
};

/* Joules stand for visits here. From the first round's end on, so that reading files does not count. */
static bool on_round(void *arg, const struct kedge_learn_round *round)
{
    struct watch *w = arg;
    struct timespec t;
    clock_gettime(w->clock, &t);
    w->last_s = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    w->last_visits = round->joules;
    if (round->round == 0) {
        w->first_s = w->last_s;
        w->first_visits = w->last_visits;
    }
    return round->round < ROUNDS;
}

static int measure(const char *folder, bool whole, double *ret_rate)
{
    struct kedge_learn_spec spec;
    struct watch w = {.clock = whole ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID};
    struct kedge_learn_host host = {.threads = whole ? 0 : 1, .on_round = on_round, .arg = &w};
    learn_spec_default(&spec);
    snprintf(spec.images, sizeof spec.images, "%s", folder);
    spec.job.rounds = 2 * ROUNDS; /* stopped before the last ones, which are evaluated */
    spec.job.evaluate_every = 2 * ROUNDS;
    spec.devices[0].joules_per_sample = 1;
    spec.devices[0].joules_per_s = 0;
    int err = kedge_learn_run(&spec, &host, NULL);
    *ret_rate = w.last_s > w.first_s ? (w.last_visits - w.first_visits) / (w.last_s - w.first_s) : 0;
    return err;
}

static int compare(const char *folder, bool whole, const char *const names[2], struct row *rows, int *count)
{
    const double target = 10;
    double rate = 0, other[2] = {0, 0};
    int err = measure(folder, whole, &rate);
    if (err) {
        return err;
    }
    ask("python3", whole, other);
    if (other[0] <= 0) {
        ask("/usr/bin/python3", whole, other); /* the system's, whose packages another one in PATH may hide */
    }
    for (int i = 0; i < 2; i++) {
        if (other[i] <= 0) {
            fprintf(stderr, "kedge-bench: %s: skipped: there is no Python with it\n", names[i]);
            continue;
        }
        rows[(*count)++] = (struct row){
            names[i], "visits/s", rate, other[i], target * other[i], true, rate >= target * other[i]};
    }
    return KEDGE_OK;
}

int kedge_row_learn_speed(struct row rows[ROWS_MAX], int *ret_count)
{
    static const char *const whole[] = {"sim-learn-torch", "sim-learn-numpy"};
    static const char *const core[] = {"sim-learn-core-torch", "sim-learn-core-numpy"};
    char folder[] = "/tmp/kedge-learn-XXXXXX";
    *ret_count = 0;
    if (!mkdtemp(folder)) {
        return KEDGE_E_IO;
    }
    int err = write_part(folder, "train", IMAGES);
    err = err ? err : write_part(folder, "t10k", TESTS);
    err = err ? err : compare(folder, true, whole, rows, ret_count);
    err = err ? err : compare(folder, false, core, rows, ret_count);
    remove_folder(folder);
    return err;
}

/* ---- groups ---- */

struct found {
    struct kedge_learn_round line[64];
    uint32_t count;
};

static bool keep_round(void *arg, const struct kedge_learn_round *round)
{
    struct found *f = arg;
    f->line[f->count++] = *round;
    return f->count < 64;
}

static int plant(enum kedge_learn_shift shift, struct found *ret)
{
    struct kedge_learn_spec spec;
    struct kedge_learn_host host = {.threads = 1, .on_round = keep_round, .arg = ret};
    learn_spec_default(&spec);
    spec.partition = KEDGE_LEARN_SYNTHETIC;
    spec.sites = 200;
    spec.job.sites_per_round = 40;
    spec.job.rounds = 40;
    spec.job.groups = 5;
    spec.planted = 5;
    learn_spec_set_strategy(&spec, kedge_strategy_find("flexcfl"));
    spec.shift = shift;
    spec.job.shift = KEDGE_SHIFT_TEST_UPDATE;
    int err = kedge_model_mclr(60, 10, &spec.job.model, NULL);
    ret->count = 0;
    return err ? err : kedge_learn_run(&spec, &host, NULL);
}

int kedge_row_learn_groups(struct row rows[ROWS_MAX], int *ret_count)
{
    const double found_target = 0.95, back_target = 0.9;
    static struct found still, moving;
    double found = 1, back = 1;
    KEDGE_TRY(plant(KEDGE_LEARN_SHIFT_NONE, &still));
    KEDGE_TRY(plant(KEDGE_LEARN_SHIFT_SWAP_ALL, &moving));
    for (uint32_t r = 10; r < still.count; r++) {
        found = fmin(found, still.line[r].rand_index);
    }
    for (uint32_t r = 10; r < moving.count; r++) { /* some come and go in every round */
        back = fmin(back, moving.line[r].rand_index);
    }
    rows[0] = (struct row){"groups-planted", "index", found, 1, found_target, true, found >= found_target};
    rows[1] = (struct row){"groups-after-swaps", "index", back, 1, back_target, true, back >= back_target};
    *ret_count = 2;
    return KEDGE_OK;
}

/* ---- newcomers ---- */

struct arrivals {
    double sum; /* of rounds' mean differences */
    uint32_t rounds;
};

static bool add_arrivals(void *arg, const struct kedge_learn_round *round)
{
    struct arrivals *a = arg;
    if (!isnan(round->newcomers)) {
        a->sum += round->newcomers;
        a->rounds++;
    }
    return true;
}

/* A quarter of the sites can only be asked long after every other one has been. */
static int write_late(const char *path, uint32_t sites)
{
    FILE *f = fopen(path, "w");
    bool ok = f && fputs("time_s,site,available,samples_per_s\n", f) >= 0;
    for (uint32_t i = 3; i < sites && ok; i += 4) {
        ok = fprintf(f, "0,%u,0,\n%u,%u,1,\n", i, LATE_S, i) > 0;
    }
    ok = (!f || fclose(f) == 0) && ok;
    return ok ? KEDGE_OK : KEDGE_E_IO;
}

int kedge_row_learn_newcomers(struct row rows[ROWS_MAX], int *ret_count)
{
    static const char folder[] = KEDGE_BENCH_SCRIPTS "/../data/fashion-mnist";
    const double target = -1;
    struct arrivals a = {0};
    struct kedge_learn_host host = {.threads = 1, .on_round = add_arrivals, .arg = &a};
    struct kedge_learn_spec spec;
    *ret_count = 0;
    if (access(KEDGE_BENCH_SCRIPTS "/../data/fashion-mnist/train-images-idx3-ubyte", R_OK) != 0) {
        fprintf(stderr,
                "kedge-bench: newcomers: skipped: no Fashion-MNIST (scripts/get-data fashion-mnist)\n");
        return KEDGE_OK;
    }
    learn_spec_default(&spec);
    snprintf(spec.images, sizeof spec.images, "%s", folder);
    spec.partition = KEDGE_LEARN_LETTERS;
    spec.sites = 200;
    spec.job.sites_per_round = 20;
    spec.job.rounds = 100;
    spec.job.evaluate_every = 1;
    spec.job.learning_rate = 0.003;
    spec.job.groups = 5;
    learn_spec_set_strategy(&spec, kedge_strategy_find("flexcfl"));
    char path[] = "/tmp/kedge-late-XXXXXX.csv";
    const int fd = mkstemps(path, (int)strlen(".csv"));
    if (fd < 0) {
        return KEDGE_E_IO;
    }
    close(fd);
    snprintf(spec.trace, sizeof spec.trace, "%s", path);
    int err = write_late(path, spec.sites);
    err = err ? err : kedge_learn_run(&spec, &host, NULL);
    unlink(path);
    if (!err) {
        const double points = a.rounds ? 100 * a.sum / a.rounds : (double)NAN;
        rows[0] = (struct row){"newcomers", "points", points, 0, target, true, points >= target};
        *ret_count = 1;
    }
    return err;
}
