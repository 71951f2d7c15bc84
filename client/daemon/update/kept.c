/* Vectors that a site keeps between its trainings. docs/modules/client-daemon.md, "What a site keeps between
 * its trainings", has the crash cases; this file holds the two places that they rely on.
 *
 * Each vector has two files: NAME, which belongs to the accepted update, and NAME.next, which belongs to the
 * update that was signed last. Which one counts is decided by nothing but the digest in the memory file,
 * compared with the digest in each file. So a crash between any two writes leaves at least the file that
 * counts. */
#include "client/daemon/update/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/os/file.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"
#include "crypto/hash.h"

/* ---- which update counts ---- */

static struct kedge_kept_row *find_row(struct kedge_kept_table *t, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (kedge_id_eq(&t->items[i].job, job)) {
            return &t->items[i];
        }
    }
    return NULL;
}

/* Only the newest signed update of a job is pending: a receipt for an older one, which could still come, must
 * not make its vector the one in force, for its file has been written over. */
void kedge_kept_signed(struct kedge_kept_table *t, const struct kedge_id *job,
                       const struct kedge_site_digest *update)
{
    struct kedge_kept_row row = {.job = *job}, *old = find_row(t, job);
    if (!old && t->count == KEDGE_KEPT_JOBS_MAX) {
        old = t->items; /* the job that was trained for longest ago has ended, if any has */
    } else if (old) {
        row = *old;
    }
    if (old) {
        t->count--;
        memmove(old, old + 1, (size_t)(t->items + t->count - old) * sizeof *old);
    }
    row.pending = *update;
    t->items[t->count++] = row;
}

void kedge_kept_accepted(struct kedge_kept_table *t, const struct kedge_id *job,
                         const struct kedge_site_digest *update)
{
    struct kedge_kept_row *row = find_row(t, job);
    if (row && memcmp(row->pending.b, update->b, sizeof update->b) == 0) {
        row->accepted = *update;
    }
}

struct kedge_site_digest kedge_kept_in_force(const struct kedge_kept_table *t, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (kedge_id_eq(&t->items[i].job, job)) {
            return t->items[i].accepted;
        }
    }
    return (struct kedge_site_digest){{0}};
}

/* ---- files ----
 *
 * MAGIC, the update's digest, the SHA-256 of all that comes after it, the number of values and the group
 * (big-endian), the values as they are in memory. */
enum { MAGIC_LEN = 16, AT_UPDATE = 16, AT_SUM = 48, AT_COUNT = 80, AT_GROUP = 88, HEAD = 96 };
static const char magic[MAGIC_LEN + 1] = "kedge kept 1   \n";

struct places {
    char dir[KEDGE_PATH_MAX], now[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX], work[KEDGE_PATH_MAX];
};

/* A folder for each job: its name may end as ".next" does, too. */
static int places_of(const char *dir, const struct kedge_id *job, const char *name, struct places *ret)
{
    char next[KEDGE_ID_MAX + 8], work[KEDGE_ID_MAX + 8], kept[KEDGE_PATH_MAX];
    snprintf(next, sizeof next, "%s.next", name);
    snprintf(work, sizeof work, "%s.work", name);
    KEDGE_TRY(kedge_path_join(kept, dir, "kept"));
    KEDGE_TRY(kedge_path_join(ret->dir, kept, job->s));
    KEDGE_TRY(kedge_path_join(ret->now, ret->dir, name));
    KEDGE_TRY(kedge_path_join(ret->work, ret->dir, work));
    return kedge_path_join(ret->next, ret->dir, next);
}

static size_t file_len(const struct kedge_kept *k)
{
    return HEAD + (size_t)k->count * sizeof(int32_t);
}

static void sum_of(const uint8_t *file, size_t len, struct kedge_hash *ret)
{
    kedge_sha256(kedge_view_of(file + AT_COUNT, len - AT_COUNT), ret);
}

/* Room for the whole file is taken before it is mapped: a page that the disk has no room for would be a
 * signal in the middle of a training, and not an error. What an earlier process left there is of no use. */
static int begin_work(struct kedge_kept *k, const struct places *p, struct kedge_diag *reterr)
{
    const size_t len = file_len(k);
    k->fd = kedge_file_open(p->work, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, reterr);
    if (k->fd < 0) {
        return k->fd;
    }
    memcpy(k->work, p->work, sizeof k->work);
    int os = posix_fallocate(k->fd, 0, (off_t)len);
    if (os == 0) {
        void *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, k->fd, 0);
        os = map == MAP_FAILED ? errno : 0;
        k->file = os ? NULL : map;
    }
    return os ? kedge_diag_set(reterr, kedge_errno(os), "%s: no room for %llu values: %s", p->work,
                               (unsigned long long)k->count, strerror(os))
              : KEDGE_OK;
}

