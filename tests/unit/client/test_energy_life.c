/* Months of a site's energy in seconds: what the daemon does around its tasks, over restarts and kills. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/base/check.h"
#include "tests/unit/client/energy_world.h"

enum { DAYS = 6 };

static const struct device dear_steps = {0.05, 400, 200, 10, 50, 16}; /* large ones are best */
static const struct device low_noise = {0.0005, 100, 5, 10, 50, 16};  /* small ones */
static const struct device flat_power = {0.02, 2000, 1000, 30, 35, 16};

/* Over the rounds of one job, with restarts and kills between and in them, the site comes to the size that is
 * cheapest, and never pays much for it; the next job of the kind begins there, another one does not. */
START_TEST(a_choice_is_learnt_and_remembered)
{
    static const struct device *const devices[] = {&dear_steps, &low_noise, &flat_power};
    begin_world(devices[_i], "");
    const double best = cost_of(sizes[best_of(0.5)], 0.5), normal = cost_of(sizes[START], 0.5);
    ck_assert_double_lt(1.15 * best, normal);
    double all = 0, last = 0, next = 0;
    int rounds = 0;
    for (int round = 0; round < 300; round++) {
        const bool killed = round % 61 == 60;
        const struct round r = one_round("long", 3600, killed ? IS_KILLED : ENDS);
        ck_assert(r.was_begun);
        if (killed || round % 37 == 36) {
            close_site();
            open_site("");
        }
        all += killed ? 0 : r.cost;
        rounds += !killed;
        last += round >= 240 ? r.cost : 0;
    }
    ck_assert_msg(last <= 1.06 * 60 * best, "%g of %g", last / 60, best);
    ck_assert_msg(all <= 1.02 * rounds * normal, "%g of %g", all / rounds, normal);
    close_site();
    open_site("");
    int asked = 0;
    for (int round = 0; round < 60; round++) {
        const struct round r = one_round("next", 3600, ENDS);
        next += r.cost;
        asked += r.asked_noise;
    }
    ck_assert_msg(next <= 1.06 * 60 * best, "%g of %g", next / 60, best);
    ck_assert_msg(asked <= 4, "%d", asked);
    spec.learning_rate = 0.2;
    const struct round other = one_round("other", 3600, ENDS);
    ck_assert(other.size == sizes[START] && other.asked_noise);
    end_world();
}
END_TEST

/* Small batches are best here, and slow; no round takes longer than it has, also those that try. */
START_TEST(no_round_is_late)
{
    static const struct device slow = {0.03, 400, 5, 10, 50, 16};
    begin_world(&slow, "");
    const double left = 1.1 * seconds_of(sizes[START]) / 0.64; /* a fifth for the upload, a fifth to spare */
    uint32_t others = 0;
    ck_assert_double_gt(seconds_of(sizes[best_of(0.5)]), 0.8 * left);
    for (int round = 0; round < 150; round++) {
        const struct round r = one_round("long", left, ENDS);
        ck_assert_msg(seconds_of(r.size) <= 0.8 * left, "batch %u in round %d", r.size, round);
        others += r.size != sizes[START];
    }
    ck_assert_uint_gt(others, 0);
    end_world();
}
END_TEST

/* No day's joules go beyond the budget by more than a round, whatever is killed when; each new day brings
 * work, and the owner is told why there is none. */
START_TEST(joules_of_a_day)
{
    const double budget = 20000;
    begin_world(&dear_steps, "\"joules_per_day\": 20000");
    double drawn[DAYS] = {0}, most = 0;
    uint32_t done[DAYS] = {0}, refused = 0, rests = 0, kills = 0;
    const uint64_t first_day = world.unix_ms / 86400000;
    while (world.unix_ms / 86400000 < first_day + DAYS) {
        const uint64_t day = world.unix_ms / 86400000 - first_day;
        kedge_client_energy_turn(&host);
        rests += told.rests;
        if (!told.rests) {
            const bool killed = kedge_rng_below(&world.rng, 12) == 0;
            const struct round r = one_round("long", 60, killed ? IS_KILLED : ENDS);
            drawn[day] += r.joules;
            most = fmax(most, r.joules);
            done[day] += r.was_begun;
            refused += !r.was_begun;
            ck_assert(r.was_begun || strstr(r.why, "today"));
            if (killed && r.was_begun) {
                kills++;
                close_site();
                open_site("\"joules_per_day\": 20000");
            }
        } else {
            ck_assert_ptr_nonnull(strstr(host.service.waits_for, "today"));
        }
        pass(600, 0);
    }
    for (int day = 0; day < DAYS; day++) {
        ck_assert_msg(drawn[day] <= budget + most, "day %d: %g", day, drawn[day]);
        ck_assert_msg(done[day] >= 5, "day %d: %u", day, done[day]);
    }
    ck_assert_msg(refused >= 5 && rests > 100 && kills > 3, "%u, %u, %u", refused, rests, kills);
    end_world();
}
END_TEST

