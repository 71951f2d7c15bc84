/* The folder grows under a temporary name beside its place and gets its name at the end, so it is either
 * absent or whole. For a crash the order is: all files are synced, then the folders that name them, then
 * the new name is given, then the folder in which it stands is synced. Where the file system can do it,
 * the rename refuses to replace anything: a plain one would replace an empty folder that somebody made
 * meanwhile. */
#include "chain/export/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/blob/blob_file.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { BLOCK = 1024 * 1024 };

int kedgei_ex_folder_open(const char *place, struct kedgei_ex_folder *ret, struct kedge_diag *reterr)
{
    struct stat st;
    size_t len = strlen(place);
    while (len > 1 && place[len - 1] == '/') {
        len--; /* "OUT/" is OUT: the temporary folder belongs beside it, not into it */
    }
    memset(ret, 0, sizeof *ret);
    if (len + 8 > sizeof ret->temporary) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: path too long", place);
    }
    snprintf(ret->place, sizeof ret->place, "%.*s", (int)len, place);
    if (lstat(ret->place, &st) == 0) {
        (void)kedge_diag_set(reterr, KEDGE_E_EXISTS, "%s exists, and an export never writes over anything",
                             ret->place);
        (void)kedge_diag_hint(reterr, "name a folder that does not exist");
        return KEDGE_E_EXISTS;
    }
    snprintf(ret->temporary, sizeof ret->temporary, "%.*s.XXXXXX", (int)len, place);
    if (!mkdtemp(ret->temporary)) {
        int err = kedge_errno(errno);
        ret->temporary[0] = '\0';
        return kedge_diag_set(reterr, err, "%s: cannot make a folder beside it: %s", ret->place,
                              strerror(errno));
    }
    return KEDGE_OK;
}

/* Remembers the file. */
static int note_file(struct kedgei_ex_folder *f, const char *path, uint64_t size,
                     const struct kedge_hash *digest)
{
    if (f->count == KEDGEI_EX_FILES_MAX) {
        return KEDGE_E_FULL;
    }
    KEDGE_TRY_MEM(kedge_mem_grow(&f->files, &f->cap, f->count, 64, sizeof *f->files));
    char *copy = kedge_mem_strdup(path);
    KEDGE_TRY_MEM(copy);
    f->files[f->count++] = (struct kedgei_ex_file){copy, size, *digest};
    f->bytes += size;
    return KEDGE_OK;
}

/* What note_file returned, in words. */
static int tell_full(const struct kedgei_ex_folder *f, int err, struct kedge_diag *reterr)
{
    if (err == KEDGE_E_FULL) {
        (void)kedge_diag_set(reterr, err, "%s: more than %d files, which nobody could verify", f->place,
                             (int)KEDGEI_EX_FILES_MAX);
        (void)kedge_diag_hint(reterr, "--model FILE or --tenant T chooses less");
        return err;
    }
    return err ? kedge_diag_set(reterr, err, "out of memory") : KEDGE_OK;
}

/* Makes the path's folders and the file itself, which must be new. A descriptor or a negative error. */
static int create(const struct kedgei_ex_folder *f, const char *path, struct kedge_diag *reterr)
{
    char full[KEDGE_PATH_MAX];
    if (kedge_path_join(full, f->temporary, path) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s/%s: path too long", f->place, path);
    }
    for (char *slash = full + strlen(f->temporary) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        int made = mkdir(full, 0777) == 0 || errno == EEXIST ? KEDGE_OK : kedge_errno(errno);
        if (made) {
            return kedge_diag_set(reterr, made, "%s: cannot make the folder", full);
        }
        *slash = '/';
    }
    int fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        int err = kedge_errno(errno);
        return kedge_diag_set(reterr, err, "%s/%s: cannot write: %s", f->place, path, strerror(errno));
    }
    return fd;
}

/* err is what happened before. */
static int finish(const struct kedgei_ex_folder *f, int fd, const char *path, int err,
                  struct kedge_diag *reterr)
{
    if (close(fd) != 0 && !err) {
        err = kedge_errno(errno);
    }
    return err ? kedge_diag_set(reterr, err, "%s/%s: cannot write: %s", f->place, path, kedge_strerror(err))
               : KEDGE_OK;
}

int kedgei_ex_put(struct kedgei_ex_folder *f, struct kedge_view content, struct kedge_diag *reterr,
                  const char *format, ...)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_hash digest;
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(path, sizeof path, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof path) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: a path in it is too long", f->place);
    }
    int fd = create(f, path, reterr);
    if (fd < 0) {
        return fd;
    }
    KEDGE_TRY(finish(f, fd, path, kedge_fd_write(fd, content), reterr));
    kedge_sha256(content, &digest);
    return tell_full(f, note_file(f, path, content.len, &digest), reterr);
}

static int copy_bytes(const struct kedge_blob_file *from, int to, struct kedge_hasher *hasher, uint8_t *block)
{
    int err = KEDGE_OK;
    for (uint64_t done = 0; done < from->size && !err;) {
        size_t n = from->size - done < BLOCK ? (size_t)(from->size - done) : BLOCK;
        struct kedge_view v = kedge_view_of(block, n);
        err = kedge_blob_file_read(from, done, block, n);
        if (!err) {
            kedge_hasher_update(hasher, v);
            err = kedge_fd_write(to, v);
        }
        done += n;
    }
    return err;
}

