/* Not synced: a run that is cut short is run again. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/try.h"
#include "sim/protocol/impl.h"

int kedgei_files_open(const char *scratch, struct kedgei_files *ret, struct kedge_diag *d)
{
    const char *tmp = getenv("TMPDIR");
    if (scratch) {
        ret->is_own = false;
        KEDGE_TRY(kedge_path_join(ret->dir, scratch, "work"));
        KEDGE_TRY(kedge_file_exists(ret->dir) ? kedge_dir_remove(ret->dir) : KEDGE_OK);
        return kedge_dir_make(ret->dir, 0700, d);
    }
    ret->is_own = true;
    KEDGE_TRY(kedge_path_join(ret->dir, tmp && tmp[0] ? tmp : "/tmp", "kedge-sim-XXXXXX"));
    if (!mkdtemp(ret->dir)) {
        (void)kedge_diag_set(d, KEDGE_E_IO, "%s: no folder can be made for the updates of a simulation",
                             ret->dir);
        ret->dir[0] = '\0';
        return KEDGE_E_IO;
    }
    return KEDGE_OK;
}

void kedgei_files_close(struct kedgei_files *f)
{
    if (f->dir[0]) {
        (void)!kedge_dir_remove(f->dir);
        f->dir[0] = '\0';
    }
}

void kedgei_files_path(const struct kedgei_files *f, const struct kedge_digest *digest,
                       char out[KEDGE_PATH_MAX])
{
    struct kedge_hash hash;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    memcpy(hash.b, digest->b, sizeof hash.b);
    kedge_hash_hex(&hash, hex);
    (void)snprintf(out, KEDGE_PATH_MAX, "%.900s/%s", f->dir, hex);
}

bool kedgei_files_has(const struct kedgei_files *f, const struct kedge_digest *digest)
{
    char path[KEDGE_PATH_MAX];
    kedgei_files_path(f, digest, path);
    return kedge_file_exists(path);
}

void kedgei_files_drop(const struct kedgei_files *f, const struct kedge_digest *digest)
{
    char path[KEDGE_PATH_MAX];
    kedgei_files_path(f, digest, path);
    (void)unlink(path);
}

static int put(void *arg, struct kedge_view bytes)
{
    struct kedgei_file *f = arg;
    kedge_hasher_update(f->hasher, bytes);
    return kedge_fd_write(f->fd, bytes);
}

int kedgei_file_begin(struct kedgei_files *files, uint32_t number, struct kedgei_file *ret,
                      struct kedge_diag *d)
{
    *ret = (struct kedgei_file){.files = files, .fd = -1, .sink = {.write = put, .arg = ret}};
    (void)snprintf(ret->path, sizeof ret->path, "%.900s/part-%u", files->dir, number);
    int err = kedge_hasher_new(&ret->hasher);
    ret->fd = err ? -1 : open(ret->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (!err && ret->fd < 0) {
        kedge_hasher_free(ret->hasher);
        err = kedge_diag_set(d, KEDGE_E_IO, "%s: it cannot be written", ret->path);
    }
    return err;
}

int kedgei_file_end(struct kedgei_file *f, int err, struct kedge_digest *ret, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_digest digest;
    struct kedge_hash hash;
    kedge_hasher_final(f->hasher, &hash);
    kedge_hasher_free(f->hasher);
    memcpy(digest.b, hash.b, sizeof digest.b);
    kedgei_files_path(f->files, &digest, path);
    bool closed = close(f->fd) == 0;
    if (!err && (!closed || rename(f->path, path) != 0)) {
        err = kedge_diag_set(d, KEDGE_E_IO, "%s: it cannot be written", path);
    }
    if (err) {
        (void)unlink(f->path);
        return err;
    }
    *ret = digest;
    return KEDGE_OK;
}
