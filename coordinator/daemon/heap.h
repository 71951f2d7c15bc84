/* How this process takes memory from the system. */
#ifndef KEDGE_COORDINATOR_DAEMON_HEAP_H
#define KEDGE_COORDINATOR_DAEMON_HEAP_H

#include <stdbool.h>

/* Once at start. Chunks of models come and go all the time, made by one thread and freed by another. Without
 * this the heap is given back to the system and claimed again for each, which costs as much as copying them;
 * two arenas bound what is kept. */
void kedge_heap_init(void);
/* For kedge_kv_lmdb_around_opening: between its two calls, what the heap has no room for is mapped piece by
 * piece. LMDB takes 3 MiB of lists for each store that it opens for writing, zeroes 2 of them, and uses their
 * first pages. From the heap, an opening would get what an earlier one gave back, and zeroing it would make
 * all of it resident for as long as the store is open. A mapping is zero already, and goes when it is given
 * back. What other threads take meanwhile is mapped, too. */
void kedge_heap_map(bool begins);

#endif
