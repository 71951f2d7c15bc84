/* Whose request is next: shares by cost, lines of their own, debts; and the experiment of ten greedy tenants
 * beside forty regular ones, in virtual time. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/schedule/fair.h"
#include "tests/fixtures/run.h"

enum { FLOWS = 64, LINE = 1000, MS = 1000000 };

struct request {
    struct kedge_fair_item item;
    uint64_t at_ns, cost_ns;
    uint32_t number;
};

static struct kedge_fair_flow flows[FLOWS];
static struct request pool[16384];
static uint32_t used;

static struct kedge_fair make(uint32_t line_max, uint64_t quantum_ns)
{
    struct kedge_fair f = {
        .flows = flows, .flow_count = FLOWS, .line_max = line_max, .quantum_ns = quantum_ns};
    memset(flows, 0, sizeof flows);
    used = 0;
    kedge_fair_init(&f);
    return f;
}

static bool put(struct kedge_fair *f, uint32_t flow, uint64_t now, uint64_t cost)
{
    struct request *r = &pool[used];
    *r = (struct request){.at_ns = now, .cost_ns = cost, .number = used};
    used += kedge_fair_put(f, flow, &r->item);
    return used > 0 && r == &pool[used - 1];
}

/* Serves one; its flow, or FLOWS when there is none. */
static uint32_t serve(struct kedge_fair *f, uint64_t *io_now)
{
    uint32_t flow = FLOWS;
    struct request *r = (struct request *)kedge_fair_take(f, &flow);
    if (r) {
        *io_now += r->cost_ns;
        kedge_fair_charge(f, flow, r->cost_ns);
    }
    return r ? flow : FLOWS;
}

START_TEST(one_line_is_first_in_first_out)
{
    struct kedge_fair f = make(LINE, MS);
    uint32_t flow;
    ck_assert_ptr_null(kedge_fair_take(&f, &flow));
    for (uint32_t i = 0; i < 10; i++) {
        ck_assert(put(&f, 3, 0, MS));
    }
    for (uint32_t i = 0; i < 10; i++) {
        struct request *r = (struct request *)kedge_fair_take(&f, &flow);
        ck_assert(r && flow == 3 && r->number == i);
        kedge_fair_charge(&f, flow, 100 * MS); /* alone it never waits, whatever it costs */
    }
    ck_assert_ptr_null(kedge_fair_take(&f, &flow));
}
END_TEST

START_TEST(a_full_line_is_its_own)
{
    struct kedge_fair f = make(3, MS);
    for (int i = 0; i < 3; i++) {
        ck_assert(put(&f, 0, 0, MS));
    }
    ck_assert(!put(&f, 0, 0, MS));
    ck_assert(put(&f, 1, 0, MS));
    ck_assert_uint_eq(f.count, 4);
}
END_TEST

/* Requests of one cost ten times what the others' cost: each flow gets the same time. */
START_TEST(shares_are_of_time)
{
    struct kedge_fair f = make(LINE, MS);
    uint64_t now = 0, got[3] = {0};
    for (int i = 0; i < 900; i++) {
        put(&f, 0, 0, 10 * MS);
        put(&f, 1, 0, MS);
        put(&f, 2, 0, MS / 10);
    }
    while (now < 80 * MS) {
        uint64_t before = now;
        uint32_t flow = serve(&f, &now);
        got[flow] += now - before;
    }
    for (int a = 0; a < 3; a++) {
        for (int b = 0; b < 3; b++) {
            ck_assert_msg(got[a] <= got[b] + 11 * MS, "%d: %llu, %d: %llu", a, (unsigned long long)got[a], b,
                          (unsigned long long)got[b]);
        }
    }
}
END_TEST

/* Who asks for dear things one at a time pays between them. */
START_TEST(a_debt_outlasts_an_empty_line)
{
    struct kedge_fair f = make(LINE, MS);
    uint64_t now = 0, dear = 0, cheap = 0;
    for (int i = 0; i < 900; i++) {
        put(&f, 1, 0, MS);
    }
    put(&f, 0, 0, 20 * MS);
    while (now < 400 * MS) {
        uint64_t before = now;
        uint32_t flow = serve(&f, &now);
        *(flow == 0 ? &dear : &cheap) += now - before;
        if (flow == 0) {
            put(&f, 0, now, 20 * MS);
        }
    }
    ck_assert_msg(dear <= cheap + 21 * MS, "%llu beside %llu", (unsigned long long)dear,
                  (unsigned long long)cheap);
    ck_assert(dear + 21 * MS >= cheap);
}
END_TEST

