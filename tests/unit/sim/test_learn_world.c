/* What surrounds training in the learning simulator: traces of who is there and how fast, tenants, root data,
 * detectors, how own models and edges are judged. On the digits that come with the source. */
#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "sim/learn/engine.h"
#include "tests/fixtures/learn_spec.h"

enum { LINES_MAX = 64 };

struct log {
    struct kedge_learn_round lines[LINES_MAX];
    uint32_t count;
};

static char path[64];

static const char *put_file(const char *text)
{
    (void)snprintf(path, sizeof path, "/tmp/test-learn-world-%ld.csv", (long)getpid());
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), f), strlen(text));
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

static void digits(struct kedge_learn_spec *s, const char *strategy)
{
    learn_spec_default(s);
    (void)snprintf(s->images, sizeof s->images, "%s", "data/digits/digits-images.idx");
    s->partition = KEDGE_LEARN_IID;
    s->sites = 40;
    s->job.sites_per_round = 8;
    s->job.rounds = 8;
    s->job.local_epochs = 1;
    s->job.learning_rate = 0.05;
    s->job.pretrain_sites = 18;
    s->job.pretrain_steps = 10;
    learn_spec_set_strategy(s, kedge_strategy_find(strategy));
    s->job.options.buffer = 5;
    ck_assert_int_eq(kedge_model_mclr(64, 10, &s->job.model, NULL), KEDGE_OK);
}

static bool on_round(void *arg, const struct kedge_learn_round *round)
{
    struct log *log = arg;
    ck_assert_uint_lt(log->count, LINES_MAX);
    log->lines[log->count++] = *round;
    return true;
}

static void run(const struct kedge_learn_spec *s, struct log *log)
{
    struct kedge_diag d = {.text = ""};
    *log = (struct log){.count = 0};
    struct kedge_learn_host host = {.threads = 2, .on_round = on_round, .arg = log};
    ck_assert_msg(kedge_learn_run(s, &host, &d) == KEDGE_OK, "%s: %s", s->job.strategy->name, d.text);
    ck_assert_uint_eq(log->count, s->job.rounds);
}

/* ---- missing values, scales ---- */

#define CLIENTS                                                                                             \
    "client,a,b,y\nann,1,100,0\nann,2,,1\nann,3,300,0\nann,6,500,1\nbob,10,-100,0\nbob,20,-300,1\nbob,30,-" \
    "9,0\n"                                                                                                 \
    "bob,,-200,0\nbob,40,-75,0\n"

static int load_clients(const struct kedge_learn_spec *s, struct kedgei_learn_pool *pool,
                        struct kedge_partition *p, struct kedge_diag *d)
{
    *pool = (struct kedgei_learn_pool){.n = 0};
    *d = (struct kedge_diag){.text = ""};
    int err = kedge_learn_spec_check(s, d);
    return err ? err : kedgei_learn_clients_load(pool, s, p, d);
}

/* Over the training samples of the sites from..to: mean and mean square of each feature. */
static void ck_scaled(const struct kedgei_learn_pool *pool, const struct kedge_partition *p, uint32_t from,
                      uint32_t to)
{
    for (uint32_t f = 0; f < 2; f++) {
        double sum = 0, squares = 0;
        uint32_t all = 0;
        for (uint32_t u = from; u < to; u++) {
            uint32_t n;
            const uint32_t *rows = kedge_partition_train(p, u, &n);
            for (uint32_t i = 0; i < n; i++, all++) {
                double v = (double)pool->reals[rows[i] * 2 + f];
                sum += v;
                squares += v * v;
            }
        }
        ck_assert_double_eq_tol(sum / all, 0, 1e-5);
        ck_assert_double_eq_tol(squares / all, 1, 1e-5);
    }
}

