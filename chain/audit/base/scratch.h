/* Memory that an audit uses but does not hold. Small tables come from the heap; beyond a budget they lie in
 * unlinked files of $TMPDIR (/tmp), mapped: the system writes them back and lets go of them, so that a record
 * of any size is audited in the same memory. Work on large tables goes through them in order.
 *
 * Any thread; a block belongs to its asker. Child processes do not have the maps: what reads
 * damaged stores cannot reach them. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_BASE_SCRATCH_H
#define KEDGE_CHAIN_AUDIT_BASE_SCRATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/base/bytes.h"
#include "common/base/diag.h"

struct kedgei_region;

struct kedgei_scratch {
    pthread_mutex_t mutex;
    uint64_t heap_max;             /* bytes of the budget */
    uint64_t heap, mapped;         /* in use */
    struct kedgei_region *regions; /* maps */
    atomic_uint steps;             /* of loops, since the last look at what is resident */
    int statm;                     /* of this process, open; -1: the system has none */
    struct kedge_diag diag;        /* why the last block was refused */
};

/* heap_max 0: 16 MiB. */
void kedgei_scratch_init(struct kedgei_scratch *s, uint64_t heap_max);
/* Every block must have been freed. */
void kedgei_scratch_deinit(struct kedgei_scratch *s);

/* count · size zeroed bytes, aligned for anything; NULL when there is neither memory nor disk for them:
 * kedgei_scratch_error says why. */
KEDGE_NODISCARD void *kedgei_scratch_new(struct kedgei_scratch *s, size_t count, size_t size);
/* A block of more items, the first `used` of them kept; p is freed, or on NULL untouched. */
KEDGE_NODISCARD void *kedgei_scratch_grow(struct kedgei_scratch *s, void *p, size_t used, size_t count,
                                          size_t size);
/* As kedge_mem_grow. */
KEDGE_NODISCARD bool kedgei_scratch_room(struct kedgei_scratch *s, void *block, size_t *cap, size_t count,
                                         size_t first, size_t size);
void kedgei_scratch_free(struct kedgei_scratch *s, void *p); /* NULL is fine */
/* KEDGE_E_NOMEM or KEDGE_E_DISK_FULL …, with its text, of the last block that was refused. */
int kedgei_scratch_error(struct kedgei_scratch *s, struct kedge_diag *reterr);

/* An unlinked file for somebody else to write: a descriptor, or a negative error. */
KEDGE_NODISCARD int kedgei_scratch_file(struct kedge_diag *reterr);
/* What is in it, read-only; the descriptor stays the caller's. Unmap it with the same view. */
KEDGE_NODISCARD int kedgei_scratch_map(struct kedgei_scratch *s, int fd, struct kedge_view *ret,
                                       struct kedge_diag *reterr);
void kedgei_scratch_unmap(struct kedgei_scratch *s, struct kedge_view map);

/* Called now and then by loops over large tables: when much of the maps is resident, lets go of it. */
void kedgei_scratch_evict_if_large(struct kedgei_scratch *s);

/* Sorts in place with one more block of that size; `compare` tells any two items apart. Errors of blocks. */
KEDGE_NODISCARD int kedgei_scratch_sort(struct kedgei_scratch *s, void *items, size_t count, size_t size,
                                        int (*compare)(const void *a, const void *b));

/* ---- many small pieces that are freed together ---- */
struct kedgei_arena {
    struct kedgei_scratch *scratch;
    pthread_mutex_t mutex;
    uint8_t *chunk; /* begins with a pointer to the one before */
    size_t used, cap;
};
void kedgei_arena_init(struct kedgei_arena *a, struct kedgei_scratch *s);
void kedgei_arena_deinit(struct kedgei_arena *a);
/* A copy of the bytes, aligned for 8-byte members; any thread. NULL as kedgei_scratch_new. */
KEDGE_NODISCARD void *kedgei_arena_put(struct kedgei_arena *a, const void *bytes, size_t len);

#endif
