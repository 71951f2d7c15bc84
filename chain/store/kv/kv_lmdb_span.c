/* An auditor that reads a ledger of gigabytes would otherwise have every page of the map counted as its
 * own memory. Giving pages back changes no data: they are of a file that is mapped for reading, and come
 * back from the page cache. */
#include "chain/store/kv/kv_lmdb_span.h"

#include <sys/mman.h>

enum {
    PAGE = 4096,
    AROUND = 65536, /* the kernel maps so much of the page cache around a page that is touched */
};
#define SPAN_MAX (UINT64_C(16) << 20) /* bytes held before they are let go */

static void let_go(struct kedgei_lmdb_span *s)
{
    uintptr_t from = s->from / PAGE * PAGE;
    /* Pages of a file that is mapped for reading come back from the cache: failure changes nothing. */
    (void)madvise((void *)from, (s->to - from + PAGE - 1) / PAGE * PAGE, MADV_DONTNEED);
    s->bytes = 0; /* the range stays: pages of the tree lie between the values, and nobody counts them */
}

/* What counts is an estimate, 64 KiB for each new neighbourhood, because the kernel maps around what is
 * touched. It need only be right within a factor, for it decides when to give back and not what. */
static void widen(struct kedgei_lmdb_span *s, uintptr_t from, uintptr_t to, uint64_t bytes)
{
    s->from = s->to == 0 || from < s->from ? from : s->from;
    s->to = to > s->to ? to : s->to;
    s->bytes += bytes;
    if (s->bytes >= SPAN_MAX) {
        let_go(s);
    }
}

void kedgei_lmdb_span_add(struct kedgei_lmdb_span *s, const void *ptr, size_t len)
{
    uintptr_t from = (uintptr_t)ptr, to = from + len;
    if (len > 0 && (s->to == 0 || from / AROUND != s->last || (to - 1) / AROUND != s->last)) {
        widen(s, from, to, AROUND + len);
        s->last = (to - 1) / AROUND;
    }
}

void kedgei_lmdb_span_join(struct kedgei_lmdb_span *s, const struct kedgei_lmdb_span *other)
{
    if (other->to > 0) {
        widen(s, other->from, other->to, other->bytes);
    }
}
