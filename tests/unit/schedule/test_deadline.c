/* Deadlines: shares by hand, what is refused, and the published comparison in virtual time. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "coordinator/schedule/deadline.h"
#include "tests/fixtures/effort.h"
#include "tests/fixtures/run.h"

typedef struct kedge_schedule_due due;
typedef struct kedge_schedule_room room;

#define UNITS UINT64_C(1000000) /* of work, in millionths */

START_TEST(test_speed)
{
    const due even = {.most = 8}, lossy = {.most = 8, .loss = 100000};
    ck_assert_uint_eq(kedge_schedule_speed(&even, 0), 0);
    ck_assert_uint_eq(kedge_schedule_speed(&even, 8), 8 * UNITS);
    ck_assert_uint_eq(kedge_schedule_speed(&lossy, 1), UNITS);
    ck_assert_uint_eq(kedge_schedule_speed(&lossy, 6), 4 * UNITS); /* 6 / 1.5 */
}
END_TEST

START_TEST(test_shares_by_hand)
{
    const room r = {.slots = 4, .step_ms = 10};
    /* the first needs one slot for 20 ms; the second does 60 units in 30 ms, with three slots that are free
     * for 20 ms (all it can use are two) */
    const due jobs[] = {{.work = 20 * UNITS, .due_ms = 20, .most = 4},
                        {.work = 60 * UNITS, .due_ms = 30, .most = 2},
                        {.work = 10 * UNITS, .due_ms = 30, .most = 4}};
    uint32_t shares[3], now[3];
    ck_assert(kedge_schedule_shares(&r, jobs, 3, shares, now));
    ck_assert_uint_eq(shares[0], 1);
    ck_assert_uint_eq(shares[1], 2);
    ck_assert_uint_eq(shares[2], 1);
    ck_assert_uint_eq(now[0] + now[1] + now[2], 4);
    const due more[] = {jobs[0], jobs[1], {.work = 51 * UNITS, .due_ms = 30, .most = 4}};
    ck_assert(!kedge_schedule_shares(&r, more, 3, shares, now)); /* 1, 1 and 2 slots are free: 40 units */
    ck_assert_uint_eq(shares[2], 0);
    ck_assert_uint_eq(now[2], 0);
    const due late = {.work = UNITS, .due_ms = 0, .most = 4}, done = {.work = 0, .due_ms = 5, .most = 4};
    ck_assert(!kedge_schedule_shares(&r, &late, 1, shares, now));
    ck_assert(kedge_schedule_shares(&r, &done, 1, shares, now));
    ck_assert(kedge_schedule_shares(&r, NULL, 0, shares, now));
}
END_TEST

static struct kedge_schedule_decision admit(const room *r, const due *jobs, size_t count, due job)
{
    due scratch[16];
    ck_assert_uint_lt(count, 16);
    return kedge_schedule_admit(r, jobs, count, &job, 0, scratch);
}

START_TEST(test_a_promise_is_kept_before_another_is_made)
{
    const room r = {.slots = 4, .step_ms = 10};
    const due first = {.work = 360 * UNITS, .due_ms = 100, .most = 4}; /* nine tenths of the time */
    const due ask = {.work = 80 * UNITS, .due_ms = 50, .most = 4};
    struct kedge_schedule_decision d = admit(&r, NULL, 0, ask);
    ck_assert_int_eq(d.verdict, KEDGE_SCHEDULE_ADMITTED);
    ck_assert_uint_eq(d.share, 2);
    d = admit(&r, &first, 1, ask); /* though its deadline is nearer */
    ck_assert_int_eq(d.verdict, KEDGE_SCHEDULE_TOO_EARLY);
    ck_assert_uint_eq(d.share, 0);
    ck_assert_uint_ge(d.earliest_ms, 110); /* 360 and 80 units, 4 in a ms */
    ck_assert_uint_le(d.earliest_ms, 125);
    due later = ask;
    later.due_ms = d.earliest_ms;
    ck_assert_int_eq(admit(&r, &first, 1, later).verdict, KEDGE_SCHEDULE_ADMITTED);
    const due lost = {.work = 1000 * UNITS, .due_ms = 100, .most = 4}; /* keeps nobody out */
    ck_assert_int_eq(admit(&r, &lost, 1, ask).verdict, KEDGE_SCHEDULE_ADMITTED);
}
END_TEST