/* Stop at 20 %: nothing is begun below it, and nothing until 25 %, also behind a restart in between. */
START_TEST(the_battery_falls)
{
    static const char policy[] = "\"battery_floor\": 20";
    begin_world(&dear_steps, policy);
    uint32_t rounds = 0, falls = 0, restarts = 0;
    bool awake = true;
    for (int turn = 0; turn < 3000 && falls < 4; turn++) {
        kedge_client_energy_turn(&host);
        if (awake && told.rests) {
            ck_assert_double_lt(percent(), 20);
            ck_assert_ptr_nonnull(strstr(host.service.waits_for, "battery"));
            ck_assert(!one_round("long", 600, ENDS).was_begun); /* a task that came meanwhile */
            world.charging = true;
            falls++;
        }
        if (!awake && !told.rests) {
            ck_assert_double_ge(percent(), 25);
            world.charging = percent() < 26; /* one that comes back finds it charged */
        }
        awake = !told.rests;
        if (awake) {
            world.charging = false;
            const double before = percent();
            ck_assert(one_round("long", 600, ENDS).was_begun);
            ck_assert_double_ge(before, 20);
            rounds++;
        }
        pass(60, 5);
        if (!awake && percent() > 21.5 && percent() < 24) { /* the owner starts it again, as below */
            close_site();
            open_site(policy);
            restarts++;
            ck_assert(told.rests);
        }
    }
    ck_assert_msg(falls == 4 && rounds > 50 && restarts > 0, "%u, %u, %u", falls, rounds, restarts);
    end_world();
}
END_TEST

/* Charger and temperature, with their hysteresis. */
START_TEST(charger_and_heat)
{
    begin_world(&dear_steps, "\"charging_only\": true, \"temperature_max_c\": 80");
    static const struct {
        bool charging, rests;
        double celsius;
    } steps[] = {{false, true, 50}, {true, false, 50}, {true, false, 79}, {true, true, 81},
                 {true, true, 77},  {true, false, 74}, {false, true, 74}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        world.charging = steps[i].charging;
        world.celsius = steps[i].celsius;
        pass(2, 5);
        kedge_client_energy_turn(&host);
        ck_assert_msg(told.rests == steps[i].rests, "step %zu: %s", i, host.service.waits_for);
        ck_assert(one_round("long", 600, ENDS).was_begun == !steps[i].rests);
    }
    end_world();
}
END_TEST

/* What trying costs stays within the owner's share, and nothing is tried with 0, also when he lowers it
 * later; what was learnt with another η, largest power or scope is not held against it. */
START_TEST(the_owners_policy_in_force)
{
    static const struct device start_is_best = {0.01, 200, 30, 10, 50, 16};
    static const char *const shares[] = {"\"explore\": 0", "\"explore\": \"0.25\""};
    for (int k = 0; k < 2; k++) {
        begin_world(&start_is_best, shares[k]);
        double all = 0, normal = cost_of(sizes[START], 0.5);
        uint32_t others = 0;
        for (int round = 0; round < 90; round++) {
            const struct round r = one_round("long", 3600, ENDS);
            all += r.cost;
            others += r.size != sizes[START];
            ck_assert_double_le(all, (1 + 0.25 * k) * 1.02 * normal * (round + 1 + 9 * k));
        }
        ck_assert(k ? others > 0 : others == 0);
        end_world();
    }
    begin_world(&dear_steps, "");
    for (int round = 0; round < 18; round++) { /* in the middle of trying */
        (void)one_round("long", 3600, ENDS);
    }
    const uint32_t task = host.energy->stored.task_count - 1;
    ck_assert_uint_eq(task, 0);
    close_site();
    open_site("\"explore\": 0");
    (void)one_round("long", 3600, ENDS);
    struct kedge_batch_options *options = &host.energy->stored.tasks[0].rounds.batch.options;
    ck_assert(!(options->explore > 0));
    options->far_share = 0.5; /* an older program's */
    (void)one_round("long", 3600, ENDS);
    options = &host.energy->stored.tasks[0].rounds.batch.options;
    ck_assert_double_eq_tol(options->far_share, kedge_batch_defaults().far_share, 1e-12);
    static const char *const kinds[] = {"\"eta\": \"0.9\"", "\"power_max_w\": 60", "\"scope\": \"share\""};
    for (uint32_t k = 0; k < 3; k++) {
        close_site();
        open_site(kinds[k]);
        ck_assert_uint_eq(one_round("long", 3600, ENDS).size, sizes[START]);
        ck_assert_uint_eq(host.energy->stored.task_count, k + 2);
    }
    end_world();
}
END_TEST

