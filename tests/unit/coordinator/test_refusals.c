/* Refusals in a store: kept until their job ends, told to the core after a restart, damaged ones by name. The
 * rest of the coordinator is played here. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/store/kv/kv.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/members.h"
#include "coordinator/daemon/records.h"
#include "coordinator/daemon/sites/refusals.h"
#include "tests/fixtures/kv.h"
#include "tests/unit/base/check.h"

enum { SITES = 3 };

static struct kedge_tenant tenants[1] = {{.id = {"org-a"}}};
static struct kedge_site_entry sites[SITES] = {{.id = {"site-0"}}, {.id = {"site-1"}}, {.id = {"site-2"}}};
static struct kedge_job jobs[2];
static struct kedge_ticket tickets[SITES];
static struct kedge_statement statements[SITES];
static struct kedge_host host;
static struct kedge_coord_event told[8];
static size_t told_count;
static bool round_open;

/* ---- what the others do ---- */

uint32_t kedge_host_tenant_find(const struct kedge_host *h, const struct kedge_id *id)
{
    return kedge_id_eq(id, &h->tenants[0].id) ? 0 : KEDGE_COORD_NONE;
}

uint32_t kedge_host_site_find(const struct kedge_host *h, uint32_t tenant, const struct kedge_id *id)
{
    uint32_t i = 0;
    (void)tenant;
    while (i < SITES && !kedge_id_eq(id, &h->sites[i].id)) {
        i++;
    }
    return i < SITES ? i : KEDGE_COORD_NONE;
}

struct kedge_job *kedge_host_job_find(struct kedge_host *h, const struct kedge_id *id, bool ended_too)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (kedge_id_eq(id, &h->jobs[i].spec.name) && (ended_too || h->jobs[i].state < KEDGE_JOB_COMPLETED)) {
            return &h->jobs[i];
        }
    }
    return NULL;
}

void kedge_host_step(struct kedge_host *h, struct kedge_coord_event *ev)
{
    (void)h;
    ck_assert_uint_lt(told_count, sizeof told / sizeof told[0]);
    told[told_count++] = *ev;
}

/* Instead of the core: all jobs are in the round that they say. */
bool kedge_coord_job(const struct kedge_coord *c, uint32_t job, struct kedge_coord_job_view *ret)
{
    (void)c;
    *ret = (struct kedge_coord_job_view){.round = jobs[job].round, .round_open = round_open};
    return jobs[job].state < KEDGE_JOB_COMPLETED;
}

/* ---- the tests ---- */

static void begin(void)
{
    memset(jobs, 0, sizeof jobs);
    jobs[1].slot = 1;
    jobs[0].spec.name = (struct kedge_id){"demo"};
    jobs[1].spec.name = (struct kedge_id){"demo-2"};
    jobs[0].round = jobs[1].round = 1;
    jobs[0].state = jobs[1].state = KEDGE_JOB_TRAINING;
    for (uint32_t i = 0; i < SITES; i++) {
        tickets[i] = (struct kedge_ticket){.used = true, .st = &statements[i]};
        statements[i].u.update.samples = 10 + i;
    }
    round_open = true;
    told_count = 0;
    host = (struct kedge_host){.tenants = tenants,
                               .tenant_count = 1,
                               .sites = sites,
                               .site_count = SITES,
                               .jobs = jobs,
                               .tickets = tickets};
    ck_assert_int_eq(kedge_kv_memory_new(&host.kv), KEDGE_OK);
}

static void refuse(uint32_t job, uint32_t round, uint32_t site, int err)
{
    struct kedge_coord_effect fx = {.type = KEDGE_FX_TURN_AWAY,
                                    .job = job,
                                    .round = round,
                                    .site = site,
                                    .ticket = site,
                                    .kind = KEDGE_TASK_TRAIN,
                                    .err = err,
                                    .recorded = true};
    jobs[job].round = round; /* the open one */
    kedge_host_refusal_store(&host, &fx);
}

