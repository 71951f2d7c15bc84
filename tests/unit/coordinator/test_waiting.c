/* The table of jobs that wait, over tenants and jobs of the test's: its bounds, its order, what is told of
 * it. */
#include "coordinator/daemon/waiting.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "coordinator/daemon/host.h"
#include "tests/fixtures/run.h"

enum { TENANTS = 4, FLOOD = 0, OTHER = 1, THIRD = 2, NOBODY = 3 };

static struct kedge_host *host;
static struct kedge_job_spec *spec;

/* ---- what the table asks of others ---- */

uint32_t kedge_host_tenant_find(const struct kedge_host *h, const struct kedge_id *id)
{
    (void)h;
    const uint32_t tenant = (uint32_t)(id->s[0] - 'a');
    return tenant < TENANTS ? tenant : KEDGE_COORD_NONE;
}

bool kedge_host_job_has_ended(const struct kedge_job *job)
{
    return job->state == KEDGE_JOB_COMPLETED;
}

/* ---- helpers ---- */

static void set_up(void)
{
    host = kedge_mem_new(1, sizeof *host);
    spec = kedge_mem_new(1, sizeof *spec);
    ck_assert(host && spec);
    host->jobs = kedge_mem_new(KEDGE_JOBS_MAX, sizeof *host->jobs);
    ck_assert_ptr_nonnull(host->jobs);
}

static void tear_down(void)
{
    kedge_waiting_free(host);
    kedge_mem_free(host->jobs);
    kedge_mem_free(host);
    kedge_mem_free(spec);
}

static void name_spec(uint32_t number, uint32_t tenant)
{
    snprintf(spec->name.s, sizeof spec->name.s, "job-%u", (unsigned)number);
    snprintf(spec->tenants[0].s, sizeof spec->tenants[0].s, "%c", (char)('a' + tenant));
    spec->tenant_count = 1;
    spec->enrol_within_s = 60;
}

/* NULL: there is no room. */
static struct kedge_waiting_job *add(uint32_t number, uint32_t tenant, uint64_t created_ms)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_waiting_job *w = NULL;
    name_spec(number, tenant);
    int err = kedge_waiting_room(host, spec, &d);
    if (err) {
        ck_assert_int_eq(err, KEDGE_E_FULL);
        ck_assert_ptr_nonnull(strstr(d.text, "wait for a place"));
        return NULL;
    }
    ck_assert_int_eq(kedge_waiting_add(host, spec, created_ms, &w), KEDGE_OK);
    return w;
}

static uint32_t fill(uint32_t tenant, uint32_t from)
{
    uint32_t n = from;
    while (add(n, tenant, n)) {
        n++;
    }
    return n - from;
}

/* ---- tests ---- */

/* One tenant alone has half of the line; what is left is shared by those who come, and is never gone for one
 * that has none. A place that is free again is taken again. */
START_TEST(bounds)
{
    const uint32_t most = KEDGE_JOBS_WAITING_MAX, half = most / 2;
    set_up();
    ck_assert_uint_eq(fill(FLOOD, 0), half);
    ck_assert_uint_eq(fill(OTHER, half), half / 2);
    ck_assert_uint_eq(fill(THIRD, half + half / 2), half / 4);
    ck_assert_ptr_null(add(most, FLOOD, most));
    struct kedge_waiting_job *w = add(most, NOBODY, most);
    ck_assert_ptr_nonnull(w);
    ck_assert_uint_eq(host->waiting.count, half + half / 2 + half / 4 + 1);
    while (host->waiting.tenant_counts[FLOOD] > 0) {
        kedge_waiting_remove(host, host->waiting.jobs[0]);
    }
    ck_assert_ptr_nonnull(add(most + 1, FLOOD, most + 1));
    name_spec(1, TENANTS);
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_waiting_room(host, spec, &d), KEDGE_E_NOT_FOUND);
    tear_down();
}
END_TEST

