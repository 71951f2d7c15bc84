#include "coordinator/daemon/restore/restore_edges.h"

#include <string.h>

#include "coordinator/daemon/host.h"
#include "coordinator/daemon/restore/restore_groups.h"

/* One row of the list: what its update statement says decides, as it did at the close. */
static int row_aggregated(struct kedge_walk *w, uint32_t site, const struct kedge_input_row *row)
{
    if (row->use != KEDGE_USE_AGGREGATED) {
        return KEDGE_OK;
    }
    struct kedge_ledger *ledger = w->h->tenants[w->h->sites[site].tenant].log.ledger;
    int err = kedge_walk_read(w, ledger, row->leaf, KEDGE_ST_UPDATE);
    if (!err) {
        w->job->since[row->group] +=
            kedge_job_spec_meeting_share(&w->job->spec, row->weight, w->st->u.update.samples);
    }
    return err;
}

static int load_aggregate(struct kedge_walk *w, uint64_t index)
{
    int err = KEDGE_OK;
    (void)index;
    struct kedge_st_aggregate a = w->st->u.aggregate;
    for (uint32_t i = 0; i < a.tenant_count && !err; i++) {
        err = kedge_restore_rows(w, &a.tenants[i].id, &a.tenants[i].list, row_aggregated);
    }
    return err;
}

int kedge_restore_edges(struct kedge_walk *w)
{
    struct kedge_job *job = w->job;
    int err = KEDGE_OK;
    if (!kedge_job_spec_has_edges(&job->spec)) {
        return KEDGE_OK;
    }
    memset(job->since, 0, sizeof job->since);
    uint32_t first = job->round; /* behind the last meeting */
    while (first > 0 && !kedge_job_spec_meets(&job->spec, first)) {
        first--;
    }
    for (uint32_t round = first + 1; round <= job->round && !err; round++) {
        err =
            kedge_walk_all(w, w->h->main.ledger, KEDGE_ST_AGGREGATE, job->spec.name.s, round, load_aggregate);
    }
    return err;
}
