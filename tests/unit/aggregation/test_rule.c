#include "aggregation/rule/rule.h"

#include "aggregation/order.h"
#include "tests/unit/aggregation/rule_support.h"

/* of the results, row by row */
static const uint64_t golden[] = {
    UINT64_C(12614209554799080837), UINT64_C(2252006329119863230), UINT64_C(13037076962016203768),
    UINT64_C(18321189510893573440), UINT64_C(2713030971091413579), UINT64_C(7511627528991168107),
    UINT64_C(4194840877807988102),  UINT64_C(7082535622023800602), UINT64_C(16560434810567069147)};

static struct updates u;

START_TEST(table)
{
    ck_assert_uint_eq(kedge_rule_count(), 9);
    for (size_t i = 0; i < kedge_rule_count(); i++) {
        const struct kedge_rule *rule = kedge_rule_at(i);
        ck_assert_ptr_eq(kedge_rule_find(rule->name), rule); /* names differ */
        ck_assert(strlen(rule->title) > 0 && strlen(rule->guarantee) > 0 && strlen(rule->source) > 0);
        ck_assert_int_eq(kedge_rule_params_check(rule, &rule->defaults), KEDGE_OK);
        ck_assert((rule->weigh != NULL) == (rule->needs_norms || rule->needs_gram));
        ck_assert(rule->needs_norms || !rule->needs_gram);
    }
    ck_assert_ptr_null(kedge_rule_find("average"));
    ck_assert_ptr_null(kedge_rule_find(""));
}
END_TEST

