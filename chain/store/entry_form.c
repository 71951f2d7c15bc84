/* Statements without what they all say.
 *
 * Two thirds of an envelope's bytes are the same in every statement. A packed entry begins with a byte
 * that says its form; it is followed by a checksum, the signatures, and the payload deflated with a
 * dictionary of those words. Each entry is packed alone, so that a damaged bit costs one entry, and the
 * stored form has one inverse: what is loaded is byte for byte the entry that was hashed. */
#include "chain/store/entry_form.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

#include "chain/log/dsse.h"
#include "chain/store/checkpoint_form.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum {
    FORM_AS_IS = 0,
    FORM_PACKED = 1,
    FORM_APART = 2,
    FORM_CHECKPOINT = 3,
    FORM_LAST = FORM_CHECKPOINT,
    SIGNATURE = KEDGE_HASH_LEN + KEDGE_SIGNATURE_LEN,
    WINDOW_BITS = -12, /* without a header; the words and most statements are within 4 kB */
    MEMORY_LEVEL = 5,
    SUMMED = 1 + 4,    /* form, checksum */
    HEAD = SUMMED + 1, /* and the number of signatures */
    DIGESTS_MAX = 31,  /* one byte each, below those of JSON without white space */
    SALT = 32,         /* before a tenant's checkpoint; its first bit is 1 */
    CHECKPOINT = SUMMED + SALT + KEDGEI_CHECKPOINT_SHORT + 8,
    LEVEL = 9, /* of zlib: a statement is short, and 16 microseconds are all that it takes */
};

/* What statements of a round say, as they say it, the most frequent at the end: near matches cost less. D is
 * the place of a digest: nothing in the form that leaves digests where they are, its byte in the other. */
/* clang-format off */
#define WORDS(D) \
    "https://kedge.dev/release/v1\",\"predicate\":{\"job\":\"\",\"file\":\"-g0.safetensors\"}}" \
    "https://kedge.dev/group-assigned/v1\",\"predicate\":{\"tenant\":\"org-a\",\"site\":\"site-1" \
    "\",\"job\":\"\",\"group\":1,\"how\":\"cold-start\",\"similarity\":\"0.5\",\"update\":\"choi" \
    "ce\"nearest\"migration\"recluster\"\"compression\":{\"kind\":\",\"personal\":{\"control\":{" \
    "\"energy_joules\":\"measured\"modelled\"charge\":\"\"variate\":\"stepped\":\"\",\"state_bef" \
    "ore\":\"\",\"state_after\":\"\",\"drift\":\"\",\"drifted\":" \
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"model\",\"digest\":" \
    "{\"sha256\":\"" D("\1") "\"}}],\"predicateType\":\"https://kedge.dev/step/v1\",\"predicate\":{" \
    "\"job\":\"\",\"round\":10,\"rule\":\"identity/v1\",\"eta\":\"0\",\"groups\":[{\"group\":0," \
    "\"before\":\"" D("\2") "\",\"aggregate\":\"" D("\1") "\",\"after\":\"" D("\1") \
    "\",\"direction\":\"0000000000000000000000000000000000000000000000000000000000000000\"},{\"g" \
    "roup\":1,\"before\":\"\"}],\"time_ms\":17}}" \
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"model\",\"digest\":" \
    "{\"sha256\":\"" D("\1") "\"}}],\"predicateType\":\"https://kedge.dev/aggregate/v1\",\"predicate" \
    "\":{\"job\":\"\",\"round\":10,\"group\":0,\"rule\":\"fedavg/v1\",\"scale\":20,\"weight_sum" \
    "\":\"480\",\"count\":2,\"base\":\"" D("\2") "\",\"tenants\":[{\"id\":\"" D("\3") \
    "\",\"accepted\":2,\"weight_sum\":\"\",\"refused\":0,\"list\":\"" D("\4") "\"},{\"id\":\"" D("\5") \
    "\",\"accepted\":1,\"weight_sum\":\"\",\"refused\":0,\"list\":\"" D("\6") "\"}]}}" \
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"spec\",\"digest\":{" \
    "\"sha256\":\"" D("\1") "\"}}],\"predicateType\":\"https://kedge.dev/round-opened/v1\",\"predica" \
    "te\":{\"job\":\"\",\"round\":10,\"round_kind\":\"pretrain\"train\",\"seed\":\"1\",\"main_si" \
    "ze\":10,\"main_root\":\"" D("\2") "\",\"tenants\":[{\"id\":\"" D("\3") "\",\"candidates\":2,\"sele" \
    "cted\":2,\"list\":\"" D("\4") "\"},{\"id\":\"" D("\5") "\",\"candidates\":1,\"selected\":1,\"list" \
    "\":\"" D("\6") "\"}],\"time_ms\":17}}" \
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"model\",\"digest\":" \
    "{\"sha256\":\"" D("\1") "\"}}],\"predicateType\":\"https://kedge.dev/evaluation/v1\",\"predicat" \
    "e\":{\"tenant\":\"org-a\",\"site\":\"site-1\",\"job\":\"\",\"round\":10,\"group\":0,\"sampl" \
    "es\":60,\"correct\":60,\"loss\":\"0.0\"}}" \
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"update\",\"digest\"" \
    ":{\"sha256\":\"" D("\1") "\"}}],\"predicateType\":\"https://kedge.dev/update/v1\",\"predicate\"" \
    ":{\"tenant\":\"org-a\",\"site\":\"site-1\",\"job\":\"\",\"round\":10,\"group\":0,\"update_k" \
    "ind\":\"train\",\"base\":\"" D("\2") "\",\"samples\":240,\"steps\":24,\"batch\":10,\"learning_r" \
    "ate\":\"0.1\",\"energy_quality\":\"unknown\",\"seconds\":\"0.00\",\"engine\":\"kedge-train " \
    "0.1.0 cpu openblas\",\"energy_how\":\"none; a part is unknown\"}}"