START_TEST(test_bounds)
{
    const room r = {.slots = KEDGE_SCHEDULE_SLOTS, .step_ms = 1, .guard_ms = UINT64_MAX};
    const due most = {
        .work = UINT64_C(1) << 62, .due_ms = KEDGE_SCHEDULE_FAR_MS, .most = KEDGE_SCHEDULE_SLOTS};
    due many[16];
    for (size_t i = 0; i < 15; i++) {
        many[i] = most;
    }
    ck_assert_int_eq(admit(&r, many, 15, most).verdict, KEDGE_SCHEDULE_ADMITTED);
    const room one = {.slots = 1, .step_ms = 1};
    const due never = {.work = UINT64_C(1) << 62, .due_ms = 1, .most = 1};
    const struct kedge_schedule_decision d = admit(&one, NULL, 0, never);
    ck_assert_int_eq(d.verdict, KEDGE_SCHEDULE_TOO_EARLY);
    ck_assert_uint_eq(d.earliest_ms, 0); /* 146 years: beyond what a deadline may be */
}
END_TEST

START_TEST(test_guard)
{
    const room r = {.slots = 2, .step_ms = 10, .guard_ms = 100};
    due scratch[3];
    const due at = {.work = 200 * UNITS, .due_ms = 1000, .most = 2}, more = {200 * UNITS + 1, 1000, 2, 0};
    const due small = {.work = 100 * UNITS, .due_ms = 1000, .most = 2}, large = {102 * UNITS, 1000, 2, 0};
    const uint64_t median = 50 * UNITS;
    ck_assert_int_eq(kedge_schedule_admit(&r, &at, 1, &large, median, scratch).verdict,
                     KEDGE_SCHEDULE_ADMITTED);
    ck_assert_int_eq(kedge_schedule_admit(&r, &more, 1, &large, median, scratch).verdict,
                     KEDGE_SCHEDULE_TOO_LARGE);
    ck_assert_int_eq(kedge_schedule_admit(&r, &more, 1, &small, median, scratch).verdict,
                     KEDGE_SCHEDULE_ADMITTED);
    ck_assert_int_eq(kedge_schedule_admit(&r, &more, 1, &large, 0, scratch).verdict, KEDGE_SCHEDULE_ADMITTED);
}
END_TEST

/* ---- the published comparison ---- */

enum { JOBS = 200, SLOTS = 64, TICK_MS = 30000 };

struct drawn {
    due job; /* due_ms: since the beginning; most: four times what it asks for */
    uint64_t arrives_ms, solo_ms;
    uint32_t slots;  /* that it asks for */
    uint64_t left;   /* of its work */
    uint64_t end_ms; /* 0: not yet */
    bool is_in;
};

static double normal(struct kedge_rng *rng)
{
    const double u = 1 - kedge_rng_unit(rng);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * kedge_rng_unit(rng));
}

static int by_arrival(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;
    return (x->arrives_ms > y->arrives_ms) - (x->arrives_ms < y->arrives_ms);
}

/* 64 slots; solo times log-normal(7.2, 0.8) within 300 to 7,200 s, deadlines 0.5 to 1.5 times that. */
static void draw(uint64_t seed, double load, struct drawn *ret)
{
    struct kedge_rng rng;
    double work = 0;
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 14, 0);
    memset(ret, 0, JOBS * sizeof *ret);
    for (int i = 0; i < JOBS; i++) {
        struct drawn *j = &ret[i];
        double solo = exp(7.2 + 0.8 * normal(&rng));
        solo = solo < 300 ? 300 : solo > 7200 ? 7200 : solo;
        j->slots = 1u << kedge_rng_below(&rng, 4);
        j->job.loss = (uint32_t)(20000 + kedge_rng_below(&rng, 80001));
        j->job.most = 4 * j->slots;
        j->solo_ms = (uint64_t)(solo * 1000);
        j->job.work = j->solo_ms * kedge_schedule_speed(&j->job, j->slots);
        j->left = j->job.work;
        j->job.due_ms = (uint64_t)((0.5 + kedge_rng_unit(&rng)) * solo * 1000);
        work += solo * j->slots;
    }
    for (int i = 0; i < JOBS; i++) {
        ret[i].arrives_ms = (uint64_t)(kedge_rng_unit(&rng) * 1000 * work / (SLOTS * load));
        ret[i].job.due_ms += ret[i].arrives_ms;
    }
    qsort(ret, JOBS, sizeof *ret, by_arrival);
}

