/* An audit's tables grow with the record; its memory must not. Blocks lie on the heap up to a budget,
 * beyond that in unlinked files that are mapped. A mapped page counts as this process's memory as soon as
 * it is touched, so every loop over a table takes "steps" (kedgei_scratch_evict_if_large), and from time
 * to time the maps are given back to the page cache. Nothing is lost by that: a page comes back at the
 * next touch. */
#include "chain/audit/base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/text.h"

enum {
    HEAP_DEFAULT = 16 << 20,
    SMALL = 4096,            /* a block below is never worth a file */
    HEAD = 64,               /* bytes before a block; keeps it aligned for anything */
    BREATHE_EVERY = 8,       /* steps between two looks; each may bring 2 MiB, rarely several times */
    RESIDENT_MAX = 32 << 20, /* of files, before the maps are let go */
    CHUNK_FIRST = 16 << 10,  /* of an arena; they double up to the last */
    CHUNK_LAST = 64 << 20,   /* each is a map, and each is let go at a look */
    RUN_BYTES = 512 << 10,   /* sorted at once, with what the items point to */
    COPY_BYTES = 1 << 20,    /* between two looks */
    MERGE_STEP = 4,          /* items that are one step of a loop: what they point to lies anywhere */
};

struct kedgei_region {
    struct kedgei_region *next;
    uint8_t *base;
    size_t len;
};

/* Stands before every block. */
struct head {
    size_t len; /* of the whole, head included */
    bool mapped;
};

void kedgei_scratch_init(struct kedgei_scratch *s, uint64_t heap_max)
{
    *s = (struct kedgei_scratch){.heap_max = heap_max ? heap_max : HEAP_DEFAULT};
    s->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    int rc = pthread_mutex_init(&s->mutex, NULL);
    KEDGE_ASSERT(rc == 0);
}

void kedgei_scratch_deinit(struct kedgei_scratch *s)
{
    KEDGE_ASSERT(!s->regions && s->heap == 0);
    pthread_mutex_destroy(&s->mutex);
    if (s->statm >= 0) {
        close(s->statm);
    }
}

/* ---- files ---- */

/* Without a name from the start (O_TMPFILE), or unlinked at once where the file system does not know
 * that: a program that is killed leaves nothing behind of what may be confidential. */
int kedgei_scratch_file(struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    const char *tmp = getenv("TMPDIR");
    const char *dir = tmp && tmp[0] == '/' ? tmp : "/tmp";
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        return fd;
    }
    int n = snprintf(path, sizeof path, "%s/kedge-audit-XXXXXX", dir);
    fd = n > 0 && (size_t)n < sizeof path ? mkostemp(path, O_CLOEXEC) : -1;
    if (fd < 0) {
        return kedge_diag_set(reterr,
                              kedge_errno(errno) == KEDGE_E_DENIED ? KEDGE_E_DENIED : KEDGE_E_DISK_FULL,
                              "%s: cannot make a file for what is audited: %s; TMPDIR names another folder",
                              dir, strerror(errno));
    }
    (void)unlink(path);
    return fd;
}

/* Takes the map into the list; unmaps it when that fails. MADV_DONTFORK keeps children, which read the
 * other ledgers, from inheriting the maps: fork would copy their page tables, and a child must not see
 * them. */
static bool add_region(struct kedgei_scratch *s, void *base, size_t len)
{
    struct kedgei_region *r = kedge_mem_new(1, sizeof *r);
    (void)madvise(base, len, MADV_DONTFORK);
    if (!r) {
        munmap(base, len);
        return false;
    }
    r->base = base;
    r->len = len;
    pthread_mutex_lock(&s->mutex);
    r->next = s->regions;
    s->regions = r;
    s->mapped += len;
    pthread_mutex_unlock(&s->mutex);
    return true;
}

static void drop_region(struct kedgei_scratch *s, const void *base)
{
    pthread_mutex_lock(&s->mutex);
    struct kedgei_region **at = &s->regions;
    while (*at && (*at)->base != base) {
        at = &(*at)->next;
    }
    struct kedgei_region *r = *at;
    KEDGE_ASSERT(r);
    *at = r->next;
    s->mapped -= r->len;
    pthread_mutex_unlock(&s->mutex);
    munmap(r->base, r->len);
    kedge_mem_free(r);
}