static uint64_t count(void)
{
    uint64_t n = 0;
    struct kedge_kv_tx *tx;
    ck_assert_int_eq(kedge_kv_begin(host.kv, false, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_count(tx, KEDGE_KV_ROUND, &n), KEDGE_OK);
    kedge_kv_abort(tx);
    return n;
}

static void put(const char *key, struct kedge_view value)
{
    struct kedge_kv_tx *tx;
    ck_assert_int_eq(kedge_kv_begin(host.kv, true, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_put(tx, KEDGE_KV_ROUND, kedge_view_str(key), value, KEDGE_KV_PUT), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
}

static void drop(const char *job)
{
    struct kedge_id id;
    struct kedge_kv_tx *tx;
    ck_assert_int_eq(kedge_id_from(kedge_view_str(job), &id), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_begin(host.kv, true, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_host_refusals_drop(tx, &id, KEDGE_COORD_NONE), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
}

START_TEST(test_kept_and_told)
{
    struct kedge_diag d = {.text = ""};
    begin();
    refuse(0, 1, 2, KEDGE_E_WEIGHT);
    refuse(0, 1, 0, KEDGE_E_BOUND);
    refuse(0, 1, 2, KEDGE_E_BOUND); /* the first one stays */
    refuse(1, 1, 1, KEDGE_E_SHAPE);
    ck_assert_uint_eq(count(), 3);
    ck_assert_int_eq(kedge_host_refusals_load(&host, &jobs[0], &d), KEDGE_OK);
    ck_assert_uint_eq(told_count, 2);
    ck_assert(told[0].site == 0 && told[0].err == KEDGE_E_BOUND && told[0].weight == 10);
    ck_assert(told[1].site == 2 && told[1].err == KEDGE_E_WEIGHT && told[1].weight == 12);
    ck_assert(told[1].type == KEDGE_EV_LOAD_REFUSED && told[1].kind == KEDGE_TASK_TRAIN
              && told[1].round == 1);
    refuse(0, 2, 1, KEDGE_E_BOUND); /* the first of another round takes the place of the earlier ones */
    ck_assert_uint_eq(count(), 2);
    kedge_kv_close(host.kv);
}
END_TEST

START_TEST(test_gone_with_the_job)
{
    begin();
    refuse(0, 1, 0, KEDGE_E_WEIGHT);
    refuse(0, 1, 1, KEDGE_E_WEIGHT);
    refuse(1, 1, 1, KEDGE_E_WEIGHT);
    drop("demo");
    ck_assert_uint_eq(count(), 1); /* of "demo-2", whose name begins like it */
    drop("demo-2");
    ck_assert_uint_eq(count(), 0);
    kedge_kv_close(host.kv);
}
END_TEST

static const struct {
    enum kedge_job_state state;
    uint32_t round;
    bool open;
    const char *name;
    uint64_t left;
} sweeps[] = {
    {KEDGE_JOB_TRAINING, 1, true, "demo", 2},
    {KEDGE_JOB_HALTED, 1, true, "demo", 2},
    {KEDGE_JOB_COMPLETED, 1, true, "demo", 0}, /* a crash between its end and its record, or an older version
                                                */
    {KEDGE_JOB_CANCELLED, 1, false, "demo", 0},
    {KEDGE_JOB_TRAINING, 1, false, "demo", 0}, /* closed */
    {KEDGE_JOB_TRAINING, 2, true, "demo", 0},
    {KEDGE_JOB_TRAINING, 1, true, "gone", 0}, /* it left the table */
};

START_TEST(test_swept_at_start)
{
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        struct kedge_diag d = {.text = ""};
        begin();
        refuse(0, 1, 0, KEDGE_E_WEIGHT);
        refuse(0, 1, 1, KEDGE_E_WEIGHT);
        jobs[0].state = sweeps[i].state;
        jobs[0].round = sweeps[i].round;
        ck_assert_int_eq(kedge_id_from(kedge_view_str(sweeps[i].name), &jobs[0].spec.name), KEDGE_OK);
        round_open = sweeps[i].open;
        ck_assert_int_eq(kedge_host_refusals_sweep(&host, &d), KEDGE_OK);
        ck_assert_msg(count() == sweeps[i].left, "case %zu: %u left", i, (unsigned)count());
        kedge_kv_close(host.kv);
    }
}
END_TEST

/* More than one transaction's worth. */
START_TEST(test_sweeps_many)
{
    enum { MANY = 40000 };
    struct kedge_kv_tx *tx;
    struct kedge_diag d = {.text = ""};
    struct kedge_refusal_record r = {
        .job = {"ended"}, .tenant = {"org-a"}, .kind = KEDGE_TASK_TRAIN, .err = KEDGE_E_BOUND};
    begin();
    ck_assert_int_eq(kedge_kv_begin(host.kv, true, &tx, NULL), KEDGE_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        struct kedge_buf key, value;
        kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
        kedge_buf_init(&value, KEDGE_RECORD_MAX);
        snprintf(r.site.s, sizeof r.site.s, "site-%06u", i);
        kedge_refusal_record_encode(&r, &key, &value);
        ck_assert_int_eq(
            kedge_kv_put(tx, KEDGE_KV_ROUND, kedge_buf_view(&key), kedge_buf_view(&value), KEDGE_KV_APPEND),
            KEDGE_OK);
        kedge_buf_deinit(&key);
        kedge_buf_deinit(&value);
    }
    ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_host_refusals_sweep(&host, &d), KEDGE_OK);
    ck_assert_uint_eq(count(), 0);
    kedge_kv_close(host.kv);
}
END_TEST

static const struct {
    const char *key;
    size_t len;
    const char *said;
} damages[] = {
    {"demo/00000001/org-a/site-0/2", 75, "it has not its length"},
    {"demo/00000001/org-a/site-0/2", 76, "its reason is no refusal"}, /* zeros */
    {"demo/00000001/org-a/site-0/9", 76, "the key is not JOB/ROUND/TENANT/SITE/KIND"},
    {"demo/00000001/org-a/site-0", 76, "the key is not JOB/ROUND/TENANT/SITE/KIND"},
};

START_TEST(test_damage_is_named)
{
    static const uint8_t zeros[76];
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct kedge_diag d = {.text = ""}, e = {.text = ""};
        begin();
        put(damages[i].key, kedge_view_of(zeros, damages[i].len));
        ck_assert_int_eq(kedge_host_refusals_load(&host, &jobs[0], &d), KEDGE_E_CORRUPT);
        ck_assert_int_eq(kedge_host_refusals_sweep(&host, &e), KEDGE_E_CORRUPT);
        ck_assert_msg(strstr(d.text, damages[i].said) && strstr(d.text, damages[i].key), "%s", d.text);
        ck_assert_str_eq(d.text, e.text);
        ck_assert_uint_eq(told_count, 0);
        kedge_kv_close(host.kv);
    }
}
END_TEST

START_TEST(test_unknown_site)
{
    struct kedge_diag d = {.text = ""};
    begin();
    refuse(0, 1, 0, KEDGE_E_WEIGHT);
    sites[0].id = (struct kedge_id){"site-9"};
    ck_assert_int_eq(kedge_host_refusals_load(&host, &jobs[0], &d), KEDGE_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(d.text, "key \"demo/00000001/org-a/site-0/2\": no ledger knows this site"));
    sites[0].id = (struct kedge_id){"site-0"};
    kedge_kv_close(host.kv);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_kept_and_told, test_gone_with_the_job, test_swept_at_start,
                                  test_sweeps_many,   test_damage_is_named,   test_unknown_site};
    return run_suite("coordinator-refusals", tests, sizeof tests / sizeof tests[0]);
}
