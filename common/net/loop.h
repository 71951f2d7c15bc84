/* Internal to net: waiting for sockets (epoll), being woken by other threads (eventfd), and threads. */
#ifndef KEDGE_COMMON_NET_LOOP_H
#define KEDGE_COMMON_NET_LOOP_H

#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "common/base/err.h"

/* A descriptor that is readable after kedgei_wake; -1 when there is none to be had. */
int kedgei_wake_open(void);
void kedgei_wake(int fd);
void kedgei_wake_clear(int fd);

struct kedgei_loop {
    int epoll, wake;
};

KEDGE_NODISCARD int kedgei_loop_init(struct kedgei_loop *loop); /* the wake's events have ptr NULL */
void kedgei_loop_deinit(struct kedgei_loop *loop);
/* Watches fd (add) or changes what is watched; events as of epoll_ctl(2). */
KEDGE_NODISCARD int kedgei_loop_add(struct kedgei_loop *loop, int fd, uint32_t events, void *ptr);
void kedgei_loop_change(struct kedgei_loop *loop, int fd, uint32_t events, void *ptr);
/* Before fd is closed: a child between fork and exec holds it open a moment longer, and so would its
 * events. */
void kedgei_loop_remove(struct kedgei_loop *loop, int fd);
/* The number of events, 0 after timeout_ms (-1: none) or a signal. */
int kedgei_loop_wait(struct kedgei_loop *loop, struct epoll_event *events, int max, int timeout_ms);

/* A thread with a small stack that takes no signals. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

#endif
