/* Blobs: finding, reading, putting, sweeping. A name in blobs/ appears by rename only, after the fsync of
 * the whole file and before the fsync of its folder: whatever is there is whole, whatever was answered is
 * durable. Small ones are records of packs (packs.h). */
#include "chain/store/blob/blobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "chain/store/blob/blobs_impl.h"
#include "chain/store/blob/short_form.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"

enum { UPLOADS_DEFAULT = 1024, RESUME_HOURS_DEFAULT = 72, COOL_BYTES_MIN = 64 << 10 };
#define RESERVE_DEFAULT (UINT64_C(64) << 20)

static int fail(struct kedge_diag *d, const char *what, const char *path)
{
    int e = errno;
    int err = kedge_errno(e);
    kedge_diag_set(d, err, "%s: cannot %s: %s", path, what, strerror(e));
    if (err == KEDGE_E_DISK_FULL) {
        kedge_diag_hint(d, "free space on this file system, then try again");
    }
    return err;
}

/* ---- opening ---- */

/* Removes what no upload can go on with: writers' files, and uploads' files older than their time. Run at
 * each opening for writing, when nobody has an upload open. An upload that a site can still go on with
 * stays for resume_hours; a file of another name is what a writer left when its process was killed. */
static int clean_staging(const struct kedge_blobs *b, struct kedge_diag *reterr)
{
    DIR *dir = opendir(b->staging_dir);
    if (!dir) {
        return fail(reterr, "open", b->staging_dir);
    }
    uint64_t keep_s = (uint64_t)b->options.resume_hours * 3600, now_s = kedge_os_unix_ms() / 1000;
    const struct dirent *e;
    while ((e = readdir(dir)) != NULL) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0
            || S_ISDIR(st.st_mode)) {
            continue;
        }
        bool is_young = (uint64_t)st.st_mtime + keep_s > now_s;
        if (S_ISREG(st.st_mode) && strncmp(e->d_name, "up-", 3) == 0 && is_young) {
            continue;
        }
        (void)unlinkat(dirfd(dir), e->d_name, 0); /* harmless when it stays: nobody reads it */
    }
    closedir(dir);
    return KEDGE_OK;
}

/* After an error nothing of it is open. A reader makes no folder and removes nothing: it may be an
 * auditor who works on evidence. */
static int open_folders(struct kedge_blobs *b, const char *dir, struct kedge_diag *reterr)
{
    if (strlen(dir) >= KEDGE_PATH_MAX || kedge_path_join(b->blobs_dir, dir, "blobs") != KEDGE_OK
        || kedge_path_join(b->staging_dir, dir, "staging") != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: path too long", dir);
    }
    memcpy(b->dir, dir, strlen(dir) + 1);
    if (!b->options.read_only) {
        KEDGE_TRY(kedge_dir_make(b->blobs_dir, 0700, reterr));
        KEDGE_TRY(kedge_dir_make(b->staging_dir, 0700, reterr));
        KEDGE_TRY(clean_staging(b, reterr));
    } else if (!kedge_file_exists(b->blobs_dir)) {
        return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "%s: there are no blobs here", b->blobs_dir);
    }
    KEDGE_TRY(kedgei_packs_open(b->blobs_dir, &b->packs, reterr));
    b->packs.syncs_later = b->options.sync_later;
    int err = b->options.keys_dir ? kedge_blob_keys_open(b->options.keys_dir, &b->keys, reterr) : KEDGE_OK;
    if (err) {
        kedgei_packs_close(&b->packs);
    }
    return err;
}

int kedge_blobs_open(const char *dir, const struct kedge_blobs_options *options, struct kedge_blobs **ret,
                     struct kedge_diag *reterr)
{
    struct kedge_blobs *b = kedge_mem_new(1, sizeof *b);
    if (!b) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", dir);
    }
    b->options = options ? *options : (struct kedge_blobs_options){0};
    b->options.uploads_max = b->options.uploads_max ? b->options.uploads_max : UPLOADS_DEFAULT;
    b->options.reserve_bytes = b->options.reserve_bytes ? b->options.reserve_bytes : RESERVE_DEFAULT;
    b->options.resume_hours = b->options.resume_hours ? b->options.resume_hours : RESUME_HOURS_DEFAULT;
    int err = open_folders(b, dir, reterr);
    if (err) {
        kedge_mem_free(b);
        return err;
    }
    b->options.encrypt = b->options.encrypt && b->keys;
    b->options.keys_dir = NULL;
    pthread_mutex_init(&b->mutex, NULL);
    *ret = b;
    return KEDGE_OK;
}