/* Nothing is saved up while a line is empty. */
START_TEST(rest_is_given_back)
{
    struct kedge_fair f = make(LINE, 100 * MS);
    uint64_t now = 0;
    uint32_t in_a_row = 0;
    for (int i = 0; i < 50; i++) { /* one at a time: 99 of 100 ms are left each time */
        put(&f, 0, now, MS);
        ck_assert_uint_eq(serve(&f, &now), 0);
    }
    for (int i = 0; i < 500; i++) {
        put(&f, 0, now, MS);
        put(&f, 1, now, MS);
    }
    while (serve(&f, &now) == 0) {
        in_a_row++;
    }
    ck_assert_uint_le(in_a_row, 100);
}
END_TEST

/* Ten tenants with 900 requests each at all times, forty that ask one thing after the other, ten times. With
 * one line a regular request waits for up to 9,000 others. */
START_TEST(greedy_tenants_wait_behind_themselves)
{
    enum { GREEDY = 10, REGULAR = 40, EACH = 10 };
    const uint64_t service = MS;
    struct kedge_fair f = make(LINE, MS / 5);
    uint64_t now = 0, waited[GREEDY + REGULAR] = {0};
    uint32_t done[GREEDY + REGULAR] = {0}, left = REGULAR;
    for (uint32_t t = 0; t < GREEDY; t++) {
        for (int i = 0; i < 900; i++) {
            put(&f, t, 0, service);
        }
    }
    for (uint32_t t = GREEDY; t < GREEDY + REGULAR; t++) {
        put(&f, t, 0, service);
    }
    while (left > 0) {
        uint32_t flow = FLOWS;
        struct request *r = (struct request *)kedge_fair_take(&f, &flow);
        now += r->cost_ns;
        kedge_fair_charge(&f, flow, r->cost_ns);
        if (flow < GREEDY) { /* as many as before */
            r->at_ns = now;
            ck_assert(kedge_fair_put(&f, flow, &r->item));
            continue;
        }
        waited[flow] += now - r->at_ns;
        if (++done[flow] < EACH) {
            r->at_ns = now;
            ck_assert(kedge_fair_put(&f, flow, &r->item));
        } else {
            left--;
        }
    }
    for (uint32_t t = GREEDY; t < GREEDY + REGULAR; t++) {
        uint64_t mean = waited[t] / EACH;
        ck_assert_msg(mean <= 12 * (GREEDY + REGULAR) * service / 10 && mean < 60 * MS, "tenant %u: %llu ns",
                      t, (unsigned long long)mean);
    }
}
END_TEST

/* A million random puts, takes and costs against a plain model: every item comes out once, in the order of
 * its flow; nothing is lost; two flows that never ran dry differ by a quantum and an item's cost at most. */
START_TEST(against_a_model)
{
    struct kedge_fair f = make(64, MS);
    static uint32_t expect[FLOWS], next[FLOWS];
    uint32_t rng = 12345, in = 0, out = 0;
    for (uint32_t i = 0; i < 1000000; i++) {
        rng = rng * 1664525u + 1013904223u;
        uint32_t flow = (rng >> 8) % FLOWS;
        if ((rng >> 20) % 2 == 0 && f.count < 4000) {
            struct request *r = malloc(sizeof *r);
            ck_assert_ptr_nonnull(r);
            *r = (struct request){.number = next[flow]};
            if (kedge_fair_put(&f, flow, &r->item)) {
                next[flow]++;
                in++;
            } else {
                ck_assert_uint_eq(flows[flow].count, 64);
                free(r);
            }
            continue;
        }
        struct request *r = (struct request *)kedge_fair_take(&f, &flow);
        ck_assert((r == NULL) == (in == out));
        if (r) {
            ck_assert_uint_eq(r->number, expect[flow]++);
            kedge_fair_charge(&f, flow, (uint64_t)(rng >> 4) % (3 * MS));
            out++;
            free(r);
        }
    }
    ck_assert_uint_eq(f.count, in - out);
    for (uint32_t flow = 0; f.count > 0;) {
        free(kedge_fair_take(&f, &flow));
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("fair");
    tcase_add_test(tests, one_line_is_first_in_first_out);
    tcase_add_test(tests, a_full_line_is_its_own);
    tcase_add_test(tests, shares_are_of_time);
    tcase_add_test(tests, a_debt_outlasts_an_empty_line);
    tcase_add_test(tests, rest_is_given_back);
    tcase_add_test(tests, greedy_tenants_wait_behind_themselves);
    tcase_add_test(tests, against_a_model);
    Suite *s = suite_create("schedule/fair");
    suite_add_tcase(s, tests);
    return run_suite(s);
}
