/* Heap with an overflow check and a failure switch for torture tests. Everything of Kedge allocates here. */
#ifndef KEDGE_COMMON_BASE_MEM_H
#define KEDGE_COMMON_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

/* count * size zeroed bytes, NULL when out of memory or the product overflows. Freed by kedge_mem_free. */
KEDGE_NODISCARD void *kedge_mem_new(size_t count, size_t size);
/* As kedge_mem_new, at an address where a cache line (64 bytes) begins: no aligned vector straddles two. */
KEDGE_NODISCARD void *kedge_mem_new_lines(size_t count, size_t size);
/* Grows or shrinks; old content kept, new bytes undefined. On NULL the old block is untouched. */
KEDGE_NODISCARD void *kedge_mem_resize(void *p, size_t count, size_t size);
/* Room for one more element of `size` bytes after `count` of them: a full block doubles, from `first`
 * elements on. `block` is the address of a pointer to the elements, *cap how many there is room for. False
 * when out of memory: nothing is changed then. */
KEDGE_NODISCARD bool kedge_mem_grow(void *block, size_t *cap, size_t count, size_t first, size_t size);
/* A copy of a NUL-terminated string, or NULL. */
KEDGE_NODISCARD char *kedge_mem_strdup(const char *s);
/* NULL is fine. */
void kedge_mem_free(void *p);
/* For KEDGE_CLEANUP: the address of a pointer, which is freed as kedge_mem_free does. */
void kedge_mem_release(void *pointer);
/* Tests only: the n-th allocation from now on fails (1 = the next); 0 switches off. */
void kedge_mem_fail_at(long n);

#endif
