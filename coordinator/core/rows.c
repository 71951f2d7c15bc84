/* What one job knows of one site: flags, counts, and the effects that are out for it. */
#include <string.h>

#include "coordinator/core/core.h"

struct row *kedgei_row(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    KEDGE_ASSERT(job < c->limits.jobs_max && c->jobs[job].used);
    KEDGE_ASSERT(site < c->site_count);
    return &c->jobs[job].rows[site];
}

struct kedge_coord_input *kedgei_input(struct row *row, enum item_kind kind)
{
    KEDGE_ASSERT(kind < ITEM_ASSIGN);
    return kind == ITEM_PRETRAIN ? &row->pub.pretrain
           : kind == ITEM_TRAIN  ? &row->pub.train
                                 : &row->evaluation;
}

void kedgei_input_clear(struct kedge_coord_input *in)
{
    memset(in, 0, sizeof *in);
    in->ticket = in->group = KEDGE_COORD_NONE;
}

/* Of several changes after one close the first one counts: what it was in then, it was in at the close. */
void kedgei_group_set(const struct job *j, struct row *row, uint32_t group, bool durable)
{
    if (row->changed_after != j->closed_round) {
        row->former_group = row->pub.group_durable ? row->pub.group : KEDGE_COORD_NONE;
        row->changed_after = j->closed_round;
    }
    row->pub.group = group;
    row->pub.group_durable = durable;
}

uint32_t kedgei_prior_group(const struct job *j, const struct row *row)
{
    bool since = j->closed_round != KEDGE_COORD_NONE && row->changed_after == j->closed_round;
    return since ? row->former_group : row->pub.group_durable ? row->pub.group : KEDGE_COORD_NONE;
}

/* Its place among the job's tenants; 0 for one that is not of the job, whose sites nobody asks. */
static uint32_t tenant_place(const struct job *j, uint32_t tenant)
{
    for (uint32_t i = 0; i < j->params.tenant_count; i++) {
        if (j->params.tenants[i] == tenant) {
            return i;
        }
    }
    return 0;
}

/* The group in which a site begins, without a statement; KEDGE_COORD_NONE: in none. */
static uint32_t first_group(const struct kedge_coord *c, const struct job *j, uint32_t site)
{
    const struct kedge_coord_job_params *p = &j->params;
    if (p->entry == KEDGE_ENTRY_TENANT) {
        uint32_t other = MUTANT(MUTANT_TENANTS_SHUFFLED) ? site : 0;
        return (tenant_place(j, c->sites[site].tenant) + other) % p->groups;
    }
    return p->groups > 1 && p->entry != KEDGE_ENTRY_TOGETHER ? KEDGE_COORD_NONE : 0;
}

void kedgei_row_init(struct kedge_coord *c, struct job *j, uint32_t site)
{
    KEDGE_ASSERT(j->used && site < c->limits.sites_max);
    struct row *row = &j->rows[site];
    memset(row, 0, sizeof *row);
    row->pub.group = first_group(c, j, site);
    row->pub.group_durable = row->pub.group != KEDGE_COORD_NONE;
    row->pub.group_round = row->next_group = row->former_group = row->changed_after = KEDGE_COORD_NONE;
    row->pub.task_round = KEDGE_COORD_NONE;
    row->pub.evaluated_round = row->evaluation_round = KEDGE_COORD_NONE;
    kedgei_input_clear(&row->pub.pretrain);
    kedgei_input_clear(&row->pub.train);
    kedgei_input_clear(&row->evaluation);
    for (int i = 0; i < ITEM_COUNT; i++) {
        row->item[i].request = KEDGE_COORD_NONE;
    }
}

bool kedgei_is_member(const struct kedge_coord *c, const struct job *j, uint32_t site)
{
    return site < c->site_count && c->sites[site].active
           && j->members[c->sites[site].tenant] == MEMBER_JOINED;
}

const struct kedge_digest *kedgei_base(const struct job *j, uint32_t group)
{
    return group < j->model_count ? &j->models[group] : &j->initial;
}

bool kedgei_in_flight(const struct kedge_coord_input *in)
{
    return in->progress == KEDGE_INPUT_VERIFYING || in->progress == KEDGE_INPUT_APPENDING;
}

bool kedgei_evaluates(const struct job *j)
{
    uint32_t r = j->closed_round, every = j->params.evaluate_every;
    return every > 0 && r != KEDGE_COORD_NONE && r > 0 && (r % every == 0 || r == j->params.rounds);
}

