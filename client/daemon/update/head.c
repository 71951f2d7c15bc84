/* Jobs that share only a part of the model (FedPer, FedRep): the shared tensors come and go as the job's
 * model, the others are the site's head. For the trainer both are one model; here it is put together before
 * and taken apart after, so that a trainer knows nothing of it. */
#include "client/daemon/update/head.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"

static int read_values(const struct kedge_layout *layout, const char *path, float *ret, struct kedge_diag *d)
{
    struct kedge_map map;
    struct kedge_layout got;
    uint64_t start = 0;
    KEDGE_TRY(kedge_map_open(path, &map, d));
    int err = kedge_safetensors_read(kedge_view_of(map.ptr, map.len), map.len, KEDGE_SAFETENSORS_CANONICAL,
                                     &got, &start, d);
    if (!err) {
        err = kedge_layout_check_same(layout, &got, KEDGE_DTYPE_F32, d);
        kedge_layout_deinit(&got);
    }
    if (!err) {
        memcpy(ret, map.ptr + start, (size_t)layout->values_count * sizeof *ret);
    }
    kedge_map_close(&map);
    return err ? kedge_diag_wrap(d, err, "%s", path) : KEDGE_OK;
}

/* The file is used again from task to task (kedge_client_reuse_begin), so one that was not written whole is
 * cut to 0 bytes: what an earlier task left in it must not be taken for this one's model. */
static int put_values(struct kedge_view header, struct kedge_view values, const char *path)
{
    int fd = -1;
    KEDGE_TRY(kedge_client_reuse_begin(path, &fd));
    int err = kedge_fd_write(fd, header);
    if (!err) {
        err = kedge_fd_write(fd, values);
    }
    int end_err = kedge_client_reuse_end(fd, err ? 0 : header.len + values.len);
    return err ? err : end_err;
}

static int write_values(const struct kedge_layout *layout, const float *values, const char *path,
                        struct kedge_diag *d)
{
    struct kedge_buf header;
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    int err = kedge_safetensors_header(layout, KEDGE_DTYPE_F32, &header);
    if (!err) {
        err = put_values(kedge_buf_view(&header),
                         kedge_view_of(values, (size_t)layout->values_count * sizeof *values), path);
    }
    kedge_buf_deinit(&header);
    return err && !d->text[0] ? kedge_diag_set(d, err, "%s: %s", path, kedge_strerror(err)) : err;
}

static float *new_values(const struct kedge_layout *layout, struct kedge_diag *d)
{
    float *values = kedge_mem_new((size_t)layout->values_count, sizeof *values);
    if (!values) {
        (void)kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for a model of %llu values",
                             (unsigned long long)layout->values_count);
    }
    return values;
}

/* A head that is new is that of the whole model as the job's seed makes it, the same at every site: the
 * site's first update is then what it would be in a job that shares everything. */
static int join(struct kedge_client_work *w, const char *shared_path, struct kedge_client_head *h,
                struct kedge_diag *d)
{
    const struct kedge_part *part = &w->spec->share;
    float *whole KEDGE_CLEANUP(kedge_mem_release) = new_values(&w->whole, d),
                 *shared KEDGE_CLEANUP(kedge_mem_release) = whole ? new_values(&w->layout, d) : NULL;
    KEDGE_TRY(shared ? read_values(&w->layout, shared_path, shared, d) : KEDGE_E_NOMEM);
    if (h->kept.is_new) {
        kedge_model_init(&w->spec->model, w->spec->seed, whole);
        kedge_part_take(part, &w->whole, false, whole, h->kept.values);
    }
    kedge_part_put(part, &w->whole, false, h->kept.values, whole);
    kedge_part_put(part, &w->whole, true, shared, whole);
    return write_values(&w->whole, whole, h->base, d);
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
    const struct kedge_part *part = &w->spec->share;
    float *whole KEDGE_CLEANUP(kedge_mem_release) = new_values(&w->whole, d),
                 *shared KEDGE_CLEANUP(kedge_mem_release) = whole ? new_values(&w->layout, d) : NULL;
    KEDGE_TRY(shared ? read_values(&w->whole, h->out, whole, d) : KEDGE_E_NOMEM);
    kedge_part_take(part, &w->whole, false, whole, h->kept.values);
    kedge_part_take(part, &w->whole, true, whole, shared);
    return write_values(&w->layout, shared, shared_path, d);
}

void kedge_client_head_close(struct kedge_client_head *h)
{
    kedge_kept_close(&h->kept);
}
