/* Whether two groups join by what their sites found: rows worked out by hand. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "job/job_spec.h"
#include "round/trial.h"
#include "tests/fixtures/run.h"

enum { MOST = 6 };

static const struct row {
    const char *what;
    uint32_t share_max; /* in millionths, 0: no cap */
    uint32_t sites[2], tenants, count;
    struct kedge_trial_input inputs[MOST];
    bool joins; /* of a cut: it stays */
} rows[] = {
    {"better for both", 0, {1, 1}, 2, 2, {{0, 0, 10, 0.5, 0.4}, {1, 1, 10, 0.5, 0.4}}, true},
    {"worse for both", 0, {1, 1}, 2, 2, {{0, 0, 10, 0.5, 0.6}, {1, 1, 10, 0.5, 0.6}}, false},
    {"a tie joins", 0, {1, 1}, 2, 2, {{0, 0, 10, 0.5, 0.625}, {1, 1, 10, 0.5, 0.375}}, true},
    {"samples weigh", 0, {1, 1}, 2, 2, {{0, 0, 30, 0.5, 0.625}, {1, 1, 10, 0.5, 0.375}}, false},
    {"… up to weight_max", 0, {1, 1}, 2, 2, {{0, 0, 5000, 0.5, 0.625}, {1, 1, 100, 0.5, 0.25}}, true},
    {"… up to three times what sites have in the median",
     0,
     {3, 2},
     2,
     5,
     {{0, 0, 100, 0.5, 0.625},
      {0, 0, 10, 0.5, 0.375},
      {0, 0, 10, 0.5, 0.375},
      {1, 1, 10, 0.5, 0.375},
      {1, 1, 10, 0.5, 0.375}},
     true},
    {"one number counts three times what is usual at most",
     0,
     {2, 2},
     2,
     4,
     {{0, 0, 10, 0.5, 1e9}, {0, 0, 10, 0.5, 0.25}, {1, 1, 10, 0.5, 0.25}, {1, 1, 10, 0.5, 0.25}},
     true},
    {"… in either direction",
     0,
     {3, 2},
     2,
     5,
     {{0, 0, 10, 1e9, 0},
      {0, 0, 10, 0.5, 0.75},
      {0, 0, 10, 0.5, 0.75},
      {1, 1, 10, 0.25, 0.5},
      {1, 1, 10, 0.25, 0.5}},
     false},
    {"a tenant of many sites, without a cap",
     0,
     {3, 1},
     2,
     4,
     {{0, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.25}, {1, 1, 10, 0.5, 1}},
     true},
    {"… with one",
     500000,
     {3, 1},
     2,
     4,
     {{0, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.25}, {1, 1, 10, 0.5, 1}},
     false},
    {"… cannot keep groups apart either",
     500000,
     {3, 1},
     2,
     4,
     {{0, 0, 10, 0.5, 0.75}, {0, 0, 10, 0.5, 0.75}, {0, 0, 10, 0.5, 0.75}, {1, 1, 10, 0.5, 0}},
     true},
    {"not finite, below 0, of nothing: as if it had not come",
     0,
     {3, 2},
     2,
     5,
     {{0, 0, 10, 0.5, 0.25},
      {0, 0, 10, (double)NAN, 0},
      {0, 0, 10, 0, (double)INFINITY},
      {1, 1, 0, 9, 1},
      {1, 1, 10, 0.5, 0.25}},
     true},
    {"one side is silent", 0, {2, 1}, 2, 2, {{0, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.25}}, false},
    {"one site of three", 0, {0, 3}, 1, 1, {{0, 1, 10, 0.5, 0.25}}, false},
    {"one site where there is but one", 0, {0, 1}, 1, 1, {{0, 1, 10, 0.5, 0.25}}, true},
    {"one tenant of two", 0, {2, 2}, 2, 2, {{0, 0, 10, 0.5, 0.25}, {0, 1, 10, 0.5, 0.25}}, false},
    {"one tenant where there is but one",
     0,
     {2, 2},
     1,
     2,
     {{0, 0, 10, 0.5, 0.25}, {0, 1, 10, 0.5, 0.25}},
     true},
    {"nobody is there", 0, {0, 0}, 0, 0, {{0}}, true},
    {"nobody has said anything", 0, {1, 1}, 1, 0, {{0}}, false},
};

