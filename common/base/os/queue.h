/* A bounded queue between threads: many producers, many consumers, blocking, no spinning.
 * Items are pointers; ownership passes through the queue. */
#ifndef KEDGE_COMMON_BASE_OS_QUEUE_H
#define KEDGE_COMMON_BASE_OS_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct kedge_queue;

KEDGE_NODISCARD int kedge_queue_new(size_t capacity, struct kedge_queue **ret);
/* Call when no thread uses it any more; items left over are not freed. */
void kedge_queue_free(struct kedge_queue *q);
/* KEDGE_E_FULL at once when full, KEDGE_E_CLOSED after kedge_queue_close. */
KEDGE_NODISCARD int kedge_queue_try_put(struct kedge_queue *q, void *item);
/* Waits for room. KEDGE_E_CLOSED after kedge_queue_close. */
KEDGE_NODISCARD int kedge_queue_put(struct kedge_queue *q, void *item);
/* Waits until an item, deadline (monotonic ns, KEDGE_TIME_NEVER: none) or close with an empty queue:
 * KEDGE_OK, KEDGE_E_TIMEOUT or KEDGE_E_CLOSED. */
KEDGE_NODISCARD int kedge_queue_take(struct kedge_queue *q, uint64_t deadline_ns, void **ret_item);
/* No more puts; takers drain what is left, then get KEDGE_E_CLOSED. */
void kedge_queue_close(struct kedge_queue *q);

#endif
