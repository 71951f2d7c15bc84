/* Jobs that share only a part of the model (FedPer, FedRep): the shared tensors come and go as the job's
 * model, the others are the site's head. For the trainer both are one model; here it is put together before
 * and taken apart after, so that a trainer knows nothing of it. */
#include "client/daemon/update/head.h"

#include <string.h>

#include "client/daemon/update/parts.h"
#include "common/base/try.h"

/* The head of the model as the job's seed makes it. All weights are drawn in their order, those of the shared
 * tensors are passed over. */
static void draw_head(const struct kedge_client_work *w, float *ret)
{
    float passed[1024];
    struct kedge_model_weights weights;
    kedge_model_weights_init(&weights, &w->spec->model, w->spec->seed);
    for (uint32_t i = 0; i < w->whole.count; i++) {
        const bool travels = kedge_part_has(&w->spec->share, &w->whole, i);
        for (uint64_t left = w->whole.tensors[i].count, n; left > 0; left -= n) {
            const uint64_t most =
                travels && left > sizeof passed / sizeof *passed ? sizeof passed / sizeof *passed : left;
            n = kedge_model_weights_next(&weights, travels ? passed : ret, (size_t)most);
            KEDGE_ASSERT(n > 0);
            ret += travels ? 0 : n;
        }
    }
}

/* A head that is new is that of the whole model as the job's seed makes it, the same at every site: the
 * site's first update is then what it would be in a job that shares everything. */
static int join(struct kedge_client_work *w, const char *shared_path, struct kedge_client_head *h,
                struct kedge_diag *d)
{
    struct kedge_client_model shared;
    KEDGE_TRY(kedge_client_model_open(&w->layout, shared_path, &shared, d));
    if (h->kept.is_new) {
        draw_head(w, h->kept.values);
    }
    int err = kedge_client_model_write(
        w, true, (struct kedge_client_source){.shared = shared.values, .rest = h->kept.values}, h->base, d);
    kedge_client_model_close(&shared);
    return err;
}

int kedge_client_head_open(struct kedge_client_work *w, const struct kedge_id *job,
                           const struct kedge_site_digest *in_force, const char *shared,
                           struct kedge_client_head *ret, struct kedge_diag *d)
{
    struct kedge_client_head h = {.base = ""};
    KEDGE_TRY(kedge_client_work_file(w, "whole", h.base));
    KEDGE_TRY(kedge_client_work_file(w, "whole-trained", h.out));
    KEDGE_TRY(kedge_kept_open_or_begin(w->h->dir, job, "head", in_force,
                                       w->whole.values_count - w->layout.values_count, &h.kept, d));
    int err = join(w, shared, &h, d);
    if (err) {
        kedge_kept_close(&h.kept);
        return err;
    }
    *ret = h;
    return KEDGE_OK;
}

int kedge_client_head_split(struct kedge_client_work *w, struct kedge_client_head *h, const char *shared_path,
                            struct kedge_diag *d)
{
    struct kedge_client_model whole;
    uint8_t *head = h->kept.values;
    KEDGE_TRY(kedge_client_model_open(&w->whole, h->out, &whole, d));
    for (uint32_t i = 0; i < w->whole.count; i++) {
        const struct kedge_tensor *t = &w->whole.tensors[i];
        if (!kedge_part_has(&w->spec->share, &w->whole, i)) {
            memcpy(head, whole.values + t->offset, (size_t)t->count * sizeof(float));
            head += t->count * sizeof(float);
        }
    }
    int err = kedge_client_model_write(w, false, (struct kedge_client_source){.whole = whole.values},
                                       shared_path, d);
    kedge_client_model_close(&whole);
    return err;
}

void kedge_client_head_close(struct kedge_client_head *h)
{
    kedge_kept_close(&h->kept);
}
