/* Jobs of several models without a pre-training: sites whose tenant is their group. */
#include <check.h>

#include "tests/fixtures/run.h"
#include "tests/unit/coordinator/host.h"

static const enum kedge_task_kind P = KEDGE_TASK_PRETRAIN, T = KEDGE_TASK_TRAIN;

enum { SITES = 4 };

/* Two tenants: sites 0 and 2 are of the first, 1 and 3 of the second. */
static void load_job(struct host *h)
{
    struct kedge_digest begin[2] = {digest_of(1), digest_of(2)};
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_JOB);
    host_members(h, 2, SITES);
    ev.params = &h->params;
    ev.models = begin;
    ev.model_count = kedge_coord_first_models(&h->params);
    ev.state = KEDGE_JOB_TRAINING;
    host_step(h, &ev);
    host_joined(h, 0);
    host_joined(h, 1);
}

static bool may_read(const struct host *h, uint32_t site, uint8_t model)
{
    struct kedge_digest d = digest_of(model);
    return kedge_coord_may_read(h->c, 0, site, &d);
}

static void computed(struct host *h, uint32_t round, uint8_t first)
{
    struct kedge_digest made[2] = {digest_of(first), digest_of((uint8_t)(first + 1))};
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_ROUND_COMPUTED);
    ev.round = round;
    ev.model_count = 2;
    ev.models = made;
    host_step(h, &ev);
}

/* No round 0, no statement, and nobody leaves its tenant's group. */
START_TEST(test_by_tenant)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.by_tenant = true;
    ck_assert_uint_eq(kedge_coord_first_round(&h.params), 1);
    ck_assert_int_eq(kedge_coord_round_kind(&h.params, 2, KEDGE_TASK_TRAIN, true), KEDGE_TASK_TRAIN);
    load_job(&h);
    host_simple(&h, KEDGE_EV_START);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
    }
    EXPECT(&h, "round-opened r1");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q100 s0 train r1 g0 base=1; task q101 s1 train r1 g1 base=2; "
               "task q102 s2 train r1 g0 base=1; task q103 s3 train r1 g1 base=2");
    ck_assert(may_read(&h, 3, 2) && !may_read(&h, 0, 2));
    host_submit(&h, 0, T, 1, 1, 2, 8);
    EXPECT(&h, "away q8 WRONG_GROUP");
    host_submit(&h, 1, P, 1, KEDGE_COORD_NONE, 1, 9);
    EXPECT(&h, "away q9 ARG");
    for (uint32_t i = 0; i < SITES; i++) {
        host_accept(&h, i, T, 1, i % 2, i % 2 ? 2 : 1, (uint8_t)(10 + i));
    }
    EXPECT(&h, "receipt q13 leaf=13; close r1");
    computed(&h, 1, 30);
    host_main(&h, KEDGE_OK);
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 3)->group, 1);
    ck_assert(may_read(&h, 3, 31) && !may_read(&h, 3, 30));
    host_close(&h);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("several");
    tcase_add_test(tc, test_by_tenant);
    Suite *s = suite_create("coordinator/several");
    suite_add_tcase(s, tc);
    return run_suite(s);
}
