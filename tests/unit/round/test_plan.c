/* What statements say of costs, for how long it counts, and the plan of a round that follows. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "round/plan.h"
#include "tests/fixtures/run.h"

static struct kedge_job_spec spec;
static struct kedge_round_cost cost;
static struct kedge_st_update update;

static void begin(const char *plan)
{
    char text[512];
    struct kedge_diag d;
    snprintf(text, sizeof text,
             "{\"name\":\"j\",\"tenants\":[\"a\"],\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3},"
             "\"data\":\"d\",\"rounds\":100,\"classes\":\"federated\"%s}",
             plan);
    ck_assert_int_eq(kedge_job_spec_parse(kedge_view_str(text), &spec, &d), KEDGE_OK);
    memset(&cost, 0, sizeof cost);
    update = (struct kedge_st_update){.round = 2,
                                      .update_kind = KEDGE_TRAIN_TRAIN,
                                      .samples = 40,
                                      .data_samples = 100,
                                      .seconds = 1.5,
                                      .energy_quality = KEDGE_ENERGY_MODELLED,
                                      .energy_joules = 0.0000025};
}

START_TEST(test_costs)
{
    begin(",\"plan\":\"auto\"");
    update.round = 1; /* in which classes are found, and nothing is trained */
    kedge_round_cost_of(&spec, &update, &cost);
    ck_assert_uint_eq(cost.round, 0);
    update.round = 2;
    kedge_round_cost_of(&spec, &update, &cost);
    ck_assert_uint_eq(cost.round, 2);
    ck_assert_uint_eq(cost.is.samples, 100);
    ck_assert_uint_eq(cost.is.trained, 40);
    ck_assert_uint_eq(cost.is.microseconds, 1500000);
    ck_assert(cost.is.has_joules);
    ck_assert_uint_eq(cost.is.microjoules, 2);
    update.round = 3;
    update.update_kind = KEDGE_TRAIN_PRETRAIN; /* says nothing of it */
    kedge_round_cost_of(&spec, &update, &cost);
    ck_assert_uint_eq(cost.round, 2);
    update.update_kind = KEDGE_TRAIN_TRAIN;
    update.energy_quality = KEDGE_ENERGY_UNKNOWN;
    update.energy_joules = NAN;
    update.seconds = 1e300;
    kedge_round_cost_of(&spec, &update, &cost);
    ck_assert(cost.round == 3 && !cost.is.has_joules);
    ck_assert_uint_eq(cost.is.microseconds, 1000000000000000);
    update.samples = 0; /* no such update is taken; of a record that has one nothing is believed */
    kedge_round_cost_of(&spec, &update, &cost);
    ck_assert_uint_eq(cost.round, 0);
    update.samples = 1;
    update.data_samples = 101;
    kedge_round_cost_of(&spec, &update, &cost);
    ck_assert_uint_eq(cost.round, 0);
    begin("");
    kedge_round_cost_of(&spec, &update, &cost);
    ck_assert_uint_eq(cost.round, 0);
}
END_TEST

START_TEST(test_for_how_long)
{
    cost.round = 5;
    ck_assert(!kedge_round_cost_counts(&cost, 5));
    ck_assert(kedge_round_cost_counts(&cost, 6));
    ck_assert(kedge_round_cost_counts(&cost, 5 + KEDGE_ROUND_COSTS_KEPT));
    ck_assert(!kedge_round_cost_counts(&cost, 6 + KEDGE_ROUND_COSTS_KEPT));
    cost.round = 0;
    ck_assert(!kedge_round_cost_counts(&cost, 1));
    ck_assert(!kedge_round_cost_counts(&cost, KEDGE_ROUND_COSTS_KEPT));
}
END_TEST

START_TEST(test_plan)
{
    struct kedge_round_cost costs[3];
    uint32_t percent[3];
    begin(",\"plan\":{\"data\":10,\"energy\":0,\"time\":8,\"least_percent\":20}");
    for (int i = 0; i < 3; i++) {
        update.seconds = i == 2 ? 16 : 4; /* of 40 samples */
        kedge_round_cost_of(&spec, &update, &costs[i]);
    }
    ck_assert_int_eq(kedge_round_plan(&spec, 3, costs, 3, percent), KEDGE_OK);
    ck_assert_uint_eq(percent[0], 100);
    ck_assert_uint_eq(percent[1], 100);
    ck_assert_uint_eq(percent[2], 25); /* as long as the others take */
    ck_assert_int_eq(kedge_round_plan(&spec, 3 + KEDGE_ROUND_COSTS_KEPT, costs, 3, percent), KEDGE_OK);
    ck_assert_uint_eq(percent[2], 100); /* too long ago: it is measured again */
    ck_assert_int_eq(kedge_round_plan(&spec, 2, costs, 3, percent), KEDGE_OK);
    ck_assert_uint_eq(percent[2], 100); /* nothing of the round itself counts */
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("plan");
    tcase_add_test(c, test_costs);
    tcase_add_test(c, test_for_how_long);
    tcase_add_test(c, test_plan);
    Suite *s = suite_create("round/plan");
    suite_add_tcase(s, c);
    return run_suite(s);
}