void kedge_blobs_close(struct kedge_blobs *b)
{
    if (b) {
        KEDGE_ASSERT(b->open_count == 0);
        pthread_mutex_destroy(&b->mutex);
        kedgei_packs_close(&b->packs);
        kedge_blob_keys_close(b->keys);
        kedge_mem_free(b);
    }
}

/* Room is promised before the first byte comes. Without that, many uploads that each find enough room
 * would together fill the disk, which the ledgers share. The reserve stays free for the ledgers and the
 * state: a full disk must refuse an update and not the statement about it. The bound on open uploads
 * covers descriptors and, for encrypted ones, a chunk of memory each. */
int kedgei_blobs_admit(struct kedge_blobs *b, uint64_t more, struct kedge_diag *reterr)
{
    if (b->options.read_only) {
        return kedge_diag_set(reterr, KEDGE_E_DISK_FULL, "%s: opened for reading only", b->blobs_dir);
    }
    struct statvfs space;
    if (statvfs(b->dir, &space) != 0) {
        return fail(reterr, "look at the free space", b->dir);
    }
    uint64_t free_bytes = (uint64_t)space.f_frsize * space.f_bavail;
    pthread_mutex_lock(&b->mutex);
    uint64_t taken = b->promised + b->options.reserve_bytes;
    bool is_full = free_bytes < taken || free_bytes - taken < more;
    bool is_crowded = b->open_count >= b->options.uploads_max;
    if (!is_full && !is_crowded) {
        b->open_count++;
        b->promised += more;
    }
    pthread_mutex_unlock(&b->mutex);
    if (is_crowded) {
        return kedge_diag_set(reterr, KEDGE_E_FULL, "%s: %zu uploads are open already", b->staging_dir,
                              b->options.uploads_max);
    }
    if (is_full) {
        kedge_diag_set(reterr, KEDGE_E_DISK_FULL, "%s: no room for %llu bytes (%llu free, %llu reserved)",
                       b->dir, (unsigned long long)more, (unsigned long long)free_bytes,
                       (unsigned long long)taken);
        kedge_diag_hint(reterr, "free space on this file system, then try again");
        return KEDGE_E_DISK_FULL;
    }
    return KEDGE_OK;
}

void kedgei_blobs_leave(struct kedge_blobs *b, uint64_t promised_left)
{
    pthread_mutex_lock(&b->mutex);
    b->open_count--;
    b->promised -= promised_left;
    pthread_mutex_unlock(&b->mutex);
}

/* ---- finding and reading ---- */

/* 256 folders by the first byte of the digest, so that none of them holds all files of a large store. */
int kedgei_blobs_file(const struct kedge_blobs *b, const struct kedge_hash *digest, char out[KEDGE_PATH_MAX])
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(digest, hex);
    char name[KEDGE_HASH_HEX_LEN + 2];
    snprintf(name, sizeof name, "%.2s/%s", hex, hex + 2);
    return kedge_path_join(out, b->blobs_dir, name);
}

/* The packs guard themselves; what is learnt of them is no change that a caller sees. */
static struct kedgei_packs *packs_of(const struct kedge_blobs *b)
{
    return (struct kedgei_packs *)(uintptr_t)&b->packs;
}

/* A pack that another process appends to grows without this one knowing. So before a blob is said to be
 * absent, the packs are looked at once more; a blob of a file of its own needs no such look, and is not
 * delayed by it. */
static int own_path(const struct kedge_blobs *b, const struct kedge_hash *digest, char out[KEDGE_PATH_MAX])
{
    struct kedgei_pack_record r;
    struct stat st;
    bool more = false;
    int packed = kedgei_packs_find(packs_of(b), digest, &r), err = KEDGE_OK;
    if (packed) {
        err = kedgei_blobs_file(b, digest, out);
        if (!err && lstat(out, &st) != 0 && kedgei_packs_refresh(packs_of(b), &more) == KEDGE_OK && more) {
            packed = kedgei_packs_find(packs_of(b), digest, &r); /* another process has put it there */
        }
    }
    return packed ? err : kedgei_packs_path(&b->packs, &r, out);
}

/* Another store is asked only for what is not here; the answer is a path and never a copy. A prune uses
 * it: models that a replay has rebuilt beside the store are found as if they were here. */
