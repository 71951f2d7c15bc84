/* Files on their way into blobs/: the streaming writer and the resumable upload.
 *
 * A file is written under a name in staging/ that no reader looks for, hashed on the way, synced, and
 * only then renamed to its digest. What a crash leaves in staging/ is either gone on with, when an upload
 * has the site's and the digest's name, or removed at the next opening. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/blob/blobs_impl.h"
#include "chain/store/blob/short_form.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { WRITEBACK_BYTES = 8 << 20, WRITEBACK_BYTES_SMALL = 256 << 10 };

struct kedge_blob_writer {
    struct kedgei_staged s;
};

struct kedge_upload {
    struct kedgei_staged s;
    struct kedge_upload *next; /* of the open ones */
    struct kedge_hash digest;
    uint64_t total;
    bool is_finished;
    void *attached;
    void (*release)(void *what);
};

static int fail(struct kedge_diag *d, const char *what, const char *path)
{
    int e = errno;
    return kedge_diag_set(d, kedge_errno(e), "%s: cannot %s: %s", path, what, strerror(e));
}

/* ---- staged files ---- */

/* Fills s (path set by the caller); the file is made or found. */
static int staged_open(struct kedgei_staged *s, bool must_be_new, struct kedge_diag *reterr)
{
    int err = kedge_hasher_new(&s->hasher);
    if (err) {
        return kedge_diag_set(reterr, err, "%s: %s", s->path, kedge_strerror(err));
    }
    s->fd = kedge_file_open(s->path, O_RDWR | O_CREAT | O_NOFOLLOW | (must_be_new ? O_EXCL : 0), reterr);
    if (s->fd < 0) {
        err = s->fd;
        kedge_hasher_free(s->hasher);
        s->hasher = NULL;
    }
    return err;
}

/* Has the disk begin with what is complete, so that the sync at the end has little left to wait for.
 * Without it all dirty pages of a large update are written at the one moment when the site waits for its
 * receipt. It is a hint only: what makes the file durable is the fsync in staged_move_in. */
static void start_writeback(const struct kedgei_staged *s, uint64_t before)
{
    uint64_t step = s->announced < WRITEBACK_BYTES ? WRITEBACK_BYTES_SMALL : WRITEBACK_BYTES;
    uint64_t from = before / step * step, to = s->size / step * step; /* of the file by a thousandth */
    if (to > from) {
        (void)sync_file_range(s->fd, (off_t)from, (off_t)(to - from), SYNC_FILE_RANGE_WRITE);
    }
}

