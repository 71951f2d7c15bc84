/* Asynchronous jobs: rounds close with `buffer` updates, who is still at work stays at work. The models
 * before rounds 1, 2, 3 … are digests 1, 10, 11 … */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/coordinator/host.h"

static const enum kedge_task_kind T = KEDGE_TASK_TRAIN;
enum { NONE_AT_WORK = 9 };

static void open_job(struct host *h, uint32_t buffer, uint32_t staleness_max, uint32_t sites, uint32_t places)
{
    host_open(h);
    h->params.sites_per_round = places;
    h->params.round_timeout_ns = 1000000 * MS;
    h->params.buffer = buffer;
    h->params.staleness_max = staleness_max;
    h->params.rounds = 4;
    h->params.sites_min = 1;
    host_members(h, 1, sites);
    host_simple(h, KEDGE_EV_START);
    host_submit_job(h);
    host_joined(h, 0);
    host_main(h, KEDGE_OK);
    for (uint32_t i = 0; i < sites; i++) {
        host_poll(h, i, 50 + i);
    }
}

/* What the close needs: computed, then durable; then the next round, durable, too. */
static void close_round(struct host *h, uint32_t round, uint8_t model)
{
    host_computed(h, round, 1, model, KEDGE_OK);
    host_main(h, KEDGE_OK);
    host_main(h, KEDGE_OK);
}

static uint32_t task_of(const struct host *h, uint32_t site)
{
    const struct kedge_coord_row *row = kedge_coord_row(h->c, 0, site);
    return row->selected ? row->task_round : NONE_AT_WORK;
}

/* Round 1 with all three, closed by sites 0 and 1; site 2 goes on with its first task in round 2. */
static void open_second(struct host *h, uint32_t staleness_max)
{
    open_job(h, 2, staleness_max, 3, 0);
    EXPECT(h, "enrolling>training; round-opened r1");
    host_main(h, KEDGE_OK);
    EXPECT(h,
           "task q50 s0 train r1 g0 base=1; task q51 s1 train r1 g0 base=1; task q52 s2 train r1 g0 base=1");
    host_accept(h, 0, T, 1, 0, 1, 60);
    EXPECT(h, "receipt q60 leaf=60");
    host_accept(h, 1, T, 1, 0, 1, 61);
    EXPECT(h, "receipt q61 leaf=61; close r1"); /* the third is not waited for */
    host_submit(h, 2, T, 1, 0, 1, 62);
    EXPECT(h, "away q62 BUSY again");
    host_computed(h, 1, 1, 10, KEDGE_OK);
    EXPECT(h, "round-closed r1");
    host_main(h, KEDGE_OK);
    EXPECT(h, "round-opened r2");
    host_submit(h, 2, T, 1, 0, 1, 63); /* between two rounds */
    EXPECT(h, "away q63 BUSY again");
}

START_TEST(test_late_update_counts)
{
    struct host h;
    open_second(&h, 2);
    ck_assert_uint_eq(task_of(&h, 0), 2);
    ck_assert_uint_eq(task_of(&h, 2), 1);
    host_poll(&h, 0, 70);
    host_poll(&h, 2, 72); /* it crashed and asks again: its own task, with the model of that round */
    host_main(&h, KEDGE_OK);
    EXPECT(&h, "task q72 s2 train r1 g0 base=1; task q70 s0 train r2 g0 base=10");
    host_submit(&h, 2, T, 2, 0, 10, 73); /* not its task */
    EXPECT(&h, "away q73 NOT_SELECTED");
    host_submit(&h, 2, T, 1, 0, 10, 74); /* that of its task is another */
    EXPECT(&h, "away q74 WRONG_BASE");
    host_accept(&h, 2, T, 1, 0, 1, 75);
    EXPECT(&h, "receipt q75 leaf=75");
    ck_assert_int_eq(kedge_coord_may_upload(h.c, 0, 2, 2), KEDGE_E_NOT_SELECTED);
    host_submit(&h, 2, T, 1, 0, 1, 75); /* the receipt was lost */
    EXPECT(&h, "receipt q75 leaf=75");
    host_accept(&h, 0, T, 2, 0, 10, 76);
    EXPECT(&h, "receipt q76 leaf=76; close r2");
    ck_assert_uint_eq(task_of(&h, 1), 2);
    close_round(&h, 2, 11);
    ck_assert_uint_eq(task_of(&h, 0), 3);
    ck_assert_uint_eq(task_of(&h, 1), 2);
    ck_assert_uint_eq(task_of(&h, 2), 3); /* free again, and drawn */
    host_submit(&h, 2, T, 1, 0, 1, 77);   /* the host knows whether this one is in the ledger */
    EXPECT(&h, "closed q77 r1");
    host_close(&h);
}
END_TEST

