/* Decisions over compact updates give the bytes that they give over the same values as tensors, encrypted or
 * not, however many there are; what is not as the job wants it is refused by name. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/compact.h"
#include "chain/store/blob/blobs.h"
#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "round/aggregate.h"
#include "round/compute.h"
#include "tests/fixtures/run.h"

enum { VALUES = 40000, FILES = 5, MANY = 1300, SCALE = 16, LIMIT = 1 << 20 };

static char dir[64];
static struct kedge_layout layout;
static struct kedge_blobs *plain, *sealed;
static struct kedge_blob_at at[3][FILES]; /* whole; compact; compact and encrypted */
static char paths[3][FILES][KEDGE_PATH_MAX], base_path[KEDGE_PATH_MAX];

static int sink(void *arg, struct kedge_view bytes)
{
    kedge_buf_put(arg, bytes.ptr, bytes.len);
    return ((struct kedge_buf *)arg)->err;
}

static void put(struct kedge_blobs *b, const struct kedge_id *key, const struct kedge_buf *file,
                struct kedge_hash *ret)
{
    static const struct kedge_id site = {"site-1"};
    struct kedge_upload *u;
    uint64_t offset;
    kedge_sha256(kedge_buf_view(file), ret);
    ck_assert_int_eq(kedge_upload_open(b, &site, key, ret, file->len, &u, &offset, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_write(u, 0, kedge_buf_view(file), NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_OK);
}

static const struct kedge_compact topk = {KEDGE_COMPACT_TOPK_INT8, 20000, KEDGE_COMPACT_SHARE_ONE};

/* The compact update of these values, which become what it says. */
static void make(const struct kedge_compact *c, int32_t *values, struct kedge_buf *file)
{
    uint8_t out[KEDGE_COMPACT_BLOCK_BYTES_MAX];
    static int32_t left[VALUES];
    struct kedge_compact_plan plan;
    memcpy(left, values, sizeof left);
    ck_assert_int_eq(kedge_compact_plan(c, left, VALUES, &plan), KEDGE_OK);
    kedge_compact_head_write(c->kind, VALUES, out);
    kedge_buf_clear(file);
    kedge_buf_put(file, out, KEDGE_COMPACT_HEAD);
    for (size_t i = 0, n; i < VALUES; i += n) {
        n = VALUES - i < KEDGE_COMPACT_BLOCK ? VALUES - i : KEDGE_COMPACT_BLOCK;
        kedge_buf_put(file, out, kedge_compact_block_write(&plan, left + i, n, LIMIT, out));
    }
    for (size_t i = 0; i < VALUES; i++) {
        values[i] -= left[i];
    }
}

static void put_at(int which, uint32_t k, const struct kedge_buf *file)
{
    static const struct kedge_id job = {"job"};
    struct kedge_hash digest;
    struct kedge_blobs *b = which == 2 ? sealed : plain;
    put(b, which == 2 ? &job : NULL, file, &digest);
    ck_assert_int_eq(kedge_blobs_at(b, &digest, paths[which][k], &at[which][k]), KEDGE_OK);
}

static void set_up(const struct kedge_compact *c)
{
    char at_plain[80], at_sealed[80], keys[80];
    static int32_t values[VALUES];
    struct kedge_buf file;
    struct kedge_hash base;
    snprintf(dir, sizeof dir, "/tmp/kedge-compute-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(at_plain, sizeof at_plain, "%s/plain", dir);
    snprintf(at_sealed, sizeof at_sealed, "%s/sealed", dir);
    snprintf(keys, sizeof keys, "%s/keys", dir);
    const struct kedge_blobs_options options = {.keys_dir = keys, .encrypt = true};
    ck_assert_int_eq(kedge_blobs_open(at_plain, NULL, &plain, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_open(at_sealed, &options, &sealed, NULL), KEDGE_OK);
    kedge_layout_init(&layout, KEDGE_DTYPE_I32);
    ck_assert_int_eq(kedge_layout_add(&layout, "w", (const uint64_t[]){200, VALUES / 200}, 2, NULL),
                     KEDGE_OK);
    kedge_buf_init(&file, 1 << 20);
    for (uint32_t k = 0; k < FILES; k++) {
        for (uint32_t i = 0; i < VALUES; i++) {
            uint32_t mixed = (i + k * 7919u) * 2654435761u;
            values[i] = (int32_t)(mixed >> 12) - (1 << 19);
        }
        make(c, values, &file);
        put_at(1, k, &file);
        put_at(2, k, &file);
        kedge_buf_clear(&file);
        ck_assert_int_eq(kedge_safetensors_header(&layout, KEDGE_DTYPE_I32, &file), KEDGE_OK);
        kedge_buf_put(&file, values, sizeof values);
        put_at(0, k, &file);
    }
    kedge_buf_clear(&file);
    ck_assert_int_eq(kedge_safetensors_header(&layout, KEDGE_DTYPE_F32, &file), KEDGE_OK);
    for (uint32_t i = 0; i < VALUES; i++) {
        float w = (float)(i % 77) / 7;
        kedge_buf_put(&file, &w, sizeof w);
    }
    put(plain, NULL, &file, &base);
    ck_assert_int_eq(kedge_blobs_path(plain, &base, base_path), KEDGE_OK);
    kedge_buf_deinit(&file);
}

static void tear_down(void)
{
    kedge_blobs_close(plain);
    kedge_blobs_close(sealed);
    kedge_layout_deinit(&layout);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

/* which: of `at`; 3: one of each after another. */
static void result_of(int which, size_t count, const char *rule, struct kedge_buf *ret)
{
    struct kedge_compute_input *inputs = kedge_mem_new(count, sizeof *inputs);
    struct kedge_job_spec spec = {
        .scale = SCALE, .strategy = kedge_strategy_find("fedavg"), .rule = kedge_rule_find(rule)};
    struct kedge_compute_weights weights = {spec.rule, kedge_mem_new(count, sizeof(uint64_t)), 0};
    struct kedge_diag d = {.text = ""};
    for (size_t i = 0; i < count; i++) {
        inputs[i].update = at[which == 3 ? (int)(i % 3) : which][i % FILES];
        weights.weight[i] = i * i % 1000 + 1;
        weights.divisor += weights.weight[i];
    }
    kedge_buf_init(ret, 1 << 20);
    int err =
        kedge_compute_aggregate(&spec, &layout, &(struct kedge_blob_at){.path = base_path}, inputs, count,
                                &weights, LIMIT, (struct kedge_sink){.write = sink, .arg = ret}, &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    kedge_mem_free(inputs);
    kedge_mem_free(weights.weight);
}

static void check_same(size_t count, const char *rule)
{
    struct kedge_buf results[4];
    for (int which = 0; which < 4; which++) {
        result_of(which, count, rule, &results[which]);
        ck_assert_uint_gt(results[which].len, 4 * VALUES);
        ck_assert(kedge_view_eq(kedge_buf_view(&results[which]), kedge_buf_view(&results[0])));
    }
    for (int which = 0; which < 4; which++) {
        kedge_buf_deinit(&results[which]);
    }
}

START_TEST(results_are_the_same)
{
    static const struct kedge_compact kinds[] = {{KEDGE_COMPACT_INT8, 0, 0},
                                                 {KEDGE_COMPACT_BF16, 0, 0},
                                                 {KEDGE_COMPACT_TOPK, 300000, 0},
                                                 {KEDGE_COMPACT_TOPK_INT8, 10000, 0}};
    set_up(&kinds[_i]);
    check_same(1, "mean");
    check_same(FILES, "mean");
    check_same(MANY, "mean");
    check_same(FILES, "median");
    for (int which = 0; which < 3; which++) {
        const struct kedge_compact *c = which > 0 ? &kinds[_i] : NULL;
        ck_assert_int_eq(kedge_compute_check_update(&layout, &at[which][0], c, LIMIT, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_compute_check_update(&layout, &at[which][0], c, 1000, NULL), KEDGE_E_BOUND);
    }
    tear_down();
}
END_TEST

static void refused(const struct kedge_compact *c, const struct kedge_blob_at *file, int want,
                    const char *text)
{
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_compute_check_update(&layout, file, c, LIMIT, &d), want);
    ck_assert_msg(strstr(d.text, text) && strstr(d.text, file->path), "%s", d.text);
}

START_TEST(what_is_refused)
{
    static int32_t values[VALUES];
    struct kedge_buf file;
    set_up(&topk);
    const struct kedge_compact fewer = {KEDGE_COMPACT_TOPK_INT8, 19000, 0},
                               other = {KEDGE_COMPACT_TOPK, 20000, 0};
    for (int which = 1; which < 3; which++) {
        refused(NULL, &at[which][0], KEDGE_E_FORMAT, "the job's is \"none\"");
        refused(&other, &at[which][0], KEDGE_E_FORMAT, "the job's is \"topk\"");
        refused(&fewer, &at[which][0], KEDGE_E_BOUND, "more than the 760 values");
    }
    refused(&topk, &at[0][0], KEDGE_E_FORMAT, "compression is \"none\"");
    kedge_buf_init(&file, 1 << 20);
    for (int i = 0; i < VALUES; i++) {
        values[i] = i % 50 == 0 ? i + 1 : 0;
    }
    make(&topk, values, &file);
    const size_t len = file.len;
    for (int which = 1; which < 3; which++) {
        file.len = len;
        kedge_buf_put_u8(&file, 0);
        put_at(which, 0, &file);
        refused(&topk, &at[which][0], KEDGE_E_FORMAT, "do not end where it does");
        for (size_t cut = 1; cut < len; cut += cut < 64 || len - cut < 64 ? 1 : 97) {
            file.len = len - cut;
            put_at(which, 0, &file);
            ck_assert_int_ne(kedge_compute_check_update(&layout, &at[which][0], &topk, LIMIT, NULL),
                             KEDGE_OK);
        }
        file.len = len;
        file.ptr[8] ^= 1; /* the number of values */
        put_at(which, 0, &file);
        refused(&topk, &at[which][0], KEDGE_E_SHAPE, "a compact update of 40001 values");
        file.ptr[8] ^= 1;
        file.ptr[7] = 9;
        put_at(which, 0, &file);
        refused(&topk, &at[which][0], KEDGE_E_FORMAT, "of no kind");
        file.ptr[7] = KEDGE_COMPACT_TOPK_INT8;
    }
    kedge_buf_deinit(&file);
    tear_down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("compute compact");
    TCase *t = tcase_create("compact");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, results_are_the_same, 0, 4);
    tcase_add_test(t, what_is_refused);
    suite_add_tcase(s, t);
    return run_suite(s);
}
