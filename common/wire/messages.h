/* Messages between sites, operators and the coordinator: structs, one encoding each, strict decoding.
 * Pure.
 *
 * A frame is u8 version, u8 type, then the fields of messages.def in order. There is exactly one
 * encoding: what kedge_msg_decode accepts, kedge_msg_encode gives back byte for byte; a frame that is
 * short, long, over a limit or holds an invalid value is refused whole. Decoded views point into the
 * frame and live as long as it does. */
#ifndef KEDGE_COMMON_WIRE_MESSAGES_H
#define KEDGE_COMMON_WIRE_MESSAGES_H

#include "common/base/bytes.h"
#include "common/base/limits.h"
#include "common/base/task_kind.h" /* TASK.kind */
#include "common/base/text.h"
#include "common/base/trouble.h" /* TASK_ENDED.trouble */

/* Bits of POLL.flags: a heartbeat of one that is at work; a site that refuses the main chain, and asks for
 * what is shown of it alone. */
enum { KEDGE_POLL_BUSY = 1, KEDGE_POLL_REFUSES = 16 };

enum {
    KEDGE_WIRE_VERSION = 1,     /* first byte of every frame */
    KEDGE_WIRE_HASH = 32,       /* bytes of a hash, a key, a secret */
    KEDGE_MSG_PREFIX_MAX = 136, /* bytes before the payload of CHUNK and BLOB_PUT, packed or not, at most */
};

/* ENROLL_OK.state */
enum { KEDGE_ENROLL_PENDING = 1, KEDGE_ENROLL_ACTIVE = 2 };

enum kedge_msg_type {
#define KEDGE_MSG(value, NAME, name, fields) KEDGE_MSG_##NAME = (value),
#include "common/wire/messages.def"
#undef KEDGE_MSG
};

/* struct kedge_msg_hello { uint32_t protocol; struct kedge_view program; } and so on: U8, U32 and U64
 * are unsigned integers, HASH is uint8_t[32], ID is struct kedge_id, STR and BYTES are struct
 * kedge_view, HASHES is a struct kedge_view over the hashes one after the other (len = 32 · count), IDS is
 * struct kedge_id[most] and a count, `name`_count. */
#define U8(field, least, most) uint8_t field;
#define U32(field) uint32_t field;
#define U64(field) uint64_t field;
#define HASH(field) uint8_t field[KEDGE_WIRE_HASH];
#define ID(field) struct kedge_id field;
#define STR(field, most) struct kedge_view field;
#define BYTES(field, most) struct kedge_view field;
#define HASHES(field, most) struct kedge_view field;
#define IDS(field, most)           \
    struct kedge_id field[(most)]; \
    uint8_t field##_count;
#define KEDGE_MSG(value, NAME, name, fields) \
    struct kedge_msg_##name {                \
        fields                               \
    };
#include "common/wire/messages.def"
#undef KEDGE_MSG
#undef U8
#undef U32
#undef U64
#undef HASH
#undef ID
#undef STR
#undef BYTES
#undef HASHES
#undef IDS

struct kedge_msg {
    enum kedge_msg_type type;
    union {
#define KEDGE_MSG(value, NAME, name, fields) struct kedge_msg_##name name;
#include "common/wire/messages.def"
#undef KEDGE_MSG
    } u;
};

/* Appends the frame to out. KEDGE_E_ARG: unknown type or a value out of its range; KEDGE_E_TOO_LONG: a
 * field over its limit, or out's max; KEDGE_E_NOMEM. On failure out holds what it held. */
KEDGE_NODISCARD int kedge_msg_encode(const struct kedge_msg *msg, struct kedge_buf *out);

/* CHUNK, BLOB_PUT and both in packed form without copying the payload: msg's data.len counts, its data.ptr is
 * not looked at. The prefix is everything before the payload; prefix and payload together are the frame.
 * Typical use: kedge_msg_prefix(&msg, prefix, &prefix_len); kedge_net_reply_begin(req, prefix_len + data_len,
 * &ptr); copy the prefix, fill the payload after it. Errors as kedge_msg_encode; KEDGE_E_ARG for other
 * types. */
KEDGE_NODISCARD int kedge_msg_prefix(const struct kedge_msg *msg, uint8_t out[KEDGE_MSG_PREFIX_MAX],
                                     size_t *ret_len);

/* Reads a whole frame; ret's views borrow from it. KEDGE_E_VERSION: another version byte;
 * KEDGE_E_TOO_LONG: a field over its limit; KEDGE_E_FORMAT: anything else. ret is written on success
 * only. */
KEDGE_NODISCARD int kedge_msg_decode(struct kedge_view frame, struct kedge_msg *ret);

/* "BLOB_GET"; "UNKNOWN" for any other value. Static storage. */
const char *kedge_msg_name(enum kedge_msg_type type);

/* ERROR made from a negative kedge_err; text is borrowed and cut at a character boundary to fit. */
struct kedge_msg kedge_msg_of_error(int err, uint32_t retry_ms, const char *text);
/* The negative kedge_err of an ERROR or REFUSED; KEDGE_E_UNKNOWN for a code that this version does not know.
 */
int kedge_msg_error_code(const struct kedge_msg *msg);

#endif