START_TEST(clients_are_filled_and_scaled)
{
    struct kedge_learn_spec s;
    struct kedgei_learn_pool pool;
    struct kedge_partition p;
    struct kedge_diag d;
    digits(&s, "fedavg");
    (void)snprintf(s.images, sizeof s.images, "%s", put_file(CLIENTS));
    s.partition = KEDGE_LEARN_CLIENTS;
    s.sites = 0;
    ck_assert_int_eq(load_clients(&s, &pool, &p, &d), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(d.text, "line 3, column 3 (\"b\")"));
    kedgei_learn_pool_deinit(&pool);
    s.missing = KEDGE_CSV_MISSING_MEAN;
    for (int way = KEDGE_LEARN_STANDARDIZE_LOCAL; way <= KEDGE_LEARN_STANDARDIZE_FEDERATED; way++) {
        s.standardize = (enum kedge_learn_standardize)way;
        ck_assert_msg(load_clients(&s, &pool, &p, &d) == KEDGE_OK, "%s", d.text);
        if (way == KEDGE_LEARN_STANDARDIZE_LOCAL) {
            ck_scaled(&pool, &p, 0, 1);
            ck_scaled(&pool, &p, 1, 2);
        } else {
            ck_scaled(&pool, &p, 0, 2);
        }
        kedge_partition_deinit(&p);
        kedgei_learn_pool_deinit(&pool);
    }
    s.through = KEDGE_LEARN_THROUGH_PROTOCOL;
    ck_assert_int_eq(load_clients(&s, &pool, &p, &d), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(d.text, "\"standardize\": \"federated\" takes a job's first two rounds"));
    s.through = KEDGE_LEARN_THROUGH_ROUNDS;
    s.steps = (struct kedge_learn_rounds){1, {3}};
    ck_assert_int_eq(load_clients(&s, &pool, &p, &d), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(d.text, "\"steps\": not with \"missing\": \"mean\""));
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* ---- traces ---- */

#define HEAD "time_s,site,available,samples_per_s\n"

static struct kedgei_trace load(const char *text, uint32_t sites, double period)
{
    struct kedgei_trace t;
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(kedgei_trace_load(put_file(text), sites, 2, period, &t, &d) == KEDGE_OK, "%s", d.text);
    return t;
}

static void check_at(const struct kedgei_trace *t, uint32_t site, double now, bool available, double speed)
{
    struct kedgei_trace_state s = kedgei_trace_at(t, site, 0, now);
    ck_assert_msg(s.available == available && s.samples_per_s == speed, "site %u at %g: %d, %g", site, now,
                  s.available, s.samples_per_s);
}

START_TEST(what_a_line_says_holds_until_the_next)
{
    struct kedgei_trace t = load(HEAD "10,1,0,\r\n5,0,1,250\n30,1,1,2e3\n40,1,1,\n50,1,0,7", 3, 0);
    check_at(&t, 0, 4.9, true, 0); /* before its first line */
    check_at(&t, 0, 5, true, 250);
    check_at(&t, 0, 1e9, true, 250);
    check_at(&t, 1, 9, true, 0);
    check_at(&t, 1, 10, false, 0);
    check_at(&t, 1, 29.5, false, 0);
    check_at(&t, 1, 30, true, 2000);
    check_at(&t, 1, 45, true, 0);
    check_at(&t, 1, 50, false, 7);
    check_at(&t, 2, 100, true, 0); /* no line names it */
    ck_assert(kedgei_trace_when(&t, 1, 0, 10, true) == 30);
    ck_assert(kedgei_trace_when(&t, 1, 0, 0, false) == 10);
    ck_assert(kedgei_trace_when(&t, 1, 0, 35, false) == 50);
    ck_assert(isinf(kedgei_trace_when(&t, 1, 0, 50, true)));
    ck_assert(isinf(kedgei_trace_when(&t, 2, 0, 0, false)));
    kedgei_trace_deinit(&t);
}
END_TEST

START_TEST(a_trace_begins_again_after_its_period)
{
    struct kedgei_trace t = load("time_s,class,available,samples_per_s\n10,1,0,\n30,1,1,9\n", 3, 100);
    ck_assert(!t.by_site);
    struct kedgei_trace_state s = kedgei_trace_at(&t, 2, 1, 5);
    ck_assert(s.available && s.samples_per_s == 9); /* the last line of the period before */
    ck_assert(!kedgei_trace_at(&t, 0, 1, 310).available);
    ck_assert(kedgei_trace_at(&t, 0, 0, 310).available);
    ck_assert(kedgei_trace_when(&t, 0, 1, 212, true) == 230);
    ck_assert(kedgei_trace_when(&t, 0, 1, 250, false) == 310);
    kedgei_trace_deinit(&t);
}
END_TEST

/* Whatever the sums were rounded to. */
START_TEST(who_waits_meets_the_line)
{
    struct kedgei_trace t = load(HEAD "0.1,0,0,\n0.3,0,1,\n", 1, 0.7);
    double now = 0.1;
    for (int i = 0; i < 1800; i++) {
        double at = kedgei_trace_when(&t, 0, 0, now, false);
        ck_assert(at > now && at <= now + 0.7001);
        ck_assert_msg(!kedgei_trace_at(&t, 0, 0, at).available, "%.17g from %.17g", at, now);
        double back = kedgei_trace_when(&t, 0, 0, at, true);
        ck_assert_msg(back > at && kedgei_trace_at(&t, 0, 0, back).available, "%.17g", back);
        now = now * 1.01 + 0.017;
    }
    kedgei_trace_deinit(&t);
}
END_TEST

static const struct {
    const char *text, *says;
} wrong[] = {
    {"", "line 1: expected \"time_s,site"},
    {"time,site,available,samples_per_s\n", "line 1: expected \"time_s,site"},
    {"time_s,site,available\n", "line 1: expected \"time_s,site"},
    {HEAD "\n", "line 2: expected four fields"},
    {HEAD "0,1,1\n", "line 2: expected four fields"},
    {HEAD "0,1,1,5,6\n", "line 2: expected four fields"},
    {HEAD "-1,1,1,\n", "line 2: expected seconds from 0"},
    {HEAD "x,1,1,\n", "line 2: expected seconds from 0"},
    {HEAD "1e13,1,1,\n", "line 2: expected seconds from 0"},
    {HEAD "0,3,1,\n", "line 2: expected a site below 3"},
    {HEAD "0,1.5,1,\n", "line 2: expected a site below 3"},
    {"time_s,class,available,samples_per_s\n0,2,1,\n", "line 2: expected a device class below 2"},
    {HEAD "0,1,2,\n", "line 2: expected 0 or 1"},
    {HEAD "0,1,,\n", "line 2: expected 0 or 1"},
    {HEAD "0,1,1,0\n", "line 2: expected samples a second above 0"},
    {HEAD "0,1,1,fast\n", "line 2: expected samples a second above 0"},
    {HEAD "0,1,1,\n0,0,1,\n0,1,0,\n", "line 4: expected a later time"},
    {HEAD "0,1,1,\n50,1,0,\n", "line 3: expected a time below the trace's period"},
};

START_TEST(a_trace_that_is_none_is_refused)
{
    struct kedgei_trace t = {.period = -1};
    struct kedge_diag d = {.text = ""};
    const char *file = put_file(wrong[_i].text);
    ck_assert_int_eq(kedgei_trace_load(file, 3, 2, 50, &t, &d), KEDGE_E_FORMAT);
    ck_assert_msg(strstr(d.text, wrong[_i].says) != NULL, "%s: %s", wrong[_i].says, d.text);
    ck_assert_msg(strstr(d.text, file) != NULL, "%s", d.text);
    ck_assert(t.period == -1);
    ck_assert_int_eq(kedgei_trace_load("/no/such/trace.csv", 3, 2, 50, &t, &d), KEDGE_E_NOT_FOUND);
}
END_TEST

START_TEST(memory_that_runs_out_is_told)
{
    struct kedgei_trace t;
    struct kedge_diag d;
    long nth = 1;
    int err;
    const char *file = put_file(HEAD "0,1,1,\n");
    do {
        kedge_mem_fail_at(nth++);
        err = kedgei_trace_load(file, 3, 2, 0, &t, &d);
    } while (err == KEDGE_E_NOMEM && nth < 50);
    kedge_mem_fail_at(0);
    ck_assert_int_eq(err, KEDGE_OK);
    ck_assert_int_gt(nth, 3);
    kedgei_trace_deinit(&t);
}
END_TEST

/* 40 sites of 40 samples, at 1000 samples a second and 1 MB/s: 0.04 s and 2 · 2600 B / 1e6 a round. */
START_TEST(rounds_wait_for_who_is_there)
{
    struct kedge_learn_spec s;
    struct log free_log, log, slow;
    char text[2048] = HEAD;
    digits(&s, _i ? "fedbuff" : "fedavg");
    run(&s, &free_log);
    for (int i = 0; i < 40; i++) { /* nobody before 100 s; then all, at a tenth of the speed */
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "0,%d,0,\n100,%d,1,100\n", i, i);
    }
    (void)snprintf(s.trace, sizeof s.trace, "%s", put_file(text));
    run(&s, &log);
    ck_assert(log.lines[0].virtual_s > 100 && log.lines[0].virtual_s < 110);
    ck_assert_uint_gt(log.lines[0].updates, 0);
    double per_round = (log.lines[7].virtual_s - log.lines[0].virtual_s) / 7,
           free_round = (free_log.lines[7].virtual_s - free_log.lines[0].virtual_s) / 7;
    ck_assert_msg(per_round > 7 * free_round && per_round < 11 * free_round, "%g, %g", per_round, free_round);
    if (_i == 0) { /* who can be asked in every round is who is asked without a trace */
        ck_assert(log.lines[7].digest == free_log.lines[7].digest);
    }
    (void)snprintf(s.trace, sizeof s.trace, "%s", put_file(HEAD "0,1,1,500\n"));
    run(&s, &slow);
    ck_assert(slow.lines[7].virtual_s < 1.5 * free_log.lines[7].virtual_s);
}
END_TEST

