/* What sites said of tasks that ended without a result, for people. The core decides by the reason
 * alone; the words are here, in memory, and are the owner's: the operator and the site's own tenant
 * may read them, the other tenants of the job see reasons and numbers only.
 *
 * A site can say as much as it likes, as often as it likes. So there is one row for a site, its
 * text has a bounded length and is made printable, and the log gets a line only when something
 * changed or the count is a power of two. */
#include "coordinator/daemon/rounds/troubles.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/tenant_keys.h"

enum { SHOWN_MAX = 64 }; /* sites in one list of an answer; of more their number is told */

const struct kedge_trouble_row *kedge_troubles_find(const struct kedge_troubles *t, uint32_t site)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->rows[i].site == site) {
            return &t->rows[i];
        }
    }
    return NULL;
}

/* The search is linear: sites in trouble are few, or the job has stopped. */
static struct kedge_trouble_row *find_or_make(struct kedge_troubles *t, uint32_t site)
{
    struct kedge_trouble_row *row = (struct kedge_trouble_row *)(uintptr_t)kedge_troubles_find(t, site);
    if (row) {
        return row;
    }
    if (!kedge_mem_grow(&t->rows, &t->max, t->count, 8, sizeof *t->rows)) {
        return NULL; /* nobody is told in words; the core knows */
    }
    row = &t->rows[t->count++];
    *row = (struct kedge_trouble_row){.site = site};
    return row;
}

void kedge_troubles_free(struct kedge_troubles *t)
{
    kedge_mem_free(t->rows);
    *t = (struct kedge_troubles){.rows = NULL};
}

/* The first time, when it is another one, and then less and less often. */
static bool is_news(const struct kedge_trouble_row *row, enum kedge_trouble before)
{
    return row->why != before || (row->times & (row->times - 1)) == 0;
}

void kedge_host_troubled(struct kedge_host *h, uint32_t site, struct kedge_job *job,
                         const struct kedge_msg_task_ended *m)
{
    const struct kedge_site_entry *s = &h->sites[site];
    struct kedge_trouble_row *row = find_or_make(&job->troubles, site);
    if (!row) {
        return;
    }
    enum kedge_trouble before = row->why;
    size_t len = m->text.len < KEDGE_TROUBLE_TEXT_MAX ? m->text.len : KEDGE_TROUBLE_TEXT_MAX;
    row->why = (enum kedge_trouble)m->trouble;
    row->round = m->round;
    row->times = row->times < UINT32_MAX ? row->times + 1 : row->times;
    row->last_ms = kedge_os_unix_ms();
    row->since_ms = before == KEDGE_TROUBLE_NONE ? row->last_ms : row->since_ms;
    if (len > 0) {
        memcpy(row->text, m->text.ptr, len);
    }
    row->text[len] = '\0';
    kedge_text_make_plain(row->text); /* one line, whatever its sender meant by the others */
    if (is_news(row, before)) {
        kedge_log(KEDGE_LOG_WARN, "task ended", "job=%s round=%u site=%s/%s: %s%s%s", job->spec.name.s,
                  m->round, h->tenants[s->tenant].id.s, s->id.s, kedge_trouble_name(row->why),
                  row->text[0] ? ": " : "", row->text);
    }
}

void kedge_host_trouble_over(struct kedge_host *h, uint32_t site, struct kedge_job *job)
{
    struct kedge_troubles *t = &job->troubles;
    struct kedge_trouble_row *row = (struct kedge_trouble_row *)(uintptr_t)kedge_troubles_find(t, site);
    if (row) {
        const struct kedge_site_entry *s = &h->sites[site];
        kedge_log(KEDGE_LOG_INFO, "trouble over", "job=%s site=%s/%s", job->spec.name.s,
                  h->tenants[s->tenant].id.s, s->id.s);
        *row = t->rows[--t->count];
    }
}

uint32_t kedge_host_troubles_unable(const struct kedge_host *h, const struct kedge_job *job)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->troubles.count; i++) {
        const struct kedge_coord_row *core = kedge_coord_row(h->coord, job->slot, job->troubles.rows[i].site);
        count += core && core->unable != KEDGE_TROUBLE_NONE;
    }
    return count;
}

/* Reasons and how many sites have each, no names: this text goes into job-closed, which every
 * tenant of the job reads. */