/* With a bound of 1 the task of round 1 counts in round 2 and no longer. */
START_TEST(test_too_stale)
{
    struct host h;
    open_second(&h, 1);
    host_main(&h, KEDGE_OK);
    ck_assert(kedge_coord_may_read(h.c, 0, 2, &(struct kedge_digest){{0}}) == false);
    struct kedge_digest first = digest_of(1), second = digest_of(10);
    ck_assert(kedge_coord_may_read(h.c, 0, 2, &first) && kedge_coord_may_read(h.c, 0, 0, &second));
    ck_assert_int_eq(kedge_coord_may_upload(h.c, 0, 2, 1), KEDGE_OK);
    host_accept(&h, 0, T, 2, 0, 10, 64);
    host_accept(&h, 1, T, 2, 0, 10, 65);
    EXPECT(&h, "receipt q65 leaf=65; close r2");
    ck_assert_int_eq(kedge_coord_may_upload(h.c, 0, 2, 1), KEDGE_E_BUSY);
    close_round(&h, 2, 11);
    ck_assert_uint_eq(task_of(&h, 2), 3);
    host_submit(&h, 2, T, 1, 0, 1, 66);
    EXPECT(&h, "closed q66 r1");
    ck_assert_int_eq(kedge_coord_may_upload(h.c, 0, 2, 1), KEDGE_E_ROUND_CLOSED);
    host_close(&h);
}
END_TEST

/* A round takes no more than the buffer holds: what is under way counts, until it fails. */
START_TEST(test_full)
{
    struct host h;
    open_job(&h, 1, 3, 3, 0);
    host_main(&h, KEDGE_OK);
    host_submit(&h, 1, T, 1, 0, 1, 60);
    EXPECT(&h, "verify s1 train t60");
    host_submit(&h, 0, T, 1, 0, 1, 61);
    EXPECT(&h, "away q61 BUSY again");
    host_verified(&h, 1, T, 60, KEDGE_E_BOUND);
    EXPECT(&h, "away q60 BOUND");
    host_accept(&h, 0, T, 1, 0, 1, 62);
    EXPECT(&h, "receipt q62 leaf=62; close r1");
    host_submit(&h, 2, T, 1, 0, 1, 63);
    EXPECT(&h, "away q63 BUSY again");
    host_submit(&h, 0, T, 1, 0, 1, 62);
    EXPECT(&h, "away q62 BUSY again"); /* the receipt was lost; the host finds the leaf after the close */
    host_close(&h);
}
END_TEST

START_TEST(test_draws)
{
    ck_assert_uint_eq(kedge_coord_draws(2, 1, 5), 1);
    ck_assert_uint_eq(kedge_coord_draws(2, 2, 5), 0);
    ck_assert_uint_eq(kedge_coord_draws(2, 3, 5), 0);
    ck_assert_uint_eq(kedge_coord_draws(4, 1, 2), 2);
    ck_assert_uint_eq(kedge_coord_draws(0, 3, 5), 5);
}
END_TEST

static void count_at_work(const struct host *h, uint32_t *ret_at_work, uint32_t *ret_away)
{
    *ret_at_work = *ret_away = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const struct kedge_coord_row *row = kedge_coord_row(h->c, 0, i);
        *ret_at_work += row->selected;
        *ret_away += row->away;
    }
}

/* Two places; who is not heard of as a round opens holds none, and its update counts all the same. */
START_TEST(test_away)
{
    struct host h;
    uint32_t at_work, away, first = 0, other = 0;
    open_job(&h, 1, 3, 4, 2);
    host_main(&h, KEDGE_OK);
    while (task_of(&h, first) == NONE_AT_WORK) {
        first++;
    }
    for (other = first + 1; task_of(&h, other) == NONE_AT_WORK;) {
        other++;
    }
    h.now += 21000 * MS; /* all are gone; they come back, but for `other` */
    for (uint32_t i = 0; i < 4; i++) {
        if (i != other) {
            host_poll(&h, i, 60 + i);
        }
    }
    host_accept(&h, first, T, 1, 0, 1, 70);
    close_round(&h, 1, 10);
    count_at_work(&h, &at_work, &away);
    ck_assert_uint_eq(at_work, 3); /* two have places */
    ck_assert_uint_eq(away, 1);
    ck_assert(kedge_coord_row(h.c, 0, other)->away);
    host_accept(&h, other, T, 1, 0, 1, 71);
    EXPECT(&h, "receipt q71 leaf=71; close r2");
    host_close(&h);
}
END_TEST

