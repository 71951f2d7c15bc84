/* Jobs with a root site: who is selected, when a round opens and closes, and a restart in between. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixtures/run.h"
#include "tests/unit/coordinator/host.h"

static const enum kedge_task_kind T = KEDGE_TASK_TRAIN;

/* The root and the others by the plain rule among themselves; picks and marks say the same. */
START_TEST(test_selection)
{
    enum { MOST = 300 };
    uint32_t scratch[MOST], picks[MOST];
    bool chosen[MOST], others[MOST];
    static const uint32_t counts[] = {2, 3, 7, 64, MOST}, wanted[] = {0, 2, 3, 31, MOST};
    for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
        for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
            for (uint32_t root = 0; root < counts[n]; root += 1 + counts[n] / 5) {
                uint32_t count = counts[n], all = wanted[k] == 0 || wanted[k] >= count, sum = 0;
                kedge_coord_select_root(7, 3, count, root, wanted[k], scratch, chosen);
                kedge_coord_select(7, 3, count - 1, all ? 0 : wanted[k] - 1, scratch, others);
                for (uint32_t i = 0; i < count; i++) {
                    ck_assert_int_eq(chosen[i], i == root || others[i < root ? i : i - 1]);
                    sum += chosen[i];
                }
                ck_assert_uint_eq(sum, all ? count : wanted[k]);
                if (!all) {
                    kedge_coord_pick_root(7, 3, count, root, wanted[k], scratch, picks);
                    for (uint32_t i = 0; i < wanted[k]; i++) {
                        ck_assert(picks[i] < count && chosen[picks[i]]);
                        chosen[picks[i]] = false; /* each once */
                    }
                }
            }
        }
    }
}
END_TEST

static void open_job(struct host *h, const char *root)
{
    host_open(h);
    h->params.has_root = true;
    h->params.root_tenant = 0;
    memcpy(h->params.root_site.s, root, strlen(root) + 1);
    h->params.quorum = 2;
    h->params.sites_per_round = 2;
    host_members(h, 1, 4);
    host_simple(h, KEDGE_EV_START);
    host_submit_job(h);
    host_main(h, KEDGE_OK);
    host_joined(h, 0);
}

/* No matter who else is there: no round without the root, and it is selected in each. */
START_TEST(test_opens)
{
    struct host h;
    open_job(&h, "s3");
    for (uint32_t i = 0; i < 3; i++) {
        host_poll(&h, i, 100 + i);
    }
    h.now += 2000 * MS; /* nobody else is waited for */
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "");
    host_poll(&h, 3, 103);
    EXPECT(&h, "enrolling>training; round-opened r1");
    ck_assert(kedge_coord_row(h.c, 0, 3)->selected);
    uint32_t selected = 0;
    for (uint32_t i = 0; i < 4; i++) {
        selected += kedge_coord_row(h.c, 0, i)->selected;
    }
    ck_assert_uint_eq(selected, 2);
    host_close(&h);

    open_job(&h, "s9"); /* no such site yet */
    for (uint32_t i = 0; i < 4; i++) {
        host_poll(&h, i, 100 + i);
    }
    h.now += 2000 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "");
    host_close(&h);
}
END_TEST

/* The quorum is there, the root is not: at the deadline the job is halted and waits. */
START_TEST(test_closes)
{
    struct host h;
    host_open(&h);
    h.params.has_root = true;
    memcpy(h.params.root_site.s, "s1", 3);
    h.params.quorum = 2;
    host_members(&h, 1, 3);
    host_simple(&h, KEDGE_EV_START);
    host_submit_job(&h);
    host_main(&h, KEDGE_OK);
    host_joined(&h, 0);
    for (uint32_t i = 0; i < 3; i++) {
        host_poll(&h, i, 100 + i);
    }
    host_main(&h, KEDGE_OK);
    host_accept(&h, 0, T, 1, 0, 1, 10);
    host_accept(&h, 2, T, 1, 0, 1, 12);
    EXPECT(&h, "receipt q12 leaf=12");
    host_submit(&h, 1, T, 1, 0, 9, 11); /* from another base: refused, all are settled now */
    EXPECT(&h, "away q11 WRONG_BASE");
    h.now += 10000 * MS;
    host_simple(&h, KEDGE_EV_TIMER);
    EXPECT(&h, "training>halted TIMEOUT");
    host_accept(&h, 1, T, 1, 0, 1, 13);
    EXPECT(&h, "receipt q13 leaf=13; halted>training; close r1");
    host_close(&h);
}
END_TEST

static void load(struct host *h, enum kedge_coord_event_type type, uint32_t site, uint8_t number)
{
    struct kedge_digest initial = digest_of(1);
    struct kedge_coord_event ev = event_of(h, type);
    ev.params = &h->params;
    ev.models = &initial;
    ev.model_count = 1;
    ev.state = KEDGE_JOB_TRAINING;
    ev.round = 1;
    ev.group = 0;
    ev.site = site;
    ev.selected = true;
    ev.kind = T;
    ev.leaf = number;
    ev.envelope = ev.update = digest_of(number);
    ev.weight = 1;
    host_step(h, &ev);
}

/* Killed with the quorum but without the root: the round goes on waiting for it. */
START_TEST(test_restarted)
{
    for (uint32_t has = 0; has < 2; has++) {
        struct host h;
        host_open(&h);
        h.params.has_root = true;
        memcpy(h.params.root_site.s, "s1", 3);
        h.params.quorum = 2;
        host_members(&h, 1, 3);
        load(&h, KEDGE_EV_LOAD_JOB, KEDGE_COORD_NONE, 0);
        host_joined(&h, 0);
        load(&h, KEDGE_EV_LOAD_ROUND, KEDGE_COORD_NONE, 0);
        for (uint32_t i = 0; i < 3; i++) {
            load(&h, KEDGE_EV_LOAD_ROW, i, 0);
        }
        load(&h, KEDGE_EV_LOAD_ACCEPTED, 0, 10);
        load(&h, KEDGE_EV_LOAD_ACCEPTED, has ? 1 : 2, 12);
        host_simple(&h, KEDGE_EV_START);
        EXPECT(&h, "");
        h.now += 10000 * MS;
        host_simple(&h, KEDGE_EV_TIMER);
        EXPECT(&h, has ? "close r1" : "training>halted TIMEOUT");
        host_close(&h);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator-root");
    TCase *t = tcase_create("root");
    tcase_add_test(t, test_selection);
    tcase_add_test(t, test_opens);
    tcase_add_test(t, test_closes);
    tcase_add_test(t, test_restarted);
    suite_add_tcase(s, t);
    return run_suite(s);
}
