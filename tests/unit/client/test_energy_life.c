/* Months of a site's energy in seconds: what the daemon does around its tasks (energy.c, energy_memory.c,
 * energy_turn.c) with its own file on the disk, while the machine is files below a folder and the clock is
 * the test's. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/daemon/energy_impl.h"
#include "tests/unit/base/check.h"

enum { SIZES = 7, START = 2, SAMPLES = 2000, PARTS = 3, DAYS = 6 };
static const uint32_t sizes[SIZES] = {4, 8, 16, 32, 64, 128, 256};
static const double noisy = 0.02; /* of what a round takes, as on a machine that nobody else uses */

/* ---- the machine and the task ---- */

/* A step of b samples takes t0 + b / mu seconds, power saturates with b, gradients have the noise phi. */
struct device {
    double t0, mu, phi, idle, most, half;
};
static struct {
    struct device device;
    uint64_t now_ns, unix_ms;
    double joules, battery_j; /* drawn so far, left */
    bool charging;
    double celsius;
    struct kedge_rng rng;
    uint64_t seeds;
} world;
static const double battery_full_j = 180000;

/* NOLINTBEGIN(cert-dcl51-cpp,bugprone-reserved-identifier): the linker's own names for what is replaced */
uint64_t __wrap_kedge_os_now_ns(void);
uint64_t __wrap_kedge_os_unix_ms(void);
void __wrap_kedge_os_random(void *out, size_t len);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd) /* nothing here cuts the power, and a disk that others use has no hurry */
{
    return fd < 0 ? -1 : 0;
}
uint64_t __wrap_kedge_os_now_ns(void)
{
    return world.now_ns;
}
uint64_t __wrap_kedge_os_unix_ms(void)
{
    return world.unix_ms;
}
void __wrap_kedge_os_random(void *out, size_t len)
{
    world.seeds++;
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)out)[i] = (uint8_t)(world.seeds >> 8 * (i % 8));
    }
}
/* NOLINTEND(cert-dcl51-cpp,bugprone-reserved-identifier) */

static struct kedge_site_host host;
static struct kedge_job_spec spec;
static char root[64];
static struct {
    bool rests;
    uint32_t changes;
} told;

void kedge_client_step(struct kedge_site_host *h, struct kedge_site_event *ev)
{
    ck_assert(h == &host && ev->type == KEDGE_SITE_EV_REST);
    told.rests = ev->rest;
    told.changes++;
}

/* What stands there already is left alone. */
static void put(const char *name, const char *text)
{
    static struct {
        const char *name;
        char text[96];
    } last[16];
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) {
        if (!last[i].name || last[i].name == name) {
            if (last[i].name && strcmp(last[i].text, text) == 0 && world.now_ns > 1000000000u) {
                return;
            }
            last[i].name = name;
            snprintf(last[i].text, sizeof last[i].text, "%s", text);
            break;
        }
    }
    char path[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    if (!f) {
        snprintf(dir, sizeof dir, "%s", path);
        *strrchr(dir, '/') = '\0';
        ck_assert_int_eq(kedge_dir_make(dir, 0700, NULL), KEDGE_OK);
        f = fopen(path, "w");
    }
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%s\n", text);
    ck_assert_int_eq(fclose(f), 0);
}

static void number(const char *name, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.0f", value);
    put(name, text);
}

/* The kernel's files as they are now. */
static void show(void)
{
    char text[96];
    number("sys/class/powercap/intel-rapl:0/energy_uj", fmod(world.joules * 1e6, 262143328850.0));
    number("sys/class/power_supply/BAT0/energy_now", world.battery_j / 3.6e-3);
    put("sys/class/power_supply/BAT0/status", world.charging ? "Charging" : "Discharging");
    number("sys/class/thermal/thermal_zone0/temp", world.celsius * 1000);
    snprintf(text, sizeof text, "cpu  %.0f 0 0 %.0f 0 0 0 0 0 0", 1000 + (double)world.now_ns / 2e7,
             (double)world.now_ns / 2e7);
    put("proc/stat", text);
}

static void pass(double seconds, double watts)
{
    world.now_ns += (uint64_t)(seconds * 1e9);
    world.unix_ms += (uint64_t)(seconds * 1e3);
    world.joules += seconds * watts;
    world.battery_j += seconds * (world.charging ? 30 : -watts);
    world.battery_j = fmax(0, fmin(battery_full_j, world.battery_j));
    show();
}

static double seconds_of(double b)
{
    return SAMPLES / b * (world.device.t0 + b / world.device.mu);
}
static double watts_of(double b)
{
    return world.device.idle + (world.device.most - world.device.idle) * b / (b + world.device.half);
}
/* Zeus's cost of a round with the size, for as much as a round with the start teaches. */
static double cost_of(double b, double eta)
{
    const double t = seconds_of(b), phi = world.device.phi;
    return (eta * watts_of(b) * t + (1 - eta) * world.device.most * t) * (phi + b) / (phi + sizes[START]);
}
static uint32_t best_of(double eta)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < SIZES; i++) {
        best = cost_of(sizes[i], eta) < cost_of(sizes[best], eta) ? i : best;
    }
    return best;
}

/* ---- the site ---- */

