/* kedge sim for learning simulations as its users meet it: results, resume after kill -9, processes, MPI,
 * comparison. Synthetic(1,1) needs no files. KEDGE_SIM_MPI is the path of kedge-sim-mpi where it was built.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "tests/unit/cli/support.h"

static const char spec[] =
    "{\"preset\":\"synthetic-1-1\",\"name\":\"small\",\"sites_per_round\":6,\"rounds\":24,\"strategy\":"
    "\"flexcfl\",\"groups\":3,\"local_epochs\":2,\"variants\":{\"two\":{\"strategy\":\"flexcfl\",\"groups\":"
    "2}},\"world\":{\"data\":{\"sites\":24}}}";

static void set_up(void)
{
    make_scratch();
    put_file(at("spec.json"), spec);
}

static void ck_same_file(const char *a, const char *b)
{
    struct kedge_buf one, two;
    kedge_buf_init(&one, OUTPUT_MAX);
    kedge_buf_init(&two, OUTPUT_MAX);
    ck_assert_int_eq(kedge_file_read(a, &one, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_file_read(b, &two, NULL), KEDGE_OK);
    ck_assert_msg(kedge_view_eq(kedge_buf_view(&one), kedge_buf_view(&two)), "%s is not %s", a, b);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&two);
}

static const struct {
    const char *spec, *options;
    int code;
    const char *says;
} wrong[] = {
    {"{\"preset\":\"digits\",\"world\":{\"data\":{\"site\":3}}}", "", 2,
     "unknown key \"site\" in \"world.data\""},
    {"{\"preset\":\"mnist\"}", "", 2, "expected one of mnist-1000-mclr"},
    {"{\"preset\":\"synthetic-1-1\",\"sites_per_round\":101}", "", 2, "sites_per_round"},
    {"{\"preset\":\"mnist-1000-mclr\",\"world\":{\"data\":{\"images\":\"none-such\"}}}", "", 3,
     "get-data none-such"},
    {"{\"preset\":\"mnist-1000-mclr\",\"world\":{\"data\":{\"images\":\"/nonexistent/x\"}}}", "", 3,
     "/nonexistent/x"},
    {"{\"preset\":\"mnist-1000-mclr\",\"world\":{\"data\":{\"images\":\"data/digits\"}}}", "", 3,
     "did you mean \"data/digits/digits-images.idx\"?"},
    {"{\"preset\":\"digits\",\"world\":{\"data\":{\"partition\":\"clients\",\"images\":\"none.csv\"}}}", "",
     3, "meant from the current folder"},
    {"{\"preset\":\"synthetic-1-1\"}", "--resume", 2, "--resume: expected --out DIR"},
    {"{\"preset\":\"synthetic-1-1\"}", "--seeds 3", 2, "--seeds: expected --compare"},
    {"{\"preset\":\"synthetic-1-1\"}", "--compare fedavg,fedavg", 2, "fedavg stands twice"},
    {"{\"preset\":\"synthetic-1-1\"}", "--compare fedavg,,x", 2, "with commas between"},
    {"{\"preset\":\"synthetic-1-1\"}", "--compare fedavg,other", 2, "other: neither a variant"},
    {"{\"preset\":\"synthetic-1-1\"}", "--processes 65", 2, "from 1 to 64"},
    {"{\"seeds\":1,\"rounds\":1}", "--out somewhere", 2, "--out is for learning simulations"},
    {"{\"strategy\":\"fedavg\"}", "", 2, "a learning simulation has \"world\" or \"preset\""},
};

START_TEST(test_wrong)
{
    put_file(at("wrong.json"), wrong[_i].spec);
    int code = kedge("sim %s%s%s", at("wrong.json"), wrong[_i].options[0] ? " " : "", wrong[_i].options);
    ck_assert_msg(code == wrong[_i].code, "%s %s: %d", wrong[_i].spec, wrong[_i].options, code);
    ck_assert_msg(strstr(err_out, wrong[_i].says) != NULL, "%s", err_out);
}
END_TEST

START_TEST(test_run)
{
    json_t *root;
    ck_assert_int_eq(kedge("sim %s --out %s --format json", at("spec.json"), at("one")), 0);
    const json_t *data = data_of(&root), *summary = json_object_get(data, "summary");
    ck_assert_str_eq(json_string_value(json_object_get(data, "kind")), "learning");
    ck_assert_int_eq((int)json_array_size(json_object_get(data, "table")), 24);
    ck_assert(json_real_value(json_object_get(summary, "accuracy_max")) > 0.3);
    ck_assert_int_eq((int)json_integer_value(json_object_get(summary, "rounds")), 24);
    json_decref(root);
    ck_assert(has_text(at("one/summary.json"), "\"strategy\":\"flexcfl\""));
    ck_assert(has_text(at("one/rounds.csv"), "round,virtual_s"));
    ck_assert_int_eq(kedge("sim %s --out %s", at("spec.json"), at("one")), 1); /* nothing is written over */
    ck_assert_ptr_nonnull(strstr(err_out, "--resume goes on"));
    ck_assert_int_eq(kedge("sim %s --out %s --resume", at("spec.json"), at("one")), 0);
    ck_assert_ptr_nonnull(strstr(out, "nothing was run"));
    ck_assert_int_eq(kedge("sim %s --out %s --threads 1", at("spec.json"), at("two")), 0);
    ck_same_file(at("one/rounds.jsonl"), at("two/rounds.jsonl"));
    ck_same_file(at("one/sites.jsonl"), at("two/sites.jsonl"));
    ck_assert_ptr_nonnull(strstr(out, "Largest accuracy"));
}
END_TEST

