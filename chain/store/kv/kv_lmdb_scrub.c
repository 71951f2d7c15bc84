/* LMDB never overwrites a page in use: each commit writes changed pages anew, and what they said before stays
 * on the pages that it frees until a later commit happens to take these. It also lends its page buffers from
 * one transaction to the next as they are, so that the unused middle of a page, and what lies behind a large
 * value, hold pieces of other pages. No read returns these bytes, so no auditor can vouch for them, and who
 * erased a record would find it there. When a store is closed, all of them become zeros, in place.
 *
 * What is overwritten. The newest state's trees and its table of freed pages are read whole first. Only if
 * each page of the file is then either in exactly one tree or freed exactly once, and each page's nodes fill
 * it to the byte, anything is touched: one wrong number anywhere breaks that. So no page that a read can
 * reach is ever taken for a free one, which the bounds of the numbers alone would not ensure. One number is
 * believed: how long a value with pages of its own is; where it was changed, that record is lost anyway. And
 * as the layout is LMDB's own affair, LMDB is asked for the place of every record (kv_lmdb_prove.c): where
 * one lies elsewhere, or the version is not the one whose layout is known, nothing is touched.
 *
 * Why this is safe. The older state loses its pages, which LMDB keeps for the case that the newest was never
 * durable; so the file is flushed before the first zero is written (a writer that was killed between its last
 * write and the flush leaves a newest state that this machine sees and the disk does not). The next commit
 * writes over the older state's first page and takes no page that the newest state uses or freed: torn or
 * lost, it leaves the newest. A cut in the midst of the zeros leaves zeros on unused bytes only; where a
 * sector also holds bytes in use, these are written as they were, and a sector is written whole or not at all
 * (as LMDB demands for its first pages). Readers map the file and see what pwrite wrote, as they do with
 * LMDB's own writes; those of the newest state never look at these bytes. */
#include "chain/store/kv/kv_lmdb_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/try.h"

enum { PIECE = 65536 }; /* of the file, handled at once; also LMDB's largest page */

struct scrub {
    struct kedge_kv *kv;
    struct kedgei_lmdb_uses u;
    uint8_t page[PIECE], piece[PIECE];
    bool has_written;
};

static const uint8_t zeros[PIECE];

/* A line tells a reader's process, thread and the state it looks at or "-"; there is a heading. LMDB
 * prints its table of readers as text and offers no other way. Whatever line is not plainly harmless
 * counts as a reader of an older state, and then nothing is written: a misread line costs only that the
 * next close cleans. */
int kedgei_lmdb_see_reader(const char *line, void *arg)
{
    struct kedgei_lmdb_readers *r = arg;
    char newest[24];
    const char *last = strrchr(line, ' ');
    snprintf(newest, sizeof newest, " %llu\n", (unsigned long long)r->newest);
    bool is_harmless = last
                       && (strcmp(last, newest) == 0 || strcmp(last, " -\n") == 0
                           || strcmp(last, " txnid\n") == 0 || strcmp(last, " readers)\n") == 0);
    r->at_older = r->at_older || !is_harmless;
    return 0;
}

/* ---- zeros ---- */

/* The proof and the flush come before the first zero and only if there is something to write; a store
 * that is clean already is closed without either. */
static int write_zeros(struct scrub *s, uint64_t offset, size_t len)
{
    if (!s->has_written) { /* this would be the first */
        int err = kedgei_lmdb_prove(s->kv, &s->u.f);
        if (err || fdatasync(s->u.f.fd) != 0) {
            return err ? err : KEDGE_E_IO;
        }
    }
    s->has_written = true;
    while (len > 0) {
        ssize_t n = pwrite(s->u.f.fd, zeros, len, (off_t)offset);
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            return KEDGE_E_IO;
        }
        if (n > 0) {
            offset += (uint64_t)n;
            len -= (size_t)n;
        }
    }
    return KEDGE_OK;
}

