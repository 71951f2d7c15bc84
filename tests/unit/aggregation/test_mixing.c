#include "aggregation/mixing.h"

#include <math.h>

#include "tests/unit/aggregation/support.h"

static const uint64_t golden_norms = UINT64_C(9438702175643356918);
static const uint64_t golden_models = UINT64_C(10936664775258552237);

enum { GROUPS = 5, D = 5003 };

static float models[GROUPS][D];
static float mixed[GROUPS][D];
static const float *pointers[GROUPS];
static float *outputs[GROUPS];

static void fill_models(uint64_t seed)
{
    struct kedge_rng rng = new_stream(seed);
    for (int j = 0; j < GROUPS; j++) {
        fill_floats(&rng, models[j], D, 0.1 * (j + 1));
        pointers[j] = models[j];
        outputs[j] = mixed[j];
    }
}

static double find_norm(const float *x, size_t n, size_t step)
{
    struct kedge_reduce r;
    kedge_reduce_init(&r);
    for (size_t at = 0; at < n; at += step) {
        kedge_sumsq_push(&r, x + at, n - at < step ? n - at : step);
    }
    return kedge_mixing_norm(&r);
}

/* The tree by definition: the left part is the largest power of two below n leaves. */
static double sum_tree(const double *leaf, size_t n)
{
    double level[64];
    size_t width[64];
    size_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        level[depth] = leaf[i];
        width[depth++] = 1;
        while (depth > 1 && width[depth - 1] == width[depth - 2]) {
            level[depth - 2] += level[depth - 1];
            width[--depth - 1] *= 2;
        }
    }
    while (depth > 1) {
        level[depth - 2] += level[depth - 1];
        depth--;
    }
    return n ? level[0] : 0.0;
}

START_TEST(tree)
{
    double leaf[70];
    struct kedge_rng rng = new_stream(1);
    struct kedge_reduce r;
    kedge_reduce_init(&r);
    ck_assert(kedge_reduce_root(&r) == 0.0);
    int unlike_chain = 0;
    double chain = 0.0;
    for (size_t n = 0; n < 70; n++) {
        leaf[n] = kedge_rng_unit(&rng);
        chain += leaf[n];
        kedge_reduce_push(&r, leaf[n]);
        ck_assert(kedge_reduce_root(&r) == sum_tree(leaf, n + 1));
        unlike_chain += kedge_reduce_root(&r) != chain;
    }
    ck_assert_int_gt(unlike_chain, 0); /* the order matters, so equality says something */
    double three = (leaf[0] + leaf[1]) + leaf[2];
    ck_assert(sum_tree(leaf, 3) == three);
    double five = ((leaf[0] + leaf[1]) + (leaf[2] + leaf[3])) + leaf[4];
    ck_assert(sum_tree(leaf, 5) == five);
}
END_TEST

START_TEST(norms_do_not_depend_on_tiles)
{
    fill_models(1);
    uint64_t hash = FNV_START;
    static const size_t sizes[] = {0, 1, 7, 8, 9, 1023, 1024, 1025, 2048, 4999, 5003};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double norm = find_norm(models[0], sizes[s], SIZE_MAX / 2);
        double direct = 0.0;
        for (size_t i = 0; i < sizes[s]; i++) {
            direct += (double)models[0][i] * (double)models[0][i];
        }
        ck_assert(fabs(norm - sqrt(direct)) <= 1e-13 * norm);
        ck_assert(find_norm(models[0], sizes[s], 1024) == norm);
        ck_assert(find_norm(models[0], sizes[s], 3072) == norm);
        hash = fnv(hash, &norm, sizeof norm);
    }
    static const float three_four[2] = {3.0f, -4.0f};
    ck_assert(find_norm(three_four, 2, 1024) == 5.0);
    ck_assert_uint_eq(hash, golden_norms);
}
END_TEST

START_TEST(by_hand)
{
    static const float a[2] = {3.0f, 4.0f};
    static const float b[2] = {0.0f, 2.0f};
    const float *const in[2] = {a, b};
    float out_a[2];
    float out_b[2];
    float *const out[2] = {out_a, out_b};
    const double norms[2] = {5.0, 2.0};
    const bool trained[2] = {true, true};
    struct kedge_mixing m;
    ck_assert_int_eq(kedge_mixing_init(&m, norms, trained, 2, 2.0), KEDGE_OK);
    kedge_mixing_tile(&m, in, 0, 2, out);
    /* a: ((3, 4) + 2 (0, 1)) / (1 + 2 / 2); b: ((0, 2) + 2 (.6, .8)) / (1 + 2 / 5) */
    ck_assert(out_a[0] == 1.5f && out_a[1] == 3.0f);
    ck_assert(fabsf(out_b[0] - 1.2f / 1.4f) < 1e-6f && fabsf(out_b[1] - 3.6f / 1.4f) < 1e-6f);
}
END_TEST

