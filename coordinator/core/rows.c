/* What one job knows of one site, by itself: nothing here looks at other rows or changes counts
 * (refresh.c does). */
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

/* In which group the site was when the last round closed: that says which model it may still
 * evaluate, whatever group it is in now. */
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

/* A site in a job in which nothing has happened. Also where a site is added to a job that runs. */
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

/* Both lists ascend. */
bool kedgei_fits(const struct kedge_coord *c, const struct job *j, uint32_t site)
{
    const struct site *s = &c->sites[site];
    uint32_t at = 0;
    for (uint32_t i = 0; i < j->params.need_count; i++) {
        while (at < s->label_count && kedge_coord_label_cmp(&s->labels[at], &j->params.needs[i]) < 0) {
            at++;
        }
        if (at == s->label_count || kedge_coord_label_cmp(&s->labels[at], &j->params.needs[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* A group that has no model yet trains from the one that the job began with. */
const struct kedge_digest *kedgei_base(const struct job *j, uint32_t group)
{
    return group < j->model_count ? &j->models[group] : &j->initial;
}

bool kedgei_in_flight(const struct kedge_coord_input *in)
{
    return in->progress == KEDGE_INPUT_VERIFYING || in->progress == KEDGE_INPUT_APPENDING;
}

/* Every so many rounds, after the last one, and where trials wait for a verdict. */
bool kedgei_evaluates(const struct job *j)
{
    uint32_t r = j->closed_round, every = j->params.evaluate_every;
    return every > 0 && r != KEDGE_COORD_NONE && r > 0
           && (r % every == 0 || r == j->params.rounds || j->tries);
}

bool kedgei_is_to_test(const struct job *j)
{
    uint32_t r = j->closed_round;
    return j->params.has_targets && !j->tested && r != KEDGE_COORD_NONE && r > 0 && r < j->params.rounds
           && r % j->params.evaluate_every == 0;
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

bool kedgei_is_unable(const struct row *row)
{
    return row->pub.unable != KEDGE_TROUBLE_NONE;
}
