/* Packed blobs: appending, removing, making room (packs.h has the format).
 *
 * Writers of one process share a file and its sync: each appends its record under the mutex, then one of
 * them syncs for all that have come so far. Two processes never share a file (flock), so no writer has to
 * look at another's offset. A failed sync is final for what it was to cover, since Linux may drop dirty
 * pages and report the error only once. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/blob/packs.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"

static int fail(const struct kedgei_packs *p, uint32_t number, const char *what, struct kedge_diag *d)
{
    int e = errno, err = kedge_errno(e);
    kedge_diag_set(d, err, "%s/pack-%u: cannot %s: %s", p->dir, (unsigned)number, what, strerror(e));
    if (err == KEDGE_E_DISK_FULL) {
        kedge_diag_hint(d, "free space on this file system, then try again");
    }
    return err;
}

static struct kedgei_pack *last_file(const struct kedgei_packs *p)
{
    return &p->files[p->file_count - 1];
}

static int write_all(int fd, const uint8_t *bytes, size_t len, uint64_t offset)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, bytes + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? EIO : errno;
            return KEDGE_E_IO;
        }
        done += (size_t)n;
    }
    return KEDGE_OK;
}

/* ---- syncing ---- */

/* A sync that failed may have lost anything behind what was durable, and another one would not say so. What
 * is there is cut off, and what comes goes into another file. */
static void give_up_file(struct kedgei_packs *p)
{
    (void)!ftruncate(p->fd, (off_t)p->durable);
    close(p->fd);
    p->fd = -1;
    p->begin_anew = true;
    p->generation++;
}

/* Until what lies before `end` of the present file is durable; one thread syncs for all who wait. The
 * mutex is released during the sync, so other threads append meanwhile and wait for the next one.
 * `generation` tells a waiter that a sync failed and its record was cut off, even if a later file is
 * durable. */
static int sync_to(struct kedgei_packs *p, uint64_t end, struct kedge_diag *d)
{
    const uint64_t generation = p->generation;
    const uint32_t number = last_file(p)->number;
    while (!p->syncs_later && p->generation == generation && p->durable < end) {
        if (p->is_syncing) {
            pthread_cond_wait(&p->synced, &p->mutex);
            continue;
        }
        p->is_syncing = true;
        uint64_t target = p->end;
        int fd = p->fd;
        pthread_mutex_unlock(&p->mutex);
        int rc = fdatasync(fd), e = errno;
        pthread_mutex_lock(&p->mutex);
        p->is_syncing = false;
        if (rc == 0) {
            p->durable = target;
        } else {
            give_up_file(p);
        }
        pthread_cond_broadcast(&p->synced);
        errno = e;
    }
    errno = p->generation == generation ? 0 : EIO;
    return p->generation == generation ? KEDGE_OK : fail(p, number, "sync", d);
}

/* ---- the file that is appended to ---- */

/* Opens pack-`number`, made when there is none, for this process alone. KEDGE_E_LOCKED: another has it.
 * What lies behind the last whole record is cut off before anything is appended, or the rest of it would
 * stay behind a new record that is shorter. Then the file is synced, because its former writer may have
 * been killed before its own sync: records that are found must be durable before anybody answers for
 * them. */
static int take_file(struct kedgei_packs *p, uint32_t number, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct stat st;
    int err = kedgei_pack_file_path(p, number, path);
    int fd = err ? err : kedge_file_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, d);
    if (fd < 0) {
        return fd;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return KEDGE_E_LOCKED;
    }
    struct kedgei_pack *f = p->file_count ? last_file(p) : NULL;
    err = f && f->number == number ? KEDGE_OK : kedgei_packs_add_file(p, number, &f);
    if (!err) {
        err = kedgei_pack_scan(p, f, fd);
    }
    if (!err
        && (fstat(fd, &st) != 0 || ((uint64_t)st.st_size > f->end && ftruncate(fd, (off_t)f->end) != 0))) {
        err = fail(p, number, "cut off what an interrupted write left", d);
    }
    if (!err && fdatasync(fd) != 0) { /* who wrote it may have been killed before that */
        err = fail(p, number, "sync", d);
    }
    if (!err && kedge_dir_sync(p->dir) != KEDGE_OK) {
        err = kedge_diag_set(d, KEDGE_E_IO, "%s: cannot sync the folder", p->dir);
    }
    if (err) {
        close(fd);
        return err == KEDGE_E_NOMEM ? kedge_diag_set(d, err, "%s: out of memory", path) : err;
    }
    p->fd = fd;
    p->end = f->end;
    p->durable = f->end;
    return KEDGE_OK;
}

