/* Groups that change: migration, moves and new groups by a close; restarts in between. */
#include <check.h>
#include <string.h>

#include "tests/fixtures/run.h"
#include "tests/unit/coordinator/host_groups.h"

static const enum kedge_task_kind P = KEDGE_TASK_PRETRAIN, T = KEDGE_TASK_TRAIN;
enum { SITES = HOST_GROUP_SITES, NONE = HOST_GROUP_NONE };

/* Round 0 is closed with models 20 and 21; sites 0 and 2 are in group 0, site 1 in group 1; nothing is open.
 */
static void open_warm(struct host *h)
{
    h->params.groups = 2;
    h->params.rounds = 4;
    host_load_job(h, 1);
    host_load_closed(h, 0, P, 2, false);
    host_load_group(h, 0, 0, 0, true);
    host_load_group(h, 1, 0, 1, true);
    host_load_group(h, 2, 0, 0, true);
    host_simple(h, KEDGE_EV_START);
}

START_TEST(test_migration)
{
    struct host h;
    host_open(&h);
    h.params.migrate_every = 1;
    open_warm(&h);
    host_poll(&h, 0, 100);
    host_poll(&h, 1, 101);
    host_poll_shifted(&h, 2, 102);
    EXPECT(&h, "round-opened r1");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q100 s0 train r1 g0 base=20; task q101 s1 train r1 g1 base=21; "
               "task q102 s2 pretrain r1 cold base=1");
    host_accept(&h, 2, P, 1, KEDGE_COORD_NONE, 1, 10);
    EXPECT(&h, "receipt q10 leaf=10; assign s2");
    host_submit(&h, 2, T, 1, 0, 20, 11); /* it moves first */
    EXPECT(&h, "away q11 BUSY again");
    host_assigned(&h, 2, 1, KEDGE_OK);
    EXPECT(&h, "append-assigned s2 g1");
    host_poll(&h, 2, 103);
    EXPECT(&h, "");
    ck_assert(!host_may_read(&h, 2, 20) && !host_may_read(&h, 2, 21));
    host_stated(&h, 2, KEDGE_OK);
    EXPECT(&h, "task q103 s2 train r1 g1 base=21");
    ck_assert(!host_may_read(&h, 2, 20) && host_may_read(&h, 2, 21));
    host_submit(&h, 2, T, 1, 0, 20, 12);
    EXPECT(&h, "away q12 WRONG_GROUP");
    host_accept(&h, 2, T, 1, 1, 21, 13);
    EXPECT(&h, "receipt q13 leaf=13");
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 2)->train.group, 1);
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 2)->pretrain.group, 1);
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 2)->group_round, 1);
    host_poll_shifted(&h, 2, 104); /* once in a round */
    EXPECT(&h, "");
    host_close(&h);
}
END_TEST

/* Behind its deadline a round waits for what is in flight, not for as long as sites send. */
START_TEST(test_migration_too_late)
{
    struct host h;
    host_open(&h);
    h.params.migrate_every = 1;
    h.params.quorum = 1;
    open_warm(&h);
    host_poll(&h, 0, 100);
    host_poll(&h, 1, 101);
    host_poll_shifted(&h, 2, 102);
    host_main(&h, KEDGE_OK);
    host_accept(&h, 0, T, 1, 0, 20, 10);
    host_submit(&h, 1, T, 1, 1, 21, 11);
    h.now += h.params.round_timeout_ns;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "");
    host_submit(&h, 2, P, 1, KEDGE_COORD_NONE, 1, 12);
    EXPECT(&h, "away q12 BUSY again");
    host_verified(&h, 1, T, 11, KEDGE_E_BOUND);
    EXPECT(&h, "away q11 BOUND; close r1");
    host_close(&h);
}
END_TEST

/* Who has trained in a round moves in the next one, before it trains there: the close does not wait for it,
 * and it makes no difference who was quicker. */
