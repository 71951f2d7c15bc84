/* Internal to net: what both servers are made of: listening sockets, one network thread and its turns, and
 * what others hand over to that thread. A server has its hub as its first member.
 *
 * A turn takes the events that are there, then the answers in the outbox, then the sessions that wait for
 * room; closed sessions are freed at its end, since an event of the same turn may still name them. The thread
 * sleeps without a timeout only when it has no session and nothing to log; with sessions it wakes four times
 * a second to close those that take too long. */
#ifndef KEDGE_COMMON_NET_HUB_H
#define KEDGE_COMMON_NET_HUB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/diag.h"
#include "common/net/address.h"
#include "common/net/admission/pressure.h"
#include "common/net/admission/rate.h"
#include "common/net/loop.h"
#include "common/net/server.h"

struct kedgei_hub;

struct kedgei_listener {
    struct kedgei_address address;
    char url[KEDGE_NET_URL_MAX];
    int fd; /* -1: none */
};

/* The first member of a request: the next one in the outbox. */
struct kedgei_held {
    struct kedgei_held *next;
};

/* What a server does in a turn; all on the network thread. */
struct kedgei_turn {
    const char *name; /* in messages */
    void (*accept)(struct kedgei_hub *hub, struct kedgei_listener *listener);
    void (*event)(void *session, uint32_t events);
    void (*drain)(struct kedgei_hub *hub);         /* answers that were given */
    void (*serve_waiting)(struct kedgei_hub *hub); /* those that wait go on as far as there is room */
    /* Closes those that take too long; true if there are any sessions, or something to be logged. */
    bool (*sweep)(struct kedgei_hub *hub, uint64_t now_ns);
    void (*bury)(struct kedgei_hub *hub);
    void (*close_sessions)(struct kedgei_hub *hub);
};

struct kedgei_hub {
    const struct kedgei_turn *turn;
    struct kedgei_tls *tls; /* owned */
    struct kedgei_listener listeners[KEDGE_NET_URLS_MAX];
    struct kedgei_loop loop;
    pthread_t thread;
    bool runs; /* the thread has been started */

    /* The network thread's own: */
    bool any;                       /* there were sessions, or something to be logged */
    bool freed;                     /* those that wait may have room now */
    bool deaf;                      /* no descriptor to be had: not accepting until the next sweep */
    struct kedgei_sources *sources; /* NULL: nobody is counted by address */
    struct kedge_bucket all_arrivals, all_requests; /* of all strangers' addresses together */
    struct kedgei_pressure pressure;

    pthread_mutex_t mutex; /* all below */
    bool closing, closed;  /* closed: the network thread has ended */
    bool woken;            /* the network thread knows that there is something in the outbox */
    unsigned refs;         /* the owner and the requests that are held */
    struct kedgei_held *outbox, *outbox_last;
};

/* hub is zeros. KEDGE_E_NOMEM: nothing is to be closed. */
KEDGE_NODISCARD int kedgei_hub_init(struct kedgei_hub *hub, const struct kedgei_turn *turn);
/* Counts arrivals and requests by address from now on. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_hub_count_addresses(struct kedgei_hub *hub);
/* Reads the addresses (NULL: none in that place), before anything listens; there must be one. */
KEDGE_NODISCARD int kedgei_hub_addresses(struct kedgei_hub *hub, const char *const *urls, size_t count,
                                         bool insecure,
                                         int (*parse)(const char *url, bool insecure,
                                                      struct kedgei_address *ret, struct kedge_diag *reterr),
                                         bool *ret_tls, struct kedge_diag *reterr);
/* Listens at these addresses, and starts the thread. */
KEDGE_NODISCARD int kedgei_hub_start(struct kedgei_hub *hub, const char *const *urls, size_t count,
                                     struct kedge_diag *reterr);
/* The address with the port that it really has; NULL: nothing listens in that place. */
const char *kedgei_hub_url(const struct kedgei_hub *hub, unsigned i);
/* Ends the thread and waits for it. */
void kedgei_hub_stop(struct kedgei_hub *hub);
/* After the thread has ended: what it used goes, and `closed` says so. */
void kedgei_hub_close(struct kedgei_hub *hub);

/* Network thread. Takes the arrival of a stranger from there from the buckets; false: too many come. */
bool kedgei_hub_may_arrive(struct kedgei_hub *hub, const uint8_t address[KEDGEI_ADDRESS_LEN]);
/* It was no stranger. Its arrival comes back only if its own bucket has one: a handshake is dear, and
 * somebody who did nothing but dial would never be turned away. */
void kedgei_hub_give_arrival_back(struct kedgei_hub *hub, struct kedgei_source *source,
                                  struct kedge_bucket *own, uint64_t now_ns);
/* Notes that accept has failed: without descriptors nothing is accepted until the next sweep. */
void kedgei_hub_accept_failed(struct kedgei_hub *hub);

/* Takes all of the outbox. */
struct kedgei_held *kedgei_hub_take(struct kedgei_hub *hub);
/* Caller holds the mutex: into the outbox; `wake`: by another thread than the network's. */
void kedgei_hub_put(struct kedgei_hub *hub, struct kedgei_held *held, bool wake);
/* Caller holds the mutex, which is unlocked here, for it cannot be once it is freed. True: that was the last
 * reference, and the server's memory is the caller's to free. */
KEDGE_NODISCARD bool kedgei_hub_drop(struct kedgei_hub *hub);

#endif
