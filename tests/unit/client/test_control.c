/* A site's control variate: what training makes of it, and which one counts after a crash at any moment. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/daemon/update/control.h"
#include "common/tensor/safetensors.h"
#include "tests/fixtures/run.h"

enum { VALUES = 4 };

static struct kedge_site_host host;
static struct kedge_client_work work = {.h = &host};
static struct kedge_job_spec spec;
static const struct kedge_id job = {"j"};

static struct kedge_site_digest digest_of(uint8_t value)
{
    struct kedge_site_digest d;
    memset(d.b, value, sizeof d.b);
    return d;
}

static const char *path_of(const char *name)
{
    static char paths[4][KEDGE_PATH_MAX + 64];
    static unsigned next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", host.dir, name);
    return p;
}

static void open_folder(void)
{
    snprintf(host.dir, sizeof host.dir, "/tmp/kedge-own-control-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(host.dir));
    ck_assert_int_eq(kedge_dir_make(path_of("work"), 0700, NULL), KEDGE_OK);
    spec = (struct kedge_job_spec){.name = job, .scale = 4, .bound = 64, .learning_rate = 0.5};
    ck_assert_int_eq(kedge_model_mclr(1, 2, &spec.model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec.model, &work.layout, NULL), KEDGE_OK);
    work.spec = &spec;
}

static void close_folder(void)
{
    kedge_layout_deinit(&work.layout);
    ck_assert_int_eq(kedge_dir_remove(host.dir), KEDGE_OK);
}

static void write_server(const struct kedge_site_digest *digest, const float values[VALUES])
{
    char path[KEDGE_PATH_MAX];
    struct kedge_layout layout;
    struct kedge_buf file;
    kedge_buf_init(&file, SIZE_MAX / 2);
    ck_assert_int_eq(kedge_job_spec_control_layout(&work.layout, &layout, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_safetensors_header(&layout, KEDGE_DTYPE_F32, &file), KEDGE_OK);
    kedge_buf_put(&file, values, VALUES * sizeof *values);
    ck_assert_int_eq(kedge_client_work_path(&work, "control", digest, path), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&file), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&file);
    kedge_layout_deinit(&layout);
}

static int open_for(const struct kedge_site_digest *in_force, const struct kedge_site_digest *server,
                    struct kedge_client_control *ret, struct kedge_diag *d)
{
    struct kedge_site_task task = {.job = job, .kind = KEDGE_SITE_TRAIN, .control_len = server ? 1 : 0};
    if (server) {
        task.control = *server;
    }
    return kedge_client_control_open(&work, &task, in_force, ret, d);
}

/* c_k' = c_k − c + (x − w) / (S · lr) with S = 4, lr = 1/2: half the way that training went. */
START_TEST(test_by_hand)
{
    static const float base[VALUES] = {1, 1, 1, 1}, out[VALUES] = {0, 3, 1, 0.25f};
    static const float server[VALUES] = {0.25f, -1, 2, 0};
    static const int32_t change[VALUES] = {4, 0, -32, 6}; /* 16ths of 1/2 − 1/4, −1 + 1, −2, 3/8 */
    static const float drift[VALUES] = {0.25f - 0.25f, 0 + 1, -2 - 2, 0.375f - 0};
    struct kedge_site_digest none = digest_of(0), c = digest_of(3), u1 = digest_of(1);
    struct kedge_client_control own;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf file;
    int32_t q[VALUES];
    open_folder();
    write_server(&c, server);
    ck_assert_int_eq(open_for(&none, &c, &own, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_client_control_change(&spec, &own, base, out, 4, 0, VALUES, q, &d), KEDGE_OK);
    ck_assert_mem_eq(q, change, sizeof q);
    ck_assert_mem_eq(own.own, change, sizeof q); /* it was zero */
    ck_assert_int_eq(kedge_kept_write(host.dir, &job, &u1, &own.kept, &d), KEDGE_OK);
    kedge_client_control_close(&own);

    ck_assert_int_eq(open_for(&u1, &c, &own, &d), KEDGE_OK);
    ck_assert_mem_eq(own.own, change, sizeof q);
    kedge_buf_init(&file, 1 << 16);
    ck_assert_int_eq(kedge_file_read(own.drift, &file, NULL), KEDGE_OK);
    ck_assert_mem_eq(file.ptr + file.len - sizeof drift, drift, sizeof drift);
    kedge_buf_deinit(&file);
    ck_assert_int_eq(kedge_client_control_change(&spec, &own, base, out, 4, 0, VALUES, q, &d), KEDGE_OK);
    ck_assert_mem_eq(q, change, sizeof q);
    ck_assert_int_eq(own.own[2], -64); /* what the server has of it */
    const float far[VALUES] = {1000, 0, 0, 0};
    ck_assert_int_eq(kedge_client_control_change(&spec, &own, base, far, 4, 0, VALUES, q, &d), KEDGE_E_BOUND);
    ck_assert_ptr_nonnull(strstr(d.text, "control variate: value 0"));
    own.own[0] = -INT32_MAX;
    const float near[VALUES] = {3, 0, 0, 0};
    ck_assert_int_eq(kedge_client_control_change(&spec, &own, base, near, 4, 0, VALUES, q, &d),
                     KEDGE_E_BOUND);
    kedge_client_control_close(&own);
    close_folder();
}
END_TEST

/* The variate that goes with `in_force`: its first value, or the error. */
static int first_value(uint8_t in_force, struct kedge_diag *d)
{
    struct kedge_client_control own;
    struct kedge_site_digest update = digest_of(in_force);
    int err = open_for(&update, NULL, &own, d);
    if (err) {
        return err;
    }
    int value = own.own[0];
    kedge_client_control_close(&own);
    return value;
}

/* A training that begins with what is in force and ends with this first value, kept under this update. */
static void train(uint8_t in_force, uint8_t update, int32_t value)
{
    struct kedge_client_control own;
    struct kedge_site_digest from = digest_of(in_force), to = digest_of(update);
    ck_assert_int_eq(open_for(&from, NULL, &own, NULL), KEDGE_OK);
    own.own[0] = value;
    ck_assert_int_eq(kedge_kept_write(host.dir, &job, &to, &own.kept, NULL), KEDGE_OK);
    kedge_client_control_close(&own);
}

START_TEST(test_crashes)
{
    struct kedge_diag d = {.text = ""};
    open_folder();
    ck_assert_int_eq(first_value(0, &d), 0);
    train(0, 1, 11); /* not accepted, or killed before it was signed */
    ck_assert_int_eq(first_value(0, &d), 0);
    train(0, 2, 12);
    ck_assert_int_eq(first_value(2, &d), 12); /* accepted */
    ck_assert_int_eq(first_value(2, &d), 12); /* again, once it has taken its place */
    train(2, 3, 13);
    ck_assert_int_eq(first_value(2, &d), 12); /* the third was dropped, or its receipt has not come */
    ck_assert_int_eq(first_value(3, &d), 13); /* its receipt came after all */
    train(3, 4, 14);
    ck_assert_int_eq(truncate(path_of("kept/j/control.next"), 50), 0); /* torn: its update never left */
    ck_assert_int_eq(first_value(3, &d), 13);
    ck_assert_int_eq(first_value(9, &d), KEDGE_E_CORRUPT); /* a folder that is older than the memory */
    ck_assert_ptr_nonnull(strstr(d.text, "kept/j/control"));
    FILE *f = fopen(path_of("kept/j/control"), "r+");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, -1, SEEK_END), 0);
    ck_assert_int_eq(fputc(7, f), 7);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(first_value(3, &d), KEDGE_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(d.text, "damaged"));
    close_folder();
}
END_TEST