START_TEST(test_migration_after_training)
{
    struct host h;
    host_open(&h);
    h.params.migrate_every = 1;
    open_warm(&h);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
    }
    host_main(&h, KEDGE_OK);
    host_submit(&h, 0, T, 1, 0, 20, 10);
    host_submit(&h, 0, P, 1, KEDGE_COORD_NONE, 1, 11);
    EXPECT(&h, "away q11 BUSY again"); /* its training is in flight */
    host_verified(&h, 0, T, 10, KEDGE_OK);
    host_appended(&h, 0, T, 10, 10, KEDGE_OK);
    host_poll_shifted(&h, 0, 103);
    EXPECT(&h, "");
    host_submit(&h, 0, P, 1, KEDGE_COORD_NONE, 1, 12);
    EXPECT(&h, "away q12 ARG");
    host_accept(&h, 1, T, 1, 1, 21, 13);
    host_accept(&h, 2, T, 1, 0, 20, 14);
    EXPECT(&h, "receipt q14 leaf=14; close r1");
    host_closes(&h, 1, 2, 30, (int[]){NONE, NONE, NONE}, false);
    host_main(&h, KEDGE_OK);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q103 s0 pretrain r2 cold base=1");
    host_accept(&h, 0, P, 2, KEDGE_COORD_NONE, 1, 15);
    host_assigned(&h, 0, 1, KEDGE_OK);
    host_poll(&h, 0, 104);
    host_stated(&h, 0, KEDGE_OK);
    EXPECT(&h, "task q104 s0 train r2 g1 base=31");
    host_close(&h);
}
END_TEST

/* A heartbeat goes out beside the pre-training that answers it: it is not heard. */
START_TEST(test_migration_heartbeat)
{
    struct host h;
    host_open(&h);
    h.params.migrate_every = 1;
    open_warm(&h);
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_POLL);
    ev.request = 99;
    ev.busy = true;
    ev.shifted = 1;
    host_step(&h, &ev);
    ck_assert(!kedge_coord_row(h.c, 0, 0)->shifted);
    host_poll_shifted(&h, 0, 100);
    ck_assert(kedge_coord_row(h.c, 0, 0)->shifted);
    host_close(&h);
}
END_TEST

/* Who may not migrate is not heard: the job does not know of it, the pause is not over, or its pretraining
 * fits nowhere. */
START_TEST(test_migration_refused)
{
    static const struct {
        uint32_t every;
        const char *task, *answer;
    } cases[] = {
        {0, "task q100 s0 train r1 g0 base=20", "away q10 ARG"},
        {2, "task q100 s0 train r1 g0 base=20", "away q10 ARG"},
        {1, "task q100 s0 pretrain r1 cold base=1", "verify s0 pretrain t10"},
    };
    struct host h;
    host_open(&h);
    h.params.migrate_every = cases[_i].every;
    open_warm(&h);
    host_poll_shifted(&h, 0, 100);
    EXPECT(&h, "");
    host_poll(&h, 1, 101);
    host_poll(&h, 2, 102);
    host_main(&h, KEDGE_OK);
    ck_assert_msg(strncmp(h.text, cases[_i].task, strlen(cases[_i].task)) == 0, "%s", h.text);
    host_submit(&h, 0, P, 1, KEDGE_COORD_NONE, 1, 10);
    EXPECT(&h, cases[_i].answer);
    if (cases[_i].every == 1) {
        host_verified(&h, 0, P, 10, KEDGE_OK);
        host_appended(&h, 0, P, 10, 3, KEDGE_OK);
        host_poll(&h, 0, 103);
        host_assigned(&h, 0, 0, KEDGE_E_ARG);
        EXPECT(&h, "task q103 s0 train r1 g0 base=20"); /* it stays, and it counts */
    }
    host_close(&h);
}
END_TEST

/* A site that is not selected migrates, too; the round does not wait for it, and a restart goes on where it
 * was.
 */
START_TEST(test_migration_restarted)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.rounds = 4;
    h.params.migrate_every = 1;
    host_load_job(&h, 1);
    host_load_closed(&h, 0, P, 2, false);
    for (uint32_t i = 0; i < SITES; i++) {
        host_load_group(&h, i, 0, 0, true);
    }
    host_load_open(&h, 1, T);
    host_load_accepted(&h, 2, P, KEDGE_COORD_NONE, 7);
    host_load_accepted(&h, 0, T, 0, 8);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "assign s2");
    host_accept(&h, 1, T, 1, 0, 20, 9);
    EXPECT(&h, "receipt q9 leaf=9");
    host_assigned(&h, 2, 1, KEDGE_OK);
    host_stated(&h, 2, KEDGE_E_DISK_FULL);
    EXPECT(&h, "training>halted DISK_FULL");
    h.now += 1000 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "append-assigned s2 g1");
    host_stated(&h, 2, KEDGE_OK);
    EXPECT(&h, "halted>training; close r1");
    host_close(&h);
}
END_TEST

