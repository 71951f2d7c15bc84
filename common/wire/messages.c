/* The table of messages.def read three times: names, writers, readers. A field is checked by one
 * function for each direction, so that no message can forget a limit; kedge_msg_decode and
 * kedge_msg_encode refuse the same values. */
#include "common/wire/messages.h"

#include <string.h>

#include "common/base/try.h"

struct writer {
    struct kedge_buf *out;
    bool prefix_only; /* leave the bytes of the payload to the caller */
    int err;
};

struct reader {
    struct kedge_reader in;
    int err; /* first refusal other than a short frame */
};

static bool is_text(struct kedge_view v)
{
    return kedge_text_is_plain_lines(v);
}

/* Payload and position must lie inside the blob that they are said to be a part of. */
static bool is_part(uint64_t total, uint64_t offset, size_t len)
{
    return offset <= total && len <= total - offset;
}

static bool is_packed_part(uint64_t total, uint64_t offset, uint32_t len, struct kedge_view data)
{
    return data.len > 0 && data.len < len && len <= KEDGE_CHUNK_MAX && is_part(total, offset, len);
}

static bool is_consistent(const struct kedge_msg *msg)
{
    if (msg->type == KEDGE_MSG_CHUNK) {
        return is_part(msg->u.chunk.total, msg->u.chunk.offset, msg->u.chunk.data.len);
    }
    if (msg->type == KEDGE_MSG_BLOB_PUT) {
        return is_part(msg->u.blob_put.total, msg->u.blob_put.offset, msg->u.blob_put.data.len);
    }
    if (msg->type == KEDGE_MSG_BLOB_PUT_PACKED) {
        const struct kedge_msg_blob_put_packed *p = &msg->u.blob_put_packed;
        return is_packed_part(p->total, p->offset, p->len, p->data);
    }
    if (msg->type == KEDGE_MSG_CHUNK_PACKED) {
        const struct kedge_msg_chunk_packed *p = &msg->u.chunk_packed;
        return is_packed_part(p->total, p->offset, p->len, p->data);
    }
    return true;
}

/* ---- writing ---- */

static void fail_write(struct writer *w, int err)
{
    if (w->err == KEDGE_OK) {
        w->err = err;
    }
}

static void put_u8(struct writer *w, uint8_t v, uint8_t least, uint8_t most)
{
    if (v < least || v > most) {
        fail_write(w, KEDGE_E_ARG);
    }
    kedge_buf_put_u8(w->out, v);
}

static void put_id(struct writer *w, const struct kedge_id *id)
{
    size_t len = strnlen(id->s, sizeof id->s);
    if (!kedge_id_is_valid(kedge_view_of(id->s, len))) {
        fail_write(w, KEDGE_E_ARG);
        return;
    }
    kedge_buf_put_u8(w->out, (uint8_t)len);
    kedge_buf_put(w->out, id->s, len);
}

static void put_bytes(struct writer *w, struct kedge_view v, size_t most)
{
    if (v.len > most) {
        fail_write(w, KEDGE_E_TOO_LONG);
        return;
    }
    kedge_buf_put_u32(w->out, (uint32_t)v.len);
    if (!w->prefix_only) {
        kedge_buf_put(w->out, v.ptr, v.len);
    }
}

static void put_str(struct writer *w, struct kedge_view v, size_t most)
{
    if (v.len <= most && !is_text(v)) {
        fail_write(w, KEDGE_E_ARG);
    }
    put_bytes(w, v, most);
}

static void put_hashes(struct writer *w, struct kedge_view v, size_t most)
{
    if (v.len % KEDGE_WIRE_HASH != 0) {
        fail_write(w, KEDGE_E_ARG);
        return;
    }
    if (v.len / KEDGE_WIRE_HASH > most) {
        fail_write(w, KEDGE_E_TOO_LONG);
        return;
    }
    kedge_buf_put_u8(w->out, (uint8_t)(v.len / KEDGE_WIRE_HASH));
    kedge_buf_put(w->out, v.ptr, v.len);
}

/* Names that stand twice are refused: counted twice they would be two where there is one. Lists are
 * short. */
static bool is_among(const struct kedge_id *ids, size_t count, const struct kedge_id *id)
{
    for (size_t i = 0; i < count; i++) {
        if (kedge_id_eq(&ids[i], id)) {
            return true;
        }
    }
    return false;
}

static void put_ids(struct writer *w, const struct kedge_id *ids, uint8_t count, size_t most)
{
    if (count > most) {
        fail_write(w, KEDGE_E_TOO_LONG);
        return;
    }
    kedge_buf_put_u8(w->out, count);
    for (size_t i = 0; i < count; i++) {
        put_id(w, &ids[i]);
        if (is_among(ids, i, &ids[i])) {
            fail_write(w, KEDGE_E_ARG);
        }
    }
}

