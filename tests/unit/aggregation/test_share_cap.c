/* The cap on a tenant's share: fixed examples, and properties over drawn federations against arithmetic of
 * 128 bits. */
#include "aggregation/share_cap.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "tests/unit/aggregation/support.h"

enum { INPUTS_MAX = 64, ROUNDS = 4000, SEED = 11 };

struct example {
    uint32_t share_max;
    size_t count;
    uint32_t tenants[8];
    uint64_t before[8], after[8];
};

static const struct example examples[] = {
    /* a cap of 1 changes nothing, whatever the shares */
    {1000000, 3, {0, 0, 1}, {7, 900, 1}, {7, 900, 1}},
    {1000000, 1, {5}, {900}, {900}},
    /* all below the cap */
    {500000, 4, {0, 0, 1, 2}, {10, 10, 15, 15}, {10, 10, 15, 15}},
    /* one above: it comes to what the others have together */
    {500000, 4, {0, 0, 1, 2}, {60, 40, 20, 10}, {17, 13, 20, 10}},
    /* exactly at the cap */
    {500000, 3, {0, 1, 2}, {30, 20, 10}, {30, 20, 10}},
    {500000, 3, {0, 1, 2}, {31, 20, 10}, {30, 20, 10}},
    /* two above: 2 · 0.4 leaves the third a fifth */
    {400000, 3, {0, 1, 2}, {1000, 500, 10}, {20, 20, 10}},
    /* remainders go by the order of sites: 1 + floor of running sums */
    {500000, 4, {0, 0, 0, 1}, {5, 5, 5, 10}, {3, 3, 4, 10}},
    /* fewer tenants than the cap needs: equal shares */
    {300000, 2, {0, 1}, {50, 20}, {20, 20}},
    {300000, 1, {3}, {50}, {50}},
    {500000, 2, {0, 1}, {50, 20}, {20, 20}},
    /* more sites than the level: all weights twice, so that each site counts */
    {500000, 4, {0, 0, 0, 1}, {9, 9, 9, 2}, {1, 1, 2, 4}},
};

START_TEST(test_examples)
{
    const struct example *e = &examples[_i];
    struct kedge_share_input inputs[8];
    for (size_t i = 0; i < e->count; i++) {
        inputs[i] = (struct kedge_share_input){e->tenants[i], e->before[i]};
    }
    ck_assert_int_eq(kedge_share_cap(inputs, e->count, e->share_max), KEDGE_OK);
    for (size_t i = 0; i < e->count; i++) {
        ck_assert_msg(inputs[i].weight == e->after[i], "example %d, input %zu: %llu, expected %llu", _i, i,
                      (unsigned long long)inputs[i].weight, (unsigned long long)e->after[i]);
    }
}
END_TEST

START_TEST(test_refusals)
{
    struct kedge_share_input fine[2] = {{0, 5}, {1, 1}}, kept[2];
    memcpy(kept, fine, sizeof fine);
    ck_assert_int_eq(kedge_share_cap(fine, 2, 0), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_share_cap(fine, 2, KEDGE_SHARE_ONE + 1), KEDGE_E_ARG);
    struct kedge_share_input no_weight[2] = {{0, 5}, {1, 0}};
    ck_assert_int_eq(kedge_share_cap(no_weight, 2, 500000), KEDGE_E_ARG);
    struct kedge_share_input no_tenant[2] = {{0, 5}, {KEDGE_SHARE_TENANTS_MAX, 1}};
    ck_assert_int_eq(kedge_share_cap(no_tenant, 2, 500000), KEDGE_E_ARG);
    struct kedge_share_input heavy[2] = {{0, KEDGE_SHARE_WEIGHT_MAX}, {1, 1}};
    ck_assert_int_eq(kedge_share_cap(heavy, 2, 500000), KEDGE_E_OVERFLOW);
    heavy[1].weight = UINT64_MAX;
    ck_assert_int_eq(kedge_share_cap(heavy, 2, 500000), KEDGE_E_OVERFLOW);
    ck_assert_int_eq(kedge_share_cap(fine, KEDGE_SHARE_INPUTS_MAX + (size_t)1, 500000), KEDGE_E_OVERFLOW);
    ck_assert_int_eq(memcmp(kept, fine, sizeof fine), 0);
    ck_assert_int_eq(kedge_share_cap(NULL, 0, 500000), KEDGE_OK);
}
END_TEST

/* The heaviest federation there may be: nothing wraps. */
START_TEST(test_limits)
{
    enum { SITES = 4096 };
    static struct kedge_share_input inputs[SITES];
    uint64_t sum = 0, others = 0;
    for (uint32_t i = 0; i < SITES; i++) {
        inputs[i] =
            (struct kedge_share_input){i < SITES - 3 ? 0 : i - (SITES - 4), i < SITES - 3 ? 2147483647 : 1};
    }
    ck_assert_int_eq(kedge_share_cap(inputs, SITES, 500000), KEDGE_OK);
    for (uint32_t i = 0; i < SITES; i++) {
        ck_assert_uint_ge(inputs[i].weight, 1);
        *(inputs[i].tenant == 0 ? &sum : &others) += inputs[i].weight;
    }
    ck_assert_uint_eq(sum, others); /* three samples against 4093 sites: 3 · 1365 */
    ck_assert_uint_eq(sum, 4095);
}
END_TEST

/* ---- properties ---- */

static uint32_t below(struct kedge_rng *rng, uint32_t n)
{
    return (uint32_t)(kedge_rng_u64(rng) % n);
}

