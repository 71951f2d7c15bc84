#include "grouping/merge.h"

#include "grouping/flexcfl.h"
#include "tests/unit/aggregation/support.h"

enum { SLOTS = 5, SITES = 40 };

static size_t count_kept(const uint32_t *then, const uint32_t *now, size_t n, const uint32_t *slot)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        kept += then[i] != KEDGE_GROUP_NONE && now[i] != KEDGE_GROUP_NONE && slot[now[i]] == then[i];
    }
    return kept;
}

/* All ways to give clusters distinct slots, in lexicographic order: the first of the best. */
static size_t best_by_trial(const uint32_t *then, const uint32_t *now, size_t clusters, uint32_t *best)
{
    size_t most = 0, total = 1;
    bool found = false;
    for (size_t c = 0; c < clusters; c++) {
        total *= SLOTS;
    }
    for (size_t code = 0; code < total; code++) {
        uint32_t slot[SLOTS];
        bool distinct = true;
        for (size_t c = clusters, rest = code; c-- > 0; rest /= SLOTS) {
            slot[c] = (uint32_t)(rest % SLOTS);
            for (size_t b = c + 1; b < clusters; b++) {
                distinct = distinct && slot[b] != slot[c];
            }
        }
        size_t kept = distinct ? count_kept(then, now, SITES, slot) : 0;
        if (distinct && (!found || kept > most)) {
            found = true;
            most = kept;
            memcpy(best, slot, clusters * sizeof *slot);
        }
    }
    return most;
}

START_TEST(matching_is_the_best)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct kedge_rng rng = new_stream(seed);
        uint32_t then[SITES], now[SITES], want[SLOTS], slot[SLOTS];
        const size_t clusters = 1 + (size_t)kedge_rng_below(&rng, SLOTS);
        for (size_t i = 0; i < SITES; i++) {
            then[i] =
                kedge_rng_below(&rng, 8) == 0 ? KEDGE_GROUP_NONE : (uint32_t)kedge_rng_below(&rng, SLOTS);
            now[i] =
                kedge_rng_below(&rng, 8) == 0 ? KEDGE_GROUP_NONE : (uint32_t)kedge_rng_below(&rng, clusters);
        }
        size_t kept = 0, most = best_by_trial(then, now, clusters, want);
        ck_assert_int_eq(kedge_match(then, now, SITES, clusters, SLOTS, slot, &kept), KEDGE_OK);
        ck_assert_uint_eq(kept, most);
        ck_assert_mem_eq(slot, want, clusters * sizeof *slot);
    }
}
END_TEST

START_TEST(matching_at_its_edges)
{
    uint32_t slot[KEDGE_GROUPS_MAX], then[32], now[32];
    size_t kept = 1;
    ck_assert_int_eq(kedge_match(NULL, NULL, 0, 3, 16, slot, &kept), KEDGE_OK); /* nobody: in order */
    ck_assert(slot[0] == 0 && slot[1] == 1 && slot[2] == 2 && kept == 0);
    for (uint32_t i = 0; i < 32; i++) { /* a renaming is undone */
        then[i] = 15 - i % 16;
        now[i] = i % 16;
    }
    ck_assert_int_eq(kedge_match(then, now, 32, 16, 16, slot, &kept), KEDGE_OK);
    ck_assert_uint_eq(kept, 32);
    for (uint32_t c = 0; c < 16; c++) {
        ck_assert_uint_eq(slot[c], 15 - c);
    }
    ck_assert_int_eq(kedge_match(then, now, 32, 16, 15, slot, &kept), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_match(then, now, 32, 15, 16, slot, &kept), KEDGE_E_ARG); /* a cluster of no name */
    ck_assert_int_eq(kedge_match(then, now, 32, 17, 17, slot, &kept), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_match(then, now, 32, 0, 16, slot, &kept), KEDGE_E_ARG);
    kedge_mem_fail_at(1);
    ck_assert_int_eq(kedge_match(then, now, 32, 16, 16, slot, &kept), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
}
END_TEST

/* 0 and 2 coincide, 3 is near to 2 but not to 0: complete linkage leaves it alone. */
START_TEST(merging)
{
    const double c[16] = {1, .1, .99, .90, .1, 1, .1, .1, .99, .1, 1, .97, .90, .1, .97, 1};
    static const uint32_t want[4] = {0, 1, 0, 3}, none[4] = {0, 1, 2, 3}, last[4] = {0, 1, 0, 0};
    uint32_t into[4];
    size_t left = 0;
    ck_assert_int_eq(kedge_merge(c, 4, 0.95, into, &left), KEDGE_OK);
    ck_assert_mem_eq(into, want, sizeof want);
    ck_assert_uint_eq(left, 3);
    ck_assert_int_eq(kedge_merge(c, 4, 0.99, into, &left), KEDGE_OK); /* above, not at */
    ck_assert_mem_eq(into, none, sizeof none);
    ck_assert_int_eq(kedge_merge(c, 4, 0.5, into, &left), KEDGE_OK);
    ck_assert_mem_eq(into, last, sizeof last);
    const double same[4] = {1, 1, 1, 1};
    ck_assert_int_eq(kedge_merge(same, 2, 1.0, into, &left), KEDGE_OK); /* 1: never */
    ck_assert_uint_eq(left, 2);
    ck_assert_int_eq(kedge_merge(c, 0, 0.5, into, &left), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_merge(c, 17, 0.5, into, &left), KEDGE_E_ARG);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {matching_is_the_best, matching_at_its_edges, merging, NULL};
    return run_tests("grouping/merge", tests);
}