/* KEDGE_E_NOT_FOUND: there is no such file, or it belongs to another update. */
static int read_file(const char *path, const struct kedge_site_digest *update, struct kedge_kept *k,
                     struct kedge_diag *reterr)
{
    struct kedge_map map;
    struct kedge_hash sum;
    if (!kedge_file_exists(path)) {
        return KEDGE_E_NOT_FOUND;
    }
    int err = kedge_map_open(path, &map, reterr);
    if (err) {
        return err;
    }
    bool whole = map.len == file_len(k) && memcmp(map.ptr, magic, MAGIC_LEN) == 0
                 && kedge_load_be64(map.ptr + AT_COUNT) == k->count;
    if (whole && memcmp(map.ptr + AT_UPDATE, update->b, sizeof update->b) != 0) {
        err = KEDGE_E_NOT_FOUND;
    } else if (whole) {
        memcpy(k->file, map.ptr, map.len);
        sum_of(k->file, map.len, &sum);
        whole = memcmp(k->file + AT_SUM, sum.b, sizeof sum.b) == 0;
    }
    kedge_map_close(&map);
    if (!err && !whole) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "%s: it is damaged", path);
    }
    if (!err) {
        k->group = (uint32_t)kedge_load_be64(k->file + AT_GROUP);
    }
    return err;
}

/* The file that belongs to the update in force takes the first place, so that the next one can be written. A
 * damaged file in the second place is of an update that never left. */
static int find_file(const struct places *p, const struct kedge_site_digest *in_force, struct kedge_kept *k,
                     struct kedge_diag *reterr)
{
    int err = read_file(p->next, in_force, k, reterr);
    if (err == KEDGE_E_NOT_FOUND || err == KEDGE_E_CORRUPT) {
        err = read_file(p->now, in_force, k, reterr);
        return err != KEDGE_E_NOT_FOUND ? err : kedge_diag_set(reterr, err, "%s: it is not there", p->now);
    }
    if (err) {
        return err;
    }
    err = rename(p->next, p->now) == 0 ? kedge_dir_sync(p->dir) : kedge_errno(errno);
    return err ? kedge_diag_set(reterr, err, "%s: %s", p->now, kedge_strerror(err)) : KEDGE_OK;
}

static int open_with(const char *dir, const struct kedge_id *job, const char *name,
                     const struct kedge_site_digest *in_force, uint64_t count, bool begins,
                     struct kedge_kept *ret, struct kedge_diag *reterr)
{
    static const struct kedge_site_digest none;
    struct kedge_kept k = {.name = name, .count = count, .fd = -1};
    struct places p;
    KEDGE_TRY(places_of(dir, job, name, &p));
    KEDGE_TRY(kedge_dir_make(p.dir, 0700, reterr));
    int err = begin_work(&k, &p, reterr);
    if (err) {
        kedge_kept_close(&k);
        return err;
    }
    KEDGE_ASSERT(k.file);
    k.is_new = memcmp(in_force->b, none.b, sizeof none.b) == 0;
    err = k.is_new ? KEDGE_OK : find_file(&p, in_force, &k, reterr);
    if (begins && (err == KEDGE_E_NOT_FOUND || err == KEDGE_E_CORRUPT)) {
        kedge_log(KEDGE_LOG_WARN, "lost", "job=%s: what this site kept as \"%s\" is lost: %s", job->s, name,
                  reterr ? reterr->text : kedge_strerror(err));
        memset(k.file, 0, file_len(&k));
        k.is_new = true;
        if (reterr) {
            *reterr = (struct kedge_diag){.err = KEDGE_OK};
        }
        err = KEDGE_OK;
    }
    if (err) {
        kedge_kept_close(&k);
        return err;
    }
    k.values = k.file + HEAD;
    *ret = k;
    return KEDGE_OK;
}

int kedge_kept_open(const char *dir, const struct kedge_id *job, const char *name,
                    const struct kedge_site_digest *in_force, uint64_t count, struct kedge_kept *ret,
                    struct kedge_diag *reterr)
{
    return open_with(dir, job, name, in_force, count, false, ret, reterr);
}

int kedge_kept_open_or_begin(const char *dir, const struct kedge_id *job, const char *name,
                             const struct kedge_site_digest *in_force, uint64_t count, struct kedge_kept *ret,
                             struct kedge_diag *reterr)
{
    return open_with(dir, job, name, in_force, count, true, ret, reterr);
}

void kedge_kept_set_group(struct kedge_kept *k, uint32_t group)
{
    if (k->group != group) {
        memset(k->values, 0, (size_t)k->count * sizeof(int32_t));
    }
    k->group = group;
}

