/* Jobs that need something of their sites: who is asked, what a round waits for, and what a change of labels
 * means while a job runs. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixtures/run.h"
#include "tests/unit/coordinator/host.h"

static const enum kedge_task_kind T = KEDGE_TASK_TRAIN;

static void label(struct host *h, uint32_t site, uint32_t count, uint64_t first)
{
    struct kedge_coord_label labels[KEDGE_LABEL_COUNT_MAX];
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_SITE_LABELS);
    for (uint32_t i = 0; i < count; i++) {
        labels[i] = (struct kedge_coord_label){.low = first + i};
    }
    ev.site = site;
    ev.label_count = count;
    ev.labels = labels;
    host_step(h, &ev);
}

static void after(struct host *h, uint32_t seconds)
{
    h->now += seconds * 1000 * MS;
    host_simple(h, KEDGE_EV_TIMER);
}

static uint32_t candidates(const struct host *h, uint32_t sites)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sites; i++) {
        count += kedge_coord_row(h->c, 0, i)->candidate;
    }
    return count;
}

/* Four sites of one tenant; the job needs labels 11 and 12, of which the second site has so many. */
static void begin(struct host *h, uint32_t sites_min, uint32_t of_second)
{
    host_open(h);
    h->params.sites_min = sites_min;
    h->params.round_timeout_ns = 3600000 * MS;
    h->params.evaluate_every = 1;
    h->params.need_count = 2;
    h->params.needs[0].low = 11;
    h->params.needs[1].low = 12;
    host_members(h, 1, 4);
    label(h, 0, 3, 10);
    label(h, 1, of_second, 11);
    label(h, 2, 2, 12);
    host_simple(h, KEDGE_EV_START);
    host_submit_job(h);
    host_main(h, KEDGE_OK);
    host_joined(h, 0);
    for (uint32_t i = 0; i < 4; i++) {
        host_poll(h, i, 100 + i);
    }
}

START_TEST(only_those_that_fit_are_asked)
{
    struct host h;
    struct kedge_coord_job_view view;
    begin(&h, 1, 1);
    host_main(&h, KEDGE_OK);
    ck_assert(kedge_coord_row(h.c, 0, 0)->candidate && kedge_coord_row(h.c, 0, 0)->selected);
    ck_assert_uint_eq(candidates(&h, 4), 1);
    ck_assert(kedge_coord_job(h.c, 0, &view) && view.selected_count == 1);
    ck_assert_uint_eq(view.online_count, 1);
    ck_assert_uint_eq(view.fitting_count, 1);
    host_accept(&h, 0, T, 1, 0, 1, 7);
    ck_assert(strstr(h.text, "close") != NULL); /* the round waits for nobody else */
    host_close(&h);
}
END_TEST

/* Too few that fit: no round opens, however many others are there; one that gets what it lacked is one of
 * them at once. */
START_TEST(labels_come)
{
    struct host h;
    struct kedge_coord_job_view view;
    begin(&h, 2, 1);
    after(&h, 2);
    ck_assert(kedge_coord_job(h.c, 0, &view) && view.state == KEDGE_JOB_ENROLLING && view.online_count == 1);
    label(&h, 1, 2, 11);
    after(&h, 1);
    host_main(&h, KEDGE_OK);
    ck_assert(kedge_coord_job(h.c, 0, &view) && view.state == KEDGE_JOB_TRAINING);
    ck_assert_uint_eq(view.selected_count, 2);
    ck_assert(kedge_coord_row(h.c, 0, 0)->selected && kedge_coord_row(h.c, 0, 1)->selected);
    host_close(&h);
}
END_TEST

/* A site that lacks something now goes on with the task that it has, and gets no other; nor is it waited for
 * after the last round, when all sites evaluate. */
START_TEST(labels_go)
{
    struct host h;
    struct kedge_coord_job_view view;
    begin(&h, 1, 2);
    after(&h, 1);
    host_main(&h, KEDGE_OK);
    label(&h, 1, 0, 0);
    host_poll(&h, 1, 201);
    ck_assert_msg(strstr(h.text, "train") != NULL, "%s", h.text);
    host_accept(&h, 0, T, 1, 0, 1, 7);
    host_accept(&h, 1, T, 1, 0, 1, 8);
    host_computed(&h, 1, 1, 30, KEDGE_OK);
    host_main(&h, KEDGE_OK);
    after(&h, 1);
    host_main(&h, KEDGE_OK);
    ck_assert(kedge_coord_job(h.c, 0, &view) && view.round == 2);
    ck_assert_uint_eq(candidates(&h, 4), 1);
    host_poll(&h, 1, 202);
    ck_assert_str_eq(h.text, ""); /* parked: neither a task nor an evaluation */
    host_close(&h);
}
END_TEST

/* Labels whose numbers are the same in one half are still two: both are known, and neither stands for the
 * other. */
START_TEST(one_half_is_no_label)
{
    static const struct kedge_coord_label almost[] = {{0, 11}, {0, 13}, {1, 12}, {12, 0}};
    struct host h;
    begin(&h, 1, 1);
    struct kedge_coord_event ev = event_of(&h, KEDGE_EV_SITE_LABELS);
    ev.site = 1;
    ev.label_count = sizeof almost / sizeof almost[0];
    ev.labels = almost;
    host_step(&h, &ev);
    after(&h, 1);
    host_main(&h, KEDGE_OK);
    ck_assert_uint_eq(candidates(&h, 4), 1);
    ck_assert(kedge_coord_row(h.c, 0, 0)->candidate);
    host_close(&h);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator-needs");
    TCase *t = tcase_create("needs");
    tcase_add_test(t, only_those_that_fit_are_asked);
    tcase_add_test(t, labels_come);
    tcase_add_test(t, labels_go);
    tcase_add_test(t, one_half_is_no_label);
    suite_add_tcase(s, t);
    return run_suite(s);
}
