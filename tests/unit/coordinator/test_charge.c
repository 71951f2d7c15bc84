/* Selection that spares batteries: what is picked, that the auditor picks the same, that nobody is forgotten,
 * and what a fleet of batteries makes of it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "tests/fixtures/run.h"
#include "tests/unit/coordinator/host.h"

enum { MOST = 400 };
static uint32_t scratch[2 * MOST], picks[MOST];
static uint8_t weights[MOST];
static bool chosen[MOST];

static void weigh(uint64_t seed, uint32_t count)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 0, 0);
    for (uint32_t i = 0; i < count; i++) {
        weights[i] =
            kedge_coord_charge_weight((enum kedge_charge)kedge_rng_below(&rng, KEDGE_CHARGE_MAINS + 1));
    }
}

START_TEST(picks_and_marks_agree)
{
    static const uint32_t counts[] = {1, 2, 3, 9, 64, MOST}, wanted[] = {0, 1, 2, 8, 9, 63, MOST};
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t n = 0; n < 6; n++) {
        for (size_t k = 0; k < 7; k++) {
            const uint32_t count = counts[n], all = wanted[k] == 0 || wanted[k] >= count;
            uint32_t sum = 0;
            weigh(n, count);
            kedge_coord_select_charged(7, (uint32_t)k + 3, weights, count, wanted[k], scratch, chosen);
            for (uint32_t i = 0; i < count; i++) {
                sum += chosen[i];
            }
            ck_assert_uint_eq(sum, all ? count : wanted[k]);
            if (!all) {
                kedge_coord_pick_charged(7, (uint32_t)k + 3, weights, count, wanted[k], scratch, picks);
            }
            for (uint32_t i = 0; i < wanted[k] && !all; i++) {
                ck_assert(picks[i] < count && chosen[picks[i]]);
                chosen[picks[i]] = false; /* each once */
                digest = (digest ^ picks[i]) * UINT64_C(0x100000001b3);
            }
        }
    }
    ck_assert_msg(digest == UINT64_C(0xbe0add9d8557bbb2), "%#llx", (unsigned long long)digest);
    memset(weights, 200, 9); /* what no coordinator writes is the nearest there is */
    weights[3] = 0;
    kedge_coord_select_charged(7, 1, weights, 9, 4, scratch, chosen);
    ck_assert(!kedge_coord_is_charge_weight(0) && !kedge_coord_is_charge_weight(200));
    for (int c = KEDGE_CHARGE_UNTOLD; c <= KEDGE_CHARGE_MAINS; c++) {
        ck_assert(kedge_coord_is_charge_weight(kedge_coord_charge_weight((enum kedge_charge)c)));
    }
    ck_assert_uint_eq(kedge_coord_charge_weight(KEDGE_CHARGE_UNTOLD),
                      kedge_coord_charge_weight(KEDGE_CHARGE_ENOUGH));
}
END_TEST

/* A class is drawn the more often the more it weighs, and within a class all are alike. */
START_TEST(weights_count)
{
    enum { N = 30, ROUNDS = 6000 };
    uint32_t times[N] = {0}, of[3] = {0};
    for (uint32_t i = 0; i < N; i++) {
        weights[i] = kedge_coord_charge_weight((enum kedge_charge)(i % 3 + 1));
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        kedge_coord_select_charged(42, round, weights, N, 5, scratch, chosen);
        for (uint32_t i = 0; i < N; i++) {
            times[i] += chosen[i];
            of[i % 3] += chosen[i];
        }
    }
    ck_assert_msg(2 * of[0] < of[1] && of[1] < of[2] && 3 * of[1] > of[2], "%u, %u, %u", of[0], of[1], of[2]);
    for (uint32_t i = 0; i < N; i++) { /* six deviations */
        const double mean = of[i % 3] / 10.0, off = times[i] - mean;
        ck_assert_msg(off * off < 36 * mean, "%u: %u of %g", i, times[i], mean);
    }
}
END_TEST

/* A site that stays among the same candidates is selected within count / turns rounds, whatever it weighs. */
START_TEST(nobody_is_forgotten)
{
    static const uint32_t counts[] = {5, 17, 100, 399}, wanted[] = {1, 7, 8, 9, 40};
    for (size_t n = 0; n < 4; n++) {
        for (size_t k = 0; k < 5; k++) {
            const uint32_t count = counts[n], turns = (wanted[k] + 7) / 8,
                           bound = (count + turns - 1) / turns;
            uint32_t waited[MOST] = {0}, longest = 0;
            if (wanted[k] >= count) {
                continue;
            }
            for (uint32_t i = 0; i < count; i++) {
                weights[i] = kedge_coord_charge_weight(i == 3 ? KEDGE_CHARGE_LOW : KEDGE_CHARGE_MAINS);
            }
            for (uint32_t round = 1000; round < 1000 + 3 * bound; round++) {
                kedge_coord_select_charged(5, round, weights, count, wanted[k], scratch, chosen);
                for (uint32_t i = 0; i < count; i++) {
                    waited[i] = chosen[i] ? 0 : waited[i] + 1;
                    longest = waited[i] > longest ? waited[i] : longest;
                }
            }
            ck_assert_msg(longest < bound, "%u of %u: %u rounds", wanted[k], count, longest);
        }
    }
}
END_TEST

/* ---- a fleet ---- */

/* Devices that are charged for some hours of each day, used by their owners for the others, and give up a
 * training that takes their battery below the floor. In percent and quarters of an hour. */
enum { SITES = 100, PER_ROUND = 10, UPDATES = 20000 };
struct fleet {
    double left[SITES], cost[SITES], plugged_at[SITES];
};
struct outcome {
    uint32_t rounds, dropped, longest, least;
};

