/* Clients as researchers have them: small files of each kind, right ones and wrong ones. */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/tensor/dataset.h"
#include "common/tensor/npz.h"
#include "sim/partition/clients.h"
#include "tests/unit/partition/numpy_texts.h"

static char scratch[64];
static struct kedge_clients c;
static struct kedge_diag diag;

static void set_up(void)
{
    (void)snprintf(scratch, sizeof scratch, "/tmp/test-clients-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
}

static void tear_down(void)
{
    ck_assert_int_eq(kedge_dir_remove(scratch), KEDGE_OK);
}

/* scratch/NAME; a few at a time. */
static const char *at(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

static void put(const char *name, const char *text)
{
    char dir[256];
    (void)snprintf(dir, sizeof dir, "%s", at(name));
    for (char *slash = dir + strlen(scratch) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        ck_assert_int_eq(kedge_dir_make(dir, 0700, NULL), KEDGE_OK);
    }
    ck_assert_int_eq(kedge_file_write(at(name), kedge_view_str(text), 0600, NULL), KEDGE_OK);
}

static int load(const char *name, struct kedge_clients_source s)
{
    diag = (struct kedge_diag){.text = ""};
    s.path = at(name);
    s.client = s.client ? s.client : "";
    s.label = s.label ? s.label : "";
    s.group = s.group ? s.group : "";
    s.step = s.step ? s.step : "";
    s.truth = s.truth ? s.truth : "";
    return kedge_clients_load(&s, &c, &diag);
}

/* "ann: 1 2 -> 0 | bob: …": clients, values and labels in their order; "+" before a sample of a test part. */
static void ck_reads(const char *expected)
{
    char text[1024] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < c.n; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s:", i ? " | " : "",
                                 c.part[i] == KEDGE_CLIENTS_TEST    ? "+"
                                 : c.part[i] == KEDGE_CLIENTS_TRAIN ? "-"
                                                                    : "",
                                 c.step[i] ? "later " : "", c.names[c.client[i]]);
        for (uint32_t k = 0; k < c.features; k++) {
            used += (size_t)snprintf(text + used, sizeof text - used, " %g", (double)c.x[i * c.features + k]);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, " -> %d", c.labels[i]);
    }
    ck_assert_str_eq(text, expected);
}

#define TABLE "who,site,a,b,y\nann,x,1,2,cat\nbob,y,3,4,dog\n\"ann\",x,5,6,dog\nbob,y,7,8,cat\n"

START_TEST(a_column_says_whose_a_row_is)
{
    put("t.csv", TABLE);
    ck_assert_msg(load("t.csv", (struct kedge_clients_source){.client = "who", .group = "site"}) == KEDGE_OK,
                  "%s", diag.text);
    ck_assert_uint_eq(c.count, 2);
    ck_assert_uint_eq(c.classes, 2);
    ck_assert_uint_eq(c.steps, 1);
    ck_reads("ann: 1 2 -> 0 | bob: 3 4 -> 1 | ann: 5 6 -> 1 | bob: 7 8 -> 0");
    ck_assert_uint_eq(c.true_count, 2);
    ck_assert(c.truth[0] == 0 && c.truth[1] == 1);
    kedge_clients_deinit(&c);
}
END_TEST

START_TEST(a_label_may_stand_anywhere)
{
    put("t.csv", "y,a,client\n3,1,u1\n0,2,u1\n");
    ck_assert_msg(load("t.csv", (struct kedge_clients_source){.label = "y"}) == KEDGE_OK, "%s", diag.text);
    ck_reads("u1: 1 -> 3 | u1: 2 -> 0");
    ck_assert_ptr_null(c.truth);
    kedge_clients_deinit(&c);
}
END_TEST

