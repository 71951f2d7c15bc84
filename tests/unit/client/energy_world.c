#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/os/clock.h"
#include "tests/unit/client/energy_world.h"

enum { SAMPLES = 2000, PARTS = 3 };
const uint32_t sizes[SIZES] = {4, 8, 16, 32, 64, 128, 256};
static const double noisy = 0.02; /* of what a round takes, as on a machine that nobody else uses */

/* ---- the machine and the task ---- */

struct world world;
struct kedge_site_host host;
static struct kedge_site_policy owners;
static struct kedge_client_work *const work = &host.works[0];
struct kedge_job_spec spec;
struct told told;
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

static char root[64];

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

void pass(double seconds, double watts)
{
    const uint64_t used = kedge_os_processor_ns();
    while (world.burns && kedge_os_processor_ns() < used + 30000000u) {
    }
    world.now_ns += (uint64_t)(seconds * 1e9);
    world.unix_ms += (uint64_t)(seconds * 1e3);
    world.joules += seconds * watts;
    world.battery_j += seconds * (world.charging ? 30 : -watts);
    world.battery_j = fmax(0, fmin(battery_full_j, world.battery_j));
    show();
}

double seconds_of(double b)
{
    return SAMPLES / b * (world.device.t0 + b / world.device.mu);
}
static double watts_of(double b)
{
    return world.device.idle + (world.device.most - world.device.idle) * b / (b + world.device.half);
}
double cost_of(double b, double eta)
{
    const double t = seconds_of(b), phi = world.device.phi;
    return (eta * watts_of(b) * t + (1 - eta) * world.device.most * t) * (phi + b) / (phi + sizes[START]);
}
uint32_t best_of(double eta)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < SIZES; i++) {
        best = cost_of(sizes[i], eta) < cost_of(sizes[best], eta) ? i : best;
    }
    return best;
}

/* ---- the site ---- */

void open_site(const char *energy)
{
    struct kedge_diag d = {.text = ""};
    char text[512];
    json_error_t wrong;
    snprintf(text, sizeof text, "{\"root\": \"%s\", \"nvml\": \"\"%s%s}", root, energy[0] ? ", " : "",
             energy);
    json_t *o = json_loads(text, 0, &wrong);
    ck_assert_ptr_nonnull(o);
    ck_assert_msg(kedge_policy_energy_read(o, "policy.json", &owners.energy, &d) == KEDGE_OK, "%s", d.text);
    json_decref(o);
    owners.train_seconds_max = 3600;
    owners.threads = 2;
    work->spec = &spec;
    work->h = &host;
    work->policy = host.policy = &owners;
    ck_assert_msg(kedge_client_energy_open(&host, &d) == KEDGE_OK, "%s", d.text);
    told.rests = false; /* a process begins awake */
    kedge_client_energy_turn(&host);
}

void close_site(void)
{
    kedge_client_energy_close(&host);
}

void begin_world(const struct device *device, const char *energy)
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
    memset(&owners, 0, sizeof owners);
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
    owners.data = json_pack("{s:{s:s}}", "mine", "path", "/data");
    open_site(energy);
}

void end_world(void)
{
    close_site();
    json_decref(owners.data);
    ck_assert_int_eq(kedge_dir_remove(host.dir), KEDGE_OK);
}

struct round one_round(const char *job, double left_s, enum ending ending)
{
    struct kedge_site_task t = {
        .kind = KEDGE_SITE_TRAIN, .round = 1, .remaining_ns = (uint64_t)(left_s * 1e9)};
    struct kedge_energy_plan plan;
    struct kedge_diag d = {.text = ""};
    struct round r = {.was_begun = false};
    uint32_t small, large;
    snprintf(t.job.s, sizeof t.job.s, "%s", job);
    const int err = kedge_client_energy_begin(work, &t, &plan, &d);
    if (err) {
        ck_assert_int_eq(err, KEDGE_E_DENIED);
        snprintf(r.why, sizeof r.why, "%s", d.text);
        return r;
    }
    r.was_begun = true;
    r.asked_noise = plan.wants_noise;
    r.size = plan.batch;
    r.threads = plan.threads;
    const double watts = watts_of(plan.batch) * (plan.threads == 1 ? 0.5 : 1); /* one is nearly as quick */
    const double off = 1 + noisy * (2 * kedge_rng_unit(&world.rng) - 1), before = world.joules;
    for (int part = 0; part < PARTS; part++) {
        pass(seconds_of(plan.batch) * off / PARTS, watts);
        kedge_client_energy_tick(work);
        if (ending == IS_KILLED && part == PARTS / 2) {
            r.joules = world.joules - before;
            return r;
        }
    }
    for (int pair = 0; pair < 2 && plan.wants_noise; pair++) {
        const double s = 50, g2 = s / world.device.phi;
        kedge_client_energy_noise(work, &plan, &small, &large);
        kedge_client_energy_saw_noise(work, &plan, small, (g2 + s / small) * off, large,
                                      (g2 + s / large) * off);
        pass(0.5, watts_of(large));
    }
    if (world.diverges_above > 0 && plan.batch > world.diverges_above) {
        const struct kedge_metrics none = {.samples = 0};
        const int broken = kedge_diag_set(&d, KEDGE_E_TRAINER, "kedge-train: training diverged");
        kedge_client_energy_end(work, &plan, &none, broken, &d);
        r.diverged = true;
        return r;
    }
    const struct kedge_metrics m = {.samples = SAMPLES, .steps = SAMPLES / plan.batch};
    kedge_client_energy_end(work, &plan, &m, KEDGE_OK, &d);
    memcpy(r.how, plan.energy_how, sizeof r.how);
    r.cost = cost_of(plan.batch, 0.5);
    r.joules = world.joules - before;
    r.told = plan.joules;
    return r;
}

double percent(void)
{
    return 100 * world.battery_j / battery_full_j;
}
