/* IDX, CSV and data sets: the digits as they are, and every file that is not what it says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/tensor/dataset.h"
#include "common/tensor/idx.h"
#include "common/tensor/npz.h"
#include "tests/unit/tensor/numpy_files.h"
#include "tests/unit/tensor/suite.h"

static char dir[] = "/tmp/kedge-dataset-XXXXXX";

static void write_file(const char *name, const void *bytes, size_t len, char path[256])
{
    snprintf(path, 256, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
}

static int read_binding(const char *json, struct kedge_data_binding *b, struct kedge_diag *diag)
{
    struct kedge_json_token tokens[128];
    struct kedge_json doc;
    ck_assert_int_eq(kedge_json_parse(kedge_view_str(json), tokens, 128, &doc, diag), KEDGE_OK);
    return kedge_data_binding_from_json(&doc, 0, b, diag);
}

static int load(const char *json, struct kedge_dataset *train, struct kedge_dataset *test,
                struct kedge_diag *diag)
{
    struct kedge_data_binding b;
    int err = read_binding(json, &b, diag);
    return err ? err : kedge_data_binding_load(&b, train, test, diag);
}

#define DIGITS                                                          \
    "{\"format\":\"idx\",\"images\":\"data/digits/digits-images.idx\"," \
    "\"labels\":\"data/digits/digits-labels.idx\",\"scale\":\"0.0625\"}"

static uint64_t fnv(const uint8_t *p, size_t len, uint64_t h)
{
    for (size_t i = 0; i < len; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    return h;
}

START_TEST(digits_are_the_1797_images_of_uci)
{
    static const uint32_t per_class[] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    struct kedge_dataset train, test;
    uint32_t count[10] = {0};
    ck_assert_int_eq(load("{\"train\":" DIGITS "}", &train, &test, NULL), KEDGE_OK);
    ck_assert_uint_eq(train.n, 1797);
    ck_assert_uint_eq(train.features, 64);
    ck_assert_uint_eq(train.classes, 10);
    ck_assert_uint_eq(test.n, 0);
    for (uint32_t i = 0; i < train.n; i++) {
        count[train.labels[i]]++;
    }
    ck_assert_mem_eq(count, per_class, sizeof count);
    /* FNV-1a of all pixels, then of all labels as bytes; the files' SHA-256 are in data/digits/README.md.
     */
    uint64_t h = fnv(train.bytes, 1797 * 64, 0xcbf29ce484222325u);
    for (uint32_t i = 0; i < train.n; i++) {
        uint8_t label = (uint8_t)train.labels[i];
        h = fnv(&label, 1, h);
    }
    ck_assert_msg(h == 0x99755255092d82a1u, "%016llx", (unsigned long long)h);
    float rows[2 * 64];
    static const uint32_t which[] = {1, 0};
    kedge_dataset_gather(&train, which, 2, rows);
    ck_assert_float_eq(rows[64 + 2], 5 * 0.0625f); /* the first image begins 0 0 5 13 */
    ck_assert_float_eq(rows[64 + 3], 13 * 0.0625f);
    ck_assert_int_eq(train.labels[0], 0);
    kedge_dataset_deinit(&train);
}
END_TEST

START_TEST(a_split_is_the_same_every_time_and_loses_nothing)
{
    struct kedge_dataset a, a_test, b, b_test, all, none;
    uint64_t sum[2] = {0};
    ck_assert_int_eq(load("{\"train\":" DIGITS ",\"split\":\"0.9\"}", &a, &a_test, NULL), KEDGE_OK);
    ck_assert_int_eq(load("{\"train\":" DIGITS ",\"split\":\"0.9\"}", &b, &b_test, NULL), KEDGE_OK);
    ck_assert_int_eq(load("{\"train\":" DIGITS "}", &all, &none, NULL), KEDGE_OK);
    ck_assert_uint_eq(a.n, 1617);
    ck_assert_uint_eq(a_test.n, 180);
    ck_assert_mem_eq(a.bytes, b.bytes, (size_t)a.n * 64);
    ck_assert_mem_eq(a_test.labels, b_test.labels, a_test.n * sizeof *a_test.labels);
    for (size_t i = 0; i < (size_t)all.n * 64; i++) {
        sum[0] += all.bytes[i];
        sum[1] += i < (size_t)a.n * 64 ? a.bytes[i] : a_test.bytes[i - (size_t)a.n * 64];
    }
    ck_assert_uint_eq(sum[0], sum[1]);
    kedge_dataset_deinit(&a);
    kedge_dataset_deinit(&a_test);
    kedge_dataset_deinit(&b);
    kedge_dataset_deinit(&b_test);
    kedge_dataset_deinit(&all);
}
END_TEST

