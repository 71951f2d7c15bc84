/* Who may come, who gives way, and how often: the sums behind a server's bounds, at times that the test says.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/net/admission/admission.h"
#include "common/net/admission/parties.h"
#include "common/net/admission/rate.h"

#define MS UINT64_C(1000000)

START_TEST(test_bucket)
{
    const struct kedge_rate rate = {.interval_ns = 10 * MS, .burst = 3};
    struct kedge_bucket b = {0};
    uint64_t now = 5000 * MS;
    ck_assert(kedge_bucket_is_full(&b, now));
    for (int i = 0; i < 3; i++) {
        ck_assert(kedge_bucket_take(&b, &rate, 1, now));
    }
    const struct kedge_bucket empty = b;
    ck_assert(!kedge_bucket_take(&b, &rate, 1, now));
    ck_assert_uint_eq(kedge_bucket_wait_ns(&b, &rate, 1, now), 10 * MS);
    ck_assert_uint_eq(kedge_bucket_wait_ns(&b, &rate, 2, now + 4 * MS), 16 * MS);
    ck_assert_uint_eq(kedge_bucket_wait_ns(&b, &rate, 1, now + 10 * MS), 0);
    ck_assert_mem_eq(&b, &empty, sizeof b); /* a refusal costs nothing */
    ck_assert(!kedge_bucket_take(&b, &rate, 1, now + 10 * MS - 1));
    ck_assert(kedge_bucket_take(&b, &rate, 1, now + 10 * MS));
    ck_assert(!kedge_bucket_take(&b, &rate, 1, now + 10 * MS));
    ck_assert(!kedge_bucket_take(&b, &rate, 2, now + 20 * MS));
    ck_assert(kedge_bucket_take(&b, &rate, 2, now + 30 * MS));
    ck_assert(!kedge_bucket_is_full(&b, now + 60 * MS - 1));
    ck_assert(kedge_bucket_is_full(&b, now + 60 * MS));
    ck_assert(kedge_bucket_take(&b, &rate, 3, now + 1000 * MS)); /* rest does not make it hold more … */
    ck_assert(!kedge_bucket_take(&b, &rate, 1, now + 1000 * MS));
    kedge_bucket_give(&b, &rate, 100); /* … nor do gifts */
    ck_assert(kedge_bucket_take(&b, &rate, 3, now + 1000 * MS));
    ck_assert(!kedge_bucket_take(&b, &rate, 1, now + 1000 * MS));
}
END_TEST

/* However often it is asked, no more goes through than the rate and one burst. */
START_TEST(test_bucket_over_time)
{
    const struct kedge_rate rate = {.interval_ns = 2 * MS, .burst = 50};
    struct kedge_bucket b = {0};
    unsigned taken = 0;
    for (uint64_t at = 0; at < 10000 * MS; at += MS / 10) {
        taken += kedge_bucket_take(&b, &rate, 1, 77 * MS + at);
    }
    ck_assert_uint_ge(taken, 5000);
    ck_assert_uint_le(taken, 5051);
}
END_TEST

static void address_of(unsigned i, uint8_t out[KEDGEI_ADDRESS_LEN])
{
    memset(out, 0, KEDGEI_ADDRESS_LEN);
    out[10] = out[11] = 0xff;
    out[12] = 10;
    out[13] = (uint8_t)(i >> 16);
    out[14] = (uint8_t)(i >> 8);
    out[15] = (uint8_t)i;
}

START_TEST(test_sources)
{
    const struct kedge_rate rate = {.interval_ns = 1000 * MS, .burst = 1};
    struct kedgei_sources *all = kedge_mem_new(1, sizeof *all);
    uint8_t a[KEDGEI_ADDRESS_LEN], b[KEDGEI_ADDRESS_LEN];
    ck_assert_ptr_nonnull(all);
    all->seed = 12345;
    address_of(1, a);
    address_of(2, b);
    ck_assert(kedge_bucket_take(&kedgei_sources_find(all, a, MS)->arrivals, &rate, 1, MS));
    ck_assert(!kedge_bucket_take(&kedgei_sources_find(all, a, 2 * MS)->arrivals, &rate, 1, 2 * MS));
    ck_assert(kedge_bucket_take(&kedgei_sources_find(all, a, 2 * MS)->requests, &rate, 1, 2 * MS));
    ck_assert(kedge_bucket_take(&kedgei_sources_find(all, b, 2 * MS)->arrivals, &rate, 1, 2 * MS));
    /* One that keeps coming is not pushed out, however many others come in between. */
    for (unsigned i = 3; i < 100000; i++) {
        uint8_t other[KEDGEI_ADDRESS_LEN];
        address_of(i, other);
        ck_assert_mem_eq(kedgei_sources_find(all, other, 3 * MS + i)->address, other, sizeof other);
        struct kedgei_source *mine = kedgei_sources_find(all, a, 3 * MS + i);
        ck_assert_msg(!kedge_bucket_is_full(&mine->arrivals, 3 * MS + i), "forgotten after %u others", i);
    }
    kedge_mem_free(all);
}
END_TEST