/* Zeros over `len` <= PIECE bytes that lie at `offset`, from the first to the last that is none. Bytes
 * that are zero already are not written again: a clean page costs no write, and a file system with holes
 * keeps them. */
static int wipe(struct scrub *s, const uint8_t *bytes, size_t len, uint64_t offset)
{
    size_t from = 0;
    while (len > 0 && bytes[len - 1] == 0) {
        len--;
    }
    while (from < len && bytes[from] == 0) {
        from++;
    }
    return from < len ? write_zeros(s, offset + from, len - from) : KEDGE_OK;
}

/* The same of any length; what lies behind the file's end was never written. */
static int wipe_range(struct scrub *s, uint64_t offset, uint64_t end, uint64_t file_size)
{
    int err = KEDGE_OK;
    end = end < file_size ? end : file_size;
    while (offset < end && !err) {
        size_t len = end - offset < PIECE ? (size_t)(end - offset) : PIECE;
        err = kedge_fd_read_at(s->u.f.fd, s->piece, len, offset);
        if (!err) {
            err = wipe(s, s->piece, len, offset);
        }
        offset += len;
    }
    return err;
}

/* The page is read again here and not taken from the first walk: it must still be what was proven, and
 * its bounds come with it. */
static int wipe_unused(struct scrub *s, uint64_t number, uint64_t file_size)
{
    struct kedgei_lmdb_page p;
    uint64_t size = s->u.f.page_size;
    if (!kedgei_lmdb_page_read(&s->u.f, number, s->page, &p)) {
        return KEDGE_E_CORRUPT;
    }
    int err = wipe(s, p.bytes + p.lower, p.upper - p.lower, number * size + p.lower);
    for (size_t i = 0; i < p.count && p.is_leaf && !err; i++) {
        struct kedgei_lmdb_node n = kedgei_lmdb_node_of(&p, i);
        if (n.flags & KEDGEI_LMDB_BIG) {
            uint64_t end = (n.number + kedgei_lmdb_run_pages(&s->u.f, &n)) * size;
            err = wipe_range(s, n.number * size + KEDGEI_LMDB_HEADER + n.data_len, end, file_size);
        }
    }
    return err;
}

static int wipe_all(struct scrub *s, uint64_t file_size)
{
    uint64_t size = s->u.f.page_size, end = s->u.f.newest.last + 1;
    int err = KEDGE_OK;
    for (uint64_t page = 2; page < end && !err;) {
        uint64_t next = page + 1;
        enum kedgei_lmdb_use use = kedgei_lmdb_use_of(&s->u, page);
        if (use == KEDGEI_LMDB_USE_FREED) {
            while (next < end && kedgei_lmdb_use_of(&s->u, next) == KEDGEI_LMDB_USE_FREED) {
                next++;
            }
            err = wipe_range(s, page * size, next * size, file_size);
        } else if (use == KEDGEI_LMDB_USE_TREE) {
            err = wipe_unused(s, page, file_size);
        }
        page = next;
    }
    /* Behind the last page lies what transactions wrote that never were committed. Readers may have it
     * mapped, and the next commits use it: it is emptied, not cut off. */
    return err ? err : wipe_range(s, end * size, file_size, file_size);
}

int kedgei_lmdb_scrub(struct kedge_kv *kv, int fd, uint64_t number)
{
    struct stat st;
    struct scrub *s = kedge_mem_new(1, sizeof *s);
    KEDGE_TRY_MEM(s);
    s->kv = kv;
    int err = fstat(fd, &st) == 0 ? kedgei_lmdb_find_uses(fd, number, &s->u) : KEDGE_E_CORRUPT;
    if (!err) {
        err = wipe_all(s, (uint64_t)st.st_size);
    }
    if (s->has_written && fdatasync(fd) != 0) {
        err = KEDGE_E_IO;
    }
    kedge_mem_free(s->u.uses);
    kedge_mem_free(s);
    return err;
}