static int by_work(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Of the whole work of jobs that are under way. */
static uint64_t median_of(struct drawn *const *jobs, size_t count)
{
    uint64_t work[JOBS];
    for (size_t i = 0; i < count; i++) {
        work[i] = jobs[i]->job.work;
    }
    qsort(work, count, sizeof *work, by_work);
    return count > 0 ? work[(count - 1) / 2] : 0;
}

/* Nearest deadline first, without pre-emption, each with the slots that it asks for; what cannot be met any
 * more is dropped. Returns how many end in time. */
static uint32_t nearest_first(struct drawn *jobs)
{
    uint32_t met = 0, free = SLOTS;
    for (uint64_t now = 0, next; now != UINT64_MAX; now = next) {
        next = UINT64_MAX;
        for (int i = 0; i < JOBS; i++) {
            if (jobs[i].is_in && jobs[i].end_ms == now) {
                free += jobs[i].slots;
                met++;
            }
        }
        for (;;) {
            struct drawn *first = NULL;
            for (int i = 0; i < JOBS; i++) {
                struct drawn *j = &jobs[i];
                if (!j->is_in && j->arrives_ms <= now && now + j->solo_ms <= j->job.due_ms
                    && (!first || j->job.due_ms < first->job.due_ms)) {
                    first = j;
                }
            }
            if (!first || first->slots > free) {
                break;
            }
            first->is_in = true;
            first->end_ms = now + first->solo_ms;
            free -= first->slots;
        }
        for (int i = 0; i < JOBS; i++) {
            const uint64_t at = jobs[i].is_in ? jobs[i].end_ms : jobs[i].arrives_ms;
            next = at > now && at < next ? at : next;
        }
    }
    return met;
}

/* Spare slots go one by one to who gains most by one of them, per work that it has left. */
static void give_spare(due *jobs, size_t count, uint32_t *io)
{
    uint32_t spare = SLOTS;
    for (size_t i = 0; i < count; i++) {
        spare -= io[i];
    }
    for (; spare > 0; spare--) {
        double best = 0;
        size_t at = 0;
        for (size_t i = 0; i < count; i++) {
            const double gain =
                (double)(kedge_schedule_speed(&jobs[i], io[i] + 1) - kedge_schedule_speed(&jobs[i], io[i]))
                / (double)jobs[i].work;
            if (io[i] < jobs[i].most && gain > best) {
                best = gain;
                at = i;
            }
        }
        if (best <= 0) {
            return;
        }
        io[at]++;
    }
}

struct outcome {
    uint32_t admitted, met;
};

/* The admitted jobs that have not ended, by deadline, as they are now. */
static size_t active(struct drawn *jobs, uint64_t now, due *ret, struct drawn **ret_of)
{
    size_t n = 0;
    for (int i = 0; i < JOBS; i++) {
        struct drawn *j = &jobs[i];
        if (j->is_in && j->end_ms == 0) {
            size_t at = n++;
            due one = j->job;
            one.work = j->left;
            one.due_ms = j->job.due_ms > now ? j->job.due_ms - now : 0;
            for (; at > 0 && ret[at - 1].due_ms > one.due_ms; at--) {
                ret[at] = ret[at - 1];
                ret_of[at] = ret_of[at - 1];
            }
            ret[at] = one;
            ret_of[at] = j;
        }
    }
    return n;
}

/* Everything goes on for so long, with these slots. */
static void go_on(due *now_jobs, struct drawn **of, const uint32_t *slots, size_t count, uint64_t now,
                  uint64_t ms)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t done = kedge_schedule_speed(&now_jobs[i], slots[i]) * ms;
        of[i]->left -= done < of[i]->left ? done : of[i]->left;
        of[i]->end_ms = of[i]->left == 0 ? now + ms : 0;
    }
}

