/* Who closes an open upload, and when: after idling for too long, the longest first; with its site; at the
 * end. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/store/blob/blobs.h"
#include "common/base/limits.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"
#include "tests/unit/base/check.h"

enum { SITES = 4, TOTAL = 10 };

static const uint64_t IDLE_NS = (uint64_t)KEDGE_UPLOAD_IDLE_S * 1000000000u;

static struct kedge_tenant tenants[1] = {{.id = {"org-a"}}};
static struct kedge_site_entry sites[SITES];
static struct kedge_host host;
static struct kedge_blobs *blobs;
static char folder[64];

static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/kedge-uploads-XXXXXX");
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_log_init("test", KEDGE_LOG_ERROR);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(kedge_blobs_open(folder, NULL, &blobs, NULL), KEDGE_OK);
    memset(sites, 0, sizeof sites);
    for (unsigned i = 0; i < SITES; i++) {
        snprintf(sites[i].id.s, sizeof sites[i].id.s, "site-%u", i);
        sites[i].active = true;
    }
    host = (struct kedge_host){.tenants = tenants, .tenant_count = 1, .sites = sites, .site_count = SITES};
}

/* No upload may be open, else closing the store ends the process. */
static void end(void)
{
    kedge_blobs_close(blobs);
    ck_assert_int_eq(kedge_dir_remove(folder), KEDGE_OK);
}

/* What a worker does: opens or goes on, writes one byte; how much was there. */
static uint64_t send(uint32_t site, uint64_t now_ns)
{
    struct kedge_site_upload *u = kedge_uploads_take(&host, site);
    const uint8_t byte = (uint8_t)site;
    uint64_t at = u->file ? kedge_upload_offset(u->file) : 0;
    memset(u->digest.b, (int)site + 1, sizeof u->digest.b);
    if (!u->file) {
        ck_assert_int_eq(
            kedge_upload_open(blobs, &sites[site].id, NULL, &u->digest, TOTAL, &u->file, &at, NULL),
            KEDGE_OK);
    }
    ck_assert_int_eq(kedge_upload_write(u->file, at, kedge_view_of(&byte, 1), NULL), KEDGE_OK);
    kedge_uploads_give_back(&host, site, now_ns);
    return at;
}

static unsigned count_open(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SITES; i++) {
        count += sites[i].upload.file != NULL;
    }
    return count;
}

START_TEST(test_idle)
{
    begin();
    ck_assert_uint_eq(kedge_uploads_due_ns(&host), KEDGE_TIME_NEVER);
    for (uint32_t i = 0; i < SITES; i++) {
        ck_assert_uint_eq(send(i, 100 + i), 0);
    }
    ck_assert_uint_eq(send(0, 200), 1); /* the last one now */
    ck_assert_uint_eq(kedge_uploads_due_ns(&host), 101 + IDLE_NS);
    kedge_uploads_close_idle(&host, 100 + IDLE_NS);
    ck_assert_uint_eq(count_open(), SITES);
    kedge_uploads_close_idle(&host, 102 + IDLE_NS);
    ck_assert_uint_eq(count_open(), 2);
    ck_assert(sites[0].upload.file && sites[3].upload.file);
    (void)kedge_uploads_take(&host, 3); /* a worker has it: it does not idle */
    kedge_uploads_close_idle(&host, 10 * IDLE_NS);
    ck_assert_uint_eq(count_open(), 1);
    kedge_uploads_give_back(&host, 3, 10 * IDLE_NS);
    ck_assert_uint_eq(kedge_uploads_due_ns(&host), 11 * IDLE_NS);
    ck_assert_uint_eq(send(1, 10 * IDLE_NS), 1); /* what came is kept */
    kedge_uploads_close_idle(&host, 11 * IDLE_NS);
    ck_assert_uint_eq(count_open(), 0);
    ck_assert_uint_eq(kedge_uploads_due_ns(&host), KEDGE_TIME_NEVER);
    end();
}
END_TEST

START_TEST(test_revoked)
{
    begin();
    send(0, 1);
    send(1, 2);
    (void)kedge_uploads_take(&host, 1);
    for (uint32_t i = 0; i < 2; i++) {
        sites[i].active = false;
        kedge_uploads_drop(&host, i);
    }
    ck_assert(!sites[0].upload.file && sites[1].upload.file); /* the worker has the other one */
    kedge_uploads_give_back(&host, 1, 3);
    ck_assert_uint_eq(count_open(), 0);
    ck_assert_uint_eq(kedge_uploads_due_ns(&host), KEDGE_TIME_NEVER);
    sites[0].active = sites[1].active = true;
    ck_assert_uint_eq(send(0, 4) + send(1, 4), 0); /* nothing was kept */
    kedge_uploads_drop(&host, 0);
    kedge_uploads_drop(&host, 1);
    end();
}
END_TEST

START_TEST(test_end)
{
    begin();
    for (uint32_t i = 0; i < SITES; i++) {
        send(i, 1);
    }
    (void)kedge_uploads_take(&host, 1); /* its completion will never be handled */
    (void)kedge_uploads_take(&host, 2);
    sites[2].active = false; /* revoked meanwhile */
    kedge_uploads_close_all(&host);
    ck_assert_uint_eq(count_open(), 0);
    ck_assert_uint_eq(kedge_uploads_due_ns(&host), KEDGE_TIME_NEVER);
    kedge_uploads_close_all(&host);
    sites[1].upload.is_busy = sites[2].upload.is_busy = false;
    sites[2].active = true;
    ck_assert_uint_eq(send(1, 5), 1);
    ck_assert_uint_eq(send(2, 5), 0);
    kedge_uploads_close_all(&host);
    end();
}
END_TEST

int main(void)
{
    const TTest *tests[] = {test_idle, test_revoked, test_end};
    return run_suite("coordinator_uploads", tests, sizeof tests / sizeof tests[0]);
}