START_TEST(test_addresses)
{
    uint8_t v4[KEDGEI_ADDRESS_LEN], before[KEDGEI_ADDRESS_LEN];
    address_of(7, v4);
    memcpy(before, v4, sizeof before);
    kedgei_address_shorten(v4);
    ck_assert_mem_eq(v4, before, sizeof v4);
    uint8_t x[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8}, y[16];
    memcpy(y, x, sizeof y);
    y[8] = 99;
    y[15] = 98;
    kedgei_address_shorten(x);
    kedgei_address_shorten(y);
    ck_assert_mem_eq(x, y, sizeof x); /* one network */
    y[7] = 8;
    ck_assert_mem_ne(x, y, sizeof x);
}
END_TEST

START_TEST(test_verdicts)
{
    const struct kedgei_places places = {.of = {8, 100, 4}, .one = {2, 16, 4}};
    static const struct {
        enum kedgei_class class;
        unsigned count, own;
        enum kedgei_verdict verdict;
    } cases[] = {
        {KEDGEI_STRANGER, 0, 0, KEDGEI_ADMIT},       {KEDGEI_STRANGER, 7, 1, KEDGEI_ADMIT},
        {KEDGEI_STRANGER, 8, 1, KEDGEI_EVICT_CLASS}, {KEDGEI_STRANGER, 8, 2, KEDGEI_EVICT_OWN},
        {KEDGEI_STRANGER, 3, 2, KEDGEI_EVICT_OWN},   {KEDGEI_KNOWN, 99, 15, KEDGEI_ADMIT},
        {KEDGEI_KNOWN, 99, 16, KEDGEI_EVICT_OWN},    {KEDGEI_KNOWN, 100, 0, KEDGEI_EVICT_CLASS},
        {KEDGEI_DOOR, 3, 3, KEDGEI_ADMIT},           {KEDGEI_DOOR, 4, 4, KEDGEI_EVICT_OWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(kedgei_admission(&places, cases[i].class, cases[i].count, cases[i].own)
                          == cases[i].verdict,
                      "case %zu", i);
    }
}
END_TEST

START_TEST(test_who_gives_way)
{
    struct kedgei_idleness it = {.class = KEDGEI_STRANGER, .since_ns = 10000 * MS};
    ck_assert(!kedgei_admission_may_evict(&it, 10199 * MS));
    ck_assert(kedgei_admission_may_evict(&it, 10200 * MS));
    it.has_spoken = true; /* in its handshake */
    ck_assert(!kedgei_admission_may_evict(&it, 11999 * MS));
    ck_assert(kedgei_admission_may_evict(&it, 12000 * MS));
    it.at_work = true; /* a stranger's request is short: it holds no place by it */
    ck_assert(kedgei_admission_may_evict(&it, 12000 * MS));
    ck_assert(!kedgei_admission_may_evict(&it, 9000 * MS)); /* a clock of another thread */
    it.class = KEDGEI_KNOWN;
    ck_assert(!kedgei_admission_may_evict(&it, 99999 * MS));
    it.at_work = false;
    ck_assert(kedgei_admission_may_evict(&it, 10000 * MS));
    it.class = KEDGEI_DOOR;
    ck_assert(kedgei_admission_may_evict(&it, 10000 * MS));
    it.at_work = true;
    ck_assert(!kedgei_admission_may_evict(&it, 99999 * MS));
}
END_TEST

START_TEST(test_parties)
{
    enum { KEYS = 3000 };
    const struct kedge_rate rate = {.interval_ns = 1000 * MS, .burst = 4};
    struct kedgei_parties *all = kedge_mem_new(1, sizeof *all);
    struct kedgei_party *first = NULL;
    struct kedge_public_key key = {.b = {0}};
    ck_assert_ptr_nonnull(all);
    for (unsigned i = 0; i < KEYS; i++) {
        memcpy(key.b, &i, sizeof i);
        struct kedgei_party *p = kedgei_parties_find(all, &key);
        ck_assert_ptr_nonnull(p);
        ck_assert_ptr_eq(kedgei_parties_find(all, &key), p);
        p->connections = i % 3 == 0;
        ck_assert(i % 3 != 1 || kedge_bucket_take(&p->requests, &rate, 1, MS));
        first = i == 0 ? p : first;
    }
    ck_assert_uint_eq(all->count, KEYS);
    kedgei_parties_sweep(all, 2 * MS); /* a third is connected, a third's buckets are not full yet */
    ck_assert_uint_eq(all->count, 2 * KEYS / 3);
    kedgei_parties_sweep(all, 2000 * MS);
    ck_assert_uint_eq(all->count, KEYS / 3);
    memset(key.b, 0, sizeof key.b);
    ck_assert_ptr_eq(kedgei_parties_find(all, &key), first);
    for (unsigned i = 0; i < KEYS; i += 3) {
        memcpy(key.b, &i, sizeof i);
        kedgei_parties_find(all, &key)->connections = 0;
    }
    kedgei_parties_sweep(all, UINT64_MAX);
    ck_assert_uint_eq(all->count, 0);
    kedge_mem_free(all);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("net");
    TCase *t = tcase_create("admission");
    tcase_add_test(t, test_bucket);
    tcase_add_test(t, test_bucket_over_time);
    tcase_add_test(t, test_sources);
    tcase_add_test(t, test_addresses);
    tcase_add_test(t, test_verdicts);
    tcase_add_test(t, test_who_gives_way);
    tcase_add_test(t, test_parties);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
