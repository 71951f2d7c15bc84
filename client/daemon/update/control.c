/* SCAFFOLD's control variates at a site (Karimireddy et al. 2020, option II): the site's own c_k is kept in
 * integers (kept.h), the server's c comes with each task, the trainer is given their difference, and the
 * change of c_k goes into the update after the change of the model.
 *
 * Unlike the other kept vectors this one is never begun anew when it is lost: the server's c is the mean of
 * what all sites' updates have added, and a site that began at 0 again would leave its old part in that mean
 * for ever. */
#include "client/daemon/update/control.h"

#include "client/daemon/update/variate.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"

static int open_own(struct kedge_client_work *w, const struct kedge_id *job,
                    const struct kedge_site_digest *in_force, struct kedge_client_control *c,
                    struct kedge_diag *d)
{
    int err = kedge_kept_open(w->h->dir, job, "control", in_force, w->layout.values_count, &c->kept, d);
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(
            d, KEDGE_E_CORRUPT,
            "%s/kept/%s/control: the control variate that belongs to this site's last update "
            "is not there; without it the site's updates would bend the job",
            w->h->dir, job->s);
        (void)kedge_diag_hint(d, "restore the folder kept/, or leave the job");
        return KEDGE_E_CORRUPT;
    }
    c->own = err ? NULL : c->kept.values;
    return err;
}

/* ---- files of tensors ---- */

static int open_server(struct kedge_client_work *w, const struct kedge_site_digest *digest,
                       struct kedge_client_control *c, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_layout expected, got;
    uint64_t start = 0;
    KEDGE_TRY(kedge_client_work_path(w, "control", digest, path));
    KEDGE_TRY(kedge_map_open(path, &c->map, d));
    KEDGE_TRY(kedge_job_spec_control_layout(&w->layout, &expected, d));
    struct kedge_view all = kedge_view_of(c->map.ptr, c->map.len);
    int err = kedge_safetensors_read(all, all.len, KEDGE_SAFETENSORS_CANONICAL, &got, &start, d);
    if (!err) {
        err = kedge_layout_check_same(&expected, &got, KEDGE_DTYPE_F32, d);
        kedge_layout_deinit(&got);
    }
    kedge_layout_deinit(&expected);
    if (err) {
        return kedge_diag_wrap(d, err, "%s", path);
    }
    c->server = (const float *)(const void *)(c->map.ptr + start);
    return KEDGE_OK;
}

static int put_drift(const struct kedge_client_work *w, const struct kedge_client_control *c, int fd,
                     struct kedge_view header, float tile[KEDGE_CONTROL_TILE])
{
    KEDGE_TRY(kedge_fd_write(fd, header));
    for (uint64_t first = 0, n; first < c->kept.count; first += n) {
        n = c->kept.count - first < KEDGE_CONTROL_TILE ? c->kept.count - first : KEDGE_CONTROL_TILE;
        kedge_variate_drift(w->spec, c->own + first, c->server ? c->server + first : NULL, n, tile);
        KEDGE_TRY(kedge_fd_write(fd, kedge_view_of(tile, (size_t)n * sizeof *tile)));
    }
    return KEDGE_OK;
}

/* The trainer's only view of variates is c_k − c, in the units of the model: it needs to know nothing of
 * integers or of the server. */
static int write_drift(struct kedge_client_work *w, struct kedge_client_control *c, struct kedge_diag *d)
{
    struct kedge_buf header;
    int fd = -1;
    KEDGE_TRY(kedge_client_work_file(w, "drift", c->drift));
    float *tile = kedge_mem_new(KEDGE_CONTROL_TILE, sizeof *tile);
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    int err = tile ? kedge_safetensors_header(&w->layout, KEDGE_DTYPE_F32, &header) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_client_reuse_begin(c->drift, &fd);
    }
    if (!err) {
        err = put_drift(w, c, fd, kedge_buf_view(&header), tile);
        int end_err = kedge_client_reuse_end(fd, err ? 0 : header.len + c->kept.count * sizeof *tile);
        err = err ? err : end_err;
    }
    kedge_buf_deinit(&header);
    kedge_mem_free(tile);
    return err && !d->text[0] ? kedge_diag_set(d, err, "%s: %s", c->drift, kedge_strerror(err)) : err;
}

int kedge_client_control_open(struct kedge_client_work *w, const struct kedge_site_task *t,
                              const struct kedge_site_digest *in_force, struct kedge_client_control *ret,
                              struct kedge_diag *d)
{
    struct kedge_client_control c = {.own = NULL};
    int err = open_own(w, &t->job, in_force, &c, d);
    if (!err && t->control_len > 0) {
        err = open_server(w, &t->control, &c, d);
    }
    if (!err) {
        err = write_drift(w, &c, d);
    }
    if (err) {
        kedge_client_control_close(&c);
        return err;
    }
    *ret = c;
    return KEDGE_OK;
}

void kedge_client_control_close(struct kedge_client_control *c)
{
    kedge_kept_close(&c->kept);
    if (c->map.ptr) {
        kedge_map_close(&c->map);
    }
    *c = (struct kedge_client_control){.own = NULL};
}

int kedge_client_control_change(const struct kedge_job_spec *spec, struct kedge_client_control *c,
                                const float *base, const float *out, uint64_t steps, uint64_t first, size_t n,
                                int32_t *q, struct kedge_diag *d)
{
    size_t bad = 0;
    int err = kedge_variate_change(spec, c->server ? c->server + first : NULL, base, out, steps, n,
                                   c->own + first, q, &bad);
    if (err == KEDGE_E_NOMEM) {
        return err;
    }
    return err ? kedge_diag_set(d, err,
                                "control variate: value %llu: %s; a larger \"bound\" or learning rate "
                                "may help",
                                (unsigned long long)(first + bad), kedge_strerror(err))
               : KEDGE_OK;
}
