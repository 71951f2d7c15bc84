/* A subscriber of a coordinator's stream of events, over its socket on this machine: nng's PUB/SUB, whose
 * protocol (SP) is few bytes. So kedge needs no nng. */
#ifndef KEDGE_CLI_EVENTS_STREAM_H
#define KEDGE_CLI_EVENTS_STREAM_H

#include <stdint.h>

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum { KEDGE_CLI_MESSAGE_MAX = 8192 };

struct kedge_cli_stream {
    int fd; /* -1: closed */
    size_t len, used;
    uint8_t bytes[4 * KEDGE_CLI_MESSAGE_MAX];
};

/* Connects to the socket at path, however long that is. KEDGE_E_UNREACHABLE, KEDGE_E_FORMAT: another protocol
 * answers there. */
KEDGE_NODISCARD int kedge_cli_stream_open(const char *path, struct kedge_cli_stream *ret);
/* The next message, "TOPIC LINE"; borrowed until the next call. KEDGE_E_TIMEOUT, KEDGE_E_CANCELLED (a signal
 * came), KEDGE_E_CLOSED; KEDGE_E_FORMAT after which the stream is of no use. */
KEDGE_NODISCARD int kedge_cli_stream_next(struct kedge_cli_stream *s, uint32_t timeout_ms,
                                          struct kedge_view *ret);
void kedge_cli_stream_close(struct kedge_cli_stream *s);

#endif
