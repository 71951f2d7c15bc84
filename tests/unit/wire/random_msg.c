#include "tests/unit/wire/random_msg.h"

#include <string.h>

static uint8_t pool[1 << 20];
static size_t pool_used;

static struct kedge_view random_bytes(struct kedge_rng *rng, size_t most)
{
    size_t len = (size_t)kedge_rng_below(rng, kedge_rng_below(rng, 4) ? 40 : 3000);
    len = len < most ? len : most;
    uint8_t *p = pool + pool_used;
    pool_used += len;
    for (size_t i = 0; i < len; i++) {
        p[i] = (uint8_t)kedge_rng_u64(rng);
    }
    return kedge_view_of(p, len);
}

static struct kedge_view random_text(struct kedge_rng *rng, size_t most)
{
    static const char *const pieces[] = {"a", " ", "Zürich", "\n", "€", "kedge", "\xf0\x9f\x9a\xa2", "0"};
    uint8_t *p = pool + pool_used;
    size_t len = 0, count = (size_t)kedge_rng_below(rng, 12);
    for (size_t i = 0; i < count; i++) {
        struct kedge_view piece = kedge_view_str(pieces[kedge_rng_below(rng, 8)]);
        if (len + piece.len <= most) {
            memcpy(p + len, piece.ptr, piece.len);
            len += piece.len;
        }
    }
    pool_used += len;
    return kedge_view_of(p, len);
}

static struct kedge_id random_id(struct kedge_rng *rng)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789", rest[] = "abcxyz0189._-";
    struct kedge_id id = {{0}};
    size_t len = 1 + (size_t)kedge_rng_below(rng, KEDGE_ID_MAX);
    id.s[0] = first[kedge_rng_below(rng, sizeof first - 1)];
    for (size_t i = 1; i < len; i++) {
        id.s[i] = rest[kedge_rng_below(rng, sizeof rest - 1)];
    }
    return id;
}

static struct kedge_view random_hashes(struct kedge_rng *rng, size_t most)
{
    size_t len = (size_t)kedge_rng_below(rng, most + 1) * KEDGE_WIRE_HASH;
    uint8_t *p = pool + pool_used;
    pool_used += len;
    for (size_t i = 0; i < len; i++) {
        p[i] = (uint8_t)kedge_rng_u64(rng);
    }
    return kedge_view_of(p, len);
}

#define U8(field, least, most) \
    m->field = (uint8_t)((least) + (int)kedge_rng_below(rng, (uint64_t)((most) - (least) + 1)));
#define U32(field) m->field = (uint32_t)kedge_rng_u64(rng) >> kedge_rng_below(rng, 32);
#define U64(field) m->field = kedge_rng_u64(rng) >> kedge_rng_below(rng, 64);
#define HASH(field)                                \
    for (size_t i = 0; i < KEDGE_WIRE_HASH; i++) { \
        m->field[i] = (uint8_t)kedge_rng_u64(rng); \
    }
#define ID(field) m->field = random_id(rng);
#define STR(field, most) m->field = random_text(rng, most);
#define BYTES(field, most) m->field = random_bytes(rng, most);
#define HASHES(field, most) m->field = random_hashes(rng, most);
#define IDS(field, most)                                                \
    m->field##_count = (uint8_t)kedge_rng_below(rng, (most) + 1);       \
    for (size_t i = 0; i < m->field##_count; i++) {                     \
        m->field[i] = random_id(rng);                                   \
        m->field[i].s[0] = (char)('a' + (int)i); /* none comes twice */ \
    }
#define KEDGE_MSG(value, NAME, name, fields)                                   \
    static void draw_##name(struct kedge_rng *rng, struct kedge_msg_##name *m) \
    {                                                                          \
        fields                                                                 \
    }
#include "common/wire/messages.def"
#undef KEDGE_MSG

struct kedge_msg random_msg(struct kedge_rng *rng, unsigned index)
{
    struct kedge_msg msg;
    unsigned i = 0;
    memset(&msg, 0, sizeof msg);
    pool_used = 0;
#define KEDGE_MSG(value, NAME, name, fields) \
    if (index == i++) {                      \
        msg.type = KEDGE_MSG_##NAME;         \
        draw_##name(rng, &msg.u.name);       \
    }
#include "common/wire/messages.def"
#undef KEDGE_MSG
    if (msg.type == KEDGE_MSG_CHUNK) { /* a part lies inside its whole */
        msg.u.chunk.offset >>= 1;
        msg.u.chunk.total = msg.u.chunk.offset + msg.u.chunk.data.len + kedge_rng_below(rng, 3);
    } else if (msg.type == KEDGE_MSG_BLOB_PUT) {
        msg.u.blob_put.offset >>= 1;
        msg.u.blob_put.total = msg.u.blob_put.offset + msg.u.blob_put.data.len + kedge_rng_below(rng, 3);
    } else if (msg.type == KEDGE_MSG_BLOB_PUT_PACKED) {
        struct kedge_msg_blob_put_packed *p = &msg.u.blob_put_packed;
        p->data = p->data.len > 0 ? p->data : kedge_view_str("x");
        p->len = (uint32_t)p->data.len + 1 + (uint32_t)kedge_rng_below(rng, 3);
        p->offset >>= 1;
        p->total = p->offset + p->len + kedge_rng_below(rng, 3);
    } else if (msg.type == KEDGE_MSG_CHUNK_PACKED) {
        struct kedge_msg_chunk_packed *p = &msg.u.chunk_packed;
        p->data = p->data.len > 0 ? p->data : kedge_view_str("x");
        p->len = (uint32_t)p->data.len + 1 + (uint32_t)kedge_rng_below(rng, 3);
        p->offset >>= 1;
        p->total = p->offset + p->len + kedge_rng_below(rng, 3);
    }
    return msg;
}
