/* Internal to net: what the files of the server share (server.c: life; session.c: connections;
 * session_life.c: their beginnings and ends; strangers.c: whose they are, and what those may; request.c:
 * requests and replies; budget.c: memory).
 *
 * Threads: one network thread per server owns the loop, the sessions and their links, and the queues of
 * those that wait; it alone reads, writes, opens and closes connections and runs the callbacks. Others
 * reply (request.c), drop keys and read counters; what they touch is under the mutex and marked so.
 * A reply crosses over by the outbox. The mutex is never held while a callback runs. */
#ifndef KEDGE_COMMON_NET_SERVER_STATE_H
#define KEDGE_COMMON_NET_SERVER_STATE_H

#include "common/net/admission/admission.h"
#include "common/net/admission/parties.h"
#include "common/net/budget.h"
#include "common/net/hub.h"
#include "common/net/link.h"

enum kedgei_stage {
    KEDGEI_SHAKING,   /* TLS handshake */
    KEDGEI_GREETED,   /* waiting for the peer's greeting */
    KEDGEI_OPEN,      /* admitted; requests come */
    KEDGEI_LINGERING, /* refused: its alert is on the way, and closing now could overtake it */
    KEDGEI_DEAD,      /* closed; requests of it may still be held */
};

/* Why a session does not receive. The first four are queues, served in this order, each first come, first
 * served. */
enum kedgei_wait {
    KEDGEI_WAIT_REPLY,   /* a whole request, for room for its announced reply */
    KEDGEI_WAIT_CONTEXT, /* a whole request, for one of the `contexts` */
    KEDGEI_WAIT_LARGE,   /* the head of a request, for room for its body */
    KEDGEI_WAIT_SMALL,
    KEDGEI_WAIT_QUEUES,
    KEDGEI_WAIT_OWN = KEDGEI_WAIT_QUEUES, /* until it holds less itself */
    KEDGEI_WAIT_PAUSE,                    /* it asked too often: until paused_until_ns */
    KEDGEI_WAIT_NOT,
};

struct kedgei_session {
    struct kedge_net_server *server;
    struct kedgei_link link;
    enum kedgei_stage stage;
    enum kedgei_wait waiting;
    struct kedgei_session *wait_next;
    uint64_t since_ns; /* accepted, or said who it is, or its last whole request (strangers); or lingering */
    uint32_t events;   /* that the loop watches */
    unsigned unanswered;
    bool asked;        /* reply_size has been asked about the whole request */
    bool rated;        /* its turn has been taken from the peer's bucket */
    size_t reply_size; /* its answer */
    uint64_t paused_until_ns;
    uint32_t taken; /* from the strangers' buckets of requests, while it is one */
    enum kedgei_class class;
    bool has_spoken;                                      /* its first byte has come */
    uint8_t address[KEDGEI_ADDRESS_LEN];                  /* zeros for ipc:// */
    struct kedgei_session *stranger_prev, *stranger_next; /* while it is one */
    /* Under the mutex: */
    struct kedgei_party *party; /* of a known key; NULL: none, or nobody asks */
    struct kedge_net_peer who;  /* does not change once the session is open */
    bool is_open, dropped;      /* dropped: nothing that it has sent already counts */
    size_t large;               /* what it holds of the large account */
    unsigned refs;              /* the network thread and the requests that are held */
    struct kedgei_session *prev, *next;
};

struct kedge_net_request {
    struct kedgei_held held;
    struct kedge_net_server *server;
    struct kedgei_session *session;
    struct kedgei_frame *request, *reply; /* owned */
    uint32_t call;
    size_t charge; /* bytes of the budget for both; under the mutex until the reply is sent */
    bool is_small;
    bool is_earned; /* kedge_net_request_earn */
};

struct kedge_net_server {
    struct kedgei_hub hub;
    kedge_net_handler *handler;
    kedge_net_admit *admit;
    kedge_net_reply_size *reply_size;
    kedge_net_knows *knows;
    kedge_net_busy *busy;
    void *arg;
    size_t frame_max;
    unsigned contexts_max;
    struct kedgei_places places;
    uint64_t stall_ns;

