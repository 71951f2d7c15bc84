/* Which job a site works for next: the order by itself, and what it is worth, in a replay of devices that
 * check in and are given to one of fifty jobs, against first come, first served. KEDGE_LONG=1 replays 20
 * seeds. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "coordinator/schedule/order.h"
#include "tests/fixtures/run.h"

static const struct {
    struct kedge_schedule_claim a, b;
    bool before, after;
} pairs[] = {
    {{50, 10, 5, false}, {50, 20, 1, false}, true, false},  /* the scarcer kind of device */
    {{50, 10, 5, false}, {50, 10, 6, false}, true, false},  /* less is left */
    {{50, 10, 5, false}, {50, 10, 5, false}, false, false}, /* alike */
    {{50, 10, 9, false}, {50, 10, 1, true}, true, false},   /* it declared less than it takes */
    {{50, 10, 9, true}, {50, 20, 1, false}, true, false},   /* but within its kind only */
    {{50, 0, UINT64_MAX, true}, {50, UINT64_MAX, 0, false}, true, false},
    {{51, 9, 9, true}, {50, 1, 1, false}, true, false}, /* the higher priority, whatever else there is */
};

START_TEST(test_pairs)
{
    ck_assert(kedge_schedule_before(&pairs[_i].a, &pairs[_i].b) == pairs[_i].before);
    ck_assert(kedge_schedule_before(&pairs[_i].b, &pairs[_i].a) == pairs[_i].after);
}
END_TEST

/* ---- the replay: docs/benchmarks.md says what is drawn ---- */

enum { JOBS = 50, SITES_MAX = 500, KINDS = 4 };

struct job {
    uint32_t sites, rounds, kind; /* of a round; in all; 0: any device, 1: compute, 2: memory, 3: both */
    double from;
    uint32_t round, assigned;
    double ready; /* when its round takes devices: the one before has ended */
    double answers[SITES_MAX];
    double done;
};

static const double shares[] = {0.45, 0.20, 0.20,
                                0.15}; /* devices that have nothing, compute, memory, both */
static const double supplies[] = {1.00, 0.35, 0.35, 0.15}; /* that can serve a job of each kind */

static double unit(struct kedge_rng *rng)
{
    return ((double)(kedge_rng_u64(rng) >> 11) + 0.5) * 0x1p-53;
}

static double log_uniform(struct kedge_rng *rng, double least, double most)
{
    return least * pow(most / least, unit(rng));
}

static double normal(struct kedge_rng *rng)
{
    return sqrt(-2 * log(unit(rng))) * cos(2 * 3.14159265358979323846 * unit(rng));
}

static bool serves(uint32_t device, uint32_t kind)
{
    return (device & kind) == kind;
}

static void draw_jobs(struct kedge_rng *rng, double load, struct job *ret)
{
    double demand = 0;
    for (uint32_t i = 0; i < JOBS; i++) {
        ret[i] = (struct job){.sites = (uint32_t)lround(log_uniform(rng, 20, 500)),
                              .rounds = (uint32_t)lround(log_uniform(rng, 20, 200)),
                              .kind = (uint32_t)kedge_rng_below(rng, KINDS)};
        demand += (double)ret[i].sites * ret[i].rounds;
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        ret[i].from = ret[i].ready = unit(rng) * load * demand / 2;
    }
}

static int compare_times(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* The round has all its devices: it ends when four fifths of them have answered. */
static void end_round(struct job *j, double now)
{
    qsort(j->answers, j->sites, sizeof j->answers[0], compare_times);
    const double answered = j->answers[(4 * j->sites + 4) / 5 - 1];
    j->ready = answered > now ? answered : now;
    j->assigned = 0;
    j->done = j->ready;
    j->round++;
}

static struct kedge_schedule_claim claim_of(const struct job *j)
{
    return (struct kedge_schedule_claim){.supply = (uint64_t)lround(supplies[j->kind] * 100),
                                         .remaining =
                                             (uint64_t)(j->rounds - j->round) * j->sites - j->assigned};
}

static uint32_t device_at(double kind)
{
    double below = shares[0];
    uint32_t device = 0;
    while (device + 1 < KINDS && kind >= below) {
        below += shares[++device];
    }
    return device;
}

/* Mean time from submission to end, of the same jobs and devices for both ways. */
static double replay(uint64_t seed, double load, bool by_order)
{
    struct job *jobs = kedge_mem_new(JOBS, sizeof *jobs);
    struct kedge_rng rng;
    ck_assert_ptr_nonnull(jobs);
    kedge_rng_init(&rng, seed, 0, 0, 0);
    draw_jobs(&rng, load, jobs);
    double now = 0, sum = 0;
    for (uint32_t left = JOBS; left > 0;) {
        now -= log(unit(&rng)) / 2;
        const double kind = unit(&rng), response = 60 * exp(0.784 * normal(&rng));
        const uint32_t device = device_at(kind);
        struct job *best = NULL;
        for (uint32_t i = 0; i < JOBS; i++) {
            struct job *j = &jobs[i];
            if (j->round == j->rounds || j->ready > now || !serves(device, j->kind)) {
                continue;
            }
            const struct kedge_schedule_claim mine = claim_of(j), other = claim_of(best ? best : j);
            best =
                !best || (by_order ? kedge_schedule_before(&mine, &other) : j->from < best->from) ? j : best;
        }
        if (best) {
            best->answers[best->assigned++] = now + response;
            if (best->assigned == best->sites) {
                end_round(best, now);
                left -= best->round == best->rounds;
            }
        }
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        sum += jobs[i].done - jobs[i].from;
    }
    kedge_mem_free(jobs);
    return sum / JOBS;
}

/* Geometric mean over the seeds. */
static double gain(double load, uint64_t seeds)
{
    double sum = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        sum += log(replay(seed, load, false) / replay(seed, load, true));
    }
    return exp(sum / (double)seeds);
}

START_TEST(test_replay)
{
    const char *is_long = getenv("KEDGE_LONG");
    const uint64_t seeds = is_long && strcmp(is_long, "1") == 0 ? 20 : 1;
    const double even = gain(0.3, seeds), light = gain(1.0, seeds);
    printf("mean time of fifty jobs, first come over scarcest and least left, %u seeds: %.2f, at light load "
           "%.2f\n",
           (unsigned)seeds, even, light);
    ck_assert_double_ge(even, seeds == 20 ? 2.0 : 1.7);
    ck_assert_double_ge(light, seeds == 20 ? 1.9 : 1.6);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("schedule-order");
    TCase *t = tcase_create("order");
    tcase_set_timeout(t, 3600);
    tcase_add_loop_test(t, test_pairs, 0, sizeof pairs / sizeof pairs[0]);
    tcase_add_test(t, test_replay);
    suite_add_tcase(s, t);
    return run_suite(s);
}
