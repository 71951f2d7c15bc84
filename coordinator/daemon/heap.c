/* Settings of glibc's allocator for a process in which one thread allocates and another frees. Why
 * each of them is needed is in the header. */
#include "coordinator/daemon/heap.h"

#include <malloc.h>

enum { KEPT = 8 << 20, MAPPED = 512 << 10, TRIMMED = 16 << 20, ARENAS = 2 };

void kedge_heap_init(void)
{
    (void)mallopt(M_ARENA_MAX, ARENAS);
    (void)mallopt(M_MMAP_THRESHOLD, KEPT);
    (void)mallopt(M_TRIM_THRESHOLD, TRIMMED);
}

void kedge_heap_map(bool begins)
{
    (void)mallopt(M_MMAP_THRESHOLD, begins ? MAPPED : KEPT);
}