void kedge_host_troubles_tell(struct kedge_host *h, struct kedge_job *job)
{
    uint32_t counts[KEDGE_TROUBLE_COUNT] = {0};
    size_t at = 0;
    for (uint32_t i = 0; i < job->troubles.count; i++) {
        const struct kedge_trouble_row *row = &job->troubles.rows[i];
        const struct kedge_coord_row *core = kedge_coord_row(h->coord, job->slot, row->site);
        bool now = core && (core->unable != KEDGE_TROUBLE_NONE || core->ended != KEDGE_TROUBLE_NONE);
        counts[row->why] += now;
    }
    job->trouble_text[0] = '\0';
    for (uint32_t i = 0; i < KEDGE_TROUBLE_COUNT && at < sizeof job->trouble_text; i++) {
        if (counts[i] > 0) {
            int n = snprintf(job->trouble_text + at, sizeof job->trouble_text - at, "%s%u %s %s",
                             at > 0 ? ", " : "", counts[i],
                             counts[i] == 1 ? "site:" : "sites:", kedge_trouble_name((enum kedge_trouble)i));
            at += n > 0 ? (size_t)n : 0;
        }
    }
    if (job->trouble_text[0]) {
        kedge_host_job_fault(job, job->trouble_text, "%s", job->trouble_text);
        kedge_log(KEDGE_LOG_WARN, "too few sites", "job=%s: %s", job->spec.name.s, job->trouble_text);
    }
}

/* ---- shown to people ---- */

static json_t *named(const struct kedge_host *h, uint32_t site)
{
    const struct kedge_site_entry *s = &h->sites[site];
    return json_pack("{s:s,s:s,s:I}", "tenant", h->tenants[s->tenant].id.s, "site", s->id.s, "last_seen_ms",
                     (json_int_t)s->last_seen_ms);
}

static json_t *trouble_json(const struct kedge_host *h, const struct kedge_job *job,
                            const struct kedge_trouble_row *row, bool with_text)
{
    const struct kedge_coord_row *core = kedge_coord_row(h->coord, job->slot, row->site);
    json_t *o = named(h, row->site);
    json_object_set_new(o, "reason", json_string(kedge_trouble_name(row->why)));
    json_object_set_new(o, "reason_text", json_string(kedge_trouble_text(row->why)));
    json_object_set_new(o, "round", json_integer(row->round));
    json_object_set_new(o, "times", json_integer(row->times));
    json_object_set_new(o, "since_ms", json_integer((json_int_t)row->since_ms));
    json_object_set_new(o, "last_ms", json_integer((json_int_t)row->last_ms));
    json_object_set_new(o, "asked_again", json_boolean(!core || core->unable == KEDGE_TROUBLE_NONE));
    if (with_text && row->text[0]) {
        json_object_set_new(o, "text", json_string(row->text));
    }
    return o;
}

/* Selected, with nothing accepted, refused or ended. */
static bool is_awaited(const struct kedge_coord_row *row, enum kedge_task_kind kind)
{
    const struct kedge_coord_input *in = kind == KEDGE_TASK_PRETRAIN ? &row->pretrain : &row->train;
    return row->selected && row->ended == KEDGE_TROUBLE_NONE && in->progress != KEDGE_INPUT_ACCEPTED
           && in->progress != KEDGE_INPUT_REFUSED;
}

/* Why, in a word or two. */
static const char *why_awaited(const struct kedge_host *h, uint32_t site, const struct kedge_coord_row *row,
                               enum kedge_task_kind kind)
{
    const struct kedge_coord_input *in = kind == KEDGE_TASK_PRETRAIN ? &row->pretrain : &row->train;
    if (in->progress != KEDGE_INPUT_NONE) {
        return "its update is being stored";
    }
    if (!kedge_coord_is_online(h->coord, site)) {
        return "offline";
    }
    return row->unable != KEDGE_TROUBLE_NONE ? kedge_trouble_name(row->unable) : "at work";
}

static bool may_tell(const struct kedge_host *h, uint32_t site, const struct kedge_public_key *for_admin)
{
    return !for_admin || kedge_tenant_shows_to(&h->tenants[h->sites[site].tenant], for_admin);
}

/* Whom the open round waits for. A round that does not close is the question that operators ask
 * most, so the answer is made from the same rows by which the core decides. */
static void put_waits(const struct kedge_host *h, const struct kedge_job *job,
                      const struct kedge_public_key *for_admin, const struct kedge_coord_job_view *view,
                      json_t *o)
{
    json_t *list = json_array();
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->site_count; i++) {
        const struct kedge_coord_row *row = kedge_coord_row(h->coord, job->slot, i);
        const bool has_left = job->left[h->sites[i].tenant]; /* the core waits for these no more */
        if (!row || has_left || !is_awaited(row, view->round_kind) || !may_tell(h, i, for_admin)) {
            continue;
        }
        if (count++ < SHOWN_MAX) {
            json_t *site = named(h, i);
            json_object_set_new(site, "online", json_boolean(kedge_coord_is_online(h->coord, i)));
            json_object_set_new(site, "why", json_string(why_awaited(h, i, row, view->round_kind)));
            json_array_append_new(list, site);
        }
    }
    uint64_t now = kedge_os_now_ns(), open_ms = now > view->open_ns ? (now - view->open_ns) / 1000000u : 0;
    json_object_set_new(o, "waits_for", list);
    json_object_set_new(o, "waits_for_count", json_integer(count));
    json_object_set_new(o, "round_open_since_ms", json_integer((json_int_t)(kedge_os_unix_ms() - open_ms)));
}

