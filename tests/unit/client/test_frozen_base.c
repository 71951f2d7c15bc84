/* A site's frozen base: joined with the shared tensors for the trainer, held against what it leaves, kept by
 * its digest, and no more of them than there is room for. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/update/base.h"
#include "common/tensor/safetensors.h"
#include "strategy/strategy.h"
#include "tests/fixtures/run.h"

enum { FROZEN = 3 * 4 + 4, SHARED = 4 * 2 + 2, WHOLE = FROZEN + SHARED };

static struct kedge_site_host host;
static struct kedge_client_work work = {.h = &host};
static struct kedge_job_spec spec;
static struct kedge_site_task task;
static struct kedge_diag d;

static const char *path_of(const char *name)
{
    static char paths[4][KEDGE_PATH_MAX + 64];
    static unsigned next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", host.dir, name);
    return p;
}

/* A file of this layout whose values are first, first + 1, … */
static void write_file(const struct kedge_layout *layout, const char *path, float first)
{
    struct kedge_buf file;
    kedge_buf_init(&file, SIZE_MAX / 2);
    ck_assert_int_eq(kedge_safetensors_header(layout, KEDGE_DTYPE_F32, &file), KEDGE_OK);
    for (uint64_t i = 0; i < layout->values_count; i++) {
        float v = first + (float)i;
        kedge_buf_put(&file, &v, sizeof v);
    }
    ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&file), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&file);
}

static void read_file(const char *path, float *ret, size_t n)
{
    struct kedge_buf file;
    kedge_buf_init(&file, 1 << 20);
    ck_assert_int_eq(kedge_file_read(path, &file, NULL), KEDGE_OK);
    ck_assert_uint_ge(file.len, n * sizeof *ret);
    memcpy(ret, file.ptr + file.len - n * sizeof *ret, n * sizeof *ret);
    kedge_buf_deinit(&file);
}

