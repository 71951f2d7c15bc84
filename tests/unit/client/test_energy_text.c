/* What the owner says about energy, and what a site remembers of it, as texts. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/energy/energy_stored.h"
#include "client/daemon/policy.h"
#include "tests/fixtures/run.h"

static struct kedge_site_policy policy;
static struct kedge_diag d;

static int parse(const char *energy)
{
    char text[1024];
    snprintf(text, sizeof text, "{\"energy\": %s}", energy);
    d = (struct kedge_diag){.text = ""};
    return kedge_policy_parse(kedge_view_str(text), "policy.json", &policy, &d);
}

START_TEST(defaults_limit_nothing)
{
    ck_assert_int_eq(parse("{}"), KEDGE_OK);
    const struct kedge_energy_policy *p = &policy.energy;
    ck_assert(!p->tells_battery);
    ck_assert(p->meters && !p->share && !p->batch_fixed && p->power == KEDGE_POWER_NONE);
    ck_assert_str_eq(p->root, "/");
    ck_assert_str_eq(p->nvml, "libnvidia-ml.so.1");
    ck_assert(p->eta > 0.49 && p->eta < 0.51 && p->power_rule == KEDGE_RULE_POWER_COST);
    ck_assert(!(p->rules.battery_floor > 0) && !(p->rules.joules_per_day > 0) && p->rules.hours_count == 0);
    kedge_policy_deinit(&policy);
}
END_TEST

START_TEST(every_key_is_taken)
{
    ck_assert_msg(
        parse("{\"meters\":false,\"scope\":\"share\",\"batch\":\"fixed\",\"power\":\"gpu\",\"power_rule\":"
              "\"slowdown=1.2\",\"power_idle_w\":\"4.5\",\"power_max_w\":60,\"power_least\":40,\"eta\":\"1\","
              "\"explore\":0,\"joules_per_job\":1000,\"joules_per_day\":5000,\"battery_floor\":20,"
              "\"charging_only\":true,\"hours\":[\"22:00-06:30\",\"12:00-24:00\"],\"temperature_max_c\":80,"
              "\"root\":\"/r\",\"nvml\":\"\",\"gpu\":\"GPU-1\",\"tell\":\"battery\"}")
            == KEDGE_OK,
        "%s", d.text);
    const struct kedge_energy_policy *p = &policy.energy;
    ck_assert(p->tells_battery);
    ck_assert(!p->meters && p->share && p->batch_fixed && p->power == KEDGE_POWER_GPU
              && p->rules.charging_only);
    ck_assert(p->power_rule == KEDGE_RULE_POWER_SLOWDOWN && fabs(p->slowdown - 1.2) < 1e-12);
    ck_assert(fabs(p->idle_w - 4.5) < 1e-12 && fabs(p->max_w - 60) < 1e-12
              && fabs(p->power_least - 40) < 1e-12);
    ck_assert(p->rules.hours_count == 2 && p->rules.hours[0].from == 1320 && p->rules.hours[0].to == 390
              && p->rules.hours[1].to == 1440);
    ck_assert(fabs(p->rules.celsius_max - 80) < 1e-12 && fabs(p->rules.joules_per_day - 5000) < 1e-12);
    kedge_policy_deinit(&policy);
}
END_TEST

START_TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *energy, *names;
    } cases[] = {{"7", "energy"},
                 {"{\"watts\":1}", "watts"},
                 {"{\"meters\":1}", "meters"},
                 {"{\"scope\":\"all\"}", "scope"},
                 {"{\"batch\":32}", "batch"},
                 {"{\"tell\":\"all\"}", "tell"},
                 {"{\"power\":\"more\"}", "power"},
                 {"{\"power_rule\":\"slowdown=0.5\"}", "power_rule"},
                 {"{\"power_rule\":1}", "power_rule"},
                 {"{\"eta\":\"1.5\"}", "eta"},
                 {"{\"eta\":[0.5]}", "eta"},
                 {"{\"battery_floor\":96}", "battery_floor"},
                 {"{\"joules_per_day\":-1}", "joules_per_day"},
                 {"{\"hours\":\"22:00-06:00\"}", "hours"},
                 {"{\"hours\":[\"22:00-22:00\"]}", "hours"},
                 {"{\"hours\":[\"22:00-25:00\"]}", "hours"},
                 {"{\"hours\":[\"2:00-5:00\"]}", "hours"},
                 {"{\"hours\":[\"22:60-23:00\"]}", "hours"},
                 {"{\"root\":\"here\"}", "root"},
                 {"{\"nvml\":\"lib/libnvidia-ml.so.1\"}", "nvml"},
                 {"{\"gpu\":7}", "gpu"},
                 {"{\"power_idle_w\":9}", "power_idle_w"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(parse(cases[i].energy) == KEDGE_E_FORMAT, "case %zu", i);
        ck_assert_msg(strncmp(d.text, "policy.json: ", 13) == 0 && strstr(d.text, cases[i].names),
                      "case %zu: %s", i, d.text);
    }
}
END_TEST

static struct kedge_energy_stored stored, back;

static void fill(void)
{
    static const uint32_t sizes[] = {4, 8, 16};
    const struct kedge_batch_options options = kedge_batch_defaults();
    struct kedge_energy_task *t = &stored.tasks[0];
    memset(&stored, 0, sizeof stored);
    const struct kedge_id job = {"j"};
    const struct kedge_budget_clock clock = {20000, 5};
    const struct kedge_budget_rules rules = {.joules_per_day = 1000};
    const struct kedge_joules used = kedge_joules_measured(12.5);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &stored.budget, &job, 100, &clock),
                     (int)KEDGE_BUDGET_YES);
    kedge_budget_end(&stored.budget, &job, &used);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &stored.budget, &job, 100, &clock),
                     (int)KEDGE_BUDGET_YES);
    stored.task_count = 1;
    ck_assert_int_eq(kedge_rounds_init(&t->rounds, &options, sizes, 3, 1, NULL), KEDGE_OK);
    memset(t->rounds.key, 0xab, sizeof t->rounds.key);
    for (int i = 0; i < 40; i++) {
        kedge_batch_saw(&t->rounds.batch, 1, 2.5 + i, true);
    }
    kedge_batch_saw(&t->rounds.batch, 2, 9, false);
    t->rounds.quality = KEDGE_QUALITY_MEASURED;
    t->rounds.has_costs = true;
    kedge_noise_saw(&t->rounds.noise, 4, 14.5, 32, 3.5625);
    t->rounds.speed[1] = 0.01;
    t->rounds.samples = 300;
    ck_assert_int_eq(kedge_profile_init(&t->profiles[1], true, 100, 40), KEDGE_OK);
    kedge_profile_saw(&t->profiles[1], 0, 10, 2, 80);
}

START_TEST(what_is_remembered_comes_back)
{
    struct kedge_buf one, two;
    fill();
    kedge_buf_init(&one, KEDGE_ENERGY_TEXT_MAX);
    kedge_buf_init(&two, KEDGE_ENERGY_TEXT_MAX);
    ck_assert_int_eq(kedge_energy_stored_encode(&stored, &one), KEDGE_OK);
    ck_assert_msg(kedge_energy_stored_decode(kedge_buf_view(&one), &back, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_int_eq(kedge_energy_stored_encode(&back, &two), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&one), kedge_buf_view(&two)));
    ck_assert(back.budget.open_count == 1 && back.budget.open[0].reserved > 0 && back.budget.day == 20000);
    ck_assert(back.tasks[0].rounds.batch.sizes[2].fails && back.tasks[0].profiles[1].levels[0].windows == 1);
    ck_assert(
        memcmp(&back.tasks[0].rounds.batch, &stored.tasks[0].rounds.batch, sizeof back.tasks[0].rounds.batch)
        == 0);
    struct kedge_rng rng;
    kedge_rng_init(&rng, 3, KEDGE_RNG_TEST, 0, 0);
    for (int i = 0; i < 3000; i++) { /* any damage is found, or what is read is fit to be used */
        const size_t at = (size_t)kedge_rng_below(&rng, one.len);
        const uint8_t old = one.ptr[at];
        one.ptr[at] = (uint8_t)(0x20 + kedge_rng_below(&rng, 0x5f));
        if (kedge_energy_stored_decode(kedge_buf_view(&one), &back, &d) == KEDGE_OK && back.task_count > 0) {
            const struct kedge_rounds_ask ask = {.seconds = 5};
            const struct kedge_rounds_choice c = kedge_rounds_choose(&back.tasks[0].rounds, &ask, &rng);
            ck_assert(c.place < back.tasks[0].rounds.batch.count && c.size >= 1);
        }
        one.ptr[at] = old;
    }
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&two);
}
END_TEST

