/* Sites that cannot serve a job, or not now. A site says so when a task of it ends without a result: from
 * then on it is no candidate of the job for as long as it said, and the open round waits for it no more. It
 * is asked again when that time has passed, or when it says that nothing of what it told holds any more: then
 * it has started anew, or its owner has changed the policy.
 *
 * What a site says of itself can only take itself out, never another one, and never for longer than
 * unable_max. It is not durable: after a restart the site is asked, and says it again. */
#include "coordinator/core/core.h"

/* A round that lacks updates asks those again that can; in an asynchronous job a task outlives its rounds. */
static void ask_again(struct job *j, struct row *row)
{
    bool needed = j->stalled || j->halted_by_quorum || kedgei_is_asynchronous(j);
    row->pub.ended = needed ? KEDGE_TROUBLE_NONE : row->pub.ended;
}

static void set_able(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    struct job *j = &c->jobs[job];
    struct row *row = &j->rows[site];
    row->pub.unable = KEDGE_TROUBLE_NONE;
    row->pub.unable_ns = 0;
    ask_again(j, row);
    kedgei_row_refresh(c, job, site);
}

void kedgei_able(struct kedge_coord *c, uint32_t site)
{
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        if (c->jobs[i].used && kedgei_is_unable(&c->jobs[i].rows[site])) {
            set_able(c, i, site);
        }
    }
}

/* An update that arrives proves that the site can, whatever it said before. */
void kedgei_able_again(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    struct row *row = kedgei_row(c, job, site);
    row->pub.unable = row->pub.ended = KEDGE_TROUBLE_NONE;
    row->pub.unable_ns = 0;
    row->failures = 0;
    kedgei_row_refresh(c, job, site);
}

/* Rows of unable sites are touched, so nobody else is looked at. */
static void able_until(struct kedge_coord *c, uint32_t job, uint64_t until_ns)
{
    struct job *j = &c->jobs[job];
    j->able_ns = UINT64_MAX;
    for (uint32_t i = 0; i < j->touched_count; i++) {
        struct row *row = &j->rows[j->touched[i]];
        if (kedgei_is_unable(row) && row->pub.unable_ns <= until_ns) {
            set_able(c, job, j->touched[i]);
        } else if (kedgei_is_unable(row) && row->pub.unable_ns < j->able_ns) {
            j->able_ns = row->pub.unable_ns;
        }
    }
    kedgei_offer_touched(j);
}

/* The operator resumes the job, or it cannot do without them: everybody is asked once more, and
 * counts of failures begin anew. */
void kedgei_able_all(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    for (uint32_t i = 0; i < j->touched_count; i++) {
        j->rows[j->touched[i]].failures = 0;
    }
    able_until(c, job, UINT64_MAX);
}

void kedgei_able_expire(struct kedge_coord *c, uint32_t job)
{
    if (c->jobs[job].able_ns <= c->now_ns && !MUTANT(MUTANT_UNABLE_FOR_GOOD)) {
        able_until(c, job, c->now_ns);
    }
}

/* What a site says of a task that is not its own, or of one that has been settled, ends nothing. */
static bool ends_part(const struct job *j, const struct row *row, const struct kedge_coord_event *ev)
{
    const struct kedge_coord_row *p = &row->pub;
    bool pretrains = j->kind == KEDGE_TASK_PRETRAIN || p->group == KEDGE_COORD_NONE;
    bool kind = ev->kind == KEDGE_TASK_TRAIN || (ev->kind == KEDGE_TASK_PRETRAIN && pretrains);
    bool round = kedgei_is_on(j, row, ev->round) || (MUTANT(MUTANT_ENDED_ANY_ROUND) && p->selected);
    bool open = j->stage == STAGE_COLLECT || kedgei_is_asynchronous(j);
    return open && round && kind && !row->accepted && !row->busy;
}

/* A site says that a task of its own ended without a result. It is answered in any case, so that it does
 * not repeat itself. How long it stays away is its own word, up to unable_max; that its task is over counts
 * only for the task that it really had. */
