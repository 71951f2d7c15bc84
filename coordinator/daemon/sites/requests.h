/* Requests from the wire: who asks, what they may ask, and the slots in which unanswered ones wait. */
#ifndef KEDGE_COORDINATOR_DAEMON_SITES_REQUESTS_H
#define KEDGE_COORDINATOR_DAEMON_SITES_REQUESTS_H

#include "chain/log/merkle.h"
#include "common/base/bytes.h"
#include "common/net/server.h"
#include "common/wire/messages.h"

struct kedge_host;

enum { KEDGE_REQUESTS_MAX = KEDGE_NET_CONTEXTS_MAX };

struct kedge_request_slot {
    struct kedge_net_request *req; /* NULL: free */
    uint32_t site, ticket, next_free;
    uint64_t seen_size; /* POLL: entries of the main chain that the site has seen */
};

/* ---- requests.c ---- */
void kedge_host_on_request(void *arg, struct kedge_net_request *req); /* the network's thread */
/* The same thread: its sender asks too often. */
void kedge_host_on_busy(void *arg, struct kedge_net_request *req, uint32_t retry_ms);
/* The most that the reply to a frame can have, 0: little; on the network's thread too. */
size_t kedge_host_reply_size(void *arg, struct kedge_view frame);

/* ---- replies.c ---- */
/* Appends the current main checkpoint note. */
void kedge_host_main_note(struct kedge_host *h, struct kedge_buf *out);
void kedge_host_reply(struct kedge_net_request *req, const struct kedge_msg *msg);
void kedge_host_reply_error(struct kedge_net_request *req, int err, uint32_t retry_ms, const char *text);
/* Answers a poll by WAIT. */
void kedge_host_reply_wait(struct kedge_host *h, struct kedge_net_request *req, uint64_t seen_size,
                           uint64_t retry_ns);
/* Takes the net request out of its slot and frees the slot; NULL when it is gone. */
struct kedge_net_request *kedge_host_request_take(struct kedge_host *h, uint32_t request);
/* The request in a slot, if it is still there, has brought something new. */
void kedge_host_request_earn(struct kedge_host *h, uint32_t request);
/* seen_size of the request in a slot; before it is taken. */
uint64_t kedge_host_request_seen(const struct kedge_host *h, uint32_t request);
/* Its slot until it is taken; KEDGE_COORD_NONE: all are in use. */
uint32_t kedge_host_request_put(struct kedge_host *h, struct kedge_net_request *req, uint32_t site);
/* ---- shown_chain.c ---- */
/* What a site is shown of the main chain: the newest checkpoint, the one that the quorum cosigned, and that
 * one grew out of the other and out of what the site has seen. Empty: it could not be read or not be proven
 * now; the site asks again. deinit frees it. */
struct kedge_shown_chain {
    struct kedge_buf newest, cosigned;
    struct kedge_path since_seen, since_cosigned;
};
void kedge_host_show_chain(struct kedge_host *h, uint64_t seen_size, struct kedge_shown_chain *ret);
void kedge_shown_chain_deinit(struct kedge_shown_chain *shown);
/* The path as a message carries it. */
struct kedge_view kedge_shown_path(const struct kedge_path *path);

#endif
