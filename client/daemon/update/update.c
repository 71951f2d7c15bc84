/* What a site hands out: the integer update of a training and the signed statements about it. On the work
 * thread.
 *
 * Updates are integers in units of 2^-scale because sums of integers are the same in any order and on any
 * machine, so that an auditor gets the coordinator's aggregate bit for bit. The update file is not synced:
 * were it lost in a power cut, the coordinator would not get it, and this site would sit the round out
 * (struct kedge_site_signed). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "aggregation/quantise.h"
#include "client/daemon/energy/energy.h"
#include "client/daemon/host.h"
#include "client/daemon/update/control.h"
#include "client/daemon/update/kept.h"
#include "client/daemon/update/parts.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"

enum { TILE = 65536 };

/* ---- the update ---- */

static int put_bytes(int fd, struct kedge_hasher *hasher, struct kedge_view v)
{
    kedge_hasher_update(hasher, v);
    return kedge_fd_write(fd, v);
}

/* What training has done: two models, and the change of the control variate, where the job has one. */
struct training {
    const float *base, *out;
    struct kedge_client_control *control; /* NULL: none */
    struct kedge_kept *residual;          /* NULL: updates of this job come whole */
    uint64_t steps;
};

/* Which value of which tensor went how far, beyond what. Layouts keep tensors in one row of values, so the
 * place is found by counting. */
static int say_far(const struct kedge_client_work *w, uint64_t at, double change, int err,
                   struct kedge_diag *d)
{
    const struct kedge_tensor *tensors = w->layout.tensors;
    uint32_t i = 0;
    while (i + 1 < w->layout.count && at >= tensors[i].count) {
        at -= tensors[i++].count;
    }
    if (err != KEDGE_E_BOUND) {
        return kedge_diag_set(d, err, "update: tensor \"%s\", value %llu: %s", tensors[i].name,
                              (unsigned long long)at, kedge_strerror(err));
    }
    (void)kedge_diag_set(d, err,
                         "update: tensor \"%s\", value %llu changed by %g, but the job's \"bound\" is %g; "
                         "training went too far from its base",
                         tensors[i].name, (unsigned long long)at, change, w->spec->bound);
    return kedge_diag_hint(d, "a lower \"learning_rate\", or a higher \"bound\" with a lower \"scale\"");
}

/* Values first … first + n − 1 of the change of the model, or of the control variate. */
static int quantise(struct kedge_client_work *w, const struct training *t, bool control, uint64_t first,
                    size_t n, int32_t *tile, struct kedge_diag *d)
{
    size_t bad = 0;
    if (control) {
        return kedge_client_control_change(w->spec, t->control, t->base + first, t->out + first, t->steps,
                                           first, n, tile, d);
    }
    int err = kedge_quantise(t->base + first, t->out + first, n, w->spec->scale, w->spec->bound, tile, &bad);
    return err ? say_far(w, first + bad, (double)t->out[first + bad] - (double)t->base[first + bad], err, d)
               : KEDGE_OK;
}

static int put_parts(struct kedge_client_work *w, const struct training *t, int fd,
                     struct kedge_hasher *hasher, int32_t tile[TILE], struct kedge_diag *d)
{
    const uint64_t values = w->layout.values_count;
    const int parts = t->control ? 2 : 1;
    for (int part = 0; part < parts; part++) {
        for (uint64_t i = 0; i < values; i += TILE) {
            size_t n = values - i < TILE ? (size_t)(values - i) : TILE;
            KEDGE_TRY(quantise(w, t, part == 1, i, n, tile, d));
            KEDGE_TRY(put_bytes(fd, hasher, kedge_view_of(tile, n * sizeof *tile)));
        }
    }
    return KEDGE_OK;
}

/* q = quantise(out − base) by tiles into fd; the digest is that of the whole file. With a control variate the
 * file has two parts of the same shape, the model's change and then the variate's. The digest is computed
 * while writing, so a large update is never read again, nor held in memory as a whole. */
static int write_update(struct kedge_client_work *w, const struct training *t, int fd, struct kedge_hash *ret,
                        uint64_t *ret_len, struct kedge_diag *d)
{
    struct kedge_hasher *hasher;
    struct kedge_layout layout;
    struct kedge_buf header;
    const uint64_t values = w->layout.values_count, parts = t->control ? 2 : 1;
    KEDGE_TRY(kedge_job_spec_update_layout(w->spec, &w->layout, &layout, d));
    int err = kedge_hasher_new(&hasher);
    if (err) {
        kedge_layout_deinit(&layout);
        return err;
    }
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    int32_t *tile = kedge_mem_new(TILE, sizeof *tile);
    err = tile ? kedge_safetensors_header(&layout, KEDGE_DTYPE_I32, &header) : KEDGE_E_NOMEM;
    if (!err) {
        err = put_bytes(fd, hasher, kedge_buf_view(&header));
    }
    if (!err) {
        err = put_parts(w, t, fd, hasher, tile, d);
    }
    if (!err) {
        kedge_hasher_final(hasher, ret);
        *ret_len = header.len + parts * values * sizeof(int32_t);
    }
    kedge_mem_free(tile);
    kedge_buf_deinit(&header);
    kedge_hasher_free(hasher);
    kedge_layout_deinit(&layout);
    return err;
}