/* Whether sites' own models serve them best: in the place of the trial's, the loss of these. */
static const struct own_row {
    const char *what;
    uint32_t tenants, count;
    struct kedge_trial_input inputs[MOST];
    bool was, is;
} own_rows[] = {
    {"better at both", 2, 2, {{0, 0, 10, 0.5, 0.25}, {1, 0, 10, 0.5, 0.25}}, false, true},
    {"worse at both: the way back", 2, 2, {{0, 0, 10, 0.5, 0.75}, {1, 0, 10, 0.5, 0.75}}, true, false},
    {"the same at both: as it was", 2, 2, {{0, 0, 10, 0.5, 0.5}, {1, 0, 10, 0.5, 0.5}}, true, true},
    {"better by little, as it was: no", 2, 2, {{0, 0, 10, 0.5, 0.25}, {1, 0, 10, 0.5, 0.625}}, false, false},
    {"… yes", 2, 2, {{0, 0, 10, 0.5, 0.25}, {1, 0, 10, 0.5, 0.625}}, true, true},
    {"worse by little: the way back", 2, 2, {{0, 0, 10, 0.5, 0.25}, {1, 0, 10, 0.5, 0.875}}, true, false},
    {"-0.25, -0.25, -0.25, 0: m = -0.1875, v = 0.01171875, n = 4: m^2 (n - 1) = 9 v",
     2,
     4,
     {{0, 0, 10, 0.5, 0.25}, {1, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.25}, {1, 0, 10, 0.5, 0.5}},
     false,
     true},
    {"-0.5, -0.25, -0.5, 0.25: m = -0.25, v = 0.09375, n = 4: m^2 (n - 1) = 2 v",
     2,
     4,
     {{0, 0, 10, 0.5, 0}, {1, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0}, {1, 0, 10, 0.5, 0.75}},
     false,
     false},
    {"half of the weight has found no difference: as it was",
     2,
     4,
     {{0, 0, 10, 0.5, 0.75}, {1, 0, 10, 0.5, 0.5}, {0, 0, 10, 0.5, 0.75}, {1, 0, 10, 0.5, 0.5}},
     true,
     true},
    {"one number counts three times what is usual at most",
     2,
     5,
     {{0, 0, 10, 1e9, 0}, {1, 0, 10, 0.5, 1}, {0, 0, 10, 0.5, 1}, {1, 0, 10, 0.5, 1}, {1, 0, 10, 0.5, 1}},
     true,
     false},
    {"one site", 1, 1, {{0, 0, 10, 0.5, 0.25}}, false, false},
    {"one tenant of two", 2, 2, {{0, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.25}}, false, false},
    {"one tenant where there is but one", 1, 2, {{0, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.25}}, false, true},
    {"not finite: as if it had not come",
     2,
     3,
     {{0, 0, 10, 0.5, 0.25}, {1, 0, 10, 0.5, 0.25}, {1, 0, 10, 0.5, (double)INFINITY}},
     false,
     true},
    {"nobody", 2, 0, {{0}}, true, true},
};

/* Whether a cut stays: the trial is what the site's part alone would have made. */
static const struct row cut_rows[] = {
    {"better for both by the same: sure",
     0,
     {1, 1},
     2,
     2,
     {{0, 0, 10, 0.5, 0.25}, {1, 1, 10, 0.5, 0.25}},
     true},
    {"a tie is none", 0, {1, 1}, 2, 2, {{0, 0, 10, 0.5, 0.5}, {1, 1, 10, 0.5, 0.5}}, false},
    {"worse for both", 0, {1, 1}, 2, 2, {{0, 0, 10, 0.5, 0.75}, {1, 1, 10, 0.5, 0.75}}, false},
    {"-0.375, -0.125, -0.375, 0.125: m = -0.1875, v = 0.04296875, n = 4: 11 m^2 (n - 1) = 27 v",
     0,
     {2, 2},
     2,
     4,
     {{0, 0, 10, 0.5, 0.125}, {0, 0, 10, 0.5, 0.375}, {1, 1, 10, 0.5, 0.125}, {1, 1, 10, 0.5, 0.625}},
     true},
    {"-0.375, 0.125, -0.125, 0.125: m = -0.0625, v = 0.04296875, n = 4: 11 m^2 (n - 1) = 3 v",
     0,
     {2, 2},
     2,
     4,
     {{0, 0, 10, 0.5, 0.125}, {0, 0, 10, 0.5, 0.625}, {1, 1, 10, 0.5, 0.375}, {1, 1, 10, 0.5, 0.625}},
     false},
    {"half of the weight has found no difference",
     0,
     {2, 2},
     2,
     4,
     {{0, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.5}, {1, 1, 10, 0.5, 0.25}, {1, 1, 10, 0.5, 0.5}},
     false},
    {"-0.25, -0.25, 0.25, -0.25: m = -0.125, v = 0.046875, n = 4: m^2 (n - 1) = v, not above it",
     0,
     {2, 2},
     2,
     4,
     {{0, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.25}, {1, 1, 10, 0.5, 0.75}, {1, 1, 10, 0.5, 0.25}},
     false},
    {"one number counts three times what is usual at most",
     0,
     {2, 2},
     2,
     4,
     {{0, 0, 10, 1e9, 0}, {0, 0, 10, 0.5, 1}, {1, 1, 10, 0.5, 1}, {1, 1, 10, 0.5, 1}},
     false},
    {"one side is silent", 0, {2, 1}, 2, 2, {{0, 0, 10, 0.5, 0.25}, {0, 0, 10, 0.5, 0.25}}, false},
    {"one tenant of two", 0, {2, 2}, 2, 2, {{0, 0, 10, 0.5, 0.25}, {0, 1, 10, 0.5, 0.25}}, false},
    {"nobody is there", 0, {0, 0}, 0, 0, {{0}}, false},
    {"nobody has said anything", 0, {1, 1}, 1, 0, {{0}}, false},
};

