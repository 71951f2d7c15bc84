/* Statements without what they all say. */
#include "chain/store/entry_form.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

#include "chain/log/dsse.h"
#include "common/base/limits.h"
#include "common/base/mem.h"

enum {
    FORM_AS_IS = 0,
    FORM_PACKED = 1,
    SIGNATURE = KEDGE_HASH_LEN + KEDGE_SIGNATURE_LEN,
    WINDOW_BITS = -12, /* without a header; the words and most statements are within 4 kB */
    MEMORY_LEVEL = 5,
    HEAD = 1 + 4 + 1, /* form, checksum, number of signatures */
};

/* What statements of a round say, as they say it, the most frequent at the end: near matches cost less. */
static const char WORDS[] =
    "https://kedge.dev/release/v1\",\"predicate\":{\"job\":\"\",\"file\":\"-g0.safetensors\"}}"
    "https://kedge.dev/group-assigned/v1\",\"predicate\":{\"tenant\":\"org-a\",\"site\":\"site-1\",\"job\":\""
    "\",\"group\":1,\"how\":\"cold-start\",\"similarity\":\"0.5\",\"update\":"
    "\"choice\"nearest\"migration\"recluster\""
    "\"compression\":{\"kind\":\",\"personal\":{\"control\":{\"energy_joules\":"
    "\"measured\"modelled\"charge\":\""
    "\"variate\":\"stepped\":\"\",\"state_before\":\"\",\"state_after\":\"\",\"drift\":\"\",\"drifted\":"
    "{\"_type\":\"https://in-toto.io/Statement/"
    "v1\",\"subject\":[{\"name\":\"model\",\"digest\":{\"sha256\":\""
    "\"}}],\"predicateType\":\"https://kedge.dev/step/v1\",\"predicate\":{\"job\":\"\",\"round\":10,"
    "\"rule\":\"identity/"
    "v1\",\"eta\":\"0\",\"groups\":[{\"group\":0,\"before\":\"\",\"aggregate\":\"\",\"after\":\""
    "\",\"direction\":\"0000000000000000000000000000000000000000000000000000000000000000\"},{\"group\":1,"
    "\"before\":\"\"}],\"time_ms\":17}}"
    "{\"_type\":\"https://in-toto.io/Statement/"
    "v1\",\"subject\":[{\"name\":\"model\",\"digest\":{\"sha256\":\""
    "\"}}],\"predicateType\":\"https://kedge.dev/aggregate/v1\",\"predicate\":{\"job\":\"\",\"round\":10,"
    "\"group\":0,\"rule\":\"fedavg/"
    "v1\",\"scale\":20,\"weight_sum\":\"480\",\"count\":2,\"base\":\"\",\"tenants\":[{"
    "\"id\":\"\",\"accepted\":2,\"weight_sum\":\"\",\"refused\":0,\"list\":\"\"},{\"id\":\"\",\"accepted\":1,"
    "\"weight_sum\":\"\",\"refused\":0,\"list\":\"\"}]}}"
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"spec\",\"digest\":{\"sha256\":\""
    "\"}}],\"predicateType\":\"https://kedge.dev/round-opened/v1\",\"predicate\":{\"job\":\"\",\"round\":10,"
    "\"round_kind\":\"pretrain\"train\",\"seed\":\"1\",\"main_size\":10,\"main_root\":\"\",\"tenants\":[{"
    "\"id\":\""
    "\",\"candidates\":2,\"selected\":2,\"list\":\"\"},{\"id\":\"\",\"candidates\":1,\"selected\":1,\"list\":"
    "\""
    "\"}],\"time_ms\":17}}"
    "{\"_type\":\"https://in-toto.io/Statement/"
    "v1\",\"subject\":[{\"name\":\"model\",\"digest\":{\"sha256\":\""
    "\"}}],\"predicateType\":\"https://kedge.dev/evaluation/"
    "v1\",\"predicate\":{\"tenant\":\"org-a\",\"site\":\""
    "site-1\",\"job\":\"\",\"round\":10,\"group\":0,\"samples\":60,\"correct\":60,\"loss\":\"0.0\"}}"
    "{\"_type\":\"https://in-toto.io/Statement/"
    "v1\",\"subject\":[{\"name\":\"update\",\"digest\":{\"sha256\":\""
    "\"}}],\"predicateType\":\"https://kedge.dev/update/v1\",\"predicate\":{\"tenant\":\"org-a\",\"site\":\""
    "site-1\",\"job\":\"\",\"round\":10,\"group\":0,\"update_kind\":\"train\",\"base\":\"\",\"samples\":240,"
    "\"steps\":24,\"batch\":10,\"learning_rate\":\"0.1\",\"energy_quality\":\"unknown\",\"seconds\":\"0.00\","
    "\"engine\":\"kedge-train 0.1.0 cpu openblas\",\"energy_how\":\"none; a part is unknown\"}}";

