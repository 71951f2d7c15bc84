/* The table of jobs that wait. Rows are found by name one after the other: that is done for what operators
 * and admins ask, never for sites. The line is made anew whenever somebody asks for it, from the rows and
 * from who has places now: nothing of it has to be kept right meanwhile. */
#include "coordinator/daemon/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/schedule/line.h"

enum { FIRST_ROWS = 64 };

/* ---- rows ---- */

static int count_tenants(struct kedge_host *h)
{
    if (!h->waiting.tenant_counts) {
        h->waiting.tenant_counts = kedge_mem_new(KEDGE_TENANTS_MAX, sizeof *h->waiting.tenant_counts);
    }
    return h->waiting.tenant_counts ? KEDGE_OK : KEDGE_E_NOMEM;
}

int kedge_waiting_room(struct kedge_host *h, const struct kedge_job_spec *spec, struct kedge_diag *d)
{
    const uint32_t all = h->waiting.count;
    KEDGE_TRY(count_tenants(h));
    if (all >= KEDGE_JOBS_WAITING_MAX) {
        return kedge_diag_set(
            d, KEDGE_E_FULL,
            "%d jobs run and %u wait for a place, no more can be taken; submit it again when "
            "some have ended",
            KEDGE_JOBS_MAX, (unsigned)all);
    }
    for (uint32_t i = 0; i < spec->tenant_count; i++) {
        const uint32_t tenant = kedge_host_tenant_find(h, &spec->tenants[i]);
        if (tenant == KEDGE_COORD_NONE) {
            return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "job spec: \"tenants\": no tenant \"%s\" here",
                                  spec->tenants[i].s);
        }
        if (!kedge_line_has_room(h->waiting.tenant_counts[tenant], all, KEDGE_JOBS_WAITING_MAX)) {
            return kedge_diag_set(
                d, KEDGE_E_FULL,
                "%u jobs of tenant \"%s\" wait for a place, its share of the line; submit it "
                "again when some have begun",
                (unsigned)h->waiting.tenant_counts[tenant], spec->tenants[i].s);
        }
    }
    return KEDGE_OK;
}

static bool is_before(const struct kedge_waiting_job *a, uint64_t created_ms, const struct kedge_id *name)
{
    return a->created_ms != created_ms ? a->created_ms < created_ms : kedge_id_cmp(&a->name, name) < 0;
}

/* A new job is the last one, unless the clock was set back, or a restart reads the records by their names. */
static void insert(struct kedge_waiting *t, struct kedge_waiting_job *w)
{
    uint32_t first = 0, end = t->count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (is_before(t->jobs[middle], w->created_ms, &w->name)) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    memmove(&t->jobs[first + 1], &t->jobs[first], (t->count - first) * sizeof *t->jobs);
    t->jobs[first] = w;
    t->count++;
    t->until_ms = t->count == 1 || w->until_ms < t->until_ms ? w->until_ms : t->until_ms;
}

int kedge_waiting_add(struct kedge_host *h, const struct kedge_job_spec *spec, uint64_t created_ms,
                      struct kedge_waiting_job **ret)
{
    struct kedge_waiting *t = &h->waiting;
    KEDGE_TRY(count_tenants(h));
    struct kedge_waiting_job *w = kedge_mem_new(1, sizeof *w + spec->tenant_count * sizeof w->tenants[0]);
    if (!w || !kedge_mem_grow(&t->jobs, &t->max, t->count, FIRST_ROWS, sizeof *t->jobs)) {
        kedge_mem_free(w);
        return KEDGE_E_NOMEM;
    }
    w->name = spec->name;
    w->created_ms = created_ms;
    w->until_ms = created_ms + (uint64_t)spec->enrol_within_s * 1000;
    for (uint32_t i = 0; i < spec->tenant_count; i++) {
        const uint32_t tenant = kedge_host_tenant_find(h, &spec->tenants[i]);
        if (tenant != KEDGE_COORD_NONE) {
            w->tenants[w->tenant_count++] = tenant;
            t->tenant_counts[tenant]++;
        }
    }
    insert(t, w);
    t->ready++;
    *ret = w;
    return KEDGE_OK;
}

static bool is_ready(const struct kedge_waiting_job *w)
{
    return !w->coming && !w->is_held;
}

void kedge_waiting_set(struct kedge_host *h, struct kedge_waiting_job *w, struct kedge_job *coming,
                       bool is_held)
{
    h->waiting.ready -= is_ready(w);
    w->coming = coming;
    w->is_held = is_held;
    h->waiting.ready += is_ready(w);
    if (is_ready(w) && w->until_ms < h->waiting.until_ms) {
        h->waiting.until_ms = w->until_ms;
    }
}

void kedge_waiting_remove(struct kedge_host *h, struct kedge_waiting_job *w)
{
    struct kedge_waiting *t = &h->waiting;
    uint32_t at = 0;
    while (at < t->count && t->jobs[at] != w) {
        at++;
    }
    KEDGE_ASSERT(at < t->count);
    t->count--;
    t->ready -= is_ready(w);
    memmove(&t->jobs[at], &t->jobs[at + 1], (t->count - at) * sizeof *t->jobs);
    for (uint32_t i = 0; i < w->tenant_count; i++) {
        t->tenant_counts[w->tenants[i]]--;
    }
    kedge_mem_free(w);
}

struct kedge_waiting_job *kedge_waiting_find(const struct kedge_host *h, const struct kedge_id *name)
{
    for (uint32_t i = 0; i < h->waiting.count; i++) {
        if (kedge_id_eq(&h->waiting.jobs[i]->name, name)) {
            return h->waiting.jobs[i];
        }
    }
    return NULL;
}

