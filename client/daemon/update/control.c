#include "client/daemon/update/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/daemon/update/variate.h"
#include "common/base/mem.h"
#include "common/tensor/safetensors.h"

/* A file: MAGIC, the update's digest, the SHA-256 of the values, their number (big-endian), zeros up to HEAD,
 * the values as int32, little-endian. */
enum { HEAD = 96, MAGIC_LEN = 16, AT_UPDATE = 16, AT_SUM = 48, AT_COUNT = 80 };
static const char magic[MAGIC_LEN + 1] = "kedge control 1\n";

static bool is_zero(const struct kedge_site_digest *digest)
{
    static const struct kedge_site_digest zero;
    return memcmp(digest->b, zero.b, sizeof zero.b) == 0;
}

static int paths_of(const struct kedge_client_work *w, const struct kedge_id *job, char now[KEDGE_PATH_MAX],
                    char next[KEDGE_PATH_MAX])
{
    int err = kedge_client_path(w->h, now, "control/%s", job->s);
    return err ? err : kedge_client_path(w->h, next, "control/%s.next", job->s);
}

/* KEDGE_E_NOT_FOUND: there is no such file, or it goes with another update. */
static int read_own(const char *path, const struct kedge_site_digest *update, uint64_t count, int32_t *ret,
                    struct kedge_diag *d)
{
    struct kedge_map map;
    struct kedge_hash sum;
    if (!kedge_file_exists(path)) {
        return KEDGE_E_NOT_FOUND;
    }
    int err = kedge_map_open(path, &map, d);
    if (err) {
        return err;
    }
    bool whole = map.len == HEAD + count * sizeof *ret && memcmp(map.ptr, magic, MAGIC_LEN) == 0
                 && kedge_load_be64(map.ptr + AT_COUNT) == count;
    if (!whole) {
        err = kedge_diag_set(d, KEDGE_E_CORRUPT, "%s: is no control variate of this job's model", path);
    } else if (memcmp(map.ptr + AT_UPDATE, update->b, sizeof update->b) != 0) {
        err = KEDGE_E_NOT_FOUND;
    } else {
        memcpy(ret, map.ptr + HEAD, (size_t)count * sizeof *ret);
        kedge_sha256(kedge_view_of(ret, (size_t)count * sizeof *ret), &sum);
        if (memcmp(map.ptr + AT_SUM, sum.b, sizeof sum.b) != 0) {
            err = kedge_diag_set(d, KEDGE_E_CORRUPT, "%s: its values are damaged", path);
        }
    }
    kedge_map_close(&map);
    return err;
}

/* The one that goes with the update becomes the file in force, so that the next one can take its place. */
static int find_own(struct kedge_client_work *w, const struct kedge_id *job,
                    const struct kedge_site_digest *update, struct kedge_client_control *c,
                    struct kedge_diag *d)
{
    char now[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX];
    int err = paths_of(w, job, now, next);
    err = err ? err : kedge_client_path(w->h, dir, "control");
    err = err ? err : read_own(next, update, c->count, c->own, d);
    if (!err) {
        err = rename(next, now) == 0 ? kedge_dir_sync(dir) : kedge_errno(errno);
        return err ? kedge_diag_set(d, err, "%s: %s", now, kedge_strerror(err)) : KEDGE_OK;
    }
    if (err == KEDGE_E_NOT_FOUND || err == KEDGE_E_CORRUPT) { /* torn: of an update that never left */
        err = read_own(now, update, c->count, c->own, d);
    }
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(d, KEDGE_E_CORRUPT,
                             "%s: the control variate that goes with this site's last update is not there; "
                             "without it the site's updates would bend the job",
                             now);
        (void)kedge_diag_hint(d, "restore the folder control/, or leave the job");
        return KEDGE_E_CORRUPT;
    }
    return err;
}

/* ---- files of tensors ---- */

