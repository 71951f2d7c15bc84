/* IDX, CSV and data sets: the digits as they are, and every file that is not what it says. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/tensor/csv.h"
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
    kedge_idx_write(dims, 3, data, &out);
    ck_assert_int_eq(kedge_idx_read(kedge_buf_view(&out), &idx, NULL), KEDGE_OK);
    ck_assert_uint_eq(idx.dims_count, 3);
    ck_assert_mem_eq(idx.dims, dims, sizeof dims);
    ck_assert_mem_eq(idx.data, data, sizeof data);
    kedge_buf_deinit(&out);
}
END_TEST

static const struct {
    const char *text, *label;
    uint32_t rows;
    float first[2];
    int32_t last_label;
} good_csv[] = {
    {"1,2,0\n3,4,1\n", "last", 2, {1, 2}, 1},
    {"1,2,0\r\n3,4,7", "last", 2, {1, 2}, 7},
    {"a,b,class\n-1.5e2, +.5 ,3\n\n\n", "class", 1, {-150, 0.5f}, 3},
    {"\"class\",\"b\",\"c\"\n2,1E-1,9\n1,0,0\n", "class", 2, {0.1f, 9}, 1},
    {"x,last,y\n1,5,2\n", "last", 1, {1, 2}, 5}, /* a column of that name is meant */
};

START_TEST(csv_reads)
{
    struct kedge_csv csv;
    struct kedge_diag diag = {0};
    ck_assert_msg(kedge_csv_read(kedge_view_str(good_csv[_i].text), good_csv[_i].label, &csv, &diag)
                      == KEDGE_OK,
                  "%s", diag.text);
    ck_assert_uint_eq(csv.rows, good_csv[_i].rows);
    ck_assert_uint_eq(csv.features, 2);
    ck_assert_float_eq(csv.x[0], good_csv[_i].first[0]);
    ck_assert_float_eq(csv.x[1], good_csv[_i].first[1]);
    ck_assert_int_eq(csv.labels[csv.rows - 1], good_csv[_i].last_label);
    kedge_csv_deinit(&csv);
}
END_TEST

static const struct {
    const char *text, *label, *says;
} bad_csv[] = {
    {"", "last", "empty file"},
    {"\n\n", "last", "one column"},
    {"a,b\n", "last", "no line of data"},
    {"5\n6\n", "last", "one column"},
    {"1,2\n3\n", "last", "line 2: 1 columns, expected 2"},
    {"1,2\n3,4,5\n", "last", "line 2: more than 2 columns"},
    {"1,2\n\n3,4\n", "last", "line 2, column 1: found \"\", expected"},
    {"1,2\nx,4\n", "last", "line 2, column 1: found \"x\", expected a number"},
    {"1,2\nnan,4\n", "last", "found \"nan\""},
    {"1,2\n1e999,4\n", "last", "expected a number"},
    {"1,2\n1e39,4\n", "last", "within the range of F32"},
    {"1,2\n3,-1\n", "last", "line 2, column 2: found \"-1\", expected a label"},
    {"1,2\n3,1.5\n", "last", "expected a label"},
    {"1,2\n3,65536\n", "last", "expected a label"},
    {"a,b\n1,2\n", "class", "no column is named \"class\""},
    {"1,2\n1,2\n", "class", "no column is named \"class\""},
    {"1;2;3\n4;5;6\n", "last", "one column"},
    {"PK\x03\x04\xff,", "last", "a zip archive"},
    {"1,2\n+-1,2\n", "last", "expected a number"},
    {"1,2\n+,2\n", "last", "expected a number"},
    {"1,2\n--1,2\n", "last", "expected a number"},
    {"1,2\n,2\n", "last", "found \"\""},
};

START_TEST(bad_csv_files_are_described)
{
    struct kedge_csv csv;
    struct kedge_diag diag = {0};
    int err = kedge_csv_read(kedge_view_str(bad_csv[_i].text), bad_csv[_i].label, &csv, &diag);
    ck_assert_msg(err < 0, "accepted: %s", bad_csv[_i].text);
    ASSERT_SAYS(diag, bad_csv[_i].says);
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

static const struct {
    const char *json, *says;
} bad_binding[] = {
    {"{}", "\"train\" is missing"},
    {"[]", "expected an object"},
    {"{\"train\":{}}", "\"format\""},
    {"{\"train\":{\"format\":\"png\"}}", "\"format\""},
    {"{\"train\":" DIGITS ",\"x\":1}", "unknown key \"x\""},
    {"{\"train\":" DIGITS ",\"split\":0.9}", "\"split\": expected a string"},
    {"{\"train\":" DIGITS ",\"split\":\"1.1\"}", "\"split\""},
    {"{\"train\":" DIGITS ",\"split\":\"0.5\",\"test\":" DIGITS "}", "not both"},
    {"{\"train\":{\"format\":\"idx\",\"images\":\"a\"}}", "\"labels\" is missing"},
    {"{\"train\":{\"format\":\"csv\",\"path\":\"a\",\"images\":\"b\"}}", "unknown key \"images\""},
    {"{\"train\":{\"format\":\"csv\",\"path\":\"a\",\"scale\":\"x\"}}", "\"scale\""},
    {"{\"train\":{\"format\":\"csv\",\"path\":7}}", "\"path\": expected a string"},
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
    tcase_add_loop_test(tc, csv_reads, 0, sizeof good_csv / sizeof good_csv[0]);
    tcase_add_loop_test(tc, bad_csv_files_are_described, 0, sizeof bad_csv / sizeof bad_csv[0]);
    tcase_add_test(tc, csv_and_npz_load_as_data_sets);
    tcase_add_test(tc, texts_are_windows);
    tcase_add_test(tc, a_text_is_split_by_place);
    tcase_add_loop_test(tc, bad_texts_are_described, 0, 8);
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