/* Goes on in the last file until it is full, or begins the next one. Files that another process has
 * locked are passed over: two writers never share one. The file is closed only once everything in it is
 * durable and nobody syncs, since another thread may hold its descriptor. */
static int open_current(struct kedgei_packs *p, uint64_t more, struct kedge_diag *d)
{
    while (p->fd >= 0 && p->end + more > KEDGEI_PACK_FILE_MAX) {
        uint64_t end = p->end;
        KEDGE_TRY(sync_to(p, end, d));
        if (p->fd >= 0 && p->end == end && !p->is_syncing) {
            close(p->fd);
            p->fd = -1;
            p->begin_anew = true;
        }
    }
    uint32_t number = p->file_count == 0 ? 1 : last_file(p)->number + p->begin_anew;
    for (uint32_t tries = 0; p->fd < 0 && tries < KEDGEI_PACKS_MAX; tries++, number++) {
        int err = take_file(p, number, d);
        if (err && err != KEDGE_E_LOCKED) {
            return err;
        }
        if (!err && p->end + more > KEDGEI_PACK_FILE_MAX) {
            close(p->fd);
            p->fd = -1;
        }
    }
    p->begin_anew = false;
    return p->fd >= 0 ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_FULL, "%s: too many packs", p->dir);
}

/* ---- putting ---- */

/* Whether the bytes are those that the record was made with. A removed blob's bytes are zeros, an
 * interrupted write's are incomplete; in both cases the record must be put again. */
static bool is_whole(const struct kedgei_packs *p, const struct kedgei_pack_record *r)
{
    char path[KEDGE_PATH_MAX];
    uint8_t check[8], *bytes = kedge_mem_new(r->len + 1u, 1);
    int fd = bytes && kedgei_pack_file_path(p, r->pack, path) == KEDGE_OK
                 ? kedge_file_open(path, O_RDONLY | O_NOFOLLOW, NULL)
                 : -1;
    bool is = fd >= 0 && kedge_fd_read_at(fd, bytes, r->len, r->offset + KEDGEI_PACK_HEAD) == KEDGE_OK;
    if (is) {
        kedgei_pack_check(kedge_view_of(bytes, r->len), check);
        is = memcmp(check, r->check, sizeof check) == 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    kedge_mem_free(bytes);
    return is;
}

/* The record is written, then synced, and only then noted in the index: nothing is found that a crash
 * could take away. Syncs of several threads are joined (sync_to), so the index may have grown in between.
 * When the record cannot be written whole, the file is cut back to where it was; `end` is raised only
 * afterwards. */
static int append(struct kedgei_packs *p, const uint8_t *record, struct kedgei_pack_record *r,
                  struct kedge_diag *d)
{
    size_t whole = (size_t)kedgei_pack_whole(r->len);
    int err = open_current(p, whole, d);
    if (err) {
        return err;
    }
    r->pack = last_file(p)->number;
    r->offset = p->end;
    if (write_all(p->fd, record, whole, p->end) != KEDGE_OK) {
        err = fail(p, r->pack, "write", d);
        (void)!ftruncate(p->fd, (off_t)p->end); /* if that fails, too, the next record goes over it */
        return err;
    }
    p->end += whole;
    err = sync_to(p, p->end, d);
    if (!err) {
        struct kedgei_pack *f = &p->files[0];
        while (f->number != r->pack) {
            f++;
        }
        uint64_t behind = r->offset + whole;
        f->end = f->end > behind ? f->end : behind;
        err = kedgei_packs_note(p, r);
    }
    return err;
}

static uint8_t *record_of(struct kedge_view stored, struct kedgei_pack_record *r)
{
    uint8_t *bytes = kedge_mem_new((size_t)kedgei_pack_whole(r->len), 1);
    if (bytes) {
        kedgei_pack_check(stored, r->check);
        kedgei_pack_head_write(r, bytes);
        if (stored.len > 0) {
            memcpy(bytes + KEDGEI_PACK_HEAD, stored.ptr, stored.len);
        }
    }
    return bytes;
}

/* A blob that is there already is not written again, if its bytes are still those that were put: damage is
 * mended by putting the same blob once more. */
int kedgei_packs_put(struct kedgei_packs *p, const struct kedge_hash *digest, struct kedge_view stored,
                     struct kedge_diag *reterr)
{
    struct kedgei_pack_record there, r = {.state = KEDGEI_PACK_BLOB, .digest = *digest};
    if (stored.len > KEDGEI_PACK_STORED_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: %zu bytes are too many", p->dir, stored.len);
    }
    r.len = (uint32_t)stored.len;
    r.time = (uint32_t)(kedge_os_unix_ms() / 1000);
    uint8_t *record = record_of(stored, &r);
    if (!record) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", p->dir);
    }
    pthread_mutex_lock(&p->mutex);
    int err = kedgei_packs_look(p, digest, &there);
    if (err || !is_whole(p, &there)) {
        err = append(p, record, &r, reterr);
    } else { /* its writer may have been killed before the sync; of the files before the last that is done */
        err = open_current(p, 0, reterr);
        err = err || there.pack != last_file(p)->number ? err : sync_to(p, p->end, reterr);
    }
    pthread_mutex_unlock(&p->mutex);
    kedge_mem_free(record);
    return err;
}

