/* A ring of pointers with one mutex and two conditions. The clock of timed waits is the monotonic one:
 * setting the system's time must neither end a wait early nor make it last. A closed queue takes nothing
 * more, but what is in it is still given out, so that no item is lost with its memory when threads end. */
#include "common/base/os/queue.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"

struct kedge_queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    size_t capacity, head, count;
    bool closed;
    void *items[];
};

int kedge_queue_new(size_t capacity, struct kedge_queue **ret)
{
    KEDGE_ASSERT(capacity > 0 && capacity < SIZE_MAX / sizeof(void *) / 2);
    struct kedge_queue *q = kedge_mem_new(1, sizeof *q + capacity * sizeof q->items[0]);
    KEDGE_TRY_MEM(q);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->not_empty, &attr);
    pthread_cond_init(&q->not_full, &attr);
    pthread_condattr_destroy(&attr);
    q->capacity = capacity;
    *ret = q;
    return KEDGE_OK;
}

void kedge_queue_free(struct kedge_queue *q)
{
    if (q) {
        pthread_cond_destroy(&q->not_empty);
        pthread_cond_destroy(&q->not_full);
        pthread_mutex_destroy(&q->lock);
        kedge_mem_free(q);
    }
}

static int put_locked(struct kedge_queue *q, void *item)
{
    if (q->closed) {
        return KEDGE_E_CLOSED;
    }
    if (q->count == q->capacity) {
        return KEDGE_E_FULL;
    }
    q->items[(q->head + q->count++) % q->capacity] = item;
    pthread_cond_signal(&q->not_empty);
    return KEDGE_OK;
}

int kedge_queue_try_put(struct kedge_queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    int err = put_locked(q, item);
    pthread_mutex_unlock(&q->lock);
    return err;
}

int kedge_queue_put(struct kedge_queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    while (!q->closed && q->count == q->capacity) {
        pthread_cond_wait(&q->not_full, &q->lock);
    }
    int err = put_locked(q, item);
    pthread_mutex_unlock(&q->lock);
    return err;
}

int kedge_queue_take(struct kedge_queue *q, uint64_t deadline_ns, void **ret_item)
{
    struct timespec until = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
    int err = KEDGE_OK;
    pthread_mutex_lock(&q->lock);
    while (q->count == 0 && !q->closed && !err) {
        if (deadline_ns == KEDGE_TIME_NEVER) {
            pthread_cond_wait(&q->not_empty, &q->lock);
        } else if (pthread_cond_timedwait(&q->not_empty, &q->lock, &until) == ETIMEDOUT && q->count == 0) {
            err = KEDGE_E_TIMEOUT;
        }
    }
    if (q->count > 0) {
        err = KEDGE_OK;
        *ret_item = q->items[q->head];
        q->head = (q->head + 1) % q->capacity;
        q->count--;
        pthread_cond_signal(&q->not_full);
    } else if (q->closed) {
        err = KEDGE_E_CLOSED;
    }
    pthread_mutex_unlock(&q->lock);
    return err;
}

void kedge_queue_close(struct kedge_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->not_empty);
    pthread_cond_broadcast(&q->not_full);
    pthread_mutex_unlock(&q->lock);
}