/* Which update counts: only one that was signed last and has a receipt, however often that comes. */
START_TEST(test_table)
{
    static struct kedge_kept_table c;
    struct kedge_site_digest u1 = digest_of(1), u2 = digest_of(2), zero = digest_of(0), got;
    kedge_kept_accepted(&c, &job, &u1); /* of a job that keeps nothing */
    ck_assert_uint_eq(c.count, 0);
    kedge_kept_signed(&c, &job, &u1);
    got = kedge_kept_in_force(&c, &job);
    ck_assert_mem_eq(got.b, zero.b, sizeof got.b);
    kedge_kept_accepted(&c, &job, &u2);
    got = kedge_kept_in_force(&c, &job);
    ck_assert_mem_eq(got.b, zero.b, sizeof got.b);
    for (int i = 0; i < 2; i++) {
        kedge_kept_accepted(&c, &job, &u1);
        got = kedge_kept_in_force(&c, &job);
        ck_assert_mem_eq(got.b, u1.b, sizeof got.b);
    }
    kedge_kept_signed(&c, &job, &u2);
    got = kedge_kept_in_force(&c, &job);
    ck_assert_mem_eq(got.b, u1.b, sizeof got.b); /* until its receipt comes */
    for (int i = 0; i < KEDGE_KEPT_JOBS_MAX; i++) {
        struct kedge_id other = {""};
        snprintf(other.s, sizeof other.s, "k%d", i);
        ck_assert_uint_le(c.count, KEDGE_KEPT_JOBS_MAX);
        kedge_kept_signed(&c, i == 8 ? &job : &other, &u2); /* trained for again: it is not the oldest */
    }
    got = kedge_kept_in_force(&c, &job);
    ck_assert_mem_eq(got.b, u1.b, sizeof got.b);
    ck_assert_str_eq(c.items[0].job.s, "k0");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client-control");
    TCase *t = tcase_create("control");
    tcase_add_test(t, test_by_hand);
    tcase_add_test(t, test_crashes);
    tcase_add_test(t, test_table);
    suite_add_tcase(s, t);
    return run_suite(s);
}
