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

/* An exact table over subsets of slots, which is what kedge_match was when groups were few: best[mask] is the
 * most that clusters from the number of slots in mask on can keep of the other slots. Slots are read off in
 * cluster order, the lowest that keeps the best. */
enum { TABLE_SLOTS = 10 };
struct table {
    uint64_t overlap[TABLE_SLOTS][TABLE_SLOTS], best[1 << TABLE_SLOTS];
    size_t clusters, slots;
};

static uint64_t with_slot(const struct table *t, uint32_t mask, size_t cluster, size_t slot)
{
    return t->overlap[cluster][slot] + t->best[mask | UINT32_C(1) << slot];
}

static void match_by_table(struct table *t, uint32_t *slot)
{
    uint32_t mask = UINT32_C(1) << t->slots;
    while (mask-- > 0) {
        size_t c = (size_t)__builtin_popcount(mask);
        t->best[mask] = 0;
        for (size_t s = 0; s < t->slots && c < t->clusters; s++) {
            uint64_t kept = (mask >> s & 1) == 0 ? with_slot(t, mask, c, s) : 0;
            t->best[mask] = kept > t->best[mask] ? kept : t->best[mask];
        }
    }
    mask = 0;
    for (size_t c = 0; c < t->clusters; c++) {
        size_t s = 0;
        while ((mask >> s & 1) != 0 || with_slot(t, mask, c, s) != t->best[mask]) {
            s++;
        }
        slot[c] = (uint32_t)s;
        mask |= UINT32_C(1) << s;
    }
}

/* Few sites make many choices equally good: which of them it is belongs to the record. */
START_TEST(matching_has_the_ties_of_the_table)
{
    static struct table t;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct kedge_rng rng = new_stream(seed + 1000);
        uint32_t then[3 * TABLE_SLOTS], now[3 * TABLE_SLOTS], want[TABLE_SLOTS], slot[TABLE_SLOTS];
        t = (struct table){.slots = 1 + (size_t)kedge_rng_below(&rng, TABLE_SLOTS)};
        t.clusters = 1 + (size_t)kedge_rng_below(&rng, t.slots);
        const size_t sites = (size_t)kedge_rng_below(&rng, 3 * t.slots + 1);
        for (size_t i = 0; i < sites; i++) {
            then[i] = (uint32_t)kedge_rng_below(&rng, t.slots);
            now[i] = (uint32_t)kedge_rng_below(&rng, t.clusters);
            t.overlap[now[i]][then[i]]++;
        }
        size_t kept = 0;
        match_by_table(&t, want);
        ck_assert_int_eq(kedge_match(then, now, sites, t.clusters, t.slots, slot, &kept), KEDGE_OK);
        ck_assert_uint_eq(kept, t.best[0]);
        ck_assert_mem_eq(slot, want, t.clusters * sizeof *slot);
    }
}
END_TEST

static bool is_lower(const uint32_t *a, const uint32_t *b)
{
    size_t i = 0;
    while (i < KEDGE_GROUPS_MAX && a[i] == b[i]) {
        i++;
    }
    return i < KEDGE_GROUPS_MAX && a[i] < b[i];
}

static void exchange(uint32_t *slot, size_t a, size_t b)
{
    uint32_t kept = slot[a];
    slot[a] = slot[b];
    slot[b] = kept;
}

/* Of as many groups as there can be, in blocks whose sites were never in another block: the most of all is
 * the sum of what each has alone. Of equal choices none is lower, neither that of the blocks nor two slots
 * exchanged. */
START_TEST(matching_of_the_most_groups)
{
    enum { BLOCK = 8, BLOCKS = KEDGE_GROUPS_MAX / BLOCK, EACH = 20 };
    static struct table t;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct kedge_rng rng = new_stream(seed + 9000);
        uint32_t then[BLOCKS * EACH], now[BLOCKS * EACH], want[KEDGE_GROUPS_MAX], slot[KEDGE_GROUPS_MAX];
        size_t kept = 0, most = 0, n = 0;
        for (uint32_t b = 0; b < BLOCKS; b++) {
            t = (struct table){.clusters = BLOCK, .slots = BLOCK};
            for (size_t i = 0; i < EACH; i++, n++) {
                then[n] = (uint32_t)kedge_rng_below(&rng, BLOCK);
                now[n] = i < BLOCK ? (uint32_t)i : (uint32_t)kedge_rng_below(&rng, BLOCK);
                t.overlap[now[n]][then[n]]++;
                then[n] += b * BLOCK;
                now[n] += b * BLOCK;
            }
            match_by_table(&t, want + (size_t)b * BLOCK);
            most += (size_t)t.best[0];
        }
        for (uint32_t c = 0; c < KEDGE_GROUPS_MAX; c++) {
            want[c] += c / BLOCK * BLOCK;
        }
        ck_assert_int_eq(kedge_match(then, now, n, KEDGE_GROUPS_MAX, KEDGE_GROUPS_MAX, slot, &kept),
                         KEDGE_OK);
        ck_assert_uint_eq(kept, most);
        ck_assert_uint_eq(count_kept(then, now, n, slot), most);
        ck_assert(!is_lower(want, slot));
        for (size_t a = 0; a < KEDGE_GROUPS_MAX; a++) {
            for (size_t b = a + 1; b < KEDGE_GROUPS_MAX; b++) {
                ck_assert(slot[a] != slot[b]);
                exchange(slot, a, b);
                ck_assert(slot[a] > slot[b] || count_kept(then, now, n, slot) < most);
                exchange(slot, a, b);
            }
        }
    }
}
END_TEST

START_TEST(matching_at_its_edges)
{
    enum { MOST = KEDGE_GROUPS_MAX };
    uint32_t slot[MOST], then[2 * MOST], now[2 * MOST];
    size_t kept = 1;
    ck_assert_int_eq(kedge_match(NULL, NULL, 0, 3, MOST, slot, &kept), KEDGE_OK); /* nobody: in order */
    ck_assert(slot[0] == 0 && slot[1] == 1 && slot[2] == 2 && kept == 0);
    for (uint32_t i = 0; i < 2 * MOST; i++) { /* a renaming is undone */
        then[i] = MOST - 1 - i % MOST;
        now[i] = i % MOST;
    }
    ck_assert_int_eq(kedge_match(then, now, 2 * MOST, MOST, MOST, slot, &kept), KEDGE_OK);
    ck_assert_uint_eq(kept, 2 * MOST);
    for (uint32_t c = 0; c < MOST; c++) {
        ck_assert_uint_eq(slot[c], MOST - 1 - c);
    }
    ck_assert_int_eq(kedge_match(then, now, 2 * MOST, MOST, MOST - 1, slot, &kept), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_match(then, now, 2 * MOST, MOST - 1, MOST, slot, &kept),
                     KEDGE_E_ARG); /* a cluster of no name */
    ck_assert_int_eq(kedge_match(then, now, 2 * MOST, MOST + 1, MOST + 1, slot, &kept), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_match(then, now, 2 * MOST, 0, MOST, slot, &kept), KEDGE_E_ARG);
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
    ck_assert_int_eq(kedge_merge(c, KEDGE_GROUPS_MAX + 1, 0.5, into, &left), KEDGE_E_ARG);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {matching_is_the_best,
                                  matching_has_the_ties_of_the_table,
                                  matching_of_the_most_groups,
                                  matching_at_its_edges,
                                  merging,
                                  NULL};
    return run_tests("grouping/merge", tests);
}