START_TEST(a_folder_is_a_client)
{
    put("d/zoe/train.csv", "a,y\n1,cat\n2,dog\n");
    put("d/zoe/test.csv", "a,y\n3,ape\n");
    put("d/abe/data.csv", "a,y\n4,dog\n5,dog\n");
    put("d/zoe/train-1.csv", "a,y\n6,cat\n");
    put("d/README", "no client");
    put("groups.csv", "client,group\r\nzoe,\"north\"\r\nabe,south\n");
    ck_assert_msg(load("d", (struct kedge_clients_source){.truth = at("groups.csv")}) == KEDGE_OK, "%s",
                  diag.text);
    ck_reads("abe: 4 -> 2 | abe: 5 -> 2 | +zoe: 3 -> 0 | -later zoe: 6 -> 1 | -zoe: 1 -> 1 | -zoe: 2 -> 2");
    ck_assert_uint_eq(c.steps, 2);
    ck_assert(c.true_count == 2 && c.truth[0] != c.truth[1]);
    struct kedge_partition p;
    ck_assert_int_eq(kedge_clients_deal(&c, 0, 7, &p, &diag), KEDGE_OK);
    ck_assert(p.sites[0].train_count == 1 && p.sites[0].test_count == 1);
    ck_assert(p.sites[1].train_count == 2 && p.sites[1].test_count == 1);
    uint32_t n;
    ck_assert_uint_eq(kedge_partition_test(&p, 1, &n)[0], 2);
    kedge_partition_deinit(&p);
    ck_assert_int_eq(kedge_clients_deal(&c, 1, 7, &p, &diag), KEDGE_OK);
    ck_assert(p.sites[0].train_count == 0 && p.sites[0].test_count == 0);
    ck_assert(p.sites[1].train_count == 1 && p.sites[1].test_count == 0);
    kedge_partition_deinit(&p);
    kedge_clients_deinit(&c);
}
END_TEST

static void put_npz(const char *name, const int64_t *ids, uint64_t ids_count)
{
    static const uint8_t x[] = {0, 255, 51, 0, 255, 0, 0, 0, 102, 255, 255, 255};
    static const int32_t y[] = {1, 0, 1};
    const uint64_t dims[] = {3, 2, 2}, n[] = {3};
    const struct kedge_npz_array arrays[] = {{"x", KEDGE_NPY_U1, 3, dims, x},
                                             {"y", KEDGE_NPY_I4, 1, n, y},
                                             {"client", KEDGE_NPY_I8, 1, &ids_count, ids}};
    struct kedge_buf out;
    kedge_buf_init(&out, 1 << 16);
    ck_assert_int_eq(kedge_npz_write(arrays, 3, &out), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at(name), kedge_buf_view(&out), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&out);
}

START_TEST(an_array_says_whose_a_sample_is)
{
    static const int64_t ids[] = {70, -1, 70};
    put_npz("t.npz", ids, 3);
    ck_assert_msg(load("t.npz", (struct kedge_clients_source){.client = ""}) == KEDGE_OK, "%s", diag.text);
    ck_reads("70: 0 1 0.2 0 -> 1 | -1: 1 0 0 0 -> 0 | 70: 0.4 1 1 1 -> 1"); /* bytes as shares of 255 */
    struct kedge_partition p;
    ck_assert_int_eq(kedge_clients_deal(&c, 0, 7, &p, &diag), KEDGE_E_FORMAT);
    ck_assert_str_eq(diag.text,
                     "client \"-1\": 1 samples for training and 0 for testing, expected at least one of "
                     "either");
    kedge_clients_deinit(&c);
    put_npz("t.npz", ids, 2);
    ck_assert_int_eq(load("t.npz", (struct kedge_clients_source){.client = ""}), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(diag.text, "array \"client\": 2 values of type <i8, expected 3 whole numbers"));
    ck_assert_int_eq(load("t.npz", (struct kedge_clients_source){.client = "who"}), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(diag.text, "no array \"who\" among 3: x, y, client"));
}
END_TEST

START_TEST(texts_of_numpy_name_clients)
{
    ck_assert_int_eq(
        kedge_file_write(at("t.npz"), kedge_view_of(numpy_texts, sizeof numpy_texts), 0600, NULL), KEDGE_OK);
    ck_assert_msg(load("t.npz", (struct kedge_clients_source){.group = "ward"}) == KEDGE_OK, "%s", diag.text);
    ck_reads("zo\xc3\xab: 1 2 -> 0 | bo: 3 4 -> 1 | zo\xc3\xab: 5 6 -> 1");
    ck_assert(c.true_count == 2 && c.truth[0] == 0 && c.truth[1] == 1);
    kedge_clients_deinit(&c);
    ck_assert_int_eq(load("t.npz", (struct kedge_clients_source){.client = "long"}), KEDGE_E_TOO_LONG);
    ck_assert_ptr_nonnull(strstr(diag.text, "t.npz: array \"long\": value 0: a text of more than 127 bytes"));
    ck_assert_int_eq(load("t.npz", (struct kedge_clients_source){.label = "ward"}), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(diag.text, "array \"ward\": 3 values of type |S, expected 3 whole numbers in"));
    ck_assert_int_eq(load("t.npz", (struct kedge_clients_source){.client = "x"}), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(diag.text, "of type <f4, expected 3 whole numbers or texts"));
}
END_TEST