START_TEST(tolerated)
{
    static const struct {
        const char *name;
        double fraction, bound;
        size_t n, expect;
    } cases[] = {
        {"mean", 0.2, 0, 10, 0},
        {"median", 0, 0, 0, 0},
        {"median", 0, 0, 1, 0},
        {"median", 0, 0, 2, 0},
        {"median", 0, 0, 3, 1},
        {"median", 0, 0, 10, 4},
        {"trimmed-mean", 0.2, 0, 4, 0},
        {"trimmed-mean", 0.2, 0, 5, 1},
        {"trimmed-mean", 0.29, 0, 100, 29},    /* 0.29 · 100 is below 29 in binary64 */
        {"trimmed-mean", 0.25625, 0, 160, 41}, /* and 0.25625 · 10^6 below 256250 */
        {"trimmed-mean", 0.499999, 0, 3, 1},
        {"trimmed-mean", 0.499999, 0, 512, 255},
        {"trimmed-mean", 7e30, 0, 5, 2}, /* out of range: as near as can be, until it is refused */
        {"trimmed-mean", -7e30, 0, 5, 0},
        {"trimmed-mean", (double)NAN, 0, 5, 0},
        {"krum", 0.2, 0, 4, 0},
        {"krum", 0.2, 0, 5, 1},
        {"krum", 0.4, 0, 5, 0}, /* f = 2 takes 7 */
        {"krum", 0.4, 0, 15, 6},
        {"multi-krum", 0.4, 0, 10, 0}, /* f = 4 takes 11 */
        {"bulyan", 0.2, 0, 10, 0},     /* f = 2 takes 11 */
        {"bulyan", 0.2, 0, 14, 2},
        {"bulyan", 0.2, 0, 15, 3},
        {"geometric-median", 0, 0, 7, 3},
        {"norm-clipping", 0, 0, 7, 3},
        {"norm-clipping", 0, 1.5, 7, 7},
        {"root-trust", 0, 0, 7, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct kedge_rule_params params = {cases[i].fraction, cases[i].bound};
        const size_t got = tolerated_by(rule_of(cases[i].name), &params, cases[i].n);
        ck_assert_msg(got == cases[i].expect, "%s of %zu: %zu, expected %zu", cases[i].name, cases[i].n, got,
                      cases[i].expect);
    }
}
END_TEST

START_TEST(numbers)
{
    static const struct {
        const char *name;
        double fraction, bound;
        int expect;
    } cases[] = {
        {"mean", -1, -1, KEDGE_OK}, /* uses neither */
        {"median", 7, -1, KEDGE_OK},
        {"trimmed-mean", 0, -1, KEDGE_OK},
        {"trimmed-mean", 0.499999, 0, KEDGE_OK},
        {"trimmed-mean", 0.5, 0, KEDGE_E_ARG},
        {"krum", -0.01, 0, KEDGE_E_ARG},
        {"bulyan", (double)NAN, 0, KEDGE_E_ARG},
        {"norm-clipping", 0, 0, KEDGE_OK},
        {"norm-clipping", 0, 1e9, KEDGE_OK},
        {"norm-clipping", 0, 2e9, KEDGE_E_ARG},
        {"norm-clipping", 0, -1, KEDGE_E_ARG},
        {"norm-clipping", 0, (double)NAN, KEDGE_E_ARG},
        {"norm-clipping", 0, (double)INFINITY, KEDGE_E_ARG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct kedge_rule_params params = {cases[i].fraction, cases[i].bound};
        ck_assert_int_eq(kedge_rule_params_check(rule_of(cases[i].name), &params), cases[i].expect);
    }
}
END_TEST

/* With too few votes the median runs; half votes count half. */
START_TEST(fallback)
{
    static const struct {
        const char *name;
        double fraction;
        size_t n;
        uint64_t vote;
        bool stays;
    } cases[] = {
        {"krum", 0.2, 2, KEDGE_RULE_VOTE, false},        {"krum", 0.2, 3, KEDGE_RULE_VOTE, true},
        {"krum", 0.2, 5, KEDGE_RULE_VOTE, true},         {"krum", 0.4, 5, KEDGE_RULE_VOTE, false},
        {"multi-krum", 0.4, 6, KEDGE_RULE_VOTE, false},  {"multi-krum", 0.4, 7, KEDGE_RULE_VOTE, true},
        {"krum", 0.2, 5, KEDGE_RULE_VOTE / 2, false},    {"krum", 0.2, 6, KEDGE_RULE_VOTE / 2, true},
        {"bulyan", 0.2, 5, KEDGE_RULE_VOTE, false},      {"bulyan", 0.2, 7, KEDGE_RULE_VOTE, true},
        {"mean", 0.4, 1, KEDGE_RULE_VOTE, true},         {"median", 0.4, 1, KEDGE_RULE_VOTE, true},
        {"trimmed-mean", 0.4, 1, KEDGE_RULE_VOTE, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct kedge_rule *rule = rule_of(cases[i].name);
        const struct kedge_rule_params params = {cases[i].fraction, 0};
        uint64_t weight[7];
        for (size_t k = 0; k < cases[i].n; k++) {
            weight[k] = cases[i].vote;
        }
        const struct kedge_rule *runs = kedge_rule_effective(rule, &params, weight, cases[i].n);
        ck_assert_str_eq(runs->name, cases[i].stays ? rule->name : "median");
    }
}
END_TEST

START_TEST(refusals)
{
    const struct kedge_rule *krum = rule_of("krum"), *mean = rule_of("mean"),
                            *clip = rule_of("norm-clipping");
    uint64_t weight[5], divisor = 77;
    uint64_t votes[5] = {KEDGE_RULE_VOTE, KEDGE_RULE_VOTE, KEDGE_RULE_VOTE, KEDGE_RULE_VOTE, KEDGE_RULE_VOTE};
    uint32_t maxima[5] = {1, 1, 1, 1, 1};
    int64_t gram[25] = {0};
    double norm_sq[5] = {1, 1, 1, 1, 1};
    const struct kedge_rule_inputs good = {5, votes, 1, 20, norm_sq, gram, maxima, false};
    struct kedge_rule_inputs in = good;
    const struct kedge_rule_params params = {0.2, 0};
    ck_assert_int_eq(kedge_rule_weigh(krum, &params, &in, weight, &divisor), KEDGE_OK);
    divisor = 77;
    in.count = 0;
    ck_assert_int_eq(kedge_rule_weigh(krum, &params, &in, weight, &divisor), KEDGE_E_ARG);
    in.count = 2;
    ck_assert_int_eq(kedge_rule_weigh(krum, &params, &in, weight, &divisor), KEDGE_E_ARG);
    in.count = KEDGE_RULE_VECTORS_MAX + 1;
    ck_assert_int_eq(kedge_rule_weigh(mean, &params, &in, weight, &divisor), KEDGE_E_ARG);
    in = good;
    in.gram = NULL;
    ck_assert_int_eq(kedge_rule_weigh(krum, &params, &in, weight, &divisor), KEDGE_E_ARG);
    in = good;
    in.has_root = true;
    ck_assert_int_eq(kedge_rule_weigh(krum, &params, &in, weight, &divisor), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_rule_weigh(rule_of("root-trust"), &params, &good, weight, &divisor), KEDGE_E_ARG);
    in = good;
    in.maxima = NULL;
    ck_assert_int_eq(kedge_rule_weigh(krum, &params, &in, weight, &divisor), KEDGE_E_ARG);
    in = good;
    in.norm_sq = NULL;
    ck_assert_int_eq(kedge_rule_weigh(clip, &params, &in, weight, &divisor), KEDGE_E_ARG);
    in = good;
    in.scale_bits = 31;
    ck_assert_int_eq(kedge_rule_weigh(clip, &params, &in, weight, &divisor), KEDGE_E_ARG);
    in = good;
    in.divisor = 0;
    ck_assert_int_eq(kedge_rule_weigh(mean, &params, &in, weight, &divisor), KEDGE_E_ARG);
    norm_sq[4] = (double)NAN;
    ck_assert_int_eq(kedge_rule_weigh(krum, &params, &good, weight, &divisor), KEDGE_E_ARG);
    norm_sq[4] = -1;
    ck_assert_int_eq(kedge_rule_weigh(krum, &params, &good, weight, &divisor), KEDGE_E_ARG);
    norm_sq[4] = 1;
    votes[0] = KEDGE_RULE_VOTE + 1;
    ck_assert_int_eq(kedge_rule_weigh(krum, &params, &good, weight, &divisor), KEDGE_E_ARG);
    votes[0] = UINT64_C(1) << 31;
    ck_assert_int_eq(kedge_rule_weigh(mean, &params, &good, weight, &divisor), KEDGE_E_ARG);
    memset(votes, 0, sizeof votes);
    ck_assert_int_eq(kedge_rule_weigh(mean, &params, &good, weight, &divisor), KEDGE_E_ARG);
    ck_assert_uint_eq(divisor, 77);
}
END_TEST

START_TEST(tiles_refused)
{
    static const int32_t values[1] = {1};
    static const float model[1] = {1};
    const int32_t *vectors[KEDGE_RULE_VECTORS_MAX + 1];
    uint64_t weight[KEDGE_RULE_VECTORS_MAX + 1];
    float out[1];
    for (size_t k = 0; k <= KEDGE_RULE_VECTORS_MAX; k++) {
        vectors[k] = values;
        weight[k] = KEDGE_RULE_VOTE;
    }
    const struct kedge_rule_params params = {0.2, 0}, bad = {0.6, 0};
    const struct kedge_rule *median = rule_of("median"), *trimmed = rule_of("trimmed-mean"),
                            *bulyan = rule_of("bulyan"), *krum = rule_of("krum");
    ck_assert_int_eq(kedge_rule_tile(median, &params, model, vectors, weight, 512, 0, 1, 20, out), KEDGE_OK);
    ck_assert_int_eq(kedge_rule_tile(krum, &params, model, vectors, weight, 5, 0, 1, 20, out), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_rule_tile(trimmed, &bad, model, vectors, weight, 5, 0, 1, 20, out), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_rule_tile(median, &params, model, vectors, weight, 0, 0, 1, 20, out), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_rule_tile(median, &params, model, vectors, weight, 513, 0, 1, 20, out),
                     KEDGE_E_ARG);
    ck_assert_int_eq(kedge_rule_tile(median, &params, model, vectors, weight, 5, 0, 1, 31, out), KEDGE_E_ARG);
    /* Bulyan wants exactly n − 2f with a vote. */
    ck_assert_int_eq(kedge_rule_tile(bulyan, &params, model, vectors, weight, 7, 0, 1, 20, out), KEDGE_E_ARG);
    weight[0] = weight[1] = 0;
    ck_assert_int_eq(kedge_rule_tile(bulyan, &params, model, vectors, weight, 7, 0, 1, 20, out), KEDGE_OK);
    weight[2] = KEDGE_RULE_VOTE + 1;
    ck_assert_int_eq(kedge_rule_tile(median, &params, model, vectors, weight, 5, 0, 1, 20, out), KEDGE_E_ARG);
    memset(weight, 0, sizeof weight);
    ck_assert_int_eq(kedge_rule_tile(median, &params, model, vectors, weight, 5, 0, 1, 20, out), KEDGE_E_ARG);
}
END_TEST

/* Quarters of votes: as many copies, of which the median takes the middle and the trimmed mean leaves out 4f
 * at either end. */
START_TEST(votes_are_copies)
{
    struct kedge_rng rng = new_stream(35);
    const struct kedge_rule *median = rule_of("median"), *trimmed = rule_of("trimmed-mean");
    for (int run = 0; run < 100; run++) {
        const struct kedge_rule_params params = {0.3, 0};
        const int32_t *copies[4 * UPDATES_MAX];
        uint64_t ones[4 * UPDATES_MAX], all = 0;
        draw_updates(&rng, &u, 1 + (size_t)kedge_rng_below(&rng, 12), 20, run % 2 ? 4 : 30000);
        for (size_t k = 0; k < u.count; k++) {
            u.base[k] = k == 0 ? 1 : kedge_rng_below(&rng, 5);
            for (uint64_t c = 0; c < u.base[k]; c++) {
                ones[all] = KEDGE_RULE_VOTE;
                copies[all++] = u.values[k];
            }
            u.base[k] *= KEDGE_RULE_VOTE / 4;
        }
        float expect[20];
        int err = kedge_rule_tile(median, &params, u.model, copies, ones, all, 0, 20, RULE_SCALE, expect);
        ck_assert_int_eq(err, KEDGE_OK);
        ck_assert_int_eq(weigh_updates(median, &params, &u, 0), KEDGE_OK);
        tile_updates(median, &params, &u, 0, 20);
        ck_assert_mem_eq(u.out, expect, sizeof expect);
        const size_t cut = 4 * (size_t)(0.3 * (double)all / 4);
        const struct kedge_order_columns columns = {u.model, copies, all, 0, 20, RULE_SCALE, expect};
        ck_assert_int_eq(kedge_order_mean(&columns, cut, all - cut), KEDGE_OK);
        tile_updates(trimmed, &params, &u, 0, 20);
        ck_assert_mem_eq(u.out, expect, sizeof expect);
    }
}
END_TEST

/* Vectors longer than a block of the measuring pass. */
START_TEST(measured)
{
    enum { N = 3, D = 9001 };
    static int32_t values[N][D];
    const int32_t *vectors[N];
    struct kedge_rng rng = new_stream(36);
    double norm_sq[N];
    uint32_t maxima[N], expect_maxima[N];
    int64_t gram[N * N], expect_gram[N * N];
    for (size_t k = 0; k < N; k++) {
        fill_ints(&rng, values[k], D, 1000 << k);
        values[k][D - 1 - 4000 * k] = -(5000 << k);
        vectors[k] = values[k];
    }
    ck_assert_int_eq(gram_of(vectors, N, D, expect_maxima, expect_gram), KEDGE_OK);
    for (int needs = 0; needs < 2; needs++) {
        const struct kedge_rule *rule = rule_of(needs ? "krum" : "norm-clipping");
        int err = measure_of(rule, vectors, N, D, norm_sq, needs ? maxima : NULL, needs ? gram : NULL);
        ck_assert_int_eq(err, KEDGE_OK);
        for (size_t k = 0; k < N; k++) {
            double square = 0;
            for (size_t i = 0; i < D; i++) {
                square += (double)values[k][i] * values[k][i];
            }
            ck_assert(norm_sq[k] == square);
        }
    }
    ck_assert_mem_eq(maxima, expect_maxima, sizeof maxima);
    ck_assert_mem_eq(gram, expect_gram, sizeof gram);
    ck_assert_int_eq(measure_of(rule_of("median"), NULL, N, D, NULL, NULL, NULL), KEDGE_OK);
}
END_TEST

/* One to seven updates, each rule, each path: whatever rule runs, equal updates give back that update. */
START_TEST(unanimous)
{
    struct kedge_rng rng = new_stream(31);
    for (size_t n = 1; n <= 7; n++) {
        for (size_t r = 0; r < kedge_rule_count(); r++) {
            draw_updates(&rng, &u, n, 70, 30000);
            for (size_t k = 1; k <= n; k++) {
                memcpy(u.values[k], u.values[0], sizeof u.values[0]);
            }
            for (size_t k = 0; k < n; k++) {
                u.samples[k] = 8;
            }
            const struct kedge_rule *rule = kedge_rule_at(r);
            const struct kedge_rule_params params = rule->defaults;
            uint64_t votes[7] = {KEDGE_RULE_VOTE, KEDGE_RULE_VOTE, KEDGE_RULE_VOTE, KEDGE_RULE_VOTE,
                                 KEDGE_RULE_VOTE, KEDGE_RULE_VOTE, KEDGE_RULE_VOTE};
            rule = kedge_rule_effective(rule, &params, votes, n);
            FOR_EACH_SIMD(simd)
            {
                run_updates(rule, &params, &u);
                for (size_t i = 0; i < 70; i++) {
                    const double expect = (double)u.model[i] + (double)u.values[0][i] / 65536.0;
                    ck_assert_msg(fabs((double)u.out[i] - expect) < 1e-5, "%s of %zu: %g, expected %g",
                                  rule->name, n, (double)u.out[i], expect);
                }
            }
        }
    }
}
END_TEST

/* Zero updates, and values at both ends of int32, leave no rule without an answer. */
START_TEST(extremes)
{
    const struct kedge_rule_params params = {0.2, 0};
    for (size_t r = 0; r < kedge_rule_count(); r++) {
        for (int sort = 0; sort < 3; sort++) {
            struct kedge_rng rng = new_stream(32);
            draw_updates(&rng, &u, 7, 80, 5);
            for (size_t k = 0; k <= 7; k++) {
                for (size_t i = 0; i < 80; i++) {
                    u.values[k][i] = sort == 0 ? 0 : sort == 1 || k % 2 ? INT32_MAX : -INT32_MAX;
                }
            }
            run_updates(kedge_rule_at(r), &params, &u);
            for (size_t i = 0; i < 80; i++) {
                ck_assert(isfinite(u.out[i]) && fabsf(u.out[i]) <= 32770);
                ck_assert(sort > 0 || u.out[i] == u.model[i]);
            }
        }
    }
}
END_TEST

/* The order in which updates arrive (sorted again by the caller, or not at all where there is no tie), tiles
 * and paths change no byte. */
START_TEST(same_bytes_always)
{
    enum { N = 23, D = 299 };
    for (size_t r = 0; r < kedge_rule_count(); r++) {
        const struct kedge_rule *rule = kedge_rule_at(r);
        struct kedge_rng rng = new_stream(33);
        draw_updates(&rng, &u, N, D, 1 << 20);
        FOR_EACH_SIMD(simd)
        {
            uint64_t digest[9] = {0};
            size_t k = r;
            digest[k] = FNV_START;
            run_updates(rule, &rule->defaults, &u);
            memset(u.out, 0, sizeof u.out);
            for (size_t at = 0, n; at < D; at += n) {
                n = 1 + (size_t)kedge_rng_below(&rng, 100);
                n = n < D - at ? n : D - at;
                tile_updates(rule, &rule->defaults, &u, at, n);
            }
            digest[k] = fnv(digest[k], u.out, D * sizeof *u.out);
            ck_assert_uint_eq(digest[k], golden[k]);
            /* Sums over updates in binary64 go by index; the other rules know no order. */
            if (strcmp(rule->name, "geometric-median") != 0) {
                swap_updates(&u, (size_t)kedge_rng_below(&rng, N), (size_t)kedge_rng_below(&rng, N));
            }
        }
    }
}
END_TEST

START_TEST(out_of_memory)
{
    const struct kedge_rule_params params = {0.2, 0};
    struct kedge_rng rng = new_stream(34);
    draw_updates(&rng, &u, 7, 20, 100);
    for (size_t r = 0; r < kedge_rule_count(); r++) {
        const struct kedge_rule *rule = kedge_rule_at(r);
        int64_t gram[64];
        uint32_t maxima[8];
        double norm_sq[8];
        const int32_t *vectors[8];
        for (size_t k = 0; k < 8; k++) {
            vectors[k] = u.values[k];
        }
        kedge_rule_base(rule, u.samples, 7, u.base);
        const size_t all = rule->needs_root ? 8 : 7;
        const struct kedge_rule_inputs in = {7, u.base, 100, 16, norm_sq, gram, maxima, rule->needs_root};
        long k = 0;
        int err;
        do {
            kedge_mem_fail_at(++k);
            err = measure_of(rule, vectors, all, 20, norm_sq, maxima, gram);
            err = err ? err : kedge_rule_weigh(rule, &params, &in, u.weight, &u.divisor);
            ck_assert(err == KEDGE_OK || err == KEDGE_E_NOMEM);
        } while (err && k < 20);
        kedge_mem_fail_at(0);
        ck_assert_int_eq(err, KEDGE_OK);
        ck_assert(!rule->needs_gram || k > 2);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        table,    tolerated, numbers,  fallback,          refusals,      tiles_refused, votes_are_copies,
        measured, unanimous, extremes, same_bytes_always, out_of_memory, NULL};
    return run_tests("aggregation/rule", tests);
}