#define U8(field, least, most) put_u8(w, m->field, least, most);
#define U32(field) kedge_buf_put_u32(w->out, m->field);
#define U64(field) kedge_buf_put_u64(w->out, m->field);
#define HASH(field) kedge_buf_put(w->out, m->field, KEDGE_WIRE_HASH);
#define ID(field) put_id(w, &m->field);
#define STR(field, most) put_str(w, m->field, most);
#define BYTES(field, most) put_bytes(w, m->field, most);
#define HASHES(field, most) put_hashes(w, m->field, most);
#define IDS(field, most) put_ids(w, m->field, m->field##_count, most);
#define KEDGE_MSG(value, NAME, name, fields)                                   \
    static void put_##name(struct writer *w, const struct kedge_msg_##name *m) \
    {                                                                          \
        fields                                                                 \
    }
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

static void put_fields(struct writer *w, const struct kedge_msg *msg)
{
    switch (msg->type) {
#define KEDGE_MSG(value, NAME, name, fields) \
    case KEDGE_MSG_##NAME:                   \
        put_##name(w, &msg->u.name);         \
        return;
#include "common/wire/messages.def"
#undef KEDGE_MSG
    }
    fail_write(w, KEDGE_E_ARG);
}

/* All or nothing: after a refusal the buffer is as it was before. */
static int encode(const struct kedge_msg *msg, struct kedge_buf *out, bool prefix_only)
{
    if (out->err) {
        return out->err;
    }
    size_t before = out->len;
    struct writer w = {.out = out, .prefix_only = prefix_only};
    kedge_buf_put_u8(out, KEDGE_WIRE_VERSION);
    kedge_buf_put_u8(out, (uint8_t)msg->type);
    put_fields(&w, msg);
    if (w.err == KEDGE_OK && !is_consistent(msg)) {
        w.err = KEDGE_E_ARG;
    }
    int err = w.err ? w.err : out->err;
    if (err) {
        out->len = before;
        out->err = KEDGE_OK;
    }
    return err;
}

int kedge_msg_encode(const struct kedge_msg *msg, struct kedge_buf *out)
{
    return encode(msg, out, false);
}

/* The fixed part of a message whose payload the caller writes itself, straight into the frame: a
 * chunk of a model is not copied. */
int kedge_msg_prefix(const struct kedge_msg *msg, uint8_t out[KEDGE_MSG_PREFIX_MAX], size_t *ret_len)
{
    if (msg->type != KEDGE_MSG_CHUNK && msg->type != KEDGE_MSG_BLOB_PUT
        && msg->type != KEDGE_MSG_BLOB_PUT_PACKED && msg->type != KEDGE_MSG_CHUNK_PACKED) {
        return KEDGE_E_ARG;
    }
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_MSG_PREFIX_MAX);
    KEDGE_TRY(encode(msg, &b, true));
    memcpy(out, b.ptr, b.len);
    *ret_len = b.len;
    return KEDGE_OK;
}

/* ---- reading ---- */

/* The first refusal counts: what follows it was read from the wrong place. */
static void refuse(struct reader *r, int err)
{
    if (r->err == KEDGE_OK && !r->in.failed) {
        r->err = err;
    }
    r->in.failed = true;
}

static void get_u8(struct reader *r, uint8_t *ret, uint8_t least, uint8_t most)
{
    uint8_t v = kedge_read_u8(&r->in);
    if (v < least || v > most) {
        refuse(r, KEDGE_E_FORMAT);
    }
    *ret = v;
}

static void get_hash(struct reader *r, uint8_t ret[KEDGE_WIRE_HASH])
{
    struct kedge_view v = kedge_read_bytes(&r->in, KEDGE_WIRE_HASH);
    if (v.len == KEDGE_WIRE_HASH) {
        memcpy(ret, v.ptr, KEDGE_WIRE_HASH);
    }
}

static void get_id(struct reader *r, struct kedge_id *ret)
{
    struct kedge_view v = kedge_read_bytes(&r->in, kedge_read_u8(&r->in));
    if (kedge_id_from(v, ret) != KEDGE_OK) {
        refuse(r, KEDGE_E_FORMAT);
    }
}

static void get_bytes(struct reader *r, struct kedge_view *ret, size_t most)
{
    uint32_t len = kedge_read_u32(&r->in);
    if (len > most) {
        refuse(r, KEDGE_E_TOO_LONG);
        return;
    }
    *ret = kedge_read_bytes(&r->in, len);
}

static void get_str(struct reader *r, struct kedge_view *ret, size_t most)
{
    get_bytes(r, ret, most);
    if (!r->in.failed && !is_text(*ret)) {
        refuse(r, KEDGE_E_FORMAT);
    }
}

