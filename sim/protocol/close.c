/* Closing a round by what closes those of jobs (round/close), with the files of the run. It writes
 * `next` and nothing else, so that it may be asked again. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/aggregate.h"
#include "sim/protocol/impl.h"

void kedgei_protocol_at(const struct kedgei_protocol *p, const struct kedge_digest *update,
                        char path[KEDGE_PATH_MAX], struct kedge_blob_at *ret)
{
    kedgei_files_path(&p->files, update, path);
    *ret = (struct kedge_blob_at){.path = path, .digest = kedgei_protocol_hash(update)};
}

/* ---- files ---- */

static int vector_of(void *arg, const struct kedge_hash *digest, char path[KEDGE_PATH_MAX],
                     struct kedge_blob_at *ret_at)
{
    const struct kedge_digest d = kedgei_protocol_digest(digest);
    kedgei_protocol_at(arg, &d, path, ret_at);
    return KEDGE_OK;
}

static int update_of(void *arg, uint32_t site, const struct kedge_hash *digest, char ret[KEDGE_PATH_MAX],
                     struct kedge_blob_at *ret_at)
{
    const struct kedgei_protocol *p = arg;
    struct kedge_digest d = kedgei_protocol_digest(digest);
    (void)site;
    kedgei_protocol_at(p, &d, ret, ret_at);
    return KEDGE_OK;
}

static int facts_of(void *arg, const struct kedge_close_input *in, struct kedge_strategy_input *ret,
                    struct kedge_diag *d)
{
    const struct kedgei_update *u = kedgei_protocol_update(arg, &in->in.update);
    (void)d;
    ret->steps = u ? u->steps : 1;
    ret->loss = u ? u->base_loss : 0;
    return KEDGE_OK;
}

static int begin(void *arg, uint64_t len, struct kedge_close_file *ret, struct kedge_diag *d)
{
    struct kedgei_protocol *p = arg;
    struct kedgei_file *file = kedge_mem_new(1, sizeof *file);
    (void)len;
    int err = file ? kedgei_file_begin(&p->files, p->file_count++, file, d) : KEDGE_E_NOMEM;
    if (err) {
        kedge_mem_free(file);
        return err;
    }
    *ret = (struct kedge_close_file){file, file->sink};
    return KEDGE_OK;
}

static int end(void *arg, struct kedge_close_file *file, int err, struct kedge_hash *ret,
               struct kedge_diag *d)
{
    struct kedge_digest digest;
    (void)arg;
    err = kedgei_file_end(file->writer, err, &digest, d);
    kedge_mem_free(file->writer);
    if (!err) {
        *ret = kedgei_protocol_hash(&digest);
    }
    return err;
}

static struct kedge_close_host files_of(struct kedgei_protocol *p)
{
    return (struct kedge_close_host){p, vector_of, update_of, facts_of, begin, end, NULL};
}

/* ---- newcomers, and sites that go by their last model ---- */

int kedgei_protocol_nearest(void *arg, uint32_t site, const struct kedge_digest *update, uint32_t *ret_group)
{
    struct kedgei_protocol *p = arg;
    const struct kedge_close_host files = files_of(p);
    struct kedge_place place = {
        .site = site, .initial = kedgei_protocol_hash(&p->initial), .count = p->at.groups};
    double similarity;
    uint32_t group = 0;
    if (update) {
        place.update = kedgei_protocol_hash(update);
    } else {
        place.update = p->trained[site].update;
        place.base = p->trained[site].base;
    }
    int err = kedge_close_place(&files, &p->job, &p->layout, &p->at, &place, &group, &similarity, p->d);
    *ret_group = group;
    p->err = p->err ? p->err : err;
    return err;
}

/* ---- rounds ---- */

static void put_inputs(const struct kedgei_protocol *p, const struct sim_close *c, struct kedge_close *ret)
{
    for (uint32_t i = 0; i < c->input_count; i++) {
        const struct sim_close_input *in = &c->inputs[i];
        const struct kedgei_update *u = kedgei_protocol_update(p, &in->update);
        struct kedge_close_input *to = &ret->inputs[ret->input_count++];
        *to = (struct kedge_close_input){.site = in->site,
                                         .tenant = in->tenant,
                                         .place = in->tenant,
                                         .group = c->kind == KEDGE_TASK_PRETRAIN ? 0 : in->group,
                                         .round = in->round,
                                         .former = in->former,
                                         .is_root = in->site >= p->l->n,
                                         .in.update = in->update,
                                         .in.weight = u ? u->samples : 1};
        kedgei_protocol_at(p, &in->update, to->path, &to->file);
    }
    for (uint32_t i = 0; i < c->other_count; i++) {
        const struct sim_close_other *o = &c->others[i];
        ret->others[ret->other_count++] =
            (struct kedge_close_other){.site = o->site,
                                       .former = o->former,
                                       .place = o->tenant,
                                       .input = o->input,
                                       .update = kedgei_protocol_hash(&o->update)};
    }
}

