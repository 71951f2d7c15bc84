/* Weights and results where one site's update is the root of trust, worked out by hand: one value per update
 * that is not 0, or all alike, so that 12 bits show inner products as they are. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "common/tensor/model.h"
#include "common/tensor/safetensors.h"
#include "round/aggregate.h"
#include "tests/fixtures/run.h"

enum { VALUES = 4, SITES = 4, SCALE = 4 };

static char dir[64], paths[SITES + 1][128];

static int sink(void *arg, struct kedge_view bytes)
{
    kedge_buf_put(arg, bytes.ptr, bytes.len);
    return ((struct kedge_buf *)arg)->err;
}

static void write_file(const struct kedge_layout *layout, enum kedge_dtype dtype, size_t i,
                       const void *values)
{
    struct kedge_buf file;
    kedge_buf_init(&file, SIZE_MAX / 2);
    snprintf(paths[i], sizeof paths[i], "%s/%zu", dir, i);
    ck_assert_int_eq(kedge_safetensors_header(layout, dtype, &file), KEDGE_OK);
    kedge_buf_put(&file, values, VALUES * sizeof(int32_t));
    ck_assert_int_eq(kedge_file_write(paths[i], kedge_buf_view(&file), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&file);
}

/* Sites in their order; the second is the root, with the first of tenant 0, the others of tenant 1. */
static const struct {
    int32_t values[SITES][VALUES];
    uint32_t share_max;
    uint64_t weight[SITES], divisor;
    float result; /* of value 0, the base being 1 */
} cases[] = {
    /* cos 1, half as long: twice its vote. cos 1/2, 60 against 100 long: ⌊2^20 / 2 · 100 / 60⌋. Against the
     * root: nothing. Divisor 2^20 + 2^19. 1 + (2097152 · 50 + 873813 · 30) / (1572864 · 16) */
    {{{50, 0, 0, 0}, {100, 0, 0, 0}, {30, 30, 30, 30}, {-20, 0, 0, 0}},
     1000000,
     {2097152, 0, 873813, 0},
     1572864,
     6.2083330f},
    /* the same with half for each tenant: the two of tenant 1 have half a vote each */
    {{{50, 0, 0, 0}, {100, 0, 0, 0}, {30, 30, 30, 30}, {-20, 0, 0, 0}},
     500000,
     {2097152, 0, 436906, 0},
     1310720,
     6.6249996f},
    /* a root that says nothing trusts nobody, and so does one against which all point: the model stays */
    {{{50, 0, 0, 0}, {0, 0, 0, 0}, {30, 30, 30, 30}, {-20, 0, 0, 0}}, 1000000, {0, 0, 0, 0}, 1, 1},
    {{{50, 0, 0, 0}, {-1, 0, 0, 0}, {30, 30, 30, 30}, {0, 0, 0, 5}}, 1000000, {0, 0, 0, 0}, 1, 1},
    /* an update of nothing counts nothing; one that is 2047 times shorter is drawn out to 256 times */
    {{{1, 0, 0, 0}, {2047, 0, 0, 0}, {0, 0, 0, 0}, {2047, 0, 0, 0}},
     1000000,
     {256 << 20, 0, 0, 1 << 20},
     2 << 20,
     72.96875f},
};

START_TEST(test_by_hand)
{
    struct kedge_job_spec spec = {.rule = kedge_rule_find("root-trust"),
                                  .strategy = kedge_strategy_find("fedavg"),
                                  .scale = SCALE,
                                  .tenant_count = 2,
                                  .tenant_share_max = cases[_i].share_max};
    struct kedge_layout layout;
    struct kedge_compute_input inputs[SITES];
    uint64_t weight[SITES];
    struct kedge_compute_weights w = {.weight = weight};
    struct kedge_buf model;
    const float base[VALUES] = {1, 1, 1, 1};
    float result;
    ck_assert_int_eq(kedge_model_mclr(1, 2, &spec.model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec.model, &layout, NULL), KEDGE_OK);
    ck_assert_uint_eq(layout.values_count, VALUES);
    write_file(&layout, KEDGE_DTYPE_F32, SITES, base);
    for (size_t i = 0; i < SITES; i++) {
        write_file(&layout, KEDGE_DTYPE_I32, i, cases[_i].values[i]);
        inputs[i] = (struct kedge_compute_input){
            .update.path = paths[i], .tenant = (uint32_t)i / 2, .is_root = i == 1, .facts.samples = 7};
    }
    ck_assert_int_eq(kedge_compute_weigh(&spec, &layout, false, inputs, SITES, &w, NULL), KEDGE_OK);
    ck_assert_str_eq(w.rule->name, "root-trust");
    for (size_t i = 0; i < SITES; i++) {
        ck_assert_uint_eq(weight[i], cases[_i].weight[i]);
    }
    ck_assert_uint_eq(w.divisor, cases[_i].divisor);
    kedge_buf_init(&model, SIZE_MAX / 2);
    ck_assert_int_eq(kedge_compute_aggregate(&spec, &layout, &(struct kedge_blob_at){.path = paths[SITES]},
                                             inputs, SITES, &w, 2047,
                                             (struct kedge_sink){.write = sink, .arg = &model}, NULL),
                     KEDGE_OK);
    memcpy(&result, model.ptr + model.len - VALUES * sizeof result, sizeof result);
    ck_assert_float_eq_tol(result, cases[_i].result, 1e-6f);
    ck_assert_float_le(result - 1, (float)abs(cases[_i].values[1][0]) / 16); /* no longer than the root */
    kedge_buf_deinit(&model);
    kedge_layout_deinit(&layout);
}
END_TEST

/* Without files it is known which rule runs, and whether the root is there. */
START_TEST(test_statements)
{
    struct kedge_job_spec spec = {.rule = kedge_rule_find("root-trust"),
                                  .strategy = kedge_strategy_find("fedavg"),
                                  .tenant_count = 1,
                                  .tenant_share_max = 1000000};
    struct kedge_compute_input inputs[3] = {{.is_root = false}, {.is_root = true}, {.is_root = false}};
    uint64_t weight[3];
    struct kedge_compute_weights w = {.weight = weight};
    struct kedge_diag d = {.text = ""};
    memcpy(spec.tenants[0].s, "org-a", 6);
    memcpy(spec.root_site.s, "root", 5);
    ck_assert_int_eq(kedge_compute_weigh(&spec, NULL, false, inputs, 3, &w, &d), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_eq(w.rule, spec.rule);
    inputs[0].is_root = true; /* two */
    ck_assert_int_eq(kedge_compute_weigh(&spec, NULL, false, inputs, 3, &w, &d), KEDGE_E_ARG);
    ck_assert_ptr_nonnull(strstr(d.text, "root site \"org-a/root\""));
    ck_assert_int_eq(kedge_compute_weigh(&spec, NULL, false, inputs, 1, &w, &d), KEDGE_E_ARG); /* alone */
    inputs[0].is_root = inputs[1].is_root = false;
    ck_assert_int_eq(kedge_compute_weigh(&spec, NULL, false, inputs, 3, &w, &d), KEDGE_E_ARG); /* none */
}
END_TEST

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-root-XXXXXX");
    if (!mkdtemp(dir)) {
        return 1;
    }
    Suite *suite = suite_create("compute root");
    TCase *t = tcase_create("root");
    tcase_add_loop_test(t, test_by_hand, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(t, test_statements);
    suite_add_tcase(suite, t);
    int failed = run_suite(suite);
    return kedge_dir_remove(dir) != KEDGE_OK || failed != 0;
}
