/* Packed blobs: their records, where each is, and reading (packs.h has the format). */
#include "chain/store/blob/packs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/entropy.h"
#include "common/base/try.h"

enum { BAD_SECTOR = 4096, VERSION = 1, CHECKED = KEDGEI_PACK_HEAD - 8 };

static const uint8_t MAGIC[4] = {'K', 'P', 'A', 'K'};

/* ---- records ---- */

static void store_be32(uint8_t out[4], uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(v >> (24 - 8 * i));
    }
}

static uint32_t load_be32(const uint8_t in[4])
{
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
}

void kedgei_pack_check(struct kedge_view bytes, uint8_t out[8])
{
    struct kedge_hash hash;
    kedge_sha256(bytes, &hash);
    memcpy(out, hash.b, 8);
}

/* Multiples of 64, so that the next head can be found again behind damage, and 22 bits suffice for an
 * offset in the index. */
uint64_t kedgei_pack_whole(uint32_t len)
{
    return ((uint64_t)len + 2 * KEDGEI_PACK_HEAD - 1) / KEDGEI_PACK_HEAD * KEDGEI_PACK_HEAD;
}

void kedgei_pack_head_write(const struct kedgei_pack_record *record, uint8_t out[KEDGEI_PACK_HEAD])
{
    memset(out, 0, KEDGEI_PACK_HEAD);
    memcpy(out, MAGIC, sizeof MAGIC);
    out[4] = VERSION;
    out[5] = (uint8_t)record->state;
    store_be32(out + 8, record->len);
    store_be32(out + 12, record->time);
    memcpy(out + 16, record->digest.b, KEDGE_HASH_LEN);
    memcpy(out + 48, record->check, 8);
    kedgei_pack_check(kedge_view_of(out, CHECKED), out + CHECKED);
}

/* KEDGE_E_CORRUPT: these bytes are no head. The head is written again from what was read and compared
 * whole; that covers version, zeros and its check at once, and no bit of a head is without meaning. */
static int read_head(const uint8_t head[KEDGEI_PACK_HEAD], struct kedgei_pack_record *ret)
{
    uint8_t again[KEDGEI_PACK_HEAD];
    if (memcmp(head, MAGIC, 4) != 0 || (head[5] != KEDGEI_PACK_BLOB && head[5] != KEDGEI_PACK_REMOVED)) {
        return KEDGE_E_CORRUPT;
    }
    ret->state = (enum kedgei_pack_state)head[5];
    ret->len = load_be32(head + 8);
    ret->time = load_be32(head + 12);
    memcpy(ret->digest.b, head + 16, KEDGE_HASH_LEN);
    memcpy(ret->check, head + 48, 8);
    kedgei_pack_head_write(ret, again); /* version, zeros and check */
    return ret->len <= KEDGEI_PACK_STORED_MAX && memcmp(head, again, sizeof again) == 0 ? KEDGE_OK
                                                                                        : KEDGE_E_CORRUPT;
}

/* A damaged head costs one record: the search goes on in steps of 64 bytes, where every record begins,
 * until a head proves itself. A bad sector is gone over in the same way. */
int kedgei_pack_next(int fd, uint32_t number, uint64_t size, uint64_t *at, struct kedgei_pack_record *ret)
{
    uint8_t head[KEDGEI_PACK_HEAD];
    const uint64_t most = KEDGEI_PACK_FILE_MAX;
    size = size < most ? size : most;
    while (*at + KEDGEI_PACK_HEAD <= size) {
        struct kedgei_pack_record r = {.pack = number, .offset = *at};
        if (kedge_fd_read_at(fd, head, sizeof head, *at) != KEDGE_OK) { /* a bad sector ends nothing else */
            *at = (*at / BAD_SECTOR + 1) * BAD_SECTOR;
            continue;
        }
        if (read_head(head, &r) != KEDGE_OK || kedgei_pack_whole(r.len) > size - *at) {
            *at += KEDGEI_PACK_HEAD;
            continue;
        }
        *at += kedgei_pack_whole(r.len);
        *ret = r;
        return KEDGE_OK;
    }
    return KEDGE_E_NOT_FOUND;
}

/* ---- the files ---- */