struct kedge_view kedge_entry_words(void)
{
    return kedge_view_of(WORDS, sizeof WORDS - 1);
}

static void *take(void *arg, uInt count, uInt size)
{
    (void)arg;
    return kedge_mem_new(count, size);
}

static void give_back(void *arg, void *ptr)
{
    (void)arg;
    kedge_mem_free(ptr);
}

/* ---- storing ---- */

struct kedge_entry_packer {
    z_stream z;
    struct kedge_buf payload;
};

struct kedge_entry_packer *kedge_entry_packer_new(void)
{
    struct kedge_entry_packer *p = kedge_mem_new(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    p->z.zalloc = take;
    p->z.zfree = give_back;
    if (deflateInit2(&p->z, 4, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        kedge_mem_free(p);
        return NULL;
    }
    kedge_buf_init(&p->payload, KEDGE_ENTRY_MAX);
    return p;
}

void kedge_entry_packer_free(struct kedge_entry_packer *p)
{
    if (p) {
        (void)deflateEnd(&p->z);
        kedge_buf_deinit(&p->payload);
        kedge_mem_free(p);
    }
}

/* False: it does not become shorter. */
static bool deflate_payload(struct kedge_entry_packer *p, size_t most, struct kedge_buf *out)
{
    if (out->len >= most || deflateReset(&p->z) != Z_OK
        || deflateSetDictionary(&p->z, (const Bytef *)WORDS, sizeof WORDS - 1) != Z_OK
        || kedge_buf_reserve(out, most - out->len) != KEDGE_OK) {
        return false;
    }
    p->z.next_in = p->payload.ptr;
    p->z.avail_in = (uInt)p->payload.len;
    p->z.next_out = out->ptr + out->len;
    p->z.avail_out = (uInt)(most - out->len);
    if (deflate(&p->z, Z_FINISH) != Z_STREAM_END) {
        return false;
    }
    out->len = most - p->z.avail_out;
    return true;
}

/* False: it is no envelope, or would not become shorter. */
static bool pack(struct kedge_entry_packer *p, struct kedge_view entry, struct kedge_buf *out)
{
    struct kedge_dsse_entry signatures[KEDGE_DSSE_SIGNATURES_MAX];
    uint32_t count;
    kedge_buf_clear(&p->payload);
    if (entry.len == 0 || entry.ptr[0] != '{'
        || kedge_dsse_decode_all(entry, &p->payload, signatures, &count) != KEDGE_OK) {
        return false;
    }
    kedge_buf_put_u8(out, FORM_PACKED);
    kedge_buf_put_u32(out, 0);
    kedge_buf_put_u8(out, (uint8_t)count);
    for (uint32_t i = 0; i < count; i++) {
        kedge_buf_put(out, signatures[i].keyid.b, KEDGE_HASH_LEN);
        kedge_buf_put(out, signatures[i].sig.b, KEDGE_SIGNATURE_LEN);
    }
    kedge_buf_put_u16(out, (uint16_t)p->payload.len);
    if (out->err || !deflate_payload(p, entry.len, out)) {
        return false;
    }
    uint32_t sum = (uint32_t)crc32(0, out->ptr + 5, (uInt)(out->len - 5));
    for (unsigned i = 0; i < 4; i++) {
        out->ptr[1 + i] = (uint8_t)(sum >> (24 - 8 * i));
    }
    return true;
}

int kedge_entry_store(struct kedge_entry_packer *packer, struct kedge_view entry, struct kedge_buf *out)
{
    kedge_buf_clear(out);
    if (packer && pack(packer, entry, out)) {
        return KEDGE_OK;
    }
    kedge_buf_clear(out);
    if (entry.len > 0 && entry.ptr[0] <= FORM_PACKED) {
        kedge_buf_put_u8(out, FORM_AS_IS);
    }
    kedge_buf_put(out, entry.ptr, entry.len);
    return out->err;
}

/* ---- loading ---- */

/* What zlib needs for one payload: 7 kB of state and its window of 4 kB, with room to spare. An audit loads
 * millions of entries one by one; taken from the heap each time, these would lie between what the audit keeps
 * and tear it apart. A library that needs more gets that from the heap. */
struct arena {
    size_t used;
    alignas(16) uint8_t room[16384];
};

static void *take_near(void *arg, uInt count, uInt size)
{
    struct arena *a = arg;
    const size_t len = ((size_t)count * size + 15) / 16 * 16;
    if (len > sizeof a->room - a->used) {
        return kedge_mem_new(count, size);
    }
    void *ptr = a->room + a->used;
    a->used += len;
    return ptr;
}

static void give_back_near(void *arg, void *ptr)
{
    const struct arena *a = arg;
    const uintptr_t from = (uintptr_t)a->room, at = (uintptr_t)ptr;
    if (at < from || at >= from + sizeof a->room) {
        kedge_mem_free(ptr);
    }
}

/* Exactly len bytes, of exactly this input. */
static int inflate_payload(struct kedge_view packed, uint8_t *out, size_t len)
{
    struct arena arena;
    arena.used = 0;
    z_stream z = {.zalloc = take_near, .zfree = give_back_near, .opaque = &arena};
    z.next_in = packed.ptr;
    z.avail_in = (uInt)packed.len;
    if (inflateInit2(&z, WINDOW_BITS) != Z_OK) {
        return KEDGE_E_NOMEM;
    }
    int err =
        inflateSetDictionary(&z, (const Bytef *)WORDS, sizeof WORDS - 1) == Z_OK ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err) {
        z.next_out = out;
        z.avail_out = (uInt)len;
        int rc = inflate(&z, Z_FINISH);
        err = rc == Z_MEM_ERROR                                           ? KEDGE_E_NOMEM
              : rc == Z_STREAM_END && z.avail_in == 0 && z.avail_out == 0 ? KEDGE_OK
                                                                          : KEDGE_E_CORRUPT;
    }
    (void)inflateEnd(&z);
    return err;
}

static int unpack(struct kedge_view stored, struct kedge_buf *room)
{
    struct kedge_dsse_entry signatures[KEDGE_DSSE_SIGNATURES_MAX];
    struct kedge_reader in = kedge_reader_of(kedge_view_of(stored.ptr + 1, stored.len - 1));
    uint32_t sum = kedge_read_u32(&in);
    if (in.failed || sum != (uint32_t)crc32(0, stored.ptr + 5, (uInt)(stored.len - 5))) {
        return KEDGE_E_CORRUPT;
    }
    uint32_t count = kedge_read_u8(&in);
    if (count == 0 || count > KEDGE_DSSE_SIGNATURES_MAX || stored.len < HEAD + count * SIGNATURE + 2) {
        return KEDGE_E_CORRUPT;
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(signatures[i].keyid.b, kedge_read_bytes(&in, KEDGE_HASH_LEN).ptr, KEDGE_HASH_LEN);
        memcpy(signatures[i].sig.b, kedge_read_bytes(&in, KEDGE_SIGNATURE_LEN).ptr, KEDGE_SIGNATURE_LEN);
    }
    size_t len = kedge_read_u16(&in), at = HEAD + count * SIGNATURE + 2;
    uint8_t *payload = len > 0 ? kedge_mem_new(len, 1) : NULL;
    if (!payload) {
        return len > 0 ? KEDGE_E_NOMEM : KEDGE_E_CORRUPT;
    }
    int err = inflate_payload(kedge_view_of(stored.ptr + at, stored.len - at), payload, len);
    err = err ? err : kedge_dsse_spell(kedge_view_of(payload, len), signatures, count, room);
    kedge_mem_free(payload);
    return err == KEDGE_E_TOO_LONG ? KEDGE_E_CORRUPT : err;
}

int kedge_entry_load(struct kedge_view stored, struct kedge_buf *room, struct kedge_view *ret)
{
    if (stored.len == 0 || stored.ptr[0] > FORM_PACKED) {
        *ret = stored;
        return KEDGE_OK;
    }
    if (stored.len == 1 || stored.len > KEDGE_ENTRY_STORED_MAX) {
        return KEDGE_E_CORRUPT;
    }
    if (stored.ptr[0] == FORM_AS_IS) { /* the only way to store it */
        *ret = kedge_view_of(stored.ptr + 1, stored.len - 1);
        return ret->ptr[0] <= FORM_PACKED ? KEDGE_OK : KEDGE_E_CORRUPT;
    }
    kedge_buf_clear(room);
    int err = unpack(stored, room);
    if (!err) {
        *ret = kedge_buf_view(room);
    }
    return err;
}
