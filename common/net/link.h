/* Internal to net: frames over one connection, both directions; used by server and client alike. Not
 * thread-safe: a server's belong to its network thread, a client's to the thread that holds the client's
 * mutex. */
#ifndef KEDGE_COMMON_NET_LINK_H
#define KEDGE_COMMON_NET_LINK_H

#include "common/net/frame.h"
#include "common/net/stream.h"

/* How a transfer gets on, for telling slow from stuck. */
struct kedgei_progress {
    uint64_t begun_ns, moved_ns; /* 0: nothing is under way */
    size_t len;                  /* bytes of the whole */
};

struct kedgei_link {
    struct kedgei_stream stream;
    struct kedgei_decoder in;
    struct kedgei_frame *first, *last; /* to be sent */
    size_t sent;                       /* bytes of the first that have left */
    struct kedgei_progress receiving, sending;
};

/* Owns fd from now on, whatever it returns. tls NULL: plain. The link must stay where it is. */
KEDGE_NODISCARD int kedgei_link_init(struct kedgei_link *link, int fd, struct kedgei_tls *tls,
                                     size_t frame_max);
/* Frees what is still to be sent. Fine after a failed init. */
void kedgei_link_deinit(struct kedgei_link *link);
/* Receives once, into the place where the decoder wants bytes; only in the states in which it does.
 * 1: something moved, look at the decoder; 0: nothing now; else the error that ends the link. */
KEDGE_NODISCARD int kedgei_link_receive(struct kedgei_link *link);
/* Memory for the frame whose head has come; from now on it must get on. KEDGE_E_NOMEM changes nothing. */
KEDGE_NODISCARD int kedgei_link_give(struct kedgei_link *link);
/* Takes over a sealed frame, to be sent after those before it. */
void kedgei_link_queue(struct kedgei_link *link, struct kedgei_frame *frame);
/* Sends what the socket takes, a turn's worth at most; frames that have left are put in front of
 * *ret_done, which the caller frees. KEDGE_OK, also when something is left, or the error that ends the
 * link. */
KEDGE_NODISCARD int kedgei_link_send(struct kedgei_link *link, struct kedgei_frame **ret_done);
/* Frees the frame of that call if it is queued and has not begun to leave. */
void kedgei_link_withdraw(struct kedgei_link *link, uint32_t call);
/* Waiting to be told that the socket takes bytes again. */
bool kedgei_link_wants_write(const struct kedgei_link *link);
/* A frame has been moving for too long: stall_ns without a byte, or slower than KEDGEI_RATE_MIN on the
 * whole. */
bool kedgei_link_is_stuck(const struct kedgei_link *link, uint64_t now_ns, uint64_t stall_ns);

enum { KEDGEI_RATE_MIN = 32 * 1024 }; /* bytes per second: half of what a client waits for */

#endif