static int open_server(struct kedge_client_work *w, const struct kedge_site_digest *digest,
                       struct kedge_client_control *c, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_layout expected, got;
    uint64_t start = 0;
    int err = kedge_client_work_path(w, "control", digest, path);
    err = err ? err : kedge_map_open(path, &c->map, d);
    err = err ? err : kedge_job_spec_control_layout(&w->layout, &expected, d);
    if (err) {
        return err;
    }
    struct kedge_view all = kedge_view_of(c->map.ptr, c->map.len);
    err = kedge_safetensors_read(all, all.len, KEDGE_SAFETENSORS_CANONICAL, &got, &start, d);
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

static int write_drift(struct kedge_client_work *w, struct kedge_client_control *c, struct kedge_diag *d)
{
    struct kedge_buf header;
    float *tile = kedge_mem_new(KEDGE_CONTROL_TILE, sizeof *tile);
    int fd = -1, err = kedge_client_work_file(w, "drift", c->drift);
    uint64_t len = 0;
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    err = err ? err : tile ? kedge_safetensors_header(&w->layout, KEDGE_DTYPE_F32, &header) : KEDGE_E_NOMEM;
    err = err ? err : kedge_client_reuse_begin(c->drift, &fd);
    err = err ? err : kedge_fd_write(fd, kedge_buf_view(&header));
    for (uint64_t first = 0, n; first < c->count && !err; first += n) {
        n = c->count - first < KEDGE_CONTROL_TILE ? c->count - first : KEDGE_CONTROL_TILE;
        kedge_variate_drift(w->spec, c->own + first, c->server ? c->server + first : NULL, n, tile);
        err = kedge_fd_write(fd, kedge_view_of(tile, (size_t)n * sizeof *tile));
    }
    len = err ? 0 : header.len + c->count * sizeof *tile;
    if (fd >= 0) {
        int end_err = kedge_client_reuse_end(fd, len);
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
    struct kedge_client_control c = {.count = w->layout.values_count};
    char dir[KEDGE_PATH_MAX];
    int err = kedge_client_path(w->h, dir, "control");
    err = err ? err : kedge_dir_make(dir, 0700, d);
    c.own = err ? NULL : kedge_mem_new((size_t)c.count, sizeof *c.own);
    if (!err && !c.own) {
        err = kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for a control variate of %llu values",
                             (unsigned long long)c.count);
    }
    err = err || is_zero(in_force) ? err : find_own(w, &t->job, in_force, &c, d);
    err = err || t->control_len == 0 ? err : open_server(w, &t->control, &c, d);
    err = err ? err : write_drift(w, &c, d);
    if (err) {
        kedge_client_control_close(&c);
        return err;
    }
    *ret = c;
    return KEDGE_OK;
}

void kedge_client_control_close(struct kedge_client_control *c)
{
    kedge_mem_free(c->own);
    if (c->map.ptr) {
        kedge_map_close(&c->map);
    }
    *c = (struct kedge_client_control){.count = 0};
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

int kedge_client_control_keep(struct kedge_client_work *w, const struct kedge_id *job,
                              const struct kedge_site_digest *update, const struct kedge_client_control *c,
                              struct kedge_diag *d)
{
    char now[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX];
    struct kedge_buf file;
    struct kedge_hash sum;
    uint8_t head[HEAD] = {0};
    struct kedge_view values = kedge_view_of(c->own, (size_t)c->count * sizeof *c->own);
    int err = paths_of(w, job, now, next);
    kedge_buf_init(&file, SIZE_MAX / 2);
    kedge_sha256(values, &sum);
    memcpy(head, magic, MAGIC_LEN);
    memcpy(head + AT_UPDATE, update->b, sizeof update->b);
    memcpy(head + AT_SUM, sum.b, sizeof sum.b);
    kedge_store_be64(head + AT_COUNT, c->count);
    kedge_buf_put(&file, head, sizeof head);
    kedge_buf_put(&file, values.ptr, values.len);
    err = err ? err : file.err ? file.err : kedge_file_write(next, kedge_buf_view(&file), 0600, d);
    kedge_buf_deinit(&file);
    return err && !d->text[0] ? kedge_diag_set(d, err, "%s: %s", next, kedge_strerror(err)) : err;
}