/* Few tenants of which some are large, in the order (tenant, site). */
static size_t draw(struct kedge_rng *rng, struct kedge_share_input *out)
{
    static const uint32_t most[] = {1, 3, 50, 1000000, 2147483647};
    size_t count = 0;
    uint32_t tenants = 1 + below(rng, 6);
    for (uint32_t t = 0; t < tenants; t++) {
        uint32_t sites = 1 + below(rng, INPUTS_MAX / 6), heavy = most[below(rng, 5)];
        for (uint32_t s = 0; s < sites; s++) {
            out[count++] = (struct kedge_share_input){t, 1 + below(rng, heavy)};
        }
    }
    return count;
}

struct sums {
    uint64_t of[KEDGE_SHARE_TENANTS_MAX];
    uint64_t total, least, most;
    uint32_t tenants;
};

static struct sums add_up(const struct kedge_share_input *in, size_t count)
{
    struct sums s = {.least = UINT64_MAX};
    for (size_t i = 0; i < count; i++) {
        s.tenants += s.of[in[i].tenant] == 0;
        s.of[in[i].tenant] += in[i].weight;
        s.total += in[i].weight;
    }
    for (uint32_t t = 0; t < KEDGE_SHARE_TENANTS_MAX; t++) {
        s.most = s.of[t] > s.most ? s.of[t] : s.most;
        s.least = s.of[t] && s.of[t] < s.least ? s.of[t] : s.least;
    }
    return s;
}

/* Shares hold exactly; who is below keeps the ratio of the weights; nobody is lowered further than needed. */
static void check_bound(const struct kedge_share_input *before, const struct kedge_share_input *after,
                        size_t count, uint32_t share_max)
{
    struct sums a = add_up(before, count), b = add_up(after, count);
    bool possible = (uint64_t)share_max * a.tenants >= KEDGE_SHARE_ONE;
    uint64_t factor = 0;
    for (uint32_t t = 0; t < KEDGE_SHARE_TENANTS_MAX; t++) {
        if (possible) {
            ck_assert((int128)b.of[t] * KEDGE_SHARE_ONE <= (int128)share_max * b.total);
        } else {
            ck_assert(b.of[t] == 0 || b.of[t] == b.most);
        }
        if (a.of[t] == a.least) { /* never above the level: it shows the common factor */
            factor = b.of[t] / a.of[t];
        }
    }
    ck_assert_uint_ge(factor, 1);
    for (size_t i = 0; i < count; i++) {
        bool kept = after[i].weight == factor * before[i].weight;
        ck_assert_uint_ge(after[i].weight, 1);
        ck_assert_uint_le(after[i].weight, factor * before[i].weight);
        ck_assert(kept || b.of[after[i].tenant] == b.most); /* only tenants at the level are lowered */
    }
    if (possible && b.most < factor * a.most && b.most % factor == 0) { /* one more would be too much */
        uint64_t level = b.most / factor + 1;
        int128 total = 0;
        for (uint32_t t = 0; t < KEDGE_SHARE_TENANTS_MAX; t++) {
            total += a.of[t] < level ? a.of[t] : level;
        }
        ck_assert((int128)level * KEDGE_SHARE_ONE > share_max * total);
    }
}

/* The same inputs with the tenants in another order: block after block from the last. */
static void check_order(const struct kedge_share_input *before, const struct kedge_share_input *after,
                        size_t count, uint32_t share_max)
{
    struct kedge_share_input turned[INPUTS_MAX];
    size_t from[INPUTS_MAX], n = 0;
    for (uint32_t t = KEDGE_SHARE_TENANTS_MAX; t-- > 0;) {
        for (size_t i = 0; i < count; i++) {
            if (before[i].tenant == t) {
                from[n] = i;
                turned[n] = before[i];
                turned[n++].tenant = KEDGE_SHARE_TENANTS_MAX - 1 - t; /* under other numbers, too */
            }
        }
    }
    ck_assert_int_eq(kedge_share_cap(turned, n, share_max), KEDGE_OK);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(turned[i].weight, after[from[i]].weight);
    }
}

START_TEST(test_properties)
{
    struct kedge_rng rng;
    struct kedge_share_input before[INPUTS_MAX], after[INPUTS_MAX];
    unsigned lowered = 0, untouched = 0, factors = 0;
    kedge_rng_init(&rng, SEED, KEDGE_RNG_SIM, 1, 0);
    for (int k = 0; k < ROUNDS; k++) {
        size_t count = draw(&rng, before);
        uint32_t share_max = below(&rng, 3) ? 1 + below(&rng, KEDGE_SHARE_ONE) : 500000;
        memcpy(after, before, count * sizeof after[0]);
        ck_assert_int_eq(kedge_share_cap(after, count, share_max), KEDGE_OK);
        check_bound(before, after, count, share_max);
        check_order(before, after, count, share_max);
        struct sums a = add_up(before, count), b = add_up(after, count);
        lowered += b.total < a.total;
        factors += b.least > a.least;
        if ((int128)a.most * KEDGE_SHARE_ONE <= (int128)share_max * a.total) { /* nobody above */
            ck_assert_int_eq(memcmp(before, after, count * sizeof after[0]), 0);
            untouched++;
        }
    }
    ck_assert_uint_gt(lowered, ROUNDS / 4); /* the draws reach every case */
    ck_assert_uint_gt(untouched, ROUNDS / 20);
    ck_assert_uint_gt(factors, ROUNDS / 100);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("aggregation share cap");
    TCase *t = tcase_create("share cap");
    tcase_add_loop_test(t, test_examples, 0, sizeof examples / sizeof examples[0]);
    tcase_add_test(t, test_refusals);
    tcase_add_test(t, test_limits);
    tcase_add_test(t, test_properties);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
