#include "common/net/meter.h"

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/mem.h"

struct kedgei_meter {
    atomic_uint refs; /* not under the mutex: taken while the server is locked, which left() locks */
    pthread_mutex_t mutex;
    size_t pending;
    void (*left)(void *arg, size_t n); /* NULL: stopped */
    void *arg;
};

struct kedgei_meter *kedgei_meter_new(void (*left)(void *arg, size_t n), void *arg)
{
    struct kedgei_meter *meter = kedge_mem_new(1, sizeof *meter);
    if (meter) {
        pthread_mutex_init(&meter->mutex, NULL);
        atomic_init(&meter->refs, 1);
        meter->left = left;
        meter->arg = arg;
    }
    return meter;
}

void kedgei_meter_hold(struct kedgei_meter *meter)
{
    atomic_fetch_add(&meter->refs, 1);
}

void kedgei_meter_drop(struct kedgei_meter *meter)
{
    if (meter && atomic_fetch_sub(&meter->refs, 1) == 1) {
        pthread_mutex_destroy(&meter->mutex);
        kedge_mem_free(meter);
    }
}

bool kedgei_meter_add(struct kedgei_meter *meter, size_t n)
{
    pthread_mutex_lock(&meter->mutex);
    bool running = meter->left != NULL;
    if (running) {
        meter->pending += n;
    }
    pthread_mutex_unlock(&meter->mutex);
    return running;
}

/* Caller holds the mutex. */
static void leave(struct kedgei_meter *meter, size_t n)
{
    n = n < meter->pending ? n : meter->pending; /* framing of the transport may count too */
    meter->pending -= n;
    if (n > 0 && meter->left) {
        meter->left(meter->arg, n);
    }
}

void kedgei_meter_sent(struct kedgei_meter *meter, size_t n)
{
    pthread_mutex_lock(&meter->mutex);
    leave(meter, n);
    pthread_mutex_unlock(&meter->mutex);
}

void kedgei_meter_stop(struct kedgei_meter *meter)
{
    pthread_mutex_lock(&meter->mutex);
    leave(meter, meter->pending);
    meter->left = NULL;
    pthread_mutex_unlock(&meter->mutex);
}