static int write_plain(const struct kedgei_staged *s, struct kedge_view bytes)
{
    for (size_t done = 0; done < bytes.len;) {
        ssize_t n = pwrite(s->fd, bytes.ptr + done, bytes.len - done, (off_t)(s->size + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return KEDGE_E_IO;
        }
        done += (size_t)n;
    }
    return KEDGE_OK;
}

/* All of it or nothing: size and hash are as before after an error. The promise shrinks by what was
 * written, since those bytes are no longer missing from the free space. */
static int staged_write(struct kedgei_staged *s, struct kedge_view bytes, struct kedge_diag *reterr)
{
    int err = s->sealing ? kedgei_sealing_write(s->sealing, s->fd, bytes) : write_plain(s, bytes);
    if (err) {
        return err == KEDGE_E_NOMEM ? kedge_diag_set(reterr, err, "%s: out of memory", s->path)
                                    : fail(reterr, "write", s->path);
    }
    if (bytes.len > 0) {
        kedge_hasher_update(s->hasher, bytes);
    }
    s->size += bytes.len;
    start_writeback(s, s->size - bytes.len);
    uint64_t open_promise = s->announced - s->written;
    uint64_t kept = bytes.len < open_promise ? bytes.len : open_promise;
    s->written += kept;
    pthread_mutex_lock(&s->b->mutex);
    s->b->promised -= kept;
    pthread_mutex_unlock(&s->b->mutex);
    return KEDGE_OK;
}

/* The folder of a blob is there and its entry in blobs/ durable. Who finds it made cannot know whether
 * its maker, another thread or a process that was killed, has come to the sync: each process syncs once. */
static int make_folder(struct kedge_blobs *b, const char *folder, uint8_t first, struct kedge_diag *reterr)
{
    bool is_made = mkdir(folder, 0700) == 0;
    if (!is_made && errno != EEXIST) {
        return fail(reterr, "make", folder);
    }
    pthread_mutex_lock(&b->mutex);
    bool is_durable = !is_made && b->folder_is_durable[first];
    pthread_mutex_unlock(&b->mutex);
    int err = is_durable ? KEDGE_OK : kedge_dir_sync(b->blobs_dir);
    if (err) {
        return kedge_diag_set(reterr, err, "%s: cannot sync the folder", b->blobs_dir);
    }
    pthread_mutex_lock(&b->mutex);
    b->folder_is_durable[first] = true;
    pthread_mutex_unlock(&b->mutex);
    return KEDGE_OK;
}

/* What is small needs no file, no name and no sync of its own. The staged file may have been unlinked by
 * an erasure while the upload was open (kedge_blobs_unstage); then its bytes must not reach a pack, which
 * st_nlink tells. An encrypted blob is shortened by sealing it anew under another salt; a plain one is
 * deflated. */
static int pack(struct kedgei_staged *s, const struct kedge_hash *digest, struct kedge_diag *reterr)
{
    struct stat st;
    bool is_fine = fstat(s->fd, &st) == 0 && st.st_size <= KEDGEI_PACK_STORED_MAX;
    if (!is_fine || st.st_nlink == 0) { /* who removed it does not want it back */
        errno = is_fine ? ENOENT : EIO;
        return fail(reterr, "look at", s->path);
    }
    size_t len = (size_t)st.st_size;
    uint8_t *bytes = kedge_mem_new(len + 1, 1);
    int err = bytes ? kedge_fd_read_at(s->fd, bytes, len, 0) : KEDGE_E_NOMEM;
    if (err) {
        kedge_diag_set(reterr, err, "%s: cannot read: %s", s->path, kedge_strerror(err));
    } else if (s->sealing) {
        uint8_t *brief = kedge_mem_new(len + 1, 1);
        size_t brief_len;
        bool is_short =
            brief && kedgei_sealing_shorten(s->sealing, kedge_view_of(bytes, len), brief, &brief_len);
        err =
            kedgei_packs_put(&s->b->packs, digest,
                             is_short ? kedge_view_of(brief, brief_len) : kedge_view_of(bytes, len), reterr);
        kedge_mem_free(brief);
    } else {
        err = kedgei_blobs_pack(s->b, digest, kedge_view_of(bytes, len), reterr);
    }
    kedge_mem_free(bytes);
    s->is_packed = !err;
    return err;
}

/* Such content would be taken for a short form in a pack; encrypted, its head tells. Such a blob gets a
 * file of its own, so a site cannot choose bytes that a reader would inflate. */
static bool begins_short(const struct kedgei_staged *s)
{
    uint8_t head[8];
    return !s->sealing && s->size >= sizeof head
           && (kedge_fd_read_at(s->fd, head, sizeof head, 0) != KEDGE_OK
               || kedgei_short_is(kedge_view_of(head, sizeof head)));
}

/* Durable move into blobs/, or into a pack. The descriptor stays open. Order: fsync of the file, entry of
 * its folder, rename, fsync of the folder. A crash before the rename leaves a staged file; after it the
 * name is there and whole. The rename may find its work done by an earlier try that failed afterwards. */
static int staged_move_in(struct kedgei_staged *s, const struct kedge_hash *digest, struct kedge_diag *reterr)
{
    char target[KEDGE_PATH_MAX], folder[KEDGE_PATH_MAX];
    if (s->b->options.pack && s->size <= KEDGEI_PACK_BLOB_MAX && !begins_short(s)) {
        return pack(s, digest, reterr);
    }
    int err = kedgei_blobs_file(s->b, digest, target);
    if (err) {
        return kedge_diag_set(reterr, err, "%s: path too long", s->b->blobs_dir);
    }
    memcpy(folder, target, sizeof folder);
    *strrchr(folder, '/') = '\0';
    if (fsync(s->fd) != 0) {
        return fail(reterr, "sync", s->path);
    }
    KEDGE_TRY(make_folder(s->b, folder, digest->b[0], reterr));
    if (rename(s->path, target) != 0 && !(errno == ENOENT && kedge_file_exists(target))) {
        return fail(reterr, "rename to", target); /* a former try may have moved it and failed behind that */
    }
    err = kedge_dir_sync(folder);
    return err ? kedge_diag_set(reterr, err, "%s: cannot sync the folder", folder) : KEDGE_OK;
}

/* Closes, removes the file when told, gives slot and promise back. */
static void staged_close(struct kedgei_staged *s, bool remove_file)
{
    close(s->fd);
    if (remove_file || s->is_packed) {
        (void)unlink(s->path); /* left over, it is removed at the next open of the store */
    }
    kedge_hasher_free(s->hasher);
    kedgei_sealing_free(s->sealing);
    kedgei_blobs_leave(s->b, s->announced - s->written);
}

/* ---- writer ---- */

/* For blobs that this process makes itself, whose digest is known only at the end. The name has the process
 * id and a number that is used once: what a crash leaves is never taken for an upload. */
int kedge_blob_writer_open(struct kedge_blobs *b, uint64_t expected_bytes, struct kedge_blob_writer **ret,
                           struct kedge_diag *reterr)
{
    struct kedge_blob_writer *w = kedge_mem_new(1, sizeof *w);
    if (!w) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", b->staging_dir);
    }
    int err = kedgei_blobs_admit(b, expected_bytes, reterr);
    if (err) {
        kedge_mem_free(w);
        return err;
    }
    pthread_mutex_lock(&b->mutex);
    uint64_t serial = ++b->serial;
    pthread_mutex_unlock(&b->mutex);
    char name[64];
    snprintf(name, sizeof name, "put-%ld-%llu", (long)getpid(), (unsigned long long)serial);
    w->s = (struct kedgei_staged){.b = b, .announced = expected_bytes};
    err = kedge_path_join(w->s.path, b->staging_dir, name);
    err = err ? kedge_diag_set(reterr, err, "%s: path too long", b->staging_dir)
              : staged_open(&w->s, true, reterr);
    if (err) {
        kedgei_blobs_leave(b, expected_bytes);
        kedge_mem_free(w);
        return err;
    }
    *ret = w;
    return KEDGE_OK;
}

