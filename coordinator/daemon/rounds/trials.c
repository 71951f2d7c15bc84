/* Trials of two groups: which model goes to a site beside its own, and what sites have said of it. */
#include <string.h>

#include "coordinator/daemon/host.h"
#include "coordinator/daemon/rounds/rounds.h"

/* Only of the last closed round: a trial that was decided is no model of anybody. */
const struct kedge_hash *kedge_host_trial(const struct kedge_job *job, uint32_t group, uint32_t round)
{
    const bool is_last = round == job->at.round && group < job->at.groups;
    return is_last && !kedge_hash_is_zero(&job->at.group[group].trial) ? &job->at.group[group].trial : NULL;
}

/* Who may read a group's model may read its trial. */
bool kedge_host_may_read_trial(const struct kedge_host *h, const struct kedge_job *job, uint32_t site,
                               const struct kedge_hash *digest)
{
    for (uint32_t g = 0; g < job->at.groups; g++) {
        const struct kedge_round_group *group = &job->at.group[g];
        struct kedge_digest model;
        memcpy(model.b, group->model.b, sizeof model.b);
        if (group->tried_with > 0 && kedge_hash_eq(&group->trial, digest)
            && kedge_coord_may_read(h->coord, job->slot, site, &model)) {
            return true;
        }
    }
    return false;
}

/* The statement names the trial that it judged. One that names another, such as a late evaluation
 * of the round before, must not decide this one. */
void kedge_job_evaluated(struct kedge_job *job, uint32_t site, const struct kedge_st_evaluation *e,
                         uint64_t leaf)
{
    const struct kedge_hash *trial = kedge_host_trial(job, e->group, e->round);
    const bool is_last = e->round == job->at.round && e->group < job->at.groups;
    const bool is_of_own = is_last && !trial && kedge_hash_is_zero(&e->trial) && e->personal_loss > 0
                           && kedge_job_spec_asks_own(&job->spec, e->round);
    if (is_of_own || (trial && kedge_hash_eq(trial, &e->trial))) {
        job->evaluations[site] = (struct kedge_close_evaluation){.site = site,
                                                                 .group = e->group,
                                                                 .leaf = leaf,
                                                                 .samples = e->samples,
                                                                 .loss = e->loss,
                                                                 .trial_loss = e->trial_loss,
                                                                 .personal_loss = e->personal_loss};
    }
}
