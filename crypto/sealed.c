/* The whole head is authenticated with the seed, cost and public key included: otherwise a thief could
 * lower the cost of a guess, or put another public key beside a seed that he cannot read. The cost is
 * bounded when the text is decoded, before memory is taken for it: a file could demand 4 TiB.
 *
 * One spelling is accepted, with fixed line lengths, so that a sealed key has one text and the parser
 * nothing to be lenient about. */
#include "crypto/sealed.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/try.h"

enum {
    HEAD_LEN = 4 + 4 + 4 + KEDGE_SEAL_SALT_LEN + KEDGE_SEAL_NONCE_LEN + KEDGE_KEY_LEN,
    BYTES = HEAD_LEN + KEDGE_SEAL_BOX_LEN,
    LINE_BYTES = 48
};

static const char begin_line[] = "-----BEGIN KEDGE SEALED PRIVATE KEY-----\n";
static const char end_line[] = "-----END KEDGE SEALED PRIVATE KEY-----\n";
static const uint8_t version[4] = {1, 1, 1, 0};

const struct kedge_seal_cost kedge_seal_moderate = {3, 256 * 1024};
const struct kedge_seal_cost kedge_seal_small = {2, 64 * 1024};

/* Asked when a file is decoded and again before Argon2id runs, because a struct may come from elsewhere. */
static bool is_bounded(const struct kedge_seal_cost *cost)
{
    return cost->passes >= 1 && cost->passes <= KEDGE_SEAL_PASSES_MAX
           && cost->memory_kib >= KEDGE_SEAL_MEMORY_MIN_KIB && cost->memory_kib <= KEDGE_SEAL_MEMORY_MAX_KIB;
}

static bool begins(struct kedge_view text, const char *line)
{
    size_t len = strlen(line);
    return text.len >= len && memcmp(text.ptr, line, len) == 0;
}

bool kedge_sealed_is(struct kedge_view text)
{
    return begins(text, begin_line);
}

static void put_be32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (24 - 8 * i));
    }
}

/* Everything before the box: what is authenticated besides. */
static void put_head(const struct kedge_sealed *s, uint8_t head[HEAD_LEN])
{
    uint8_t *p = head;
    memcpy(p, version, sizeof version);
    put_be32(p + 4, s->cost.passes);
    put_be32(p + 8, s->cost.memory_kib);
    p += 12;
    memcpy(p, s->salt, sizeof s->salt);
    p += sizeof s->salt;
    memcpy(p, s->nonce, sizeof s->nonce);
    p += sizeof s->nonce;
    memcpy(p, s->public_key.b, sizeof s->public_key.b);
}

void kedge_sealed_encode(const struct kedge_sealed *sealed, struct kedge_buf *out)
{
    uint8_t bytes[BYTES];
    put_head(sealed, bytes);
    memcpy(bytes + HEAD_LEN, sealed->box, sizeof sealed->box);
    kedge_buf_put_str(out, begin_line);
    for (size_t at = 0; at < BYTES; at += LINE_BYTES) {
        size_t n = BYTES - at < LINE_BYTES ? BYTES - at : LINE_BYTES;
        kedge_base64_put(out, kedge_view_of(bytes + at, n));
        kedge_buf_put_u8(out, '\n');
    }
    kedge_buf_put_str(out, end_line);
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The bytes between the two lines. */
static int decode_text(struct kedge_view text, uint8_t bytes[BYTES])
{
    struct kedge_buf raw KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&raw, BYTES);
    if (!kedge_sealed_is(text)) {
        return KEDGE_E_KEY;
    }
    struct kedge_view rest = kedge_view_of(text.ptr + strlen(begin_line), text.len - strlen(begin_line));
    for (size_t at = 0; at < BYTES; at += LINE_BYTES) {
        size_t len = kedge_base64_len(BYTES - at < LINE_BYTES ? BYTES - at : LINE_BYTES);
        if (rest.len <= len || rest.ptr[len] != '\n') {
            return KEDGE_E_KEY;
        }
        int err = kedge_base64_decode(kedge_view_of(rest.ptr, len), false, &raw);
        if (err) {
            return err == KEDGE_E_NOMEM ? err : KEDGE_E_KEY;
        }
        rest = kedge_view_of(rest.ptr + len + 1, rest.len - len - 1);
    }
    if (raw.len != BYTES || rest.len != strlen(end_line) || !begins(rest, end_line)) {
        return KEDGE_E_KEY;
    }
    memcpy(bytes, raw.ptr, BYTES);
    return KEDGE_OK;
}

