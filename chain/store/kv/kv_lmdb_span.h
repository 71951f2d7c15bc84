/* What was read of a mapped store. Its pages count as this process's memory though they are the page cache's;
 * who reads all of a large store (an auditor) would seem to hold all of it. So what was read is let go
 * now and then: the pages stay in the cache, pointers stay valid. Only for stores that nobody writes through
 * this mapping. */
#ifndef KEDGE_CHAIN_STORE_KV_KV_LMDB_SPAN_H
#define KEDGE_CHAIN_STORE_KV_KV_LMDB_SPAN_H

#include <stddef.h>
#include <stdint.h>

struct kedgei_lmdb_span { /* zero: nothing */
    uintptr_t from, to;   /* of all that was ever read */
    uint64_t bytes;       /* brought into memory since it was last let go, about */
    uintptr_t last;       /* the 64 KiB that was read last: the kernel brings so much at a time */
};

/* Something was read, here or by another. Each lets go when it is enough. */
void kedgei_lmdb_span_add(struct kedgei_lmdb_span *s, const void *ptr, size_t len);
void kedgei_lmdb_span_join(struct kedgei_lmdb_span *s, const struct kedgei_lmdb_span *other);

#endif