void kedgei_task_ended(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->request != KEDGE_COORD_NONE && ev->trouble != KEDGE_TROUBLE_NONE);
    int err = kedgei_check_speaker(c, ev);
    if (err != KEDGE_OK) {
        struct kedge_coord_effect *fx = kedgei_emit(c, KEDGE_FX_TURN_AWAY);
        fx->site = ev->site;
        fx->request = ev->request;
        fx->err = err;
        return;
    }
    kedgei_presence_touch(c, ev->site);
    struct job *j = &c->jobs[ev->job];
    struct row *row = kedgei_row(c, ev->job, ev->site);
    uint64_t wait = ev->wait_ns < c->times.unable_max ? ev->wait_ns : c->times.unable_max;
    bool ends = ends_part(j, row, ev);
    row->pub.unable = ev->trouble;
    row->pub.unable_ns = kedgei_after(c, wait);
    row->pub.ended = ends && !MUTANT(MUTANT_ENDED_AWAITED) ? ev->trouble : row->pub.ended;
    row->failures = ends && row->failures < UINT32_MAX ? row->failures + 1 : row->failures;
    j->able_ns = row->pub.unable_ns < j->able_ns ? row->pub.unable_ns : j->able_ns;
    kedgei_row_refresh(c, ev->job, ev->site);
    struct kedge_coord_effect *fx = kedgei_emit_site(c, KEDGE_FX_NOTED, ev->job, ev->site);
    fx->request = ev->request;
    fx->ended = ends;
}

/* Trouble that trying again does not mend, unless somebody changes the data, the trainer or the job. */
static bool is_lasting(enum kedge_trouble why)
{
    return why == KEDGE_TROUBLE_DATA_BAD || why == KEDGE_TROUBLE_DATA_SHAPE || why == KEDGE_TROUBLE_DIVERGED
           || why == KEDGE_TROUBLE_TRAINER_FAILED || why == KEDGE_TROUBLE_TRAINER_REFUSED;
}

/* Has everybody failed who could be asked, and not only for a while? */
static bool is_hopeless(struct kedge_coord *c, struct job *j)
{
    bool often = true, diverged = true;
    for (uint32_t i = 0; i < j->touched_count; i++) {
        const struct row *row = &j->rows[j->touched[i]];
        bool lasting = is_lasting(row->pub.ended) && row->failures >= KEDGE_COORD_FAILURES_MAX;
        often = often && (!row->ended || lasting);
        diverged = diverged && (!row->ended || row->pub.ended == KEDGE_TROUBLE_DIVERGED);
    }
    bool all = j->ended_count == j->selected_count && kedgei_eligible_count(c, j) == 0;
    return all && (diverged || often);
}

/* Everybody who was asked has failed. Those whose pause is over are asked again; when nobody is left whom
 * asking could help, the job fails and says so, instead of waiting for ever. */
void kedgei_stall(struct kedge_coord *c, uint32_t job, bool stalled)
{
    struct job *j = &c->jobs[job];
    if (!stalled || j->stalled) {
        j->stalled = stalled;
        return;
    }
    j->stalled = true;
    if (is_hopeless(c, j)) {
        j->stalled = false;
        kedgei_job_fail(j, KEDGE_E_SITES);
        return;
    }
    for (uint32_t i = 0; i < j->touched_count; i++) {
        struct row *row = &j->rows[j->touched[i]];
        if (row->ended && !kedgei_is_unable(row)) {
            ask_again(j, row);
            kedgei_row_refresh(c, job, j->touched[i]);
        }
    }
    j->stalled = j->unresolved_count == 0;
    kedgei_offer_touched(j);
}

/* Not even a refusal: sites may be drawn again only while nothing of the round would be lost by it. */
static bool has_nothing(const struct job *j)
{
    for (uint32_t i = 0; i < j->touched_count; i++) {
        const struct row *row = &j->rows[j->touched[i]];
        if (row->pub.pretrain.progress != KEDGE_INPUT_NONE || row->pub.train.progress != KEDGE_INPUT_NONE
            || row->assign != ASSIGN_NONE) {
            return MUTANT(MUTANT_DRAWN_OVER);
        }
    }
    return true;
}

/* All draws are of sites that can, so that each costs those who fail in it their pause: they are few. In an
 * asynchronous job a site that is at work stays so; in one with `nearest` opening has given groups already.
 */
bool kedgei_may_draw_again(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    bool nobody = j->awaited_count == 0 && j->busy_count == 0 && (j->ended_count > 0 || j->late);
    if (!nobody || kedgei_is_asynchronous(j) || j->params.entry == KEDGE_ENTRY_NEAREST
        || j->draw == KEDGE_COORD_DRAWS_MAX || j->unstored_site != KEDGE_COORD_NONE || !has_nothing(j)) {
        return false;
    }
    bool root = kedgei_root_is_there(c, j)
                && !(j->params.has_root && kedgei_is_unable(&j->rows[kedgei_root_find(c, j)]));
    return root && kedgei_eligible_count(c, j) >= j->params.sites_min;
}
