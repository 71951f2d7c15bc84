/* The learning simulator: the same bytes for any number of threads and processes and after a resume; groups
 * that are found and found again; what is known of the strategies. On the digits that come with the source,
 * or without training. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "sim/learn/engine.h"
#include "tests/fixtures/learn_spec.h"

enum { LINES_MAX = 64, RANKS = 3 };

struct log {
    struct kedge_learn_round lines[LINES_MAX];
    uint32_t count, stop_after;
    uint8_t *state;
    uint64_t state_len;
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
    (void)round;
    kedge_mem_free(log->state);
    log->state = kedge_mem_new(len, 1);
    ck_assert_ptr_nonnull(log->state);
    memcpy(log->state, state, len);
    log->state_len = len;
    return KEDGE_OK;
}

static const char *const strategies[] = {
    "fedavg",  "fedprox", "scaffold", "fednova",      "fedavgm", "fedadam",      "qffl", "fedbuff",
    "ditto",   "fedper",  "fedrep",   "finetune",     "local",   "hierarchical", "ifca", "fesem",
    "flexcfl", "rac",     "rcc",      "flexcfl-madc", "cfl",     "fedclust"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

/* 40 sites with two neighbouring digits each; 64 pixels. */
static void digits(struct kedge_learn_spec *s, const char *strategy)
{
    learn_spec_default(s);
    (void)snprintf(s->images, sizeof s->images, "%s", "data/digits/digits-images.idx");
    s->sites = 40;
    s->job.sites_per_round = 8;
    s->job.rounds = 9;
    s->job.local_epochs = 2;
    s->job.learning_rate = 0.05;
    s->job.pretrain_sites = 18;
    s->job.pretrain_steps = 10;
    s->job.evaluate_every = 3;
    kedge_learn_spec_set_tenants(s, 4);
    learn_spec_set_strategy(s, kedge_strategy_find(strategy));
    s->job.options.buffer = 5;
    ck_assert_int_eq(kedge_model_mlp(64, 12, 10, &s->job.model, NULL), KEDGE_OK);
    s->shift = KEDGE_LEARN_SHIFT_SWAP_ALL;
}

static void run(const struct kedge_learn_spec *s, struct kedge_learn_host host, struct log *log)
{
    struct kedge_diag d = {0};
    host.on_round = on_round;
    host.arg = log;
    int err = kedge_learn_run(s, &host, &d);
    ck_assert_msg(err == KEDGE_OK, "%s: %s", s->job.strategy->name, d.text);
}

/* Also NAN equals NAN. */
static void check_same(const struct log *a, const struct log *b, uint32_t from, const char *what)
{
    ck_assert_uint_eq(a->count, b->count + from);
    for (uint32_t i = 0; i < b->count; i++) {
        ck_assert_msg(memcmp(&a->lines[from + i], &b->lines[i], sizeof b->lines[i]) == 0,
                      "%s: round %u differs", what, b->lines[i].round);
    }
}

START_TEST(threads_change_nothing)
{
    struct kedge_learn_spec s;
    struct log one = {0}, three = {0};
    digits(&s, strategies[_i]);
    run(&s, (struct kedge_learn_host){.threads = 1}, &one);
    run(&s, (struct kedge_learn_host){.threads = 3}, &three);
    ck_assert_uint_eq(one.count, s.job.rounds);
    ck_assert(one.lines[0].digest != one.lines[1].digest);
    check_same(&one, &three, 0, strategies[_i]);
}
END_TEST