/* ---- removing ---- */

/* Zeros first: after a crash in between the blob is still found, and removed by the next try.
 * Three steps, in this order on the disk: zeros over the bytes, the head that says "removed", the hole. A
 * crash after the first leaves a record that still has its name, so it can be removed again, and bytes
 * that do not have its digest. */
static int overwrite(const struct kedgei_packs *p, const struct kedgei_pack_record *r, bool durable,
                     struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    uint8_t head[KEDGEI_PACK_HEAD], *zeros = kedge_mem_new(r->len + 1u, 1);
    struct kedgei_pack_record removed = {.state = KEDGEI_PACK_REMOVED, .len = r->len};
    int err = zeros ? kedgei_pack_file_path(p, r->pack, path) : KEDGE_E_NOMEM;
    int fd = err ? err : kedge_file_open(path, O_RDWR | O_NOFOLLOW, d);
    if (fd < 0) {
        kedge_mem_free(zeros);
        return fd;
    }
    kedgei_pack_head_write(&removed, head);
    if (write_all(fd, zeros, r->len, r->offset + KEDGEI_PACK_HEAD) != KEDGE_OK
        || (durable && fdatasync(fd) != 0) || write_all(fd, head, sizeof head, r->offset) != KEDGE_OK) {
        err = fail(p, r->pack, "remove a blob from it", d);
    }
    uint64_t whole = kedgei_pack_whole(r->len); /* its whole pages go back to the file system, where it can */
    if (!err) {
        (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(r->offset + KEDGEI_PACK_HEAD),
                        (off_t)(whole - KEDGEI_PACK_HEAD));
    }
    if (!err && durable && fdatasync(fd) != 0) {
        err = fail(p, r->pack, "sync", d);
    }
    close(fd);
    kedge_mem_free(zeros);
    return err;
}

/* Older records of the digest, which the index does not know. A digest that was put twice (after damage,
 * or by two processes) has older records that no index leads to. An erasure must reach them as well, so
 * all files are searched, but only if there is any such record at all. */
static int remove_shadowed(struct kedgei_packs *p, const struct kedge_hash *digest, bool durable,
                           struct kedge_diag *d)
{
    int err = KEDGE_OK;
    for (size_t i = 0; i < p->file_count && !err; i++) {
        char path[KEDGE_PATH_MAX];
        struct kedgei_pack_record r;
        uint64_t at = 0;
        err = kedgei_pack_file_path(p, p->files[i].number, path);
        int fd = err ? err : kedge_file_open(path, O_RDONLY | O_NOFOLLOW, d);
        if (fd < 0) {
            return fd;
        }
        while (!err && kedgei_pack_next(fd, p->files[i].number, p->files[i].end, &at, &r) == KEDGE_OK) {
            if (r.state == KEDGEI_PACK_BLOB && kedge_hash_eq(&r.digest, digest)) {
                err = overwrite(p, &r, durable, d);
            }
        }
        close(fd);
    }
    return err;
}

