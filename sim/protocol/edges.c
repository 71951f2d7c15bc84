/* A hierarchical job's round, as coordinator/daemon/close_edges.c closes it: what each edge has added up
 * since the last meeting, and the meeting. */
#include <string.h>

#include "chain/compute/meet.h"
#include "sim/protocol/impl.h"

static int meet(struct kedgei_protocol *p)
{
    struct kedgei_close *n = &p->next;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    uint64_t weight[KEDGE_GROUPS_MAX];
    struct kedgei_file file;
    struct kedge_digest met;
    for (uint32_t g = 0; g < n->groups; g++) {
        models[g] = paths[g];
        kedgei_files_path(&p->files, &n->models[g], paths[g]);
    }
    int err = kedge_compute_meeting_weights(&p->job, n->since, n->groups, weight);
    err = err ? err : kedgei_file_begin(&p->files, 0, &file, p->d);
    if (err) {
        return err;
    }
    err = kedge_compute_blend(&p->layout, models, weight, n->groups, file.sink, p->d);
    err = kedgei_file_end(&file, err, &met, p->d);
    for (uint32_t g = 0; g < n->groups && !err; g++) {
        n->models[g] = met;
    }
    memset(n->since, 0, sizeof n->since);
    return err;
}

int kedgei_protocol_meet(struct kedgei_protocol *p)
{
    bool due = kedge_job_spec_has_edges(&p->job) && kedge_job_spec_meets(&p->job, p->next.round);
    return due ? meet(p) : KEDGE_OK;
}
