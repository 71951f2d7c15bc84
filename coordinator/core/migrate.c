/* When a site may move to another group. */
#include "coordinator/core/core.h"

/* May the site ask for another group now? Only between its trainings and after a pause of migrate_every
 * rounds: sites that moved at will would train every model a little and none well. */
bool kedgei_may_migrate(const struct job *j, const struct row *row)
{
    const struct kedge_coord_job_params *p = &j->params;
    uint32_t since = row->pub.group_round == KEDGE_COORD_NONE ? 0 : row->pub.group_round;
    bool paused = j->round - since < p->migrate_every && !MUTANT(MUTANT_MIGRATES_AT_WILL);
    if (row->pub.train.progress != KEDGE_INPUT_NONE && !MUTANT(MUTANT_MOVES_AFTER_TRAINING)) {
        return false; /* in the next round: whether it came before this one's close would be chance */
    }
    return p->groups > 1 && p->migrate_every > 0 && p->entry != KEDGE_ENTRY_CHOICE
           && j->kind == KEDGE_TASK_TRAIN && row->pub.group_durable && row->assign == ASSIGN_NONE && !paused;
}

bool kedgei_migrates(const struct job *j, const struct row *row)
{
    /* what it sent already is answered, accepted or not */
    return kedgei_may_migrate(j, row) || row->pub.pretrain.progress != KEDGE_INPUT_NONE;
}

/* A site says that its data have shifted; it is asked to pre-train when the rules of the job allow
 * a move. Saying so costs others nothing. */
void kedgei_shifted(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    /* A heartbeat overlaps the work that may be answering it just now: only a poll for work is heard. */
    for (uint32_t i = 0; i < c->limits.jobs_max && ev->shifted >> i != 0 && !ev->busy; i++) {
        const struct job *j = &c->jobs[i];
        if ((ev->shifted >> i & 1) == 0 || !j->used) {
            continue;
        }
        struct row *row = kedgei_row(c, i, ev->site);
        kedgei_touch(&c->jobs[i], ev->site);
        bool heard =
            j->params.groups > 1 && j->params.migrate_every > 0 && j->params.entry != KEDGE_ENTRY_CHOICE;
        row->pub.shifted = row->pub.shifted || heard;
    }
}
