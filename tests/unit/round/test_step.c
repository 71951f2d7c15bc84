/* The server's step over files: the same bytes as over memory, state after state; and what is no state of a
 * job. */
#include "round/step.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/tensor/model.h"
#include "common/tensor/safetensors.h"

enum { INPUTS = 8191, CLASSES = 10, ROUNDS = 3 }; /* 81,920 values: more than a tile */

static char dir[64];

static int sink(void *arg, struct kedge_view bytes)
{
    kedge_buf_put(arg, bytes.ptr, bytes.len);
    return ((struct kedge_buf *)arg)->err;
}

static const char *path_of(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", dir, name);
    return p;
}

static void write_model(const struct kedge_layout *layout, const char *name, const float *values)
{
    struct kedge_buf file;
    kedge_buf_init(&file, SIZE_MAX / 2);
    ck_assert_int_eq(kedge_safetensors_header(layout, KEDGE_DTYPE_F32, &file), KEDGE_OK);
    kedge_buf_put(&file, values, layout->values_count * sizeof *values);
    ck_assert_int_eq(kedge_file_write(path_of(name), kedge_buf_view(&file), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&file);
}

static void keep(const char *name, struct kedge_buf *file)
{
    ck_assert_int_eq(kedge_file_write(path_of(name), kedge_buf_view(file), 0600, NULL), KEDGE_OK);
}

static const char *const servers[] = {"fedavgm", "fedadagrad", "fedyogi", "fedadam"};

START_TEST(files_and_memory_agree)
{
    const struct kedge_strategy *row = kedge_strategy_find(servers[_i]);
    struct kedge_job_spec spec = {.strategy = row, .server = row->server, .options = row->defaults};
    struct kedge_layout layout;
    ck_assert_int_eq(kedge_model_mclr(INPUTS, CLASSES, &spec.model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec.model, &layout, NULL), KEDGE_OK);
    size_t n = (size_t)layout.values_count, states = kedge_server_states(spec.server);
    float *before = kedge_mem_new(n, sizeof *before), *aggregate = kedge_mem_new(n, sizeof *aggregate);
    float *slab = kedge_mem_new(2 * n, sizeof *slab), *state[KEDGE_SERVER_STATES_MAX] = {slab, slab + n};
    ck_assert(before && aggregate && slab);
    for (size_t i = 0; i < n; i++) {
        before[i] = (float)(i % 97) / 97.0f;
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct kedge_buf model, after;
        for (size_t i = 0; i < n; i++) {
            aggregate[i] = before[i] + (float)((int)((i * 31 + (size_t)round * 7) % 13) - 6) / 64.0f;
        }
        write_model(&layout, "before", before);
        write_model(&layout, "aggregate", aggregate);
        kedge_buf_init(&model, SIZE_MAX / 2);
        kedge_buf_init(&after, SIZE_MAX / 2);
        ck_assert_int_eq(
            kedge_compute_server(&spec, 1, &layout, &(struct kedge_blob_at){.path = path_of("before")},
                                 &(struct kedge_blob_at){.path = path_of("aggregate")},
                                 round == 0 ? NULL : &(struct kedge_blob_at){.path = path_of("state")},
                                 (struct kedge_sink){.write = sink, .arg = &model},
                                 (struct kedge_sink){.write = sink, .arg = &after}, NULL),
            KEDGE_OK);
        ck_assert_int_eq(kedge_server_step(spec.server, &spec.options, before, aggregate, state, n, before),
                         KEDGE_OK);
        ck_assert_mem_eq(model.ptr + model.len - n * sizeof *before, before, n * sizeof *before);
        ck_assert_mem_eq(after.ptr + after.len - states * n * sizeof *slab, slab, states * n * sizeof *slab);
        keep("model", &model);
        keep("state", &after);
        ck_assert_int_eq(kedge_compute_check_model(&layout, path_of("model"), NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_compute_check_state(&layout, spec.server, path_of("state"), NULL), KEDGE_OK);
        kedge_buf_deinit(&model);
        kedge_buf_deinit(&after);
    }
    struct kedge_diag d = {.text = ""};
    struct kedge_buf none;
    kedge_buf_init(&none, SIZE_MAX / 2);
    ck_assert_int_eq(kedge_compute_check_state(&layout, spec.server, path_of("model"), &d), KEDGE_E_SHAPE);
    ck_assert_int_eq(kedge_compute_server(&spec, 1, &layout,
                                          &(struct kedge_blob_at){.path = path_of("before")},
                                          &(struct kedge_blob_at){.path = path_of("aggregate")},
                                          &(struct kedge_blob_at){.path = path_of("model")},
                                          (struct kedge_sink){.write = sink, .arg = &none},
                                          (struct kedge_sink){.write = sink, .arg = &none}, &d),
                     KEDGE_E_SHAPE); /* a model is no state */
    ck_assert_ptr_nonnull(strstr(d.text, "model"));
    ck_assert_uint_eq(none.len, 0);
    spec.options.server_lr = 1e300;
    ck_assert_int_eq(kedge_compute_server(&spec, 1, &layout,
                                          &(struct kedge_blob_at){.path = path_of("before")},
                                          &(struct kedge_blob_at){.path = path_of("aggregate")}, NULL,
                                          (struct kedge_sink){.write = sink, .arg = &none},
                                          (struct kedge_sink){.write = sink, .arg = &none}, &d),
                     KEDGE_E_NOT_FINITE);
    kedge_buf_deinit(&none);
    kedge_mem_free(before);
    kedge_mem_free(aggregate);
    kedge_mem_free(slab);
    kedge_layout_deinit(&layout);
}
END_TEST

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-step-XXXXXX");
    if (!mkdtemp(dir)) {
        return 1;
    }
    Suite *suite = suite_create("compute step");
    TCase *t = tcase_create("step");
    tcase_add_loop_test(t, files_and_memory_agree, 0, (int)(sizeof servers / sizeof servers[0]));
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return kedge_dir_remove(dir) != KEDGE_OK || failed != 0;
}
