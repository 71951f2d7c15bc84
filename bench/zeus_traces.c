#include "bench/zeus_traces.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/text.h"

enum { LINE = 256, FIELDS = 8 };

struct workload {
    const char *dataset, *optimizer;
    double target, limit;
    uint32_t normal; /* batch */
    double early;    /* a target on the way */
};
static const struct workload workloads[] = {
    {"cifar100", "adadelta", 0.6, 100, 1024, 0.45},
    {"imagenet", "adadelta", 0.65, 100, 256, 0.5},
    {"squad", "adamw", 84, 6, 32, 80},
    {"librispeech", "adamw", 40, 16, 192, 60},
    {"movielens-1m", "adam", 0.41, 100, 1024, 0.36},
    {"sentiment140", "adamw", 0.84, 10, 128, 0.8},
};
static const char *const devices[] = {"v100", "a40", "rtx6000", "p100"};

/* The fields of the next line; 0 at the end. */
static int next_line(FILE *f, char line[LINE], const char *fields[FIELDS])
{
    int count = 0;
    if (!fgets(line, LINE, f)) {
        return 0;
    }
    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; count < FIELDS; at += strlen(at) + 1) {
        char *comma = strchr(at, ',');
        fields[count++] = at;
        if (!comma) {
            break;
        }
        *comma = '\0';
    }
    return count;
}

static double number(const char *text)
{
    double v;
    return kedge_real_decode(kedge_view_str(text), &v) == KEDGE_OK ? v : 0;
}

static struct zeus_size *size_of(struct zeus_task *t, uint32_t batch)
{
    uint32_t at = 0;
    while (at < t->count && t->sizes[at].batch < batch) {
        at++;
    }
    if (at < t->count && t->sizes[at].batch == batch) {
        return &t->sizes[at];
    }
    if (t->count == KEDGE_BATCH_SIZES_MAX) {
        return NULL;
    }
    memmove(&t->sizes[at + 1], &t->sizes[at], (t->count++ - at) * sizeof t->sizes[0]);
    t->sizes[at] = (struct zeus_size){.batch = batch, .best_cost = INFINITY};
    return &t->sizes[at];
}

static FILE *open_trace(const char *folder, const char *name)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s.csv", folder, name);
    return fopen(path, "r");
}

static bool read_power(const char *folder, const char *device, const struct workload *w, struct zeus_task *t)
{
    char name[64], line[LINE];
    const char *f[FIELDS];
    snprintf(name, sizeof name, "summary_power_%s", device);
    t->cap_most = 0;
    for (int pass = 0; pass < 2; pass++) { /* costs depend on the highest cap */
        FILE *file = open_trace(folder, name);
        if (!file) {
            return false;
        }
        while (next_line(file, line, f) == 7) {
            if (strcmp(f[0], w->dataset) != 0 || strcmp(f[3], w->optimizer) != 0) {
                continue;
            }
            const double cap = number(f[4]), time = number(f[5]), power = number(f[6]);
            struct zeus_size *s = pass ? size_of(t, (uint32_t)number(f[2])) : NULL;
            t->cap_most = fmax(t->cap_most, cap);
            if (s) {
                const double cost = (power + t->cap_most) / 2 * time;
                s->powered = true;
                s->sum_cost += cost;
                s->first = s->sum_cost / ++s->caps;
                if (cost < s->best_cost) {
                    s->best_cost = s->cost = cost;
                    s->energy = power * time;
                    s->time = time;
                }
                if ((uint32_t)cap > s->top_cap) {
                    s->top_cap = (uint32_t)cap;
                    s->top_time = time;
                    s->top_power = power;
                }
            }
        }
        fclose(file);
    }
    return true;
}

static bool read_training(const char *folder, const struct workload *w, struct zeus_task *t)
{
    char line[LINE];
    const char *f[FIELDS];
    FILE *file = open_trace(folder, "summary_train");
    if (!file) {
        return false;
    }
    while (next_line(file, line, f) == 8) {
        if (strcmp(f[0], w->dataset) == 0 && strcmp(f[3], w->optimizer) == 0
            && fabs(number(f[6]) - w->target) < 1e-9) {
            struct zeus_size *s = size_of(t, (uint32_t)number(f[2]));
            const double epochs = number(f[7]);
            if (s && s->runs < ZEUS_RUNS_MAX) {
                s->epochs[s->runs++] = epochs <= w->limit ? epochs : 0;
            }
        }
    }
    fclose(file);
    return true;
}