/* The statement was durable, its report was lost: nothing is asked for again, and the group is that of the
 * statement. */
START_TEST(test_migration_stated)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.rounds = 4;
    h.params.migrate_every = 1;
    host_load_job(&h, 1);
    host_load_closed(&h, 0, P, 2, false);
    for (uint32_t i = 0; i < SITES; i++) {
        host_load_group(&h, i, 0, 0, true);
    }
    host_load_open(&h, 1, T);
    host_load_group(&h, 0, 1, 1, true);
    host_load_accepted(&h, 0, P, KEDGE_COORD_NONE, 7);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "");
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 0)->pretrain.group, 1);
    host_poll_shifted(&h, 0, 100);
    EXPECT(&h, "task q100 s0 train r1 g1 base=21");
    host_close(&h);
}
END_TEST

/* What a close gave is void for who moved since. */
START_TEST(test_migration_since)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.rounds = 4;
    h.params.migrate_every = 1;
    host_load_job(&h, 1);
    host_load_closed(&h, 1, P, 2, false);
    for (uint32_t i = 0; i < SITES; i++) {
        host_load_group(&h, i, 1, 0, true);
    }
    host_load_open(&h, 2, T);
    host_load_group(&h, 0, 2, 1, true);
    host_load_group(&h, 0, 1, 0, false);
    host_load_accepted(&h, 0, P, KEDGE_COORD_NONE, 7);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "");
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 0)->group, 1);
    ck_assert(kedge_coord_row(h.c, 0, 0)->group_durable);
    host_close(&h);
}
END_TEST

/* A close merges two groups: nothing of it holds before it is durable, the next round waits for the
 * statement, and numbers mean others from then on. */
START_TEST(test_moves)
{
    struct host h;
    host_open(&h);
    open_warm(&h);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
    }
    host_main(&h, KEDGE_OK);
    host_train_all(&h, 1, (uint32_t[]){0, 1, 0}, (uint8_t[]){20, 21, 20}, 10);
    EXPECT(&h, "receipt q12 leaf=12; close r1");
    host_closes(&h, 1, 1, 30, (int[]){NONE, 0, NONE}, false);
    EXPECT(&h, "round-closed r1");
    ck_assert(!host_may_read(&h, 1, 30) && host_may_read(&h, 1, 21));
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "append-assigned s1 g0");
    ck_assert(!host_may_read(&h, 1, 30) && host_may_read(&h, 1, 21) && !host_may_read(&h, 1, 20));
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 110 + i);
        EXPECT(&h, "");
    }
    host_stated(&h, 1, KEDGE_OK);
    EXPECT(&h, "round-opened r2");
    ck_assert(host_may_read(&h, 1, 30) && host_may_read(&h, 1, 21) && !host_may_read(&h, 1, 20));
    ck_assert(host_may_read(&h, 0, 20) && !host_may_read(&h, 0, 21));
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q111 s1 train r2 g0 base=30; task q110 s0 train r2 g0 base=30; "
               "task q112 s2 train r2 g0 base=30");
    host_train_all(&h, 2, (uint32_t[]){0, 0, 0}, (uint8_t[]){30, 30, 30}, 20);
    host_closes(&h, 2, 2, 40, (int[]){NONE, 1, 0},
                false); /* and split again; one that stays is stated, too */
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "append-assigned s1 g1; append-assigned s2 g0");
    ck_assert(host_may_read(&h, 1, 30) && !host_may_read(&h, 1, 40));
    host_close(&h);
}
END_TEST

