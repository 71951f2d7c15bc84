/* Vectors longer than memory, and than 2^31 values where there is time: made of files with holes, which take
 * no room, with a few values at places that 32 bits do not reach. What a close makes of them is checked value
 * by value as it leaves, and no process holds a model meanwhile.
 *
 * KEDGE_TEST_VALUES=2500000000 is a model of 10 GB (a minute or more, and 30 GB to be read); else 4 million.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/text.h"
#include "common/tensor/safetensors.h"
#include "round/aggregate.h"
#include "tests/fixtures/memory.h"
#include "tests/fixtures/run.h"

enum { FILES = 2, SCALE = 16, LIMIT = 1 << 20, MARKS = 5, MOST_KIB = 64 << 10 };

static char dir[64], base_path[96], update_path[FILES][96];
static struct kedge_layout layout;
static uint64_t values, marks[MARKS];

static void make_file(const char *path, enum kedge_dtype dtype, const uint32_t *bits)
{
    struct kedge_buf header;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    ck_assert_int_eq(kedge_safetensors_header(&layout, dtype, &header), KEDGE_OK);
    ck_assert_int_eq(kedge_fd_write(fd, kedge_buf_view(&header)), KEDGE_OK);
    ck_assert_int_eq(ftruncate(fd, (off_t)(header.len + values * 4)), 0);
    for (size_t i = 0; i < MARKS; i++) {
        ck_assert_int_eq(pwrite(fd, &bits[i], 4, (off_t)(header.len + marks[i] * 4)), 4);
    }
    kedge_buf_deinit(&header);
    close(fd);
}

static void set_up(void)
{
    static const float base[MARKS] = {1, 2, 3, 4, 5};
    static const int32_t update[FILES][MARKS] = {{1 << 16, 2 << 16, 0, -(4 << 16), 8 << 16},
                                                 {3 << 16, 0, -(3 << 16), 4 << 16, 0}};
    const char *text = getenv("KEDGE_TEST_VALUES");
    values = (UINT64_C(1) << 22) + 77;
    ck_assert(!text
              || kedge_decimal_decode(kedge_view_str(text), KEDGE_LAYOUT_VALUES_MAX, &values) == KEDGE_OK);
    ck_assert_uint_gt(values, 1 << 20);
    marks[0] = 0;
    marks[1] = values / 2;
    marks[2] = values > UINT64_C(1) << 31 ? (UINT64_C(1) << 31) + 1 : values / 3 * 2;
    marks[3] = values - 2;
    marks[4] = values - 1;
    snprintf(dir, sizeof dir, "/tmp/kedge-long-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    kedge_layout_init(&layout, KEDGE_DTYPE_F32);
    ck_assert_int_eq(kedge_layout_add(&layout, "w", &values, 1, NULL), KEDGE_OK);
    snprintf(base_path, sizeof base_path, "%s/base", dir);
    make_file(base_path, KEDGE_DTYPE_F32, (const uint32_t *)(const void *)base);
    for (size_t k = 0; k < FILES; k++) {
        snprintf(update_path[k], sizeof update_path[k], "%s/update-%zu", dir, k);
        make_file(update_path[k], KEDGE_DTYPE_I32, (const uint32_t *)(const void *)update[k]);
    }
}

static void tear_down(void)
{
    kedge_layout_deinit(&layout);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

/* Takes a model as it leaves: a header, then the values in their order. */
struct looker {
    uint64_t next, others; /* others: not zero, and at no mark */
    float at_mark[MARKS];
    uint64_t most_kib;
    bool has_header;
};

