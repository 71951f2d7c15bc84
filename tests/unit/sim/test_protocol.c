/* Learning through the protocol: the same models as those of the engine where both draw alike; the same
 * models whatever goes wrong on the way; groups that are found, joined, left and made anew. On the digits
 * that come with the source. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "sim/protocol/protocol.h"

enum { LINES_MAX = 64, TEXT_MAX = 1 << 20 };

struct log {
    struct kedge_learn_round lines[LINES_MAX];
    uint32_t count, stop_after, saved;
    uint8_t state[8];
};

static bool on_round(void *arg, const struct kedge_learn_round *round)
{
    struct log *log = arg;
    ck_assert_uint_lt(log->count, LINES_MAX);
    log->lines[log->count++] = *round;
    return log->stop_after == 0 || log->count < log->stop_after;
}

static int on_save(void *arg, uint32_t round, const void *state, uint64_t len)
{
    struct log *log = arg;
    ck_assert_uint_eq(len, sizeof log->state);
    memcpy(log->state, state, sizeof log->state);
    log->saved = round;
    return KEDGE_OK;
}

/* 12 sites of two tenants with uneven shares of the labels. */
static void digits(struct kedge_learn_spec *s, const char *strategy)
{
    kedge_learn_spec_default(s);
    (void)snprintf(s->images, sizeof s->images, "%s", "data/digits/digits-images.idx");
    s->partition = KEDGE_LEARN_DIRICHLET;
    s->alpha = 0.3;
    s->sites = 12;
    s->sites_per_round = 5;
    s->rounds = 6;
    s->epochs = 2;
    s->lr = 0.05;
    s->tenants = 2;
    s->groups = 2;
    s->pretrain_sites = 8;
    s->pretrain_steps = 10;
    s->quorum = s->sites; /* rounds wait for all that they asked */
    s->through = KEDGE_LEARN_THROUGH_PROTOCOL;
    s->strategy = kedge_strategy_find(strategy);
    ck_assert_ptr_nonnull(s->strategy);
    s->options = s->strategy->defaults;
    ck_assert_int_eq(kedge_model_mlp(64, 12, 10, &s->model, NULL), KEDGE_OK);
}

static void run(const struct kedge_learn_spec *s, struct kedge_learn_host host, struct log *log)
{
    struct kedge_diag d = {.text = ""};
    host.on_round = on_round;
    host.arg = log;
    int err = kedge_protocol_run(s, &host, &d);
    ck_assert_msg(err == KEDGE_OK, "%s: %s", s->strategy->name, d.text);
}

/* Models, groups and what follows from them; time, bytes and joules are others when things go wrong. */
static void check_same_models(const struct log *a, const struct log *b, uint32_t from, const char *what)
{
    ck_assert_uint_eq(a->count, b->count + from);
    for (uint32_t i = 0; i < b->count; i++) {
        const struct kedge_learn_round *x = &a->lines[from + i], *y = &b->lines[i];
        ck_assert_msg(x->digest == y->digest && x->round == y->round && x->groups == y->groups
                          && memcmp(x->members, y->members, sizeof x->members) == 0
                          && (x->accuracy == y->accuracy || (isnan(x->accuracy) && isnan(y->accuracy))),
                      "%s: round %u: %016llx and %016llx", what, y->round, (unsigned long long)x->digest,
                      (unsigned long long)y->digest);
    }
}

/* ---- engine and protocol ---- */

static const struct {
    const char *strategy, *rule;
    double share;
} alike[] = {
    {"ditto", "mean", 1},   {"ifca", "mean", 1},
    {"fedavg", "mean", 1},  {"fedavg", "mean", 0.5},
    {"fedprox", "mean", 1}, {"fednova", "mean", 1},
    {"fedavgm", "mean", 1}, {"fedadam", "median", 1},
    {"fedyogi", "krum", 1}, {"fedadagrad", "trimmed-mean", 1},
};