bool kedgei_evaluation_due(const struct job *j, const struct row *row)
{
    if (!kedgei_evaluates(j)) {
        return false;
    }
    uint32_t r = j->closed_round;
    bool done = row->pub.evaluated_round != KEDGE_COORD_NONE && row->pub.evaluated_round >= r;
    return !done && row->pub.group_durable
           && !(kedgei_in_flight(&row->evaluation) && row->evaluation_round == r);
}

/* Is the site's part in the round settled, well or not? */
static bool is_refused(const struct job *j, const struct row *row)
{
    bool cold = j->kind == KEDGE_TASK_PRETRAIN || row->pub.group == KEDGE_COORD_NONE;
    return row->pub.train.progress == KEDGE_INPUT_REFUSED
           || (cold && row->pub.pretrain.progress == KEDGE_INPUT_REFUSED);
}

static bool is_accepted(const struct job *j, const struct row *row)
{
    const struct kedge_coord_input *in =
        j->kind == KEDGE_TASK_PRETRAIN ? &row->pub.pretrain : &row->pub.train;
    return in->progress == KEDGE_INPUT_ACCEPTED;
}

static void count_flags(struct job *j, const struct row *row, uint32_t by)
{
    j->unresolved_count += row->unresolved ? by : 0; /* by is 1 or, modulo 2^32, -1 */
    j->awaited_count += row->awaited ? by : 0;
    j->accepted_count += row->accepted ? by : 0;
    j->refused_count += row->refused ? by : 0;
    j->ended_count += row->ended ? by : 0;
    j->busy_count += row->busy ? by : 0;
    j->in_flight_count += row->in_flight ? by : 0;
}

/* All that the job counts of one site, from the row alone. Flags are never set one by one where something
 * happens: a case that was forgotten there would count a site twice or never. */
static void set_flags(const struct kedge_coord *c, const struct job *j, uint32_t site, struct row *row)
{
    const struct kedge_coord_row *p = &row->pub;
    row->accepted = p->selected && is_accepted(j, row);
    row->refused = p->selected && !row->accepted && is_refused(j, row);
    row->ended = p->selected && !row->accepted && !row->refused && p->ended != KEDGE_TROUBLE_NONE;
    row->unresolved = p->selected && !row->accepted && !row->refused && !row->ended && c->sites[site].active;
    bool present = kedgei_is_member(c, j, site) && c->sites[site].presence != PRESENCE_GONE;
    row->awaited =
        present
        && ((j->stage == STAGE_COLLECT && row->unresolved)
            || (j->stage == STAGE_EVALUATE && kedgei_evaluation_due(j, row) && !kedgei_is_unable(row)));
    row->busy = kedgei_in_flight(&p->pretrain) || kedgei_in_flight(&p->train) || row->assign != ASSIGN_NONE;
    if (MUTANT(MUTANT_CLOSE_WHILE_APPENDING)) {
        row->busy = p->pretrain.progress == KEDGE_INPUT_VERIFYING
                    || p->train.progress == KEDGE_INPUT_VERIFYING || row->assign != ASSIGN_NONE;
    }
    row->in_flight = row->busy || kedgei_in_flight(&row->evaluation);
}

/* Takes the row out of the counts, derives its flags anew and counts it again. So the counts of a job cost
 * nothing to read and cannot drift from its rows. */
void kedgei_row_refresh(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    struct job *j = &c->jobs[job];
    struct row *row = kedgei_row(c, job, site);
    kedgei_touch(j, site);
    kedgei_eligible_update(c, j, site);
    count_flags(j, row, UINT32_MAX);
    set_flags(c, j, site, row);
    count_flags(j, row, 1);
    KEDGE_ASSERT(j->awaited_count <= c->site_count && j->busy_count <= j->in_flight_count);
    j->dirty = true;
}

void kedgei_rows_refresh_all(struct kedge_coord *c, uint32_t job)
{
    for (uint32_t i = 0; i < c->site_count; i++) {
        kedgei_row_refresh(c, job, i);
    }
}

void kedgei_rows_refresh(struct kedge_coord *c, uint32_t job)
{
    const struct job *j = &c->jobs[job];
    bool evaluates = j->stage == STAGE_EVALUATE || j->stage == STAGE_JOB_CLOSING;
    if (evaluates && j->params.evaluate_every > 0) { /* all sites are awaited, or not any more */
        kedgei_rows_refresh_all(c, job);
        return;
    }
    for (uint32_t i = 0; i < j->touched_count; i++) {
        kedgei_row_refresh(c, job, j->touched[i]);
    }
}