/* All leave at 0.02 s, before the first round is done: its updates do not come. At 1 s all are back for good.
 */
START_TEST(who_leaves_before_it_is_done_does_not_answer)
{
    struct kedge_learn_spec s;
    struct log log;
    digits(&s, _i ? "fedbuff" : "fedavg");
    s.job.round_timeout_s = 1; /* so long a round waits for those who left */
    (void)snprintf(s.trace, sizeof s.trace, "%s",
                   put_file("time_s,class,available,samples_per_s\n0.02,0,0,\n1,0,1,\n"));
    run(&s, &log);
    ck_assert_uint_eq(log.lines[0].updates, _i ? 5 : 0);
    ck_assert_uint_eq(log.lines[1].updates, _i ? 10 : 8);
    ck_assert(log.lines[1].virtual_s > 1);
    /* nobody ever comes again: rounds are empty, and end */
    (void)snprintf(s.trace, sizeof s.trace, "%s",
                   put_file("time_s,class,available,samples_per_s\n0.2,0,0,\n"));
    run(&s, &log);
    ck_assert_uint_eq(log.lines[7].updates, log.lines[6].updates);
    ck_assert(log.lines[7].digest != log.lines[0].digest || _i);
    ck_assert(log.lines[7].virtual_s < 2);
    s.trace_period_s = 0.1; /* a line behind it */
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_learn_run(&s, &(struct kedge_learn_host){.threads = 1}, &d), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(d.text, "period"));
}
END_TEST