static const struct {
    const char *bytes;
    size_t len;
    const char *says;
} bad_idx[] = {
    {"", 0, "missing (an empty file)"},
    {"PK\x03\x04\0\0\0\0", 8, "not an IDX file: first bytes are 50 4b 03 04 (a zip archive)"},
    {"\x1f\x8b\x08\0\0\0\0\0", 8, "gunzip it first"},
    {"1,2,3\n4,5,6\n", 12, "(text)"},
    {"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", 12, "type 0x0d with 1 dimensions"},
    {"\0\0\x08\0", 4, "type 0x08 with 0 dimensions"},
    {"\0\0\x08\x05\0\0\0\x01", 8, "with 5 dimensions"},
    {"\0\0\x08\x01\0\0\0\x03"
     "ab",
     10, "promises 3 values, found 2"},
    {"\0\0\x08\x01\0\0\0\x03"
     "abcd",
     12, "promises 3 values, found 4"},
    {"\0\0\x08\x02\0\0\0\x03", 8, "promises"},
    {"\0\0\x08\x01\0\0\0\0", 8, "dimension 0 is 0"},
    {"\0\0\x08\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 20, "dimension 2"},
};

START_TEST(bad_idx_files_are_described)
{
    struct kedge_idx idx;
    struct kedge_diag diag = {0};
    uint8_t *exact = kedge_mem_new(bad_idx[_i].len, 1);
    memcpy(exact, bad_idx[_i].bytes, bad_idx[_i].len);
    ck_assert_int_eq(kedge_idx_read(kedge_view_of(exact, bad_idx[_i].len), &idx, &diag), KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, bad_idx[_i].says);
    kedge_mem_free(exact);
}
END_TEST

START_TEST(idx_round_trips)
{
    static const uint32_t dims[] = {2, 1, 3};
    static const uint8_t data[] = {1, 2, 3, 4, 5, 255};
    struct kedge_buf out;
    struct kedge_idx idx;
    kedge_buf_init(&out, 256);
    kedge_idx_put_header(dims, 3, &out);
    kedge_buf_put(&out, data, sizeof data);
    ck_assert_int_eq(kedge_idx_read(kedge_buf_view(&out), &idx, NULL), KEDGE_OK);
    ck_assert_uint_eq(idx.dims_count, 3);
    ck_assert_mem_eq(idx.dims, dims, sizeof dims);
    ck_assert_mem_eq(idx.data, data, sizeof data);
    kedge_buf_deinit(&out);
}
END_TEST

START_TEST(csv_and_npz_load_as_data_sets)
{
    char csv[256], npz[256], json[1024];
    struct kedge_dataset train, test;
    struct kedge_diag diag = {0};
    write_file("a.csv", "f,g,y\n1,2,0\n3,4,2\n", 18, csv);
    write_file("a.npz", numpy_deflated, sizeof numpy_deflated, npz);
    snprintf(json, sizeof json,
             "{\"train\":{\"format\":\"csv\",\"path\":\"%s\",\"label\":\"y\",\"scale\":\"0.5\"}}", csv);
    ck_assert_msg(load(json, &train, &test, &diag) == KEDGE_OK, "%s", diag.text);
    ck_assert_uint_eq(train.n, 2);
    ck_assert_uint_eq(train.classes, 3);
    ck_assert_float_eq(train.reals[3], 2.0f);
    kedge_dataset_deinit(&train);
    snprintf(json, sizeof json, "{\"train\":{\"format\":\"npz\",\"path\":\"%s\",\"scale\":\"0.5\"}}", npz);
    ck_assert_msg(load(json, &train, &test, &diag) == KEDGE_OK, "%s", diag.text);
    ck_assert_uint_eq(train.features, 4);
    ck_assert_uint_eq(train.classes, 8);
    float row[4];
    static const uint32_t two[] = {2};
    kedge_dataset_gather(&train, two, 1, row);
    ck_assert_float_eq(row[3], 110.0f);
    kedge_dataset_deinit(&train);
    snprintf(json, sizeof json, "{\"train\":{\"format\":\"npz\",\"path\":\"%s\"},\"test\":" DIGITS "}", npz);
    ck_assert_int_eq(load(json, &train, &test, &diag), KEDGE_E_SHAPE);
    ASSERT_SAYS(diag, "test data: 64 features, but the train data have 4");
    snprintf(json, sizeof json, "{\"train\":{\"format\":\"idx\",\"images\":\"%s\",\"labels\":\"%s\"}}", npz,
             npz);
    ck_assert_int_eq(load(json, &train, &test, &diag), KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "a.npz: not an IDX file: first bytes are 50 4b 03 04 (a zip archive)");
    snprintf(json, sizeof json, "{\"train\":{\"format\":\"idx\",\"images\":\"%s/none\",\"labels\":\"x\"}}",
             dir);
    ck_assert_int_eq(load(json, &train, &test, &diag), KEDGE_E_NOT_FOUND);
    ASSERT_SAYS(diag, "/none: No such file");
    snprintf(json, sizeof json, "{\"train\":{\"format\":\"csv\",\"path\":\"%s\"}}", dir);
    ck_assert_int_eq(load(json, &train, &test, &diag), KEDGE_E_IO);
    ASSERT_SAYS(diag, "Is a directory");
}
END_TEST

/* ---- what a binding makes of a table: names, holes, scales ---- */

static int load_table(const char *text, const char *source, const char *rest, struct kedge_dataset *train,
                      struct kedge_dataset *test, struct kedge_diag *d)
{
    char json[1024], path[256];
    write_file("a.csv", text, strlen(text), path);
    snprintf(json, sizeof json, "{\"train\":{\"format\":\"csv\",\"path\":\"%s\"%s}%s}", path, source, rest);
    return load(json, train, test, d);
}

static const char flowers[] = "w;colour;kind\n1,5;3;rose\n;1;tulip\n2,5;5;rose\n8;7;tulip\n";

START_TEST(names_become_classes_and_holes_means)
{
    struct kedge_dataset train, test;
    struct kedge_diag diag = {0};
    const char *source = ",\"label\":\"kind\",\"separator\":\";\",\"decimal\":\",\",\"missing\":\"mean\","
                         "\"header\":true";
    ck_assert_msg(load_table(flowers, source, ",\"classes\":[\"tulip\",\"rose\"]", &train, &test, &diag)
                      == KEDGE_OK,
                  "%s", diag.text);
    ck_assert_uint_eq(train.n, 4);
    ck_assert_uint_eq(train.classes, 2);
    static const int32_t labels[] = {1, 0, 1, 0};
    ck_assert_mem_eq(train.labels, labels, sizeof labels);
    ck_assert_float_eq(train.reals[2], 4.0f); /* (1.5 + 2.5 + 8) / 3 */
    kedge_dataset_deinit(&train);
    ck_assert_int_lt(load_table(flowers, source, ",\"classes\":[\"tulip\",\"lily\"]", &train, &test, &diag),
                     0);
    ASSERT_SAYS(diag, "train data: /tmp/");
    ASSERT_SAYS(diag, "a.csv: line 2, column 3 (\"kind\"): found \"rose\", expected one of the \"classes\": "
                      "\"tulip\", \"lily\"");
    ck_assert_int_lt(load_table("a,b,y\n1,,0\n2,,1\n", ",\"missing\":\"mean\"", "", &train, &test, &diag), 0);
    ASSERT_SAYS(diag, "a.csv: \"b\": all values of the training samples are missing");
    ck_assert_int_lt(load_table("a,y\n1,0\n2,2\n", "", ",\"classes\":[\"x\",\"y\"]", &train, &test, &diag),
                     0);
    ASSERT_SAYS(diag, "found \"0\", expected one of the \"classes\"");
    ck_assert_int_eq(load("{\"train\":" DIGITS ",\"classes\":[\"0\",\"1\"]}", &train, &test, &diag),
                     KEDGE_E_SHAPE);
    ASSERT_SAYS(diag, "labels up to 9, but \"classes\" names 2");
}
END_TEST

/* Mean and deviation are those of the samples that are trained on; what is held out changes neither. */
static void check_standardized(const struct kedge_dataset *train, const struct kedge_dataset *test,
                               const struct kedge_dataset *raw, const struct kedge_dataset *raw_test)
{
    for (uint32_t f = 0; f < raw->features; f++) {
        double mean = 0, squares = 0;
        for (uint32_t i = 0; i < raw->n; i++) {
            mean += (double)kedge_dataset_value(raw, i, f) / raw->n;
        }
        for (uint32_t i = 0; i < raw->n; i++) {
            double off = (double)kedge_dataset_value(raw, i, f) - mean;
            squares += off * off / raw->n;
        }
        double deviation = squares > 1e-12 ? sqrt(squares) : 1;
        for (uint32_t i = 0; i < raw->n; i++) {
            ck_assert_double_eq_tol((double)kedge_dataset_value(train, i, f),
                                    ((double)kedge_dataset_value(raw, i, f) - mean) / deviation, 1e-5);
        }
        for (uint32_t i = 0; i < raw_test->n; i++) {
            ck_assert_double_eq_tol((double)kedge_dataset_value(test, i, f),
                                    ((double)kedge_dataset_value(raw_test, i, f) - mean) / deviation, 1e-5);
        }
    }
}

START_TEST(scales_are_those_of_the_training_samples)
{
    struct kedge_dataset train, test, raw, raw_test;
    struct kedge_diag diag = {0};
    char text[8192] = "a,b,c,y\n";
    for (int i = 0; i < 100; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%d.5,0.1,%d\n", 1000000 + i * i, i % 7,
                 i % 3);
    }
    ck_assert_int_eq(load_table(text, "", ",\"split\":\"0.7\"", &raw, &raw_test, &diag), KEDGE_OK);
    ck_assert_int_eq(
        load_table(text, "", ",\"split\":\"0.7\",\"standardize\":\"local\"", &train, &test, &diag), KEDGE_OK);
    ck_assert_uint_eq(test.n, 30);
    check_standardized(&train, &test, &raw, &raw_test);
    ck_assert_float_eq(kedge_dataset_value(&train, 5, 2),
                       0.0f); /* constant: shifted, not divided by nothing */
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
    kedge_dataset_deinit(&raw);
    kedge_dataset_deinit(&raw_test);
    ck_assert_int_eq(load("{\"train\":" DIGITS ",\"split\":\"0.9\"}", &raw, &raw_test, NULL), KEDGE_OK);
    ck_assert_int_eq(
        load("{\"train\":" DIGITS ",\"split\":\"0.9\",\"standardize\":\"local\"}", &train, &test, NULL),
        KEDGE_OK);
    check_standardized(&train, &test, &raw, &raw_test); /* bytes, too */
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
    kedge_dataset_deinit(&raw);
    kedge_dataset_deinit(&raw_test);
}
END_TEST

