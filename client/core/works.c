/* What the works of a site share: who asks for a task, which jobs are at work, whose results are whose.
 * One poll is open at a time for all works, since each poll tells which jobs are at work already and two
 * could bring the same task. Only a poll that says too much by now, because a job has become free since,
 * does not hold up the next one. */
#include <string.h>

#include "client/core/core.h"

bool kedgei_site_is_working(const struct work *w)
{
    return w->state >= KEDGE_SITE_FETCHING && w->state <= KEDGE_SITE_ENDING;
}

static uint32_t index_of(const struct kedge_site *s, const struct work *w)
{
    return (uint32_t)(w - s->works);
}

const struct kedge_site_result *kedgei_site_first(const struct kedge_site *s, const struct work *w)
{
    for (uint32_t i = 0; i < s->memory.result_count; i++) {
        if (s->memory.results[i].work == index_of(s, w)) {
            return &s->memory.results[i];
        }
    }
    return NULL;
}

static uint32_t site_unfinished(const struct kedge_site *s, const struct work *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->memory.result_count; i++) {
        count += s->memory.results[i].work == index_of(s, w);
    }
    return count;
}

/* Results of all works lie in one array in the order in which they came, and those of one work in the order
 * of their submission (update before evaluation). An array per work would need room for results that are
 * hardly ever there in each of the simulator's thousands of sites, and in each stored memory. */
void kedgei_site_results_add(struct kedge_site *s, const struct kedge_site_result *results, uint32_t count)
{
    struct kedge_site_memory *m = &s->memory;
    KEDGE_ASSERT(site_unfinished(s, s->w) == 0 && count <= KEDGE_SITE_RESULTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct kedge_site_result *r = &m->results[m->result_count++];
        *r = results[i];
        r->work = index_of(s, s->w);
    }
}

void kedgei_site_results_drop_first(struct kedge_site *s)
{
    struct kedge_site_memory *m = &s->memory;
    const struct kedge_site_result *first = kedgei_site_first(s, s->w);
    KEDGE_ASSERT(first);
    size_t at = (size_t)(first - m->results);
    m->result_count--;
    memmove(m->results + at, m->results + at + 1, (m->result_count - at) * sizeof *first);
    s->poll_is_stale = s->poll_is_stale || site_unfinished(s, s->w) == 0;
}

void kedgei_site_remember(const struct kedge_site *s, struct kedge_site_memory *ret)
{
    const struct kedge_site_memory *m = &s->memory; /* mostly empty: simulations have many sites */
    ret->enrolled = m->enrolled;
    ret->result_count = m->result_count;
    ret->shift_count = m->shift_count;
    memcpy(ret->results, m->results, m->result_count * sizeof m->results[0]);
    memcpy(ret->shifts, m->shifts, m->shift_count * sizeof m->shifts[0]);
    for (uint32_t i = 0; MUTANT(MUTANT_SITE_KEEPS_ONE) && i < ret->result_count; i++) {
        if (ret->results[i].work != ret->results[ret->result_count - 1].work) {
            ret->results[i--] = ret->results[--ret->result_count];
        }
    }
}

/* The job that a work has in hand, NULL: none. */
static const struct kedge_id *site_job_of(const struct kedge_site *s, const struct work *w)
{
    const struct kedge_site_result *first = kedgei_site_first(s, w);
    bool begun =
        w->state == KEDGE_SITE_FETCHING || w->state == KEDGE_SITE_TRAINING || w->state == KEDGE_SITE_ENDING;
    return begun ? &w->task.job : first ? &first->job : NULL;
}

bool kedgei_site_is_at_work(const struct kedge_site *s, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < s->params.works; i++) {
        const struct kedge_id *at_work = site_job_of(s, &s->works[i]);
        if (at_work && kedge_id_eq(at_work, job)) {
            return !MUTANT(MUTANT_SITE_TAKES_TWICE);
        }
    }
    return false;
}

void kedgei_site_tell_at_work(const struct kedge_site *s, struct kedge_site_effect *poll)
{
    for (uint32_t i = 0; i < s->params.works && !MUTANT(MUTANT_SITE_TAKES_TWICE); i++) {
        const struct kedge_id *job = site_job_of(s, &s->works[i]);
        if (job) {
            KEDGE_ASSERT(poll->at_work_count < KEDGE_SITE_WORKS_MAX - 1);
            poll->at_work[poll->at_work_count++] = *job;
        }
    }
}

bool kedgei_site_has_room(const struct kedge_site *s)
{
    uint32_t busy = 0;
    for (uint32_t i = 0; i < s->params.works; i++) {
        busy += kedgei_site_is_working(&s->works[i]);
    }
    return busy < s->params.at_once;
}

static bool poll_is_open(const struct kedge_site *s)
{
    for (uint32_t i = 0; i < s->params.works; i++) {
        if (s->poll != 0 && s->works[i].open == s->poll) {
            return true;
        }
    }
    return false;
}

