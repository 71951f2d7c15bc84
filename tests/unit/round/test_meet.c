/* Where edges meet, and where a last model is near: weights under a cap, the mean of models, a distance,
 * worked out by hand. */
#include "round/last_model.h"
#include "round/meet.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregation/share_cap.h"
#include "common/base/os/file.h"
#include "common/tensor/model.h"
#include "common/tensor/safetensors.h"

static const struct {
    uint32_t cap;
    uint64_t since[3], weight[3];
    int err;
} weights[] = {
    {KEDGE_SHARE_ONE, {30, 10, 20}, {30, 10, 20}, KEDGE_OK},
    {KEDGE_SHARE_ONE, {30, 0, 20}, {30, 0, 20}, KEDGE_OK}, /* an edge that sent nothing since */
    {500000, {30, 10, 10}, {20, 10, 10}, KEDGE_OK},        /* a half of 40 */
    {500000, {30, 0, 10}, {10, 0, 10}, KEDGE_OK},          /* two: equal shares */
    {500000, {30, 0, 0}, {30, 0, 0}, KEDGE_OK},            /* one alone */
    {KEDGE_SHARE_ONE, {0, 0, 0}, {0, 0, 0}, KEDGE_E_ARG},
    {KEDGE_SHARE_ONE, {KEDGE_SHARE_WEIGHT_MAX, 1, 0}, {0, 0, 0}, KEDGE_E_OVERFLOW},
};

START_TEST(weights_by_hand)
{
    struct kedge_job_spec spec = {.tenant_share_max = weights[_i].cap};
    uint64_t weight[3] = {0};
    ck_assert_int_eq(kedge_compute_meeting_weights(&spec, weights[_i].since, 3, weight), weights[_i].err);
    ck_assert_mem_eq(weight, weights[_i].weight, sizeof weight);
}
END_TEST

static int sink(void *arg, struct kedge_view bytes)
{
    kedge_buf_put(arg, bytes.ptr, bytes.len);
    return ((struct kedge_buf *)arg)->err;
}

/* 1 · 3 and 5 · 1 of 4 are 2; an edge of weight 0 has no say. */
START_TEST(models_by_hand)
{
    static const float edge[3][8] = {
        {1, -2, 0, 0.5f, 8, 1, 1, 1}, {5, 2, 4, 0.5f, 0, 1, 1, 1}, {99, 99, 99, 99, 99, 99, 99, 99}};
    static const float met[8] = {2, -1, 1, 0.5f, 6, 1, 1, 1};
    char dir[] = "/tmp/kedge-meet-XXXXXX", path[3][64];
    struct kedge_blob_at paths[3];
    struct kedge_model_spec model;
    struct kedge_layout layout;
    struct kedge_buf file, expected;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(kedge_model_mclr(3, 2, &model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&model, &layout, NULL), KEDGE_OK);
    ck_assert_uint_eq(layout.values_count, 8);
    for (int g = 0; g < 4; g++) {
        kedge_buf_init(g < 3 ? &file : &expected, 4096);
        struct kedge_buf *b = g < 3 ? &file : &expected;
        ck_assert_int_eq(kedge_safetensors_header(&layout, KEDGE_DTYPE_F32, b), KEDGE_OK);
        kedge_buf_put(b, g < 3 ? edge[g] : met, sizeof met);
        if (g < 3) {
            snprintf(path[g], sizeof path[g], "%s/%d", dir, g);
            paths[g] = (struct kedge_blob_at){.path = path[g]};
            ck_assert_int_eq(kedge_file_write(path[g], kedge_buf_view(b), 0600, NULL), KEDGE_OK);
            kedge_buf_deinit(b);
        }
    }
    kedge_buf_init(&file, 4096);
    ck_assert_int_eq(kedge_compute_blend(&layout, paths, (const uint64_t[]){3, 1, 0}, 3,
                                         (struct kedge_sink){.write = sink, .arg = &file}, NULL),
                     KEDGE_OK);
    ck_assert_uint_eq(file.len, expected.len);
    ck_assert_mem_eq(file.ptr, expected.ptr, file.len);
    kedge_buf_clear(&file);
    for (int g = 0; g < 3; g++) { /* from memory into memory: the same values, and nothing else */
        paths[g] = (struct kedge_blob_at){.path = "a model", .values = edge[g]};
    }
    const struct kedge_sink memory = {.write = sink, .arg = &file, .values_only = true};
    ck_assert_int_eq(kedge_compute_blend(&layout, paths, (const uint64_t[]){3, 1, 0}, 3, memory, NULL),
                     KEDGE_OK);
    ck_assert_uint_eq(file.len, sizeof met);
    ck_assert_mem_eq(file.ptr, met, sizeof met);
    kedge_buf_deinit(&file);
    kedge_buf_deinit(&expected);
    kedge_layout_deinit(&layout);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}
