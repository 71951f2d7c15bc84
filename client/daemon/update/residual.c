#include "client/daemon/update/residual.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/log.h"

enum { MAGIC_LEN = 16, AT_UPDATE = 16, AT_SUM = 48, AT_COUNT = 80, AT_GROUP = 88, HEAD = 96 };
static const char magic[MAGIC_LEN] = "kedge-left/v1\n";

static int paths_of(const struct kedge_client_work *w, const struct kedge_id *job, char now[KEDGE_PATH_MAX],
                    char next[KEDGE_PATH_MAX])
{
    int err = kedge_client_path(w->h, now, "left/%s", job->s);
    return err ? err : kedge_client_path(w->h, next, "left/%s.next", job->s);
}

static size_t file_len(const struct kedge_client_residual *l)
{
    return HEAD + (size_t)l->count * sizeof *l->values;
}

/* Count, group and values. */
static void sum_of(const uint8_t *file, size_t len, struct kedge_hash *ret)
{
    kedge_sha256(kedge_view_of(file + AT_COUNT, len - AT_COUNT), ret);
}

/* KEDGE_E_NOT_FOUND: there is no such file, or it goes with another update. */
static int read_file(const char *path, const struct kedge_site_digest *update,
                     struct kedge_client_residual *l, struct kedge_diag *d)
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
    bool whole = map.len == file_len(l) && memcmp(map.ptr, magic, MAGIC_LEN) == 0
                 && kedge_load_be64(map.ptr + AT_COUNT) == l->count;
    if (whole && memcmp(map.ptr + AT_UPDATE, update->b, sizeof update->b) != 0) {
        err = KEDGE_E_NOT_FOUND;
    } else if (whole) {
        memcpy(l->file, map.ptr, map.len);
        sum_of(l->file, map.len, &sum);
        whole = memcmp(l->file + AT_SUM, sum.b, sizeof sum.b) == 0;
    }
    kedge_map_close(&map);
    return err || whole ? err : kedge_diag_set(d, KEDGE_E_CORRUPT, "%s: it is damaged", path);
}

/* The one that goes with the update becomes the file in force, so that the next one can take its place. */
static int find(struct kedge_client_work *w, const struct kedge_id *job,
                const struct kedge_site_digest *update, struct kedge_client_residual *l, struct kedge_diag *d)
{
    char now[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX];
    int err = paths_of(w, job, now, next);
    err = err ? err : kedge_client_path(w->h, dir, "left");
    err = err ? err : read_file(next, update, l, d);
    if (!err) {
        err = rename(next, now) == 0 ? kedge_dir_sync(dir) : kedge_errno(errno);
        return err ? kedge_diag_set(d, err, "%s: %s", now, kedge_strerror(err)) : KEDGE_OK;
    }
    return err == KEDGE_E_NOT_FOUND || err == KEDGE_E_CORRUPT ? read_file(now, update, l, d) : err;
}

int kedge_client_residual_open(struct kedge_client_work *w, const struct kedge_id *job, uint32_t group,
                               const struct kedge_site_digest *in_force, struct kedge_client_residual *ret,
                               struct kedge_diag *d)
{
    static const struct kedge_site_digest none;
    struct kedge_client_residual l = {.count = w->layout.values_count, .group = group};
    char dir[KEDGE_PATH_MAX];
    int err = kedge_client_path(w->h, dir, "left");
    err = err ? err : kedge_dir_make(dir, 0700, d);
    l.file = err ? NULL : kedge_mem_new(file_len(&l), 1);
    if (!err && !l.file) {
        err = kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for an update of %llu values",
                             (unsigned long long)l.count);
    }
    if (err) {
        return err;
    }
    l.values = (int32_t *)(void *)(l.file + HEAD);
    if (memcmp(in_force->b, none.b, sizeof none.b) != 0) {
        err = find(w, job, in_force, &l, d);
    }
    if (err == KEDGE_E_NOT_FOUND || err == KEDGE_E_CORRUPT) {
        kedge_log(KEDGE_LOG_WARN, "compression", "job=%s: what former updates have left is lost: %s", job->s,
                  err == KEDGE_E_CORRUPT ? d->text : "the file is not there");
        memset(l.file, 0, file_len(&l));
        *d = (struct kedge_diag){.err = KEDGE_OK};
        err = KEDGE_OK;
    }
    if (!err && kedge_load_be64(l.file + AT_GROUP) != group) {
        memset(l.values, 0, (size_t)l.count * sizeof *l.values);
    }
    if (err) {
        kedge_client_residual_close(&l);
        return err;
    }
    *ret = l;
    return KEDGE_OK;
}

void kedge_client_residual_close(struct kedge_client_residual *l)
{
    kedge_mem_free(l->file);
    *l = (struct kedge_client_residual){.count = 0};
}

int kedge_client_residual_keep(struct kedge_client_work *w, const struct kedge_id *job,
                               const struct kedge_site_digest *update, struct kedge_client_residual *l,
                               struct kedge_diag *d)
{
    char now[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX];
    struct kedge_hash sum;
    int err = paths_of(w, job, now, next);
    memcpy(l->file, magic, MAGIC_LEN);
    memcpy(l->file + AT_UPDATE, update->b, sizeof update->b);
    kedge_store_be64(l->file + AT_COUNT, l->count);
    kedge_store_be64(l->file + AT_GROUP, l->group);
    sum_of(l->file, file_len(l), &sum);
    memcpy(l->file + AT_SUM, sum.b, sizeof sum.b);
    err = err ? err : kedge_file_write(next, kedge_view_of(l->file, file_len(l)), 0600, d);
    return err && !d->text[0] ? kedge_diag_set(d, err, "%s: %s", next, kedge_strerror(err)) : err;
}