START_TEST(a_resumed_run_goes_on_as_if_it_had_not_stopped)
{
    struct kedge_learn_spec s;
    struct log whole = {0}, part = {.stop_after = 5}, rest = {0};
    digits(&s, strategies[_i]);
    s.shift = _i % 2 ? KEDGE_LEARN_SHIFT_SWAP_PART : KEDGE_LEARN_SHIFT_SWAP_ALL;
    s.job.shift = _i % 3 == 0 ? KEDGE_SHIFT_TEST_UPDATE : KEDGE_SHIFT_TEST_LABELS;
    run(&s, (struct kedge_learn_host){.threads = 1}, &whole);
    run(&s, (struct kedge_learn_host){.threads = 2, .save = on_save, .save_every = 2}, &part);
    ck_assert_ptr_nonnull(part.state);
    run(&s, (struct kedge_learn_host){.threads = 2, .resume = part.state, .resume_len = part.state_len},
        &rest);
    check_same(&whole, &rest, 4, strategies[_i]);
    /* a state of another simulation, or half of one, is refused */
    struct kedge_diag d = {0};
    struct log none = {0};
    struct kedge_learn_host bad = {
        .on_round = on_round, .arg = &none, .resume = part.state, .resume_len = part.state_len - 1};
    ck_assert_int_eq(kedge_learn_run(&s, &bad, &d), KEDGE_E_FORMAT);
    bad.resume_len = part.state_len;
    s.job.seed++;
    ck_assert_int_eq(kedge_learn_run(&s, &bad, &d), KEDGE_E_FORMAT);
    ck_assert_uint_eq(none.count, 0);
    kedge_mem_free(part.state);
}
END_TEST

static const char *const compressed[] = {"flexcfl", "ifca", "fedbuff", "fedavg"}; /* by kind */

START_TEST(compressed_runs_are_as_repeatable_and_send_less)
{
    struct kedge_learn_spec s;
    struct log whole = {0}, one = {0}, part = {.stop_after = 5}, rest = {0}, forgetful = {0};
    digits(&s, compressed[_i]);
    run(&s, (struct kedge_learn_host){.threads = 2}, &whole);
    s.job.compression.kind = (enum kedge_compact_kind)(KEDGE_COMPACT_INT8 + _i);
    s.job.compression.share = KEDGE_COMPACT_SHARE_ONE / 20;
    s.job.compression.carry = KEDGE_COMPACT_SHARE_ONE;
    run(&s, (struct kedge_learn_host){.threads = 1}, &one);
    run(&s, (struct kedge_learn_host){.threads = 2, .save = on_save, .save_every = 2}, &part);
    run(&s, (struct kedge_learn_host){.threads = 3, .resume = part.state, .resume_len = part.state_len},
        &rest);
    check_same(&one, &rest, 4, compressed[_i]);
    const struct kedge_learn_round *end = &one.lines[one.count - 1],
                                   *end_whole = &whole.lines[whole.count - 1];
    ck_assert_uint_lt(end->bytes_up, end_whole->bytes_up);
    ck_assert(end->digest != end_whole->digest);
    s.job.compression.carry = 0; /* what is left is used at all */
    run(&s, (struct kedge_learn_host){.threads = 1}, &forgetful);
    ck_assert(forgetful.lines[forgetful.count - 1].digest != end->digest);
    kedge_mem_free(part.state);
}
END_TEST

/* ---- several processes, played by threads ---- */

static pthread_barrier_t barrier;
static struct {
    const void *bytes;
    uint64_t len;
} given[RANKS];

static int allgather(void *arg, const void *mine, uint64_t len, void *ret, uint64_t max, uint64_t *lens)
{
    uint32_t rank = *(uint32_t *)arg;
    given[rank].bytes = mine;
    given[rank].len = len;
    pthread_barrier_wait(&barrier);
    for (uint32_t r = 0; r < RANKS; r++) {
        lens[r] = given[r].len;
        memcpy((uint8_t *)ret + r * max, given[r].bytes, given[r].len);
    }
    pthread_barrier_wait(&barrier);
    return KEDGE_OK;
}

struct rank {
    uint32_t rank;
    struct kedge_learn_spec spec;
    struct log log;
    int err;
};

static void *run_rank(void *arg)
{
    struct rank *r = arg;
    struct kedge_learn_exchange x = {.rank = r->rank, .size = RANKS, .arg = &r->rank, .allgather = allgather};
    struct kedge_learn_host host = {.threads = 1, .exchange = &x, .on_round = on_round, .arg = &r->log};
    r->err = kedge_learn_run(&r->spec, &host, NULL);
    return NULL;
}

