/* epoll with a pointer for each descriptor, and an eventfd by which other threads wake the loop. Writing
 * to an eventfd many times before it is read counts as one wake, and it can be done while holding any
 * lock. */
#include "common/net/loop.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { STACK = 256 * 1024 };

int kedgei_wake_open(void)
{
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void kedgei_wake(int fd)
{
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);
    (void)n; /* fails only when it is readable anyway */
}

void kedgei_wake_clear(int fd)
{
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof count);
    (void)n;
}

int kedgei_loop_init(struct kedgei_loop *loop)
{
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = kedgei_wake_open();
    if (loop->epoll < 0 || loop->wake < 0 || kedgei_loop_add(loop, loop->wake, EPOLLIN, NULL) != KEDGE_OK) {
        kedgei_loop_deinit(loop);
        return KEDGE_E_NOMEM;
    }
    return KEDGE_OK;
}

void kedgei_loop_deinit(struct kedgei_loop *loop)
{
    if (loop->epoll >= 0) {
        close(loop->epoll);
    }
    if (loop->wake >= 0) {
        close(loop->wake);
    }
    loop->epoll = loop->wake = -1;
}

int kedgei_loop_add(struct kedgei_loop *loop, int fd, uint32_t events, void *ptr)
{
    struct epoll_event event = {.events = events, .data.ptr = ptr};
    return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? KEDGE_OK : KEDGE_E_NOMEM;
}

void kedgei_loop_change(struct kedgei_loop *loop, int fd, uint32_t events, void *ptr)
{
    struct epoll_event event = {.events = events, .data.ptr = ptr};
    KEDGE_ASSERT(epoll_ctl(loop->epoll, EPOLL_CTL_MOD, fd, &event) == 0);
}

void kedgei_loop_remove(struct kedgei_loop *loop, int fd)
{
    (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
}

int kedgei_loop_wait(struct kedgei_loop *loop, struct epoll_event *events, int max, int timeout_ms)
{
    int n = epoll_wait(loop->epoll, events, max, timeout_ms);
    return n > 0 ? n : 0;
}

/* With a small stack, which all functions of Kedge are made for, and with all signals blocked: the
 * program has one thread that waits for them, and no library thread may be interrupted in its
 * place. */
int kedgei_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's affair */
    int rv = pthread_create(ret, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rv == 0 ? KEDGE_OK : KEDGE_E_NOMEM;
}
