/* Asynchronous jobs (FedBuff): rounds overlap, so a site may be at work for several rounds, and an update
 * may count in a later one than it was made for. The lists of round-opened say who is at work; here it is
 * followed from round to round, so that a coordinator can neither lose a site's task nor invent one. */
#include "chain/audit/facts/buffer.h"

#include <string.h>

#include "common/base/mem.h"
#include "coordinator/core/coord.h"

bool kedgei_job_is_asynchronous(const struct kedgei_job *job)
{
    return job->usable && kedge_job_spec_buffer(&job->spec) > 0;
}

uint32_t kedgei_row_round(const struct kedgei_round *round, const struct kedge_input_row *row)
{
    return row->round > 0 ? row->round : round->number;
}

/* An earlier round, whose tasks still count in this one. Updates that are older than staleness_max are
 * dropped, so no row may name an older task. */
static bool is_earlier(const struct kedgei_job *job, const struct kedgei_round *round, uint32_t task)
{
    return task >= 1 && task < round->number && round->number - task <= job->spec.staleness_max;
}

/* What a row of round-opened weighs is what jobs that draw by weights allow, else nothing. */
static bool draw_fits(const struct kedgei_job *job, const struct kedgei_round *round,
                      const struct kedge_input_row *row)
{
    bool weighs = job->spec.by_charge && !round->pretrain;
    return weighs ? kedge_coord_is_charge_weight(row->weight) : row->weight == 0;
}

/* Which part it is, all rows together tell (plan.c). */
static bool percent_fits(const struct kedgei_job *job, const struct kedgei_round *round,
                         const struct kedge_input_row *row)
{
    const bool plans =
        row->use == KEDGE_USE_SELECTED && !round->pretrain && kedge_job_spec_plans(&job->spec, round->number);
    return (row->percent > 0) == plans;
}

bool kedgei_opened_row_fits(const struct kedgei_job *job, const struct kedgei_round *round,
                            const struct kedge_input_row *row)
{
    bool goes_on = row->use == KEDGE_USE_WORKING || row->use == KEDGE_USE_AWAY;
    bool begins = row->use == KEDGE_USE_CANDIDATE || row->use == KEDGE_USE_SELECTED;
    bool round_fits = goes_on ? kedgei_job_is_asynchronous(job) && is_earlier(job, round, row->round)
                              : begins && row->round == 0;
    return round_fits && draw_fits(job, round, row) && percent_fits(job, round, row);
}

bool kedgei_closed_row_fits(const struct kedgei_job *job, const struct kedgei_round *round,
                            const struct kedge_input_row *row)
{
    return row->percent == 0
           && (row->round == 0 || (kedgei_job_is_asynchronous(job) && is_earlier(job, round, row->round)));
}

/* An update that an earlier close's checkpoint covered had to count there. Without this rule a
 * coordinator could hold an update back until it suits. */
bool kedgei_is_overdue(const struct kedgei_job *job, const struct kedgei_round *round,
                       const struct kedgei_log *log, uint64_t leaf)
{
    const struct kedgei_fact *before = round > job->rounds ? round[-1].step : NULL;
    return before && leaf < kedgei_anchored_before(log, before->index);
}

/* ---- from round to round ---- */