START_TEST(the_engine_that_draws_as_jobs_makes_the_same_models)
{
    struct kedge_learn_spec s;
    struct log engine = {.count = 0}, protocol = {.count = 0}, other = {.count = 0};
    digits(&s, alike[_i].strategy);
    (void)snprintf(s.rule, sizeof s.rule, "%s", alike[_i].rule);
    s.tenant_share_max = alike[_i].share;
    run(&s, (struct kedge_learn_host){.threads = 2}, &protocol);
    s.through = KEDGE_LEARN_THROUGH_JOB_ROUNDS;
    run(&s, (struct kedge_learn_host){.threads = 1}, &engine);
    check_same_models(&protocol, &engine, 0, alike[_i].strategy);
    s.through = KEDGE_LEARN_THROUGH_ROUNDS;
    run(&s, (struct kedge_learn_host){.threads = 1}, &other);
    ck_assert(other.lines[0].digest != engine.lines[0].digest);
}
END_TEST

/* ---- faults ---- */

static void flexcfl(struct kedge_learn_spec *s)
{
    digits(s, "flexcfl");
    s->mixing = 0.05;
    s->rounds = 8;
}

START_TEST(faults_change_no_model)
{
    struct kedge_learn_spec s;
    struct log calm = {.count = 0}, hit = {.count = 0};
    if (_i % 2) {
        flexcfl(&s);
        s.regroup_every = _i == 3 ? 3 : 0;
    } else {
        digits(&s, _i == 0 ? "fedadam" : _i == 2 ? "ifca" : "hierarchical");
    }
    s.seed = (uint64_t)_i + 1;
    run(&s, (struct kedge_learn_host){.threads = 1}, &calm);
    s.faults = true;
    run(&s, (struct kedge_learn_host){.threads = 1}, &hit);
    check_same_models(&hit, &calm, 0, "faults");
    ck_assert(hit.lines[s.rounds - 1].virtual_s > calm.lines[s.rounds - 1].virtual_s);
}
END_TEST

static void set_root(struct kedge_learn_spec *s)
{
    (void)snprintf(s->rule, sizeof s->rule, "%s", "root-trust");
}
static void set_scaffold(struct kedge_learn_spec *s)
{
    s->lr = 0.02;
}
static void set_adaptive(struct kedge_learn_spec *s)
{
    s->options.refresh = 3;
    s->options.regroup = 5;
    s->options.most = 4;
    s->rounds = 8;
}
static void set_choose(struct kedge_learn_spec *s)
{
    s->choose_groups = 1;
    s->groups = 2;
    s->options.most = 4;
    s->pretrain_sites = 8;
}
static void set_cut(struct kedge_learn_spec *s)
{
    s->options.refresh = 2;
    s->options.silhouette = 0.01;
}
static void set_joined(struct kedge_learn_spec *s)
{
    s->groups = 3;
    s->options.refresh = 2;
    s->options.merge = 0.1;
}
static void set_oneshot(struct kedge_learn_spec *s)
{
    s->options.link = 0.9;
    s->pretrain_sites = 6;
}
static void set_parting(struct kedge_learn_spec *s)
{
    s->options.split_after = 2;
    s->options.split_mean = 5;
    s->options.split_max = 0.01;
}
static void set_nearest(struct kedge_learn_spec *s)
{
    s->groups = 3;
    s->seed = 2;
}
/* groups: in use at the end, at least and at most. */
static const struct {
    const char *strategy;
    void (*set)(struct kedge_learn_spec *s);
    uint32_t least, most;
} ways[] = {{"fedavg", set_root, 1, 1},
            {"scaffold", set_scaffold, 1, 1},
            {"flexcfl-adaptive", set_adaptive, 2, 4},
            {"flexcfl", set_choose, 2, 4},
            {"flexcfl", set_cut, 3, 16},
            {"flexcfl", set_joined, 1, 3},
            {"fedclust", set_oneshot, 2, 16},
            {"cfl", set_parting, 2, 16},
            {"fesem", set_nearest, 1, 3}};