int kedge_blobs_path(const struct kedge_blobs *b, const struct kedge_hash *digest, char out[KEDGE_PATH_MAX])
{
    char there[KEDGE_PATH_MAX];
    KEDGE_TRY(own_path(b, digest, out));
    if (b->other && !kedge_blob_exists(out) && own_path(b->other, digest, there) == KEDGE_OK
        && kedge_blob_exists(there)) {
        memcpy(out, there, sizeof there);
    }
    return KEDGE_OK;
}

void kedge_blobs_lean_on(struct kedge_blobs *b, const struct kedge_blobs *other)
{
    b->other = other;
}

struct kedge_blob_keys *kedge_blobs_keys(const struct kedge_blobs *b)
{
    return b->keys;
}

int kedge_blobs_at(const struct kedge_blobs *b, const struct kedge_hash *digest, char path[KEDGE_PATH_MAX],
                   struct kedge_blob_at *ret)
{
    KEDGE_TRY(kedge_blobs_path(b, digest, path));
    *ret = (struct kedge_blob_at){.path = path, .keys = b->keys, .digest = *digest};
    return KEDGE_OK;
}

/* Bytes of its content; its key is not needed. What is stored may be shorter (deflated) or longer
 * (encrypted) than the content, so the length comes from the head. The head is unverified here; who reads
 * the content verifies it by its digest. */
static int content_size(const char *path, uint64_t *ret)
{
    char file[KEDGE_PATH_MAX];
    uint8_t head[KEDGE_BLOB_HEAD_LEN];
    struct kedge_blob_key_id id;
    enum kedge_aead aead;
    uint64_t begin, stored;
    bool is_packed = kedgei_pack_place(path, file, &begin, &stored);
    int fd = kedgei_blob_open(path, &begin, &stored, NULL);
    if (fd < 0) {
        return fd;
    }
    struct kedge_view beginning = kedge_view_of(head, stored < sizeof head ? (size_t)stored : sizeof head);
    int err = kedge_fd_read_at(fd, head, beginning.len, begin);
    close(fd);
    if (err) {
        return err;
    }
    if (is_packed && kedgei_short_is(beginning)) {
        size_t len = 0;
        err = kedgei_short_length(beginning, &len);
        *ret = len;
        return err;
    }
    *ret = stored;
    if (beginning.len < sizeof head || !kedge_blob_is_sealed(beginning)) {
        return KEDGE_OK;
    }
    unsigned how;
    uint32_t len;
    err = kedge_blob_head_read(head, &aead, &id);
    if (!err) {
        err = kedge_blob_content_len(aead, stored, ret);
    }
    kedge_blob_head_form(head, &how, &len);
    *ret = !err && how != KEDGEI_SHORT_NOT ? len : *ret;
    return err;
}

int kedge_blobs_find(const struct kedge_blobs *b, const struct kedge_hash *digest, uint64_t *ret_size)
{
    char path[KEDGE_PATH_MAX], file[KEDGE_PATH_MAX];
    uint64_t begin, len;
    KEDGE_TRY(kedge_blobs_path(b, digest, path));
    struct stat st;
    if (kedgei_pack_place(path, file, &begin, &len)) {
        return ret_size ? content_size(path, ret_size) : KEDGE_OK;
    }
    if (lstat(path, &st) != 0) {
        return kedge_errno(errno);
    }
    if (!S_ISREG(st.st_mode)) {
        return KEDGE_E_CORRUPT;
    }
    return ret_size ? content_size(path, ret_size) : KEDGE_OK;
}

int kedge_blobs_stored(const struct kedge_blobs *b, const struct kedge_hash *digest, uint64_t *ret_bytes,
                       uint64_t *ret_ms)
{
    struct kedgei_pack_record r;
    char path[KEDGE_PATH_MAX];
    struct stat st;
    if (kedgei_packs_find(packs_of(b), digest, &r) == KEDGE_OK) {
        *ret_bytes = r.len;
        *ret_ms = (uint64_t)r.time * 1000;
        return KEDGE_OK;
    }
    int err = kedgei_blobs_file(b, digest, path);
    if (err || lstat(path, &st) != 0) {
        return err ? err : kedge_errno(errno);
    }
    *ret_bytes = (uint64_t)st.st_size;
    *ret_ms = (uint64_t)st.st_mtime * 1000;
    return S_ISREG(st.st_mode) ? KEDGE_OK : KEDGE_E_CORRUPT;
}

