/* Asynchronous jobs (FedBuff, Nguyen et al. 2022): a round closes with `buffer` updates, and sites that
 * are still at work stay at work. A site is at work on one task of a job at a time, which names the round
 * that it was drawn in; its row is `selected` until its update is in a list, refused, or too old.
 *
 * A task of an older round needs the model of that round. They are kept in a ring of BASES_KEPT places by
 * round number, which is enough because a task counts for staleness_max rounds only. */
#include "coordinator/core/core.h"

/* As many as are missing: places that are held by sites at work count, so that the number of sites
 * at work stays what the job wants. */
uint32_t kedge_coord_draws(uint32_t sites_per_round, uint32_t places, uint32_t count)
{
    uint32_t wanted = sites_per_round == 0 ? count : sites_per_round <= places ? 0 : sites_per_round - places;
    return wanted < count ? wanted : count;
}

bool kedgei_is_asynchronous(const struct job *j)
{
    return j->params.buffer > 0;
}

uint32_t kedgei_task_round(const struct job *j, const struct row *row)
{
    return kedgei_is_asynchronous(j) && row->pub.selected ? row->pub.task_round : j->round;
}

bool kedgei_is_on(const struct job *j, const struct row *row, uint32_t round)
{
    return row->pub.selected && kedgei_task_round(j, row) == round;
}

static uint32_t wanted(const struct job *j)
{
    return j->params.buffer > j->quorum ? j->params.buffer : j->quorum;
}

bool kedgei_is_full(const struct job *j)
{
    return kedgei_is_asynchronous(j) && j->accepted_count >= wanted(j);
}

/* Updates on their way count as if they were accepted, or more could arrive than the round takes. */
bool kedgei_has_room(const struct job *j)
{
    return j->accepted_count + j->busy_count < wanted(j) || MUTANT(MUTANT_BUFFER_RUNS_OVER);
}

/* The model that the next round's tasks begin with, at that round's place in the ring. */
void kedgei_base_keep(struct job *j)
{
    uint32_t next = j->closed_round == KEDGE_COORD_NONE ? j->round : j->closed_round + 1;
    j->bases[next % BASES_KEPT] = j->models[0];
}

const struct kedge_digest *kedgei_train_base(const struct job *j, const struct row *row)
{
    bool older = kedgei_is_asynchronous(j) && !MUTANT(MUTANT_NEWEST_BASE);
    return older ? &j->bases[kedgei_task_round(j, row) % BASES_KEPT] : kedgei_base(j, row->pub.group);
}

/* Over a close: a site whose update is in the list is free, one that was refused or whose task is
 * too old is, too; all others go on with what they were given. */
bool kedgei_stays_at_work(const struct kedge_coord *c, const struct job *j, uint32_t site)
{
    const struct row *row = &j->rows[site];
    const struct kedge_coord_row *p = &row->pub;
    uint32_t next = j->closed_round + 1;
    bool resolved = p->train.progress == KEDGE_INPUT_REFUSED
                    || (p->train.progress == KEDGE_INPUT_ACCEPTED && !MUTANT(MUTANT_AT_WORK_AGAIN));
    bool fresh = p->task_round + j->params.staleness_max >= next || MUTANT(MUTANT_STALE_TAKEN);
    return kedgei_is_asynchronous(j) && p->selected && !resolved && fresh && next <= j->params.rounds
           && kedgei_is_member(c, j, site);
}

/* Who holds a place when a round opens. A site that is offline or has ended its task keeps its task
 * but not its place, so that sites that vanish do not fill a round. */
uint32_t kedgei_places(struct kedge_coord *c, struct job *j)
{
    uint32_t places = 0;
    j->selected_count = 0;
    for (uint32_t i = 0; i < j->touched_count; i++) {
        uint32_t site = j->touched[i];
        struct kedge_coord_row *p = &j->rows[site].pub;
        p->selected = p->selected && kedgei_is_member(c, j, site);
        p->ended = p->selected ? p->ended : KEDGE_TROUBLE_NONE;
        p->task_round = p->selected ? p->task_round : KEDGE_COORD_NONE;
        bool idle = c->sites[site].presence != PRESENCE_ONLINE || p->ended != KEDGE_TROUBLE_NONE;
        p->away = p->selected && idle;
        j->selected_count += p->selected;
        places += p->selected && !p->away;
    }
    return MUTANT(MUTANT_PLACES_FORGOTTEN) ? 0 : places;
}