END_TEST

static void put(const char *path, const struct kedge_layout *layout, enum kedge_dtype type,
                const void *values)
{
    struct kedge_buf file;
    kedge_buf_init(&file, 4096);
    ck_assert_int_eq(kedge_safetensors_header(layout, type, &file), KEDGE_OK);
    kedge_buf_put(&file, values, 8 * sizeof(float));
    ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&file), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&file);
}

/* From zeros, 12 and 16 quarters are 3 and 4: 5 from zeros, 2 from (3, 2), as far from (5, 4), which comes
 * later. */
START_TEST(last_model_by_hand)
{
    static const float base[8] = {0}, near[8] = {3, 2}, alike[8] = {5, 4};
    static const int32_t update[8] = {12, 16};
    const struct kedge_job_spec spec = {.scale = 2};
    char dir[] = "/tmp/kedge-last-XXXXXX", path[4][64];
    struct kedge_model_spec model;
    struct kedge_layout layout;
    uint32_t group;
    double similarity;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(kedge_model_mclr(3, 2, &model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&model, &layout, NULL), KEDGE_OK);
    for (int i = 0; i < 4; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d", dir, i);
    }
    put(path[0], &layout, KEDGE_DTYPE_F32, base);
    put(path[1], &layout, KEDGE_DTYPE_F32, near);
    put(path[2], &layout, KEDGE_DTYPE_F32, alike);
    put(path[3], &layout, KEDGE_DTYPE_I32, update);
    const struct kedge_blob_at at = {.path = path[3]};
    const struct kedge_blob_at models[] = {{.path = path[0]}, {.path = path[1]}, {.path = path[2]}};
    ck_assert_int_eq(
        kedge_compute_last_model(&spec, &layout, &models[0], &at, models, 3, &group, &similarity, NULL),
        KEDGE_OK);
    ck_assert_uint_eq(group, 1);
    ck_assert(similarity >= 1.0 / 3 && similarity <= 1.0 / 3);
    ck_assert_int_eq(
        kedge_compute_last_model(&spec, &layout, &models[0], &at, models, 1, &group, &similarity, NULL),
        KEDGE_OK);
    ck_assert_uint_eq(group, 0);
    ck_assert(similarity >= 1.0 / 6 && similarity <= 1.0 / 6);
    ck_assert_int_eq(
        kedge_compute_last_model(&spec, &layout, &models[2], NULL, models, 3, &group, &similarity, NULL),
        KEDGE_OK);
    ck_assert_uint_eq(group, 2); /* nothing trained yet: the model itself */
    ck_assert(similarity >= 1 && similarity <= 1);
    kedge_layout_deinit(&layout);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("meet");
    TCase *t = tcase_create("meet");
    tcase_add_loop_test(t, weights_by_hand, 0, sizeof weights / sizeof weights[0]);
    tcase_add_test(t, models_by_hand);
    tcase_add_test(t, last_model_by_hand);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
