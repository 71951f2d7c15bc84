/* When a group whose updates pull apart is cut in two (CFL), worked out by hand. With a scale of 1 a value
 * counts halves, so that an update of 10 along one axis is 5 long. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/gram.h"
#include "common/base/os/file.h"
#include "common/tensor/safetensors.h"
#include "round/split.h"

enum { VALUES = 4, MOST = KEDGE_GRAM_VECTORS_MAX + 4 };

static char dir[64];
static char paths[MOST][KEDGE_PATH_MAX];
static struct kedge_blob_at at[MOST];
static uint32_t part[MOST];
static struct kedge_job_spec spec;
static struct kedge_layout layout;

static void set_up(const char *options)
{
    char text[600];
    struct kedge_diag d = {.text = ""};
    snprintf(
        text, sizeof text,
        "{\"name\":\"j\",\"tenants\":[\"a\"],\"data\":\"x\",\"rounds\":3,\"scale\":1,"
        "\"model\":{\"preset\":\"mclr\",\"inputs\":1,\"classes\":2},\"strategy\":\"cfl\",\"options\":{%s}}",
        options);
    ck_assert_msg(kedge_job_spec_parse(kedge_view_str(text), &spec, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_int_eq(kedge_model_layout(&spec.model, &layout, NULL), KEDGE_OK);
    snprintf(dir, sizeof dir, "/tmp/kedge-split-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void tear_down(void)
{
    kedge_layout_deinit(&layout);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

static void write_update(size_t k, const int32_t values[VALUES])
{
    struct kedge_buf file;
    kedge_buf_init(&file, 1 << 16);
    ck_assert_int_eq(kedge_safetensors_header(&layout, KEDGE_DTYPE_I32, &file), KEDGE_OK);
    kedge_buf_put(&file, values, VALUES * sizeof values[0]);
    snprintf(paths[k], sizeof paths[k], "%s/%zu", dir, k);
    FILE *f = fopen(paths[k], "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(file.ptr, 1, file.len, f), file.len);
    ck_assert_int_eq(fclose(f), 0);
    at[k] = (struct kedge_blob_at){.path = paths[k]};
    kedge_buf_deinit(&file);
}

/* The first value of each update, all others 0. */
static const struct {
    const char *options;
    int32_t values[5];
    size_t count;
    bool is_cut;
    uint32_t part[5];
} cases[] = {
    /* the mean is 0, the longest 5 */
    {"\"split_mean\":\"1\",\"split_max\":\"4\"", {10, -10, 10, -10}, 4, true, {0, 1, 0, 1}},
    {"\"split_mean\":\"1\",\"split_max\":\"5\"", {10, -10, 10, -10}, 4, false, {0}},
    {"\"split_mean\":\"0\",\"split_max\":\"4\"", {10, -10, 10, -10}, 4, false, {0}},
    /* (5 + 5 + 5 − 5) / 4 = 2.5 */
    {"\"split_mean\":\"2.5\",\"split_max\":\"4\"", {10, 10, 10, -10}, 4, false, {0}},
    {"\"split_mean\":\"2.6\",\"split_max\":\"4\"", {10, 10, 10, -10}, 4, true, {0, 0, 0, 1}},
    /* what is cut off is never the first, whichever part is larger */
    {"\"split_mean\":\"2.6\",\"split_max\":\"4\"", {-10, 10, 10, 10}, 4, true, {0, 1, 1, 1}},
    /* two are no group to cut; three are */
    {"\"split_mean\":\"9\",\"split_max\":\"1\"", {10, -10}, 2, false, {0}},
    {"\"split_mean\":\"9\",\"split_max\":\"1\"", {10, -10, -10}, 3, true, {0, 1, 1}},
    {"\"split_mean\":\"9\",\"split_max\":\"1\"", {10}, 1, false, {0}},
    {"\"split_mean\":\"9\",\"split_max\":\"1\"", {0}, 0, false, {0}},
    /* an update of zeros goes with the first part; one alone is nothing to cut by */
    {"\"split_mean\":\"9\",\"split_max\":\"1\"", {0, 10, -10, 0, -10}, 5, true, {0, 0, 1, 0, 1}},
    {"\"split_mean\":\"9\",\"split_max\":\"1\"", {0, 10, 0}, 3, false, {0}},
    {"\"split_mean\":\"9\",\"split_max\":\"0\"", {0, 0, 0}, 3, false, {0}},
};

START_TEST(a_group_that_pulls_apart)
{
    struct kedge_diag d = {.text = ""};
    bool is_cut;
    set_up(cases[_i].options);
    for (size_t k = 0; k < cases[_i].count; k++) {
        const int32_t values[VALUES] = {cases[_i].values[k], 0, 0, 0};
        write_update(k, values);
        part[k] = 7;
    }
    ck_assert_msg(kedge_compute_split(&layout, &spec, at, cases[_i].count, part, &is_cut, &d) == KEDGE_OK,
                  "%s", d.text);
    ck_assert_int_eq(is_cut, cases[_i].is_cut);
    for (size_t k = 0; k < cases[_i].count; k++) {
        ck_assert_uint_eq(part[k], cases[_i].part[k]);
    }
    tear_down();
}
END_TEST

/* More than inner products are made of: the others go where the mean update is nearer. Both means are (5, 0,
 * 1, 0) and (−5, 0, 1, 0) long, so that an update along the third axis is as near to one as to the other. */
START_TEST(the_others_follow)
{
    static const int32_t others[4][VALUES] = {{3, 0, 1, 0}, {-1, 0, 0, 0}, {0, 0, 4, 0}, {0, 0, 0, 0}};
    static const uint32_t expected[4] = {0, 1, 0, 0};
    struct kedge_diag d = {.text = ""};
    bool is_cut;
    set_up("\"split_mean\":\"2\",\"split_max\":\"4\"");
    for (size_t k = 0; k < KEDGE_GRAM_VECTORS_MAX; k++) {
        const int32_t values[VALUES] = {k % 3 == 0 ? 10 : -10, 0, 2, 0};
        write_update(k, values);
    }
    for (size_t k = 0; k < 4; k++) {
        write_update(KEDGE_GRAM_VECTORS_MAX + k, others[k]);
    }
    ck_assert_msg(kedge_compute_split(&layout, &spec, at, MOST, part, &is_cut, &d) == KEDGE_OK, "%s", d.text);
    ck_assert(is_cut);
    for (size_t k = 0; k < KEDGE_GRAM_VECTORS_MAX; k++) {
        ck_assert_uint_eq(part[k], k % 3 != 0);
    }
    for (size_t k = 0; k < 4; k++) {
        ck_assert_uint_eq(part[KEDGE_GRAM_VECTORS_MAX + k], expected[k]);
    }
    tear_down();
}
END_TEST

START_TEST(not_before_it_is_time)
{
    set_up("\"split_after\":\"2\"");
    ck_assert(!kedge_compute_split_is_open(&spec, 1) && kedge_compute_split_is_open(&spec, 2));
    ck_assert_uint_eq(kedge_job_spec_groups_most(&spec), KEDGE_GROUPS_USUAL);
    ck_assert_uint_eq(kedge_job_spec_models(&spec), 1);
    spec.strategy = kedge_strategy_find("fedavg");
    ck_assert(!kedge_compute_split_is_open(&spec, 2));
    tear_down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("compute-split");
    TCase *t = tcase_create("split");
    tcase_add_loop_test(t, a_group_that_pulls_apart, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(t, the_others_follow);
    tcase_add_test(t, not_before_it_is_time);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