bool kedge_waiting_names(const struct kedge_waiting_job *w, uint32_t tenant)
{
    bool yes = false;
    for (uint32_t i = 0; i < w->tenant_count && !yes; i++) {
        yes = w->tenants[i] == tenant;
    }
    return yes;
}

void kedge_waiting_free(struct kedge_host *h)
{
    for (uint32_t i = 0; i < h->waiting.count; i++) {
        kedge_mem_free(h->waiting.jobs[i]);
    }
    kedge_mem_free(h->waiting.jobs);
    kedge_mem_free(h->waiting.tenant_counts);
    h->waiting = (struct kedge_waiting){.jobs = NULL};
}

/* ---- the line ---- */

/* How many of each tenant's jobs have a place. */
static void count_places(const struct kedge_host *h, uint32_t *places)
{
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        const struct kedge_job *job = &h->jobs[i];
        for (uint32_t t = 0; job->used && !kedge_host_job_has_ended(job) && t < job->params.tenant_count;
             t++) {
            places[job->params.tenants[t]]++;
        }
    }
}

/* Those in line with their turns, in the order of submission. */
struct line {
    struct kedge_line_job *jobs;
    struct kedge_waiting_job **of; /* which row each is */
    uint32_t count;
};

static void free_line(struct line *l)
{
    kedge_mem_free(l->jobs);
    kedge_mem_free(l->of);
}

static int make_line(const struct kedge_host *h, struct line *ret)
{
    uint32_t *places = kedge_mem_new(KEDGE_TENANTS_MAX, sizeof *places);
    struct line l = {.jobs = kedge_mem_new(h->waiting.count + 1, sizeof *l.jobs),
                     .of = kedge_mem_new(h->waiting.count + 1, sizeof *l.of)};
    *ret = l;
    if (!places || !l.jobs || !l.of) {
        kedge_mem_free(places);
        return KEDGE_E_NOMEM;
    }
    for (uint32_t i = 0; i < h->waiting.count; i++) {
        struct kedge_waiting_job *w = h->waiting.jobs[i];
        if (!w->coming) {
            l.jobs[l.count] = (struct kedge_line_job){
                .tenants = w->tenants, .tenant_count = w->tenant_count, .is_held = w->is_held};
            l.of[l.count++] = w;
        }
    }
    count_places(h, places);
    kedge_line_turns(l.jobs, l.count, places);
    kedge_mem_free(places);
    *ret = l;
    return KEDGE_OK;
}

static bool is_counted(const struct kedge_waiting_job *w, uint32_t tenant)
{
    return tenant == KEDGE_COORD_NONE || kedge_waiting_names(w, tenant);
}

void kedge_waiting_view(const struct kedge_host *h, const struct kedge_waiting_job *w, uint32_t tenant,
                        struct kedge_waiting_view *ret)
{
    struct line l;
    uint32_t own = UINT32_MAX;
    *ret = (struct kedge_waiting_view){.job = w->name, .is_held = w->is_held, .until_ms = w->until_ms};
    int err = make_line(h, &l);
    for (uint32_t i = 0; !err && i < l.count; i++) {
        own = l.of[i] == w ? i : own;
    }
    for (uint32_t i = 0; own != UINT32_MAX && i < l.count; i++) {
        const bool counts = is_counted(l.of[i], tenant);
        ret->count += counts;
        ret->position += counts && (i == own || kedge_line_is_before(&l.jobs[i], &l.jobs[own]));
    }
    free_line(&l);
}

int kedge_waiting_views(const struct kedge_host *h, uint32_t tenant, struct kedge_waiting_view **ret,
                        uint32_t *ret_count)
{
    struct line l;
    struct kedge_waiting_view *views = kedge_mem_new(h->waiting.count + 1, sizeof *views);
    uint32_t count = 0;
    int err = make_line(h, &l);
    err = views ? err : KEDGE_E_NOMEM;
    if (!err) {
        qsort(l.jobs, l.count, sizeof *l.jobs, kedge_line_compare);
    }
    for (uint32_t i = 0; !err && i < l.count; i++) {
        const struct kedge_waiting_job *w = l.of[l.jobs[i].order];
        if (is_counted(w, tenant)) {
            views[count] = (struct kedge_waiting_view){
                .job = w->name, .position = count + 1, .is_held = w->is_held, .until_ms = w->until_ms};
            count++;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        views[i].count = count;
    }
    free_line(&l);
    if (err) {
        kedge_mem_free(views);
        return err;
    }
    *ret = views;
    *ret_count = count;
    return KEDGE_OK;
}

static int compare_names(const void *a, const void *b)
{
    const struct kedge_waiting_view *x = a, *y = b;
    return kedge_id_cmp(&x->job, &y->job);
}

void kedge_waiting_views_sort(struct kedge_waiting_view *views, uint32_t count)
{
    qsort(views, count, sizeof *views, compare_names);
}

const struct kedge_waiting_view *kedge_waiting_view_find(const struct kedge_waiting_view *views,
                                                         uint32_t count, const struct kedge_id *job)
{
    const struct kedge_waiting_view key = {.job = *job};
    return count > 0 ? bsearch(&key, views, count, sizeof *views, compare_names) : NULL;
}

struct kedge_waiting_job *kedge_waiting_next(const struct kedge_host *h)
{
    struct line l;
    struct kedge_waiting_job *next = NULL;
    if (make_line(h, &l) == KEDGE_OK) {
        const uint32_t at = kedge_line_next(l.jobs, l.count);
        next = at < l.count ? l.of[at] : NULL;
    }
    free_line(&l);
    return next;
}