/* What is missing, and scales: as the site of a job would treat a file with these rows. */
START_TEST(samples_are_prepared_as_a_site_prepares_them)
{
    static const char text[] =
        "who,a,b,y\nann,1,,cat\nbob,9,1,dog\nann,3,6,dog\nann,NA,2,cat\nbob,5,3,cat\nann,4,8,dog\n";
    struct kedge_partition p;
    put("t.csv", text);
    ck_assert_int_eq(load("t.csv", (struct kedge_clients_source){.client = "who"}), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(diag.text, "t.csv: line 2, column 3 (\"b\")"));
    ck_assert_msg(
        load("t.csv", (struct kedge_clients_source){.client = "who", .missing = KEDGE_CSV_MISSING_DROP})
            == KEDGE_OK,
        "%s", diag.text);
    ck_reads("bob: 9 1 -> 1 | ann: 3 6 -> 1 | bob: 5 3 -> 0 | ann: 4 8 -> 1");
    ck_assert(strcmp(c.class_names, "cat") == 0 && strcmp(c.class_names + 4, "dog") == 0);
    kedge_clients_deinit(&c);
    for (int standardize = 0; standardize < 2; standardize++) {
        ck_assert_int_eq(
            load("t.csv", (struct kedge_clients_source){.client = "who", .missing = KEDGE_CSV_MISSING_MEAN}),
            KEDGE_OK);
        ck_assert_int_eq(kedge_clients_deal(&c, 0, 3, &p, &diag), KEDGE_OK);
        uint32_t n, m;
        const uint32_t *train = kedge_partition_train(&p, 0, &n), *test = kedge_partition_test(&p, 0, &m);
        struct kedge_dataset all = {.n = c.n, .features = 2, .labels = c.labels, .reals = c.x, .scale = 1}, a,
                             b;
        ck_assert_int_eq(kedge_dataset_pick(&all, train, n, &a) | kedge_dataset_pick(&all, test, m, &b),
                         KEDGE_OK);
        ck_assert_int_eq(kedge_dataset_fill(&a, &b, NULL, &diag), KEDGE_OK);
        ck_assert_int_eq(standardize ? kedge_dataset_standardize(&a, &b, &diag) : KEDGE_OK, KEDGE_OK);
        int err = kedge_clients_prepare(&c, &p, true, standardize, &diag);
        ck_assert_msg(err == KEDGE_OK, "%s", diag.text);
        ck_assert(n == 3 && m == 1);
        for (uint32_t i = 0; i < n + m; i++) {
            const float *expected = i < n ? a.reals + (size_t)i * 2 : b.reals;
            ck_assert_mem_eq(c.x + (size_t)(i < n ? train[i] : test[0]) * 2, expected, 2 * sizeof(float));
        }
        kedge_dataset_deinit(&a);
        kedge_dataset_deinit(&b);
        kedge_partition_deinit(&p);
        kedge_clients_deinit(&c);
    }
}
END_TEST

