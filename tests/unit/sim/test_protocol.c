/* Learning through the protocol: the same models as those of the engine where both draw alike; the same
 * models whatever goes wrong on the way; groups that are found, joined, left and made anew. On the digits
 * that come with the source. */
#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregation/share_cap.h"
#include "common/base/os/file.h"
#include "sim/learn/spec/spec_json.h"
#include "sim/protocol/protocol.h"
#include "tests/fixtures/learn_spec.h"

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
    learn_spec_default(s);
    (void)snprintf(s->images, sizeof s->images, "%s", "data/digits/digits-images.idx");
    s->partition = KEDGE_LEARN_DIRICHLET;
    s->alpha = 0.3;
    s->sites = 12;
    s->job.sites_per_round = 5;
    s->job.rounds = 6;
    s->job.local_epochs = 2;
    s->job.learning_rate = 0.05;
    kedge_learn_spec_set_tenants(s, 2);
    s->job.groups = 2;
    s->job.pretrain_sites = 8;
    s->job.pretrain_steps = 10;
    s->job.sites_per_round = kedge_strategy_find(strategy)->everybody ? 0 : s->job.sites_per_round;
    s->job.quorum = s->sites; /* rounds wait for all that they asked */
    s->through = KEDGE_LEARN_THROUGH_PROTOCOL;
    learn_spec_set_strategy(s, kedge_strategy_find(strategy));
    ck_assert_int_eq(kedge_model_mlp(64, 12, 10, &s->job.model, NULL), KEDGE_OK);
}