/* A size that breaks the training is tried once, and not again by a later job or behind a restart; the start
 * is never given up. */
START_TEST(what_diverges_is_left)
{
    begin_world(&dear_steps, "");
    ck_assert_uint_gt(sizes[best_of(0.5)], 32);
    uint32_t broken = 0, last = 0;
    for (int round = 0; round < 200; round++) {
        world.diverges_above = 32;
        const struct round r = one_round(round < 100 ? "long" : "next", 3600, ENDS);
        broken += r.diverged;
        last = r.diverged ? last : r.size;
        if (round % 20 == 19) {
            close_site();
            open_site("");
        }
    }
    ck_assert_msg(broken >= 1 && broken <= 3, "%u", broken);
    ck_assert_uint_eq(last, 32);
    world.diverges_above =
        8; /* now nothing but the smallest ones works: the start is still what the job named */
    for (int round = 0; round < 40; round++) {
        ck_assert_uint_le(one_round("next", 3600, ENDS).size, 32);
    }
    world.diverges_above = 0;
    end_world();
}
END_TEST

/* Fewer threads, and a lower power cap, only where the owner allows it; what was chosen and why is in the
 * plan and the status. */
START_TEST(power_is_the_owners)
{
    static const char *const policies[] = {"", "\"power\": \"threads\", \"power_rule\": \"energy\""};
    for (int allowed = 0; allowed < 2; allowed++) {
        begin_world(&dear_steps, policies[allowed]);
        uint32_t fewer = 0;
        for (int round = 0; round < 60; round++) {
            fewer += one_round("long", 3600, ENDS).threads == 1;
        }
        kedge_client_energy_turn(&host);
        const char *choice = json_string_value(json_object_get(host.service.status.energy, "last_choice"));
        ck_assert(choice && strncmp(choice, "batch ", 6) == 0
                  && (strstr(choice, "threads") != NULL) == allowed);
        ck_assert_msg(allowed ? fewer > 30 : fewer == 0, "%u", fewer);
        end_world();
    }
}
END_TEST

/* A share is attributed, which is not measured, and says so; a trainer whose processor time nobody knows has
 * none, not 0 J. */
START_TEST(a_share_is_attributed)
{
    begin_world(&dear_steps, "\"scope\": \"share\", \"power_idle_w\": 5, \"power_max_w\": 60");
    struct round r = one_round("long", 3600, ENDS);
    ck_assert_int_eq((int)r.told.quality, (int)KEDGE_QUALITY_UNKNOWN);
    ck_assert(isnan(r.told.joules));
    host.works[0].trainer.process.pid = getpid();
    world.burns = true;
    r = one_round("long", 3600, ENDS);
    ck_assert_int_eq((int)r.told.quality, (int)KEDGE_QUALITY_MODELLED);
    ck_assert(r.told.joules < r.joules && r.told.low <= r.told.joules && r.told.high >= r.told.joules);
    ck_assert_ptr_nonnull(strstr(r.how, "attributed share"));
    end_world();
}
END_TEST

/* What a first round may take, by hand: 4 inputs and 3 classes, and 1.2 MB of CSV in the shortest rows (10
 * bytes), 10 times, on 2 threads and a device whose power nobody knows. An hour at its largest power has no
 * part in it, and a day that it would use up is begun. */
