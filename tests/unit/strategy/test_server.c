#include "strategy/server.h"

#include <math.h>

#include "tests/unit/aggregation/support.h"

static const uint64_t golden = UINT64_C(4265830964573415627);

static const struct kedge_strategy_options usual = {
    .server_lr = 0.1, .momentum = 0.9, .second_moment = 0.99, .adaptivity = 0.001};

/* One value through two rounds, D = 2 and then −1, against the formulas worked out here. */
static void two_rounds(enum kedge_server server, const struct kedge_strategy_options *o, const float want[2],
                       const float want_v[2])
{
    float m = 0, v = 0, x = 1;
    float *const state[KEDGE_SERVER_STATES_MAX] = {&m, kedge_server_states(server) > 1 ? &v : NULL};
    for (int round = 0; round < 2; round++) {
        float aggregate = x + (round == 0 ? 2.0f : -1.0f);
        ck_assert_int_eq(kedge_server_step(server, o, &x, &aggregate, state, 1, &x), KEDGE_OK);
        ck_assert(fabs((double)x - (double)want[round]) < 1e-6);
        ck_assert(fabs((double)v - (double)want_v[round]) < 1e-6);
    }
}

START_TEST(by_hand)
{
    /* v = 2: 1 + .2; v = .9 · 2 − 1 = .8: + .08 */
    two_rounds(KEDGE_SERVER_MOMENTUM, &usual, (float[]){1.2f, 1.28f}, (float[]){0, 0});
    /* m = .2, v = 4: .1 · .2 / 2.001; m = .18 − .1 = .08, v = 5 */
    const double a = 1 + 0.1 * 0.2 / 2.001;
    two_rounds(KEDGE_SERVER_ADAGRAD, &usual,
               (float[]){(float)a, (float)(a + 0.1 * 0.08 / (sqrt(5.0) + 0.001))}, (float[]){4, 5});
    /* v = 0 − .01 · 4 · sign(−4) = .04; then v − D² = −.96: v = .04 + .01 = .05 */
    const double y = 1 + 0.1 * 0.2 / (0.2 + 0.001);
    two_rounds(KEDGE_SERVER_YOGI, &usual, (float[]){(float)y, (float)(y + 0.1 * 0.08 / (sqrt(0.05) + 0.001))},
               (float[]){0.04f, 0.05f});
    /* v = .04; v = .0396 + .01 = .0496; no correction of the bias */
    two_rounds(KEDGE_SERVER_ADAM, &usual,
               (float[]){(float)y, (float)(y + 0.1 * 0.08 / (sqrt(0.0496) + 0.001))},
               (float[]){0.04f, 0.0496f});
    two_rounds(KEDGE_SERVER_CONTROL, &usual, (float[]){1.2f, 1.1f}, (float[]){0, 0});
    /* Yogi's v falls when it is above D², and never below 0 */
    float x = 0, aggregate = 0.1f, m = 0, v = 1;
    float *const state[KEDGE_SERVER_STATES_MAX] = {&m, &v};
    ck_assert_int_eq(kedge_server_step(KEDGE_SERVER_YOGI, &usual, &x, &aggregate, state, 1, &x), KEDGE_OK);
    ck_assert(fabs((double)v - 0.9999) < 1e-6);
}
END_TEST

/* D = 2 in each of four rounds: 0.1 · 2 as it stands; settling in round 3, 3/4, 3/5, 3/6 and 3/7 of it. */
START_TEST(steps_settle)
{
    struct kedge_strategy_options o = {.server_lr = 0.1, .settle = 3, .momentum = 0.5};
    static const double want[4] = {0.075, 0.06, 0.05, 0.3 / 7};
    for (uint32_t round = 1; round <= 4; round++) {
        const struct kedge_strategy_options now = kedge_server_options(&o, round);
        ck_assert(fabs(now.server_lr - want[round - 1]) < 1e-15);
        ck_assert(now.momentum == o.momentum && now.settle == o.settle);
        float x = 1, m = 0, aggregate = 3;
        float *const state[KEDGE_SERVER_STATES_MAX] = {&m, NULL};
        ck_assert_int_eq(kedge_server_step(KEDGE_SERVER_MOMENTUM, &now, &x, &aggregate, state, 1, &x),
                         KEDGE_OK);
        ck_assert(fabs((double)x - (1 + 2 * want[round - 1])) < 1e-6);
    }
    o.settle = 0; /* bit for bit, in whatever round */
    ck_assert(kedge_server_options(&o, UINT32_MAX).server_lr == o.server_lr);
    o.settle = 3;
    ck_assert(kedge_server_options(&o, UINT32_MAX).server_lr > 0);
}
END_TEST