int kedge_sealed_decode(struct kedge_view text, struct kedge_sealed *ret)
{
    uint8_t bytes[BYTES];
    const uint8_t *p = bytes + sizeof version;
    struct kedge_sealed s;
    KEDGE_TRY(decode_text(text, bytes));
    s.cost = (struct kedge_seal_cost){be32(p), be32(p + 4)};
    p += 8;
    memcpy(s.salt, p, sizeof s.salt);
    p += sizeof s.salt;
    memcpy(s.nonce, p, sizeof s.nonce);
    p += sizeof s.nonce;
    memcpy(s.public_key.b, p, sizeof s.public_key.b);
    p += sizeof s.public_key.b;
    memcpy(s.box, p, sizeof s.box);
    if (memcmp(bytes, version, sizeof version) != 0 || !is_bounded(&s.cost)
        || !kedge_public_key_is_valid(&s.public_key)) {
        return KEDGE_E_KEY;
    }
    *ret = s;
    return KEDGE_OK;
}

/* Argon2id (RFC 9106) from libsodium. It fails only when the memory cannot be had, which is told as such:
 * a person must not be asked for another passphrase then. */
static int derive(const struct kedge_sealed *s, struct kedge_view passphrase,
                  uint8_t key[crypto_aead_xchacha20poly1305_ietf_KEYBYTES])
{
    static_assert(KEDGE_SEAL_SALT_LEN == crypto_pwhash_SALTBYTES, "Argon2id's salt");
    if (passphrase.len < 1 || passphrase.len > KEDGE_PASSPHRASE_MAX || !is_bounded(&s->cost)) {
        return KEDGE_E_ARG;
    }
    return crypto_pwhash(key, crypto_aead_xchacha20poly1305_ietf_KEYBYTES, (const char *)passphrase.ptr,
                         passphrase.len, s->salt, s->cost.passes, (size_t)s->cost.memory_kib * 1024,
                         crypto_pwhash_ALG_ARGON2ID13)
                   == 0
               ? KEDGE_OK
               : KEDGE_E_NOMEM;
}

/* Salt and nonce are new each time, so the same key and passphrase never give the same file. */
int kedge_seal(const struct kedge_key_pair *pair, struct kedge_view passphrase,
               const struct kedge_seal_cost *cost, struct kedge_sealed *ret)
{
    static_assert(KEDGE_SEAL_NONCE_LEN == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, "nonce");
    static_assert(KEDGE_SEAL_BOX_LEN == KEDGE_KEY_LEN + crypto_aead_xchacha20poly1305_ietf_ABYTES, "box");
    uint8_t key[crypto_aead_xchacha20poly1305_ietf_KEYBYTES], head[HEAD_LEN];
    struct kedge_sealed s = {.cost = *cost, .public_key = pair->public};
    struct kedge_seed seed;
    randombytes_buf(s.salt, sizeof s.salt);
    randombytes_buf(s.nonce, sizeof s.nonce);
    int err = derive(&s, passphrase, key);
    if (!err) {
        put_head(&s, head);
        kedge_key_seed(pair, &seed);
        (void)crypto_aead_xchacha20poly1305_ietf_encrypt(s.box, NULL, seed.b, sizeof seed.b, head,
                                                         sizeof head, NULL, s.nonce, key);
        kedge_wipe(&seed, sizeof seed);
        *ret = s;
    }
    kedge_wipe(key, sizeof key);
    return err;
}

/* That the box opens is not enough: the seed must give the public key which the head names. */
int kedge_unseal(const struct kedge_sealed *sealed, struct kedge_view passphrase, struct kedge_key_pair *ret)
{
    uint8_t key[crypto_aead_xchacha20poly1305_ietf_KEYBYTES], head[HEAD_LEN];
    struct kedge_key_pair pair;
    struct kedge_seed seed;
    int err = derive(sealed, passphrase, key);
    if (!err) {
        put_head(sealed, head);
        err = crypto_aead_xchacha20poly1305_ietf_decrypt(seed.b, NULL, NULL, sealed->box, sizeof sealed->box,
                                                         head, sizeof head, sealed->nonce, key)
                      == 0
                  ? KEDGE_OK
                  : KEDGE_E_VERIFY;
    }
    if (!err) {
        kedge_key_from_seed(&seed, &pair);
        err = kedge_public_key_eq(&pair.public, &sealed->public_key) ? KEDGE_OK : KEDGE_E_VERIFY;
        if (!err) {
            *ret = pair;
        }
        kedge_key_wipe(&pair);
    }
    kedge_wipe(&seed, sizeof seed);
    kedge_wipe(key, sizeof key);
    return err;
}