/* The digits that come with Kedge are found from any folder. */
START_TEST(test_digits)
{
    put_file(at("digits.json"), "{\"preset\":\"digits\",\"rounds\":3,\"strategy\":\"fedprox\"}");
    ck_assert_int_eq(kedge("sim %s", at("digits.json")), 0);
    ck_assert_ptr_nonnull(strstr(out, "FedProx, 40 sites, 3 rounds of 10"));
}
END_TEST

/* Pictures need gnuplot; without it everything else is there, and what to do is said. */
START_TEST(test_no_gnuplot)
{
    char *path = strdup(getenv("PATH"));
    ck_assert_int_eq(setenv("PATH", scratch, 1), 0);
    int code = kedge("sim %s --out %s", at("spec.json"), at("one"));
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
    free(path);
    ck_assert_int_eq(code, 0);
    ck_assert_ptr_nonnull(strstr(out, "gnuplot is not installed"));
    ck_assert(kedge_file_exists(at("one/accuracy.gp")) && !kedge_file_exists(at("one/accuracy.svg")));
}
END_TEST

START_TEST(test_processes)
{
    ck_assert_int_eq(kedge("sim %s --out %s", at("spec.json"), at("one")), 0);
    ck_assert_int_eq(kedge("sim %s --out %s --processes 3", at("spec.json"), at("three")), 0);
    ck_same_file(at("one/rounds.jsonl"), at("three/rounds.jsonl"));
}
END_TEST

START_TEST(test_mpi)
{
#ifdef KEDGE_SIM_MPI
    struct kedge_process p;
    int status = -1;
    /* OpenMPI leaks what it holds when it ends: a leak checker is not asked here. */
    const char *const argv[] = {"mpirun",
                                "-n",
                                "2",
                                "--oversubscribe",
                                "--allow-run-as-root",
                                "-x",
                                "ASAN_OPTIONS=detect_leaks=0",
                                KEDGE_SIM_MPI,
                                at("spec.json"),
                                "--out",
                                at("mpi"),
                                NULL};
    struct kedge_process_options options = {
        .argv = argv, .stderr_path = at("mpi.err"), .die_with_parent = true};
    ck_assert_int_eq(kedge("sim %s --out %s", at("spec.json"), at("one")), 0);
    if (kedge_process_start(&options, &p, NULL) != KEDGE_OK) {
        printf("skipped: no mpirun (openmpi-bin)\n");
        return;
    }
    for (uint32_t waited = 0; waited < 60000 && !kedge_process_poll(&p, &status); waited += 20) {
        kedge_os_sleep_ms(20);
    }
    ck_assert_int_eq(status, 0);
    ck_same_file(at("one/rounds.jsonl"), at("mpi/rounds.jsonl"));
#else
    printf("skipped: built without OpenMPI (libopenmpi-dev)\n");
#endif
}
END_TEST