/* A job that predicts numbers: labels of every format are reals. */
START_TEST(targets_are_reals_where_a_job_predicts_numbers)
{
    struct kedge_data_binding b;
    struct kedge_dataset train, test;
    struct kedge_diag diag = {0};
    char path[256], json[512];
    static const char prices[] = "a,price\n1,-2.5\n2,7\n3,0.125\n";
    write_file("a.csv", prices, sizeof prices - 1, path);
    snprintf(json, sizeof json, "{\"train\":{\"format\":\"csv\",\"path\":\"%s\"},\"split\":\"0.7\"}", path);
    ck_assert_int_eq(read_binding(json, &b, &diag), KEDGE_OK);
    ck_assert_int_lt(kedge_data_binding_load(&b, &train, &test, &diag), 0);
    b.target = KEDGE_CSV_TARGET_REAL;
    ck_assert_msg(kedge_data_binding_load(&b, &train, &test, &diag) == KEDGE_OK, "%s", diag.text);
    ck_assert(train.is_real && test.is_real && train.n == 2 && test.n == 1 && train.classes == 0);
    float sum =
        kedge_dataset_target(&train, 0) + kedge_dataset_target(&train, 1) + kedge_dataset_target(&test, 0);
    ck_assert_float_eq(sum, 4.625f);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
    ck_assert_int_eq(read_binding("{\"train\":" DIGITS "}", &b, &diag), KEDGE_OK);
    b.target = KEDGE_CSV_TARGET_REAL;
    ck_assert_int_eq(kedge_data_binding_load(&b, &train, &test, &diag), KEDGE_OK);
    ck_assert(train.is_real);
    ck_assert_float_eq(kedge_dataset_target(&train, 9), 9.0f);
    kedge_dataset_deinit(&train);
}
END_TEST

