/* Connections that a limit of open files leaves room for. */
#include <check.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "chain/store/kv/kv.h"
#include "common/base/limits.h"
#include "common/net/server.h"
#include "common/net/web/http.h"
#include "coordinator/daemon/sites/places.h"

START_TEST(test_all_fit)
{
    for (uint64_t files = 512; files < 70000; files += 37) {
        const uint64_t stores =
            3 * (uint64_t)kedge_places_stores(files); /* that are open at a time, beside a lock each */
        for (uint32_t tenants = 0; tenants <= KEDGE_TENANTS_MAX; tenants += 64) {
            struct kedge_places p;
            kedge_places_for(files, tenants, 0, &p);
            ck_assert_uint_ge(p.known, 8);
            ck_assert_uint_ge(p.strangers, 8);
            ck_assert_uint_ge(p.https, 8);
            uint64_t sockets = (uint64_t)p.known + p.strangers + p.https + KEDGE_NET_DOOR_MAX;
            ck_assert_uint_ge(p.tenants, tenants);
            ck_assert_uint_le(p.tenants, KEDGE_TENANTS_MAX);
            bool is_hopeless = stores + tenants + files / 8 + 228 > files;
            /* Each of a site's or a stranger's may have a file open; the stores want theirs, those of tenants
             * that are still to come, too. */
            ck_assert_msg(sockets + p.known + stores + p.tenants + 100 <= files || is_hopeless,
                          "%u files: %u of sites", (unsigned)files, p.known);
        }
    }
}
END_TEST

START_TEST(test_known_values)
{
    struct kedge_places p;
    kedge_places_for(1024, 1, 0, &p);
    ck_assert_uint_eq(p.https, 128);
    ck_assert_uint_eq(p.tenants, 1 + 80);
    ck_assert_uint_eq(p.strangers, 70);
    ck_assert_uint_eq(p.known, 210);
    ck_assert(p.is_short);
    ck_assert_uint_eq(kedge_places_stores(1024), 21);
    ck_assert_uint_eq(kedge_places_stores(20), 8);
    ck_assert_uint_eq(kedge_places_stores(1 << 20), KEDGE_KV_LMDB_OPEN_USUAL);
    kedge_places_for(65536, 256, 0, &p);
    ck_assert_uint_eq(p.https, KEDGE_HTTP_CONNECTIONS);
    ck_assert_uint_eq(p.strangers, KEDGE_NET_STRANGERS_MAX);
    ck_assert_uint_eq(p.known, KEDGE_NET_PEERS_MAX);
    ck_assert(!p.is_short);
    kedge_places_for(65536, 0, 40, &p);
    ck_assert_uint_eq(p.https, 40);
    ck_assert_uint_eq(p.tenants, KEDGE_TENANTS_MAX);
    kedge_places_for(10, 256, 0, &p); /* hopeless; it is the files that fail then */
    ck_assert_uint_eq(p.known, 8);
    ck_assert_uint_eq(p.tenants, 256);
    ck_assert(p.is_short);
}
END_TEST

START_TEST(test_raise)
{
    struct rlimit files;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    const struct rlimit low = {files.rlim_max < 300 ? files.rlim_max : 300, files.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    ck_assert_uint_eq(kedge_places_raise(), files.rlim_max);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    ck_assert_uint_eq(files.rlim_cur, files.rlim_max);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator");
    TCase *t = tcase_create("places");
    tcase_add_test(t, test_all_fit);
    tcase_add_test(t, test_known_values);
    tcase_add_test(t, test_raise);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