int kedgei_scratch_map(struct kedgei_scratch *s, int fd, struct kedge_view *ret, struct kedge_diag *reterr)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return kedge_diag_set(reterr, KEDGE_E_IO, "scratch file: %s", strerror(errno));
    }
    size_t len = (size_t)st.st_size;
    void *base = len ? mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0) : NULL;
    if (base == MAP_FAILED || (base && !add_region(s, base, len))) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "cannot map a scratch file of %zu bytes", len);
    }
    *ret = kedge_view_of(base, len);
    return KEDGE_OK;
}

void kedgei_scratch_unmap(struct kedgei_scratch *s, struct kedge_view map)
{
    if (map.ptr) {
        drop_region(s, map.ptr);
    }
}

/* ---- blocks ---- */

static void refuse(struct kedgei_scratch *s, int err, const struct kedge_diag *d)
{
    pthread_mutex_lock(&s->mutex);
    s->diag = *d;
    s->diag.err = err;
    pthread_mutex_unlock(&s->mutex);
}

/* The disk is asked for all of it now: a map behind which there is none would end in a signal later.
 * posix_fallocate in place of ftruncate: in a sparse file a full disk shows as SIGBUS at some store into
 * the map, here as an error now. */
static void *map_block(struct kedgei_scratch *s, size_t len)
{
    struct kedge_diag d = {.text = ""};
    int fd = kedgei_scratch_file(&d);
    if (fd < 0) {
        refuse(s, fd, &d);
        return NULL;
    }
    int rc = posix_fallocate(fd, 0, (off_t)len);
    void *base = rc == 0 ? mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (rc != 0) {
        int err = kedge_diag_set(&d, KEDGE_E_DISK_FULL,
                                 "no room for %zu bytes of scratch: %s; TMPDIR names another folder", len,
                                 strerror(rc));
        refuse(s, err, &d);
        return NULL;
    }
    if (base == MAP_FAILED || !add_region(s, base, len)) {
        refuse(s, kedge_diag_set(&d, KEDGE_E_NOMEM, "cannot map %zu bytes of scratch", len), &d);
        return NULL;
    }
    *(struct head *)base = (struct head){len, true};
    return base;
}

/* Takes len bytes of the heap's budget, if they fit. Blocks below a page are always taken from the heap,
 * whatever the budget says: a file each would cost more than it saves. */
static bool take_heap(struct kedgei_scratch *s, size_t len)
{
    pthread_mutex_lock(&s->mutex);
    bool fits = len < SMALL || (len <= s->heap_max && s->heap <= s->heap_max - len);
    s->heap += fits ? len : 0;
    pthread_mutex_unlock(&s->mutex);
    return fits;
}

static void give_heap(struct kedgei_scratch *s, size_t len)
{
    pthread_mutex_lock(&s->mutex);
    s->heap -= len;
    pthread_mutex_unlock(&s->mutex);
}

/* The head before each block says how it was made, so freeing needs no second list and the caller no
 * second function. */
void *kedgei_scratch_new(struct kedgei_scratch *s, size_t count, size_t size)
{
    struct kedge_diag d = {.text = ""};
    if (size != 0 && count > (SIZE_MAX / 2 - HEAD) / size) {
        refuse(s, kedge_diag_set(&d, KEDGE_E_NOMEM, "out of memory"), &d);
        return NULL;
    }
    size_t len = HEAD + count * size;
    uint8_t *base;
    if (take_heap(s, len)) {
        base = kedge_mem_new(1, len);
        if (!base) {
            give_heap(s, len);
            refuse(s, kedge_diag_set(&d, KEDGE_E_NOMEM, "out of memory"), &d);
            return NULL;
        }
        *(struct head *)(void *)base = (struct head){len, false};
    } else {
        base = map_block(s, len);
    }
    return base ? base + HEAD : NULL;
}

