/* Signed statements as DSSE envelopes in one spelling. Kedge's own is taken by comparing fixed bytes, so a
 * ledger has no second envelope of the same signature and its hot path meets no JSON parser. The order of
 * signatures is fixed, too: by key ID, ascending, which also excludes doubles. */
#include "chain/log/dsse.h"

#include <string.h>

#include "chain/log/lines.h"
#include "common/base/text.h"
#include "common/base/try.h"

const char KEDGE_DSSE_IN_TOTO[] = "application/vnd.in-toto+json";

static const char head[] = "{\"payload\":\"";
static const char before_type[] = "\",\"payloadType\":\"";
static const char before_keyid[] = "\",\"signatures\":[{\"keyid\":\"";
static const char before_sig[] = "\",\"sig\":\"";
static const char between[] = "\"},{\"keyid\":\"";
static const char tail[] = "\"}]}";
enum { SIG_BASE64_LEN = 88 };

/* The DSSE pre-authentication encoding: lengths before type and body, so no two pairs of them give the
 * same signed bytes. */
void kedge_dsse_pae(struct kedge_view type, struct kedge_view body, struct kedge_buf *out)
{
    kedge_buf_printf(out, "DSSEv1 %zu ", type.len);
    kedge_buf_put(out, type.ptr, type.len);
    kedge_buf_printf(out, " %zu ", body.len);
    kedge_buf_put(out, body.ptr, body.len);
}

/* Type and body with room for the PAE's numbers. */
static size_t pae_max(struct kedge_view type, struct kedge_view body)
{
    return type.len + body.len + 64;
}

/* The envelope is put together by copying, so nothing that JSON would have to escape may enter it. */
static bool needs_no_escape(struct kedge_view text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') {
            return false;
        }
    }
    return text.len > 0 && text.len <= KEDGE_DSSE_TYPE_MAX;
}

static void put_signature(struct kedge_buf *out, const struct kedge_dsse_entry *entry, bool first)
{
    char keyid[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&entry->keyid, keyid);
    kedge_buf_put_str(out, first ? before_keyid : between);
    kedge_buf_put_str(out, keyid);
    kedge_buf_put_str(out, before_sig);
    kedge_base64_put(out, kedge_view_of(entry->sig.b, sizeof entry->sig.b));
}

/* Bytes of an envelope. */
static size_t envelope_len(size_t type_len, size_t payload_len, uint32_t signatures)
{
    size_t one = KEDGE_HASH_HEX_LEN + sizeof before_sig - 1 + SIG_BASE64_LEN;
    return sizeof head - 1 + sizeof before_type - 1 + type_len + sizeof before_keyid - 1 + sizeof tail - 1
           + signatures * one + (signatures - 1) * (sizeof between - 1) + kedge_base64_len(payload_len);
}

static int put_envelope(struct kedge_view type, struct kedge_view payload,
                        const struct kedge_dsse_entry *entries, uint32_t count, struct kedge_buf *out)
{
    size_t len = envelope_len(type.len, payload.len, count);
    if (payload.len > KEDGE_ENTRY_MAX || len > KEDGE_ENTRY_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    KEDGE_TRY(kedge_buf_reserve(out, len));
    kedge_buf_put_str(out, head);
    kedge_base64_put(out, payload);
    kedge_buf_put_str(out, before_type);
    kedge_buf_put(out, type.ptr, type.len);
    for (uint32_t i = 0; i < count; i++) {
        put_signature(out, &entries[i], i == 0);
    }
    kedge_buf_put_str(out, tail);
    return out->err;
}

int kedge_dsse_spell(struct kedge_view payload, const struct kedge_dsse_entry *entries, uint32_t count,
                     struct kedge_buf *ret_envelope)
{
    return put_envelope(kedge_view_str(KEDGE_DSSE_IN_TOTO), payload, entries, count, ret_envelope);
}

static int sign_pae(struct kedge_view type, struct kedge_view payload, const struct kedge_key_pair *pair,
                    struct kedge_dsse_entry *ret)
{
    struct kedge_buf pae KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&pae, pae_max(type, payload));
    kedge_dsse_pae(type, payload, &pae);
    if (pae.err) {
        return pae.err;
    }
    kedge_sign(kedge_buf_view(&pae), pair, &ret->sig);
    kedge_public_key_hash(&pair->public, &ret->keyid);
    return KEDGE_OK;
}

int kedge_dsse_build(const char *type_text, struct kedge_view payload, const struct kedge_key_pair *pair,
                     struct kedge_buf *ret_envelope)
{
    struct kedge_view type = kedge_view_str(type_text);
    struct kedge_dsse_entry entry;
    if (!needs_no_escape(type) || payload.len == 0) {
        return KEDGE_E_ARG;
    }
    if (payload.len > KEDGE_ENTRY_MAX || envelope_len(type.len, payload.len, 1) > KEDGE_ENTRY_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    int err = sign_pae(type, payload, pair, &entry);
    return err ? err : put_envelope(type, payload, &entry, 1, ret_envelope);
}

/* The first len bytes; the caller knows that they are there. */
static struct kedge_view take(struct kedge_view *rest, size_t len)
{
    KEDGE_ASSERT(rest->len >= len);
    struct kedge_view v = kedge_view_of(rest->ptr, len);
    *rest = kedge_view_of(rest->ptr + len, rest->len - len);
    return v;
}

static int decode_signature(struct kedge_view base64, struct kedge_signature *ret_sig)
{
    if (base64.len != SIG_BASE64_LEN) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_buf raw KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&raw, SIG_BASE64_LEN);
    KEDGE_TRY(kedge_base64_decode(base64, false, &raw));
    if (raw.len != KEDGE_SIGNATURE_LEN) {
        return KEDGE_E_FORMAT;
    }
    memcpy(ret_sig->b, raw.ptr, sizeof ret_sig->b);
    return KEDGE_OK;
}