START_TEST(none_is_the_aggregate)
{
    enum { LEN = 4096 };
    static float before[LEN], aggregate[LEN], after[LEN];
    static const struct kedge_strategy_options one = {.server_lr = 1};
    struct kedge_rng rng = new_stream(5);
    for (size_t i = 0; i < LEN; i++) { /* any bits: x + (a − x) would lose some */
        uint32_t bits = (uint32_t)kedge_rng_u64(&rng);
        memcpy(&aggregate[i], &bits, sizeof bits);
        aggregate[i] = isfinite(aggregate[i]) ? aggregate[i] : 0;
        before[i] = (float)(kedge_rng_unit(&rng) * 1e20);
    }
    static const enum kedge_server servers[2] = {KEDGE_SERVER_NONE, KEDGE_SERVER_CONTROL};
    for (size_t s = 0; s < 2; s++) {
        memset(after, 0, sizeof after);
        ck_assert_int_eq(kedge_server_step(servers[s], &one, before, aggregate, (float *[2]){0}, LEN, after),
                         KEDGE_OK);
        ck_assert_mem_eq(after, aggregate, sizeof after);
    }
    aggregate[9] = INFINITY;
    ck_assert_int_eq(
        kedge_server_step(KEDGE_SERVER_NONE, &one, before, aggregate, (float *[2]){0}, LEN, after),
        KEDGE_E_NOT_FINITE);
}
END_TEST

START_TEST(not_finite)
{
    float x = 0, aggregate = 3e38f, m = 3e38f, v = 0;
    float *const state[KEDGE_SERVER_STATES_MAX] = {&m, &v};
    static const struct kedge_strategy_options big = {.server_lr = 10, .momentum = 0.9, .adaptivity = 1};
    ck_assert_int_eq(kedge_server_step(KEDGE_SERVER_MOMENTUM, &big, &x, &aggregate, state, 1, &x),
                     KEDGE_E_NOT_FINITE);
    m = 0;
    ck_assert_int_eq(kedge_server_step(KEDGE_SERVER_ADAGRAD, &big, &x, &aggregate, state, 1, &x),
                     KEDGE_E_NOT_FINITE); /* D² is beyond a float */
    ck_assert_uint_eq(kedge_server_states(KEDGE_SERVER_NONE), 0);
    ck_assert_uint_eq(kedge_server_states(KEDGE_SERVER_CONTROL), 1);
    ck_assert_uint_eq(kedge_server_states(KEDGE_SERVER_ADAM), 2);
}
END_TEST

/* Twenty rounds of each optimiser over 1,000 values, in tiles of any size: the same bits, and these bits. */
START_TEST(golden_bytes)
{
    enum { LEN = 1000 };
    static float x[LEN], aggregate[LEN], m[LEN], v[LEN];
    uint64_t first = 0;
    for (size_t tile = 1; tile <= LEN; tile = tile * 7 + 3) {
        uint64_t hash = FNV_START;
        for (int server = KEDGE_SERVER_NONE; server <= KEDGE_SERVER_CONTROL; server++) {
            struct kedge_rng rng = new_stream(77);
            memset(m, 0, sizeof m);
            memset(v, 0, sizeof v);
            fill_floats(&rng, x, LEN, 1.0);
            for (int round = 0; round < 20; round++) {
                for (size_t i = 0; i < LEN; i++) {
                    aggregate[i] = (float)((double)x[i] + kedge_rng_unit(&rng) - 0.5);
                }
                for (size_t at = 0; at < LEN; at += tile) {
                    float *const state[KEDGE_SERVER_STATES_MAX] = {m + at, v + at};
                    size_t n = LEN - at < tile ? LEN - at : tile;
                    ck_assert_int_eq(kedge_server_step((enum kedge_server)server, &usual, x + at,
                                                       aggregate + at, state, n, x + at),
                                     KEDGE_OK);
                }
            }
            hash = fnv(fnv(fnv(hash, x, sizeof x), m, sizeof m), v, sizeof v);
        }
        first = first ? first : hash;
        ck_assert_uint_eq(hash, first);
    }
    ck_assert_uint_eq(first, golden);
}
END_TEST

/* c = {1, −2}; changes of two of four sites in units of 1/256. */
START_TEST(control_variate)
{
    const float c[2] = {1, -2};
    const int32_t a[2] = {256, 512}, b[2] = {768, -512};
    const int32_t *changes[2] = {a, b};
    float out[2];
    ck_assert_int_eq(kedge_server_control_tile(c, changes, 2, 4, 8, 0, 2, out), KEDGE_OK);
    ck_assert(out[0] == 2.0f && out[1] == -2.0f);
    ck_assert_int_eq(kedge_server_control_tile(c, changes, 0, 4, 8, 0, 2, out), KEDGE_OK);
    ck_assert(out[0] == 1.0f && out[1] == -2.0f);
    ck_assert_int_eq(kedge_server_control_tile(c, changes, 2, 1, 8, 0, 2, out), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_server_control_tile(c, changes, 0, 0, 8, 0, 2, out), KEDGE_E_ARG);
    kedge_mem_fail_at(1);
    ck_assert_int_eq(kedge_server_control_tile(c, changes, 2, 4, 8, 0, 2, out), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        by_hand, steps_settle, none_is_the_aggregate, not_finite, golden_bytes, control_variate, NULL};
    return run_tests("strategy/server", tests);
}