/* The sizes with both, and where the default is among them. */
static bool load(const char *folder, const char *device, const struct workload *w, struct zeus_task *t)
{
    *t = (struct zeus_task){.limit = w->limit};
    if (!read_power(folder, device, w, t) || !read_training(folder, w, t)) {
        return false;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->sizes[i].powered && t->sizes[i].runs > 0) {
            t->sizes[kept++] = t->sizes[i];
        }
    }
    t->count = kept;
    t->start = kept > 0 ? kept - 1 : 0;
    for (uint32_t i = 0; i < kept; i++) {
        t->start = t->sizes[i].batch == w->normal ? i : t->start;
    }
    return kept > 0;
}

double zeus_mean_epochs(const struct zeus_size *s)
{
    double sum = 0, runs = 0;
    for (uint32_t i = 0; i < s->runs; i++) {
        sum += s->epochs[i];
        runs += s->epochs[i] > 0;
    }
    return runs > 0 ? sum / runs : 0;
}

static const char *folder_of_traces(void)
{
    const char *folder = getenv("KEDGE_ZEUS_TRACES");
    return folder ? folder : KEDGE_BENCH_SCRIPTS "/../../shared/data/zeus-traces";
}

static void tell_missing(const char *what)
{
    fprintf(stderr, "kedge-bench: %s: skipped: no traces (KEDGE_ZEUS_TRACES names their folder)\n", what);
}

/* Of one workload; the lines of a training stand together. */
static uint32_t read_curves(const char *folder, const struct workload *w, double epoch_s,
                            struct zeus_curve *ret, uint32_t most)
{
    char line[LINE], run[64] = "";
    const char *f[FIELDS];
    double nearest = INFINITY;
    uint32_t count = 0;
    FILE *file = open_trace(folder, "summary_train");
    while (file && next_line(file, line, f) == 8) {
        char this_run[64];
        if (strcmp(f[0], w->dataset) != 0 || strcmp(f[3], w->optimizer) != 0
            || (uint32_t)number(f[2]) != w->normal) {
            continue;
        }
        snprintf(this_run, sizeof this_run, "%s %s", f[4], f[5]);
        if (strcmp(run, this_run) != 0) {
            memcpy(run, this_run, sizeof run);
            nearest = INFINITY;
            count += count < most;
            ret[count - 1] = (struct zeus_curve){0, 0};
        }
        const double target = number(f[6]), epochs = number(f[7]);
        if (fabs(target - w->early) < nearest) {
            nearest = fabs(target - w->early);
            ret[count - 1].first_s = epochs * epoch_s;
        }
        if (fabs(target - w->target) < 1e-9) {
            ret[count - 1].last_s = epochs * epoch_s;
        }
    }
    if (file) {
        fclose(file);
    }
    return count;
}

uint32_t zeus_curves(struct zeus_curve *ret, uint32_t most)
{
    const char *folder = folder_of_traces();
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        struct zeus_task t;
        if (!load(folder, devices[0], &workloads[i], &t)) {
            tell_missing("targets");
            return 0;
        }
        const uint32_t first = count;
        count += read_curves(folder, &workloads[i], t.sizes[t.start].top_time, ret + count, most - count);
        for (uint32_t k = first; k < count;) { /* those that reached both */
            if (ret[k].first_s > 0 && ret[k].last_s >= ret[k].first_s) {
                k++;
            } else {
                ret[k] = ret[--count];
            }
        }
    }
    return count;
}

bool zeus_load(uint32_t row, struct zeus_task *ret)
{
    if (row >= ZEUS_ROWS || !load(folder_of_traces(), devices[row / 6], &workloads[row % 6], ret)) {
        tell_missing("batch sizes");
        return false;
    }
    return true;
}