START_TEST(processes_change_nothing)
{
    static struct rank ranks[RANKS];
    struct log alone = {0};
    pthread_t threads[RANKS];
    memset(ranks, 0, sizeof ranks);
    pthread_barrier_init(&barrier, NULL, RANKS);
    for (uint32_t r = 0; r < RANKS; r++) {
        ranks[r].rank = r;
        digits(&ranks[r].spec, strategies[_i]);
        ck_assert_int_eq(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        pthread_join(threads[r], NULL);
    }
    pthread_barrier_destroy(&barrier);
    run(&ranks[0].spec, (struct kedge_learn_host){.threads = 1}, &alone);
    for (uint32_t r = 0; r < RANKS; r++) {
        ck_assert_int_eq(ranks[r].err, KEDGE_OK);
        check_same(&alone, &ranks[r].log, 0, strategies[_i]);
    }
}
END_TEST

/* ---- groups ---- */

/* Sites of the ring with 100 sites would need more digits than there are: 40, of which a group has 8. */
static void planted(struct kedge_learn_spec *s, const char *strategy)
{
    digits(s, strategy);
    s->planted = s->job.groups = 5;
    s->job.rounds = 30;
    s->job.evaluate_every = 1;
    s->shift = KEDGE_LEARN_SHIFT_NONE;
}

START_TEST(planted_groups_are_found)
{
    static const char *const names[] = {"flexcfl", "flexcfl-plain", "flexcfl-madc"};
    struct kedge_learn_spec s;
    struct log log = {0};
    planted(&s, names[_i]);
    run(&s, (struct kedge_learn_host){.threads = 1}, &log);
    for (uint32_t r = 5; r < s.job.rounds; r++) { /* every site was asked once */
        ck_assert_double_ge(log.lines[r].rand_index, 0.95);
        ck_assert_uint_eq(log.lines[r].groups, 5);
    }
    ck_assert_double_ge(log.lines[29].accuracy, 0.6);
    /* a site that came in the fourth round is served what its group has: all are as good */
    ck_assert_double_ge(log.lines[5].accuracy_worst, log.lines[5].accuracy_sites - 0.1);
}
END_TEST

START_TEST(shifted_sites_find_back)
{
    static const enum kedge_shift_test detectors[] = {KEDGE_SHIFT_TEST_LABELS, KEDGE_SHIFT_TEST_UPDATE,
                                                      KEDGE_SHIFT_TEST_NONE};
    struct kedge_learn_spec s;
    struct log log = {0};
    double least = 1;
    planted(&s, "flexcfl");
    s.shift = KEDGE_LEARN_SHIFT_SWAP_ALL;
    s.shift_rate = 0.1;
    s.job.shift = detectors[_i];
    s.job.sites_per_round =
        detectors[_i] == KEDGE_SHIFT_TEST_UPDATE ? 40 : 8; /* it sees those that are asked */
    run(&s, (struct kedge_learn_host){.threads = 1}, &log);
    for (uint32_t r = 5; r < s.job.rounds; r++) {
        least = fmin(least, log.lines[r].rand_index);
    }
    if (detectors[_i] == KEDGE_SHIFT_TEST_NONE) {
        ck_assert_double_le(least, 0.5); /* nobody moves */
        ck_assert_uint_eq(log.lines[29].migrations, 0);
    } else {
        /* who is asked to train looks after it, and moves in the next round */
        ck_assert_double_ge(least, _i == 0 ? 0.75 : 0.55);
        ck_assert_uint_ge(log.lines[29].migrations, 20);
        ck_assert_uint_ge(log.lines[29].detections, log.lines[29].migrations);
    }
}
END_TEST

/* ---- learning ---- */

static double last_accuracy(const struct kedge_learn_spec *s)
{
    struct log log = {0};
    run(s, (struct kedge_learn_host){.threads = 2}, &log);
    return log.lines[log.count - 1].accuracy;
}

static void rotated(struct kedge_learn_spec *s, const char *strategy)
{
    digits(s, strategy);
    s->partition = KEDGE_LEARN_ROTATED;
    s->shift = KEDGE_LEARN_SHIFT_NONE;
    s->job.groups = 4;
    s->sites = 20;
    s->job.sites_per_round = 10;
    s->job.rounds = 20;
    s->job.local_epochs = 5;
    s->job.learning_rate = 0.1;
    ck_assert_int_eq(kedge_model_mclr(64, 10, &s->job.model, NULL), KEDGE_OK);
}

START_TEST(groups_help_where_images_are_turned)
{
    struct kedge_learn_spec one, four;
    struct log log = {0};
    rotated(&one, "fedavg");
    rotated(&four, "flexcfl");
    double all = last_accuracy(&one);
    run(&four, (struct kedge_learn_host){.threads = 2}, &log);
    ck_assert_double_ge(log.lines[19].rand_index, 0.95);
    ck_assert_double_ge(log.lines[19].accuracy, 0.85);
    ck_assert_double_ge(log.lines[19].accuracy, all + 0.1);
}
END_TEST

START_TEST(equal_shares_are_learnt_by_all)
{
    static const char *const names[] = {"fedavg",  "fedprox", "scaffold", "fednova",
                                        "fedavgm", "ditto",   "qffl"};
    struct kedge_learn_spec s;
    rotated(&s, names[_i]);
    s.partition = KEDGE_LEARN_IID;
    s.job.options.proximal = s.job.options.proximal > 0 ? 0.1 : 0;
    double accuracy = last_accuracy(&s);
    ck_assert_msg(accuracy >= (_i == 6 ? 0.7 : 0.8), "%s: %g", names[_i], accuracy);
}
END_TEST

START_TEST(a_robust_rule_withstands_what_the_mean_does_not)
{
    static const struct {
        enum kedge_learn_attack attack;
        double scale;
    } attacks[] = {{KEDGE_LEARN_ATTACK_SIGN_FLIP, 10},
                   {KEDGE_LEARN_ATTACK_SCALE, -20},
                   {KEDGE_LEARN_ATTACK_INNER_PRODUCT, 20}};
    struct kedge_learn_spec s;
    rotated(&s, "fedavg");
    s.partition = KEDGE_LEARN_IID;
    s.attack = attacks[_i].attack;
    s.attack_scale = attacks[_i].scale;
    s.attackers = 0.2;
    double mean = last_accuracy(&s);
    s.job.rule = kedge_rule_find("median");
    s.job.rule_params.fraction = 0;
    s.job.rule_params.fraction = 0.3;
    double median = last_accuracy(&s);
    ck_assert_msg(median >= 0.75 && mean <= median - 0.2, "mean %g, median %g", mean, median);
}
END_TEST

START_TEST(every_rule_goes_with_groups)
{
    static const char *const names[] = {"trimmed-mean",     "krum",         "multi-krum", "bulyan",
                                        "geometric-median", "norm-clipping"};
    struct kedge_learn_spec s;
    rotated(&s, "flexcfl");
    s.job.sites_per_round = 20;
    s.job.rounds = 12;
    s.job.rule = kedge_rule_find(names[_i]);
    s.job.rule_params.fraction = 0.1;
    s.attack = KEDGE_LEARN_ATTACK_SYBIL;
    s.attack_scale = 5;
    s.attackers = 0.1;
    double accuracy = last_accuracy(&s);
    ck_assert_msg(accuracy >= 0.6, "%s: %g", names[_i], accuracy);
}
END_TEST

/* ---- errors ---- */

START_TEST(specs_out_of_range_are_named)
{
    struct kedge_learn_spec s;
    struct kedge_diag d;
    learn_spec_default(&s);
    ck_assert_int_eq(kedge_learn_spec_check(&s, &d), KEDGE_OK);
#define BAD(field, value, word)                                              \
    do {                                                                     \
        learn_spec_default(&s);                                              \
        s.field = (value);                                                   \
        ck_assert_int_eq(kedge_learn_spec_check(&s, &d), KEDGE_E_FORMAT);    \
        ck_assert_msg(strstr(d.text, word) != NULL, "%s: %s", word, d.text); \
    } while (0)
    BAD(sites, 1, "sites");
    BAD(job.sites_per_round, 1001, "sites_per_round");
    BAD(fail, 1, "fail");
    BAD(fail, (double)NAN, "fail");
    BAD(planted, KEDGE_GROUPS_MAX + 1, "planted");
    BAD(attack, KEDGE_LEARN_ATTACK_SCALE, "attack");
    BAD(job.batch_auto, true, "batch");
    BAD(partition, KEDGE_LEARN_FASHION, "sites");
#undef BAD
    struct log log = {0};
    struct kedge_learn_host host = {.on_round = on_round, .arg = &log};
    digits(&s, "fedavg");
    (void)snprintf(s.images, sizeof s.images, "%s", "no/such/folder");
    ck_assert_int_eq(kedge_learn_run(&s, &host, &d), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(d.text, "no/such/folder"));
    digits(&s, "fedavg");
    ck_assert_int_eq(kedge_model_mclr(65, 10, &s.job.model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_learn_run(&s, &host, &d), KEDGE_E_SHAPE);
    ck_assert_uint_eq(log.count, 0);
}
END_TEST

/* By hand: three models, of which the second has not been trained, and edges of 3, 0 and 1, of which the cap
 * makes equals. */
START_TEST(models_are_looked_at_by_their_weights)
{
    float models[3][3] = {{1.0f, 2.0f, 3.0f}, {7.0f, 4.0f, -3.0f}, {5.0f, 0.0f, 1.0f}}, out[3] = {0};
    struct kedgei_learn *l = kedge_mem_new(1, sizeof *l);
    ck_assert_ptr_nonnull(l);
    *l = (struct kedgei_learn){.d = 3, .groups = 3, .models = models[0], .aux = out};
    l->job.tenant_share_max = KEDGE_SHARE_ONE;
    ck_assert_int_eq(kedgei_learn_auxiliary(l), KEDGE_E_ARG); /* nothing trained */
    l->trained[0] = l->trained[2] = true;
    ck_assert_int_eq(kedgei_learn_auxiliary(l), KEDGE_OK);
    ck_assert(out[0] == 3.0f && out[1] == 1.0f && out[2] == 2.0f);

    ck_assert_int_eq(kedgei_learn_meet(l, out), KEDGE_OK); /* none has added anything: all are the first */
    ck_assert_mem_eq(out, models[0], sizeof out);
    l->at.group[0].weight_since_meeting = 3;
    l->at.group[2].weight_since_meeting = 1;
    ck_assert_int_eq(kedgei_learn_meet(l, out), KEDGE_OK);
    ck_assert(out[0] == 2.0f && out[1] == 1.5f && out[2] == 2.5f);
    l->job.tenant_share_max = KEDGE_SHARE_ONE / 2;
    ck_assert_int_eq(kedgei_learn_meet(l, out), KEDGE_OK);
    ck_assert(out[0] == 3.0f && out[1] == 1.0f && out[2] == 2.0f);
    kedge_mem_free(l);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("learn_engine");
    TCase *t = tcase_create("learn_engine");
    tcase_add_loop_test(t, threads_change_nothing, 0, STRATEGIES);
    tcase_add_loop_test(t, compressed_runs_are_as_repeatable_and_send_less, 0, 4);
    tcase_add_loop_test(t, a_resumed_run_goes_on_as_if_it_had_not_stopped, 0, STRATEGIES);
    tcase_add_loop_test(t, processes_change_nothing, 0, STRATEGIES);
    tcase_add_loop_test(t, planted_groups_are_found, 0, 3);
    tcase_add_loop_test(t, shifted_sites_find_back, 0, 3);
    tcase_add_test(t, groups_help_where_images_are_turned);
    tcase_add_loop_test(t, equal_shares_are_learnt_by_all, 0, 7);
    tcase_add_loop_test(t, a_robust_rule_withstands_what_the_mean_does_not, 0, 3);
    tcase_add_loop_test(t, every_rule_goes_with_groups, 0, 6);
    tcase_add_test(t, specs_out_of_range_are_named);
    tcase_add_test(t, models_are_looked_at_by_their_weights);
    tcase_set_timeout(t, 300);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