void kedgei_scratch_free(struct kedgei_scratch *s, void *p)
{
    if (!p) {
        return;
    }
    uint8_t *base = (uint8_t *)p - HEAD;
    struct head head = *(const struct head *)(const void *)base;
    if (head.mapped) {
        drop_region(s, base);
    } else {
        give_heap(s, head.len);
        kedge_mem_free(base);
    }
}

int kedgei_scratch_error(struct kedgei_scratch *s, struct kedge_diag *reterr)
{
    pthread_mutex_lock(&s->mutex);
    struct kedge_diag d = s->diag;
    pthread_mutex_unlock(&s->mutex);
    int err = d.err ? d.err : KEDGE_E_NOMEM;
    if (reterr && d.text[0]) {
        *reterr = d;
    }
    return err;
}

/* ---- what is resident ---- */

/* The third number of /proc/self/statm: pages of files that are mapped in. */
static uint64_t third_number(const char *text)
{
    struct kedge_view rest = kedge_view_str(text);
    uint64_t value = 0;
    for (int i = 0; i < 3; i++) {
        size_t len = 0;
        while (len < rest.len && rest.ptr[len] != ' ') {
            len++;
        }
        if (kedge_decimal_decode(kedge_view_of(rest.ptr, len), UINT64_MAX / 65536, &value) != KEDGE_OK
            || len == rest.len) {
            return 0;
        }
        rest = kedge_view_of(rest.ptr + len + 1, rest.len - len - 1);
    }
    return value;
}