START_TEST(a_client_without_a_value_is_named)
{
    struct kedge_partition p;
    put("t.csv", "who,a,b,y\nann,1,2,0\nann,3,6,1\nbob,,1,0\nbob,,2,1\n");
    ck_assert_int_eq(
        load("t.csv", (struct kedge_clients_source){.client = "who", .missing = KEDGE_CSV_MISSING_MEAN}),
        KEDGE_OK);
    ck_assert_int_eq(kedge_clients_deal(&c, 0, 3, &p, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_clients_prepare(&c, &p, true, false, &diag), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(diag.text, "client \"bob\": \"feature 1\": all values of the training samples are"));
    kedge_partition_deinit(&p);
    kedge_clients_deinit(&c);
}
END_TEST

#define LEAF(users, data) "{\"users\": " users ", \"num_samples\": [2], \"user_data\": " data "}"

START_TEST(leaf_has_parts_of_its_own)
{
    put("leaf/train/a.json",
        "{\"hierarchies\":[[{\"deep\":\"]}\\\"\"}]],\"users\":[\"f1\",\"f2\"],\n\"user_data\":{"
        "\"f1\":{\"y\":[3,1],\"x\":[[0.5,1E-1],[1,2]]},\"f2\":{\"x\":[[[3],[4]]],\"y\":[0],"
        "\"raw\":null}}}\n");
    put("leaf/test/a.json", LEAF("[\"f2\"]", "{\"f2\": {\"x\": [[5, 6]], \"y\": [1.0]}}"));
    put("leaf/test/b.json", LEAF("[\"f1\"]", "{\"f1\": {\"x\": [[-7e0, 8]], \"y\": [2]}}"));
    put("leaf/test/stats.txt", "");
    ck_assert_msg(load("leaf", (struct kedge_clients_source){.client = ""}) == KEDGE_OK, "%s", diag.text);
    ck_reads("-f1: 0.5 0.1 -> 3 | -f1: 1 2 -> 1 | -f2: 3 4 -> 0 | +f2: 5 6 -> 1 | +f1: -7 8 -> 2");
    kedge_clients_deinit(&c);
    put("one.json", LEAF("[\"u\"]", "{\"u\": {\"x\": [1, 2], \"y\": [0, 1]}}"));
    ck_assert_msg(load("one.json", (struct kedge_clients_source){.client = ""}) == KEDGE_OK, "%s", diag.text);
    ck_reads("u: 1 -> 0 | u: 2 -> 1");
    kedge_clients_deinit(&c);
    ck_assert_int_eq(unlink(at("leaf/test/a.json")) | unlink(at("leaf/test/b.json")), 0);
    ck_assert_int_eq(load("leaf", (struct kedge_clients_source){.client = ""}), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(diag.text, "/leaf/test: no .json file, but there are some in the other part"));
}
END_TEST

static const struct {
    const char *file, *text;
    struct kedge_clients_source s;
    int err;
    const char *says;
} wrong[] = {
    {"t.csv",
     TABLE,
     {.client = "name"},
     KEDGE_E_NOT_FOUND,
     "line 1: no column is named \"name\" (no feature)"},
    {"t.csv",
     TABLE,
     {.client = "who", .group = "who"},
     KEDGE_E_FORMAT,
     "column \"who\" cannot be two things"},
    {"t.csv",
     TABLE,
     {.client = "y", .label = "y"},
     KEDGE_E_FORMAT,
     "the label's column \"y\" cannot be two things"},
    {"t.csv",
     TABLE,
     {.client = "who"},
     KEDGE_E_FORMAT,
     "line 2, column 2 (\"site\"): found \"x\", expected a number"},
    {"t.csv", TABLE, {.client = "who", .group = "site", .step = "b"}, KEDGE_OK, ""},
    {"t.csv",
     "client,a,step,y\nu,1,99,0\nu,1,0,0\n",
     {.step = "step"},
     KEDGE_E_FORMAT,
     "t.csv: row 1: step \"99\": expected a whole number from 0 to 15"},
    {"t.csv",
     "client,a,y\nu,1,0\n,1,0\n",
     {.client = ""},
     KEDGE_E_FORMAT,
     "row 2: client \"\": expected a name"},
    {"t.csv", "client,a,y\nu,1,0.5\nu,1,0.25\n", {.client = ""}, KEDGE_E_FORMAT, "the labels are reals"},
    {"t.csv",
     "client,g,a,y\nu,1,1,0\nu,2,1,0\n",
     {.group = "g"},
     KEDGE_E_FORMAT,
     "row 2: client \"u\": in group \"1\" and in \"2\""},
    {"d/u/train.csv",
     "a,y\n1,0\n",
     {.path = "d", .client = "who"},
     KEDGE_E_FORMAT,
     "\"client\": \"who\", but"},
    {"d/u/t.csv", "a,y\n1,0\n", {.path = "d"}, KEDGE_E_FORMAT, "d/u: t.csv: expected train, test or data"},
    {"d/u/train-x.csv",
     "a,y\n1,0\n",
     {.path = "d"},
     KEDGE_E_FORMAT,
     "train-x.csv: step \"x\": expected a whole"},
    {"d/u/notes",
     "",
     {.path = "d"},
     KEDGE_E_FORMAT,
     "d/u: a folder in a folder of clients, but without train.csv"},
    {"d/notes", "", {.path = "d"}, KEDGE_E_FORMAT, "d: no folder of a client in it"},
    {"t.txt", "", {.client = ""}, KEDGE_E_FORMAT, "t.txt: clients are read from a .csv, .npz or .json file"},
    {"t.json", "", {.path = "none.json"}, KEDGE_E_NOT_FOUND, "none.json: not found"},
    {"t.json", "[]", {.client = ""}, KEDGE_E_FORMAT, "t.json: byte 1: expected an object with \"users\""},
    {"t.json", "{\"users\":[]}", {.client = ""}, KEDGE_E_FORMAT, "no \"user_data\" in it"},
    {"t.json",
     LEAF("[\"a\",\"b\"]", "{\"a\":{\"x\":[1],\"y\":[1]}}"),
     {.client = ""},
     KEDGE_E_FORMAT,
     "user \"b\" is in \"users\", but not in \"user_data\""},
    {"t.json",
     LEAF("[]", "{\"a\":{\"x\":[1],\"y\":[1]}}"),
     {.client = ""},
     KEDGE_E_FORMAT,
     "0 users in \"users\", but 1 in \"user_data\""},
    {"t.json",
     LEAF("[\"a\"]", "{\"a\":{\"x\":[1,2],\"y\":[1]}}"),
     {.client = ""},
     KEDGE_E_FORMAT,
     "user \"a\": 2 samples in \"x\", but 1 labels in \"y\""},
    {"t.json",
     LEAF("[\"a\"]", "{\"a\":{\"x\":[[1,2],[3]],\"y\":[1,1]}}"),
     {.client = ""},
     KEDGE_E_FORMAT,
     "expected samples that are all of one length"},
    {"t.json",
     LEAF("[\"a\"]", "{\"a\":{\"x\":[[[[[[1]]]]]],\"y\":[1]}}"),
     {.client = ""},
     KEDGE_E_FORMAT,
     "expected at most four lists in each other"},
    {"t.json",
     LEAF("[\"a\"]", "{\"a\":{\"x\":[\"to be\"],\"y\":[1]}}"),
     {.client = ""},
     KEDGE_E_FORMAT,
     "expected numbers: samples that are texts are not read"},
    {"t.json",
     LEAF("[\"a\"]", "{\"a\":{\"x\":[1e99],\"y\":[1]}}"),
     {.client = ""},
     KEDGE_E_FORMAT,
     "expected a number within the range of F32"},
    {"t.json",
     LEAF("[\"a\"]", "{\"a\":{\"x\":[1],\"y\":[-1]}}"),
     {.client = ""},
     KEDGE_E_FORMAT,
     "user \"a\": label -1, expected a whole number from 0 to 65535"},
    {"t.json",
     LEAF("[\"a\"]", "{\"a\":{\"y\":[1]}}"),
     {.client = ""},
     KEDGE_E_FORMAT,
     "expected \"x\" and \"y\""},
    {"t.json",
     LEAF("[\"a\"]", "{\"a\":{\"x\":[1],\"y\":[1]},\"a\":{\"x\":[1],\"y\":[1]}}"),
     {.client = ""},
     KEDGE_E_FORMAT,
     "user \"a\" stands twice in \"user_data\""},
    {"t.json", LEAF("[\"a\"]", "{\"a\":{\"x\":[1],\"y\":[1]"), {.client = ""}, KEDGE_E_FORMAT, "expected"},
    {"t.json", "{\"user_data\":{}} x", {.client = ""}, KEDGE_E_FORMAT, "expected the end of the file"},
    {"t.json", "{\"rest\":[[[[\"", {.client = ""}, KEDGE_E_FORMAT, "expected the quote that ends a text"},
    {"t.json", "{\"user_data\":{}}", {.client = ""}, KEDGE_E_FORMAT, "t.json: no samples"},
    {"t.json",
     LEAF("[\"a\"]", "{\"a\":{\"x\":[1],\"y\":[1]}}"),
     {.missing = KEDGE_CSV_MISSING_DROP},
     KEDGE_E_FORMAT,
     "t.json holds no CSV file, and all others have every value"},
    {"t.json", "{\"user_data\":{}}", {.group = "g"}, KEDGE_E_FORMAT, "\"group\": \"g\", but"},
    {"t.json", "{\"user_data\":{}}", {.label = "z"}, KEDGE_E_FORMAT, "\"label\": \"z\", but"},
};

START_TEST(what_is_wrong_is_named)
{
    put(wrong[_i].file, wrong[_i].text);
    int err = load(wrong[_i].s.path ? wrong[_i].s.path : wrong[_i].file, wrong[_i].s);
    ck_assert_msg(err == wrong[_i].err, "%s: %s", wrong[_i].says, diag.text);
    ck_assert_msg(strstr(diag.text, wrong[_i].says) != NULL, "%s: %s", wrong[_i].says, diag.text);
    if (!err) {
        kedge_clients_deinit(&c);
    }
}
END_TEST

START_TEST(true_groups_are_told_of_all_clients)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"who,group\n", "groups.csv: line 1: expected \"client,group\""},
        {"client,group\nann,1\n", "client \"bob\": no true group is told of it"},
        {"client,group\nann,1\nbob,2\neve,1\n", "line 4: client \"eve\": the data have none of this name"},
        {"client,group\nann,1\nann,2\n", "line 3: client \"ann\": in group \"1\" and in \"2\""},
        {"client,group\nann\n", "line 2: expected a client, a comma and its group"},
        {"client,group\nann,\n", "line 2: client \"ann\": its group has no name"}};
    put("t.csv", "who,a,y\nann,1,0\nbob,2,1\n");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put("groups.csv", bad[i].text);
        int err = load("t.csv", (struct kedge_clients_source){.client = "who", .truth = at("groups.csv")});
        ck_assert_msg(err == KEDGE_E_FORMAT && strstr(diag.text, bad[i].says), "%s: %s", bad[i].says,
                      diag.text);
    }
}
END_TEST

