/* Internal to net: what the files of the HTTP server share (http_server.c: life; http_accept.c: who may
 * connect; http_session.c: connections; http_reply.c: requests that are with the application, and answers).
 *
 * Threads: one network thread owns loop, sessions and budget, and runs the handler. Others answer; an answer
 * crosses over by the outbox, under the mutex, which is never held while the handler runs. */
#ifndef KEDGE_COMMON_NET_WEB_HTTP_STATE_H
#define KEDGE_COMMON_NET_WEB_HTTP_STATE_H

#include "common/net/hub.h"
#include "common/net/stream.h"
#include "common/net/web/http.h"

enum kedgei_http_stage {
    KEDGEI_HTTP_SHAKING,
    KEDGEI_HTTP_HEAD,    /* a request's head is coming, or nothing */
    KEDGEI_HTTP_WAITING, /* a whole head, for room in the budget */
    KEDGEI_HTTP_HELD,    /* the application has the request */
    KEDGEI_HTTP_SENDING,
    KEDGEI_HTTP_LINGERING, /* the last answer is on its way; closing now could overtake it */
    KEDGEI_HTTP_DEAD,
};

/* Bytes to be sent. */
struct kedgei_http_out {
    size_t len;
    uint8_t bytes[];
};

struct kedge_http_request {
    struct kedgei_held held;
    struct kedge_http_server *server;
    struct kedgei_http_session *session;
    struct kedge_http_head head; /* borrows from the session's `in` */
    uint64_t left;               /* bytes of the answer's body that were not given yet */
    uint64_t given;
    bool begun;  /* the answer's head was given */
    bool leaves; /* and is on its way */
    uint32_t party;
    struct kedgei_http_out *out;
};

struct kedgei_http_session {
    struct kedge_http_server *server;
    struct kedgei_stream stream;
    enum kedgei_http_stage stage;
    uint32_t events;             /* that the loop watches */
    uint64_t since_ns, moved_ns; /* of the stage */
    bool closes;                 /* after the answer that is being sent */
    uint32_t party;              /* that an answer on it was for; 0: nobody's yet */
    uint8_t address[KEDGEI_ADDRESS_LEN];
    struct kedge_http_request *req;
    struct kedgei_http_out *out;
    size_t sent;
    size_t charge; /* of the budget */
    unsigned refs; /* the network thread, and the request that is held; under the mutex */
    struct kedgei_http_session *prev, *next; /* all that are open */
    struct kedgei_http_session *wait_next;   /* those that wait; later the graves */
    size_t in_len, seen, head_len;
    uint8_t in[KEDGE_HTTP_HEAD_MAX];
};

struct kedge_http_server {
    struct kedgei_hub hub;
    kedge_http_handler *handler;
    void *arg;
    unsigned connections_max, party_max;
    size_t budget_max;
    uint64_t head_ns, idle_ns, stall_ns, wait_ns;

    /* The network thread's own: */
    struct kedgei_http_session *sessions, *waiting, *waiting_last, *graves;
    size_t budget;

    struct kedge_http_counters counters; /* under the hub's mutex */
};

/* http_accept.c; all on the network thread. */
void kedgei_http_accept(struct kedgei_hub *hub, struct kedgei_listener *listener);
/* Its request may be looked at; false: its address, its party or all strangers together ask too often. */
bool kedgei_http_take_turn(struct kedgei_http_session *s);
/* An answer on it is for a party (not 0): it is no stranger's. */
void kedgei_http_recognise(struct kedgei_http_session *s, uint32_t party);

/* http_session.c; all on the network thread. */
void kedgei_http_enter(struct kedgei_http_session *s, enum kedgei_http_stage stage);
void kedgei_http_event(void *session, uint32_t events);
void kedgei_http_session_close(struct kedgei_http_session *s);
/* Closes those that take too long; true if there are any, or something to be logged. */
bool kedgei_http_sweep(struct kedgei_hub *hub, uint64_t now_ns);
/* Lets those that wait go on as far as there is room. */
void kedgei_http_serve_waiting(struct kedgei_hub *hub);
void kedgei_http_bury(struct kedgei_hub *hub);
/* The application has answered (out NULL: aborted); req is the session's again. */
void kedgei_http_answered(struct kedgei_http_session *s, struct kedge_http_request *req);

/* http_reply.c */
/* Gives req to the handler. */
void kedgei_http_hand_over(struct kedge_http_request *req);
void kedgei_http_drain(struct kedgei_hub *hub);
void kedgei_http_close_outbox(struct kedge_http_server *server);
void kedgei_http_request_free(struct kedge_http_request *req); /* NULL is fine */
/* A whole answer of the server's own, which ends the connection. NULL: out of memory. */
struct kedgei_http_out *kedgei_http_refusal(unsigned status, bool with_body);

/* Caller holds the mutex: */
void kedgei_http_session_drop(struct kedgei_http_session *s);
/* Unlocks it, and frees the server when the last reference goes. */
void kedgei_http_server_drop(struct kedge_http_server *server);

#endif