/* Killed between the close and the statements: they come before anything else; also behind the last round. */
START_TEST(test_moves_restarted)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.rounds = _i == 0 ? 2 : 1;
    host_load_job(&h, 1);
    host_load_closed(&h, 1, T, 2, false);
    for (uint32_t i = 0; i < SITES; i++) {
        host_load_group(&h, i, 0, 0, true);
    }
    host_load_group(&h, 0, 1, 1, true); /* this one was stated */
    host_load_group(&h, 2, 1, 1, false);
    host_simple(&h, KEDGE_EV_START);
    EXPECT(&h, "append-assigned s2 g1");
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
        EXPECT(&h, "");
    }
    host_stated(&h, 2, KEDGE_OK);
    EXPECT(&h, _i == 0 ? "round-opened r2" : "training>storing; job-closed completed");
    ck_assert_uint_eq(kedge_coord_row(h.c, 0, 2)->group_round, 1);
    host_close(&h);
}
END_TEST

/* A round in which groups are made anew: on the schedule, because a close asked for it, or not at all. */
static const struct {
    uint32_t every, last;
    enum kedge_task_kind kind;
    bool asked;
    enum kedge_task_kind want;
} plans[] = {
    {0, 1, KEDGE_TASK_TRAIN, false, KEDGE_TASK_TRAIN},   {2, 1, KEDGE_TASK_TRAIN, false, KEDGE_TASK_PRETRAIN},
    {3, 1, KEDGE_TASK_TRAIN, false, KEDGE_TASK_TRAIN},   {0, 1, KEDGE_TASK_TRAIN, true, KEDGE_TASK_PRETRAIN},
    {1, 1, KEDGE_TASK_PRETRAIN, true, KEDGE_TASK_TRAIN}, {1, 0, KEDGE_TASK_PRETRAIN, false, KEDGE_TASK_TRAIN},
    {4, 3, KEDGE_TASK_TRAIN, true, KEDGE_TASK_TRAIN}, /* nothing would be trained behind it */
};

START_TEST(test_plan)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.rounds = 4;
    h.params.regroup_every = plans[_i].every;
    ck_assert_int_eq(kedge_coord_round_kind(&h.params, plans[_i].last + 1, plans[_i].kind, plans[_i].asked),
                     plans[_i].want);
    host_load_job(&h, 1);
    host_load_closed(&h, plans[_i].last, plans[_i].kind, 2, plans[_i].asked);
    for (uint32_t i = 0; i < SITES; i++) {
        host_load_group(&h, i, 0, 0, true);
    }
    host_simple(&h, KEDGE_EV_START);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
    }
    struct kedge_coord_job_view view;
    ck_assert(kedge_coord_job(h.c, 0, &view));
    ck_assert_int_eq(view.round_kind, plans[_i].want);
    h.params.groups = 1;
    ck_assert_int_eq(kedge_coord_round_kind(&h.params, 2, T, true), T);
    host_close(&h);
}
END_TEST

/* Two groups are not made anew of one update, whatever the job's quorum: at the deadline they are kept. A
 * second one that is on its way by then is waited for, and is enough. */
START_TEST(test_regroup_of_too_few)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.rounds = 4;
    h.params.quorum = 1;
    h.params.evaluate_every = 0;
    host_load_job(&h, 1);
    host_load_closed(&h, 1, T, 2, true);
    host_load_group(&h, 0, 0, 0, true);
    host_load_group(&h, 1, 0, 1, true);
    host_simple(&h, KEDGE_EV_START);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
    }
    host_main(&h, KEDGE_OK);
    host_accept(&h, 0, P, 2, KEDGE_COORD_NONE, 1, 10);
    if (_i == 1) {
        host_submit(&h, 1, P, 2, KEDGE_COORD_NONE, 1, 11);
        host_verified(&h, 1, P, 11, KEDGE_OK);
    }
    h.now += h.params.round_timeout_ns;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, _i == 0 ? "close r2 keeps" : "");
    if (_i == 1) {
        host_appended(&h, 1, P, 11, 11, KEDGE_OK);
        EXPECT(&h, "receipt q11 leaf=11; close r2");
        host_close(&h);
        return;
    }
    host_submit(&h, 1, P, 2, KEDGE_COORD_NONE, 1, 11);
    EXPECT(&h, "away q11 BUSY again"); /* it is not said yet that it is too late */
    host_closes(&h, 2, 2, 20, (int[]){HOST_GROUP_NONE, HOST_GROUP_NONE, HOST_GROUP_NONE}, false);
    EXPECT(&h, "round-closed r2");
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 110 + i);
    }
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "round-opened r3"); /* nobody is given a group */
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q110 s0 train r3 g0 base=20; task q111 s1 train r3 g1 base=21; "
               "task q112 s2 pretrain r3 cold base=1");
    host_close(&h);
}
END_TEST

