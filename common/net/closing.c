#include "common/net/closing.h"

#include <errno.h>
#include <nng/nng.h>
#include <pthread.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"

struct closing {
    nng_socket socket;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool done, abandoned; /* who comes second frees */
};

static void free_closing(struct closing *c)
{
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
    kedge_mem_free(c);
}

static void *run(void *arg)
{
    struct closing *c = arg;
    nng_close(c->socket);
    pthread_mutex_lock(&c->mutex);
    c->done = true;
    bool abandoned = c->abandoned;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    if (abandoned) {
        free_closing(c);
    }
    return NULL;
}

static struct closing *new_closing(nng_socket socket)
{
    struct closing *c = kedge_mem_new(1, sizeof *c);
    if (c) {
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        c->socket = socket;
        pthread_mutex_init(&c->mutex, NULL);
        pthread_cond_init(&c->changed, &monotonic);
        pthread_condattr_destroy(&monotonic);
    }
    return c;
}

bool kedgei_close_socket(int socket_id)
{
    nng_socket socket = {(uint32_t)socket_id};
    struct closing *c = new_closing(socket);
    pthread_t thread;
    if (!c || pthread_create(&thread, NULL, run, c) != 0) {
        if (c) {
            free_closing(c);
        }
        nng_close(socket);
        return true;
    }
    uint64_t end_ns = kedge_os_now_ns() + (uint64_t)KEDGEI_CLOSE_MAX_MS * 1000000u;
    struct timespec end = {(time_t)(end_ns / 1000000000u), (long)(end_ns % 1000000000u)};
    int rv = 0;
    pthread_mutex_lock(&c->mutex);
    while (!c->done && rv != ETIMEDOUT) {
        rv = pthread_cond_timedwait(&c->changed, &c->mutex, &end);
    }
    bool done = c->done;
    c->abandoned = !done;
    pthread_mutex_unlock(&c->mutex);
    if (done) {
        pthread_join(thread, NULL);
        free_closing(c);
    } else {
        pthread_detach(thread);
    }
    return done;
}