/* Bytes of files that this process has mapped in; 0 when the system does not say. */
static uint64_t resident_files(const struct kedgei_scratch *s)
{
    char text[128];
    ssize_t n = s->statm >= 0 ? pread(s->statm, text, sizeof text - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    return third_number(text) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The pages stay in the system's cache, written or to be written; only this process's claim on them ends.
 * Asking the system costs a read of /proc, which is why it is done at every eighth step only and not at
 * all while little is mapped. */
static void look(struct kedgei_scratch *s)
{
    pthread_mutex_lock(&s->mutex);
    if (s->mapped > RESIDENT_MAX && resident_files(s) > RESIDENT_MAX) {
        for (const struct kedgei_region *r = s->regions; r; r = r->next) {
            (void)madvise(r->base, r->len, MADV_DONTNEED);
        }
    }
    pthread_mutex_unlock(&s->mutex);
}

void kedgei_scratch_evict_if_large(struct kedgei_scratch *s)
{
    if (atomic_fetch_add_explicit(&s->steps, 1, memory_order_relaxed) % BREATHE_EVERY == BREATHE_EVERY - 1) {
        look(s);
    }
}

/* In pieces, with a look after each: copying a table of gigabytes in one call would bring all of it into
 * memory at once. */
static void copy(struct kedgei_scratch *s, uint8_t *to, const uint8_t *from, size_t len)
{
    while (len > 0) {
        size_t piece = len < COPY_BYTES ? len : COPY_BYTES;
        memcpy(to, from, piece);
        to += piece;
        from += piece;
        len -= piece;
        look(s); /* behind the last piece, too: of runs that are in order already there are many */
    }
}

void *kedgei_scratch_grow(struct kedgei_scratch *s, void *p, size_t used, size_t count, size_t size)
{
    uint8_t *next = kedgei_scratch_new(s, count, size);
    if (next) {
        copy(s, next, p, used * size);
        kedgei_scratch_free(s, p);
    }
    return next;
}

bool kedgei_scratch_room(struct kedgei_scratch *s, void *block, size_t *cap, size_t count, size_t first,
                         size_t size)
{
    void *p;
    const size_t more = *cap ? 2 * *cap : first;
    if (count < *cap) {
        return true;
    }
    memcpy(&p, block, sizeof p);
    p = kedgei_scratch_grow(s, p, count, more, size);
    if (!p) {
        return false;
    }
    memcpy(block, &p, sizeof p);
    *cap = more;
    return true;
}

/* ---- sorting ---- */

/* Two sorted neighbours from `from` into `to`. Already ordered neighbours are the usual case, for a
 * record's own order is mostly that of the keys; then one comparison replaces the merge. */
static void merge(struct kedgei_scratch *s, const uint8_t *from, uint8_t *to, size_t left, size_t right,
                  size_t size, int (*compare)(const void *, const void *))
{
    const uint8_t *a = from, *b = from + left * size;
    if (left > 0 && right > 0 && compare(b - size, b) <= 0) { /* already in order */
        copy(s, to, from, (left + right) * size);
        return;
    }
    while (left > 0 && right > 0) {
        if (compare(a, b) <= 0) {
            memcpy(to, a, size);
            a += size;
            left--;
        } else {
            memcpy(to, b, size);
            b += size;
            right--;
        }
        to += size;
        if ((left + right) % MERGE_STEP == 0) {
            kedgei_scratch_evict_if_large(s);
        }
    }
    copy(s, to, left > 0 ? a : b, (left + right) * size);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Merge sort from runs of half a megabyte, which are sorted in place: it goes through memory in order,
 * which a mapped file allows and a quicksort over it would not. The loops are bounded by the count; there
 * is no recursion over the table. */
int kedgei_scratch_sort(struct kedgei_scratch *s, void *items, size_t count, size_t size,
                        int (*compare)(const void *a, const void *b))
{
    size_t run = RUN_BYTES / size;
    uint8_t *from = items, *to;
    for (size_t at = 0; at < count; at += run) {
        qsort(from + at * size, least(run, count - at), size, compare);
        look(s);
    }
    if (count <= run) {
        return KEDGE_OK;
    }
    uint8_t *more = kedgei_scratch_new(s, count, size);
    if (!more) {
        return kedgei_scratch_error(s, NULL);
    }
    to = more;
    for (; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            size_t left = least(run, count - at), right = least(run, count - at - left);
            merge(s, from + at * size, to + at * size, left, right, size, compare);
        }
        uint8_t *was = from;
        from = to;
        to = was;
    }
    if (from != items) {
        copy(s, items, from, count * size);
    }
    kedgei_scratch_free(s, more);
    return KEDGE_OK;
}

/* ---- arenas ---- */

void kedgei_arena_init(struct kedgei_arena *a, struct kedgei_scratch *s)
{
    *a = (struct kedgei_arena){.scratch = s};
    int rc = pthread_mutex_init(&a->mutex, NULL);
    KEDGE_ASSERT(rc == 0);
}

/* Each chunk begins with the address of the one before. */
void kedgei_arena_deinit(struct kedgei_arena *a)
{
    while (a->chunk) {
        uint8_t *before;
        memcpy(&before, a->chunk, sizeof before);
        kedgei_scratch_free(a->scratch, a->chunk);
        a->chunk = before;
    }
    if (a->scratch) {
        pthread_mutex_destroy(&a->mutex);
    }
}

/* Chunks double up to 64 MiB: a small audit takes 16 KiB, a large one few maps. */
static bool add_chunk(struct kedgei_arena *a, size_t len)
{
    size_t cap = a->cap == 0 ? CHUNK_FIRST : a->cap < CHUNK_LAST ? 2 * a->cap : CHUNK_LAST;
    cap = cap > len + sizeof a->chunk ? cap : len + sizeof a->chunk;
    uint8_t *chunk = kedgei_scratch_new(a->scratch, 1, cap);
    if (!chunk) {
        return false;
    }
    memcpy(chunk, &a->chunk, sizeof a->chunk);
    a->chunk = chunk;
    a->used = sizeof a->chunk;
    a->cap = cap;
    return true;
}

/* Room is taken under the mutex, the bytes are copied outside it: threads that read statements in
 * parallel wait for each other only for an addition. */
void *kedgei_arena_put(struct kedgei_arena *a, const void *bytes, size_t len)
{
    uint8_t *p = NULL;
    size_t room = (len + 7) & ~(size_t)7;
    pthread_mutex_lock(&a->mutex);
    if (a->cap - a->used >= room || add_chunk(a, room)) {
        p = a->chunk + a->used;
        a->used += room;
    }
    pthread_mutex_unlock(&a->mutex);
    if (p) {
        memcpy(p, bytes, len);
    }
    return p;
}