/* The first pass: the sum of change and residual, in the residual's place. */
static int add_residual(struct kedge_client_work *w, const struct training *t, struct kedge_diag *d)
{
    const uint64_t values = w->layout.values_count;
    int32_t tile[KEDGE_COMPACT_BLOCK], *whole = t->residual->values;
    for (uint64_t i = 0, n; i < values; i += n) {
        n = values - i < KEDGE_COMPACT_BLOCK ? values - i : KEDGE_COMPACT_BLOCK;
        KEDGE_TRY(quantise(w, t, false, i, (size_t)n, tile, d));
        kedge_compact_add(&w->spec->compression, whole + i, (size_t)n, tile);
        memcpy(whole + i, tile, (size_t)n * sizeof *tile);
    }
    return KEDGE_OK;
}

/* The second: what is sent goes to the file, what is not stays in the residual. */
static int put_compact(struct kedge_client_work *w, const struct training *t, int fd,
                       struct kedge_hasher *hasher, uint64_t *ret_len, struct kedge_diag *d)
{
    const struct kedge_compact *c = &w->spec->compression;
    const uint64_t values = w->layout.values_count;
    uint8_t block[KEDGE_COMPACT_BLOCK_BYTES_MAX];
    int32_t *whole = t->residual->values, limit = 0;
    struct kedge_compact_plan plan;
    uint64_t len = KEDGE_COMPACT_HEAD;
    KEDGE_TRY(kedge_scale_limit(w->spec->bound, w->spec->scale, &limit));
    KEDGE_TRY(add_residual(w, t, d));
    KEDGE_TRY(kedge_compact_plan(c, whole, (size_t)values, &plan));
    kedge_compact_head_write(c->kind, values, block);
    KEDGE_TRY(put_bytes(fd, hasher, kedge_view_of(block, KEDGE_COMPACT_HEAD)));
    for (uint64_t i = 0, n; i < values; i += n) {
        n = values - i < KEDGE_COMPACT_BLOCK ? values - i : KEDGE_COMPACT_BLOCK;
        size_t some = kedge_compact_block_write(&plan, whole + i, (size_t)n, limit, block);
        KEDGE_TRY(put_bytes(fd, hasher, kedge_view_of(block, some)));
        len += some;
    }
    *ret_len = len;
    return KEDGE_OK;
}

/* The same with what earlier updates have left, as far as it is sent; `residual` has the rest then (error
 * feedback). It takes two passes over the values: the plan of what is sent needs all of them, and so the sum
 * of change and residual is kept in `residual` in between. `limit` keeps a sent value within the job's bound,
 * however much has piled up. */
static int write_compact(struct kedge_client_work *w, const struct training *t, int fd,
                         struct kedge_hash *ret, uint64_t *ret_len, struct kedge_diag *d)
{
    struct kedge_hasher *hasher;
    KEDGE_TRY(kedge_hasher_new(&hasher));
    int err = put_compact(w, t, fd, hasher, ret_len, d);
    if (!err) {
        kedge_hasher_final(hasher, ret);
    }
    kedge_hasher_free(hasher);
    return err;
}

/* Written under a fixed name and renamed to its digest when it is whole: a file whose name is a digest is
 * never a partial one in this process. After a power cut it may be; then the upload's digest does not hold,
 * and the round goes on without it. */