/* Warm sites pretrain again, and one that was cold gets its first group; all who have one are stated anew. */
START_TEST(test_regroup)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.rounds = 4;
    h.params.evaluate_every = 0;
    host_load_job(&h, 1);
    host_load_closed(&h, 1, T, 2, true);
    host_load_group(&h, 0, 0, 0, true);
    host_load_group(&h, 1, 0, 1, true);
    host_simple(&h, KEDGE_EV_START);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
    }
    EXPECT(&h, "round-opened r2");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q100 s0 pretrain r2 cold base=1; task q101 s1 pretrain r2 cold base=1; "
               "task q102 s2 pretrain r2 cold base=1");
    host_submit(&h, 0, T, 2, 0, 20, 9);
    EXPECT(&h, "away q9 ARG"); /* nobody trains in it */
    host_accept(&h, 0, P, 2, KEDGE_COORD_NONE, 1, 10);
    host_accept(&h, 2, P, 2, KEDGE_COORD_NONE, 1, 12);
    host_accept(&h, 1, P, 2, KEDGE_COORD_NONE, 1, 11);
    EXPECT(&h, "receipt q11 leaf=11; close r2");
    host_closes(&h, 2, 2, 30, (int[]){1, 1, 0}, true);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "append-assigned s0 g1; append-assigned s1 g1; append-assigned s2 g0");
    ck_assert(host_may_read(&h, 1, 21) && !host_may_read(&h, 1, 31) && !host_may_read(&h, 1, 30));
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 110 + i);
        host_stated(&h, i, KEDGE_OK);
    }
    EXPECT(&h, "round-opened r3");
    host_main(&h, KEDGE_OK); /* and never two of them behind each other */
    EXPECT(&h, "task q110 s0 train r3 g1 base=31; task q111 s1 train r3 g1 base=31; "
               "task q112 s2 train r3 g0 base=30");
    host_close(&h);
}
END_TEST

/* A job that begins in one group has no round 0 and no newcomers. */
START_TEST(test_start_together)
{
    struct host h;
    host_open(&h);
    h.params.groups = 2;
    h.params.entry = KEDGE_ENTRY_TOGETHER;
    host_load_job(&h, 1);
    host_simple(&h, KEDGE_EV_START);
    for (uint32_t i = 0; i < SITES; i++) {
        host_poll(&h, i, 100 + i);
    }
    EXPECT(&h, "round-opened r1");
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q100 s0 train r1 g0 base=1; task q101 s1 train r1 g0 base=1; "
               "task q102 s2 train r1 g0 base=1");
    host_submit(&h, 0, P, 1, KEDGE_COORD_NONE, 1, 9);
    EXPECT(&h, "away q9 ARG");
    host_train_all(&h, 1, (uint32_t[]){0, 0, 0}, (uint8_t[]){1, 1, 1}, 10);
    host_closes(&h, 1, 2, 30, (int[]){NONE, NONE, 1}, false);
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "append-assigned s2 g1");
    host_close(&h);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("groups");
    tcase_add_test(tc, test_migration);
    tcase_add_test(tc, test_migration_too_late);
    tcase_add_test(tc, test_migration_after_training);
    tcase_add_test(tc, test_migration_heartbeat);
    tcase_add_loop_test(tc, test_migration_refused, 0, 3);
    tcase_add_test(tc, test_migration_restarted);
    tcase_add_test(tc, test_migration_stated);
    tcase_add_test(tc, test_migration_since);
    tcase_add_test(tc, test_moves);
    tcase_add_loop_test(tc, test_moves_restarted, 0, 2);
    tcase_add_loop_test(tc, test_plan, 0, (int)(sizeof plans / sizeof plans[0]));
    tcase_add_test(tc, test_regroup);
    tcase_add_loop_test(tc, test_regroup_of_too_few, 0, 2);
    tcase_add_test(tc, test_start_together);
    Suite *s = suite_create("coordinator/groups");
    suite_add_tcase(s, tc);
    return run_suite(s);
}