static void run(const struct kedge_learn_spec *s, struct kedge_learn_host host, struct log *log)
{
    struct kedge_diag d = {.text = ""};
    host.on_round = on_round;
    host.arg = log;
    int err = kedge_protocol_run(s, &host, &d);
    ck_assert_msg(err == KEDGE_OK, "%s: %s", s->job.strategy->name, d.text);
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

/* All sites are at work, and the round waits for all. */
static void set_buffer(struct kedge_learn_spec *s)
{
    s->job.options.buffer = s->job.quorum = s->job.sites_per_round;
}
/* Sites look when they have trained: who evaluates beside looks at a time that the protocol's own costs have
 * a part in. */
static void set_swaps(struct kedge_learn_spec *s)
{
    s->shift = KEDGE_LEARN_SHIFT_SWAP_ALL;
    s->shift_rate = 0.3;
    s->job.evaluate_every = 100;
    s->job.rounds = 9;
}
static void set_updates(struct kedge_learn_spec *s)
{
    set_swaps(s);
    s->job.shift = KEDGE_SHIFT_TEST_UPDATE;
    s->job.migration_pause = 2;
}
static void set_sparse(struct kedge_learn_spec *s)
{
    s->job.compression.kind = KEDGE_COMPACT_TOPK_INT8;
    s->job.compression.share = KEDGE_COMPACT_SHARE_ONE / 10;
    s->job.compression.carry = KEDGE_COMPACT_SHARE_ONE;
}
static void set_momentum(struct kedge_learn_spec *s)
{
    s->job.local_momentum = 0.5;
    s->job.clip = 1;
}
static void set_planted(struct kedge_learn_spec *s)
{
    s->planted = 2;
}

static const struct {
    const char *strategy, *rule;
    double share;
    uint32_t regroup;
    void (*set)(struct kedge_learn_spec *s); /* NULL: nothing else */
} alike[] = {
    {"ditto", "mean", 1, 0, NULL},
    {"ifca", "mean", 1, 0, NULL},
    {"fedavg", "mean", 1, 0, NULL},
    {"fedavg", "mean", 0.5, 0, NULL},
    {"fedprox", "mean", 1, 0, NULL},
    {"fednova", "mean", 1, 0, NULL},
    {"fedavgm", "mean", 1, 0, NULL},
    {"fedadam", "median", 1, 0, NULL},
    {"fedyogi", "krum", 1, 0, NULL},
    {"fedadagrad", "trimmed-mean", 1, 0, NULL},
    {"cfl", "mean", 1, 0, NULL},
    {"fesem", "mean", 1, 0, NULL},
    {"hierarchical", "mean", 0.6, 0, NULL},
    {"scaffold", "mean", 1, 0, NULL},
    {"fedclust", "mean", 1, 0, NULL},
    {"flexcfl", "mean", 1, 0, NULL},
    {"flexcfl-plain", "median", 1, 0, NULL},
    {"flexcfl-madc", "mean", 0.6, 0, NULL},
    {"flexcfl", "mean", 0.6, 4, NULL},
    {"flexcfl", "mean", 1, 3, NULL},
    {"qffl", "mean", 1, 0, NULL},
    {"fedper", "mean", 1, 0, NULL},
    {"fedrep", "mean", 1, 0, NULL},
    {"fedavg", "root-trust", 1, 0, NULL},
    {"fedbuff", "mean", 1, 0, set_buffer},
    {"flexcfl", "mean", 1, 0, set_swaps},
    {"flexcfl", "mean", 1, 3, set_updates},
    {"fedprox", "mean", 1, 0, set_sparse},
    {"ifca", "mean", 1, 0, set_sparse},
    {"fedper", "mean", 1, 0, set_sparse},
    {"fedavg", "mean", 1, 0, set_momentum},
    {"scaffold", "mean", 1, 0, set_planted},
    {"flexcfl", "mean", 1, 3, set_planted},
};

START_TEST(the_loop_of_rounds_makes_the_models_of_the_protocol)
{
    struct kedge_learn_spec s;
    struct log engine = {.count = 0}, protocol = {.count = 0};
    digits(&s, alike[_i].strategy);
    s.job.rule = kedge_rule_find(alike[_i].rule);
    s.job.rule_params.fraction = 0;
    s.job.regroup_every = alike[_i].regroup > 0 ? alike[_i].regroup : s.job.regroup_every;
    s.job.options.refresh = alike[_i].regroup == 4 ? 2 : s.job.options.refresh;
    s.job.tenant_share_max = (uint32_t)((alike[_i].share) * KEDGE_SHARE_ONE);
    if (alike[_i].set) {
        alike[_i].set(&s);
    }
    run(&s, (struct kedge_learn_host){.threads = 2}, &protocol);
    s.through = KEDGE_LEARN_THROUGH_ROUNDS;
    run(&s, (struct kedge_learn_host){.threads = 1}, &engine);
    check_same_models(&protocol, &engine, 0, alike[_i].strategy);
}
END_TEST

/* ---- faults ---- */

static void flexcfl(struct kedge_learn_spec *s)
{
    digits(s, "flexcfl");
    s->job.mixing = 0.05;
    s->job.rounds = 8;
}

START_TEST(faults_change_no_model)
{
    struct kedge_learn_spec s;
    struct log calm = {.count = 0}, hit = {.count = 0};
    if (_i % 2) {
        flexcfl(&s);
        s.job.regroup_every = _i == 3 ? 3 : 0;
    } else {
        digits(&s, _i == 0 ? "fedadam" : _i == 2 ? "ifca" : "hierarchical");
    }
    s.job.seed = (uint64_t)_i + 1;
    run(&s, (struct kedge_learn_host){.threads = 1}, &calm);
    s.faults = true;
    run(&s, (struct kedge_learn_host){.threads = 1}, &hit);
    check_same_models(&hit, &calm, 0, "faults");
    ck_assert(hit.lines[s.job.rounds - 1].virtual_s > calm.lines[s.job.rounds - 1].virtual_s);
}
END_TEST

static void set_root(struct kedge_learn_spec *s)
{
    s->job.rule = kedge_rule_find("root-trust");
    s->job.rule_params.fraction = 0;
}
static void set_scaffold(struct kedge_learn_spec *s)
{
    s->job.learning_rate = 0.02;
}
static void set_adaptive(struct kedge_learn_spec *s)
{
    s->job.options.trial_every = 2;
    s->job.options.most = 4;
    s->job.evaluate_every = 1;
    s->job.rounds = 8;
}
static void set_most(struct kedge_learn_spec *s)
{
    set_adaptive(s);
    s->job.choose = KEDGE_CHOOSE_MOST;
}
static void set_choose(struct kedge_learn_spec *s)
{
    s->job.choose = KEDGE_CHOOSE_SILHOUETTE;
    s->job.groups = 2;
    s->job.options.most = 4;
    s->job.pretrain_sites = 8;
}
static void set_cut(struct kedge_learn_spec *s)
{
    s->job.options.refresh = 2;
    s->job.options.silhouette = 0.01;
}
static void set_joined(struct kedge_learn_spec *s)
{
    s->job.groups = 3;
    s->job.options.refresh = 2;
    s->job.options.merge = 0.1;
}
static void set_oneshot(struct kedge_learn_spec *s)
{
    s->job.options.link = 0.9;
    s->job.pretrain_sites = 6;
}
static void set_parting(struct kedge_learn_spec *s)
{
    s->job.options.split_after = 2;
    s->job.options.split_mean = 5;
    s->job.options.split_max = 0.01;
}
static void set_nearest(struct kedge_learn_spec *s)
{
    s->job.groups = 3;
    s->job.seed = 2;
}
/* groups: in use at the end, at least and at most. */
static const struct {
    const char *strategy;
    void (*set)(struct kedge_learn_spec *s);
    uint32_t least, most;
} ways[] = {{"fedavg", set_root, 1, 1},
            {"scaffold", set_scaffold, 1, 1},
            {"flexcfl-adaptive", set_adaptive, 1, 4},
            {"flexcfl-adaptive", set_most, 1, 4},
            {"flexcfl", set_choose, 2, 4},
            {"flexcfl", set_cut, 3, 16},
            {"flexcfl", set_joined, 1, 3},
            {"fedclust", set_oneshot, 2, 16},
            {"cfl", set_parting, 2, 16},
            {"fesem", set_nearest, 1, 3}};

/* A round that waits for what sites find of trials goes on, also where some of them cannot train. */
START_TEST(sites_fail_while_trials_are_judged)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct kedge_learn_spec s;
        struct log got = {.count = 0};
        digits(&s, "flexcfl-adaptive");
        set_adaptive(&s);
        s.job.seed = seed;
        s.fail = 0.3;
        s.job.quorum = 1;
        run(&s, (struct kedge_learn_host){.threads = 1}, &got);
        ck_assert_uint_eq(got.count, s.job.rounds);
    }
}
END_TEST

