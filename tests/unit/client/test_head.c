/* A site's head: joined with the shared model for the trainer, taken apart after it, kept with the update. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/update/head.h"
#include "common/tensor/safetensors.h"
#include "tests/fixtures/run.h"

enum { SHARED = 3 * 4 + 4, HEAD = 4 * 2 + 2, WHOLE = SHARED + HEAD };

static struct kedge_site_host host;
static struct kedge_client_work work = {.h = &host};
static struct kedge_job_spec spec;
static const struct kedge_id job = {"j"};
static const struct kedge_site_digest none;

static const char *path_of(const char *name)
{
    static char paths[4][KEDGE_PATH_MAX + 64];
    static unsigned next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", host.dir, name);
    return p;
}

static void setup(void)
{
    snprintf(host.dir, sizeof host.dir, "/tmp/kedge-own-head-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(host.dir));
    ck_assert_int_eq(kedge_dir_make(path_of("work"), 0700, NULL), KEDGE_OK);
    spec = (struct kedge_job_spec){.name = job, .seed = 9};
    ck_assert_int_eq(kedge_model_mlp(3, 4, 2, &spec.model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_part_add(&spec.share, "0", NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_job_spec_layout(&spec, &work.layout, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_job_spec_whole_layout(&spec, &work.whole, NULL), KEDGE_OK);
    ck_assert_uint_eq(work.layout.values_count, SHARED);
    ck_assert_uint_eq(work.whole.values_count, WHOLE);
    work.spec = &spec;
}

static void teardown(void)
{
    kedge_layout_deinit(&work.layout);
    kedge_layout_deinit(&work.whole);
    ck_assert_int_eq(kedge_dir_remove(host.dir), KEDGE_OK);
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

/* A training that begins with what belongs to in_force: what it makes of it, kept under `update`. */
static void train(const struct kedge_site_digest *in_force, const struct kedge_site_digest *update,
                  float first)
{
    struct kedge_client_head h;
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_client_head_open(&work, &job, in_force, path_of("shared"), &h, &d), KEDGE_OK);
    write_file(&work.whole, h.out, first);
    ck_assert_int_eq(kedge_client_head_split(&work, &h, path_of("trained"), &d), KEDGE_OK);
    ck_assert_int_eq(kedge_kept_write(host.dir, &job, update, &h.kept, &d), KEDGE_OK);
    kedge_client_head_close(&h);
}

static void look(const struct kedge_site_digest *in_force, float whole[WHOLE])
{
    struct kedge_client_head h;
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_client_head_open(&work, &job, in_force, path_of("shared"), &h, &d), KEDGE_OK);
    read_file(h.base, whole, WHOLE);
    kedge_client_head_close(&h);
}

START_TEST(parts_go_together_and_apart)
{
    float first[WHOLE], whole[WHOLE], shared[SHARED];
    struct kedge_site_digest u1 = {{1}}, u2 = {{2}};
    write_file(&work.layout, path_of("shared"), 100);
    kedge_model_init(&spec.model, spec.seed, first);
    look(&none, whole); /* without a head of its own: that of the job's seed */
    ck_assert(whole[0] == 100 && whole[SHARED - 1] == 100 + SHARED - 1);
    ck_assert_mem_eq(whole + SHARED, first + SHARED, HEAD * sizeof *whole);
    train(&none, &u1, 1000);
    read_file(path_of("trained"), shared, SHARED);
    ck_assert(shared[0] == 1000 && shared[SHARED - 1] == 1000 + SHARED - 1);
    look(&none, whole); /* u1 was not accepted */
    ck_assert_mem_eq(whole + SHARED, first + SHARED, HEAD * sizeof *whole);
    look(&u1, whole);
    ck_assert(whole[0] == 100 && whole[SHARED] == 1000 + SHARED && whole[WHOLE - 1] == 1000 + WHOLE - 1);
    train(&u1, &u2, 5000);
    look(&u1, whole); /* u2 was lost on its way */
    ck_assert(whole[SHARED] == 1000 + SHARED);
    look(&u2, whole);
    ck_assert(whole[SHARED] == 5000 + SHARED);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    struct kedge_client_head h;
    struct kedge_diag d = {.text = ""};
    write_file(&work.whole, path_of("shared"), 1); /* a coordinator that sends heads */
    ck_assert_int_eq(kedge_client_head_open(&work, &job, &none, path_of("shared"), &h, &d), KEDGE_E_SHAPE);
    write_file(&work.layout, path_of("shared"), 1);
    ck_assert_int_eq(kedge_client_head_open(&work, &job, &none, path_of("shared"), &h, &d), KEDGE_OK);
    write_file(&work.layout, h.out, 1); /* a trainer that leaves a part */
    ck_assert_int_eq(kedge_client_head_split(&work, &h, path_of("trained"), &d), KEDGE_E_SHAPE);
    kedge_client_head_close(&h);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client-head");
    TCase *t = tcase_create("head");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, parts_go_together_and_apart);
    tcase_add_test(t, what_does_not_fit_is_refused);
    suite_add_tcase(s, t);
    return run_suite(s);
}
