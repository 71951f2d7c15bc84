/* Internal to net: what goes over a connection. Pure: no sockets, no threads, no clock.
 *
 *   each direction = greeting, then frames
 *   greeting       = magic[8] ‖ u32 version ‖ key[32]     key: claimed by a client of tcp://, else zeros
 *   frame          = u32 length of the body ‖ u32 call ‖ body
 *
 * All big-endian, as in common/wire. A reply carries the call of its request. */
#ifndef KEDGE_COMMON_NET_FRAME_H
#define KEDGE_COMMON_NET_FRAME_H

#include <stddef.h>

#include "common/base/err.h"
#include "crypto/sign.h"

enum { KEDGEI_PROTOCOL = 1, KEDGEI_GREETING_LEN = 44, KEDGEI_HEAD_LEN = 8 };

/* A frame in memory, head and body side by side, so that they leave in one write. */
struct kedgei_frame {
    struct kedgei_frame *next; /* in the queue that owns it */
    size_t charge;             /* bytes of a server's budget that go with it */
    bool is_small;             /* from which account (budget.h) */
    uint8_t skip;              /* bytes of the head that are not sent: all of them for a greeting */
    uint32_t call;
    size_t len; /* of the body */
    uint8_t head[KEDGEI_HEAD_LEN];
    uint8_t body[];
};

/* The body's bytes are undefined. NULL when out of memory. */
struct kedgei_frame *kedgei_frame_new(size_t len);
/* NULL is fine. */
void kedgei_frame_free(struct kedgei_frame *frame);
/* Writes the head; len must fit 32 bits. */
void kedgei_frame_seal(struct kedgei_frame *frame, uint32_t call);
/* A greeting to be sent; key may be NULL. */
struct kedgei_frame *kedgei_frame_greeting(const struct kedge_public_key *key);
/* Everything to be sent of it. */
struct kedge_view kedgei_frame_bytes(const struct kedgei_frame *frame);

/* Takes a direction apart, in pieces of any size. Bytes are received straight into their place:
 *   while bytes are wanted:      space() → receive into it → advance()
 *   when the state is NO_MEMORY: a head has come; give() once the body's memory may be taken
 *   when the state is WHOLE:     take() */
enum kedgei_decoder_state {
    KEDGEI_GREETING,
    KEDGEI_HEAD,
    KEDGEI_NO_MEMORY,
    KEDGEI_BODY,
    KEDGEI_WHOLE,
};

struct kedgei_decoder {
    enum kedgei_decoder_state state;
    size_t frame_max, got;
    size_t len;    /* of the frame that is coming, from NO_MEMORY on */
    uint32_t call; /* its call */
    struct kedgei_frame *frame;
    uint8_t fixed[KEDGEI_GREETING_LEN];
    struct kedge_public_key claimed; /* of the greeting */
};

void kedgei_decoder_init(struct kedgei_decoder *d, size_t frame_max);
void kedgei_decoder_deinit(struct kedgei_decoder *d);
/* Where the next bytes belong, never of length 0; only in GREETING, HEAD and BODY. */
uint8_t *kedgei_decoder_space(struct kedgei_decoder *d, size_t *ret_len);
/* n bytes of that space have been filled. KEDGE_E_FORMAT: not a greeting; KEDGE_E_VERSION: of another
 * version; KEDGE_E_TOO_LONG: a body beyond frame_max. After an error only deinit. */
KEDGE_NODISCARD int kedgei_decoder_advance(struct kedgei_decoder *d, size_t n);
/* KEDGE_E_NOMEM leaves the state as it was. */
KEDGE_NODISCARD int kedgei_decoder_give(struct kedgei_decoder *d);
/* The whole frame; the next one may come. */
struct kedgei_frame *kedgei_decoder_take(struct kedgei_decoder *d);

#endif