int kedgei_ex_copy(struct kedgei_ex_folder *f, const char *from, const struct kedge_hash *digest,
                   const char *path, struct kedge_diag *reterr)
{
    struct kedge_hasher *hasher = NULL;
    struct kedge_hash have = {{0}};
    struct kedge_blob_file in;
    const struct kedge_blob_at at = {.path = from, .digest = *digest};
    KEDGE_TRY(kedge_blob_file_open(&at, KEDGE_BLOB_READ, &in, reterr));
    uint8_t *block = kedge_mem_new(1, BLOCK);
    int err = block ? kedge_hasher_new(&hasher) : KEDGE_E_NOMEM;
    int out = err ? kedge_diag_set(reterr, err, "out of memory") : create(f, path, reterr);
    err = out < 0 ? out : KEDGE_OK;
    if (out >= 0) {
        err = copy_bytes(&in, out, hasher, block);
        kedge_hasher_final(hasher, &have);
        err = finish(f, out, path, err, reterr);
    }
    const uint64_t size = in.size;
    kedge_blob_file_close(&in);
    kedge_hasher_free(hasher);
    kedge_mem_free(block);
    if (!err && !kedge_hash_eq(&have, digest)) {
        err = kedge_diag_set(reterr, KEDGE_E_VERIFY, "%s: its content is not what was released", from);
    }
    return err ? err : tell_full(f, note_file(f, path, size, &have), reterr);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct kedgei_ex_file *)a)->path, ((const struct kedgei_ex_file *)b)->path);
}

void kedgei_ex_sort(struct kedgei_ex_folder *f)
{
    if (f->count > 1) {
        qsort(f->files, f->count, sizeof *f->files, compare);
    }
}

/* All files, after all were written: by then most are on the disk, and syncing one commits what is left of
 * the others. */
static int sync_files(const struct kedgei_ex_folder *f)
{
    int err = KEDGE_OK;
    for (size_t i = 0; i < f->count && !err; i++) {
        char full[KEDGE_PATH_MAX];
        err = kedge_path_join(full, f->temporary, f->files[i].path);
        int fd = err ? err : kedge_file_open(full, O_RDONLY, NULL);
        err = fd < 0 ? fd : fsync(fd) != 0 ? kedge_errno(errno) : KEDGE_OK;
        if (fd >= 0) {
            close(fd);
        }
    }
    return err;
}

/* The folders of all files, each at least once. */
static int sync_folders(const struct kedgei_ex_folder *f)
{
    char last[KEDGE_PATH_MAX] = "";
    int err = kedge_dir_sync(f->temporary);
    for (size_t i = 0; i < f->count && !err; i++) {
        char full[KEDGE_PATH_MAX];
        err = kedge_path_join(full, f->temporary, f->files[i].path);
        size_t base = strlen(f->temporary);
        for (char *slash; !err && (slash = strrchr(full, '/')) != NULL && (size_t)(slash - full) > base;) {
            *slash = '\0';
            if (strcmp(full, last) == 0) {
                break; /* sorted: its parents were done with it */
            }
            err = kedge_dir_sync(full);
        }
        if (!err) {
            err = kedge_path_join(last, f->temporary, f->files[i].path);
        }
        char *slash = strrchr(last, '/');
        if (slash) {
            *slash = '\0';
        }
    }
    return err;
}

int kedgei_ex_folder_commit(struct kedgei_ex_folder *f, struct kedge_diag *reterr)
{
    char parent[KEDGE_PATH_MAX];
    struct stat st;
    kedgei_ex_sort(f);
    int err = sync_files(f);
    if (!err) {
        err = sync_folders(f);
    }
    if (err) {
        return kedge_diag_set(reterr, err, "%s: cannot be made durable", f->place);
    }
    int moved = renameat2(AT_FDCWD, f->temporary, AT_FDCWD, f->place, RENAME_NOREPLACE);
    if (moved != 0 && (errno == EINVAL || errno == ENOSYS) && lstat(f->place, &st) != 0) {
        moved = rename(f->temporary, f->place); /* a file system without that flag */
    }
    if (moved != 0) {
        err = errno == EEXIST ? KEDGE_E_EXISTS : kedge_errno(errno);
        return kedge_diag_set(reterr, err, "%s: cannot be given its name: %s", f->place, strerror(errno));
    }
    f->temporary[0] = '\0';
    const char *slash = strrchr(f->place, '/');
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - f->place) : 1, slash ? f->place : ".");
    err = kedge_dir_sync(parent[0] ? parent : "/");
    return err ? kedge_diag_set(reterr, err, "%s: its folder cannot be synced", f->place) : KEDGE_OK;
}

void kedgei_ex_folder_deinit(struct kedgei_ex_folder *f)
{
    if (f->temporary[0]) {
        (void)!kedge_dir_remove(f->temporary);
    }
    for (size_t i = 0; i < f->count; i++) {
        kedge_mem_free(f->files[i].path);
    }
    kedge_mem_free(f->files);
    memset(f, 0, sizeof *f);
}