START_TEST(a_first_round_is_estimated)
{
    begin_world(&dear_steps, "\"joules_per_day\": 50000, \"meters\": false");
    struct kedge_site_task t = {.kind = KEDGE_SITE_TRAIN, .round = 1, .remaining_ns = (uint64_t)3600e9};
    struct kedge_client_work *w = &host.works[0];
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_path_join(path, host.dir, "mine.csv"), KEDGE_OK);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(ftruncate(fileno(f), 1200000), 0);
    ck_assert_int_eq(fclose(f), 0);
    json_object_set_new(w->policy->data, "mine",
                        json_pack("{s:{s:s,s:s}}", "train", "format", "csv", "path", "mine.csv"));
    spec.local_epochs = 10;
    const double samples = 120000, watts = 15 + 10 * 2;
    const double seconds = 1 + 0.12 + 10 * samples / spec.batch_least * 50e-6
                           + 2 * 12 * (3 * 10 * samples + samples) / (0.5e9 * 2);
    ck_assert_double_eq_tol(kedgei_energy_first(w, &t), watts * seconds, 1e-6);
    t.kind = KEDGE_SITE_EVALUATE;
    ck_assert_double_eq_tol(kedgei_energy_first(w, &t), watts * (1.12 + 2 * 12 * samples / (0.5e9 * 2)),
                            1e-6);
    t.kind = KEDGE_SITE_TRAIN;
    t.remaining_ns = (uint64_t)2e9; /* it never takes longer than it may */
    ck_assert_double_eq_tol(kedgei_energy_first(w, &t), 2 * watts, 1e-6);
    spec.local_epochs = 1000000;
    const struct round r = one_round("long", 3600, ENDS);
    ck_assert_msg(r.was_begun, "%s", r.why);
    ck_assert_int_eq((int)r.told.quality, (int)KEDGE_QUALITY_UNKNOWN); /* assumed joules are never stated … */
    ck_assert_double_gt(host.energy->budget.day_joules, 30 * 11);      /* … and count for the owner */
    kedge_client_energy_turn(&host);
    const char *by = json_string_value(json_object_get(host.service.status.energy, "budget_by"));
    ck_assert(by && strncmp(by, "35 W that are assumed", 21) == 0);
    end_world();
}
END_TEST

/* The day's joules are used up, and the owner gives it more: it need not wait for the next day. */
START_TEST(a_new_policy_wakes)
{
    begin_world(&dear_steps, "\"joules_per_day\": 1500");
    for (int i = 0; i < 20 && !told.rests; i++) {
        (void)one_round("long", 60, ENDS);
        pass(2, 5);
        kedge_client_energy_turn(&host);
    }
    ck_assert(told.rests && strstr(host.service.waits_for, "joules_per_day") != NULL);
    ((struct kedge_site_policy *)(uintptr_t)host.policy)->energy.rules.joules_per_day = 50000;
    kedge_client_energy_policy(&host);
    kedge_client_energy_turn(&host);
    ck_assert(!told.rests && host.service.waits_for[0] == '\0');
    ck_assert(one_round("long", 60, ENDS).was_begun);
    end_world();
}
END_TEST

/* Switched off it neither chooses nor asks for gradients, and still says what was used. */
START_TEST(switched_off)
{
    begin_world(&dear_steps, "\"batch\": \"fixed\"");
    for (int round = 0; round < 20; round++) {
        const struct round r = one_round("long", 3600, ENDS);
        ck_assert(r.size == sizes[START] && !r.asked_noise);
        ck_assert_int_eq((int)r.told.quality, (int)KEDGE_QUALITY_MEASURED);
        ck_assert_double_eq_tol(r.told.joules, r.joules, 1.01);
    }
    end_world();
}
END_TEST

int main(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    Suite *suite = suite_create("client/energy life");
    TCase *tests = tcase_create("life");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_choice_is_learnt_and_remembered, 0, 3);
    tcase_add_test(tests, no_round_is_late);
    tcase_add_test(tests, joules_of_a_day);
    tcase_add_test(tests, the_battery_falls);
    tcase_add_test(tests, charger_and_heat);
    tcase_add_test(tests, the_owners_policy_in_force);
    tcase_add_test(tests, what_diverges_is_left);
    tcase_add_test(tests, power_is_the_owners);
    tcase_add_test(tests, a_share_is_attributed);
    tcase_add_test(tests, switched_off);
    tcase_add_test(tests, a_first_round_is_estimated);
    tcase_add_test(tests, a_new_policy_wakes);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