static void make_fleet(struct fleet *f)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 1, KEDGE_RNG_TEST, 1, 0);
    for (uint32_t i = 0; i < SITES; i++) {
        f->left[i] = 30 + 70 * kedge_rng_unit(&rng);
        f->cost[i] = 2 + 6 * kedge_rng_unit(&rng);
        f->plugged_at[i] = 24 * kedge_rng_unit(&rng);
    }
}

static bool is_plugged(const struct fleet *f, uint32_t i, uint32_t round)
{
    const double hour = (double)(round % 96) / 4, since = hour - f->plugged_at[i];
    return since >= 0 ? since < 6 : since + 24 < 6;
}

static struct outcome live(bool by_charge)
{
    struct outcome o = {.least = UINT32_MAX};
    struct fleet f;
    uint32_t at[SITES], waited[SITES] = {0}, times[SITES] = {0}, updates = 0;
    make_fleet(&f);
    for (; updates < UPDATES; o.rounds++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < SITES; i++) {
            const bool plugged = is_plugged(&f, i, o.rounds);
            f.left[i] += plugged ? 5 : -0.5;
            f.left[i] = f.left[i] > 100 ? 100 : f.left[i] < 1 ? 1 : f.left[i];
            if (f.left[i] >= 20) {
                weights[n] = kedge_coord_charge_weight(plugged          ? KEDGE_CHARGE_MAINS
                                                       : f.left[i] < 40 ? KEDGE_CHARGE_LOW
                                                                        : KEDGE_CHARGE_ENOUGH);
                at[n++] = i;
            } else {
                waited[i] = 0; /* not available */
            }
        }
        if (by_charge) {
            kedge_coord_select_charged(9, o.rounds, weights, n, PER_ROUND, scratch, chosen);
        } else {
            kedge_coord_select(9, o.rounds, n, PER_ROUND, scratch, chosen);
        }
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t i = at[k];
            waited[i] = chosen[k] ? 0 : waited[i] + 1;
            o.longest = waited[i] > o.longest ? waited[i] : o.longest;
            if (chosen[k]) {
                const bool gives_up = !is_plugged(&f, i, o.rounds) && f.left[i] - f.cost[i] < 20;
                f.left[i] -= is_plugged(&f, i, o.rounds) ? 0 : f.cost[i];
                f.left[i] = f.left[i] < 1 ? 1 : f.left[i];
                o.dropped += gives_up;
                updates += !gives_up;
                times[i] += !gives_up;
            }
        }
    }
    for (uint32_t i = 0; i < SITES; i++) {
        o.least = times[i] < o.least ? times[i] : o.least;
    }
    return o;
}

/* At most half as many give up as with uniform draws, in no more than 5 % more rounds, and every device has
 * its part. */
START_TEST(fewer_give_up)
{
    const struct outcome uniform = live(false), spared = live(true);
    printf("fleet: %u of %u rounds give up and wait %u at most, uniform; %u of %u and %u by charge; least %u "
           "and %u updates\n",
           uniform.dropped, uniform.rounds, uniform.longest, spared.dropped, spared.rounds, spared.longest,
           uniform.least, spared.least);
    ck_assert_uint_gt(uniform.dropped, 400);
    ck_assert_uint_le(2 * spared.dropped, uniform.dropped);
    ck_assert_uint_le(100 * spared.rounds, 105 * uniform.rounds);
    ck_assert_uint_ge(4 * spared.least, uniform.least);
    ck_assert_uint_lt(spared.longest, 2 * SITES);
}
END_TEST

/* ---- the core ---- */

static void poll_as(struct host *h, uint32_t site, uint32_t request, enum kedge_charge charge)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_POLL);
    ev.site = site;
    ev.request = request;
    ev.wait_ns = 5000 * MS;
    ev.charge = charge;
    host_step(h, &ev);
}

/* What sites say before the round opens is what they weigh in it, also as they say something else meanwhile;
 * rounds that make groups, and jobs without the key, know nothing of it. */
START_TEST(rows_have_what_was_said)
{
    struct host h;
    host_open(&h);
    h.params.by_charge = true;
    h.params.sites_per_round = 2;
    host_members(&h, 1, 4);
    host_simple(&h, KEDGE_EV_START);
    for (uint32_t i = 0; i < 4; i++) {
        poll_as(&h, i, 10 + i, (enum kedge_charge)i);
    }
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_joined(&h, 0);
    poll_as(&h, 1, 20, KEDGE_CHARGE_MAINS);
    uint32_t selected = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const struct kedge_coord_row *row = kedge_coord_row(h.c, 0, i);
        ck_assert(row && row->candidate);
        ck_assert_uint_eq(row->draw, kedge_coord_charge_weight((enum kedge_charge)i));
        weights[i] = row->draw;
        selected += row->selected;
    }
    ck_assert_uint_eq(selected, 2);
    kedge_coord_select_charged(h.params.seed, 1, weights, 4, 2, scratch, chosen);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(chosen[i], kedge_coord_row(h.c, 0, i)->selected);
    }
    host_close(&h);
    host_open(&h);
    h.params.sites_per_round = 2;
    host_members(&h, 1, 4);
    host_simple(&h, KEDGE_EV_START);
    for (uint32_t i = 0; i < 4; i++) {
        poll_as(&h, i, 10 + i, KEDGE_CHARGE_LOW);
    }
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_joined(&h, 0);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(kedge_coord_row(h.c, 0, i)->draw, 0);
    }
    host_close(&h);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coordinator/charge");
    TCase *tests = tcase_create("charge");
    tcase_add_test(tests, picks_and_marks_agree);
    tcase_add_test(tests, weights_count);
    tcase_add_test(tests, nobody_is_forgotten);
    tcase_add_test(tests, fewer_give_up);
    tcase_add_test(tests, rows_have_what_was_said);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
