/* The network thread and what belongs to it. When the process has no descriptors left, it stops listening
 * until the next sweep: accept would fail again at once, and the loop would spin. */
#include "common/net/hub.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/entropy.h"
#include "common/base/try.h"
#include "common/net/socket.h"
#include "common/net/tls.h"

#define NS_PER_MS 1000000u
#define NS_PER_S 1000000000u
enum { EVENTS_MAX = 256, SWEEP_MS = 250 };

static const struct kedge_rate arrivals = {NS_PER_S / KEDGE_NET_ARRIVALS, KEDGE_NET_ARRIVALS_BURST};
static const struct kedge_rate all_arrivals = {NS_PER_S / KEDGE_NET_ALL_ARRIVALS,
                                               KEDGE_NET_ALL_ARRIVALS_BURST};

/* ---- the network thread ---- */

/* A deaf listener stays open but is not watched: connections wait in the kernel's queue meanwhile
 * and are not refused. */
static void listen_again(struct kedgei_hub *hub, bool deaf)
{
    for (size_t i = 0; i < KEDGE_NET_URLS_MAX; i++) {
        if (hub->listeners[i].fd >= 0) {
            kedgei_loop_change(&hub->loop, hub->listeners[i].fd, deaf ? 0 : EPOLLIN, &hub->listeners[i]);
        }
    }
}

static void handle_event(struct kedgei_hub *hub, const struct epoll_event *event)
{
    struct kedgei_listener *first = hub->listeners, *end = first + KEDGE_NET_URLS_MAX;
    struct kedgei_listener *listener = event->data.ptr;
    if (!event->data.ptr) {
        kedgei_wake_clear(hub->loop.wake);
    } else if (listener >= first && listener < end) {
        hub->turn->accept(hub, listener);
        if (hub->deaf) {
            listen_again(hub, true);
        }
    } else {
        hub->turn->event(event->data.ptr, event->events);
    }
}

/* False: the thread is to end. *ret_pending: there is something to do that no descriptor will tell of. */
static bool look_around(struct kedgei_hub *hub, bool *ret_pending)
{
    pthread_mutex_lock(&hub->mutex);
    bool closing = hub->closing;
    *ret_pending = hub->outbox != NULL || hub->freed;
    pthread_mutex_unlock(&hub->mutex);
    return !closing;
}

static void close_listeners(struct kedgei_hub *hub)
{
    for (size_t i = 0; i < KEDGE_NET_URLS_MAX; i++) {
        struct kedgei_listener *listener = &hub->listeners[i];
        if (listener->fd >= 0 && listener->address.kind == KEDGE_NET_IPC) {
            unlink(listener->address.host); /* a file of ours does not stay */
        }
        if (listener->fd >= 0) {
            close(listener->fd);
            listener->fd = -1;
        }
    }
}

/* The order within a turn is fixed: events first, then replies, then those who wait for what these
 * freed, then the clock, and the dead last. */
static void *run(void *arg)
{
    struct kedgei_hub *hub = arg;
    struct epoll_event events[EVENTS_MAX];
    uint64_t swept = kedge_os_now_ns();
    bool pending;
    while (look_around(hub, &pending)) {
        int timeout = pending ? 0 : hub->any || hub->deaf ? SWEEP_MS : -1;
        int count = kedgei_loop_wait(&hub->loop, events, EVENTS_MAX, timeout);
        for (int i = 0; i < count; i++) {
            handle_event(hub, &events[i]);
        }
        hub->turn->drain(hub);
        if (hub->freed) {
            hub->turn->serve_waiting(hub);
        }
        uint64_t now = kedge_os_now_ns();
        if (now > swept + (uint64_t)SWEEP_MS * NS_PER_MS) {
            swept = now;
            hub->any = hub->turn->sweep(hub, now);
            if (hub->deaf) {
                hub->deaf = false;
                listen_again(hub, false);
            }
        }
        hub->turn->bury(hub);
    }
    close_listeners(hub);  /* nobody new */
    hub->turn->drain(hub); /* replies given before the close leave if the socket takes them */
    hub->turn->close_sessions(hub);
    hub->turn->bury(hub);
    return NULL;
}

/* ---- open and close ---- */

int kedgei_hub_init(struct kedgei_hub *hub, const struct kedgei_turn *turn)
{
    KEDGE_TRY(kedgei_loop_init(&hub->loop));
    for (size_t i = 0; i < KEDGE_NET_URLS_MAX; i++) {
        hub->listeners[i].fd = -1;
    }
    hub->turn = turn;
    hub->refs = 1;
    pthread_mutex_init(&hub->mutex, NULL);
    return KEDGE_OK;
}

int kedgei_hub_count_addresses(struct kedgei_hub *hub)
{
    hub->sources = kedge_mem_new(1, sizeof *hub->sources);
    KEDGE_TRY_MEM(hub->sources);
    kedge_os_random(&hub->sources->seed, sizeof hub->sources->seed);
    return KEDGE_OK;
}

