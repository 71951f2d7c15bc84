/* getaddrinfo blocks for as long as the system's resolver does, many seconds when a name server is away,
 * and it cannot be cancelled. So it runs on a thread of its own. The object has two references, the
 * caller's and the thread's, and the one that drops the last frees it: a caller that gives up does not
 * wait for the resolver. A host that is a number needs no resolver and no thread. */
#include "common/net/resolve.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/net/address.h"
#include "common/net/loop.h"

struct kedgei_resolution {
    char host[KEDGE_NET_URL_MAX], port[8];
    int fd;
    pthread_mutex_t mutex; /* all below */
    struct addrinfo *list;
    unsigned refs; /* the caller and the thread */
};

static void drop(struct kedgei_resolution *r)
{
    pthread_mutex_lock(&r->mutex);
    bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->mutex);
    if (last) {
        if (r->list) {
            freeaddrinfo(r->list);
        }
        close(r->fd);
        pthread_mutex_destroy(&r->mutex);
        kedge_mem_free(r);
    }
}

static bool ask(struct kedgei_resolution *r, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    bool found = getaddrinfo(r->host[0] ? r->host : NULL, r->port, &hints, &list) == 0;
    pthread_mutex_lock(&r->mutex);
    r->list = found ? list : NULL;
    pthread_mutex_unlock(&r->mutex);
    if (found || !(flags & AI_NUMERICHOST)) {
        kedgei_wake(r->fd);
    }
    return found;
}

static void *run(void *arg)
{
    ask(arg, 0);
    drop(arg);
    return NULL;
}

/* First as a number, which needs no resolver and cannot block; only then on a thread. */
int kedgei_resolve_begin(const char *host, const char *port, struct kedgei_resolution **ret)
{
    struct kedgei_resolution *r = kedge_mem_new(1, sizeof *r);
    int fd = kedgei_wake_open();
    if (!r || fd < 0) {
        kedge_mem_free(r);
        if (fd >= 0) {
            close(fd);
        }
        return KEDGE_E_NOMEM;
    }
    snprintf(r->host, sizeof r->host, "%s", host);
    snprintf(r->port, sizeof r->port, "%s", port);
    r->fd = fd;
    r->refs = 1;
    pthread_mutex_init(&r->mutex, NULL);
    if (!ask(r, AI_NUMERICHOST)) {
        pthread_t thread;
        r->refs = 2;
        if (kedgei_thread_start(&thread, run, r) != KEDGE_OK) {
            r->refs = 1;
            drop(r);
            return KEDGE_E_NOMEM;
        }
        pthread_detach(thread);
    }
    *ret = r;
    return KEDGE_OK;
}

int kedgei_resolve_fd(const struct kedgei_resolution *r)
{
    return r->fd;
}

const struct addrinfo *kedgei_resolve_list(struct kedgei_resolution *r)
{
    pthread_mutex_lock(&r->mutex);
    const struct addrinfo *list = r->list;
    pthread_mutex_unlock(&r->mutex);
    return list;
}

void kedgei_resolve_end(struct kedgei_resolution *r)
{
    if (r) {
        drop(r);
    }
}