int kedgei_packs_remove(struct kedgei_packs *p, const struct kedge_hash *digest, bool durable,
                        struct kedge_diag *reterr)
{
    struct kedgei_pack_record r;
    pthread_mutex_lock(&p->mutex);
    int err = kedgei_packs_look(p, digest, &r);
    if (!err && p->shadowed > 0) {
        err = remove_shadowed(p, digest, durable, reterr); /* the newest is one of them */
    } else if (!err) {
        err = overwrite(p, &r, durable, reterr);
    }
    if (!err) {
        kedgei_packs_forget(p, digest);
    }
    pthread_mutex_unlock(&p->mutex);
    return err;
}

/* ---- making room ---- */

/* The check of the bytes is copied and not computed: computed anew it would certify damage that happened
 * in the old file. */
static int move_record(struct kedgei_packs *p, int fd, struct kedgei_pack_record r, struct kedge_diag *d)
{
    uint8_t *bytes = kedge_mem_new(r.len + 1u, 1);
    int err = bytes ? kedge_fd_read_at(fd, bytes, r.len, r.offset + KEDGEI_PACK_HEAD) : KEDGE_E_NOMEM;
    struct kedgei_pack_record made = {
        .state = KEDGEI_PACK_BLOB, .len = r.len, .time = r.time, .digest = r.digest};
    uint8_t *record = err ? NULL : record_of(kedge_view_of(bytes, r.len), &made);
    if (record) {
        memcpy(made.check, r.check, sizeof made.check); /* what was damaged stays so */
        kedgei_pack_head_write(&made, record);
    }
    err = err      ? kedge_diag_set(d, err, "%s/pack-%u: cannot read", p->dir, (unsigned)r.pack)
          : record ? append(p, record, &made, d)
                   : kedge_diag_set(d, KEDGE_E_NOMEM, "%s: out of memory", p->dir);
    kedge_mem_free(record);
    kedge_mem_free(bytes);
    return err;
}

static uint64_t bytes_in_use(int fd, const struct kedgei_pack *f)
{
    struct kedgei_pack_record r;
    uint64_t at = 0, used = 0;
    while (kedgei_pack_next(fd, f->number, f->end, &at, &r) == KEDGE_OK) {
        used += r.state == KEDGEI_PACK_BLOB ? kedgei_pack_whole(r.len) : 0;
    }
    return used;
}

/* Moves what file i still holds, when that is little, and removes it. Records are durable in another file
 * before the old one is removed, so a crash leaves a blob twice and never without a place. Of two records
 * of one digest only the newer one moves. */
static int compact_file(struct kedgei_packs *p, size_t i, uint64_t *freed, struct kedge_diag *d)
{
    const struct kedgei_pack f = p->files[i];
    char path[KEDGE_PATH_MAX];
    struct kedgei_pack_record r, newest;
    uint64_t at = 0;
    int err = kedgei_pack_file_path(p, f.number, path);
    int fd = err ? err : kedge_file_open(path, O_RDONLY | O_NOFOLLOW, d);
    if (fd < 0) {
        return fd;
    }
    uint64_t used = bytes_in_use(fd, &f);
    if (used < f.end - used) {
        while (!err && kedgei_pack_next(fd, f.number, f.end, &at, &r) == KEDGE_OK) {
            bool is_live = r.state == KEDGEI_PACK_BLOB && kedgei_packs_look(p, &r.digest, &newest) == KEDGE_OK
                           && newest.pack == r.pack && newest.offset == r.offset;
            err = is_live ? move_record(p, fd, r, d) : KEDGE_OK;
        }
        if (!err && (unlink(path) != 0 || kedge_dir_sync(p->dir) != KEDGE_OK)) {
            err = fail(p, f.number, "remove", d);
        }
        if (!err) {
            memmove(&p->files[i], &p->files[i + 1], (p->file_count - i - 1) * sizeof *p->files);
            p->file_count--;
            *freed += f.end - used;
        }
    }
    close(fd);
    return err;
}

int kedgei_packs_compact(struct kedgei_packs *p, uint64_t *ret_freed, struct kedge_diag *reterr)
{
    pthread_mutex_lock(&p->mutex);
    int err = KEDGE_OK;
    uint64_t freed = 0;
    if (p->fd >= 0) {
        err = sync_to(p, p->end, reterr);
    }
    if (!err && p->fd >= 0) {
        close(p->fd);
        p->fd = -1;
    }
    p->begin_anew = true; /* none of those that are looked at */
    for (size_t i = p->file_count; i > 0 && !err; i--) {
        err = compact_file(p, i - 1, &freed, reterr);
    }
    *ret_freed = freed;
    pthread_mutex_unlock(&p->mutex);
    return err;
}