/* The number that the digits at *text say, at most 18 of them; *text is behind them then. */
static uint64_t take_number(const char **text)
{
    uint64_t n = 0;
    for (int i = 0; i < 18 && **text >= '0' && **text <= '9'; i++) {
        n = 10 * n + (uint64_t)(*(*text)++ - '0');
    }
    return n;
}

bool kedgei_pack_name(const char *name, uint32_t *ret_number)
{
    char again[32];
    if (strncmp(name, "pack-", 5) != 0 || strlen(name) > 5 + 7) {
        return false;
    }
    const char *digits = name + 5;
    uint64_t n = take_number(&digits);
    snprintf(again, sizeof again, "pack-%llu", (unsigned long long)n);
    *ret_number = (uint32_t)n;
    return n >= 1 && n < KEDGEI_PACKS_MAX && strcmp(name, again) == 0;
}

int kedgei_pack_file_path(const struct kedgei_packs *p, uint32_t number, char out[KEDGE_PATH_MAX])
{
    char name[32];
    snprintf(name, sizeof name, "pack-%u", (unsigned)number);
    return kedge_path_join(out, p->dir, name);
}

static int place_path(const struct kedgei_packs *p, uint32_t number, uint64_t offset, uint64_t len,
                      char out[KEDGE_PATH_MAX])
{
    char name[80];
    snprintf(name, sizeof name, "pack-%u@%llu+%llu", (unsigned)number, (unsigned long long)offset,
             (unsigned long long)len);
    return kedge_path_join(out, p->dir, name);
}

int kedgei_packs_path(const struct kedgei_packs *p, const struct kedgei_pack_record *record,
                      char out[KEDGE_PATH_MAX])
{
    return place_path(p, record->pack, record->offset + KEDGEI_PACK_HEAD, record->len, out);
}

/* A path of this form is the only way in which a place in a pack is handed around; code that opens "a
 * blob's file" needs not know of packs. */
bool kedgei_pack_place(const char *path, char file[KEDGE_PATH_MAX], uint64_t *ret_offset, uint64_t *ret_len)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    const char *at = strchr(name, '@'), *plus = at ? strchr(at, '+') : NULL;
    uint32_t number;
    snprintf(file, KEDGE_PATH_MAX, "%s", path);
    if (strncmp(name, "pack-", 5) != 0 || !plus) {
        return false;
    }
    file[at - path] = '\0';
    if (!kedgei_pack_name(file + (name - path), &number)) {
        file[at - path] = '@';
        return false;
    }
    const char *offset = at + 1, *len = plus + 1;
    *ret_offset = take_number(&offset);
    *ret_len = take_number(&len);
    return true;
}

int kedgei_packs_add_file(struct kedgei_packs *p, uint32_t number, struct kedgei_pack **ret)
{
    KEDGE_TRY_MEM(kedge_mem_grow(&p->files, &p->file_cap, p->file_count, 8, sizeof *p->files));
    p->files[p->file_count] = (struct kedgei_pack){.number = number};
    *ret = &p->files[p->file_count++];
    return KEDGE_OK;
}

int kedgei_pack_scan(struct kedgei_packs *p, struct kedgei_pack *f, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return kedge_errno(errno);
    }
    uint64_t at = f->end;
    struct kedgei_pack_record r;
    while (kedgei_pack_next(fd, f->number, (uint64_t)st.st_size, &at, &r) == KEDGE_OK) {
        KEDGE_TRY(r.state == KEDGEI_PACK_BLOB ? kedgei_packs_note(p, &r) : KEDGE_OK);
        f->end = at;
    }
    return KEDGE_OK;
}

static int open_file(const struct kedgei_packs *p, uint32_t number, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = kedgei_pack_file_path(p, number, path);
    return err ? err : kedge_file_open(path, O_RDONLY | O_NOFOLLOW, d);
}

static int scan_file(struct kedgei_packs *p, struct kedgei_pack *f, struct kedge_diag *d)
{
    int fd = open_file(p, f->number, d);
    if (fd < 0) {
        return fd;
    }
    int err = kedgei_pack_scan(p, f, fd);
    close(fd);
    return err;
}

static int compare_files(const void *a, const void *b)
{
    uint32_t x = ((const struct kedgei_pack *)a)->number, y = ((const struct kedgei_pack *)b)->number;
    return (x > y) - (x < y);
}

