/* Answers to requests, and the slots in which requests wait for them. */
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/sites/requests.h"

/* An answer that cannot be encoded is an error of this program. The peer is told something all the
 * same: a request without an answer would hold its connection. */
void kedge_host_reply(struct kedge_net_request *req, const struct kedge_msg *msg)
{
    struct kedge_buf frame;
    kedge_buf_init(&frame, KEDGE_FRAME_MAX);
    int err = kedge_msg_encode(msg, &frame);
    if (err) {
        kedge_log(KEDGE_LOG_ERROR, "reply", "%s: %s", kedge_msg_name(msg->type), kedge_strerror(err));
        struct kedge_msg sorry =
            kedge_msg_of_error(KEDGE_E_BUG, 0, "the coordinator could not write its answer");
        kedge_buf_clear(&frame);
        err = kedge_msg_encode(&sorry, &frame);
        KEDGE_ASSERT(!err);
    }
    (void)kedge_net_reply(req, kedge_buf_view(&frame));
    kedge_buf_deinit(&frame);
}

void kedge_host_reply_error(struct kedge_net_request *req, int err, uint32_t retry_ms, const char *text)
{
    struct kedge_msg msg = kedge_msg_of_error(err, retry_ms, text);
    kedge_host_reply(req, &msg);
}

void kedge_host_reply_wait(struct kedge_host *h, struct kedge_net_request *req, uint64_t seen_size,
                           uint64_t retry_ns)
{
    struct kedge_shown_chain shown;
    struct kedge_msg msg = {.type = KEDGE_MSG_WAIT};
    struct kedge_msg_wait *w = &msg.u.wait;
    kedge_host_show_chain(h, seen_size, &shown);
    w->retry_ms = (uint32_t)(retry_ns / 1000000);
    w->main_checkpoint = kedge_buf_view(&shown.newest);
    w->since_seen = kedge_shown_path(&shown.since_seen);
    w->cosigned = kedge_buf_view(&shown.cosigned);
    w->since_cosigned = kedge_shown_path(&shown.since_cosigned);
    kedge_host_reply(req, &msg);
    kedge_shown_chain_deinit(&shown);
}

/* Free slots are a list through the slots themselves. Their number bounds how many requests can
 * wait; the next one is told to come again. */
uint32_t kedge_host_request_put(struct kedge_host *h, struct kedge_net_request *req, uint32_t site)
{
    uint32_t slot = h->request_free;
    if (slot != KEDGE_COORD_NONE) {
        h->request_free = h->requests[slot].next_free;
        h->requests[slot] = (struct kedge_request_slot){
            .req = req, .site = site, .ticket = KEDGE_COORD_NONE, .next_free = KEDGE_COORD_NONE};
    }
    return slot;
}

/* NULL when it was answered already: an effect may name a request whose answer another effect has
 * sent. */
struct kedge_net_request *kedge_host_request_take(struct kedge_host *h, uint32_t request)
{
    if (request >= KEDGE_REQUESTS_MAX || !h->requests[request].req) {
        return NULL;
    }
    struct kedge_net_request *req = h->requests[request].req;
    h->requests[request] =
        (struct kedge_request_slot){.ticket = KEDGE_COORD_NONE, .next_free = h->request_free};
    h->request_free = request;
    return req;
}

void kedge_host_request_earn(struct kedge_host *h, uint32_t request)
{
    if (request < KEDGE_REQUESTS_MAX && h->requests[request].req) {
        kedge_net_request_earn(h->requests[request].req);
    }
}

uint64_t kedge_host_request_seen(const struct kedge_host *h, uint32_t request)
{
    return request < KEDGE_REQUESTS_MAX ? h->requests[request].seen_size : 0;
}

void kedge_host_main_note(struct kedge_host *h, struct kedge_buf *out)
{
    int err = kedge_ledger_checkpoint(h->main.ledger, out, NULL);
    if (err && err != KEDGE_E_NOT_FOUND) {
        kedge_log(KEDGE_LOG_WARN, "main checkpoint", "%s", kedge_strerror(err));
    }
}