int kedge_kept_write(const char *dir, const struct kedge_id *job, const struct kedge_site_digest *update,
                     struct kedge_kept *k, struct kedge_diag *reterr)
{
    struct places p;
    struct kedge_hash sum;
    KEDGE_TRY(places_of(dir, job, k->name, &p));
    memcpy(k->file, magic, MAGIC_LEN);
    memcpy(k->file + AT_UPDATE, update->b, sizeof update->b);
    kedge_store_be64(k->file + AT_COUNT, k->count);
    kedge_store_be64(k->file + AT_GROUP, k->group);
    sum_of(k->file, file_len(k), &sum);
    memcpy(k->file + AT_SUM, sum.b, sizeof sum.b);
    (void)mprotect(k->file, file_len(k), PROT_READ); /* what is durable stays as it is */
    if (fsync(k->fd) != 0 || rename(k->work, p.next) != 0) {
        return kedge_diag_set(reterr, kedge_errno(errno), "%s: %s", k->work, strerror(errno));
    }
    k->work[0] = '\0';
    int err = kedge_dir_sync(p.dir);
    return err ? kedge_diag_set(reterr, err, "%s: cannot sync the folder", p.dir) : KEDGE_OK;
}

void kedge_kept_close(struct kedge_kept *k)
{
    if (k->file) {
        (void)munmap(k->file, file_len(k));
    }
    if (k->name && k->fd >= 0) {
        close(k->fd);
    }
    if (k->work[0]) {
        (void)unlink(k->work);
    }
    *k = (struct kedge_kept){.count = 0};
}

static bool is_work(const char *name)
{
    static const char end[] = ".work";
    const size_t len = strlen(name);
    return len > sizeof end - 1 && strcmp(name + len - (sizeof end - 1), end) == 0;
}

static void sweep_job(const char *dir)
{
    char path[KEDGE_PATH_MAX];
    struct dirent *entry;
    DIR *job = opendir(dir);
    while (job && (entry = readdir(job)) != NULL) {
        if (is_work(entry->d_name) && kedge_path_join(path, dir, entry->d_name) == KEDGE_OK) {
            (void)unlink(path);
        }
    }
    if (job) {
        closedir(job);
    }
}

void kedge_kept_sweep(const char *dir)
{
    char kept[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    struct dirent *entry;
    DIR *all = kedge_path_join(kept, dir, "kept") == KEDGE_OK ? opendir(kept) : NULL;
    while (all && (entry = readdir(all)) != NULL) {
        if (entry->d_name[0] != '.' && kedge_path_join(path, kept, entry->d_name) == KEDGE_OK) {
            sweep_job(path);
        }
    }
    if (all) {
        closedir(all);
    }
}

/* ---- as model files ---- */

static int put_model(const struct kedge_kept *k, const struct kedge_layout *layout, int fd)
{
    struct kedge_buf header;
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    int err = kedge_safetensors_header(layout, KEDGE_DTYPE_F32, &header);
    if (!err) {
        err = kedge_fd_write(fd, kedge_buf_view(&header));
    }
    kedge_buf_deinit(&header);
    return err ? err : kedge_fd_write(fd, kedge_view_of(k->values, (size_t)k->count * sizeof(float)));
}

int kedge_kept_to_model(const struct kedge_kept *k, const struct kedge_layout *layout, const char *path,
                        struct kedge_diag *reterr)
{
    char part[KEDGE_PATH_MAX];
    if (k->is_new) {
        return unlink(path) == 0 || errno == ENOENT
                   ? KEDGE_OK
                   : kedge_diag_set(reterr, kedge_errno(errno), "%s: %s", path, strerror(errno));
    }
    int n = snprintf(part, sizeof part, "%s.part", path);
    if (n < 0 || (size_t)n >= sizeof part) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: path too long", path);
    }
    int fd = kedge_file_open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, reterr);
    if (fd < 0) {
        return fd;
    }
    int err = put_model(k, layout, fd);
    if (close(fd) != 0 && !err) {
        err = kedge_errno(errno);
    }
    if (!err && rename(part, path) != 0) {
        err = kedge_errno(errno);
    }
    if (err) {
        (void)unlink(part);
    }
    return err ? kedge_diag_set(reterr, err, "%s: %s", path, kedge_strerror(err)) : KEDGE_OK;
}

int kedge_kept_from_model(struct kedge_kept *k, const struct kedge_layout *layout, const char *path,
                          struct kedge_diag *reterr)
{
    struct kedge_map map;
    struct kedge_layout got;
    uint64_t start = 0;
    if (!kedge_file_exists(path)) {
        return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "%s: the trainer has left no model there", path);
    }
    KEDGE_TRY(kedge_map_open(path, &map, reterr));
    int err = kedge_safetensors_read(kedge_view_of(map.ptr, map.len), map.len, KEDGE_SAFETENSORS_CANONICAL,
                                     &got, &start, reterr);
    if (!err) {
        err = kedge_layout_check_same(layout, &got, KEDGE_DTYPE_F32, reterr);
        kedge_layout_deinit(&got);
    }
    if (!err) {
        memcpy(k->values, map.ptr + start, (size_t)k->count * sizeof(float));
    }
    kedge_map_close(&map);
    return err ? kedge_diag_wrap(reterr, err, "%s", path) : KEDGE_OK;
}