static void load_job(struct host *h)
{
    struct kedge_digest initial = digest_of(1);
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_JOB);
    ev.params = &h->params;
    ev.models = &initial;
    ev.model_count = 1;
    ev.state = KEDGE_JOB_TRAINING;
    host_step(h, &ev);
    host_joined(h, 0);
}

static void load_round(struct host *h, uint32_t round, uint8_t model)
{
    struct kedge_digest made = digest_of(model);
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_ROUND);
    ev.round = round;
    ev.kind = T;
    ev.closed = model != 0;
    ev.models = &made;
    ev.model_count = 1;
    host_step(h, &ev);
}

static void load_row(struct host *h, uint32_t site, uint32_t task_round)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_ROW);
    ev.site = site;
    ev.selected = true;
    ev.round = task_round;
    host_step(h, &ev);
}

static void restart_job(struct host *h)
{
    host_open(h);
    h->params.buffer = 2;
    h->params.staleness_max = 1;
    h->params.rounds = 4;
    h->params.sites_min = 1;
    host_members(h, 1, 3);
    load_job(h);
    load_round(h, 1, 10);
    load_round(h, 2, 11);
}

/* Rounds 1 and 2 are closed, 3 is open: site 0 was drawn in it, site 1 is at work since round 2, and site 2's
 * update for round 2 is durable. */
START_TEST(test_restart_in_a_round)
{
    struct host h;
    restart_job(&h);
    load_round(&h, 3, 0);
    load_row(&h, 0, 3);
    load_row(&h, 1, 2);
    load_row(&h, 2, 2);
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_LOAD_ACCEPTED);
    ev.site = 2;
    ev.kind = T;
    ev.round = 2;
    ev.leaf = 80;
    ev.envelope = ev.update = digest_of(80);
    ev.weight = 1;
    host_step(&h, &ev);
    host_simple(&h, KEDGE_EV_START);
    host_poll(&h, 0, 50);
    EXPECT(&h, "task q50 s0 train r3 g0 base=11");
    host_poll(&h, 1, 51);
    EXPECT(&h, "task q51 s1 train r2 g0 base=10");
    host_accept(&h, 1, T, 2, 0, 10, 81);
    EXPECT(&h, "receipt q81 leaf=81; close r3");
    host_close(&h);
}
END_TEST

/* Between two rounds: who is at work since round 2 goes on, for the task of round 1 it is over. */
START_TEST(test_restart_between_rounds)
{
    struct host h;
    restart_job(&h);
    load_row(&h, 0, 1);
    load_row(&h, 1, 2);
    ck_assert_uint_eq(task_of(&h, 0), NONE_AT_WORK);
    ck_assert_uint_eq(task_of(&h, 1), 2);
    host_simple(&h, KEDGE_EV_START);
    host_submit(&h, 1, T, 2, 0, 10, 80);
    EXPECT(&h, "away q80 BUSY again");
    host_poll(&h, 0, 50);
    host_poll(&h, 2, 52);
    EXPECT(&h, "round-opened r3");
    ck_assert_uint_eq(task_of(&h, 0), 3);
    ck_assert_uint_eq(task_of(&h, 1), 2);
    ck_assert_uint_eq(task_of(&h, 2), 3);
    host_main(&h, KEDGE_OK);
    host_submit(&h, 0, T, 1, 0, 1, 81);
    EXPECT(&h, "closed q81 r1");
    host_accept(&h, 1, T, 2, 0, 10, 82);
    EXPECT(&h, "receipt q82 leaf=82");
    host_close(&h);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator buffer");
    TCase *t = tcase_create("buffer");
    tcase_add_test(t, test_late_update_counts);
    tcase_add_test(t, test_too_stale);
    tcase_add_test(t, test_full);
    tcase_add_test(t, test_draws);
    tcase_add_test(t, test_away);
    tcase_add_test(t, test_restart_in_a_round);
    tcase_add_test(t, test_restart_between_rounds);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