/* After the payload type: keyid, signature, and so on to the end. Ascending by key id and never equal:
 * one signer cannot stand twice, and one set of signatures has one spelling. */
static int decode_signatures(struct kedge_view *rest, struct kedge_dsse_entry *entries, uint32_t max,
                             uint32_t *ret_count)
{
    uint32_t count = 0;
    do {
        struct kedge_dsse_entry *entry = &entries[count];
        if (count == max || !kedgei_take_prefix(rest, count ? between : before_keyid)
            || rest->len < KEDGE_HASH_HEX_LEN
            || kedge_hash_from_hex(take(rest, KEDGE_HASH_HEX_LEN), &entry->keyid) != KEDGE_OK
            || !kedgei_take_prefix(rest, before_sig) || rest->len < SIG_BASE64_LEN
            || (count && memcmp(entry[-1].keyid.b, entry->keyid.b, KEDGE_HASH_LEN) >= 0)) {
            return KEDGE_E_FORMAT;
        }
        KEDGE_TRY(decode_signature(take(rest, SIG_BASE64_LEN), &entry->sig));
        count++;
    } while (!kedge_view_eq(*rest, kedge_view_str(tail)));
    *ret_count = count;
    return KEDGE_OK;
}

/* Kedge's own spelling, byte for byte. Any other JSON, even of the same meaning, is no envelope here: it
 * would be a second leaf hash for one statement. */
static int decode(struct kedge_view envelope, struct kedge_buf *ret_payload, struct kedge_dsse_entry *entries,
                  uint32_t max, uint32_t *ret_count)
{
    if (envelope.len > KEDGE_ENTRY_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    struct kedge_view rest = envelope;
    struct kedge_view payload;
    if (!kedgei_take_prefix(&rest, head) || !kedgei_cut(&rest, '"', &payload) || payload.len == 0
        || !kedgei_take_prefix(&rest, before_type + 1) || !kedgei_take_prefix(&rest, KEDGE_DSSE_IN_TOTO)) {
        return KEDGE_E_FORMAT;
    }
    int err = decode_signatures(&rest, entries, max, ret_count);
    return err ? err : kedge_base64_decode(payload, false, ret_payload);
}

int kedge_dsse_decode(struct kedge_view envelope, struct kedge_buf *ret_payload,
                      struct kedge_dsse_entry *ret_entry)
{
    struct kedge_dsse_entry entry;
    uint32_t count;
    KEDGE_TRY(decode(envelope, ret_payload, &entry, 1, &count));
    *ret_entry = entry;
    return KEDGE_OK;
}

int kedge_dsse_decode_all(struct kedge_view envelope, struct kedge_buf *ret_payload,
                          struct kedge_dsse_entry ret_entries[KEDGE_DSSE_SIGNATURES_MAX], uint32_t *ret_count)
{
    struct kedge_dsse_entry entries[KEDGE_DSSE_SIGNATURES_MAX];
    uint32_t count;
    KEDGE_TRY(decode(envelope, ret_payload, entries, KEDGE_DSSE_SIGNATURES_MAX, &count));
    memcpy(ret_entries, entries, count * sizeof entries[0]);
    *ret_count = count;
    return KEDGE_OK;
}

/* The new signature is put in its place by key id; the payload is taken over as it was signed. */
int kedge_dsse_add(struct kedge_view envelope, const struct kedge_key_pair *pair,
                   struct kedge_buf *ret_envelope)
{
    struct kedge_dsse_entry entries[KEDGE_DSSE_SIGNATURES_MAX], own;
    struct kedge_view type = kedge_view_str(KEDGE_DSSE_IN_TOTO);
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
    uint32_t count, at = 0;
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_dsse_decode_all(envelope, &payload, entries, &count));
    KEDGE_TRY(sign_pae(type, kedge_buf_view(&payload), pair, &own));
    while (at < count && memcmp(entries[at].keyid.b, own.keyid.b, KEDGE_HASH_LEN) < 0) {
        at++;
    }
    if (at < count && kedge_hash_eq(&entries[at].keyid, &own.keyid)) {
        return KEDGE_E_EXISTS;
    }
    if (count == KEDGE_DSSE_SIGNATURES_MAX) {
        return KEDGE_E_FULL;
    }
    memmove(&entries[at + 1], &entries[at], (count - at) * sizeof entries[0]);
    entries[at] = own;
    return put_envelope(type, kedge_buf_view(&payload), entries, count + 1, ret_envelope);
}

static int verify_pae(struct kedge_view type, struct kedge_view payload, const struct kedge_signature *sig,
                      const struct kedge_public_key *key)
{
    struct kedge_buf pae KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&pae, pae_max(type, payload));
    if (kedge_buf_reserve(&pae, pae_max(type, payload))
        == KEDGE_OK) { /* in one piece: no growing by copies */
        kedge_dsse_pae(type, payload, &pae);
    }
    return pae.err ? pae.err : kedge_verify(kedge_buf_view(&pae), sig, key);
}

/* The key id is compared first, so a signature is never tried under a key that it does not name. */
int kedge_dsse_entry_verify(const struct kedge_dsse_entry *entry, struct kedge_view payload,
                            const struct kedge_public_key *key)
{
    struct kedge_hash keyid;
    kedge_public_key_hash(key, &keyid);
    if (!kedge_hash_eq(&keyid, &entry->keyid)) {
        return KEDGE_E_VERIFY;
    }
    return verify_pae(kedge_view_str(KEDGE_DSSE_IN_TOTO), payload, &entry->sig, key);
}