static void open_site(const char *energy)
{
    struct kedge_diag d = {.text = ""};
    char text[512];
    json_error_t wrong;
    snprintf(text, sizeof text, "{\"root\": \"%s\", \"nvml\": \"\"%s%s}", root, energy[0] ? ", " : "",
             energy);
    json_t *o = json_loads(text, 0, &wrong);
    ck_assert_ptr_nonnull(o);
    ck_assert_msg(kedge_policy_energy_read(o, "policy.json", &host.policy.energy, &d) == KEDGE_OK, "%s",
                  d.text);
    json_decref(o);
    host.policy.train_seconds_max = 3600;
    host.policy.threads = 2;
    host.spec = &spec;
    ck_assert_msg(kedge_client_energy_open(&host, &d) == KEDGE_OK, "%s", d.text);
    told.rests = false; /* a process begins awake */
    kedge_client_energy_turn(&host);
}

static void close_site(void)
{
    kedge_client_energy_close(&host);
}

static void begin_world(const struct device *device, const char *energy)
{
    static const char job[] =
        "{\"name\": \"long\", \"tenants\": [\"acme\"], \"data\": \"mine\", \"rounds\": 1000, \"strategy\": "
        "\"fednova\","
        " \"batch\": \"auto\", \"batch_start\": 16, \"batch_least\": 4, \"batch_most\": 256, \"weight_max\": "
        "10000,"
        " \"learning_rate\": \"0.1\", \"model\": {\"preset\": \"mclr\", \"inputs\": 4, \"classes\": 3}}";
    struct kedge_diag d = {.text = ""};
    memset(&world, 0, sizeof world);
    memset(&host, 0, sizeof host);
    memset(&told, 0, sizeof told);
    world.device = *device;
    world.now_ns = 1000000000u;
    world.unix_ms = 20000ull * 86400000;
    world.battery_j = battery_full_j;
    world.celsius = 50;
    kedge_rng_init(&world.rng, 7, KEDGE_RNG_TEST, 0, 0);
    ck_assert_msg(kedge_job_spec_parse(kedge_view_str(job), &spec, &d) == KEDGE_OK, "%s", d.text);
    char dir[] = "/tmp/kedge-energy-life-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(host.dir, sizeof host.dir, "%s", dir);
    snprintf(root, sizeof root, "%s/machine", dir);
    put("sys/class/powercap/intel-rapl:0/name", "package-0");
    put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850");
    number("sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw", device->most * 1e6);
    put("sys/class/power_supply/BAT0/type", "Battery");
    number("sys/class/power_supply/BAT0/energy_full", battery_full_j / 3.6e-3);
    show();
    host.policy.data = json_pack("{s:{s:s}}", "mine", "path", "/data");
    open_site(energy);
}

static void end_world(void)
{
    close_site();
    json_decref(host.policy.data);
    ck_assert_int_eq(kedge_dir_remove(host.dir), KEDGE_OK);
}

enum ending { ENDS, IS_KILLED };
struct round {
    bool was_begun, asked_noise;
    uint32_t size;
    double cost, joules; /* η 0.5; as drawn, not as metered */
    struct kedge_joules told;
    char why[KEDGE_DIAG_TEXT_MAX];
};

/* One round of the job as the work thread has it; `left_s` is what the coordinator gave it. */
static struct round one_round(const char *job, double left_s, enum ending ending)
{
    struct kedge_site_task t = {
        .kind = KEDGE_SITE_TRAIN, .round = 1, .remaining_ns = (uint64_t)(left_s * 1e9)};
    struct kedge_energy_plan plan;
    struct kedge_diag d = {.text = ""};
    struct round r = {.was_begun = false};
    uint32_t small, large;
    snprintf(t.job.s, sizeof t.job.s, "%s", job);
    const int err = kedge_client_energy_begin(&host, &t, &plan, &d);
    if (err) {
        ck_assert_int_eq(err, KEDGE_E_DENIED);
        snprintf(r.why, sizeof r.why, "%s", d.text);
        return r;
    }
    r.was_begun = true;
    r.asked_noise = plan.wants_noise;
    r.size = plan.batch;
    const double off = 1 + noisy * (2 * kedge_rng_unit(&world.rng) - 1), before = world.joules;
    for (int part = 0; part < PARTS; part++) {
        pass(seconds_of(plan.batch) * off / PARTS, watts_of(plan.batch));
        kedge_client_energy_tick(&host);
        if (ending == IS_KILLED && part == PARTS / 2) {
            r.joules = world.joules - before;
            return r;
        }
    }
    for (int pair = 0; pair < 2 && plan.wants_noise; pair++) {
        const double s = 50, g2 = s / world.device.phi;
        kedge_client_energy_noise(&host, &plan, &small, &large);
        kedge_client_energy_saw_noise(&host, &plan, small, (g2 + s / small) * off, large,
                                      (g2 + s / large) * off);
        pass(0.5, watts_of(large));
    }
    const struct kedge_metrics m = {.samples = SAMPLES, .steps = SAMPLES / plan.batch};
    kedge_client_energy_end(&host, &plan, &m, KEDGE_OK, &d);
    r.cost = cost_of(plan.batch, 0.5);
    r.joules = world.joules - before;
    r.told = plan.joules;
    return r;
}

/* ---- tests ---- */

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

/* No day's joules go beyond the budget by more than a round, whoever is killed when; each new day brings
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

static double percent(void)
{
    return 100 * world.battery_j / battery_full_j;
}

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
START_TEST(the_owners_word_in_force)
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
    ck_assert(!(host.energy->stored.tasks[0].rounds.batch.options.explore > 0));
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
    tcase_add_test(tests, the_owners_word_in_force);
    tcase_add_test(tests, switched_off);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