/* kill -9 at any time, then --resume: the bytes of a run that nobody disturbed. */
START_TEST(test_killed)
{
    struct kedge_process p;
    put_file(at("long.json"), "{\"preset\":\"synthetic-1-1\",\"rounds\":150,\"sites_per_round\":6,"
                              "\"strategy\":\"flexcfl\",\"groups\":3,\"world\":{\"data\":{\"sites\":24}}}");
    ck_assert_int_eq(kedge("sim %s --out %s", at("long.json"), at("whole")), 0);
    kedge_begin(&p, "sim %s --out %s --save-every 3%s", at("long.json"), at("killed"),
                _i ? " --processes 2" : "");
    for (uint32_t waited = 0; waited < 20000 && !kedge_file_exists(at("killed/state.bin")); waited += 2) {
        kedge_os_sleep_ms(2);
    }
    ck_assert_int_eq(kill(p.pid, SIGKILL), 0);
    ck_assert_int_eq(kedge_end(&p), 128 + SIGKILL);
    ck_assert_int_eq(kedge("sim %s --out %s --resume --save-every 3", at("long.json"), at("killed")), 0);
    ck_assert_ptr_nonnull(strstr(out, "rounds that were saved"));
    ck_same_file(at("whole/rounds.jsonl"), at("killed/rounds.jsonl"));
    ck_same_file(at("whole/rounds.csv"), at("killed/rounds.csv"));
    ck_same_file(at("whole/sites.jsonl"), at("killed/sites.jsonl"));
}
END_TEST

START_TEST(test_compare)
{
    json_t *root;
    ck_assert_int_eq(
        kedge("sim %s --compare fedavg,flexcfl,two --seeds 3 --out %s", at("spec.json"), at("cmp")), 0);
    ck_assert_ptr_nonnull(strstr(out, "9 runs over 3 seeds, 9 now"));
    ck_assert_ptr_nonnull(strstr(out, "±"));
    for (const char *line = out; *line;) { /* within 100 columns */
        size_t columns = 0;
        for (; *line && *line != '\n'; line++) {
            columns += ((unsigned char)*line & 0xc0) != 0x80;
        }
        ck_assert_uint_le(columns, 120); /* prose may be longer than a table */
        line += *line == '\n';
    }
    /* each result is kept under its spec's digest: nothing is run again, one more seed is three runs */
    ck_assert_int_eq(
        kedge("sim %s --compare fedavg,flexcfl,two --seeds 3 --out %s", at("spec.json"), at("cmp")), 0);
    ck_assert_ptr_nonnull(strstr(out, "9 runs over 3 seeds, 0 now"));
    ck_assert_int_eq(kedge("sim %s --compare flexcfl,fedavg,two --seeds 4 --out %s --format json",
                           at("spec.json"), at("cmp")),
                     0);
    const json_t *data = data_of(&root), *variants = json_object_get(data, "variants");
    ck_assert_int_eq((int)json_array_size(variants), 3);
    const json_t *first = json_array_get(variants, 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "name")), "flexcfl");
    ck_assert_int_eq((int)json_array_size(json_object_get(first, "runs")), 4);
    const json_t *max = json_object_get(json_object_get(first, "measures"), "accuracy_max");
    ck_assert(json_real_value(json_object_get(max, "mean")) > 0.3);
    ck_assert(json_real_value(json_object_get(json_object_get(max, "difference"), "mean")) == 0);
    json_decref(root);
    ck_assert(kedge_file_exists(at("cmp/compare.json")));
}
END_TEST

/* ---- clients that the data name ---- */

enum { PEOPLE = 12, SAMPLES = 30 };

/* Of client u, sample i: two features; whether the first is larger, or not for odd u: two true groups. */
static bool sample(int u, int i, double x[2])
{
    x[0] = (double)((u * 131 + i * 71) % 97) / 48.0 - 1;
    x[1] = (double)((u * 37 + i * 53) % 89) / 44.0 - 1;
    return (x[0] > x[1]) != (u % 2 == 1);
}

