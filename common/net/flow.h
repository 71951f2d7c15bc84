/* Internal to net: where one direction of a connection stands between nng's frames.
 *
 * nng moves a frame in several steps: it asks for some bytes, is told that they moved, and asks for
 * the next. Between "told" and "asks" (the gap) the connection must not be closed: nng 1.5.2 then
 * loses the frame's end and waits for it for ever. The steps are told apart by following the framing:
 * 8 bytes of greeting, then frames of an 8-byte length and as many bytes. */
#ifndef KEDGE_COMMON_NET_FLOW_H
#define KEDGE_COMMON_NET_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kedgei_flow {
    uint8_t head[8];
    size_t head_len;
    uint64_t body_left;
    bool greeted;
    atomic_bool in_gap; /* bytes moved, the frame goes on, nng has not asked for the next yet */
};

/* n bytes moved. */
void kedgei_flow_moved(struct kedgei_flow *flow, const uint8_t *data, size_t n);
/* nng asked and has to wait. */
void kedgei_flow_waits(struct kedgei_flow *flow);

#endif