int kedge_blob_writer_write(struct kedge_blob_writer *w, struct kedge_view bytes, struct kedge_diag *reterr)
{
    return staged_write(&w->s, bytes, reterr);
}

int kedge_blob_writer_finish(struct kedge_blob_writer *w, struct kedge_hash *ret_digest, uint64_t *ret_size,
                             struct kedge_diag *reterr)
{
    struct kedge_hash digest;
    uint64_t size = w->s.size;
    kedge_hasher_final(w->s.hasher, &digest);
    int err = staged_move_in(&w->s, &digest, reterr);
    staged_close(&w->s, err != KEDGE_OK);
    kedge_mem_free(w);
    if (err) {
        return err;
    }
    if (ret_digest) {
        *ret_digest = digest;
    }
    if (ret_size) {
        *ret_size = size;
    }
    return KEDGE_OK;
}

void kedge_blob_writer_abort(struct kedge_blob_writer *w)
{
    if (w) {
        staged_close(&w->s, true);
        kedge_mem_free(w);
    }
}

/* ---- upload ---- */

/* One opening per staging file. Two connections of one site must not write into one file at alternating
 * offsets: the second one is told to come back (KEDGE_E_BUSY). */
static bool register_upload(struct kedge_upload *u)
{
    struct kedge_blobs *b = u->s.b;
    bool is_free = true;
    pthread_mutex_lock(&b->mutex);
    for (const struct kedge_upload *i = b->uploads; i; i = i->next) {
        is_free = is_free && strcmp(i->s.path, u->s.path) != 0;
    }
    if (is_free) {
        u->next = b->uploads;
        b->uploads = u;
    }
    pthread_mutex_unlock(&b->mutex);
    return is_free;
}

const struct kedge_upload *kedgei_upload_next(const struct kedge_upload *u)
{
    return u->next;
}

bool kedgei_upload_key(const struct kedge_upload *u, struct kedge_blob_key_id *ret)
{
    if (u->s.sealing) {
        *ret = u->s.sealing->id;
    }
    return u->s.sealing != NULL;
}