/* Also uploads of the same content by other sites: what is removed must not come back by the commit of an
 * upload that was still open. The folder is synced, since an erasure must not be undone by a power cut. */
int kedge_blobs_unstage(struct kedge_blobs *b, const struct kedge_hash *digest, struct kedge_diag *reterr)
{
    char suffix[KEDGE_HASH_HEX_LEN + 2] = "-";
    DIR *dir = opendir(b->staging_dir);
    const struct dirent *e;
    int err = dir || errno == ENOENT ? KEDGE_OK : fail(reterr, "open", b->staging_dir);
    bool removed = false;
    kedge_hash_hex(digest, suffix + 1);
    while (dir && !err && (e = readdir(dir)) != NULL) {
        size_t len = strlen(e->d_name), tail = sizeof suffix - 1;
        if (len <= tail || strncmp(e->d_name, "up-", 3) != 0 || strcmp(e->d_name + len - tail, suffix) != 0) {
            continue;
        }
        bool gone = unlinkat(dirfd(dir), e->d_name, 0) == 0;
        err = gone || errno == ENOENT ? KEDGE_OK : fail(reterr, "remove an upload from", b->staging_dir);
        removed = removed || gone;
    }
    if (dir) {
        closedir(dir);
    }
    if (!err && removed && kedge_dir_sync(b->staging_dir) != KEDGE_OK) {
        err = kedge_diag_set(reterr, KEDGE_E_IO, "%s: cannot be made durable", b->staging_dir);
    }
    return err;
}

/* Each place where the content may be, staging, packs and a file of its own, before the answer. The
 * folder is synced even if the file was not there: an earlier call may have been interrupted between the
 * two. */
int kedge_blobs_remove(struct kedge_blobs *b, const struct kedge_hash *digest, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_blobs_unstage(b, digest, reterr));
    int err = kedgei_packs_remove(&b->packs, digest, true, reterr);
    if (err && err != KEDGE_E_NOT_FOUND) {
        return err;
    }
    err = kedgei_blobs_file(b, digest, path);
    if (err) {
        return kedge_diag_set(reterr, err, "%s: path too long", b->blobs_dir);
    }
    bool was_there = unlink(path) == 0;
    if (!was_there && errno != ENOENT) {
        return fail(reterr, "remove", path);
    }
    path[strlen(path) - (KEDGE_HASH_HEX_LEN - 2) - 1] = '\0'; /* its folder */
    err = kedge_dir_sync(path);
    if (err == KEDGE_E_NOT_FOUND && !was_there) {
        return KEDGE_OK;
    }
    return err ? kedge_diag_set(reterr, err, "%s: cannot be made durable: %s", path, kedge_strerror(err))
               : KEDGE_OK;
}

/* Not durable on purpose: no statement names the blob, so one that a crash brings back is removed by the
 * sweep at the next start. */
int kedge_blobs_drop(struct kedge_blobs *b, const struct kedge_hash *digest, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    int err = kedgei_packs_remove(&b->packs, digest, false, reterr);
    if (err && err != KEDGE_E_NOT_FOUND) {
        return err;
    }
    err = kedgei_blobs_file(b, digest, path);
    if (err) {
        return kedge_diag_set(reterr, err, "%s: path too long", b->blobs_dir);
    }
    return unlink(path) == 0 || errno == ENOENT ? KEDGE_OK : fail(reterr, "remove", path);
}

int kedge_blobs_compact(struct kedge_blobs *b, uint64_t *ret_freed, struct kedge_diag *reterr)
{
    return kedgei_packs_compact(&b->packs, ret_freed, reterr);
}

/* Large files only: dropping small ones from the page cache frees next to nothing and costs a system call
 * for each. */
void kedge_blobs_drop_cache(const struct kedge_blobs *b, const struct kedge_hash *digest)
{
    char path[KEDGE_PATH_MAX];
    struct stat st;
    int fd = kedgei_blobs_file(b, digest, path) ? -1 : kedge_file_open(path, O_RDONLY | O_NOFOLLOW, NULL);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size >= COOL_BYTES_MIN) {
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    if (fd >= 0) {
        close(fd);
    }
}

int kedgei_blobs_pack(struct kedge_blobs *b, const struct kedge_hash *digest, struct kedge_view content,
                      struct kedge_diag *reterr)
{
    size_t len;
    uint8_t *brief KEDGE_CLEANUP(kedge_mem_release) =
        content.len <= KEDGEI_SHORT_CONTENT_MAX ? kedge_mem_new(content.len + 1, 1) : NULL;
    bool is_short = brief && kedgei_short_file(content, brief, &len);
    return kedgei_packs_put(&b->packs, digest, is_short ? kedge_view_of(brief, len) : content, reterr);
}

