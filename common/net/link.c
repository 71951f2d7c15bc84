/* A connection that moves slowly is told from one that is stuck by two clocks for each direction: when the
 * frame last moved, and when it began, together with its length. Bytes that trickle reset the first clock
 * but not the second, so a peer cannot hold a frame's memory for ever by sending one byte a minute. The
 * clocks of receiving stop while a frame waits for our memory and not for its sender. */
#include "common/net/link.h"

#include "common/base/os/clock.h"
#include "common/base/try.h"

#define NS_PER_S 1000000000u
enum { RECORD_MAX = 16384 }; /* plain text of a TLS record: RFC 8446 §5.1 */

int kedgei_link_init(struct kedgei_link *link, int fd, struct kedgei_tls *tls, size_t frame_max)
{
    *link = (struct kedgei_link){.first = NULL};
    kedgei_decoder_init(&link->in, frame_max);
    return kedgei_stream_init(&link->stream, fd, tls);
}

void kedgei_link_deinit(struct kedgei_link *link)
{
    kedgei_stream_deinit(&link->stream);
    kedgei_decoder_deinit(&link->in);
    while (link->first) {
        struct kedgei_frame *frame = link->first;
        link->first = frame->next;
        kedgei_frame_free(frame);
    }
    link->last = NULL;
}

int kedgei_link_receive(struct kedgei_link *link)
{
    size_t room = 0;
    uint8_t *ptr = kedgei_decoder_space(&link->in, &room);
    long n = kedgei_stream_read(&link->stream, ptr, room);
    if (n <= 0) {
        return (int)n;
    }
    KEDGE_TRY(kedgei_decoder_advance(&link->in, (size_t)n));
    struct kedgei_progress *p = &link->receiving;
    if (link->in.state == KEDGEI_BODY || (link->in.state == KEDGEI_HEAD && link->in.got > 0)) {
        p->moved_ns = kedge_os_now_ns();
        p->begun_ns = p->begun_ns ? p->begun_ns : p->moved_ns;
        p->len = link->in.len;
    } else {
        p->begun_ns = 0; /* between frames, or the frame waits for us */
    }
    return 1;
}

int kedgei_link_give(struct kedgei_link *link)
{
    int err = kedgei_decoder_give(&link->in);
    if (!err && link->in.state == KEDGEI_BODY) { /* the clock runs, whether bytes come or not */
        uint64_t now = kedge_os_now_ns();
        link->receiving = (struct kedgei_progress){now, now, link->in.len};
    }
    return err;
}

void kedgei_link_queue(struct kedgei_link *link, struct kedgei_frame *frame)
{
    frame->next = NULL;
    *(link->last ? &link->last->next : &link->first) = frame;
    link->last = frame;
}

/* Sends queued frames in order, at most a turn's worth, so that one fast peer does not keep the thread from
 * the others. Frames that have left whole go to *ret_done; their memory is the caller's to account for. */
int kedgei_link_send(struct kedgei_link *link, struct kedgei_frame **ret_done)
{
    struct kedgei_progress *p = &link->sending;
    size_t turn = 0;
    while (link->first && turn < KEDGEI_TURN_MAX) {
        struct kedgei_frame *frame = link->first;
        struct kedge_view bytes = kedgei_frame_bytes(frame);
        size_t left = bytes.len - link->sent;
        /* A write to TLS takes one record; but for the last of this turn the next follows at once. */
        link->stream.more = link->stream.ssl && left > RECORD_MAX && turn + RECORD_MAX < KEDGEI_TURN_MAX;
        long n = kedgei_stream_write(&link->stream, bytes.ptr + link->sent, left);
        link->stream.more = false;
        if (n < 0) {
            return (int)n;
        }
        if (n > 0 || p->begun_ns == 0) {
            p->moved_ns = kedge_os_now_ns();
            p->begun_ns = p->begun_ns ? p->begun_ns : p->moved_ns;
            p->len = bytes.len;
        }
        if (n == 0) {
            break;
        }
        turn += (size_t)n;
        link->sent += (size_t)n;
        if (link->sent == bytes.len) {
            link->first = frame->next;
            link->last = link->first ? link->last : NULL;
            link->sent = 0;
            p->begun_ns = 0;
            frame->next = *ret_done;
            *ret_done = frame;
        }
    }
    if (link->first && p->begun_ns == 0) { /* the next one waits for the socket from now on */
        uint64_t now = kedge_os_now_ns();
        *p = (struct kedgei_progress){now, now, link->first->len};
    }
    return KEDGE_OK;
}

void kedgei_link_withdraw(struct kedgei_link *link, uint32_t call)
{
    /* Not the first one: half of it may be on its way as a TLS record though no byte counts as sent. */
    for (struct kedgei_frame *before = link->first; before && before->next; before = before->next) {
        struct kedgei_frame *f = before->next;
        if (f->call == call) {
            before->next = f->next;
            link->last = link->last == f ? before : link->last;
            kedgei_frame_free(f);
            return;
        }
    }
}

bool kedgei_link_wants_write(const struct kedgei_link *link)
{
    return link->first || link->stream.wants_write;
}

/* The second bound grows with the frame's length at the least rate that is accepted: a slow line
 * may take its time for a large frame. */
static bool is_stuck(const struct kedgei_progress *p, uint64_t now_ns, uint64_t stall_ns)
{
    return p->begun_ns != 0
           && (now_ns > p->moved_ns + stall_ns
               || now_ns > p->begun_ns + stall_ns + (uint64_t)p->len / KEDGEI_RATE_MIN * NS_PER_S);
}

bool kedgei_link_is_stuck(const struct kedgei_link *link, uint64_t now_ns, uint64_t stall_ns)
{
    return is_stuck(&link->receiving, now_ns, stall_ns) || is_stuck(&link->sending, now_ns, stall_ns);
}