int kedgei_hub_addresses(struct kedgei_hub *hub, const char *const *urls, size_t count, bool insecure,
                         int (*parse)(const char *, bool, struct kedgei_address *, struct kedge_diag *),
                         bool *ret_tls, struct kedge_diag *reterr)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        struct kedgei_address *address = &hub->listeners[i].address;
        if (urls[i]) {
            KEDGE_TRY(parse(urls[i], insecure, address, reterr));
            any = true;
            *ret_tls = *ret_tls || address->kind == KEDGE_NET_TLS;
        }
    }
    return any ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_ARG, "%s: no address to listen on", hub->turn->name);
}

static int listen_at(struct kedgei_hub *hub, struct kedgei_listener *listener, const char *url,
                     struct kedge_diag *reterr)
{
    unsigned port = 0;
    KEDGE_TRY(kedgei_socket_listen(&listener->address, url, &listener->fd, &port, reterr));
    memcpy(listener->url, url, strlen(url) + 1);
    if (port != 0 && !kedgei_address_with_port(url, port, listener->url, sizeof listener->url)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "address %s: too long", url);
    }
    return kedgei_loop_add(&hub->loop, listener->fd, EPOLLIN, listener) == KEDGE_OK
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", hub->turn->name);
}

int kedgei_hub_start(struct kedgei_hub *hub, const char *const *urls, size_t count, struct kedge_diag *reterr)
{
    for (size_t i = 0; i < count; i++) {
        if (urls[i]) {
            KEDGE_TRY(listen_at(hub, &hub->listeners[i], urls[i], reterr));
        }
    }
    if (kedgei_thread_start(&hub->thread, run, hub) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: no thread to be had", hub->turn->name);
    }
    hub->runs = true;
    return KEDGE_OK;
}

const char *kedgei_hub_url(const struct kedgei_hub *hub, unsigned i)
{
    return i < KEDGE_NET_URLS_MAX && hub->listeners[i].url[0] ? hub->listeners[i].url : NULL;
}

void kedgei_hub_stop(struct kedgei_hub *hub)
{
    if (hub->runs) {
        pthread_mutex_lock(&hub->mutex);
        hub->closing = true;
        kedgei_wake(hub->loop.wake);
        pthread_mutex_unlock(&hub->mutex);
        pthread_join(hub->thread, NULL);
    }
    pthread_mutex_lock(&hub->mutex);
    hub->closed = true;
    pthread_mutex_unlock(&hub->mutex);
}

void kedgei_hub_close(struct kedgei_hub *hub)
{
    close_listeners(hub); /* the thread never ran */
    kedgei_loop_deinit(&hub->loop);
    kedgei_tls_free(hub->tls);
}

bool kedgei_hub_drop(struct kedgei_hub *hub)
{
    bool last = --hub->refs == 0;
    pthread_mutex_unlock(&hub->mutex);
    if (last) {
        kedge_mem_free(hub->sources);
        pthread_mutex_destroy(&hub->mutex);
    }
    return last;
}

/* ---- who comes ---- */

bool kedgei_hub_may_arrive(struct kedgei_hub *hub, const uint8_t address[KEDGEI_ADDRESS_LEN])
{
    uint64_t now = kedge_os_now_ns();
    return !hub->sources
           || kedge_buckets_take(&kedgei_sources_find(hub->sources, address, now)->arrivals, &arrivals,
                                 &hub->all_arrivals, &all_arrivals, 1, now);
}

void kedgei_hub_give_arrival_back(struct kedgei_hub *hub, struct kedgei_source *source,
                                  struct kedge_bucket *own, uint64_t now_ns)
{
    if (kedge_bucket_take(own, &arrivals, 1, now_ns)) {
        kedge_bucket_give(&source->arrivals, &arrivals, 1);
        kedge_bucket_give(&hub->all_arrivals, &all_arrivals, 1);
    }
}

void kedgei_hub_accept_failed(struct kedgei_hub *hub)
{
    hub->deaf = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

/* ---- the outbox ---- */

struct kedgei_held *kedgei_hub_take(struct kedgei_hub *hub)
{
    pthread_mutex_lock(&hub->mutex);
    struct kedgei_held *list = hub->outbox;
    hub->outbox = hub->outbox_last = NULL;
    hub->woken = false;
    pthread_mutex_unlock(&hub->mutex);
    return list;
}

void kedgei_hub_put(struct kedgei_hub *hub, struct kedgei_held *held, bool wake)
{
    held->next = NULL;
    *(hub->outbox ? &hub->outbox_last->next : &hub->outbox) = held;
    hub->outbox_last = held;
    if (!hub->woken) {
        hub->woken = true;
        if (wake) {
            kedgei_wake(hub->loop.wake); /* under the mutex, so that close cannot come between */
        }
    }
}