static struct outcome admission(struct drawn *jobs, const room *r)
{
    due now_jobs[JOBS], scratch[JOBS + 1];
    struct drawn *of[JOBS];
    uint32_t shares[JOBS], slots[JOBS];
    struct outcome o = {0, 0};
    uint64_t now = 0;
    for (int asked = 0;;) {
        size_t n = active(jobs, now, now_jobs, of);
        for (; asked < JOBS && jobs[asked].arrives_ms <= now; asked++) {
            due one = jobs[asked].job;
            one.due_ms -= now;
            jobs[asked].is_in = kedge_schedule_admit(r, now_jobs, n, &one, median_of(of, n), scratch).verdict
                                == KEDGE_SCHEDULE_ADMITTED;
            o.admitted += jobs[asked].is_in;
            n = active(jobs, now, now_jobs, of);
        }
        if (n == 0 && asked == JOBS) {
            break;
        }
        (void)kedge_schedule_shares(r, now_jobs, n, shares, slots);
        give_spare(now_jobs, n, slots);
        uint64_t next = now + TICK_MS;
        next = asked < JOBS && jobs[asked].arrives_ms < next ? jobs[asked].arrives_ms : next;
        for (size_t i = 0; i < n; i++) {
            const uint64_t speed = kedge_schedule_speed(&now_jobs[i], slots[i]);
            const uint64_t ms = speed > 0 ? (of[i]->left + speed - 1) / speed : UINT64_MAX;
            next = ms < next - now ? now + ms : next;
        }
        go_on(now_jobs, of, slots, n, now, next - now);
        now = next;
    }
    for (int i = 0; i < JOBS; i++) {
        o.met += jobs[i].is_in && jobs[i].end_ms <= jobs[i].job.due_ms;
    }
    return o;
}

/* P14: of the jobs that were admitted nearly all end in time, and with the guard far more than where the
 * nearest deadline goes first and what is hopeless is dropped. KEDGE_REPLAY_SEEDS=100: of so many draws. */
START_TEST(test_replay)
{
    static const double loads[] = {0.8, 1.2, 2.0};
    const char *more = getenv("KEDGE_REPLAY_SEEDS");
    const uint64_t seeds = more ? strtoul(more, NULL, 10) : EFFORT(4, 1);
    const room plain = {.slots = SLOTS, .step_ms = TICK_MS}, guard = {SLOTS, TICK_MS, 1000000};
    static struct drawn jobs[JOBS];
    for (int l = 0; l < 3; l++) {
        struct outcome p = {0, 0}, g = {0, 0};
        uint32_t dropping = 0;
        for (uint64_t s = 0; s < seeds; s++) {
            draw(s, loads[l], jobs);
            dropping += nearest_first(jobs);
            draw(s, loads[l], jobs);
            struct outcome one = admission(jobs, &plain);
            p = (struct outcome){p.admitted + one.admitted, p.met + one.met};
            draw(s, loads[l], jobs);
            one = admission(jobs, &guard);
            g = (struct outcome){g.admitted + one.admitted, g.met + one.met};
        }
        const double n = (double)seeds;
        printf("load %.1f: nearest first %.1f of 200; admitted %.1f, in time %.1f; with the guard %.1f, "
               "%.1f: %.2f times\n",
               loads[l], dropping / n, p.admitted / n, p.met / n, g.admitted / n, g.met / n,
               (double)g.met / dropping);
        ck_assert(loads[l] > 1.2 || 100 * p.met >= 99 * p.admitted);
        ck_assert_uint_ge(100 * g.met, 99 * g.admitted);
        ck_assert_uint_ge(100 * g.met, 145 * dropping);
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("deadline");
    tcase_add_test(c, test_speed);
    tcase_add_test(c, test_shares_by_hand);
    tcase_add_test(c, test_a_promise_is_kept_before_another_is_made);
    tcase_add_test(c, test_bounds);
    tcase_add_test(c, test_guard);
    tcase_add_test(c, test_replay);
    tcase_set_timeout(c, 300);
    Suite *s = suite_create("schedule/deadline");
    suite_add_tcase(s, c);
    return run_suite(s);
}