static int look(void *arg, struct kedge_view bytes)
{
    struct looker *l = arg;
    const float *w = (const float *)(const void *)bytes.ptr;
    if (!l->has_header) {
        l->has_header = true;
        return KEDGE_OK;
    }
    ck_assert_uint_eq(bytes.len % sizeof *w, 0);
    const uint64_t n = bytes.len / sizeof *w, kib = l->next % (UINT64_C(1) << 26) < n ? anonymous_kib() : 0;
    l->most_kib = kib > l->most_kib ? kib : l->most_kib;
    uint64_t some = 0;
    for (uint64_t i = 0; i < n; i++) {
        some += w[i] != 0;
    }
    for (size_t m = 0; m < MARKS; m++) {
        const bool here = marks[m] >= l->next && marks[m] < l->next + n;
        l->at_mark[m] = here ? w[marks[m] - l->next] : l->at_mark[m];
        some -= here && w[marks[m] - l->next] != 0;
    }
    l->others += some;
    l->next += n;
    return KEDGE_OK;
}

/* base + (1 · first + 3 · second) / 4 */
START_TEST(a_mean_is_right_to_its_last_value)
{
    static const float expected[MARKS] = {1 + 2.5F, 2 + 0.5F, 3 - 2.25F, 4 + 2, 5 + 2};
    struct kedge_compute_input inputs[FILES];
    struct kedge_job_spec spec = {.scale = SCALE, .strategy = kedge_strategy_find("fedavg")};
    uint64_t weight[FILES] = {1, 3};
    const struct kedge_compute_weights weights = {kedge_rule_find("mean"), weight, 4};
    const struct kedge_blob_at base = {.path = base_path};
    struct looker l = {.next = 0};
    struct kedge_diag d = {.text = ""};
    set_up();
    const uint64_t before = anonymous_kib();
    for (size_t k = 0; k < FILES; k++) {
        inputs[k] = (struct kedge_compute_input){.update.path = update_path[k]};
        int err = kedge_compute_check_update(&layout, &inputs[k].update, NULL, LIMIT, &d);
        ck_assert_msg(!err, "%s", d.text);
    }
    int err =
        kedge_compute_aggregate(&spec, &layout, &base, inputs, FILES, &weights, LIMIT,
                                (struct kedge_sink){.write = look, .arg = &l, .cut = {.threads = 2}}, &d);
    ck_assert_msg(!err, "%s", d.text);
    ck_assert_uint_eq(l.next, values);
    ck_assert_uint_eq(l.others, 0);
    for (size_t m = 0; m < MARKS; m++) {
        ck_assert_msg(l.at_mark[m] == expected[m], "value %llu is %g, expected %g",
                      (unsigned long long)marks[m], (double)l.at_mark[m], (double)expected[m]);
    }
    ck_assert_uint_gt(l.most_kib, 0);
    ck_assert_uint_lt(l.most_kib, before + MOST_KIB);
    fprintf(stderr, "%llu values: at most %llu KiB of anonymous memory\n", (unsigned long long)values,
            (unsigned long long)l.most_kib);
    tear_down();
}
END_TEST

/* The last value of all is beyond the bound: found, and named by its number. */
START_TEST(the_last_value_is_checked)
{
    struct kedge_diag d = {.text = ""};
    char number[24];
    set_up();
    int fd = open(update_path[0], O_WRONLY | O_CLOEXEC);
    const int32_t bad = LIMIT + 1;
    ck_assert_int_eq(pwrite(fd, &bad, sizeof bad, (off_t)kedge_file_size(update_path[0]) - 4), 4);
    close(fd);
    const struct kedge_blob_at at = {.path = update_path[0]};
    ck_assert_int_eq(kedge_compute_check_update(&layout, &at, NULL, LIMIT, &d), KEDGE_E_BOUND);
    snprintf(number, sizeof number, "value %llu ", (unsigned long long)(values - 1));
    ck_assert_msg(strstr(d.text, number) != NULL, "%s", d.text);
    tear_down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("round-long");
    TCase *t = tcase_create("long");
    tcase_set_timeout(t, getenv("KEDGE_TEST_VALUES") ? 3600 : 60);
    tcase_add_test(t, a_mean_is_right_to_its_last_value);
    tcase_add_test(t, the_last_value_is_checked);
    suite_add_tcase(s, t);
    return run_suite(s);
}