int kedge_client_make_update(struct kedge_client_work *w, const char *base_path, const char *out_path,
                             struct kedge_client_control *control, struct kedge_kept *residual,
                             uint64_t steps, struct kedge_site_result *r, struct kedge_diag *d)
{
    struct kedge_client_model base, out;
    char temporary[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    struct kedge_hash digest;
    int fd = -1;
    KEDGE_TRY(kedge_client_work_file(w, "update.part", temporary));
    KEDGE_TRY(kedge_client_model_open(&w->layout, base_path, &base, d));
    int err = kedge_client_model_open(&w->layout, out_path, &out, d);
    if (err) {
        kedge_client_model_close(&base);
        return err;
    }
    err = kedge_client_reuse_begin(temporary, &fd);
    if (!err) {
        const struct training t = {(const float *)(const void *)base.values,
                                   (const float *)(const void *)out.values, control, residual, steps};
        err = residual ? write_compact(w, &t, fd, &digest, &r->update_len, d)
                       : write_update(w, &t, fd, &digest, &r->update_len, d);
        int end_err = kedge_client_reuse_end(fd, err ? 0 : r->update_len);
        err = err ? err : end_err;
    }
    kedge_client_model_close(&base);
    kedge_client_model_close(&out);
    if (!err) {
        memcpy(r->update.b, digest.b, sizeof digest.b);
        err = kedge_client_work_path(w, "update", &r->update, path);
    }
    if (!err && rename(temporary, path) != 0) {
        err = kedge_errno(errno);
    }
    return err && !d->text[0] ? kedge_diag_set(d, err, "%s: %s", temporary, kedge_strerror(err)) : err;
}

/* ---- statements ---- */

static int put_envelope(struct kedge_client_work *w, const struct kedge_statement *st,
                        struct kedge_site_result *r, struct kedge_site_envelope *ret, struct kedge_diag *d)
{
    struct kedge_buf text;
    struct kedge_hash digest;
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    int err = kedge_statement_sign(st, &w->h->statement_key, &text, d);
    char *copy = err ? NULL : kedge_mem_new(text.len + 1, 1);
    if (copy) {
        kedge_sha256(kedge_buf_view(&text), &digest);
        memcpy(r->envelope.b, digest.b, sizeof digest.b);
        memcpy(copy, text.ptr, text.len);
        *ret = (struct kedge_site_envelope){r->envelope, copy, text.len};
    }
    kedge_buf_deinit(&text);
    return err ? err : copy ? KEDGE_OK : KEDGE_E_NOMEM;
}

/* What was really used, and what it took. */
static void put_energy(struct kedge_st_update *u, const struct kedge_energy_plan *plan)
{
    static const enum kedge_energy_quality quality[] = {KEDGE_ENERGY_MEASURED, KEDGE_ENERGY_MODELLED,
                                                        KEDGE_ENERGY_UNKNOWN};
    u->batch = plan->batch;
    u->learning_rate = plan->learning_rate;
    u->energy_quality = quality[plan->joules.quality];
    u->energy_joules = plan->joules.joules; /* NaN where they are unknown: not stated */
    snprintf(u->energy_how, sizeof u->energy_how, "%s", plan->energy_how);
    snprintf(u->choice, sizeof u->choice, "%s", plan->choice);
}

int kedge_client_sign_update(struct kedge_client_work *w, const struct kedge_site_task *t,
                             const struct kedge_energy_plan *plan, const struct kedge_metrics *m,
                             struct kedge_site_result *r, struct kedge_site_envelope *ret_envelope,
                             struct kedge_diag *d)
{
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    KEDGE_TRY_MEM(st);
    struct kedge_st_update *u = &st->u.update;
    st->kind = KEDGE_ST_UPDATE;
    memcpy(st->subject.b, r->update.b, sizeof st->subject.b);
    u->tenant = w->h->config.tenant;
    u->site = w->h->config.site;
    u->job = t->job;
    u->round = t->round;
    u->group = r->group;
    u->update_kind = t->kind == KEDGE_SITE_PRETRAIN ? KEDGE_TRAIN_PRETRAIN : KEDGE_TRAIN_TRAIN;
    memcpy(u->base.b, t->base.b, sizeof u->base.b);
    u->samples = m->samples;
    u->data_samples = t->percent > 0 ? m->data_samples : 0;
    u->steps = m->steps;
    put_energy(u, plan);
    u->seconds = m->seconds;
    u->loss = t->kind == KEDGE_SITE_TRAIN && kedge_job_spec_site_plan(w->spec).sends_loss ? m->base_loss : 0;
    snprintf(u->engine, sizeof u->engine, "%s", m->engine);
    if (kedge_job_spec_asks_classes(w->spec, t->round)) {
        memcpy(u->classes, m->classes, sizeof u->classes);
    }
    return put_envelope(w, st, r, ret_envelope, d);
}

int kedge_client_sign_evaluation(struct kedge_client_work *w, const struct kedge_site_task *t,
                                 const struct kedge_metrics *m, struct kedge_site_result *r,
                                 struct kedge_site_envelope *ret_envelope, struct kedge_diag *d)
{
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    KEDGE_TRY_MEM(st);
    struct kedge_st_evaluation *e = &st->u.evaluation;
    st->kind = KEDGE_ST_EVALUATION;
    memcpy(st->subject.b, t->base.b, sizeof st->subject.b);
    e->tenant = w->h->config.tenant;
    e->site = w->h->config.site;
    e->job = t->job;
    e->round = r->round;
    e->group = r->group;
    e->samples = m->test_samples;
    e->correct = m->test_correct;
    e->loss = m->test_loss;
    if (m->has_personal) {
        e->personal_correct = m->personal_correct;
        e->personal_loss = m->personal_loss;
    }
    if (m->has_trial) {
        memcpy(e->trial.b, t->trial.b, sizeof e->trial.b);
        e->trial_correct = m->trial_correct;
        e->trial_loss = m->trial_loss;
    }
    return put_envelope(w, st, r, ret_envelope, d);
}
