/* Budgets and targets in a simulation: it ends in the round in which a job would, by its own numbers, and is
 * the same run until then. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "sim/learn/engine.h"
#include "tests/fixtures/learn_spec.h"
#include "tests/fixtures/run.h"

enum { LINES_MAX = 64, ROUNDS = 24 };

struct log {
    struct kedge_learn_round lines[LINES_MAX];
    uint32_t count, last_looks, stop_after;
    uint8_t *state;
    uint64_t state_len;
    char said[200];
};

static bool on_round(void *arg, const struct kedge_learn_round *round)
{
    struct log *log = arg;
    ck_assert_uint_lt(log->count, LINES_MAX);
    log->lines[log->count++] = *round;
    return log->count != log->stop_after;
}

static int on_look(void *arg, const struct kedge_learn_view *view)
{
    ((struct log *)arg)->last_looks += view->is_last;
    return KEDGE_OK;
}

static int on_save(void *arg, uint32_t round, const void *state, uint64_t len)
{
    struct log *log = arg;
    (void)round;
    kedge_mem_free(log->state);
    log->state = kedge_mem_new(len, 1);
    memcpy(log->state, state, len);
    log->state_len = len;
    return KEDGE_OK;
}

static void on_say(void *arg, const char *line)
{
    snprintf(((struct log *)arg)->said, sizeof((struct log *)arg)->said, "%s", line);
}

static void digits(struct kedge_learn_spec *s)
{
    learn_spec_default(s);
    (void)snprintf(s->images, sizeof s->images, "%s", "data/digits/digits-images.idx");
    s->sites = 10;
    s->job.sites_per_round = 4;
    s->job.rounds = ROUNDS;
    s->job.learning_rate = 0.05;
    s->job.evaluate_every = 1;
    learn_spec_set_strategy(s, kedge_strategy_find("fedavg"));
    ck_assert_int_eq(kedge_model_mlp(64, 12, 10, &s->job.model, NULL), KEDGE_OK);
    s->devices[0].joules_per_sample = 0.25;
}

static struct log run(const struct kedge_learn_spec *s, struct kedge_learn_host host)
{
    static struct log log;
    struct kedge_diag d = {0};
    memset(&log, 0, sizeof log);
    log.stop_after = host.save ? 4 : 0;
    host.threads = 1;
    host.on_round = on_round;
    host.look = on_look;
    host.say = on_say;
    host.arg = &log;
    ck_assert_msg(kedge_learn_run(s, &host, &d) == KEDGE_OK, "%s", d.text);
    return log;
}

static const struct kedge_learn_host plain = {.threads = 1};

static void check_prefix(const struct log *whole, const struct log *part, uint32_t count)
{
    ck_assert_uint_eq(part->count, count);
    ck_assert_uint_eq(part->last_looks, 1);
    ck_assert(memcmp(whole->lines, part->lines, count * sizeof part->lines[0]) == 0);
}

/* By which round so many evaluations in a row are at or above it; of the last one nothing follows. */
static uint32_t held_by(const struct log *log, double target, uint32_t hold)
{
    uint32_t run = 0;
    for (uint32_t i = 0; i + 1 < log->count; i++) {
        run = log->lines[i].accuracy >= target ? run + 1 : 0;
        if (run == hold) {
            return i + 1;
        }
    }
    return log->count;
}

static double between(const struct log *log, uint32_t round)
{
    return (log->lines[round].accuracy + log->lines[round + 1].accuracy) / 2;
}

START_TEST(test_targets)
{
    struct kedge_learn_spec s;
    digits(&s);
    const struct log whole = run(&s, plain);
    ck_assert_uint_eq(whole.count, ROUNDS);
    ck_assert_str_eq(whole.said, "");
    for (uint32_t hold = 1; hold <= 3; hold++) {
        const double goal = between(&whole, 8);
        s.job.target_count = 2;
        s.job.targets[0] = 1;
        s.job.targets[1] = (uint32_t)(goal * 1e6);
        s.job.hold = hold;
        const struct log part = run(&s, plain);
        check_prefix(&whole, &part, held_by(&whole, goal, hold));
        ck_assert_uint_lt(part.count, ROUNDS);
        ck_assert_ptr_nonnull(strstr(part.said, "its last target is reached"));
    }
    s.job.quorum = 11; /* of fewer sites nothing follows */
    const struct log all = run(&s, plain);
    check_prefix(&whole, &all, ROUNDS);
}
END_TEST

START_TEST(test_targets_are_resumed)
{
    struct kedge_learn_spec s;
    digits(&s);
    const struct log whole = run(&s, plain);
    s.job.target_count = 1;
    s.job.targets[0] = (uint32_t)(whole.lines[1].accuracy * 5e5); /* from the beginning on … */
    s.job.hold = 8;                                               /* … over the pause */
    const uint32_t end = held_by(&whole, whole.lines[1].accuracy / 2, 8);
    struct log part = run(&s, (struct kedge_learn_host){.save = on_save, .save_every = 2});
    const struct log rest =
        run(&s, (struct kedge_learn_host){.resume = part.state, .resume_len = part.state_len});
    ck_assert_uint_eq(part.count, 4);
    ck_assert_uint_eq(rest.lines[rest.count - 1].round + 1, end);
    kedge_mem_free(part.state);
}
END_TEST

START_TEST(test_budget)
{
    struct kedge_learn_spec s;
    digits(&s);
    const struct log whole = run(&s, plain);
    const double all = whole.lines[ROUNDS - 1].joules;
    ck_assert_double_gt(all, 0);
    for (int tenths = 1; tenths < 10; tenths += 2) {
        const double budget = tenths * all / 10;
        double longest = 0;
        uint32_t count = 0;
        s.job.budget = (struct kedge_job_budget){
            .unit = KEDGE_JOB_BUDGET_JOULES, .most = budget, .per_joule = 1, .watts = 1e6};
        while (count < ROUNDS) { /* as the rule says, of what the lines tell */
            const double spent = count > 0 ? whole.lines[count - 1].joules : 0;
            longest = 0;
            for (uint32_t i = count > 8 ? count - 8 : 0; i < count; i++) {
                const double cost = whole.lines[i].joules - (i > 0 ? whole.lines[i - 1].joules : 0);
                longest = cost > longest ? cost : longest;
            }
            if (spent >= budget || longest > budget - spent) {
                break;
            }
            count++;
        }
        const struct log log = run(&s, plain);
        check_prefix(&whole, &log, count);
        ck_assert_uint_lt(log.count, ROUNDS);
        ck_assert_double_lt(log.lines[log.count - 1].joules, budget + longest);
        ck_assert_ptr_nonnull(strstr(log.said, "its budget has no room"));
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("goals");
    tcase_add_test(c, test_targets);
    tcase_add_test(c, test_targets_are_resumed);
    tcase_add_test(c, test_budget);
    tcase_set_timeout(c, 120);
    Suite *s = suite_create("sim/goals");
    suite_add_tcase(s, c);
    return run_suite(s);
}