    /* The network thread's own: */
    struct kedgei_session *waiting[KEDGEI_WAIT_QUEUES], *waiting_last[KEDGEI_WAIT_QUEUES];
    struct kedgei_session *graves; /* closed in this turn, by wait_next */
    struct kedgei_session *strangers;
    unsigned class_count[KEDGEI_CLASSES];
    struct kedgei_parties parties;

    /* Under the hub's mutex: */
    uint64_t drops; /* calls of kedge_net_server_drop_key so far */
    struct kedgei_session *sessions;
    struct kedgei_budget budget;
    struct kedge_net_counters counters; /* without bytes_in_flight */
};

/* session.c; all on the network thread. */
void kedgei_session_event(void *session, uint32_t events);
/* Sends what is queued, and goes on receiving if it waited for itself. */
void kedgei_session_flush(struct kedgei_session *s);
/* Receives and sends all that is possible now. */
void kedgei_session_go_on(struct kedgei_session *s);
void kedgei_session_end_wait(struct kedgei_session *s);
void kedgei_session_count_refused(struct kedge_net_server *server);
/* Lets those that wait go on as far as there is room. */
void kedgei_sessions_serve_waiting(struct kedgei_hub *hub);

/* session_life.c; all on the network thread. */
void kedgei_session_accept(struct kedgei_hub *hub, struct kedgei_listener *listener);
void kedgei_session_close(struct kedgei_session *s);
/* Closes those that take too long and ends pauses; true if there are any sessions, or something to be logged.
 */
bool kedgei_sessions_sweep(struct kedgei_hub *hub, uint64_t now_ns);
void kedgei_sessions_bury(struct kedgei_hub *hub);

/* strangers.c; all on the network thread. */
/* What the application's answers to `knows` make of the options: NULL `sources` without it. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_strangers_init(struct kedge_net_server *server,
                                          const struct kedge_net_server_options *options);
/* Whether one more may come from there, now; makes room when it must. */
bool kedgei_strangers_admit(struct kedge_net_server *server, const struct kedgei_session *s);
/* Counts a new session in, in its class. */
void kedgei_strangers_enter(struct kedgei_session *s);
/* Out again, whatever it has become. */
void kedgei_strangers_leave(struct kedgei_session *s);
/* Makes a stranger a known one if its key is known by now. KEDGE_E_FULL: that key has all the connections
 * that it may have; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_strangers_recognise(struct kedgei_session *s);
/* The length of the frames that it may send. */
size_t kedgei_strangers_frame_max(const struct kedgei_session *s);
/* Takes its whole request from its bucket; false: it asks too often and is to come back later. */
bool kedgei_strangers_take_turn(struct kedgei_session *s);
/* A request of it was of use (kedge_net_request_earn). */
void kedgei_strangers_earn(struct kedgei_session *s);

/* request.c */
/* A whole request to the handler, or to `busy` when its sender has to wait; frame is taken over. Network
 * thread. False: out of memory, or dropped. */
KEDGE_NODISCARD bool kedgei_request_hand_over(struct kedgei_session *s, struct kedgei_frame *frame,
                                              bool is_busy);
/* Replies that have been given, to their links. Network thread. */
void kedgei_requests_drain(struct kedgei_hub *hub);
/* After the network thread has ended: no reply goes anywhere any more. */
void kedgei_requests_close(struct kedge_net_server *server);

/* Caller holds the mutex: */
void kedgei_charge(struct kedgei_session *s, bool is_small, size_t n);
void kedgei_release(struct kedgei_session *s, bool is_small, size_t n);
/* Frees the session when the last reference goes. */
void kedgei_session_drop(struct kedgei_session *s);
/* Unlocks the mutex, and frees the server when the last reference goes. */
void kedgei_server_drop(struct kedge_net_server *server);

#endif