/* The bytes of a record, as they are stored; the caller's. Offsets come from a path that may be a moment
 * old: between looking and reading another thread may have removed the blob and overwritten its bytes.
 * The record's own check tells whether they are still those of the blob, and "no longer there" is the
 * right answer if not. */
static int read_packed(const char *path, uint8_t **ret, size_t *ret_len, struct kedge_diag *reterr)
{
    uint64_t begin, len;
    int fd = kedgei_blob_open(path, &begin, &len, reterr);
    if (fd < 0) {
        return fd;
    }
    uint8_t head[KEDGEI_PACK_HEAD], check[8];
    uint8_t *bytes = len <= KEDGEI_PACK_STORED_MAX ? kedge_mem_new((size_t)len + 1, 1) : NULL;
    int err = bytes ? kedge_fd_read_at(fd, bytes, (size_t)len, begin) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_fd_read_at(fd, head, sizeof head, begin - sizeof head);
    }
    close(fd);
    if (!err) { /* it may have been removed at this moment */
        kedgei_pack_check(kedge_view_of(bytes, (size_t)len), check);
        err = memcmp(head + 48, check, sizeof check) == 0 ? KEDGE_OK : KEDGE_E_NOT_FOUND;
    }
    if (err) {
        kedge_mem_free(bytes);
        return kedge_diag_set(reterr, err, "%s: cannot be read: %s", path, kedge_strerror(err));
    }
    *ret = bytes;
    *ret_len = (size_t)len;
    return KEDGE_OK;
}

/* The stored bytes go over as they are, encrypted or deflated, so a backup can copy blobs without having
 * their keys. */
int kedge_blobs_take(struct kedge_blobs *b, const struct kedge_hash *digest, const char *path,
                     struct kedge_diag *reterr)
{
    char file[KEDGE_PATH_MAX];
    uint64_t begin, len;
    uint8_t *bytes;
    size_t count;
    if (b->options.read_only || !kedgei_pack_place(path, file, &begin, &len)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "%s: does not lie in a pack", path);
    }
    if (kedge_blobs_find(b, digest, NULL) == KEDGE_OK) {
        return KEDGE_OK;
    }
    int err = read_packed(path, &bytes, &count, reterr);
    if (!err) {
        err = kedgei_packs_put(&b->packs, digest, kedge_view_of(bytes, count), reterr);
        kedge_mem_free(bytes);
    }
    return err;
}

/* What was read, in its short form, becomes the content; also after an error *bytes is the caller's. */
static int lengthen_packed(const char *path, uint8_t **bytes, size_t *count, struct kedge_diag *reterr)
{
    size_t len = 0;
    int err = kedgei_short_length(kedge_view_of(*bytes, *count), &len);
    uint8_t *content = err ? NULL : kedge_mem_new(len, 1);
    err = err || content ? err : KEDGE_E_NOMEM;
    if (!err) {
        err = kedgei_short_open(kedge_view_of(*bytes, *count), content, len);
    }
    if (err) {
        kedge_mem_free(content);
        return kedge_diag_set(reterr, err, "%s: cannot be read: %s", path, kedge_strerror(err));
    }
    kedge_mem_free(*bytes);
    *bytes = content;
    *count = len;
    return KEDGE_OK;
}

/* For people and tools that want a file: a plain short form becomes the content, an encrypted blob stays
 * encrypted. */
int kedge_blobs_copy_packed(struct kedge_blobs *b, const struct kedge_hash *digest, const char *to,
                            struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], file[KEDGE_PATH_MAX];
    uint64_t begin, len;
    uint8_t *bytes;
    size_t count;
    int err = kedge_blobs_path(b, digest, path);
    err = err || kedgei_pack_place(path, file, &begin, &len) ? err : KEDGE_E_NOT_FOUND;
    if (err) {
        return err;
    }
    KEDGE_TRY(read_packed(path, &bytes, &count, reterr));
    if (kedgei_short_is(kedge_view_of(bytes, count))) {
        err = lengthen_packed(path, &bytes, &count, reterr);
    }
    if (!err) {
        err = kedge_file_write(to, kedge_view_of(bytes, count), 0600, reterr);
    }
    kedge_mem_free(bytes);
    return err;
}
