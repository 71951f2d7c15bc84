/* Closing a round of a hierarchical job: what each edge has added up since the last meeting, and the meeting.
 */
#include <string.h>

#include "chain/compute/meet.h"
#include "coordinator/daemon/close.h"
#include "coordinator/daemon/host.h"

static void add_up(const struct close_work *w, uint64_t *since)
{
    for (size_t i = 0; i < w->input_count; i++) {
        const struct close_input *in = &w->inputs[i];
        if (!in->left_out) {
            since[in->group] += kedge_job_spec_meeting_share(&w->job->spec, in->weight, in->in.weight);
        }
    }
}

static int meet(struct kedge_host *h, struct close_work *w, const uint64_t *since)
{
    struct kedge_round_result *r = w->result;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    uint64_t weight[KEDGE_GROUPS_MAX];
    struct kedge_blob_writer *writer;
    struct kedge_sink sink;
    struct kedge_hash met;
    int err = kedge_compute_meeting_weights(&w->job->spec, since, r->groups, weight);
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        models[g] = paths[g];
        err = kedge_blobs_path(h->main.blobs, &r->stepped[g], paths[g]);
    }
    err = err ? err : kedgei_close_blob_begin(h, w->job->model_len, &writer, &sink, &w->models.diag);
    if (!err) {
        err = kedge_compute_blend(&w->job->layout, models, weight, r->groups, sink, &w->models.diag);
        err = kedgei_close_blob_end(writer, err, &met, &w->models.diag);
    }
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        r->after[g] = met;
    }
    return err;
}

int kedgei_close_edges(struct kedge_host *h, struct close_work *w)
{
    struct kedge_round_result *r = w->result;
    if (!kedge_job_spec_has_edges(&w->job->spec)) {
        return KEDGE_OK;
    }
    memcpy(r->since, w->job->since, sizeof r->since);
    add_up(w, r->since);
    r->met = kedge_job_spec_meets(&w->job->spec, r->round);
    int err = r->met ? meet(h, w, r->since) : KEDGE_OK;
    if (r->met) {
        memset(r->since, 0, sizeof r->since);
    }
    return err;
}