static void setup(void)
{
    char path[KEDGE_PATH_MAX];
    d = (struct kedge_diag){.text = ""};
    snprintf(host.dir, sizeof host.dir, "/tmp/kedge-frozen-base-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(host.dir));
    ck_assert_int_eq(kedge_dir_make(path_of("work"), 0700, NULL), KEDGE_OK);
    spec = (struct kedge_job_spec){.strategy = kedge_strategy_find("adapters"), .has_initial_model = true};
    ck_assert_ptr_nonnull(spec.strategy);
    memset(spec.initial_model.b, 7, sizeof spec.initial_model.b);
    ck_assert_int_eq(kedge_model_mlp(3, 4, 2, &spec.model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_part_add(&spec.share, "1", NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_job_spec_layout(&spec, &work.layout, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_job_spec_whole_layout(&spec, &work.whole, NULL), KEDGE_OK);
    ck_assert_uint_eq(work.layout.values_count, SHARED);
    ck_assert_uint_eq(work.whole.values_count, WHOLE);
    work.spec = &spec;
    task = (struct kedge_site_task){.kind = KEDGE_SITE_TRAIN, .control_len = 1};
    memset(task.control.b, 7, sizeof task.control.b);
    ck_assert_int_eq(kedge_client_base_path(&work, &task.control, path, &d), KEDGE_OK);
    write_file(&work.whole, path, 100);
    write_file(&work.layout, path_of("shared"), 1000);
}

static void teardown(void)
{
    kedge_layout_deinit(&work.layout);
    kedge_layout_deinit(&work.whole);
    ck_assert_int_eq(kedge_dir_remove(host.dir), KEDGE_OK);
}

static int split(const float *values, size_t n, bool whole)
{
    struct kedge_client_base b;
    struct kedge_buf file;
    ck_assert_int_eq(kedge_client_base_join(&work, &task, path_of("shared"), &b, &d), KEDGE_OK);
    kedge_buf_init(&file, 1 << 20);
    ck_assert_int_eq(kedge_safetensors_header(whole ? &work.whole : &work.layout, KEDGE_DTYPE_F32, &file),
                     KEDGE_OK);
    kedge_buf_put(&file, values, n * sizeof *values);
    ck_assert_int_eq(kedge_file_write(b.out, kedge_buf_view(&file), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&file);
    return kedge_client_base_split(&work, &b, path_of("trained"), &d);
}

START_TEST(base_and_part_go_together_and_apart)
{
    struct kedge_client_base b;
    float whole[WHOLE], part[SHARED];
    ck_assert_int_eq(kedge_client_base_join(&work, &task, path_of("shared"), &b, &d), KEDGE_OK);
    read_file(b.whole, whole, WHOLE);
    for (size_t i = 0; i < WHOLE; i++) {
        ck_assert(whole[i] == (i < FROZEN ? 100 + (float)i : 1000 + (float)(i - FROZEN)));
    }
    whole[FROZEN] = 5;
    ck_assert_int_eq(split(whole, WHOLE, true), KEDGE_OK);
    read_file(path_of("trained"), part, SHARED);
    ck_assert(part[0] == 5 && part[1] == 1001 && part[SHARED - 1] == 1000 + SHARED - 1);
    ck_assert_int_eq(kedge_file_size(path_of("trained")),
                     (int64_t)kedge_safetensors_file_len(&work.layout, KEDGE_DTYPE_F32));
    part[0] = 6; /* a trainer that leaves out what is frozen */
    ck_assert_int_eq(split(part, SHARED, false), KEDGE_OK);
    read_file(path_of("trained"), part, SHARED);
    ck_assert(part[0] == 6 && part[1] == 1001);
}
END_TEST

START_TEST(a_changed_base_is_refused)
{
    struct kedge_client_base b;
    float whole[WHOLE];
    ck_assert_int_eq(kedge_client_base_join(&work, &task, path_of("shared"), &b, &d), KEDGE_OK);
    read_file(b.whole, whole, WHOLE);
    whole[FROZEN - 1] += 1;
    ck_assert_int_eq(split(whole, WHOLE, true), KEDGE_E_TRAINER);
    ck_assert_msg(strstr(d.text, "\"0.bias\", which is frozen") != NULL, "%s", d.text);
    write_file(&work.whole, path_of("shared"), 1); /* a coordinator that sends whole models */
    ck_assert_int_eq(kedge_client_base_join(&work, &task, path_of("shared"), &b, &d), KEDGE_E_SHAPE);
}
END_TEST

/* What a task brings beside the model is what the job's spec says, and nothing else is fetched. */
START_TEST(another_base_is_refused)
{
    ck_assert_int_eq(kedge_client_base_check(&work, &task, &d), KEDGE_OK);
    task.kind = KEDGE_SITE_EVALUATE;
    ck_assert_int_eq(kedge_client_base_check(&work, &task, &d), KEDGE_OK);
    task.control.b[31] ^= 1;
    ck_assert_int_eq(kedge_client_base_check(&work, &task, &d), KEDGE_E_DENIED);
    ck_assert_msg(strstr(d.text, "does not name the base") != NULL, "%s", d.text);
    task.control.b[31] ^= 1;
    task.control_len = 0;
    ck_assert_int_eq(kedge_client_base_check(&work, &task, &d), KEDGE_E_DENIED);
    spec.strategy = kedge_strategy_find("fedavg");
    ck_assert_int_eq(kedge_client_base_check(&work, &task, &d), KEDGE_OK);
    task.control_len = 1;
    ck_assert_int_eq(kedge_client_base_check(&work, &task, &d), KEDGE_E_DENIED);
    spec.strategy = kedge_strategy_find("scaffold"); /* its control variate comes with trainings alone */
    ck_assert_int_eq(kedge_client_base_check(&work, &task, &d), KEDGE_E_DENIED);
    task.kind = KEDGE_SITE_TRAIN;
    ck_assert_int_eq(kedge_client_base_check(&work, &task, &d), KEDGE_OK);
}
END_TEST

START_TEST(a_whole_model_beyond_the_owners_bound_is_refused)
{
    struct kedge_site_policy policy = {.model_bytes_max =
                                           kedge_safetensors_file_len(&work.whole, KEDGE_DTYPE_F32)};
    work.policy = &policy;
    ck_assert_int_eq(kedge_client_whole_check(&work, &d), KEDGE_OK);
    policy.model_bytes_max--;
    ck_assert_int_eq(kedge_client_whole_check(&work, &d), KEDGE_E_DENIED);
    ck_assert_msg(strstr(d.text, "model_bytes_max") != NULL, "%s", d.text);
    work.policy = NULL;
}
END_TEST

START_TEST(those_used_last_stay)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_site_digest digest = task.control;
    for (int i = 0; i < KEDGE_BASES_MAX + 3; i++) {
        memset(digest.b, i + 100, sizeof digest.b);
        ck_assert_int_eq(kedge_client_base_path(&work, &digest, path, &d), KEDGE_OK);
        write_file(&work.layout, path, 1);
        kedge_client_base_used(&work, path);
        ck_assert_int_eq(kedge_client_base_path(&work, &task.control, path, &d), KEDGE_OK);
        kedge_client_base_used(&work, path); /* in each round */
    }
    ck_assert(kedge_file_exists(path));
    int there = 0;
    for (int i = 0; i < KEDGE_BASES_MAX + 3; i++) {
        memset(digest.b, i + 100, sizeof digest.b);
        ck_assert_int_eq(kedge_client_base_path(&work, &digest, path, &d), KEDGE_OK);
        ck_assert(kedge_file_exists(path) == (i >= 4));
        there += kedge_file_exists(path);
    }
    ck_assert_int_eq(there, KEDGE_BASES_MAX - 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client-frozen-base");
    TCase *t = tcase_create("base");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, base_and_part_go_together_and_apart);
    tcase_add_test(t, a_changed_base_is_refused);
    tcase_add_test(t, another_base_is_refused);
    tcase_add_test(t, a_whole_model_beyond_the_owners_bound_is_refused);
    tcase_add_test(t, those_used_last_stay);
    suite_add_tcase(s, t);
    return run_suite(s);
}
