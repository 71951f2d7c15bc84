/* Rows of the batch sizes that energy decides: replay of the traces that Zeus's authors published (examples/
 * research_reproducibility of ml-energy/zeus). A run draws one of the recorded ones with its batch; its
 * batch's first use pays, in its first epoch, the mean over power caps, which are all tried then; from then
 * on the best cap is used. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rows.h"
#include "client/energy/batch.h"
#include "common/base/bytes.h"
#include "common/base/text.h"

enum {
    RUNS_MAX = 64,
    SEEDS = 20,
    RECURRENCES = 100,
    LAST = 5,
    LINE = 256,
    FIELDS = 8,
    TRIES = 10,
    ROWS_OF_ALL = 24
};

struct size {
    uint32_t batch;
    double epochs[RUNS_MAX]; /* 0: the target was not reached within the limit */
    uint32_t runs;
    bool powered;
    double cost, energy, time; /* of an epoch at the cap that costs least */
    double first;              /* mean cost of an epoch over caps */
    uint32_t caps;
    double top_time, top_power; /* at the highest cap */
    double best_cost, sum_cost;
    uint32_t top_cap;
};
struct workload {
    const char *dataset, *optimizer;
    double target, limit;
    uint32_t normal; /* batch */
};
static const struct workload workloads[] = {
    {"cifar100", "adadelta", 0.6, 100, 1024},
    {"imagenet", "adadelta", 0.65, 100, 256},
    {"squad", "adamw", 84, 6, 32},
    {"librispeech", "adamw", 40, 16, 192},
    {"movielens-1m", "adam", 0.41, 100, 1024},
    {"sentiment140", "adamw", 0.84, 10, 128},
};
static const char *const devices[] = {"v100", "a40", "rtx6000", "p100"};

struct task {
    struct size sizes[KEDGE_BATCH_SIZES_MAX];
    uint32_t count, start;
    double cap_most; /* W */
};

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

static struct size *size_of(struct task *t, uint32_t batch)
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
    t->sizes[at] = (struct size){.batch = batch, .best_cost = INFINITY};
    return &t->sizes[at];
}

static FILE *open_trace(const char *folder, const char *name)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s.csv", folder, name);
    return fopen(path, "r");
}

static bool read_power(const char *folder, const char *device, const struct workload *w, struct task *t)
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
            struct size *s = pass ? size_of(t, (uint32_t)number(f[2])) : NULL;
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

static bool read_training(const char *folder, const struct workload *w, struct task *t)
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
            struct size *s = size_of(t, (uint32_t)number(f[2]));
            const double epochs = number(f[7]);
            if (s && s->runs < RUNS_MAX) {
                s->epochs[s->runs++] = epochs <= w->limit ? epochs : 0;
            }
        }
    }
    fclose(file);
    return true;
}

