/* SCAFFOLD's aggregate and step over files: updates of two halves, worked out by hand. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "common/tensor/safetensors.h"
#include "round/control.h"
#include "round/step.h"
#include "round/update_stream.h"
#include "tests/fixtures/run.h"

enum { VALUES = 4, SITES = 2, SCALE = 4 };

static char dir[64];

static const char *path_of(const char *name)
{
    static char paths[32][128]; /* of a test */
    static unsigned next;
    char *p = paths[next++ % 32];
    snprintf(p, sizeof paths[0], "%s/%s", dir, name);
    return p;
}

static int sink(void *arg, struct kedge_view bytes)
{
    kedge_buf_put(arg, bytes.ptr, bytes.len);
    return ((struct kedge_buf *)arg)->err;
}

static void write_file(const struct kedge_layout *layout, enum kedge_dtype dtype, const char *name,
                       const void *values)
{
    struct kedge_buf file;
    kedge_buf_init(&file, SIZE_MAX / 2);
    ck_assert_int_eq(kedge_safetensors_header(layout, dtype, &file), KEDGE_OK);
    kedge_buf_put(&file, values, (size_t)layout->values_count * 4);
    ck_assert_int_eq(kedge_file_write(path_of(name), kedge_buf_view(&file), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&file);
}

/* The values of a file that was made, which is kept under this name, too. */
static void take(struct kedge_buf *file, const char *name, float ret[VALUES])
{
    memcpy(ret, file->ptr + file->len - VALUES * sizeof *ret, VALUES * sizeof *ret);
    ck_assert_int_eq(kedge_file_write(path_of(name), kedge_buf_view(file), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(file);
}

START_TEST(test_by_hand)
{
    struct kedge_job_spec spec = {.strategy = kedge_strategy_find("scaffold"),
                                  .rule = kedge_rule_find("mean"),
                                  .server = KEDGE_SERVER_CONTROL,
                                  .scale = SCALE,
                                  .tenant_share_max = 1000000,
                                  .control_sites = 4};
    struct kedge_layout layout, update, control;
    /* a model's change, then a control variate's, in 16ths; 1 and 3 samples */
    static const int32_t updates[SITES][2 * VALUES] = {{16, 0, -16, 4, 32, 0, -64, 1},
                                                       {32, 0, 0, 0, 96, 64, 0, 1}};
    static const float base[VALUES] = {1, 2, 3, 4};
    /* 1 + (16 + 3 · 32) / (4 · 16), 3 − 16 / 64, 4 + 4 / 64 */
    static const float mean[VALUES] = {2.75f, 2, 2.75f, 4.0625f};
    static const float half[VALUES] = {1.875f, 2, 2.875f, 4.03125f}; /* with server_lr 1/2 */
    /* (32 + 96) / (4 · 16), 64 / 64, −64 / 64, 2 / 64: each counts once, whatever its samples */
    static const float first[VALUES] = {2, 1, -1, 0.03125f}, second[VALUES] = {4, 2, -2, 0.0625f};
    struct kedge_compute_input inputs[SITES];
    uint64_t weight[SITES];
    struct kedge_compute_weights w = {.weight = weight};
    struct kedge_buf model, state;
    float got[VALUES];
    spec.options = spec.strategy->defaults;
    ck_assert_int_eq(kedge_model_mclr(1, 2, &spec.model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec.model, &layout, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_job_spec_update_layout(&spec, &layout, &update, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_job_spec_control_layout(&layout, &control, NULL), KEDGE_OK);
    ck_assert_uint_eq(update.values_count, 2 * VALUES);
    ck_assert_uint_eq(control.values_count, VALUES);
    ck_assert_ptr_nonnull(kedge_layout_find(&update, "control/0.bias"));
    write_file(&layout, KEDGE_DTYPE_F32, "base", base);
    for (size_t i = 0; i < SITES; i++) {
        write_file(&update, KEDGE_DTYPE_I32, i ? "u1" : "u0", updates[i]);
        inputs[i] =
            (struct kedge_compute_input){.update.path = path_of(i ? "u1" : "u0"), .facts.samples = i ? 3 : 1};
        ck_assert_int_eq(kedge_compute_check_update(&update, &inputs[i].update, NULL, 96, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_compute_check_update(&update, &inputs[i].update, NULL, 63, NULL),
                         KEDGE_E_BOUND);
        ck_assert_int_eq(kedge_compute_check_update(&layout, &inputs[i].update, NULL, 96, NULL),
                         KEDGE_E_SHAPE);
    }
    ck_assert_int_eq(kedge_compute_weigh(&spec, &layout, false, inputs, SITES, &w, NULL), KEDGE_OK);
    kedge_buf_init(&model, SIZE_MAX / 2);
    ck_assert_int_eq(kedge_compute_aggregate(&spec, &layout, &(struct kedge_blob_at){.path = path_of("base")},
                                             inputs, SITES, &w, 96,
                                             (struct kedge_sink){.write = sink, .arg = &model}, NULL),
                     KEDGE_OK);
    take(&model, "mean", got);
    ck_assert_mem_eq(got, mean, sizeof got);
    ck_assert_int_eq(kedge_compute_check_model(&layout, path_of("mean"), NULL), KEDGE_OK);
    for (int round = 0; round < 2; round++) {
        spec.options.server_lr = round ? 0.5 : 1;
        kedge_buf_init(&model, SIZE_MAX / 2);
        kedge_buf_init(&state, SIZE_MAX / 2);
        ck_assert_int_eq(
            kedge_compute_control_step(&spec, &layout, &(struct kedge_blob_at){.path = path_of("base")},
                                       &(struct kedge_blob_at){.path = path_of("mean")},
                                       round ? &(struct kedge_blob_at){.path = path_of("state")} : NULL,
                                       inputs, SITES, (struct kedge_sink){.write = sink, .arg = &model},
                                       (struct kedge_sink){.write = sink, .arg = &state}, NULL),
            KEDGE_OK);
        take(&model, "model", got);
        ck_assert_mem_eq(got, round ? half : mean, sizeof got);
        take(&state, "state", got);
        ck_assert_mem_eq(got, round ? second : first, sizeof got);
        ck_assert_int_eq(kedge_compute_check_state(&layout, spec.server, path_of("state"), NULL), KEDGE_OK);
    }
    kedge_layout_deinit(&layout);
    kedge_layout_deinit(&update);
    kedge_layout_deinit(&control);
}
END_TEST

/* What comes up is measured by the doubled length, and looked at to the end: the door. */
START_TEST(test_door)
{
    struct kedge_job_spec spec = {.strategy = kedge_strategy_find("scaffold")};
    struct kedge_layout layout, update;
    struct kedge_update_stream *s;
    struct kedge_buf file;
    const struct kedge_hash of = {{1}};
    static const int32_t good[2 * VALUES] = {1, 2, 3, 4, 5, 6, 7, -96}, bad[2 * VALUES] = {[7] = 97};
    ck_assert_int_eq(kedge_model_mclr(1, 2, &spec.model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec.model, &layout, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_job_spec_update_layout(&spec, &layout, &update, NULL), KEDGE_OK);
    for (int i = 0; i < 3; i++) { /* good; beyond the bound in its last value; half of one */
        write_file(i == 2 ? &layout : &update, KEDGE_DTYPE_I32, "door", i == 1 ? bad : good);
        kedge_buf_init(&file, 1 << 16);
        ck_assert_int_eq(kedge_file_read(path_of("door"), &file, NULL), KEDGE_OK);
        uint64_t len = kedge_safetensors_file_len(&update, KEDGE_DTYPE_I32);
        ck_assert_int_eq(file.len == len, i < 2);
        ck_assert_int_eq(kedge_update_stream_open(&update, 96, &of, &s), KEDGE_OK);
        kedge_update_stream_feed(s, 0, kedge_buf_view(&file));
        ck_assert_int_eq(kedge_update_stream_accepts(s, &of), i == 0);
        kedge_update_stream_close(s);
        kedge_buf_deinit(&file);
    }
    kedge_layout_deinit(&layout);
    kedge_layout_deinit(&update);
}
END_TEST

/* More updates than sites, an update of one half, a model for a state: refused, and nothing is written. */
START_TEST(test_refused)
{
    struct kedge_job_spec spec = {.strategy = kedge_strategy_find("scaffold"),
                                  .server = KEDGE_SERVER_CONTROL,
                                  .scale = SCALE,
                                  .control_sites = 1};
    struct kedge_layout layout;
    struct kedge_buf none;
    struct kedge_diag d = {.text = ""};
    struct kedge_compute_input inputs[SITES] = {{.update.path = path_of("u0")},
                                                {.update.path = path_of("u1")}};
    const struct kedge_sink sinks = {.write = sink, .arg = &none};
    spec.options = spec.strategy->defaults;
    ck_assert_int_eq(kedge_model_mclr(1, 2, &spec.model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec.model, &layout, NULL), KEDGE_OK);
    kedge_buf_init(&none, SIZE_MAX / 2);
    ck_assert_int_eq(kedge_compute_control_step(&spec, &layout,
                                                &(struct kedge_blob_at){.path = path_of("base")},
                                                &(struct kedge_blob_at){.path = path_of("mean")}, NULL,
                                                inputs, SITES, sinks, sinks, &d),
                     KEDGE_E_ARG);
    kedge_buf_clear(&none);
    spec.control_sites = 4;
    ck_assert_int_eq(kedge_compute_control_step(
                         &spec, &layout, &(struct kedge_blob_at){.path = path_of("base")},
                         &(struct kedge_blob_at){.path = path_of("mean")},
                         &(struct kedge_blob_at){.path = path_of("mean")}, inputs, SITES, sinks, sinks, &d),
                     KEDGE_E_SHAPE);
    const int32_t short_one[VALUES] = {1, 2, 3, 4};
    write_file(&layout, KEDGE_DTYPE_I32, "short", short_one);
    inputs[1].update.path = path_of("short");
    ck_assert_int_eq(kedge_compute_control_step(&spec, &layout,
                                                &(struct kedge_blob_at){.path = path_of("base")},
                                                &(struct kedge_blob_at){.path = path_of("mean")}, NULL,
                                                inputs, SITES, sinks, sinks, &d),
                     KEDGE_E_SHAPE);
    ck_assert_uint_eq(none.len, 0);
    ck_assert_ptr_nonnull(strstr(d.text, "control/"));
    kedge_buf_deinit(&none);
    kedge_layout_deinit(&layout);
}
END_TEST

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-control-XXXXXX");
    if (!mkdtemp(dir)) {
        return 1;
    }
    Suite *suite = suite_create("compute control");
    TCase *t = tcase_create("control");
    tcase_add_test(t, test_by_hand);
    tcase_add_test(t, test_door);
    tcase_add_test(t, test_refused);
    suite_add_tcase(suite, t);
    int failed = run_suite(suite);
    return kedge_dir_remove(dir) != KEDGE_OK || failed != 0;
}
