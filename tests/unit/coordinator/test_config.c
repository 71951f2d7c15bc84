/* The coordinator's config.json: what is refused, by which words, and that a lease outlives a heartbeat. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/site.h"
#include "common/base/limits.h"
#include "coordinator/core/coord.h"
#include "coordinator/daemon/config.h"

enum { NS_PER_MS = 1000000 };

#define WITH(setting) "{\"deployment\":\"a.test\"," setting "}"

static const struct {
    const char *text, *said, *hint; /* said NULL: it is taken */
} cases[] = {
    {"{\"deployment\":\"a.test\"}", NULL, NULL},
    {"{}", "\"deployment\" is missing", NULL},
    {WITH("\"lease\":5000"), "unknown key \"lease\"", NULL},
    {WITH("\"workers\":17"), "\"workers\": expected a whole number from 0 to 16", NULL},
    {WITH("\"close_threads\":16"), NULL, NULL},
    {WITH("\"close_threads\":17"), "\"close_threads\": expected a whole number from 0 to 16", NULL},
    {WITH("\"lease_ms\":5000"), NULL, NULL},
    {WITH("\"lease_ms\":4999"), "\"lease_ms\": expected a whole number from 5000 to 3600000",
     "every 4000 ms"},
    {WITH("\"lease_ms\":0"), "\"lease_ms\": expected a whole number from 5000 to 3600000", "every 4000 ms"},
    {WITH("\"lease_ms\":-1"), "\"lease_ms\": expected a whole number from 5000 to 3600000", "every 4000 ms"},
    {WITH("\"lease_ms\":3600001"), "\"lease_ms\": expected a whole number from 5000 to 3600000", NULL},
    {WITH("\"https_listen\":\"https://0.0.0.0:8443\",\"https_connections\":8"), NULL, NULL},
    {WITH("\"https_listen\":\"tls+tcp://0.0.0.0:8443\""), "\"https_listen\": expected an address like", NULL},
    {WITH("\"https_listen\":[]"), "\"https_listen\": expected an address like", NULL},
    {WITH("\"refused_days\":0,\"refused_mb\":0"), NULL, NULL},
    {WITH("\"events\":false,\"events_folder\":\"/run/kedge-events\",\"events_tenants\":[\"org-a\",\"b\"]"),
     NULL, NULL},
    {WITH("\"events_listen\":[\"tcp://127.0.0.1:0\",\"ws://[::1]:80/e\"]"), NULL, NULL},
    {WITH("\"events\":1"), "\"events\": expected true or false", NULL},
    {WITH("\"events_folder\":\"run\""), "\"events_folder\": expected the absolute path of a folder", NULL},
    {WITH("\"events_listen\":[\"tcp://0.0.0.0:7444\"]"),
     "\"events_listen\": expected addresses of this machine", NULL},
    {WITH("\"events_listen\":[\"tls+tcp://127.0.0.1:7444\"]"),
     "\"events_listen\": expected addresses of this machine", NULL},
    {WITH("\"events_tenants\":[\"../x\"]"), "\"events_tenants\": expected names of tenants", NULL},
    {WITH("\"refused_days\":3651"), "\"refused_days\": expected a whole number from 0 to 3650", NULL},
    {WITH("\"https_connections\":7"), "\"https_connections\": expected a whole number from 8 to 4096", NULL},
    {WITH("\"https_certificate\":\"/c\",\"https_key\":\"/k\""), NULL, NULL},
    {WITH("\"https_certificate\":\"/c\""), "stand together or not at all", NULL},
    {WITH("\"https_key\":\"/k\""), "stand together or not at all", NULL},
    {WITH("\"https_key\":\"k\""), "\"https_key\": expected the absolute path", NULL},
    {WITH("\"https_certificate\":7"), "\"https_certificate\": expected the absolute path", NULL},
    {WITH("\"lease_ms\":\"5000\""), "\"lease_ms\": expected a whole number", NULL},
};
enum { CASES = sizeof cases / sizeof cases[0] };

START_TEST(test_cases)
{
    struct kedge_config c;
    struct kedge_diag d = {.text = ""};
    int err = kedge_config_parse(kedge_view_str(cases[_i].text), &c, &d);
    ck_assert_int_eq(err, cases[_i].said ? KEDGE_E_FORMAT : KEDGE_OK);
    ck_assert_msg(!cases[_i].said || strstr(d.text, cases[_i].said), "%s: %s", cases[_i].text, d.text);
    ck_assert_msg(!cases[_i].hint || strstr(d.hint, cases[_i].hint), "%s: %s", cases[_i].text, d.hint);
}
END_TEST

/* While a site works, its heartbeats are all that is heard of it; each has to come before the lease is over.
 */
START_TEST(test_lease_outlives_heartbeat)
{
    struct kedge_site_times site;
    struct kedge_coord_times coord;
    kedge_site_times_default(&site);
    kedge_coord_times_default(&coord);
    ck_assert_uint_eq(site.heartbeat, (uint64_t)KEDGE_HEARTBEAT_MS * NS_PER_MS);
    ck_assert_uint_gt((uint64_t)KEDGE_LEASE_MIN_MS * NS_PER_MS, site.heartbeat);
    ck_assert_uint_ge(coord.lease, (uint64_t)KEDGE_LEASE_MIN_MS * NS_PER_MS);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator-config");
    TCase *t = tcase_create("config");
    tcase_add_loop_test(t, test_cases, 0, CASES);
    tcase_add_test(t, test_lease_outlives_heartbeat);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