static void put_people(void)
{
    static char text[1 << 16];
    size_t used = (size_t)snprintf(text, sizeof text, "person,ward,a,b,verdict\n");
    for (int i = 0; i < PEOPLE * SAMPLES; i++) {
        double x[2];
        bool yes = sample(i % PEOPLE, i / PEOPLE, x);
        used += (size_t)snprintf(text + used, sizeof text - used, "p%d,%s,%.3f,%.3f,%s\n", i % PEOPLE,
                                 i % 2 ? "north" : "south", x[0], x[1], yes ? "yes" : "no");
    }
    put_file(at("people.csv"), text);
}

/* A folder per client; data that are the others' from step 1 on. */
static void put_folders(void)
{
    static const char *const parts[] = {"train", "test", "train-1", "test-1"};
    char path[KEDGE_PATH_MAX], text[1 << 12];
    for (int u = 0; u < PEOPLE; u++) {
        snprintf(path, sizeof path, "%s/%d", at("folders"), u);
        ck_assert_int_eq(kedge_dir_make(path, 0700, NULL), KEDGE_OK);
        for (int k = 0; k < 4; k++) {
            size_t used = (size_t)snprintf(text, sizeof text, "a,b,verdict\n");
            for (int i = k % 2 ? 24 : 0; i < (k % 2 ? SAMPLES : 24); i++) {
                double x[2];
                bool yes = sample(2 * u, i, x) != (k >= 2);
                used += (size_t)snprintf(text + used, sizeof text - used, "%.3f,%.3f,%d\n", x[0], x[1], yes);
            }
            snprintf(path, sizeof path, "%s/%d/%s.csv", at("folders"), u, parts[k]);
            put_file(path, text);
        }
    }
}

static void put_clients(const char *data, const char *world, const char *rest)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{\"world\": {\"data\": {\"partition\": \"clients\", %s}%s}, \"model\": {\"preset\": \"mclr\", "
             "\"inputs\": 2, "
             "\"classes\": 2}, \"local_epochs\": 10, \"sites_per_round\": 6, \"learning_rate\": 0.1, %s}",
             data, world, rest);
    put_file(at("clients.json"), text);
}

static double summary_of(const json_t *data, const char *measure)
{
    return json_number_value(json_object_get(json_object_get(data, "summary"), measure));
}

START_TEST(test_clients)
{
    char data[KEDGE_PATH_MAX + 128];
    json_t *root;
    put_people();
    snprintf(data, sizeof data, "\"images\": \"%s\", \"client\": \"person\", \"group\": \"ward\"",
             at("people.csv"));
    put_clients(data, "", "\"strategy\": \"flexcfl\", \"groups\": 2, \"pretrain_sites\": 12, \"rounds\": 6");
    ck_assert_int_eq(kedge("sim %s --out %s --format json", at("clients.json"), at("clients")), 0);
    const json_t *found = data_of(&root);
    ck_assert(summary_of(found, "rand_last") == 1); /* the wards are the groups */
    ck_assert(summary_of(found, "accuracy_last") > 0.8);
    json_decref(root);
    ck_assert(!has_text(at("clients/spec.json"), "\"sites\":"));
    ck_assert_int_eq(kedge("sim %s --threads 1", at("clients/spec.json")), 0);
    /* who it is, where it was and how well its model did there, and the models */
    ck_assert(has_text(at("clients/sites.csv"),
                       "site,client,tenant,group,train,test\n0,p0,0,0,27,3\n1,p1,0,1,27,3\n"));
    ck_assert(has_text(at("clients/sites.jsonl"), "{\"round\":0,\"group\":["));
    ck_assert(has_text(at("clients/sites.jsonl"), "{\"round\":5,\"group\":["));
    ck_assert(has_text(at("clients/sites.jsonl"), "],\"accuracy\":["));
    ck_assert(kedge_file_exists(at("clients/models/group-0.safetensors")));
    ck_assert(kedge_file_exists(at("clients/models/group-1.safetensors")));
    ck_assert_int_eq(kedge("sim %s --export %s", at("clients.json"), at("job")), 0);
    ck_assert_ptr_nonnull(strstr(out, "the job of 12 sites"));
    ck_assert(
        has_text(at("job/sites.csv"), "tenant,site,client,group,train,test\norg-a,site-01,p0,0,27,3\n"));
    put_clients(data, ", \"tenants\": 13", "\"rounds\": 1");
    ck_assert_int_eq(kedge("sim %s", at("clients.json")), 2);
    ck_assert_ptr_nonnull(strstr(err_out, "\"tenants\": 13, but the data have 12 sites"));
}
END_TEST

