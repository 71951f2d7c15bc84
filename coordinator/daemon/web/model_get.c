/* Pieces of models for operators and auditors. A job's models are those that job.model names, and
 * no other blob is handed out: while the job runs those that are in use, afterwards those of its
 * last step, which a worker reads from the record. What is released waits for its cosignatures here
 * as it does there. */
#include "coordinator/daemon/web/model_get.h"

#include <string.h>

#include "common/base/mem.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/ended_job.h"
#include "coordinator/daemon/rounds/release.h"
#include "coordinator/daemon/sites/blobs.h"
#include "coordinator/daemon/sites/requests.h"

enum { IS_GIVEN = KEDGE_GROUPS_MAX, IS_NONE }; /* IS_GIVEN: the spec or the base, not made by the job */

struct find_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_id job;
    struct kedge_hash digest;
    uint64_t offset;
    uint32_t max;
    uint32_t place; /* group, IS_GIVEN or IS_NONE */
    int err;
    struct kedge_diag diag;
};

static uint32_t place_of(const struct kedge_hash *digest, const struct kedge_hash *models, uint32_t count)
{
    for (uint32_t g = 0; g < count; g++) {
        if (kedge_hash_eq(digest, &models[g])) {
            return g;
        }
    }
    return IS_NONE;
}

/* Both the loop's state and the core's are asked: while a round closes the one is ahead of the
 * other. */
static bool is_in_use(struct kedge_host *h, const struct kedge_job *job, const struct kedge_hash *digest)
{
    struct kedge_coord_job_view view;
    struct kedge_hash model;
    bool found = kedge_hash_eq(digest, &job->spec_digest)
                 || (kedge_job_spec_has_base(&job->spec) && kedge_hash_eq(digest, &job->spec.initial_model));
    for (uint32_t g = 0; !found && g < job->at.groups; g++) {
        found = kedge_hash_eq(digest, &job->at.group[g].model);
    }
    found = found || place_of(digest, job->tested.told, job->tested.told_count) != IS_NONE;
    bool known = kedge_host_job_view(h, job, &view);
    for (uint32_t g = 0; known && !found && g < view.model_count; g++) {
        memcpy(model.b, view.models[g].b, sizeof model.b);
        found = kedge_hash_eq(digest, &model);
    }
    return found;
}

static void find_run(struct kedge_host *h, struct kedge_work *work)
{
    struct find_work *w = (struct find_work *)work;
    struct kedge_ended_job job;
    struct kedge_hash models[KEDGE_GROUPS_MAX];
    uint32_t count = 0;
    w->err = kedge_ended_job_find(h, &w->job, &job, &w->diag);
    if (w->err) {
        return;
    }
    const bool is_base =
        kedge_job_spec_has_base(job.spec) && kedge_hash_eq(&w->digest, &job.spec->initial_model);
    if (is_base || kedge_hash_eq(&w->digest, &job.record.spec)) {
        w->place = IS_GIVEN;
    } else {
        w->err = kedge_ended_job_models(h, &job, models, &count, &w->diag);
        w->place = place_of(&w->digest, models, count);
    }
    kedge_ended_job_deinit(&job);
}

static void find_done(struct kedge_host *h, struct kedge_item *item)
{
    struct find_work *w = (struct find_work *)item;
    uint64_t index;
    int err = w->err;
    if (!err && w->place == IS_NONE) {
        err = KEDGE_E_NOT_FOUND;
    } else if (!err && w->place != IS_GIVEN) {
        err = kedge_host_release_find(h, &w->job, w->place, 0, &index, &w->diag);
        err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err; /* it ended without a release */
    }
    if (!err) {
        kedge_host_blob_send(h, w->req, &w->digest, w->offset, w->max);
    } else if (err == KEDGE_E_NOT_FOUND) {
        kedge_host_reply_error(w->req, err, 0, "no such blob");
    } else {
        kedge_host_reply_error(w->req, err, 0, w->diag.text[0] ? w->diag.text : kedge_strerror(err));
    }
    kedge_mem_free(w);
}

void kedge_host_model_get(struct kedge_host *h, struct kedge_net_request *req,
                          const struct kedge_msg_blob_get *get)
{
    const struct kedge_job *job = kedge_host_job_find(h, &get->job, false);
    struct kedge_hash digest;
    memcpy(digest.b, get->digest, sizeof digest.b);
    if (job && is_in_use(h, job, &digest)) {
        kedge_host_blob_send(h, req, &digest, get->offset, get->max);
        return;
    }
    struct find_work *w = job ? NULL : kedge_mem_new(1, sizeof *w);
    if (!w) {
        kedge_host_reply_error(req, job ? KEDGE_E_NOT_FOUND : KEDGE_E_NOMEM, 0,
                               job ? "no such blob" : "out of memory");
        return;
    }
    *w = (struct find_work){.work = {.item = {find_done}, .run = find_run},
                            .req = req,
                            .job = get->job,
                            .digest = digest,
                            .offset = get->offset,
                            .max = get->max,
                            .place = IS_NONE};
    kedge_host_work(h, &w->work);
}