/* What jobs do besides: whatever goes wrong, on any computer, and the sites learn. */
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
    const struct kedge_learn_round *first = &calm.lines[0], *last = &calm.lines[s.job.rounds - 1];
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
    s.job.quorum = 1;
    s.job.rounds = 10;
    s.job.options.buffer = 2;
    run(&s, (struct kedge_learn_host){.threads = 1}, &one);
    run(&s, (struct kedge_learn_host){.threads = 3}, &three);
    ck_assert_uint_eq(one.count, s.job.rounds);
    check_same_models(&three, &one, 0, "threads");
    s.job.options.buffer = s.job.sites_per_round;
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
    ck_assert_uint_eq(whole.count, s.job.rounds);
    run(&s, (struct kedge_learn_host){.threads = 1, .save = on_save, .save_every = 2}, &part);
    ck_assert_uint_eq(part.saved, 2);
    run(&s, (struct kedge_learn_host){.threads = 1, .resume = part.state, .resume_len = sizeof part.state},
        &rest);
    ck_assert_uint_eq(rest.count, s.job.rounds - 2);
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
    learn_spec_set_strategy(&s, kedge_strategy_find(grouped[_i]));
    s.job.rounds = 14;
    s.shift = KEDGE_LEARN_SHIFT_SWAP_ALL;
    s.shift_rate = 0.5;
    s.job.regroup_every = 5;
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
    s.planted = s.job.groups = 3;
    run(&s, (struct kedge_learn_host){.threads = 2}, &log);
    ck_assert_double_ge(log.lines[s.job.rounds - 1].rand_index, 0.95);
    ck_assert(log.lines[s.job.rounds - 1].digest != log.lines[0].digest);
    ck_assert_int_eq(kedge_protocol_export(&s, "nowhere", &sites, &d), KEDGE_E_FORMAT);
    ck_assert_msg(strstr(d.text, "no samples to export"), "%s", d.text);
}
END_TEST

/* ---- published experiments ---- */

static void read_text(const char *name, char *ret, size_t size)
{
    char path[600];
    (void)snprintf(path, sizeof path, "docs/experiments/%s", name);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    ret[fread(ret, 1, size - 1, f)] = '\0';
    (void)fclose(f);
}

/* The run prints a job that a coordinator takes, or its strategy is there to be compared with; alone its own
 * text is the same run. */
