/* What the coordinator tells its companion kedge-events through a pipe: frames of at most
 * KEDGE_EVENT_FRAME_MAX bytes, so that each is written whole or not at all (pipe(7), PIPE_BUF).
 *
 *   u16 length of all ‖ u8 type ‖ u8 length of the name ‖ name of a stream ‖ payload
 *
 * The name is a tenant's, or empty for the operator's stream. Pure. */
#ifndef KEDGE_COORDINATOR_EVENTS_FRAME_H
#define KEDGE_COORDINATOR_EVENTS_FRAME_H

#include "common/base/bytes.h"
#include "common/base/text.h"

enum { KEDGE_EVENT_FRAME_MAX = 4096, KEDGE_EVENT_FRAME_HEAD = 4 };

enum kedge_event_frame_type {
    KEDGE_EVENT_FRAME_OPEN = 1, /* the stream is served from now on; no payload */
    KEDGE_EVENT_FRAME_SAY = 2,  /* payload: what subscribers get, "TOPIC LINE" */
    KEDGE_EVENT_FRAME_BEAT = 3, /* to be answered with one byte */
};

struct kedge_event_frame {
    enum kedge_event_frame_type type;
    struct kedge_view name, payload; /* borrowed */
};

/* Appends one. KEDGE_E_TOO_LONG. */
KEDGE_NODISCARD int kedge_event_frame_encode(const struct kedge_event_frame *f, struct kedge_buf *out);
/* Takes the first frame off the view. KEDGE_E_NOT_FOUND: it is not whole yet; KEDGE_E_FORMAT: none can
 * follow.
 */
KEDGE_NODISCARD int kedge_event_frame_take(struct kedge_view *bytes, struct kedge_event_frame *ret);

#endif