/* The coordinator keeps one open upload of a site, so a second one would replace the first, and two works
 * could replace each other's for ever. A work that fails several times in a row gives the right up
 * (kedgei_site_back_off), and its upload begins again later. */
static bool another_sends(const struct kedge_site *s, const struct work *w)
{
    bool any = false;
    for (uint32_t i = 0; i < s->params.works; i++) {
        any = any || (&s->works[i] != w && s->works[i].sends);
    }
    return any && !MUTANT(MUTANT_SITE_SENDS_TOGETHER);
}

/* One free work asks, the first of them, whose pauses count for all. While its poll is open no other asks,
 * unless that poll leaves out a job that has become free: then the next poll must say so at once, or a task
 * of that job would wait for as long as a long poll waits. States that concern the site as a whole
 * (enrolling, stopped, refusing) are acted on by the first work alone. */
bool kedgei_site_stands_by(const struct kedge_site *s, const struct work *w)
{
    if (w->state == KEDGE_SITE_UPLOADING || w->state == KEDGE_SITE_SUBMITTING) {
        return another_sends(s, w);
    }
    if (w->state != KEDGE_SITE_POLLING) {
        bool first_asks = w->state == KEDGE_SITE_ENROLLING || w->state == KEDGE_SITE_STOPPED
                          || w->state == KEDGE_SITE_REFUSING;
        return first_asks && w != s->works;
    }
    uint32_t first = s->params.works;
    for (uint32_t i = s->params.works; i-- > 0;) {
        first = s->works[i].state == KEDGE_SITE_POLLING ? i : first;
    }
    bool site_asks = s->works[0].state == KEDGE_SITE_POLLING || kedgei_site_is_working(&s->works[0]);
    if (!site_asks || !kedgei_site_has_room(s)) {
        return true;
    }
    if (poll_is_open(s)) {
        return !s->poll_is_stale || MUTANT(MUTANT_SITE_POLL_STALE);
    }
    return index_of(s, w) != first;
}

/* The invariants, for the simulator and for builds with KEDGE_CORE_CHECKS: results exist exactly in the
 * states that send or store them, those of one work are of one job and no job has two works, and every work
 * that has nothing open has a time at which it goes on. The last is what makes a site that hangs for ever
 * visible as a broken invariant. */
static bool work_is_valid(const struct kedge_site *s, const struct work *w)
{
    bool has_results = w->state == KEDGE_SITE_PERSISTING || w->state == KEDGE_SITE_UPLOADING
                       || w->state == KEDGE_SITE_SUBMITTING;
    bool has_none = w->state == KEDGE_SITE_POLLING || w->state == KEDGE_SITE_FETCHING
                    || w->state == KEDGE_SITE_TRAINING || w->state == KEDGE_SITE_ENDING
                    || w->state == KEDGE_SITE_STOPPED;
    uint32_t count = site_unfinished(s, w);
    const struct kedge_site_result *first = kedgei_site_first(s, w);
    bool one_job = true;
    for (uint32_t i = 0; i < s->memory.result_count && first; i++) {
        const struct kedge_site_result *r = &s->memory.results[i];
        one_job = one_job && (r->work == first->work) == kedge_id_eq(&r->job, &first->job);
    }
    bool may_send = w->state == KEDGE_SITE_UPLOADING || w->state == KEDGE_SITE_SUBMITTING;
    return one_job && (!w->sends || may_send) && count <= KEDGE_SITE_RESULTS_MAX
           && (!has_results || count > 0) && (!has_none || count == 0) && w->open <= s->last_serial
           && (w->open == 0 || w->open != s->beat)
           && (w->state == KEDGE_SITE_NEW || w->open != 0 || w->wake_ns != UINT64_MAX);
}

bool kedgei_site_works_are_valid(const struct kedge_site *s)
{
    bool any = false, valid = true, stopped = s->works[0].state == KEDGE_SITE_STOPPED;
    for (uint32_t i = 0; i < s->params.works; i++) {
        const struct work *w = &s->works[i];
        const struct kedge_id *job = site_job_of(s, w);
        bool refuses = w->state == KEDGE_SITE_REFUSING;
        any = any || kedgei_site_is_working(w);
        valid = valid && work_is_valid(s, w) && refuses == (s->works[0].state == KEDGE_SITE_REFUSING)
                && !(stopped && kedgei_site_is_working(w));
        for (uint32_t k = 0; k < i && job; k++) { /* one task of a job at a time */
            const struct kedge_id *other = site_job_of(s, &s->works[k]);
            valid = valid && !(other && kedge_id_eq(job, other));
        }
    }
    return valid && any == (s->beat_ns != UINT64_MAX) && s->memory.result_count <= KEDGE_SITE_STORED_MAX;
}
