#include "coordinator/daemon/restore/restore_trained.h"

#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/members.h"

/* Of one site in the order of their rounds: the last one counts. */
static int load_trained(struct kedge_walk *w, uint64_t index)
{
    (void)index;
    const struct kedge_st_update *u = &w->st->u.update;
    uint32_t site = kedge_host_site_find(w->h, w->tenant, &u->site);
    if (site == KEDGE_COORD_NONE || u->update_kind != KEDGE_TRAIN_TRAIN || u->round > w->job->round) {
        return KEDGE_OK;
    }
    if (w->job->trained) {
        w->job->trained[site] = (struct kedge_trained){.update = w->st->subject, .base = u->base};
        return KEDGE_OK;
    }
    struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_GROUP,
                                   .job = w->job->slot,
                                   .site = site,
                                   .round = u->round,
                                   .group = u->group,
                                   .durable = true};
    kedge_host_step(w->h, &ev);
    return KEDGE_OK;
}

int kedge_restore_trained(struct kedge_walk *w)
{
    return kedge_job_spec_is_chosen(&w->job->spec) || w->job->trained
               ? kedge_walk_tenants(w, KEDGE_ST_UPDATE, KEDGE_WALK_ALL, load_trained)
               : KEDGE_OK;
}