/* In the order of time, then of names, however they come; found by name; gone when removed. */
START_TEST(rows)
{
    set_up();
    struct kedge_waiting_job *late = add(1, OTHER, 30), *early = add(3, OTHER, 10), *same = add(2, OTHER, 10);
    ck_assert(host->waiting.jobs[0] == same && host->waiting.jobs[1] == early
              && host->waiting.jobs[2] == late);
    ck_assert_uint_eq(same->until_ms, 10 + 60000);
    ck_assert_uint_eq(host->waiting.until_ms, 10 + 60000);
    ck_assert(kedge_waiting_find(host, &early->name) == early);
    ck_assert(kedge_waiting_names(early, OTHER) && !kedge_waiting_names(early, FLOOD));
    const struct kedge_id gone = early->name;
    kedge_waiting_remove(host, early);
    ck_assert_ptr_null(kedge_waiting_find(host, &gone));
    ck_assert_uint_eq(host->waiting.count, 2);
    ck_assert_uint_eq(host->waiting.tenant_counts[OTHER], 2);
    tear_down();
}
END_TEST

static uint32_t position_of(struct kedge_waiting_job *w, uint32_t tenant, uint32_t *ret_count)
{
    struct kedge_waiting_view view;
    kedge_waiting_view(host, w, tenant, &view);
    *ret_count = view.count;
    return view.position;
}

/* Places that tenants' jobs have count, those of jobs that ended do not; a tenant's own line has its own jobs
 * alone; what is coming is in no line, what is held is the last in it. */
START_TEST(line)
{
    uint32_t count;
    set_up();
    struct kedge_waiting_job *flood[3], *other = NULL;
    for (uint32_t i = 0; i < 3; i++) {
        flood[i] = add(i, FLOOD, i);
        host->jobs[i] =
            (struct kedge_job){.used = true, .state = KEDGE_JOB_TRAINING, .params = {.tenant_count = 1}};
        host->jobs[i].params.tenants[0] = FLOOD;
    }
    other = add(3, OTHER, 3);
    ck_assert(kedge_waiting_next(host) == other);
    ck_assert_uint_eq(position_of(flood[1], KEDGE_COORD_NONE, &count), 3);
    ck_assert_uint_eq(count, 4);
    ck_assert_uint_eq(position_of(flood[1], FLOOD, &count), 2);
    ck_assert_uint_eq(count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        host->jobs[i].state = KEDGE_JOB_COMPLETED;
    }
    ck_assert(kedge_waiting_next(host) == flood[0]);
    kedge_waiting_set(host, flood[0], &host->jobs[0], false);
    kedge_waiting_set(host, flood[1], NULL, true);
    ck_assert_uint_eq(host->waiting.ready, 2);
    ck_assert_uint_eq(position_of(flood[0], KEDGE_COORD_NONE, &count), 0);
    ck_assert_uint_eq(position_of(flood[1], KEDGE_COORD_NONE, &count), 3);
    ck_assert_uint_eq(count, 3);
    kedge_waiting_set(host, flood[2], NULL, true);
    kedge_waiting_remove(host, other);
    ck_assert_ptr_null(kedge_waiting_next(host));
    ck_assert_uint_eq(host->waiting.ready, 0);
    tear_down();
}
END_TEST

/* Lists tell the same positions, of all and of one tenant. */
START_TEST(views)
{
    set_up();
    for (uint32_t i = 0; i < 100; i++) {
        ck_assert_ptr_nonnull(add(i, i % 7 < 4 ? FLOOD : OTHER, 1000 - i % 13));
    }
    for (uint32_t round = 0; round < 2; round++) {
        const uint32_t tenant = round == 0 ? KEDGE_COORD_NONE : OTHER;
        struct kedge_waiting_view *all;
        uint32_t count, told;
        ck_assert_int_eq(kedge_waiting_views(host, tenant, &all, &count), KEDGE_OK);
        ck_assert_uint_eq(count, round == 0 ? 100 : host->waiting.tenant_counts[OTHER]);
        kedge_waiting_views_sort(all, count);
        for (uint32_t i = 0; i < host->waiting.count; i++) {
            struct kedge_waiting_job *w = host->waiting.jobs[i];
            const struct kedge_waiting_view *view = kedge_waiting_view_find(all, count, &w->name);
            ck_assert(!view == (round == 1 && !kedge_waiting_names(w, OTHER)));
            ck_assert(!view || (view->position == position_of(w, tenant, &told) && view->count == told));
        }
        kedge_mem_free(all);
    }
    tear_down();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("waiting");
    tcase_add_test(c, bounds);
    tcase_add_test(c, rows);
    tcase_add_test(c, line);
    tcase_add_test(c, views);
    Suite *s = suite_create("coordinator/waiting");
    suite_add_tcase(s, c);
    return run_suite(s);
}