static struct kedgei_at_work *find_at_work(const struct kedgei_crew *crew, const struct kedge_id *site)
{
    uint32_t lo = 0, hi = crew->count;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (kedge_id_cmp(&crew->sites[mid].site, site) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < crew->count && kedge_id_eq(&crew->sites[lo].site, site) ? &crew->sites[lo] : NULL;
}

static const struct kedge_input_row *find_row(const struct kedge_input_list *list,
                                              const struct kedge_id *site)
{
    uint32_t lo = 0, hi = list->count;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (kedge_id_cmp(&list->rows[mid].site, site) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < list->count && kedge_id_eq(&list->rows[lo].site, site) ? &list->rows[lo] : NULL;
}

/* A site that sent its update, or whose task has become too old, is free again. */
static bool goes_on(const struct kedgei_job *job, const struct kedgei_round *round,
                    const struct kedgei_at_work *w)
{
    return w && !w->settled && round->number - w->task <= job->spec.staleness_max;
}

/* Who was at work and has not done with its task is at work now, unless its tenant revoked it or left the
 * job. The order to do so may stand anywhere before the first checkpoint after the opening: until then the
 * coordinator may have known it. */
static void check_kept(const struct kedgei_audit *a, const struct kedgei_job *job,
                       const struct kedgei_round *round, const struct kedgei_log *log,
                       const struct kedge_input_list *list, const struct kedgei_at_work *w,
                       struct kedgei_findings *f)
{
    const struct kedge_input_row *row = find_row(list, &w->site);
    uint64_t at = round->opened->index;
    if (!goes_on(job, round, w)) {
        return;
    }
    if (!row) {
        const struct kedgei_fact *revoked = kedgei_log_find(log, "site-revoked/%s", w->site.s);
        const uint64_t after = kedgei_anchored_after(log, at);
        if ((!revoked || revoked->index >= after) && !kedgei_has_left(log, &job->id, after)) {
            kedgei_error(f, KEDGE_AUDIT_CANDIDATE, &a->main, at,
                         "\"%s\" of \"%s\" is at work since round %u, and round %u leaves it out", w->site.s,
                         log->name, w->task, round->number);
        }
    } else if ((row->use != KEDGE_USE_WORKING && row->use != KEDGE_USE_AWAY) || row->round != w->task) {
        kedgei_error(f, KEDGE_AUDIT_CANDIDATE, &a->main, at,
                     "\"%s\" of \"%s\" is at work since round %u, and stands as \"%s\" of round %u",
                     w->site.s, log->name, w->task, kedge_input_use_name(row->use),
                     kedgei_row_round(round, row));
    }
}

static int take_list(const struct kedgei_round *round, const struct kedge_input_list *list,
                     struct kedgei_crew *crew)
{
    struct kedgei_at_work *sites = kedge_mem_new(list->count + 1, sizeof *sites);
    uint32_t count = 0;
    for (uint32_t i = 0; sites && i < list->count; i++) {
        if (list->rows[i].use != KEDGE_USE_CANDIDATE) {
            sites[count++] = (struct kedgei_at_work){.site = list->rows[i].site,
                                                     .task = kedgei_row_round(round, &list->rows[i])};
        }
    }
    kedge_mem_free(crew->sites);
    *crew = (struct kedgei_crew){.known = sites != NULL, .count = count, .sites = sites};
    return sites ? KEDGE_OK : KEDGE_E_NOMEM;
}

/* Without a list nothing is known of the round, nor of what goes on from it; the next list begins anew
 * and is not judged by an old state. */
void kedgei_crew_opened(const struct kedgei_audit *a, const struct kedgei_round *round,
                        const struct kedgei_job *job, const struct kedgei_log *log,
                        const struct kedge_input_list *list, struct kedgei_crew *crew,
                        struct kedgei_findings *f)
{
    if (!list) {
        kedgei_crew_deinit(crew);
        return;
    }
    bool known = crew->known || round == job->rounds; /* nobody is at work before the first round */
    for (uint32_t i = 0; known && i < crew->count; i++) {
        check_kept(a, job, round, log, list, &crew->sites[i], f);
    }
    for (uint32_t i = 0; known && i < list->count; i++) {
        const struct kedge_input_row *row = &list->rows[i];
        bool is_kept = row->use == KEDGE_USE_WORKING || row->use == KEDGE_USE_AWAY;
        if (is_kept && !goes_on(job, round, find_at_work(crew, &row->site))) {
            kedgei_error(f, KEDGE_AUDIT_CANDIDATE, &a->main, round->opened->index,
                         "\"%s\" of \"%s\" is said to be at work since round %u, and is not", row->site.s,
                         log->name, row->round);
        }
    }
    f->nomem = take_list(round, list, crew) != KEDGE_OK || f->nomem;
}

void kedgei_crew_settle(struct kedgei_crew *crew, const struct kedge_id *site)
{
    struct kedgei_at_work *w = find_at_work(crew, site);
    if (w) {
        w->settled = true;
    }
}

void kedgei_crew_deinit(struct kedgei_crew *crew)
{
    kedge_mem_free(crew->sites);
    *crew = (struct kedgei_crew){.known = false};
}

void kedgei_check_buffer(const struct kedgei_audit *a, const struct kedgei_job *job,
                         const struct kedgei_round *round, struct kedgei_findings *f)
{
    const struct kedgei_fact *fact = round->aggregates[0];
    uint32_t buffer = kedge_job_spec_buffer(&job->spec);
    uint32_t count = fact ? ((const struct kedge_st_aggregate *)fact->body)->count : 0;
    if (buffer > 0 && count > buffer) {
        kedgei_error(f, KEDGE_AUDIT_AGGREGATE, &a->main, fact->index,
                     "counts %u updates, the job's buffer holds %u", count, buffer);
    }
}

/* In synchronous jobs an update must stand in its own round's list. Here it may come in any later one, so
 * only an update that the last close covers and that stands in no list at all is missing. */
void kedgei_check_unlisted(const struct kedgei_audit *a, const struct kedgei_job *job,
                           struct kedgei_findings *f)
{
    const struct kedgei_fact *last = NULL;
    for (size_t r = 0; r < job->round_count; r++) {
        const struct kedgei_round *round = kedgei_round_at(job, r);
        last = round->step ? round->step : last;
    }
    for (size_t r = 0; last && r < job->round_count; r++) {
        const struct kedgei_round *round = kedgei_round_at(job, r);
        for (size_t k = 0; k < round->update_count; k++) {
            const struct kedgei_update *row = kedgei_update_at(a, round->update_first + k);
            const struct kedgei_log *log = &a->tenants[row->tenant];
            const struct kedge_st_update *u = row->fact->body;
            if (row->fact->listed == 0 && row->fact->index < kedgei_anchored_before(log, last->index)) {
                kedgei_error_if_settled(a, f, KEDGE_AUDIT_UNLISTED, log, row->fact->index,
                                        "update of site \"%s\" for its task of round %u stands in no list, "
                                        "and a later close covers it",
                                        u->site.s, u->round);
            }
        }
    }
}