START_TEST(memory_that_runs_out_is_told)
{
    put("leaf/train/a.json", LEAF("[\"f1\"]", "{\"f1\":{\"x\":[[1,2]],\"y\":[0]}}"));
    put("leaf/test/a.json", LEAF("[\"f1\"]", "{\"f1\":{\"x\":[[1,2]],\"y\":[0]}}"));
    put("d/u/data.csv", "a,y\n1,cat\n2,dog\n");
    put("groups.csv", "client,group\nu,1\n");
    for (int kind = 0; kind < 2; kind++) {
        long nth = 1;
        int err;
        do {
            kedge_mem_fail_at(nth++);
            err = kind ? load("d", (struct kedge_clients_source){.truth = at("groups.csv")})
                       : load("leaf", (struct kedge_clients_source){.client = ""});
            kedge_mem_fail_at(0);
            ck_assert_msg(!err || err == KEDGE_E_NOMEM, "%ld: %s", nth, diag.text);
        } while (err && nth < 200);
        ck_assert(nth > 10 && nth < 200);
        kedge_clients_deinit(&c);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("clients");
    TCase *t = tcase_create("clients");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_column_says_whose_a_row_is);
    tcase_add_test(t, a_label_may_stand_anywhere);
    tcase_add_test(t, a_folder_is_a_client);
    tcase_add_test(t, an_array_says_whose_a_sample_is);
    tcase_add_test(t, texts_of_numpy_name_clients);
    tcase_add_test(t, samples_are_prepared_as_a_site_prepares_them);
    tcase_add_test(t, a_client_without_a_value_is_named);
    tcase_add_test(t, leaf_has_parts_of_its_own);
    tcase_add_loop_test(t, what_is_wrong_is_named, 0, (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_test(t, true_groups_are_told_of_all_clients);
    tcase_add_test(t, memory_that_runs_out_is_told);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