static void unregister_upload(struct kedge_upload *u)
{
    struct kedge_blobs *b = u->s.b;
    pthread_mutex_lock(&b->mutex);
    for (struct kedge_upload **i = &b->uploads; *i; i = &(*i)->next) {
        if (*i == u) {
            *i = u->next;
            break;
        }
    }
    pthread_mutex_unlock(&b->mutex);
}

/* Empties the file and starts the hash over. */
static int start_over(struct kedge_upload *u, struct kedge_diag *reterr)
{
    struct kedge_hash ignored;
    kedge_hasher_final(u->s.hasher, &ignored);
    u->s.size = 0;
    u->is_finished = false;
    if (u->s.sealing) {
        kedgei_sealing_restart(u->s.sealing);
    }
    return ftruncate(u->s.fd, 0) == 0 ? KEDGE_OK : fail(reterr, "truncate", u->s.path);
}

/* Opens the staging file and hashes what a former upload left in it. The hash state is not stored
 * anywhere; reading what is there costs less than sending it again, and finds out at the same time
 * whether it can still be read. More bytes than were announced can only be of another upload. */
static int open_staging(struct kedge_upload *u, struct kedge_diag *reterr)
{
    KEDGE_TRY(staged_open(&u->s, false, reterr));
    int err = u->s.sealing ? kedgei_sealing_resume(u->s.sealing, u->s.fd, u->s.hasher, &u->s.size)
                           : kedgei_hash_file(u->s.fd, u->s.hasher, &u->s.size);
    if (err) {
        kedge_diag_set(reterr, err, "%s: cannot read", u->s.path);
    } else if (u->s.size > u->total) {
        err = start_over(u, reterr); /* not what was announced */
    }
    if (err) {
        close(u->s.fd);
        kedge_hasher_free(u->s.hasher);
    }
    return err;
}

/* An upload is found again under its uploader's name and digest, so a site that lost the connection goes on
 * where it was. Two sites that send the same bytes have a file each: neither can spoil or stall the
 * other's. Room is claimed before the first byte for what is still missing, and given back if anything of
 * the opening fails. */
int kedge_upload_open(struct kedge_blobs *b, const struct kedge_id *name, const struct kedge_id *key,
                      const struct kedge_hash *digest, uint64_t total, struct kedge_upload **ret,
                      uint64_t *ret_offset, struct kedge_diag *reterr)
{
    char hex[KEDGE_HASH_HEX_LEN + 1], file[KEDGE_HASH_HEX_LEN + KEDGE_ID_MAX + 8];
    kedge_hash_hex(digest, hex);
    if (!kedge_id_is_valid(kedge_view_str(name->s))) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "the uploader's name is not an identifier");
    }
    if (kedge_blobs_find(b, digest, NULL) == KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_EXISTS, "blob %s is here already", hex);
    }
    struct kedge_upload *u = kedge_mem_new(1, sizeof *u);
    if (!u) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", b->staging_dir);
    }
    u->digest = *digest;
    u->total = total;
    u->s.b = b;
    snprintf(file, sizeof file, "up-%s-%s", name->s, hex);
    int err = key && b->options.encrypt ? kedgei_sealing_new(b, key, digest, total, &u->s.sealing, reterr)
                                        : KEDGE_OK;
    if (err) {
        kedge_mem_free(u);
        return err;
    }
    err = kedge_path_join(u->s.path, b->staging_dir, file);
    if (!err) { /* what is there already needs no room */
        int64_t there = kedge_file_size(u->s.path);
        u->s.announced = there > 0 && (uint64_t)there <= total ? total - (uint64_t)there : total;
        err = kedgei_blobs_admit(b, u->s.announced, reterr);
    } else {
        kedge_diag_set(reterr, err, "%s: path too long", b->staging_dir);
    }
    if (err) {
        kedgei_sealing_free(u->s.sealing);
        kedge_mem_free(u);
        return err;
    }
    if (!register_upload(u)) {
        err = kedge_diag_set(reterr, KEDGE_E_BUSY, "blob %s is being uploaded by %s already", hex, name->s);
    } else {
        err = open_staging(u, reterr);
        if (err) {
            unregister_upload(u);
        }
    }
    if (err) {
        kedgei_blobs_leave(b, u->s.announced);
        kedgei_sealing_free(u->s.sealing);
        kedge_mem_free(u);
        return err;
    }
    *ret_offset = u->s.size;
    *ret = u;
    return KEDGE_OK;
}