/* What jobs do besides: whatever goes wrong, whoever computes it, and the sites learn. */
START_TEST(strategies_of_jobs_go_through_the_protocol)
{
    struct kedge_learn_spec s;
    struct log calm = {.count = 0}, hit = {.count = 0};
    digits(&s, ways[_i].strategy);
    ways[_i].set(&s);
    run(&s, (struct kedge_learn_host){.threads = 1}, &calm);
    s.faults = true;
    run(&s, (struct kedge_learn_host){.threads = 3}, &hit);
    check_same_models(&hit, &calm, 0, ways[_i].strategy);
    const struct kedge_learn_round *first = &calm.lines[0], *last = &calm.lines[s.rounds - 1];
    ck_assert_msg(last->groups >= ways[_i].least && last->groups <= ways[_i].most, "%s: %u groups",
                  ways[_i].strategy, last->groups);
    ck_assert(last->digest != first->digest);
    ck_assert_msg(last->accuracy > 0.15, "%s: %g", ways[_i].strategy, last->accuracy);
}
END_TEST

/* Asynchronous rounds go by time: more updates come late where less of them are waited for, all of them count
 * once, and threads have no part in it. */
START_TEST(asynchronous_rounds_take_what_comes)
{
    struct kedge_learn_spec s;
    struct log one = {.count = 0}, three = {.count = 0}, all = {.count = 0};
    digits(&s, "fedbuff");
    s.device_count = 2;
    s.devices[1] = s.devices[0];
    s.devices[1].samples_per_s /= 20;
    s.quorum = 0;
    s.rounds = 10;
    s.options.buffer = 2;
    run(&s, (struct kedge_learn_host){.threads = 1}, &one);
    run(&s, (struct kedge_learn_host){.threads = 3}, &three);
    ck_assert_uint_eq(one.count, s.rounds);
    check_same_models(&three, &one, 0, "threads");
    s.options.buffer = s.sites_per_round;
    run(&s, (struct kedge_learn_host){.threads = 1}, &all);
    ck_assert(all.lines[9].digest != one.lines[9].digest);
    ck_assert(all.lines[9].virtual_s > one.lines[9].virtual_s);
    ck_assert(one.lines[9].accuracy > 0.15);
}
END_TEST

START_TEST(threads_and_a_stop_change_nothing)
{
    struct kedge_learn_spec s;
    struct log whole = {.count = 0}, part = {.stop_after = 4}, rest = {.count = 0};
    flexcfl(&s);
    run(&s, (struct kedge_learn_host){.threads = 3}, &whole);
    ck_assert_uint_eq(whole.count, s.rounds);
    run(&s, (struct kedge_learn_host){.threads = 1, .save = on_save, .save_every = 2}, &part);
    ck_assert_uint_eq(part.saved, 2);
    run(&s, (struct kedge_learn_host){.threads = 1, .resume = part.state, .resume_len = sizeof part.state},
        &rest);
    ck_assert_uint_eq(rest.count, s.rounds - 2);
    for (uint32_t i = 0; i < rest.count; i++) {
        ck_assert(memcmp(&whole.lines[2 + i], &rest.lines[i], sizeof rest.lines[i]) == 0);
    }
}
END_TEST

/* ---- groups ---- */

static const char *const grouped[] = {"flexcfl", "flexcfl-plain", "flexcfl-madc"};

START_TEST(groups_are_found_left_and_made_anew)
{
    struct kedge_learn_spec s;
    struct log log = {.count = 0};
    flexcfl(&s);
    s.strategy = kedge_strategy_find(grouped[_i]);
    s.options = s.strategy->defaults;
    s.rounds = 14;
    s.shift = KEDGE_LEARN_SHIFT_SWAP_ALL;
    s.shift_rate = 0.5;
    s.regroup_every = 5;
    run(&s, (struct kedge_learn_host){.threads = 2}, &log);
    const struct kedge_learn_round *last = &log.lines[log.count - 1];
    uint32_t members = 0;
    for (uint32_t g = 0; g < KEDGE_LEARN_GROUPS_MAX; g++) {
        members += last->members[g];
    }
    ck_assert_uint_eq(last->groups, 2);
    ck_assert_uint_eq(members, s.sites);
    ck_assert_uint_gt(last->detections, 0);
    ck_assert(last->accuracy > 0.3);
}
END_TEST