static void check_run(const char *name, const char *text, const char *variant)
{
    static struct kedge_learn_spec s, again;
    static struct kedge_job_spec job;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf put, printed, twice;
    const struct kedge_strategy *row = kedge_strategy_find(variant);
    int read = kedge_learn_spec_parse(kedge_view_str(text), variant, &s, &d);
    if (read && row && row->local->has_base) {
        ck_assert_msg(strstr(d.text, "a simulation begins from its seed") != NULL, "%s: %s", name, d.text);
        return;
    }
    if (read && row && row->local->has_head) { /* a model of one layer has no body to share */
        ck_assert_msg(strstr(d.text, "one layer") != NULL, "%s, %s: %s", name, variant, d.text);
        return;
    }
    ck_assert_msg(read == KEDGE_OK && kedge_learn_spec_check(&s, &d) == KEDGE_OK, "%s, %s: %s", name, variant,
                  d.text);
    kedge_buf_init(&put, TEXT_MAX);
    kedge_buf_init(&twice, TEXT_MAX);
    kedge_buf_init(&printed, TEXT_MAX);
    kedge_learn_spec_put(&s, &put);
    ck_assert_msg(kedge_learn_spec_parse(kedge_buf_view(&put), NULL, &again, &d) == KEDGE_OK, "%s, %s: %s",
                  name, variant, d.text);
    kedge_learn_spec_put(&again, &twice);
    ck_assert(kedge_view_eq(kedge_buf_view(&put), kedge_buf_view(&twice)));
    if (kedge_learn_spec_is_natural(&s)) { /* whose data are not here */
        s.partition = KEDGE_LEARN_SYNTHETIC;
        s.sites = 15;
    }
    int err = kedge_protocol_job(&s, &printed, &d);
    if (s.job.strategy->comparison_only) {
        ck_assert_msg(err == KEDGE_E_FORMAT && strstr(d.text, "to be compared with"), "%s: %s", variant,
                      d.text);
    } else {
        ck_assert_msg(err == KEDGE_OK, "%s, %s: %s", name, variant, d.text);
        ck_assert_msg(kedge_job_spec_parse(kedge_buf_view(&printed), &job, &d) == KEDGE_OK, "%s, %s: %s",
                      name, variant, d.text);
        ck_assert_ptr_eq(job.strategy, s.job.strategy);
    }
    kedge_buf_deinit(&put);
    kedge_buf_deinit(&twice);
    kedge_buf_deinit(&printed);
}

START_TEST(experiments_print_their_jobs_or_are_comparisons)
{
    static const char *const variants[] = {"hierarchical", "flexcfl-mixing", "flexcfl-strong-mixing",
                                           "flexcfl-static", "flexcfl-counts"};
    DIR *folder = opendir("docs/experiments");
    uint32_t files = 0, runs = 0;
    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *one = readdir(folder); one; one = readdir(folder)) {
        static char text[8192];
        char word[64];
        if (!strstr(one->d_name, ".json") || strstr(one->d_name, ".result.json")) {
            continue;
        }
        read_text(one->d_name, text, sizeof text);
        files++;
        for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
            (void)snprintf(word, sizeof word, "\"%s\": {", variants[i]);
            if (strstr(text, word)) {
                check_run(one->d_name, text, variants[i]);
                runs++;
            }
        }
        for (size_t i = 0; i < kedge_strategy_count(); i++) {
            if (strcmp(kedge_strategy_at(i)->name, "hierarchical")
                != 0) { /* of tenants that a variant says */
                check_run(one->d_name, text, kedge_strategy_at(i)->name);
            }
        }
    }
    (void)closedir(folder);
    ck_assert(files >= 16 && runs >= 3 * 16 - 6);
}
END_TEST

/* ---- what no job does ---- */

static void set_local(struct kedge_learn_spec *s)
{
    learn_spec_set_strategy(s, kedge_strategy_find("local"));
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
} refused[] = {{set_local, "\"strategy\": it is there to be compared with"},
               {set_trace, "\"trace\": sites are there always"},
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
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("protocol");
    TCase *t = tcase_create("protocol");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, the_loop_of_rounds_makes_the_models_of_the_protocol, 0,
                        (int)(sizeof alike / sizeof alike[0]));
    tcase_add_loop_test(t, faults_change_no_model, 0, 5);
    tcase_add_loop_test(t, strategies_of_jobs_go_through_the_protocol, 0,
                        (int)(sizeof ways / sizeof ways[0]));
    tcase_add_test(t, sites_fail_while_trials_are_judged);
    tcase_add_test(t, asynchronous_rounds_take_what_comes);
    tcase_add_test(t, threads_and_a_stop_change_nothing);
    tcase_add_loop_test(t, groups_are_found_left_and_made_anew, 0, 3);
    tcase_add_test(t, planted_updates_go_through_the_protocol);
    tcase_add_loop_test(t, what_no_job_does_is_refused_and_named, 0,
                        (int)(sizeof refused / sizeof refused[0]));
    tcase_add_test(t, experiments_print_their_jobs_or_are_comparisons);
    tcase_add_test(t, the_engine_alone_refuses_what_it_does_not_go_through);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