static void get_hashes(struct reader *r, struct kedge_view *ret, size_t most)
{
    size_t count = kedge_read_u8(&r->in);
    if (count > most) {
        refuse(r, KEDGE_E_TOO_LONG);
        return;
    }
    *ret = kedge_read_bytes(&r->in, count * KEDGE_WIRE_HASH);
}

static void get_ids(struct reader *r, struct kedge_id *ret, uint8_t *ret_count, size_t most)
{
    uint8_t count = kedge_read_u8(&r->in);
    if (count > most) {
        refuse(r, KEDGE_E_TOO_LONG);
        return;
    }
    for (size_t i = 0; i < count && !r->in.failed; i++) {
        get_id(r, &ret[i]);
        if (!r->in.failed && is_among(ret, i, &ret[i])) {
            refuse(r, KEDGE_E_FORMAT);
        }
    }
    *ret_count = count;
}

#define U8(field, least, most) get_u8(r, &m->field, least, most);
#define U32(field) m->field = kedge_read_u32(&r->in);
#define U64(field) m->field = kedge_read_u64(&r->in);
#define HASH(field) get_hash(r, m->field);
#define ID(field) get_id(r, &m->field);
#define STR(field, most) get_str(r, &m->field, most);
#define BYTES(field, most) get_bytes(r, &m->field, most);
#define HASHES(field, most) get_hashes(r, &m->field, most);
#define IDS(field, most) get_ids(r, m->field, &m->field##_count, most);
#define KEDGE_MSG(value, NAME, name, fields)                             \
    static void get_##name(struct reader *r, struct kedge_msg_##name *m) \
    {                                                                    \
        fields                                                           \
    }
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

/* The whole frame must be one message. What is left over would be understood by another version and
 * not by this one. */
int kedge_msg_decode(struct kedge_view frame, struct kedge_msg *ret)
{
    struct reader r = {.in = kedge_reader_of(frame)};
    struct kedge_msg msg;
    memset(&msg, 0, sizeof msg);
    uint8_t version = kedge_read_u8(&r.in);
    uint8_t type = kedge_read_u8(&r.in);
    if (r.in.failed) {
        return KEDGE_E_FORMAT;
    }
    if (version != KEDGE_WIRE_VERSION) {
        return KEDGE_E_VERSION;
    }
    switch (type) {
#define KEDGE_MSG(value, NAME, name, fields) \
    case (value):                            \
        msg.type = KEDGE_MSG_##NAME;         \
        get_##name(&r, &msg.u.name);         \
        break;
#include "common/wire/messages.def"
#undef KEDGE_MSG
    default:
        return KEDGE_E_FORMAT;
    }
    if (r.err) {
        return r.err;
    }
    KEDGE_TRY(kedge_reader_end(&r.in));
    if (!is_consistent(&msg)) {
        return KEDGE_E_FORMAT;
    }
    *ret = msg;
    return KEDGE_OK;
}

/* ---- names and errors ---- */

const char *kedge_msg_name(enum kedge_msg_type type)
{
    switch (type) {
#define KEDGE_MSG(value, NAME, name, fields) \
    case KEDGE_MSG_##NAME:                   \
        return #NAME;
#include "common/wire/messages.def"
#undef KEDGE_MSG
    }
    return "UNKNOWN";
}

enum { ERROR_TEXT_MAX = 512 }; /* as in messages.def; the round trip of a longest text is tested */

/* An error must always be sendable, whatever text it was made of: it is cut to its limit, and a
 * text that is not plain is left out. */
struct kedge_msg kedge_msg_of_error(int err, uint32_t retry_ms, const char *text)
{
    struct kedge_view v = kedge_view_str(text);
    if (v.len > ERROR_TEXT_MAX) {
        v.len = ERROR_TEXT_MAX;
        while (v.len > 0 && (v.ptr[v.len] & 0xc0) == 0x80) { /* not in the middle of a character */
            v.len--;
        }
    }
    if (!is_text(v)) {
        v.len = 0;
    }
    uint32_t code = err < 0 ? (uint32_t) - (int64_t)err : (uint32_t) - (int64_t)KEDGE_E_BUG;
    return (struct kedge_msg){KEDGE_MSG_ERROR, {.error = {code, retry_ms, v}}};
}

int kedge_msg_error_code(const struct kedge_msg *msg)
{
    if (msg->type != KEDGE_MSG_ERROR && msg->type != KEDGE_MSG_REFUSED) {
        return KEDGE_E_BUG;
    }
    switch (msg->type == KEDGE_MSG_ERROR ? msg->u.error.code : msg->u.refused.code) {
#define KEDGE_ERR(name, value, class, text) \
    case (uint32_t)(-(value)):              \
        return name;
#include "common/base/err.def"
#undef KEDGE_ERR
    default:
        return KEDGE_E_UNKNOWN;
    }
}