/* The sizes with both, and where the default is among them. */
static bool load(const char *folder, const char *device, const struct workload *w, struct task *t)
{
    *t = (struct task){.count = 0};
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

static double mean_epochs(const struct size *s)
{
    double sum = 0, runs = 0;
    for (uint32_t i = 0; i < s->runs; i++) {
        sum += s->epochs[i];
        runs += s->epochs[i] > 0;
    }
    return runs > 0 ? sum / runs : 0;
}

/* One attempt: draws a run, stops it in front of the epoch that would go beyond the limit. */
static bool attempt(const struct task *t, double epochs_limit, struct kedge_batch_choice c, bool is_first,
                    struct kedge_rng *rng, double *ret_cost)
{
    const struct size *s = &t->sizes[c.place];
    const double drawn = s->epochs[kedge_rng_below(rng, s->runs)];
    const double extra = is_first ? s->first - s->cost : 0;
    const double epochs = drawn > 0 ? drawn : epochs_limit;
    *ret_cost = epochs * s->cost + extra;
    if (*ret_cost > c.limit) {
        *ret_cost = fmin(*ret_cost, fmax(1, floor((c.limit - extra) / s->cost)) * s->cost + extra);
        return false;
    }
    return drawn > 0;
}

struct outcome {
    double at_20, at_100, energy, time; /* parts of the default's, at full power */
};

static int replay(const struct task *t, double epochs_limit, uint64_t seed, struct outcome *sum)
{
    const struct kedge_batch_options options = kedge_batch_defaults();
    const struct size *normal = &t->sizes[t->start];
    const double epochs = mean_epochs(normal);
    const double cost_of_normal = epochs * (normal->top_power + t->cap_most) / 2 * normal->top_time;
    uint32_t sizes[KEDGE_BATCH_SIZES_MAX];
    bool used[KEDGE_BATCH_SIZES_MAX] = {false};
    struct kedge_batch b;
    struct kedge_rng rng;
    double spent = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        sizes[i] = t->sizes[i].batch;
    }
    int err = kedge_batch_init(&b, &options, sizes, t->count, t->start, NULL);
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 0, 0);
    for (int run = 0; run < RECURRENCES && !err; run++) {
        struct kedge_batch_choice c = {0};
        bool reached = false;
        for (int tries = 0; tries < TRIES && !reached; tries++) {
            double cost;
            c = kedge_batch_choose(&b, tries > 0, &rng);
            reached = attempt(t, epochs_limit, c, !used[c.place], &rng, &cost);
            used[c.place] = true;
            spent += cost;
            kedge_batch_saw(&b, c.place, cost, reached);
        }
        if (run + 1 == 20) {
            sum->at_20 += spent / (20 * cost_of_normal);
        }
        if (run >= RECURRENCES - LAST) {
            const struct size *s = &t->sizes[c.place];
            sum->energy +=
                mean_epochs(s) * s->energy / (epochs * normal->top_power * normal->top_time) / LAST;
            sum->time += mean_epochs(s) * s->time / (epochs * normal->top_time) / LAST;
        }
    }
    sum->at_100 += spent / (RECURRENCES * cost_of_normal);
    return err;
}

int kedge_row_batch(struct row rows[ROWS_MAX], int *ret_count)
{
    const char *folder = getenv("KEDGE_ZEUS_TRACES");
    struct outcome mean = {0}, worst = {0};
    *ret_count = 0;
    folder = folder ? folder : KEDGE_BENCH_SCRIPTS "/../../shared/data/zeus-traces";
    for (size_t k = 0; k < ROWS_OF_ALL; k++) {
        const struct workload *w = &workloads[k % 6];
        struct outcome sum = {0};
        struct task t;
        if (!load(folder, devices[k / 6], w, &t)) {
            fprintf(stderr,
                    "kedge-bench: batch-energy: skipped: no traces (KEDGE_ZEUS_TRACES names their folder)\n");
            return KEDGE_OK;
        }
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            int err = replay(&t, w->limit, 1000 * k + seed, &sum);
            if (err) {
                return err;
            }
        }
        mean.at_20 += log(sum.at_20 / SEEDS) / ROWS_OF_ALL;
        mean.at_100 += log(sum.at_100 / SEEDS) / ROWS_OF_ALL;
        mean.energy += log(sum.energy / SEEDS) / ROWS_OF_ALL;
        mean.time += log(sum.time / SEEDS) / ROWS_OF_ALL;
        worst.at_20 = fmax(worst.at_20, sum.at_20 / SEEDS);
        worst.at_100 = fmax(worst.at_100, sum.at_100 / SEEDS);
    }
    const double energy = exp(mean.energy), time = exp(mean.time), at_20 = exp(mean.at_20),
                 at_100 = exp(mean.at_100);
    const double energy_target = 0.55, time_target = 0.7, target_20 = 0.9, target_100 = 0.72,
                 worst_target = 1.05;
    rows[0] = (struct row){"batch-energy", "of default",           energy, 0.551, energy_target,
                           false,          energy <= energy_target};
    rows[1] = (struct row){"batch-time", "of default", time, 0.703, time_target, false, time <= time_target};
    rows[2] = (struct row){"batch-cost-20",
                           "of default",
                           at_20,
                           worst.at_20,
                           target_20,
                           false,
                           at_20 <= target_20 && worst.at_20 <= worst_target};
    rows[3] = (struct row){"batch-cost-100",
                           "of default",
                           at_100,
                           worst.at_100,
                           target_100,
                           false,
                           at_100 <= target_100 && worst.at_100 <= worst_target};
    *ret_count = 4;
    return KEDGE_OK;
}