/* What failed is tried again after a pause, all of the job together: where the disk is full, ten thousand
 * retries at their own times would only keep it busy. */
void kedgei_item_failed(struct kedge_coord *c, uint32_t job, struct item *item, int err)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(item->out && err != KEDGE_OK);
    item->out = false;
    if (!item->failed) {
        item->failed = true;
        j->failed_count++;
    }
    j->stored_err = err;
    uint64_t pause = KEDGE_RARE(c, RETRY_NOW) ? 1 : c->times.retry;
    j->retry_ns = j->retry_ns != UINT64_MAX ? j->retry_ns : kedgei_after(c, pause);
    j->sweep = kedgei_is_ending(j) ? 0 : j->sweep;
    j->dirty = true;
}

void kedgei_item_done(struct job *j, struct item *item)
{
    KEDGE_ASSERT(item->out);
    item->out = false;
    if (item->failed) {
        KEDGE_ASSERT(j->failed_count > 0);
        item->failed = false;
        j->failed_count--;
        if (j->failed_count == 0) {
            kedgei_offer_all(j); /* tasks may go out again */
        }
    }
    j->dirty = true;
}

static enum kedge_task_kind task_kind(enum item_kind kind)
{
    static const enum kedge_task_kind kinds[] = {
        [ITEM_PRETRAIN] = KEDGE_TASK_PRETRAIN,
        [ITEM_TRAIN] = KEDGE_TASK_TRAIN,
        [ITEM_EVALUATE] = KEDGE_TASK_EVALUATE,
        [ITEM_ASSIGN] = KEDGE_TASK_PRETRAIN,
    };
    return kinds[kind];
}

/* An effect for the host: verify, append, find a group. Everything in it comes from the row, so that a
 * repetition after a failure or a restart asks for the same. */
void kedgei_item_emit(struct kedge_coord *c, uint32_t job, uint32_t site, enum item_kind kind)
{
    struct row *row = kedgei_row(c, job, site);
    struct item *item = &row->item[kind];
    KEDGE_ASSERT(!item->out);
    item->out = true;
    if (kind == ITEM_ASSIGN) {
        KEDGE_ASSERT(row->assign != ASSIGN_NONE);
        bool work = row->assign == ASSIGN_WORK;
        struct kedge_coord_effect *fx =
            kedgei_emit_site(c, work ? KEDGE_FX_ASSIGN : KEDGE_FX_APPEND_ASSIGNED, job, site);
        fx->group = work ? KEDGE_COORD_NONE : row->pub.group;
        fx->why = row->why;
        return;
    }
    struct kedge_coord_input *in = kedgei_input(row, kind);
    KEDGE_ASSERT(kedgei_in_flight(in));
    bool verify = in->progress == KEDGE_INPUT_VERIFYING;
    struct kedge_coord_effect *fx =
        kedgei_emit_site(c, verify ? KEDGE_FX_VERIFY : KEDGE_FX_APPEND, job, site);
    fx->kind = task_kind(kind);
    fx->round = kind == ITEM_EVALUATE ? row->evaluation_round
                : kind == ITEM_TRAIN  ? kedgei_task_round(&c->jobs[job], row)
                                      : fx->round;
    fx->group = kind == ITEM_PRETRAIN ? KEDGE_COORD_NONE : in->group;
    fx->request = item->request;
    fx->ticket = in->ticket;
}

/* Asks again for what is due and not out: after a restart, a pause or a failure. Of an ending job
 * everything that waits is given up instead. */
void kedgei_sweep_row(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    struct row *row = kedgei_row(c, job, site);
    if (kedgei_is_ending(&c->jobs[job])) {
        kedgei_row_give_up(c, job, site);
        return;
    }
    for (enum item_kind kind = ITEM_PRETRAIN; kind < ITEM_ASSIGN; kind++) {
        if (kedgei_input(row, kind)->progress == KEDGE_INPUT_APPENDING && !row->item[kind].out) {
            kedgei_item_emit(c, job, site, kind);
        }
    }
    if (row->assign != ASSIGN_NONE && !row->item[ITEM_ASSIGN].out) {
        kedgei_item_emit(c, job, site, ITEM_ASSIGN);
    }
}