START_TEST(no_more_than_fits)
{
    struct kedge_buf text;
    static const uint32_t sizes[] = {1,   2,    4,    8,    16,   32,    64,    128,  256,
                                     512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
    const struct kedge_batch_options options = kedge_batch_defaults();
    memset(&stored, 0, sizeof stored);
    stored.task_count = KEDGE_ENERGY_TASKS_MAX;
    for (uint32_t i = 0; i < stored.task_count; i++) { /* as much as eight jobs can leave behind */
        struct kedge_energy_task *t = &stored.tasks[i];
        ck_assert_int_eq(kedge_rounds_init(&t->rounds, &options, sizes, 17, 4, NULL), KEDGE_OK);
        for (uint32_t k = 0; k < 17 * KEDGE_BATCH_WINDOW; k++) {
            kedge_batch_saw(&t->rounds.batch, k % 17, 1.0 / 3 + k * 1e-7, true);
        }
        for (uint32_t k = 0; k < 17; k++) {
            ck_assert_int_eq(kedge_profile_init(&t->profiles[k], true, 1000, 1), KEDGE_OK);
            for (uint32_t level = 0; level < KEDGE_PROFILE_LEVELS_MAX; level++) {
                kedge_profile_saw(&t->profiles[k], level, 3, 10, 700);
            }
        }
    }
    kedge_buf_init(&text, KEDGE_ENERGY_TEXT_MAX);
    ck_assert_int_eq(kedge_energy_stored_encode(&stored, &text), KEDGE_OK);
    ck_assert_int_eq(kedge_energy_stored_decode(kedge_buf_view(&text), &back, &d), KEDGE_OK);
    kedge_buf_deinit(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/energy text");
    TCase *tests = tcase_create("texts");
    tcase_add_test(tests, defaults_limit_nothing);
    tcase_add_test(tests, every_key_is_taken);
    tcase_add_test(tests, what_is_wrong_is_named);
    tcase_add_test(tests, what_is_remembered_comes_back);
    tcase_add_test(tests, no_more_than_fits);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