/* clang-format on */
#define NOTHING(byte) ""
#define THE_BYTE(byte) byte
static const char words_packed[] = WORDS(NOTHING);
static const char words_apart[] = WORDS(THE_BYTE);

struct kedge_view kedge_entry_words(enum kedge_entry_forms forms)
{
    return forms == KEDGE_FORMS_SHORT ? kedge_view_of(words_apart, sizeof words_apart - 1)
                                      : kedge_view_of(words_packed, sizeof words_packed - 1);
}

/* zlib's memory comes from common/base/mem.h, so the tests can make every allocation fail. */
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

/* Kept for a whole commit, so that the 40 kB that zlib needs for deflating are set up once. */
struct kedge_entry_packer {
    enum kedge_entry_forms forms;
    z_stream z;
    struct kedge_buf payload;
    struct kedge_buf text;                  /* the payload with a byte for each digest */
    struct kedge_view digests[DIGESTS_MAX]; /* their hexadecimal digits, in the payload */
    size_t digest_count;
};

struct kedge_entry_packer *kedge_entry_packer_new(enum kedge_entry_forms forms)
{
    struct kedge_entry_packer *p = kedge_mem_new(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    p->z.zalloc = take;
    p->z.zfree = give_back;
    p->forms = forms;
    if (deflateInit2(&p->z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        kedge_mem_free(p);
        return NULL;
    }
    kedge_buf_init(&p->payload, KEDGE_ENTRY_MAX);
    kedge_buf_init(&p->text, KEDGE_ENTRY_MAX);
    return p;
}

void kedge_entry_packer_free(struct kedge_entry_packer *p)
{
    if (p) {
        (void)deflateEnd(&p->z);
        kedge_buf_deinit(&p->payload);
        kedge_buf_deinit(&p->text);
        kedge_mem_free(p);
    }
}

/* The place of a digest among those seen, which becomes one of them; DIGESTS_MAX: there is no place. */
static size_t place_of(struct kedge_entry_packer *p, struct kedge_view hex)
{
    for (size_t i = 0; i < p->digest_count; i++) {
        if (kedge_view_eq(p->digests[i], hex)) {
            return i;
        }
    }
    if (p->digest_count < DIGESTS_MAX) {
        p->digests[p->digest_count++] = hex;
        return p->digest_count - 1;
    }
    return DIGESTS_MAX;
}

/* A digest is 64 hexadecimal digits between quotation marks. Zeros are none: the words have them. */
static bool is_digest(struct kedge_view rest)
{
    size_t others = 0;
    if (rest.len < KEDGE_HASH_HEX_LEN + 2 || rest.ptr[0] != '"' || rest.ptr[KEDGE_HASH_HEX_LEN + 1] != '"') {
        return false;
    }
    for (size_t i = 1; i <= KEDGE_HASH_HEX_LEN; i++) {
        uint8_t c = rest.ptr[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
            return false;
        }
        others += c != '0';
    }
    return others > 0;
}

/* Deflated, a hexadecimal digit takes five bits and says four. So each digest becomes a byte, which says
 * which of them it is, and they stand before the stream, each once, as the 32 bytes that they are. False:
 * the payload has such bytes of its own, so it is no statement. A statement is JSON without control
 * characters, so bytes up to DIGESTS_MAX are free to stand for digests. */
static bool set_digests_apart(struct kedge_entry_packer *p)
{
    struct kedge_view rest = kedge_buf_view(&p->payload);
    p->digest_count = 0;
    kedge_buf_clear(&p->text);
    while (rest.len > 0) {
        size_t step = 1, place = is_digest(rest)
                                     ? place_of(p, kedge_view_of(rest.ptr + 1, KEDGE_HASH_HEX_LEN))
                                     : DIGESTS_MAX;
        if (rest.ptr[0] <= DIGESTS_MAX) {
            return false;
        }
        kedge_buf_put_u8(&p->text, rest.ptr[0]);
        if (place < DIGESTS_MAX) {
            kedge_buf_put_u8(&p->text, (uint8_t)(1 + place));
            step = 1 + KEDGE_HASH_HEX_LEN; /* the mark after it may be the one before the next */
        }
        rest = kedge_view_of(rest.ptr + step, rest.len - step);
    }
    return p->text.err == KEDGE_OK;
}

/* False: it does not become shorter. `most` is the length of the entry as it is: a form that is not
 * shorter is not used, so no stored record is longer than the entry plus its form byte. */
static bool deflate_text(struct kedge_entry_packer *p, struct kedge_view text, size_t most,
                         struct kedge_buf *out)
{
    struct kedge_view words = kedge_entry_words(p->forms);
    if (out->len >= most || deflateReset(&p->z) != Z_OK
        || deflateSetDictionary(&p->z, words.ptr, (uInt)words.len) != Z_OK
        || kedge_buf_reserve(out, most - out->len) != KEDGE_OK) {
        return false;
    }
    p->z.next_in = text.ptr;
    p->z.avail_in = (uInt)text.len;
    p->z.next_out = out->ptr + out->len;
    p->z.avail_out = (uInt)(most - out->len);
    if (deflate(&p->z, Z_FINISH) != Z_STREAM_END) {
        return false;
    }
    out->len = most - p->z.avail_out;
    return true;
}

static void begin_form(struct kedge_buf *out, uint8_t form)
{
    kedge_buf_put_u8(out, form);
    kedge_buf_put_u32(out, 0);
}

/* Some bits of a deflated stream change nothing in what comes out (padding, unused codes). Without a sum
 * a flip there would pass unnoticed, and fsck promises to find every live bit. */
static void put_sum(struct kedge_buf *out)
{
    uint32_t sum = (uint32_t)crc32(0, out->ptr + SUMMED, (uInt)(out->len - SUMMED));
    for (unsigned i = 0; i < 4; i++) {
        out->ptr[1 + i] = (uint8_t)(sum >> (24 - 8 * i));
    }
}

static bool put_digests(const struct kedge_entry_packer *p, struct kedge_buf *out)
{
    kedge_buf_put_u8(out, (uint8_t)p->digest_count);
    for (size_t i = 0; i < p->digest_count; i++) {
        uint8_t digest[KEDGE_HASH_LEN];
        if (kedge_hex_decode(p->digests[i], digest, sizeof digest) != KEDGE_OK) {
            return false;
        }
        kedge_buf_put(out, digest, sizeof digest);
    }
    return true;
}

/* False: it is no envelope, or would not become shorter. */
static bool pack_envelope(struct kedge_entry_packer *p, struct kedge_view entry, struct kedge_buf *out)
{
    struct kedge_dsse_entry signatures[KEDGE_DSSE_SIGNATURES_MAX];
    const bool apart = p->forms == KEDGE_FORMS_SHORT;
    uint32_t count;
    kedge_buf_clear(&p->payload);
    if (kedge_dsse_decode_all(entry, &p->payload, signatures, &count) != KEDGE_OK
        || (apart && !set_digests_apart(p))) {
        return false;
    }
    begin_form(out, apart ? FORM_APART : FORM_PACKED);
    kedge_buf_put_u8(out, (uint8_t)count);
    for (uint32_t i = 0; i < count; i++) {
        kedge_buf_put(out, signatures[i].keyid.b, KEDGE_HASH_LEN);
        kedge_buf_put(out, signatures[i].sig.b, KEDGE_SIGNATURE_LEN);
    }
    kedge_buf_put_u16(out, (uint16_t)p->payload.len);
    if (apart && !put_digests(p, out)) {
        return false;
    }
    if (out->err || !deflate_text(p, kedge_buf_view(apart ? &p->text : &p->payload), entry.len, out)) {
        return false;
    }
    put_sum(out);
    return true;
}

/* False: it is no tenant's checkpoint in the spelling of one. Root, key and signature are what cannot be
 * derived; text, base64 and key name are spelled again. The salt keeps its first bit, which tells such an
 * entry from an envelope in the main chain. */
static bool pack_checkpoint(struct kedge_view entry, struct kedge_buf *out)
{
    uint8_t parts[KEDGEI_CHECKPOINT_SHORT];
    struct kedge_checkpoint c;
    if (entry.len <= SALT || !(entry.ptr[0] & 0x80)
        || !kedgei_checkpoint_shorten(kedge_view_of(entry.ptr + SALT, entry.len - SALT), parts, &c)) {
        return false;
    }
    begin_form(out, FORM_CHECKPOINT);
    kedge_buf_put(out, entry.ptr, SALT);
    kedge_buf_put(out, parts, sizeof parts);
    kedge_buf_put_u64(out, c.size);
    kedge_buf_put(out, c.origin.ptr, c.origin.len);
    if (out->err) {
        return false;
    }
    put_sum(out);
    return true;
}

static bool pack(struct kedge_entry_packer *p, struct kedge_view entry, struct kedge_buf *out)
{
    if (entry.len > 0 && entry.ptr[0] == '{') {
        return pack_envelope(p, entry, out);
    }
    return p->forms == KEDGE_FORMS_SHORT && pack_checkpoint(entry, out);
}

/* An entry whose own first byte could be taken for a form gets the form byte 0 before it; all other
 * entries that cannot be packed are stored unchanged. So every entry has exactly one "as it is" spelling,
 * which kedge_entry_load demands. */
int kedge_entry_store(struct kedge_entry_packer *packer, struct kedge_view entry, struct kedge_buf *out)
{
    kedge_buf_clear(out);
    if (packer && pack(packer, entry, out)) {
        return KEDGE_OK;
    }
    kedge_buf_clear(out);
    if (entry.len > 0 && entry.ptr[0] <= FORM_LAST) {
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

/* All of this input, into out, which has room for *len bytes; *len: how many came. The stream must end
 * with the input and give no more than the payload's stated length: a bomb stops at `len` bytes, and
 * bytes after the stream are damage. */
static int inflate_text(enum kedge_entry_forms forms, struct kedge_view packed, uint8_t *out, size_t *len)
{
    struct kedge_view words = kedge_entry_words(forms);
    struct arena arena;
    arena.used = 0;
    z_stream z = {.zalloc = take_near, .zfree = give_back_near, .opaque = &arena};
    z.next_in = packed.ptr;
    z.avail_in = (uInt)packed.len;
    if (inflateInit2(&z, WINDOW_BITS) != Z_OK) {
        return KEDGE_E_NOMEM;
    }
    int err = inflateSetDictionary(&z, words.ptr, (uInt)words.len) == Z_OK ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err) {
        z.next_out = out;
        z.avail_out = (uInt)*len;
        int rc = inflate(&z, Z_FINISH);
        err = rc == Z_MEM_ERROR                       ? KEDGE_E_NOMEM
              : rc == Z_STREAM_END && z.avail_in == 0 ? KEDGE_OK
                                                      : KEDGE_E_CORRUPT;
        *len -= z.avail_out;
    }
    (void)inflateEnd(&z);
    return err;
}

/* The payload, exactly len bytes of it, of a text in which bytes stand for digests. Every write is
 * bounded by the stated length first, because the text comes from a file that may be damaged: each byte
 * can become 64. */
static int put_digests_back(struct kedge_view text, struct kedge_view digests, uint8_t *out, size_t len)
{
    size_t at = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        bool is_one = c <= DIGESTS_MAX;
        if ((is_one && (c == 0 || c > digests.len / KEDGE_HASH_LEN))
            || len - at < (is_one ? KEDGE_HASH_HEX_LEN : 1)) {
            return KEDGE_E_CORRUPT;
        }
        if (is_one) {
            char hex[KEDGE_HASH_HEX_LEN + 1];
            kedge_hex_encode(digests.ptr + (size_t)KEDGE_HASH_LEN * (c - 1u), KEDGE_HASH_LEN, hex);
            memcpy(out + at, hex, KEDGE_HASH_HEX_LEN);
            at += KEDGE_HASH_HEX_LEN;
        } else {
            out[at++] = c;
        }
    }
    return at == len ? KEDGE_OK : KEDGE_E_CORRUPT;
}

/* What follows the length of the payload, into out, which has room for twice that length. The text is
 * inflated into the second half of the room and expanded into the first; it is never longer than the
 * payload, so the halves do not meet. */
static int unpack_payload(bool apart, struct kedge_view rest, uint8_t *out, size_t len)
{
    size_t text_len = len;
    if (!apart) {
        int err = inflate_text(KEDGE_FORMS_PACKED, rest, out, &text_len);
        return !err && text_len != len ? KEDGE_E_CORRUPT : err;
    }
    struct kedge_reader in = kedge_reader_of(rest);
    struct kedge_view digests = kedge_read_bytes(&in, (size_t)KEDGE_HASH_LEN * kedge_read_u8(&in));
    if (in.failed) {
        return KEDGE_E_CORRUPT;
    }
    int err = inflate_text(KEDGE_FORMS_SHORT, in.rest, out + len, &text_len);
    return err ? err : put_digests_back(kedge_view_of(out + len, text_len), digests, out, len);
}

/* The envelope is spelled again in its one spelling (chain/log/dsse.h). Only envelopes that are in that
 * spelling were packed, so these are the bytes that were hashed. */
static int unpack_envelope(struct kedge_view stored, struct kedge_buf *room)
{
    struct kedge_dsse_entry signatures[KEDGE_DSSE_SIGNATURES_MAX];
    struct kedge_reader in = kedge_reader_of(kedge_view_of(stored.ptr + SUMMED, stored.len - SUMMED));
    uint32_t count = kedge_read_u8(&in);
    if (count == 0 || count > KEDGE_DSSE_SIGNATURES_MAX || stored.len < HEAD + count * SIGNATURE + 2) {
        return KEDGE_E_CORRUPT;
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(signatures[i].keyid.b, kedge_read_bytes(&in, KEDGE_HASH_LEN).ptr, KEDGE_HASH_LEN);
        memcpy(signatures[i].sig.b, kedge_read_bytes(&in, KEDGE_SIGNATURE_LEN).ptr, KEDGE_SIGNATURE_LEN);
    }
    size_t len = kedge_read_u16(&in);
    uint8_t *payload = len > 0 ? kedge_mem_new(2 * len, 1) : NULL;
    if (!payload) {
        return len > 0 ? KEDGE_E_NOMEM : KEDGE_E_CORRUPT;
    }
    int err = unpack_payload(stored.ptr[0] == FORM_APART, in.rest, payload, len);
    if (!err) {
        err = kedge_dsse_spell(kedge_view_of(payload, len), signatures, count, room);
    }
    kedge_mem_free(payload);
    return err == KEDGE_E_TOO_LONG ? KEDGE_E_CORRUPT : err;
}

static int unpack_checkpoint(struct kedge_view stored, struct kedge_buf *room)
{
    if (stored.len <= CHECKPOINT || !(stored.ptr[SUMMED] & 0x80)) {
        return KEDGE_E_CORRUPT;
    }
    const uint8_t *parts = stored.ptr + SUMMED + SALT;
    struct kedge_view origin = kedge_view_of(stored.ptr + CHECKPOINT, stored.len - CHECKPOINT);
    kedge_buf_put(room, stored.ptr + SUMMED, SALT);
    int err = kedgei_checkpoint_spell(origin, kedge_load_be64(parts + KEDGEI_CHECKPOINT_SHORT), parts, room);
    return err && err != KEDGE_E_NOMEM ? KEDGE_E_CORRUPT : err;
}

int kedge_entry_load(struct kedge_view stored, struct kedge_buf *room, struct kedge_view *ret)
{
    if (stored.len == 0 || stored.ptr[0] > FORM_LAST) {
        *ret = stored;
        return KEDGE_OK;
    }
    if (stored.len == 1 || stored.len > KEDGE_ENTRY_STORED_MAX) {
        return KEDGE_E_CORRUPT;
    }
    if (stored.ptr[0] == FORM_AS_IS) { /* the only way to store it */
        *ret = kedge_view_of(stored.ptr + 1, stored.len - 1);
        return ret->ptr[0] <= FORM_LAST ? KEDGE_OK : KEDGE_E_CORRUPT;
    }
    struct kedge_reader in = kedge_reader_of(kedge_view_of(stored.ptr + 1, stored.len - 1));
    uint32_t sum = kedge_read_u32(&in);
    if (in.failed || sum != (uint32_t)crc32(0, in.rest.ptr, (uInt)in.rest.len)) {
        return KEDGE_E_CORRUPT;
    }
    kedge_buf_clear(room);
    KEDGE_TRY(stored.ptr[0] == FORM_CHECKPOINT ? unpack_checkpoint(stored, room)
                                               : unpack_envelope(stored, room));
    *ret = kedge_buf_view(room);
    return KEDGE_OK;
}