/* What is called so and no file is another's business: sweeps tell of it. */
static int list_files(struct kedgei_packs *p)
{
    DIR *dir = opendir(p->dir);
    if (!dir) {
        return errno == ENOENT ? KEDGE_OK : kedge_errno(errno);
    }
    const struct dirent *e;
    int err = KEDGE_OK;
    while (!err && (e = readdir(dir)) != NULL) {
        uint32_t number;
        struct stat st;
        struct kedgei_pack *f;
        if (kedgei_pack_name(e->d_name, &number)
            && fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
            err = kedgei_packs_add_file(p, number, &f);
        }
    }
    closedir(dir);
    if (p->file_count > 1) {
        qsort(p->files, p->file_count, sizeof *p->files, compare_files);
    }
    return err;
}

/* Nothing besides the files says what is in them, so nothing can contradict them: the index is made anew
 * from the heads at each opening. The seed of the hash table is random, so that nobody can choose digests
 * which all meet in one place. */
int kedgei_packs_open(const char *blobs_dir, struct kedgei_packs *ret, struct kedge_diag *reterr)
{
    *ret = (struct kedgei_packs){.fd = -1};
    snprintf(ret->dir, sizeof ret->dir, "%s", blobs_dir);
    kedge_os_random(ret->seed, sizeof ret->seed);
    pthread_mutex_init(&ret->mutex, NULL);
    pthread_cond_init(&ret->synced, NULL);
    int err = list_files(ret);
    if (err) {
        kedge_diag_set(reterr, err, "%s: cannot be listed: %s", blobs_dir, kedge_strerror(err));
    }
    for (size_t i = 0; i < ret->file_count && !err; i++) {
        err = scan_file(ret, &ret->files[i], reterr);
        if (err == KEDGE_E_NOMEM) {
            kedge_diag_set(reterr, err, "%s: out of memory", blobs_dir);
        }
    }
    if (err) {
        kedgei_packs_close(ret);
    }
    return err;
}

void kedgei_packs_close(struct kedgei_packs *p)
{
    if (p->fd >= 0) {
        close(p->fd);
    }
    pthread_cond_destroy(&p->synced);
    pthread_mutex_destroy(&p->mutex);
    kedge_mem_free(p->files);
    kedge_mem_free(p->slots);
}

/* ---- finding ---- */

/* The index has only the first 16 bytes of the digest and the place; the head on the disk has the last
 * word. It is read at each look, because another process may have removed the blob. */
int kedgei_packs_look(struct kedgei_packs *p, const struct kedge_hash *digest, struct kedgei_pack_record *ret)
{
    uint8_t head[KEDGEI_PACK_HEAD];
    struct kedgei_pack_record place, r;
    if (!kedgei_packs_recall(p, digest, &place)) {
        return KEDGE_E_NOT_FOUND;
    }
    int fd = open_file(p, place.pack, NULL);
    if (fd < 0) {
        return fd;
    }
    int err = kedge_fd_read_at(fd, head, sizeof head, place.offset);
    close(fd);
    if (err == KEDGE_E_IO) {
        return err;
    }
    if (err || read_head(head, &r) != KEDGE_OK || r.state != KEDGEI_PACK_BLOB || r.len != place.len
        || !kedge_hash_eq(&r.digest, digest)) {
        return KEDGE_E_NOT_FOUND; /* removed by another process */
    }
    r.pack = place.pack;
    r.offset = place.offset;
    *ret = r;
    return KEDGE_OK;
}

int kedgei_packs_find(struct kedgei_packs *p, const struct kedge_hash *digest, struct kedgei_pack_record *ret)
{
    pthread_mutex_lock(&p->mutex);
    int err = kedgei_packs_look(p, digest, ret);
    pthread_mutex_unlock(&p->mutex);
    return err;
}

/* What is behind the end of the last file, and the file behind it. Another process may have appended to
 * the last file or begun further ones; earlier files only lose records, which a look at the head finds. */
static int refresh(struct kedgei_packs *p, bool *ret_more)
{
    struct kedgei_pack *last = p->file_count ? &p->files[p->file_count - 1] : NULL;
    size_t before = p->slot_count + p->shadowed;
    int err = last ? scan_file(p, last, NULL) : KEDGE_OK;
    uint32_t number = last ? last->number + 1 : 1;
    int fd = err ? err : open_file(p, number, NULL);
    while (!err && fd >= 0) {
        err = kedgei_packs_add_file(p, number++, &last);
        if (!err) {
            err = kedgei_pack_scan(p, last, fd);
        }
        close(fd);
        fd = err ? err : open_file(p, number, NULL);
    }
    *ret_more = p->slot_count + p->shadowed > before;
    return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
}

