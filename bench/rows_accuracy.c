#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/rows_learn.h"
#include "common/base/err.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "common/base/try.h"

/* Two variants of a row of docs/experiments, five seeds each, by the program that users have. */
struct question {
    const char *name, *spec, *ours, *theirs;
    const char *measure; /* of compare.json: a share of 1 */
    double target;       /* points, or the percentage of theirs' error that ours removes */
    bool error_removed;
};

static double mean_of(const json_t *comparison, const char *variant, const char *measure)
{
    size_t i;
    json_t *one;
    double mean = -1;
    json_array_foreach(json_object_get(comparison, "variants"), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && strcmp(name, variant) == 0) {
            json_t *values = json_object_get(json_object_get(one, "measures"), measure);
            mean = json_number_value(json_object_get(values, "mean"));
        }
    }
    return mean;
}

/* Runs it with its table thrown away; its progress is seen. */
static int compare(const struct question *q, const char *out)
{
    char dir[1024], program[1100], spec[256], pair[128], said[4096];
    int status = -1;
    KEDGE_TRY(kedge_process_own_dir(dir, sizeof dir));
    snprintf(program, sizeof program, "%s/kedge", dir);
    snprintf(spec, sizeof spec, "docs/experiments/%s.json", q->spec);
    snprintf(pair, sizeof pair, "%s,%s", q->theirs, q->ours);
    const char *const argv[] = {program, "sim", spec, "--compare", pair, "--seeds", "5", "--out", out, NULL};
    const struct kedge_process_options options = {
        .argv = argv, .directory = KEDGE_BENCH_SCRIPTS "/..", .pipe_stdout = true, .die_with_parent = true};
    struct kedge_process process;
    struct kedge_diag why = {0};
    KEDGE_TRY(kedge_process_start(&options, &process, &why));
    while (read(process.out_fd, said, sizeof said) > 0) {
    }
    while (!kedge_process_poll(&process, &status)) {
        kedge_os_sleep_ms(10);
    }
    close(process.out_fd);
    return status == 0 ? KEDGE_OK : KEDGE_E_STATE;
}

static int answer(const struct question *q, struct row *ret)
{
    char folder[] = "/tmp/kedge-accuracy-XXXXXX", path[64];
    if (!mkdtemp(folder)) {
        return KEDGE_E_IO;
    }
    int err = compare(q, folder);
    snprintf(path, sizeof path, "%s/compare.json", folder);
    json_t *found = err ? NULL : json_load_file(path, 0, NULL);
    const double ours = mean_of(found, q->ours, q->measure), theirs = mean_of(found, q->theirs, q->measure);
    json_decref(found);
    const int cleared = kedge_dir_remove(folder);
    err = err ? err : cleared;
    if (err || ours < 0 || theirs < 0) {
        return err ? err : KEDGE_E_FORMAT;
    }
    const double value = 100 * (q->error_removed ? (ours - theirs) / (1 - theirs) : ours - theirs);
    *ret = (struct row){q->name,
                        q->error_removed ? "% of error" : "points",
                        value,
                        100 * (q->error_removed ? 1 - theirs : theirs),
                        q->target,
                        true,
                        value >= q->target};
    return KEDGE_OK;
}

static int answer_all(const struct question *questions, int count, struct row rows[ROWS_MAX], int *ret_count)
{
    int err = KEDGE_OK;
    *ret_count = 0;
    for (int i = 0; i < count && !err; i++) {
        if (kedge_bench_wants(questions[i].name)) {
            err = answer(&questions[i], &rows[*ret_count]);
            *ret_count += !err;
        }
    }
    return err;
}

int kedge_row_accuracy_published(struct row rows[ROWS_MAX], int *ret_count)
{
    static const struct question all[] = {
        {"flexcfl-vs-fedavg", "letters-fashion", "flexcfl", "fedavg", "accuracy_max", 10.6, false},
        {"flexcfl-vs-fedprox", "fashion-mclr", "flexcfl", "fedprox", "accuracy_max", 3.5, false},
        {"flexcfl-vs-fesem", "mnist-mclr", "flexcfl", "fesem", "accuracy_max", 0, false},
        {"flexcfl-vs-fesem-released", "mnist-mclr", "flexcfl", "fesem-as-released", "accuracy_max", 8.4,
         false},
    };
    return answer_all(all, sizeof all / sizeof all[0], rows, ret_count);
}

int kedge_row_accuracy_best(struct row rows[ROWS_MAX], int *ret_count)
{
    static const char best[] = "flexcfl-adaptive", plain[] = "flexcfl-plain", last[] = "accuracy_last";
    static const struct question all[] = {
        {"best-vs-flexcfl-mnist", "mnist-mclr", best, plain, last, 20, true},
        {"best-vs-flexcfl-fashion", "fashion-mclr", best, plain, last, 20, true},
        {"best-vs-flexcfl-letters", "letters-fashion", best, plain, last, 20, true},
        {"best-vs-flexcfl-digits", "letters-digits", best, plain, last, 20, true},
        {"best-vs-flexcfl-synthetic", "synthetic", best, plain, last, 20, true},
    };
    return answer_all(all, sizeof all / sizeof all[0], rows, ret_count);
}