static void put_evaluations(const struct kedgei_protocol *p, const struct sim_close *c,
                            struct kedge_close *ret)
{
    for (uint32_t i = 0; i < c->evaluated_count && p->found; i++) {
        const uint32_t site = c->evaluated[i];
        const struct kedgei_found *f = &p->found[site];
        if (site < p->l->n && f->has && f->round == p->at.round) {
            ret->evaluations[ret->evaluation_count++] =
                (struct kedge_close_evaluation){.site = site,
                                                .place = p->w->devices[site].tenant,
                                                .group = f->group,
                                                .samples = f->samples,
                                                .loss = f->loss,
                                                .trial_loss = f->trial_loss,
                                                .personal_loss = f->personal_loss};
        }
    }
}

/* A round that keeps the models computes nothing; one that forms groups has updates of another kind than one
 * that trains. */
static int compute(struct kedge_close *k, const struct sim_close *c)
{
    if (c->keeps) {
        kedge_close_keep(k);
        return KEDGE_OK;
    }
    if (c->kind == KEDGE_TASK_PRETRAIN) {
        return kedge_close_pretrain(k);
    }
    KEDGE_TRY(kedge_close_weigh(k));
    return kedge_close_train(k);
}

static int close_round(struct kedgei_protocol *p, const struct sim_close *c)
{
    struct kedge_close k = {.host = files_of(p),
                            .spec = &p->job,
                            .layout = &p->layout,
                            .limit = p->limit,
                            .initial = kedgei_protocol_hash(&p->initial),
                            .result = &p->next.r,
                            .inputs = kedge_mem_new((size_t)c->input_count + 1, sizeof *k.inputs),
                            .others = kedge_mem_new((size_t)c->other_count + 1, sizeof *k.others),
                            .evaluations =
                                kedge_mem_new((size_t)c->evaluated_count + 1, sizeof *k.evaluations),
                            .d = p->d};
    int err = k.inputs && k.others && k.evaluations ? KEDGE_OK : KEDGE_E_NOMEM;
    p->file_count = 0;
    *k.result = (struct kedge_round_result){.round = c->round, .kind = c->kind, .kept = c->keeps};
    kedge_close_begin(&p->at, k.result);
    if (!err) {
        put_inputs(p, c, &k);
        put_evaluations(p, c, &k);
    }
    if (!err) {
        err = compute(&k, c);
    }
    for (size_t i = 0; i < k.input_count; i++) {
        p->next.weights[i] = k.inputs[i].left_out ? 0 : k.inputs[i].weight;
    }
    kedge_mem_free(k.inputs);
    kedge_mem_free(k.others);
    kedge_mem_free(k.evaluations);
    return err;
}

/* For the world, and for what is told of the round. */
static void take_result(struct kedgei_protocol *p, struct sim_close *c)
{
    struct kedgei_close *n = &p->next;
    c->aggregates = c->kind == KEDGE_TASK_PRETRAIN ? n->r.groups : c->model_count;
    c->model_count = n->r.groups;
    c->regroup = n->r.regroup;
    for (uint32_t g = 0; g < n->r.groups; g++) {
        c->tries = c->tries || n->r.tried_with[g] > 0;
    }
    for (uint32_t g = 0; g < n->r.groups; g++) {
        c->models[g] = kedgei_protocol_digest(&n->r.after[g]);
    }
    for (uint32_t i = 0; i < n->r.assigned_count; i++) {
        c->given[n->r.assigned_sites[i]] = n->r.assigned_groups[i];
    }
    memcpy(n->assigned, c->given, p->sites * sizeof *n->assigned);
    n->input_count = c->input_count;
    for (uint32_t i = 0; i < c->input_count; i++) {
        n->inputs[i] = c->inputs[i].update;
    }
}

int kedgei_protocol_close(void *arg, struct sim_close *c)
{
    struct kedgei_protocol *p = arg;
    struct kedge_round_result *r = &p->next.r;
    int err = close_round(p, c);
    if (!err) {
        take_result(p, c);
    } else { /* the coordinator would try again for ever what is not for the job to answer for */
        bool is_ours = kedge_err_class(err) != KEDGE_CLASS_REJECT;
        p->err = p->err || !is_ours ? p->err : err;
        p->w->stopped = p->w->stopped || is_ours;
    }
    kedge_mem_free(r->assigned_sites);
    kedge_mem_free(r->assigned_groups);
    r->assigned_sites = r->assigned_groups = NULL;
    return err;
}