START_TEST(test_decides_cut)
{
    const struct row *r = &cut_rows[_i];
    const struct kedge_trial_crowd crowd = {.sites = {r->sites[0], r->sites[1]}, .tenants = r->tenants};
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    bool stays = !r->joins;
    ck_assert_ptr_nonnull(spec);
    spec->weight_max = 100;
    spec->tenant_share_max = 1000000;
    ck_assert_int_eq(kedge_compute_cut_stays(spec, r->inputs, r->count, &crowd, &stays), KEDGE_OK);
    ck_assert_msg(stays == r->joins, "%s", r->what);
    kedge_mem_free(spec);
}
END_TEST

START_TEST(test_decides_own)
{
    const struct own_row *r = &own_rows[_i];
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    bool is_personal = r->was;
    ck_assert_ptr_nonnull(spec);
    spec->weight_max = 100;
    spec->tenant_share_max = 1000000;
    spec->tenant_count = r->tenants;
    ck_assert_int_eq(kedge_compute_personal(spec, r->inputs, r->count, &is_personal), KEDGE_OK);
    ck_assert_msg(is_personal == r->is, "%s", r->what);
    kedge_mem_free(spec);
}
END_TEST

START_TEST(test_decides)
{
    const struct row *r = &rows[_i];
    const struct kedge_trial_crowd crowd = {.sites = {r->sites[0], r->sites[1]}, .tenants = r->tenants};
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    bool joins = !r->joins;
    ck_assert_ptr_nonnull(spec);
    spec->weight_max = 100;
    spec->tenant_share_max = r->share_max > 0 ? r->share_max : 1000000;
    ck_assert_int_eq(kedge_compute_trial(spec, r->inputs, r->count, &crowd, &joins), KEDGE_OK);
    ck_assert_msg(joins == r->joins, "%s", r->what);
    kedge_mem_free(spec);
}
END_TEST

/* Of 40 sites, so many that say `lie` in the place of what they have found turn the verdict about a cut. */
static uint32_t count_liars(double mean, double lie, uint64_t samples)
{
    static const double off[] = {-0.07, 0.05, -0.03, 0.01, -0.01, 0.03, -0.05, 0.07};
    const struct kedge_trial_crowd crowd = {.sites = {20, 20}, .tenants = 2};
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    struct kedge_trial_input inputs[40];
    bool stays = mean < 0;
    uint32_t liars = 0;
    ck_assert_ptr_nonnull(spec);
    spec->weight_max = 1000000;
    spec->tenant_share_max = 1000000;
    while (stays == (mean < 0)) {
        for (uint32_t i = 0; i < 40; i++) {
            const bool lies = i < liars;
            inputs[i] = (struct kedge_trial_input){.tenant = i % 2,
                                                   .side = i / 20,
                                                   .samples = lies ? samples : 50,
                                                   .loss = 1,
                                                   .trial_loss = 1 + (lies ? lie : mean + off[i % 8])};
        }
        ck_assert_uint_le(liars, 40);
        ck_assert_int_eq(kedge_compute_cut_stays(spec, inputs, 40, &crowd, &stays), KEDGE_OK);
        liars++;
    }
    kedge_mem_free(spec);
    return liars - 1;
}

/* True differences are of a few percent, and liars say a whole loss. Where a difference was bounded by the
 * usual loss, and samples by weight_max alone, it took 3 to have a cut stay that helps nobody, 1 to take back
 * one that helps all, and 1 of many samples. */
START_TEST(test_counts_liars)
{
    ck_assert_uint_eq(count_liars(0.02, -1, 50), 8);
    ck_assert_uint_eq(count_liars(-0.05, 1, 50), 7);
    ck_assert_uint_eq(count_liars(0.02, -1, 1000000), 4);
}
END_TEST

START_TEST(test_out_of_range)
{
    const struct kedge_trial_crowd crowd = {.sites = {1, 1}, .tenants = 1};
    struct kedge_trial_input in = {.tenant = KEDGE_SPEC_TENANTS_MAX, .samples = 1};
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    bool joins = false;
    ck_assert_ptr_nonnull(spec);
    ck_assert_int_eq(kedge_compute_trial(spec, &in, 1, &crowd, &joins), KEDGE_E_ARG);
    in = (struct kedge_trial_input){.side = 2, .samples = 1};
    ck_assert_int_eq(kedge_compute_trial(spec, &in, 1, &crowd, &joins), KEDGE_E_ARG);
    kedge_mem_free(spec);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trial");
    TCase *tc = tcase_create("decision");
    tcase_add_loop_test(tc, test_decides, 0, (int)(sizeof rows / sizeof rows[0]));
    tcase_add_loop_test(tc, test_decides_cut, 0, (int)(sizeof cut_rows / sizeof cut_rows[0]));
    tcase_add_loop_test(tc, test_decides_own, 0, (int)(sizeof own_rows / sizeof own_rows[0]));
    tcase_add_test(tc, test_counts_liars);
    tcase_add_test(tc, test_out_of_range);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
