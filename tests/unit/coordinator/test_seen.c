/* When sites were last heard of: stored at a modest rate, read back, damaged records left out. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/store/kv/kv.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/seen.h"
#include "tests/fixtures/kv.h"
#include "tests/unit/base/check.h"

enum { SITES = 3 };
#define NS UINT64_C(1000000000)

static struct kedge_tenant tenants[1] = {{.id = {"org-a"}}};
static struct kedge_site_entry sites[SITES];
static struct kedge_host host;
static unsigned worked;

/* A worker that is done at once. */
void kedge_host_work_own(struct kedge_host *h, struct kedge_work *work)
{
    worked++;
    work->run(h, work);
    work->item.handle(h, &work->item);
}

static void begin(void)
{
    memset(sites, 0, sizeof sites);
    for (size_t i = 0; i < SITES; i++) {
        snprintf(sites[i].id.s, sizeof sites[i].id.s, "site-%zu", i);
    }
    struct kedge_kv *kv = host.kv;
    host = (struct kedge_host){
        .tenants = tenants, .tenant_count = 1, .sites = sites, .site_count = SITES, .kv = kv};
    worked = 0;
}

static void put(const char *key, const void *value, size_t len)
{
    struct kedge_kv_tx *tx;
    ck_assert_int_eq(kedge_kv_begin(host.kv, true, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(
        kedge_kv_put(tx, KEDGE_KV_STATE, kedge_view_str(key), kedge_view_of(value, len), KEDGE_KV_PUT),
        KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
}

START_TEST(test_over_a_restart)
{
    struct kedge_diag d;
    ck_assert_int_eq(kedge_kv_memory_new(&host.kv), KEDGE_OK);
    begin();
    kedge_host_saw(&host, 1);
    kedge_host_saw(&host, 1); /* too soon */
    ck_assert_uint_eq(worked, 1);
    uint64_t first = sites[1].last_seen_ms;
    ck_assert(first > 0 && sites[1].stored_seen_ms > 0 && sites[0].last_seen_ms == 0);
    sites[2].last_seen_ms = 77;
    kedge_host_seen_flush(&host);
    begin();
    ck_assert_int_eq(kedge_host_seen_load(&host, &d), KEDGE_OK);
    ck_assert(sites[0].last_seen_ms == 0 && sites[1].last_seen_ms == first && sites[2].last_seen_ms == 77);
    put("seen/org-a/site-1", "short", 5);
    put("seen/org-a/site-2", "\0\0\0\0\0\0\0\0", 8);
    put("seen/org-a/site-9", "\0\0\0\0\0\0\0\1", 8); /* nobody's */
    begin();
    ck_assert_int_eq(kedge_host_seen_load(&host, &d), KEDGE_OK);
    ck_assert(sites[0].last_seen_ms == 0 && sites[1].last_seen_ms == 0 && sites[2].last_seen_ms == 0);
    kedge_kv_close(host.kv);
}
END_TEST

/* What cannot be stored is stored later; nothing else depends on it. */
START_TEST(test_full_disk)
{
    struct kedge_kv *inner;
    ck_assert_int_eq(kedge_kv_memory_new(&inner), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_faulty_new(inner, &host.kv), KEDGE_OK);
    begin();
    kedge_kv_faulty_set(host.kv, KEDGE_KV_FAULT_FULL, 1);
    kedge_host_saw(&host, 0);
    ck_assert(worked == 1 && sites[0].last_seen_ms > 0 && sites[0].stored_seen_ms == 0 && !host.seen.busy);
    kedge_kv_faulty_set(host.kv, KEDGE_KV_FAULT_NONE, 1);
    kedge_host_seen_flush(&host);
    uint64_t told = sites[0].last_seen_ms;
    begin();
    ck_assert_int_eq(kedge_host_seen_load(&host, NULL), KEDGE_OK);
    ck_assert_uint_eq(sites[0].last_seen_ms, told);
    kedge_kv_close(host.kv);
}
END_TEST

START_TEST(test_rate)
{
    struct kedge_seen never = {.busy = false}, at = {.written_ns = 100 * NS}, busy = {.busy = true};
    ck_assert(kedge_seen_is_due(&never, 5, false) && !kedge_seen_is_due(&busy, 500 * NS, true));
    ck_assert(!kedge_seen_is_due(&at, 160 * NS - 1, false) && kedge_seen_is_due(&at, 160 * NS, false));
    ck_assert(!kedge_seen_is_due(&at, 101 * NS - 1, true) && kedge_seen_is_due(&at, 101 * NS, true));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_over_a_restart, test_full_disk, test_rate};
    return run_suite("coordinator-seen", tests, sizeof tests / sizeof tests[0]);
}