START_TEST(matches_definition_and_tiles)
{
    static const bool masks[][GROUPS] = {{true, true, true, true, true},
                                         {true, false, true, true, false},
                                         {false, false, false, true, false},
                                         {false}};
    uint64_t hash = FNV_START;
    for (size_t mask = 0; mask < 4; mask++) {
        fill_models(2);
        double norms[GROUPS];
        for (int j = 0; j < GROUPS; j++) {
            norms[j] = masks[mask][j] ? find_norm(models[j], D, 1024) : (double)NAN; /* never looked at */
        }
        struct kedge_mixing m;
        ck_assert_int_eq(kedge_mixing_init(&m, norms, masks[mask], GROUPS, 0.1), KEDGE_OK);
        memset(mixed, 0, sizeof mixed);
        kedge_mixing_tile(&m, pointers, 0, D, outputs);
        for (int j = 0; j < GROUPS; j++) {
            for (int i = 0; i < D; i++) {
                double top = (double)models[j][i];
                double bottom = 1.0;
                for (int l = 0; l < GROUPS; l++) {
                    if (l != j && masks[mask][l]) {
                        top += 0.1 * ((double)models[l][i] / norms[l]);
                        bottom += 0.1 / norms[l];
                    }
                }
                double expect = masks[mask][j] ? top / bottom : 0.0;
                ck_assert(fabs((double)mixed[j][i] - expect) <= 1e-7 * fabs(expect) + 1e-12);
            }
        }
        hash = fnv(hash, mixed, sizeof mixed);
        static const size_t steps[] = {1, 127, 129, 1000, 5002};
        static float tiled[GROUPS][D];
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            memset(tiled, 0, sizeof tiled);
            for (size_t at = 0; at < D; at += steps[s]) {
                float *out[GROUPS];
                for (int j = 0; j < GROUPS; j++) {
                    out[j] = masks[mask][j] ? tiled[j] + at : NULL;
                }
                kedge_mixing_tile(&m, pointers, at, D - at < steps[s] ? D - at : steps[s], out);
            }
            ck_assert_mem_eq(tiled, mixed, sizeof tiled);
        }
        float *in_place[GROUPS] = {models[0], models[1], models[2], models[3], models[4]};
        kedge_mixing_tile(&m, pointers, 0, D, in_place);
        for (int j = 0; j < GROUPS; j++) {
            ck_assert(!masks[mask][j] || memcmp(models[j], mixed[j], sizeof mixed[j]) == 0);
        }
    }
    ck_assert_uint_eq(hash, golden_models);
}
END_TEST

START_TEST(edges)
{
    fill_models(3);
    memset(models[1], 0, sizeof models[1]);
    const bool all[GROUPS] = {true, true, true, true, true};
    double norms[GROUPS];
    for (int j = 0; j < GROUPS; j++) {
        norms[j] = find_norm(models[j], D, 1024);
    }
    ck_assert(norms[1] == 0.0);
    struct kedge_mixing m;
    ck_assert_int_eq(kedge_mixing_init(&m, norms, all, GROUPS, 0.0), KEDGE_OK);
    kedge_mixing_tile(&m, pointers, 0, D, outputs);
    ck_assert_mem_eq(mixed, models, sizeof mixed); /* eta 0 changes nothing */
    ck_assert_int_eq(kedge_mixing_init(&m, norms, all, GROUPS, 5.0), KEDGE_OK);
    kedge_mixing_tile(&m, pointers, 0, D, outputs);
    bool pulled = false;
    for (int i = 0; i < D; i++) {
        ck_assert(isfinite(mixed[0][i]) && isfinite(mixed[1][i]));
        pulled = pulled || mixed[1][i] != 0.0f;
    }
    ck_assert(pulled);
    ck_assert_int_eq(kedge_mixing_init(&m, norms, all, 0, 1.0), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_mixing_init(&m, norms, all, KEDGE_GROUPS_MAX + 1, 1.0), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_mixing_init(&m, norms, all, GROUPS, -0.5), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_mixing_init(&m, norms, all, GROUPS, (double)NAN), KEDGE_E_ARG);
    norms[2] = 0x1p-1074;
    ck_assert_int_eq(kedge_mixing_init(&m, norms, all, GROUPS, 1.0), KEDGE_E_NOT_FINITE);
    norms[2] = (double)INFINITY;
    ck_assert_int_eq(kedge_mixing_init(&m, norms, all, GROUPS, 1.0), KEDGE_E_NOT_FINITE);
    ck_assert(m.eta == 5.0); /* as it was */
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tree, norms_do_not_depend_on_tiles, by_hand, matches_definition_and_tiles, edges, NULL};
    return run_tests("aggregation/mixing", tests);
}