/* Unix time of a time of the core. */
static json_int_t wall_ms(uint64_t at_ns)
{
    const uint64_t now_ns = kedge_os_now_ns(), now_ms = kedge_os_unix_ms();
    return (json_int_t)(at_ns > now_ns ? now_ms + (at_ns - now_ns) / 1000000u : now_ms);
}

/* How many sites have what the job needs; to a tenant's admin of those that are the tenant's, for what
 * others' sites are is their tenants' to say. */
static uint32_t count_fitting(const struct kedge_host *h, const struct kedge_job *job,
                              const struct kedge_public_key *for_admin,
                              const struct kedge_coord_job_view *view)
{
    uint32_t count = for_admin ? 0 : view->fitting_count;
    for (uint32_t i = 0; i < h->site_count && for_admin; i++) {
        const struct kedge_site_entry *s = &h->sites[i];
        count += s->active && kedge_host_job_names(job, s->tenant) && job->joined[s->tenant]
                 && !job->left[s->tenant] && may_tell(h, i, for_admin)
                 && kedge_labels_cover(kedge_view_str(s->labels.text), kedge_view_str(job->spec.needs.text));
    }
    return count;
}

/* Until when the round or the enrolment goes on by itself: then the round closes with its quorum or halts,
 * and a job of which no round could open ends as failed. */
static void put_until(const struct kedge_host *h, const struct kedge_job *job,
                      const struct kedge_public_key *for_admin, const struct kedge_coord_job_view *view,
                      json_t *o)
{
    if (view->round_open && view->deadline_ns != UINT64_MAX) {
        json_object_set_new(o, "round_until_ms", json_integer(wall_ms(view->deadline_ns)));
    }
    if (view->enrol_ns == UINT64_MAX) {
        return;
    }
    const uint32_t least = job->params.sites_min;
    json_object_set_new(o, "enrol_until_ms", json_integer(wall_ms(view->enrol_ns)));
    json_object_set_new(o, "sites_min", json_integer(least));
    if (job->spec.needs.text[0]) {
        json_object_set_new(o, "sites_fitting", json_integer(count_fitting(h, job, for_admin, view)));
    }
    json_object_set_new(o, "sites_lacking",
                        json_integer(view->online_count < least ? least - view->online_count : 0));
}

/* Where the next round leaves the sites to other jobs: for how long at most. */
static void put_turn(const struct kedge_coord_job_view *view, json_t *o)
{
    uint64_t now = kedge_os_now_ns();
    if (view->lacks_free) {
        json_object_set_new(o, "sites_free", json_integer(view->free_count));
        json_object_set_new(o, "sites_min", json_integer(view->params->sites_min));
    }
    if (view->turn_ns != UINT64_MAX && view->turn_ns > now) {
        json_object_set_new(o, "others_turn_ms",
                            json_integer((json_int_t)((view->turn_ns - now) / 1000000u)));
    }
}

void kedge_host_troubles_put(const struct kedge_host *h, const struct kedge_job *job,
                             const struct kedge_public_key *for_admin, bool with_text, json_t *o)
{
    struct kedge_coord_job_view view;
    json_t *list = json_array();
    bool known = kedge_host_job_view(h, job, &view);
    if (known && view.round_open) {
        put_waits(h, job, for_admin, &view, o);
    } else if (known) {
        put_turn(&view, o);
    }
    if (known) {
        put_until(h, job, for_admin, &view, o);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->troubles.count; i++) {
        const struct kedge_trouble_row *row = &job->troubles.rows[i];
        if (may_tell(h, row->site, for_admin) && count++ < SHOWN_MAX) {
            json_array_append_new(list, trouble_json(h, job, row, with_text));
        }
    }
    json_object_set_new(o, "troubles", list);
    json_object_set_new(o, "troubles_count", json_integer(count));
}

json_t *kedge_host_troubles_of(const struct kedge_host *h, uint32_t site, bool with_text)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        const struct kedge_job *job = &h->jobs[i];
        bool runs = job->used && !kedge_host_job_has_ended(job);
        const struct kedge_trouble_row *row = runs ? kedge_troubles_find(&job->troubles, site) : NULL;
        if (row) {
            json_t *o = trouble_json(h, job, row, with_text);
            json_object_set_new(o, "job", json_string(job->spec.name.s));
            json_array_append_new(list, o);
        }
    }
    return list;
}