START_TEST(facts_are_told_before_a_job_needs_them)
{
    struct kedge_data_binding b;
    struct kedge_data_facts facts;
    struct kedge_diag diag = {0};
    char path[256], other[256], json[1024];
    write_file("a.csv", flowers, sizeof flowers - 1, path);
    static const char one[] = "w;colour;kind\n1,5;3;tulip\n";
    write_file("b.csv", one, sizeof one - 1, other);
    snprintf(json, sizeof json,
             "{\"train\":{\"format\":\"csv\",\"path\":\"%s\",\"decimal\":\",\",\"missing\":\"drop\"},"
             "\"test\":{\"format\":\"csv\",\"path\":\"%s\",\"decimal\":\",\"}}",
             path, other);
    ck_assert_int_eq(read_binding(json, &b, &diag), KEDGE_OK);
    ck_assert_msg(kedge_data_binding_facts(&b, &facts, &diag) == KEDGE_OK, "%s", diag.text);
    ck_assert_uint_eq(facts.train, 3);
    ck_assert_uint_eq(facts.test, 1);
    ck_assert_uint_eq(facts.features, 2);
    ck_assert_uint_eq(facts.dropped, 1);
    ck_assert_str_eq(facts.columns[0].name, "w");
    ck_assert_uint_eq(facts.columns[0].missing, 1);
    ck_assert_str_eq(facts.columns[1].name, "colour");
    ck_assert_uint_eq(facts.columns[1].missing, 0);
    ck_assert(facts.wants_classes && !facts.is_real);
    ck_assert_uint_eq(facts.classes_count, 2);
    ck_assert_str_eq(facts.classes[0].name, "rose");
    ck_assert_uint_eq(facts.classes[0].train, 2);
    ck_assert_uint_eq(facts.classes[0].test, 0);
    ck_assert_str_eq(facts.classes[1].name, "tulip");
    ck_assert_uint_eq(facts.classes[1].train, 1);
    ck_assert_uint_eq(facts.classes[1].test, 1);
    kedge_data_facts_deinit(&facts);
    ck_assert_int_eq(read_binding("{\"train\":" DIGITS ",\"split\":\"0.5\"}", &b, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_data_binding_facts(&b, &facts, &diag), KEDGE_OK);
    ck_assert(!facts.columns && !facts.wants_classes && facts.classes_count == 10);
    ck_assert_str_eq(facts.classes[4].name, "4");
    ck_assert_uint_eq(facts.classes[4].train + facts.classes[4].test, 181);
    kedge_data_facts_deinit(&facts);
    static const char reals[] = "w;kind\n1;-1\n1;2,5\n";
    write_file("b.csv", reals, sizeof reals - 1, other);
    snprintf(json, sizeof json, "{\"train\":{\"format\":\"csv\",\"path\":\"%s\",\"decimal\":\",\"}}", other);
    ck_assert_int_eq(read_binding(json, &b, &diag), KEDGE_OK);
    ck_assert_msg(kedge_data_binding_facts(&b, &facts, &diag) == KEDGE_OK, "%s", diag.text);
    ck_assert(facts.is_real && facts.classes_count == 0);
    ck_assert_float_eq(facts.least, -1.0f);
    ck_assert_float_eq(facts.most, 2.5f);
    kedge_data_facts_deinit(&facts);
    unlink(other);
}
END_TEST

START_TEST(images_and_labels_must_agree)
{
    struct kedge_dataset train, test;
    struct kedge_diag diag = {0};
    ck_assert_int_eq(load("{\"train\":{\"format\":\"idx\",\"images\":\"data/digits/digits-labels.idx\","
                          "\"labels\":\"data/digits/digits-labels.idx\"}}",
                          &train, &test, &diag),
                     KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "are these the labels?");
    ck_assert_int_eq(load("{\"train\":{\"format\":\"idx\",\"images\":\"data/digits/digits-images.idx\","
                          "\"labels\":\"data/digits/digits-images.idx\"}}",
                          &train, &test, &diag),
                     KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "digits-images.idx: 3 dimensions, 1797 labels: expected one dimension");
}
END_TEST

#define CSV "{\"format\":\"csv\",\"path\":\"a\","

static const struct {
    const char *json, *says;
} bad_binding[] = {
    {"{}", "\"train\" is missing"},
    {"[]", "expected an object"},
    {"{\"train\":{}}", "\"format\""},
    {"{\"train\":{\"format\":\"png\"}}", "\"format\""},
    {"{\"train\":" DIGITS ",\"x\":1}", "unknown key \"x\""},
    {"{\"train\":" DIGITS ",\"split\":true}", "\"split\": expected"},
    {"{\"train\":" DIGITS ",\"split\":\"1.1\"}", "\"split\""},
    {"{\"train\":" DIGITS ",\"split\":\"0.5\",\"test\":" DIGITS "}", "not both"},
    {"{\"train\":{\"format\":\"idx\",\"images\":\"a\"}}", "\"labels\" is missing"},
    {"{\"train\":{\"format\":\"csv\",\"path\":\"a\",\"images\":\"b\"}}", "unknown key \"images\""},
    {"{\"train\":{\"format\":\"csv\",\"path\":\"a\",\"scale\":\"x\"}}", "\"scale\""},
    {"{\"train\":{\"format\":\"csv\",\"path\":7}}", "\"path\": expected a string"},
    {"{\"train\":" CSV "\"label\":0}}", "data: train: \"label\""},
    {"{\"train\":" CSV "\"label\":\"\"}}", "\"label\""},
    {"{\"train\":" CSV "\"separator\":\"::\"}}", "\"separator\": expected one of"},
    {"{\"train\":" CSV "\"separator\":\"x\"}}", "\"separator\": expected one of"},
    {"{\"train\":" CSV "\"decimal\":\",\",\"separator\":\",\"}}", "\"decimal\": a comma cannot be"},
    {"{\"train\":" CSV "\"missing\":\"zero\"}}", "\"missing\": expected \"refuse\", \"drop\" or \"mean\""},
    {"{\"train\":" CSV "\"header\":1}}", "\"header\""},
    {"{\"train\":" CSV "\"ignore\":\"id\"}}", "\"ignore\": expected a list of columns"},
    {"{\"train\":" CSV "\"ignore\":[0]}}", "\"ignore\": expected at most 64 numbers of columns"},
    {"{\"train\":" CSV "\"ignore\":[true]}}", "\"ignore\": expected names of 1 to 127 bytes"},
    {"{\"train\":" DIGITS ",\"classes\":[\"a\"]}", "data: \"classes\": expected a list of 2 to 1024 names"},
    {"{\"train\":" DIGITS ",\"classes\":[\"a\",\"\"]}", "\"classes\": expected names of 1 to 127 bytes"},
    {"{\"train\":" DIGITS ",\"classes\":[\"a\",\"b\",\"a\"]}", "\"classes\": \"a\" is there twice"},
    {"{\"train\":" DIGITS ",\"standardize\":true}", "\"standardize\": expected \"none\" or \"local\""},
};

START_TEST(bad_bindings_are_refused_by_name)
{
    struct kedge_data_binding b;
    struct kedge_diag diag = {0};
    ck_assert_int_lt(read_binding(bad_binding[_i].json, &b, &diag), 0);
    ASSERT_SAYS(diag, bad_binding[_i].says);
}
END_TEST

#define TEXT(more) "{\"format\":\"text\",\"path\":\"%s\"," more "}"

static int load_text(const char *source, const char *path, const char *rest, struct kedge_dataset *train,
                     struct kedge_dataset *test, struct kedge_diag *d)
{
    char json[1024], whole[512];
    snprintf(whole, sizeof whole, source, path); /* NOLINT: formats of this file */
    snprintf(json, sizeof json, "{\"train\":%s%s}", whole, rest);
    return load(json, train, test, d);
}

/* Windows overlap in memory, labels are the characters behind them, bytes outside the alphabet are spaces. */
START_TEST(texts_are_windows)
{
    struct kedge_dataset train, test;
    char path[256];
    float row[3];
    write_file("a.txt", "ab bc\xffxa", 8, path);
    ck_assert_int_eq(
        load_text(TEXT("\"window\":3,\"step\":2,\"alphabet\":\"xa bc\""), path, "", &train, &test, NULL),
        KEDGE_OK);
    ck_assert_uint_eq(train.n, 3);
    ck_assert_uint_eq(train.features, 3);
    ck_assert_uint_eq(train.classes, 4);
    static const int32_t labels[] = {3, 2, 1}; /* b, \xff, a */
    static const float rows[3][3] = {{1, 3, 2}, {2, 3, 4}, {4, 2, 0}};
    for (uint32_t i = 0; i < 3; i++) {
        kedge_dataset_gather(&train, &i, 1, row);
        ck_assert_mem_eq(row, rows[i], sizeof row);
        ck_assert_int_eq(train.labels[i], labels[i]);
        ck_assert_float_eq(kedge_dataset_value(&train, i, 2), rows[i][2]);
    }
    struct kedge_dataset picked;
    static const uint32_t rows_of[] = {2, 0};
    ck_assert_int_eq(kedge_dataset_pick(&train, rows_of, 2, &picked), KEDGE_OK);
    kedge_dataset_gather(&picked, NULL, 1, row);
    ck_assert_mem_eq(row, rows[2], sizeof row);
    kedge_dataset_deinit(&picked);
    kedge_dataset_deinit(&train);
}
END_TEST

/* A split is by place, and no character is on both sides: as many windows as share one are left out. */
START_TEST(a_text_is_split_by_place)
{
    struct kedge_dataset train, test;
    char path[256], text[200];
    float first[5], last[5];
    for (int i = 0; i < 200; i++) {
        text[i] = (char)('a' + i % 26);
    }
    write_file("b.txt", text, sizeof text, path);
    ck_assert_int_eq(load_text(TEXT("\"window\":5"), path, ",\"split\":\"0.5\"", &train, &test, NULL),
                     KEDGE_OK);
    ck_assert_uint_eq(train.n, 97); /* of 195 */
    ck_assert_uint_eq(test.n, 195 - 97 - 6);
    uint32_t end = train.n - 1;
    kedge_dataset_gather(&train, &end, 1, last);
    kedge_dataset_gather(&test, NULL, 1, first);
    uint32_t shift = (103 - 96) % 26; /* characters between their beginnings */
    ck_assert_float_eq(first[0], (float)(((uint32_t)last[0] - 53 + shift) % 26 + 53));
    ck_assert_uint_ge(103, 96 + 5 + 1); /* the label's place is the last that training saw */
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
}
END_TEST

START_TEST(bad_texts_are_described)
{
    static const struct {
        const char *source, *says;
    } cases[] = {{TEXT("\"window\":8"), "8 bytes, expected more than a window of 8"},
                 {TEXT("\"window\":0"), "\"window\""},
                 {TEXT("\"window\":4097"), "\"window\""},
                 {TEXT("\"step\":1"), "\"window\""},
                 {TEXT("\"window\":2,\"step\":0"), "\"step\""},
                 {TEXT("\"window\":2,\"alphabet\":\"\""), "\"alphabet\""},
                 {TEXT("\"window\":2,\"alphabet\":\"aba\""), "is there twice"},
                 {TEXT("\"window\":2,\"scale\":\"2\""), "unknown key \"scale\""}};
    struct kedge_dataset train, test;
    struct kedge_diag d = {.text = ""};
    char path[256];
    write_file("c.txt", "abcdefgh", 8, path);
    ck_assert_int_lt(load_text(cases[_i].source, path, "", &train, &test, &d), 0);
    ASSERT_SAYS(d, cases[_i].says);
    ck_assert_int_lt(load_text(TEXT("\"window\":6"), path, ",\"split\":\"0.5\"", &train, &test, &d), 0);
    ASSERT_SAYS(d, "too few");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("dataset");
    if (!mkdtemp(dir)) {
        return 1;
    }
    tcase_add_test(tc, digits_are_the_1797_images_of_uci);
    tcase_add_test(tc, a_split_is_the_same_every_time_and_loses_nothing);
    tcase_add_loop_test(tc, bad_idx_files_are_described, 0, sizeof bad_idx / sizeof bad_idx[0]);
    tcase_add_test(tc, idx_round_trips);
    tcase_add_test(tc, csv_and_npz_load_as_data_sets);
    tcase_add_test(tc, texts_are_windows);
    tcase_add_test(tc, a_text_is_split_by_place);
    tcase_add_loop_test(tc, bad_texts_are_described, 0, 8);
    tcase_add_test(tc, names_become_classes_and_holes_means);
    tcase_add_test(tc, scales_are_those_of_the_training_samples);
    tcase_add_test(tc, targets_are_reals_where_a_job_predicts_numbers);
    tcase_add_test(tc, facts_are_told_before_a_job_needs_them);
    tcase_add_test(tc, images_and_labels_must_agree);
    tcase_add_loop_test(tc, bad_bindings_are_refused_by_name, 0, sizeof bad_binding / sizeof bad_binding[0]);
    int status = run_suite(suite_create("dataset"), tc);
    static const char *const names[] = {"a.csv", "a.npz"};
    for (int i = 0; i < 2; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    return status;
}
