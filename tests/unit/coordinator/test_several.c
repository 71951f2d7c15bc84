/* Jobs of several models without a pre-training: sites whose tenant is their group, sites that go where their
 * last model is nearest. */
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
    h.params.entry = KEDGE_ENTRY_TENANT;
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

static void assigned(struct host *h, enum kedge_coord_event_type type, uint32_t site, uint32_t group, int err)
{
    struct kedge_coord_event ev = event_of(h, type);
    ev.site = site;
    ev.tenant = site % 2;
    ev.round = kedge_coord_row(h->c, 0, site) ? 1 : 0;
    ev.group = group;
    ev.err = err;
    host_step(h, &ev);
}

/* Before it trains a site's group is found, and stated where it is new; no pre-training, no round 0. */
START_TEST(test_nearest)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.entry = KEDGE_ENTRY_NEAREST;
    ck_assert_uint_eq(kedge_coord_first_round(&h.params), 1);
    ck_assert_uint_eq(kedge_coord_first_models(&h.params), 2);
    load_job(&h);
    host_simple(&h, KEDGE_EV_START);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
    }
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "assign s0; assign s2; assign s1; assign s3");
    assigned(&h, KEDGE_EV_ASSIGNED, 0, 1, KEDGE_OK);
    EXPECT(&h, "append-assigned s0 g1");
    ck_assert(!kedge_coord_row(h.c, 0, 0)->group_durable);
    host_submit(&h, 0, T, 1, 1, 2, 7);
    EXPECT(&h, "away q7 BUSY again"); /* not before its group is durable */
    assigned(&h, KEDGE_EV_ASSIGN_APPENDED, 0, 1, KEDGE_OK);
    EXPECT(&h, "task q100 s0 train r1 g1 base=2");
    assigned(&h, KEDGE_EV_ASSIGNED, 1, 0, KEDGE_E_DISK_FULL);
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 1)->group,
                      KEDGE_COORD_NONE); /* asked for again after a pause */
    host_submit(&h, 2, P, 1, KEDGE_COORD_NONE, 1, 9);
    EXPECT(&h, "away q9 ARG");
    host_close(&h);
}
END_TEST

/* Restart in an open round: who has a statement of it or has trained is left alone, the others are found
 * again; a group that stays as it is needs no statement. */
START_TEST(test_nearest_restarted)
{
    struct host h;
    struct kedge_digest made[2] = {digest_of(20), digest_of(21)};
    host_open(&h);
    h.params.groups = 2;
    h.params.entry = KEDGE_ENTRY_NEAREST;
    load_job(&h);
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_LOAD_ROUND);
    ev.round = 1;
    ev.kind = T;
    ev.closed = true;
    ev.models = made;
    ev.model_count = 2;
    host_step(&h, &ev);
    for (uint32_t i = 0; i < 3; i++) { /* site 2 in the open round, the others before */
        ev = event_of(&h, KEDGE_EV_LOAD_GROUP);
        ev.site = i;
        ev.round = i == 2 ? 2 : 1;
        ev.group = i == 2 ? 1 : 0;
        ev.durable = true;
        host_step(&h, &ev);
    }
    ev = event_of(&h, KEDGE_EV_LOAD_ROUND);
    ev.round = 2;
    ev.kind = T;
    host_step(&h, &ev);
    for (uint32_t i = 0; i < 3; i++) {
        ev = event_of(&h, KEDGE_EV_LOAD_ROW);
        ev.site = i;
        ev.round = 2;
        ev.selected = true;
        host_step(&h, &ev);
    }
    ev = event_of(&h, KEDGE_EV_LOAD_ACCEPTED);
    ev.site = 1;
    ev.kind = T;
    ev.round = 2;
    ev.group = 0;
    ev.weight = 1;
    ev.leaf = 7;
    host_step(&h, &ev);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "assign s0");
    assigned(&h, KEDGE_EV_ASSIGNED, 0, 0, KEDGE_OK);
    EXPECT(&h, "");
    host_poll(&h, 0, 100);
    EXPECT(&h, "task q100 s0 train r2 g0 base=20");
    host_poll(&h, 2, 102);
    EXPECT(&h, "task q102 s2 train r2 g1 base=21");
    host_close(&h);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("several");
    tcase_add_test(tc, test_by_tenant);
    tcase_add_test(tc, test_nearest);
    tcase_add_test(tc, test_nearest_restarted);
    Suite *s = suite_create("coordinator/several");
    suite_add_tcase(s, tc);
    return run_suite(s);
}