/* ---- writers ---- */

static void put_writers(const char *folder, uint32_t lines, uint32_t writers, const char *last)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%s/x-writers.csv", folder);
    FILE *f = fopen(name, "wb");
    ck_assert_ptr_nonnull(f);
    for (uint32_t i = 0; i < lines; i++) {
        ck_assert_int_gt(fprintf(f, "%u\r\n", i % writers), 0);
    }
    ck_assert_int_ge(fputs(last, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* The 1797 digits that come with the source, as if seven people had written them in turn. */
START_TEST(writers_stand_in_a_file_beside_images)
{
    struct kedge_learn_spec s;
    struct kedge_diag d = {.text = ""};
    struct kedge_learn_host host = {.threads = 1};
    struct kedgei_learn *l;
    char folder[64], here[PATH_MAX], name[PATH_MAX + 64];
    (void)snprintf(folder, sizeof folder, "/tmp/test-learn-writers-%ld", (long)getpid());
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    static const char *const parts[] = {"images", "labels"};
    for (int i = 0; i < 2; i++) {
        char from[PATH_MAX + 64];
        (void)snprintf(from, sizeof from, "%s/data/digits/digits-%s.idx", here, parts[i]);
        (void)snprintf(name, sizeof name, "%s/x-%s.idx", folder, parts[i]);
        ck_assert_int_eq(symlink(from, name), 0);
    }
    digits(&s, "fedavg");
    s.partition = KEDGE_LEARN_WRITERS;
    (void)snprintf(s.images, sizeof s.images, "%s/x-images.idx", folder);
    ck_assert_int_eq(kedgei_learn_new(&s, &host, &d, &l), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(d.text, "x-writers.csv"));
    put_writers(folder, 1796, 7, "3");
    ck_assert_int_eq(kedgei_learn_new(&s, &host, &d, &l), KEDGE_E_FORMAT);
    ck_assert_str_eq(d.text, "\"sites_per_round\": 8, but the data have 7 sites");
    s.job.sites_per_round = 5;
    kedge_learn_spec_set_tenants(&s, 8);
    ck_assert_int_eq(kedgei_learn_new(&s, &host, &d, &l), KEDGE_E_FORMAT);
    ck_assert_str_eq(d.text, "\"tenants\": 8, but the data have 7 sites");
    kedge_learn_spec_set_tenants(&s, 1);
    ck_assert_msg(kedgei_learn_new(&s, &host, &d, &l) == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(l->n, 7);
    for (uint32_t u = 0; u < 7; u++) {
        ck_assert_uint_ge(l->sites[u].train_count + l->sites[u].test_count, 256);
        for (uint32_t k = 0; k < l->sites[u].test_count; k++) {
            uint32_t row = l->sites[u].test[k];
            ck_assert_uint_eq(row == 1796 ? 3 : row % 7, u);
        }
    }
    kedgei_learn_free(l);
    static const struct {
        uint32_t lines;
        const char *last, *says;
    } bad[] = {{1796, "", "1796 lines, but there are 1797"},
               {1797, "1\n", "line 1798: expected"},
               {1700, "x\n", "line 1701: expected"},
               {1700, "100000\n", "line 1701: expected a whole number below 100000"},
               {3, "\n", "line 4: expected"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put_writers(folder, bad[i].lines, 7, bad[i].last);
        ck_assert_int_eq(kedgei_learn_new(&s, &host, &d, &l), KEDGE_E_FORMAT);
        ck_assert_msg(strstr(d.text, bad[i].says) != NULL, "%s: %s", bad[i].says, d.text);
    }
    static const char *const all[] = {"images.idx", "labels.idx", "writers.csv"};
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%s/x-%s", folder, all[i]);
        ck_assert_int_eq(unlink(name), 0);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* ---- tenants, root data, detectors, judging ---- */

/* Sites of the rotated partition are turned by their number: tenants that were dealt in turn would be its
 * planted groups. The edges are judged by what their meeting gives, which is one model. */
START_TEST(tenants_are_drawn_and_edges_judged_together)
{
    struct kedge_learn_spec s;
    struct log log;
    digits(&s, "hierarchical");
    s.partition = KEDGE_LEARN_ROTATED;
    kedge_learn_spec_set_tenants(&s, 4);
    s.job.options.edge_rounds = 1000;
    run(&s, &log);
    ck_assert(log.lines[7].rand_index < 0.2);
    for (uint32_t j = 0; j < 4; j++) {
        ck_assert_uint_eq(log.lines[7].members[j], 10);
    }
    for (uint32_t r = 0; r < s.job.rounds; r++) {
        ck_assert(log.lines[r].accuracy == log.lines[r].accuracy_auxiliary);
    }
    /* edges that meet after every round are FedAvg but for the weights: the same model for all */
    struct log together;
    s.job.options.edge_rounds = 1;
    run(&s, &together);
    ck_assert(together.lines[0].accuracy == log.lines[0].accuracy);
}
END_TEST

START_TEST(root_data_are_in_nobodys_test)
{
    struct kedge_learn_spec s;
    struct kedge_diag d = {.text = ""};
    struct kedge_learn_host host = {.threads = 1};
    struct kedgei_learn *l;
    digits(&s, "fedavg");
    s.job.rule = kedge_rule_find("root-trust");
    s.job.rule_params.fraction = 0;
    ck_assert_msg(kedgei_learn_new(&s, &host, &d, &l) == KEDGE_OK, "%s", d.text);
    const struct kedgei_learn_site *root = &l->sites[l->n];
    ck_assert_uint_eq(root->train_count, 100);
    for (uint32_t i = 0; i < root->train_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            ck_assert_uint_ne(root->train[i], root->train[k]);
        }
        for (uint32_t u = 0; u < l->n; u++) {
            for (uint32_t k = 0; k < l->sites[u].test_count; k++) {
                ck_assert_uint_ne(root->train[i], l->sites[u].test[k]);
            }
        }
    }
    kedgei_learn_free(l);
}
END_TEST

/* What a detector costs and does must not depend on whether the world is going to shift. */
START_TEST(a_detector_looks_though_nothing_shifts)
{
    struct kedge_learn_spec s;
    struct log still, looking, labels;
    digits(&s, "flexcfl");
    s.job.shift = KEDGE_SHIFT_TEST_NONE;
    run(&s, &still);
    s.job.shift = KEDGE_SHIFT_TEST_LABELS;
    run(&s, &labels);
    ck_assert_uint_eq(labels.lines[7].detections, 0);
    ck_assert(labels.lines[7].digest == still.lines[7].digest);
    s.job.shift = KEDGE_SHIFT_TEST_UPDATE;
    run(&s, &looking);
    /* nobody is new any more: these are its pre-trainings */
    ck_assert_uint_ge(looking.lines[7].bytes_up - looking.lines[5].bytes_up,
                      2 * (still.lines[7].bytes_up - still.lines[5].bytes_up));
}
END_TEST

START_TEST(own_models_have_a_worst_tenth_of_their_own)
{
    static const char *const names[] = {"ditto", "local", "finetune", "fedavg"};
    struct kedge_learn_spec s;
    struct log log;
    digits(&s, names[_i]);
    s.partition = KEDGE_LEARN_MNIST; /* two digits a site: own models are far better */
    s.job.local_epochs = 5;
    s.job.sites_per_round = s.sites; /* all have one */
    run(&s, &log);
    const struct kedge_learn_round *last = &log.lines[7];
    if (_i == 3) {
        ck_assert(isnan(last->accuracy_personal) && isnan(last->accuracy_personal_worst));
        return;
    }
    ck_assert(last->accuracy_personal_worst <= last->accuracy_personal);
    ck_assert(last->accuracy_personal_worst >= 0);
    if (_i == 1) { /* alone, there is no other model */
        ck_assert(last->accuracy_personal == last->accuracy);
        ck_assert(last->accuracy_personal_worst == last->accuracy_worst);
    } else {
        ck_assert(last->accuracy_personal > last->accuracy);
        ck_assert(last->accuracy_personal_worst > last->accuracy_worst);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("learn_world");
    TCase *t = tcase_create("learn_world");
    tcase_add_test(t, clients_are_filled_and_scaled);
    tcase_add_test(t, what_a_line_says_holds_until_the_next);
    tcase_add_test(t, a_trace_begins_again_after_its_period);
    tcase_add_test(t, who_waits_meets_the_line);
    tcase_add_loop_test(t, a_trace_that_is_none_is_refused, 0, (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_test(t, memory_that_runs_out_is_told);
    tcase_add_loop_test(t, rounds_wait_for_who_is_there, 0, 2);
    tcase_add_loop_test(t, who_leaves_before_it_is_done_does_not_answer, 0, 2);
    tcase_add_test(t, writers_stand_in_a_file_beside_images);
    tcase_add_test(t, tenants_are_drawn_and_edges_judged_together);
    tcase_add_test(t, root_data_are_in_nobodys_test);
    tcase_add_test(t, a_detector_looks_though_nothing_shifts);
    tcase_add_loop_test(t, own_models_have_a_worst_tenth_of_their_own, 0, 4);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    if (path[0]) {
        (void)remove(path);
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
