/* The decoder is a state machine that never asks for more than it has room for. It takes bytes in pieces
 * of any size straight into their place: the fixed part of 8 or 44 bytes, then a body whose memory is
 * asked for only once its length is known and allowed (NO_MEMORY). The server can put the connection on
 * hold in exactly that state, before memory for the body is taken: a peer that announces 4 MiB makes the
 * server wait, not allocate. */
#include "common/net/frame.h"

#include <string.h>

#include "common/base/bytes.h"
#include "common/base/mem.h"
#include "common/base/try.h"

_Static_assert(offsetof(struct kedgei_frame, body) == offsetof(struct kedgei_frame, head) + KEDGEI_HEAD_LEN,
               "the body follows the head");

static const uint8_t magic[8] = {'K', 'E', 'D', 'G', 'E', '\r', '\n', 0}; /* no line of text, no TLS record */

static void store_be32(uint8_t out[4], uint32_t v)
{
    for (unsigned i = 0; i < 4; i++) {
        out[i] = (uint8_t)(v >> (24 - 8 * i));
    }
}

static uint32_t load_be32(const uint8_t in[4])
{
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
}

struct kedgei_frame *kedgei_frame_new(size_t len)
{
    /* Not zeroed: a body is filled from the network or by its writer, and 4 MiB take time. */
    struct kedgei_frame *frame =
        len < SIZE_MAX - sizeof *frame ? kedge_mem_resize(NULL, sizeof *frame + len, 1) : NULL;
    if (frame) {
        memset(frame, 0, sizeof *frame);
        frame->len = len;
    }
    return frame;
}

void kedgei_frame_free(struct kedgei_frame *frame)
{
    kedge_mem_free(frame);
}

/* Head and body lie together in memory, so a frame goes out in one write. */
void kedgei_frame_seal(struct kedgei_frame *frame, uint32_t call)
{
    KEDGE_ASSERT(frame->len <= UINT32_MAX);
    frame->call = call;
    store_be32(frame->head, (uint32_t)frame->len);
    store_be32(frame->head + 4, call);
}

/* The greeting has no head: it is of fixed length and comes before anything else. */
struct kedgei_frame *kedgei_frame_greeting(const struct kedge_public_key *key)
{
    struct kedgei_frame *frame = kedgei_frame_new(KEDGEI_GREETING_LEN);
    if (frame) {
        frame->skip = KEDGEI_HEAD_LEN;
        memset(frame->body, 0, KEDGEI_GREETING_LEN);
        memcpy(frame->body, magic, sizeof magic);
        store_be32(frame->body + sizeof magic, KEDGEI_PROTOCOL);
        if (key) {
            memcpy(frame->body + sizeof magic + 4, key->b, sizeof key->b);
        }
    }
    return frame;
}

struct kedge_view kedgei_frame_bytes(const struct kedgei_frame *frame)
{
    const uint8_t *begin = (const uint8_t *)frame + offsetof(struct kedgei_frame, head);
    return kedge_view_of(begin + frame->skip, KEDGEI_HEAD_LEN + frame->len - frame->skip);
}

void kedgei_decoder_init(struct kedgei_decoder *d, size_t frame_max)
{
    *d = (struct kedgei_decoder){.state = KEDGEI_GREETING, .frame_max = frame_max};
}

void kedgei_decoder_deinit(struct kedgei_decoder *d)
{
    kedgei_frame_free(d->frame);
    d->frame = NULL;
}

uint8_t *kedgei_decoder_space(struct kedgei_decoder *d, size_t *ret_len)
{
    KEDGE_ASSERT(d->state != KEDGEI_NO_MEMORY && d->state != KEDGEI_WHOLE);
    if (d->state == KEDGEI_BODY) {
        *ret_len = d->len - d->got;
        return d->frame->body + d->got;
    }
    *ret_len = (d->state == KEDGEI_GREETING ? KEDGEI_GREETING_LEN : KEDGEI_HEAD_LEN) - d->got;
    return d->fixed + d->got;
}

/* Another protocol is told at its first byte that differs, not after 44 of them. */
static int advance_greeting(struct kedgei_decoder *d)
{
    if (memcmp(d->fixed, magic, d->got < sizeof magic ? d->got : sizeof magic) != 0) {
        return KEDGE_E_FORMAT;
    }
    if (d->got >= sizeof magic + 4 && load_be32(d->fixed + sizeof magic) != KEDGEI_PROTOCOL) {
        return KEDGE_E_VERSION;
    }
    if (d->got == KEDGEI_GREETING_LEN) {
        memcpy(d->claimed.b, d->fixed + sizeof magic + 4, sizeof d->claimed.b);
        d->state = KEDGEI_HEAD;
        d->got = 0;
    }
    return KEDGE_OK;
}

static int advance_head(struct kedgei_decoder *d)
{
    if (d->got == KEDGEI_HEAD_LEN) {
        d->len = load_be32(d->fixed);
        d->call = load_be32(d->fixed + 4);
        if (d->len > d->frame_max) {
            return KEDGE_E_TOO_LONG;
        }
        d->state = KEDGEI_NO_MEMORY;
        d->got = 0;
    }
    return KEDGE_OK;
}

/* A state that takes no bytes is a bug of the caller and not of the peer. */
int kedgei_decoder_advance(struct kedgei_decoder *d, size_t n)
{
    d->got += n;
    switch (d->state) {
    case KEDGEI_GREETING:
        return advance_greeting(d);
    case KEDGEI_HEAD:
        return advance_head(d);
    case KEDGEI_BODY:
        d->state = d->got == d->len ? KEDGEI_WHOLE : KEDGEI_BODY;
        return KEDGE_OK;
    case KEDGEI_NO_MEMORY:
    case KEDGEI_WHOLE:
        break;
    }
    return KEDGE_E_BUG;
}

int kedgei_decoder_give(struct kedgei_decoder *d)
{
    KEDGE_ASSERT(d->state == KEDGEI_NO_MEMORY);
    d->frame = kedgei_frame_new(d->len);
    KEDGE_TRY_MEM(d->frame);
    d->frame->call = d->call;
    d->state = d->len == 0 ? KEDGEI_WHOLE : KEDGEI_BODY;
    return KEDGE_OK;
}

struct kedgei_frame *kedgei_decoder_take(struct kedgei_decoder *d)
{
    KEDGE_ASSERT(d->state == KEDGEI_WHOLE);
    struct kedgei_frame *frame = d->frame;
    d->frame = NULL;
    d->state = KEDGEI_HEAD;
    d->got = 0;
    return frame;
}
