/* Which group a site is in by its last model, before it trains. */
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/rounds/rounds.h"
#include "round/last_model.h"

int kedge_host_last_model(struct kedge_host *h, const struct kedge_job *job, uint32_t site, uint32_t groups,
                          uint32_t *ret_group, double *ret_similarity, struct kedge_diag *d)
{
    const struct kedge_round_site *last = &job->sites[site];
    const struct kedge_blobs *own = h->tenants[h->sites[site].tenant].log.blobs;
    bool begins = kedge_hash_is_zero(&last->last_update);
    char update[KEDGE_PATH_MAX], base[KEDGE_PATH_MAX], paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    struct kedge_blob_at at;
    uint32_t first = groups > 0 ? 0 : *ret_group, count = groups > 0 ? groups : 1, nearest = 0;
    int err = kedge_blobs_path(h->main.blobs, begins ? &job->initial_model : &last->last_base, base);
    err = err ? err : kedge_blobs_at(own, &last->last_update, update, &at);
    for (uint32_t g = 0; g < count && !err; g++) {
        models[g] = paths[g];
        err = kedge_blobs_path(h->main.blobs, &job->at.group[first + g].model, paths[g]);
    }
    err = err ? err
              : kedge_compute_last_model(&job->spec, &job->layout, base, begins ? NULL : &at, models, count,
                                         &nearest, ret_similarity, d);
    if (err && !begins && kedge_blobs_find(own, &last->last_update, NULL) == KEDGE_E_NOT_FOUND) {
        *ret_similarity = 0; /* erased: it stays where it is */
        return KEDGE_OK;
    }
    *ret_group = err ? *ret_group : first + nearest;
    return err;
}