/* Nobody trains; what is planted is found, and there are no samples to export. */
START_TEST(planted_updates_go_through_the_protocol)
{
    struct kedge_learn_spec s;
    struct kedge_diag d = {.text = ""};
    struct log log = {.count = 0};
    uint32_t sites;
    flexcfl(&s);
    s.synthetic_updates = true;
    s.groups = 3;
    run(&s, (struct kedge_learn_host){.threads = 2}, &log);
    ck_assert_double_ge(log.lines[s.rounds - 1].rand_index, 0.95);
    ck_assert(log.lines[s.rounds - 1].digest != log.lines[0].digest);
    ck_assert_int_eq(kedge_protocol_export(&s, "nowhere", &sites, &d), KEDGE_E_FORMAT);
    ck_assert_msg(strstr(d.text, "no samples to export"), "%s", d.text);
}
END_TEST

/* ---- what no job does ---- */

static void set_local(struct kedge_learn_spec *s)
{
    s->strategy = kedge_strategy_find("local");
}
static void set_trace(struct kedge_learn_spec *s)
{
    (void)snprintf(s->trace, sizeof s->trace, "%s", "who-is-there.csv"); /* named before it is looked for */
}
static void set_attack(struct kedge_learn_spec *s)
{
    s->attack = KEDGE_LEARN_ATTACK_ALIE;
    s->attackers = 0.2;
}
static void set_available(struct kedge_learn_spec *s)
{
    s->devices[0].available = 0.5;
}
static const struct {
    void (*set)(struct kedge_learn_spec *s);
    const char *says;
} refused[] = {{set_local, "strategy: it is there to be compared with"},
               {set_trace, "trace: sites are there always"},
               {set_attack, "attack"},
               {set_available, "available"}};

START_TEST(what_no_job_does_is_refused_and_named)
{
    struct kedge_learn_spec s;
    struct kedge_diag d = {.text = ""};
    const struct kedge_learn_host host = {.threads = 1};
    digits(&s, "fedavg");
    refused[_i].set(&s);
    ck_assert_int_eq(kedge_protocol_run(&s, &host, &d), KEDGE_E_FORMAT);
    ck_assert_msg(strstr(d.text, refused[_i].says), "%s", d.text);
}
END_TEST

START_TEST(the_engine_alone_refuses_what_it_does_not_go_through)
{
    struct kedge_learn_spec s;
    const struct kedge_learn_host host = {.threads = 1};
    digits(&s, "fedavg");
    ck_assert_int_eq(kedge_learn_run(&s, &host, NULL), KEDGE_E_ARG);
    s.through = KEDGE_LEARN_THROUGH_JOB_ROUNDS;
    ck_assert_int_eq(kedge_learn_run(&s, &host, NULL), KEDGE_E_ARG);
    s.strategy = kedge_strategy_find("flexcfl");
    ck_assert_int_eq(kedge_protocol_run(&s, &host, NULL), KEDGE_E_FORMAT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("protocol");
    TCase *t = tcase_create("protocol");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, the_engine_that_draws_as_jobs_makes_the_same_models, 0,
                        (int)(sizeof alike / sizeof alike[0]));
    tcase_add_loop_test(t, faults_change_no_model, 0, 5);
    tcase_add_loop_test(t, strategies_of_jobs_go_through_the_protocol, 0,
                        (int)(sizeof ways / sizeof ways[0]));
    tcase_add_test(t, asynchronous_rounds_take_what_comes);
    tcase_add_test(t, threads_and_a_stop_change_nothing);
    tcase_add_loop_test(t, groups_are_found_left_and_made_anew, 0, 3);
    tcase_add_test(t, planted_updates_go_through_the_protocol);
    tcase_add_loop_test(t, what_no_job_does_is_refused_and_named, 0,
                        (int)(sizeof refused / sizeof refused[0]));
    tcase_add_test(t, the_engine_alone_refuses_what_it_does_not_go_through);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