int kedgei_packs_refresh(struct kedgei_packs *p, bool *ret_more)
{
    pthread_mutex_lock(&p->mutex);
    *ret_more = false;
    int err = p->fd >= 0 ? KEDGE_OK : refresh(p, ret_more); /* the appender knows all */
    pthread_mutex_unlock(&p->mutex);
    return err;
}

/* ---- sweep ---- */

struct walk {
    struct kedgei_packs *p;
    kedgei_packs_visit *visit;
    void *arg;
};

/* Of two records of one digest the older one is none. */
static bool is_newest(struct kedgei_packs *p, const struct kedgei_pack_record *r)
{
    struct kedgei_pack_record newest;
    pthread_mutex_lock(&p->mutex);
    bool is =
        kedgei_packs_recall(p, &r->digest, &newest) && newest.pack == r->pack && newest.offset == r->offset;
    pthread_mutex_unlock(&p->mutex);
    return is;
}

/* Behind a blob's bytes are zeros, and nothing else where one was removed: what is there instead is no
 * record. True: all zeros. Bytes after a record that are not zero belong to nothing: they may be an
 * interrupted removal, and are told to the sweep as a stretch that is no blob. */
static bool is_clean(int fd, const struct kedgei_pack_record *r, uint64_t *ret_from)
{
    uint8_t bytes[4096];
    uint64_t end = r->offset + kedgei_pack_whole(r->len), from = r->offset + KEDGEI_PACK_HEAD;
    from += r->state == KEDGEI_PACK_BLOB ? r->len : 0;
    *ret_from = from;
    bool is = true;
    for (uint64_t at = from; at < end && is;) {
        size_t n = end - at < sizeof bytes ? (size_t)(end - at) : sizeof bytes;
        is = kedge_fd_read_at(fd, bytes, n, at) == KEDGE_OK;
        for (size_t i = 0; i < n && is; i++) {
            is = bytes[i] == 0;
        }
        at += n;
    }
    return is;
}

/* The mutex is not held while the visitor works, since it may hash or remove. What changes meanwhile is
 * found by the head, as everywhere. */
static int visit_file(const struct walk *w, const struct kedgei_pack *f, bool *ret_stop, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedgei_pack_record r;
    uint64_t at = 0, done = 0, from;
    int fd = open_file(w->p, f->number, d);
    if (fd < 0) {
        return fd == KEDGE_E_NOT_FOUND ? KEDGE_OK : fd;
    }
    int err = KEDGE_OK;
    while (!err && !*ret_stop && kedgei_pack_next(fd, f->number, f->end, &at, &r) == KEDGE_OK) {
        if (r.offset > done) {
            err = place_path(w->p, f->number, done, r.offset - done, path);
            *ret_stop = !err && !w->visit(w->arg, NULL, path, r.offset - done);
        }
        done = at;
        if (!err && !*ret_stop && !is_clean(fd, &r, &from)) {
            err = place_path(w->p, f->number, from, at - from, path);
            *ret_stop = !err && !w->visit(w->arg, NULL, path, at - from);
        }
        if (!err && !*ret_stop && r.state == KEDGEI_PACK_BLOB && is_newest(w->p, &r)) {
            err = kedgei_packs_path(w->p, &r, path);
            *ret_stop = !err && !w->visit(w->arg, &r, path, r.len);
        }
    }
    close(fd);
    return err;
}

int kedgei_packs_for_each(struct kedgei_packs *p, kedgei_packs_visit *visit, void *arg,
                          struct kedge_diag *reterr)
{
    const struct walk w = {p, visit, arg};
    bool stop = false, more;
    int err = kedgei_packs_refresh(p, &more);
    for (size_t i = 0; !err && !stop; i++) {
        struct kedgei_pack f = {.number = 0};
        pthread_mutex_lock(&p->mutex);
        if (i < p->file_count) {
            f = p->files[i];
        }
        pthread_mutex_unlock(&p->mutex);
        if (f.number == 0) {
            break;
        }
        err = visit_file(&w, &f, &stop, reterr);
    }
    return err;
}