/* The job that a spec stands for, as a spec of jobs: what is printed is read by the parser of jobs. */
START_TEST(test_print_job)
{
    put_file(at("job-of.json"),
             "{\"preset\":\"digits\",\"strategy\":\"flexcfl\",\"mixing\":0.25,\"world\":{\"tenants\":2}}");
    ck_assert_int_eq(kedge("sim %s --print-job", at("job-of.json")), 0);
    put_file(at("job.json"), out);
    ck_assert_ptr_nonnull(strstr(out, "\"tenants\": [\"org-a\", \"org-b\"]"));
    ck_assert_ptr_nonnull(strstr(out, "\"mixing\": 0.25"));
    ck_assert_int_eq(kedge("job spec %s", at("job.json")), 0);
    ck_assert(has_text(at("job.json"), out)); /* and printed again to the same bytes */
    put_file(at("job-of.json"), "{\"preset\":\"digits\",\"strategy\":\"rac\"}");
    ck_assert_int_eq(kedge("sim %s --print-job", at("job-of.json")), 2);
    ck_assert_ptr_nonnull(strstr(err_out, "no job runs it"));
    ck_assert_int_eq(kedge("sim %s --print-job --seeds 3", at("job-of.json")), 2);
    put_file(at("job-of.json"), "{\"seeds\":1,\"rounds\":1}");
    ck_assert_int_eq(kedge("sim %s --print-job", at("job-of.json")), 2);
    ck_assert_ptr_nonnull(strstr(err_out, "--print-job is for learning simulations"));
}
END_TEST

START_TEST(test_data_that_change)
{
    char data[KEDGE_PATH_MAX + 128];
    json_t *root;
    put_folders();
    snprintf(data, sizeof data, "\"images\": \"%s\", \"steps\": [5]", at("folders"));
    put_clients(data, "", "\"rounds\": 12");
    ck_assert_int_eq(kedge("sim %s --format json", at("clients.json")), 0);
    const json_t *table = json_object_get(data_of(&root), "table");
    double before = json_number_value(json_object_get(json_array_get(table, 4), "accuracy"));
    double after = json_number_value(json_object_get(json_array_get(table, 5), "accuracy"));
    ck_assert_msg(before > 0.8 && after < 0.6, "%g, %g", before, after);
    json_decref(root);
    snprintf(data, sizeof data, "\"images\": \"%s\"", at("folders"));
    put_clients(data, "", "\"rounds\": 12");
    ck_assert_int_eq(kedge("sim %s", at("clients.json")), 2);
    ck_assert_ptr_nonnull(strstr(err_out, "\"steps\": 0 rounds, but the data have 1 steps after the first"));
    snprintf(data, sizeof data, "\"images\": \"%s\", \"steps\": [12]", at("folders"));
    put_clients(data, "", "\"rounds\": 12");
    ck_assert_int_eq(kedge("sim %s", at("clients.json")), 2);
    ck_assert_ptr_nonnull(strstr(err_out, "\"steps\": one begins in round 12, but there are 12 rounds"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli_sim");
    TCase *t = tcase_create("sim");
    tcase_add_checked_fixture(t, set_up, remove_scratch);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(t, test_run);
    tcase_add_test(t, test_digits);
    tcase_add_test(t, test_clients);
    tcase_add_test(t, test_data_that_change);
    tcase_add_test(t, test_print_job);
    tcase_add_test(t, test_no_gnuplot);
    tcase_add_test(t, test_processes);
    tcase_add_test(t, test_mpi);
    tcase_add_loop_test(t, test_killed, 0, 2);
    tcase_add_test(t, test_compare);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
