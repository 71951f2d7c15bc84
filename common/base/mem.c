/* All memory of Kedge comes from here: zeroed, with the multiplication checked for overflow. Tests
 * let the n-th request fail (kedge_mem_fail_at) and so walk through every path that a full memory
 * can take. */
#include "common/base/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_long fail_countdown;

/* The usual case is one relaxed load; only tests count. */
static bool must_fail(void)
{
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0) {
        return false;
    }
    return atomic_fetch_sub(&fail_countdown, 1) == 1;
}

void *kedge_mem_new(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }
    return must_fail() ? NULL : calloc(count ? count : 1, size ? size : 1);
}

void *kedge_mem_new_lines(size_t count, size_t size)
{
    enum { LINE = 64 };
    if (size != 0 && count > (SIZE_MAX - LINE) / size) {
        return NULL;
    }
    const size_t len = (count * size / LINE + 1) * LINE; /* a multiple of the alignment, as C17 wants it */
    void *p = must_fail() ? NULL : aligned_alloc(LINE, len);
    return p ? memset(p, 0, len) : NULL;
}

void *kedge_mem_resize(void *p, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }
    size_t len = count * size;
    return must_fail() ? NULL : realloc(p, len ? len : 1);
}

char *kedge_mem_strdup(const char *s)
{
    size_t len = strlen(s) + 1;
    char *copy = kedge_mem_new(len, 1);
    if (copy) {
        memcpy(copy, s, len);
    }
    return copy;
}

bool kedge_mem_grow(void *block, size_t *cap, size_t count, size_t first, size_t size)
{
    void *p;
    const size_t more = *cap ? 2 * *cap : first;
    if (count < *cap) {
        return true;
    }
    memcpy(&p, block, sizeof p);
    p = kedge_mem_resize(p, more, size);
    if (!p) {
        return false;
    }
    memcpy(block, &p, sizeof p);
    *cap = more;
    return true;
}

void kedge_mem_free(void *p)
{
    free(p);
}

void kedge_mem_release(void *pointer)
{
    void *p;
    memcpy(&p, pointer, sizeof p);
    free(p);
}

void kedge_mem_fail_at(long n)
{
    atomic_store(&fail_countdown, n);
}