/* Chunks must come in order, since the hash runs along. A chunk that was sent twice has an offset that is
 * too small, and the error tells the site where to go on. */
int kedge_upload_write(struct kedge_upload *u, uint64_t offset, struct kedge_view bytes,
                       struct kedge_diag *reterr)
{
    if (offset != u->s.size || u->is_finished) {
        return kedge_diag_set(reterr, KEDGE_E_STATE, "chunk at offset %llu, expected %llu",
                              (unsigned long long)offset, (unsigned long long)u->s.size);
    }
    if (bytes.len > u->total - u->s.size) {
        return kedge_diag_set(reterr, KEDGE_E_BLOB_SIZE, "more bytes than the announced %llu",
                              (unsigned long long)u->total);
    }
    return staged_write(&u->s, bytes, reterr);
}

uint64_t kedge_upload_offset(const struct kedge_upload *u)
{
    return u->s.size;
}

/* All bytes are here: they must have the announced digest. If not, the file is emptied, because nothing
 * tells which of its bytes are wrong, and the site may send all of them again. */
int kedge_upload_finish(struct kedge_upload *u, struct kedge_diag *reterr)
{
    if (u->is_finished) {
        return KEDGE_OK;
    }
    if (u->s.size != u->total) {
        return kedge_diag_set(reterr, KEDGE_E_STATE, "%llu of %llu bytes are here",
                              (unsigned long long)u->s.size, (unsigned long long)u->total);
    }
    if (u->s.sealing && u->s.sealing->chunks == 0) { /* nothing in it, but it is a file with a last chunk */
        KEDGE_TRY(staged_write(&u->s, kedge_view_of(NULL, 0), reterr));
    }
    struct kedge_hash actual;
    kedge_hasher_final(u->s.hasher, &actual);
    if (!kedge_hash_eq(&actual, &u->digest)) {
        char hex[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&u->digest, hex);
        int err = start_over(u, reterr);
        return err ? err
                   : kedge_diag_set(reterr, KEDGE_E_BLOB_DIGEST, "what was uploaded as %s has another digest",
                                    hex);
    }
    /* The disk begins now, while the statement is on its way: the sync in commit finds less to wait for. */
    if (!u->s.b->options.pack || u->total > KEDGEI_PACK_BLOB_MAX) {
        (void)sync_file_range(u->s.fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
    u->is_finished = true;
    return KEDGE_OK;
}

const char *kedge_upload_path(const struct kedge_upload *u)
{
    return u->s.path;
}

void kedge_upload_at(const struct kedge_upload *u, struct kedge_blob_at *ret)
{
    *ret = (struct kedge_blob_at){.path = u->s.path, .keys = u->s.b->keys, .digest = u->digest};
}

void kedge_upload_attach(struct kedge_upload *u, void *what, void (*release)(void *what))
{
    KEDGE_ASSERT(!u->attached);
    u->attached = what;
    u->release = release;
}

void *kedge_upload_attached(const struct kedge_upload *u)
{
    return u->attached;
}

static void end_upload(struct kedge_upload *u, bool remove_file)
{
    if (u->attached) {
        u->release(u->attached);
    }
    unregister_upload(u);
    staged_close(&u->s, remove_file);
    kedge_mem_free(u);
}

/* The coordinator makes the blob durable before it appends the statement that names it: a crash can leave
 * a blob without a statement, which the sweep removes, and never a statement without its blob. */
int kedge_upload_commit(struct kedge_upload *u, struct kedge_diag *reterr)
{
    if (!u->is_finished) {
        return kedge_diag_set(reterr, KEDGE_E_STATE, "the upload has not been finished");
    }
    KEDGE_TRY(staged_move_in(&u->s, &u->digest, reterr));
    end_upload(u, false);
    return KEDGE_OK;
}

/* Kept for a later try; a file in which nothing was written yet would only take a place in the folder. */
void kedge_upload_close(struct kedge_upload *u)
{
    if (u) {
        end_upload(u, u->s.size == 0);
    }
}

void kedge_upload_abort(struct kedge_upload *u)
{
    if (u) {
        end_upload(u, true);
    }
}
