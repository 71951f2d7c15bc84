/* The format of an encrypted blob (blob_cipher.h has every byte). The key that encrypts a file is derived
 * from the job's seed, the whole head and the digest; so a file under another name, with another salt or
 * with a changed head has another key, and no chunk of it opens. */
#include "chain/store/blob/blob_cipher.h"

#include <string.h>

#include "chain/store/blob/short_form.h"
#include "common/base/os/entropy.h"
#include "common/base/try.h"

enum {
    VERSION = 1,
    VERSION_SHORT = 2,
    CHUNK_LOG2 = 16,
    AT_VERSION = 8,
    AT_HOW = 11,
    AT_LENGTH = 12,
    AT_KEY = 16,
    AT_SALT = 32,
    ALSO_LEN = 9,
};

static const uint8_t magic[AT_VERSION] = {'K', 'E', 'D', 'G', 'E', 'B', 'L', 'B'};
static const char label[] = "kedge/blob-file/v1";

void kedge_blob_key_id(const struct kedge_public_key *key, struct kedge_blob_key_id *ret)
{
    struct kedge_hash hash;
    kedge_public_key_hash(key, &hash);
    memcpy(ret->b, hash.b, sizeof ret->b);
}

bool kedge_blob_is_sealed(struct kedge_view head)
{
    return head.len >= sizeof magic && memcmp(head.ptr, magic, sizeof magic) == 0;
}

/* Deriving a key for each file means that random nonces only have to be unique within one file, far below
 * the bound for 96-bit nonces of AES-GCM (2^32 for one key, NIST SP 800-38D, section 8.3). */
static void derive(const struct kedge_seed *key, const struct kedge_hash *digest, struct kedge_blob_cipher *c)
{
    const struct kedge_view parts[] = {kedge_view_str(label), kedge_view_of(c->head, sizeof c->head),
                                       kedge_view_of(digest->b, sizeof digest->b)};
    kedge_derive_key(key->b, parts, sizeof parts / sizeof parts[0], c->key);
}

void kedge_blob_cipher_new(enum kedge_aead aead, const struct kedge_blob_key_id *id,
                           const struct kedge_seed *key, const struct kedge_hash *digest,
                           struct kedge_blob_cipher *ret)
{
    kedge_blob_cipher_short(aead, id, key, digest, KEDGEI_SHORT_NOT, 0, ret);
}

/* The version rises only for the deflated form, so programs from before it still read all other files and
 * refuse these as damaged. */
void kedge_blob_cipher_short(enum kedge_aead aead, const struct kedge_blob_key_id *id,
                             const struct kedge_seed *key, const struct kedge_hash *digest, unsigned how,
                             uint32_t len, struct kedge_blob_cipher *ret)
{
    *ret = (struct kedge_blob_cipher){.aead = aead};
    memcpy(ret->head, magic, sizeof magic);
    ret->head[AT_VERSION] = how == KEDGEI_SHORT_NOT ? VERSION : VERSION_SHORT;
    ret->head[AT_HOW] = (uint8_t)how;
    for (unsigned i = 0; i < 4; i++) {
        ret->head[AT_LENGTH + i] = (uint8_t)(len >> (24 - 8 * i));
    }
    ret->head[AT_VERSION + 1] = (uint8_t)aead;
    ret->head[AT_VERSION + 2] = CHUNK_LOG2;
    memcpy(ret->head + AT_KEY, id->b, sizeof id->b);
    kedge_os_random(ret->head + AT_SALT, KEDGE_BLOB_HEAD_LEN - AT_SALT);
    derive(key, digest, ret);
}

void kedge_blob_head_form(const uint8_t head[KEDGE_BLOB_HEAD_LEN], unsigned *ret_how, uint32_t *ret_len)
{
    const uint8_t *len = head + AT_LENGTH;
    *ret_how = head[AT_HOW];
    *ret_len = (uint32_t)len[0] << 24 | (uint32_t)len[1] << 16 | (uint32_t)len[2] << 8 | len[3];
}

/* A version, a form or a length that do not belong together are refused before the key is looked for, so
 * nothing of unknown meaning is decrypted. */
int kedge_blob_head_read(const uint8_t head[KEDGE_BLOB_HEAD_LEN], enum kedge_aead *ret_aead,
                         struct kedge_blob_key_id *ret_id)
{
    uint8_t aead = head[AT_VERSION + 1], version = head[AT_VERSION];
    unsigned how;
    uint32_t len;
    kedge_blob_head_form(head, &how, &len);
    bool is_as_it_is = version == VERSION && how == KEDGEI_SHORT_NOT && len == 0;
    bool is_short = version == VERSION_SHORT && how >= KEDGEI_SHORT_BYTES && how <= KEDGEI_SHORT_REALS
                    && len > 0 && len <= KEDGEI_SHORT_CONTENT_MAX;
    if (!kedge_blob_is_sealed(kedge_view_of(head, KEDGE_BLOB_HEAD_LEN)) || (!is_as_it_is && !is_short)
        || (aead != KEDGE_AEAD_AES256_GCM && aead != KEDGE_AEAD_XCHACHA20_POLY1305)
        || head[AT_VERSION + 2] != CHUNK_LOG2) {
        return KEDGE_E_CORRUPT;
    }
    *ret_aead = (enum kedge_aead)aead;
    memcpy(ret_id->b, head + AT_KEY, sizeof ret_id->b);
    return KEDGE_OK;
}

int kedge_blob_cipher_of(const uint8_t head[KEDGE_BLOB_HEAD_LEN], const struct kedge_seed *key,
                         const struct kedge_hash *digest, struct kedge_blob_cipher *ret)
{
    struct kedge_blob_key_id id;
    enum kedge_aead aead;
    KEDGE_TRY(kedge_blob_head_read(head, &aead, &id));
    *ret = (struct kedge_blob_cipher){.aead = aead};
    memcpy(ret->head, head, sizeof ret->head);
    derive(key, digest, ret);
    return KEDGE_OK;
}

void kedge_blob_cipher_wipe(struct kedge_blob_cipher *c)
{
    kedge_wipe(c->key, sizeof c->key);
}

size_t kedge_blob_chunk_overhead(enum kedge_aead aead)
{
    return kedge_aead_nonce_len(aead) + KEDGE_AEAD_TAG_LEN;
}

uint64_t kedge_blob_chunk_offset(enum kedge_aead aead, uint64_t i)
{
    return KEDGE_BLOB_HEAD_LEN + i * (KEDGE_BLOB_CHUNK + kedge_blob_chunk_overhead(aead));
}

uint64_t kedge_blob_stored_len(enum kedge_aead aead, uint64_t len)
{
    uint64_t chunks = len == 0 ? 1 : (len + KEDGE_BLOB_CHUNK - 1) / KEDGE_BLOB_CHUNK;
    return KEDGE_BLOB_HEAD_LEN + len + chunks * kedge_blob_chunk_overhead(aead);
}

/* Every length that no sequence of chunks has is refused: a last chunk without content exists only in an
 * empty file, else a file could be cut by a whole chunk plus the overhead of an empty one. */
int kedge_blob_content_len(enum kedge_aead aead, uint64_t stored, uint64_t *ret)
{
    const uint64_t overhead = kedge_blob_chunk_overhead(aead), whole = KEDGE_BLOB_CHUNK + overhead;
    if (stored < KEDGE_BLOB_HEAD_LEN + overhead) {
        return KEDGE_E_CORRUPT;
    }
    const uint64_t body = stored - KEDGE_BLOB_HEAD_LEN, chunks = (body + whole - 1) / whole;
    const uint64_t last = body - (chunks - 1) * whole;
    if (last < overhead || (last == overhead && chunks > 1)) {
        return KEDGE_E_CORRUPT;
    }
    *ret = body - chunks * overhead;
    return KEDGE_OK;
}

/* Number and "last" are authenticated, not stored: a chunk in another place, a missing end and a further
 * chunk behind the last all fail. */
static void put_also(uint64_t i, bool is_last, uint8_t also[ALSO_LEN])
{
    kedge_store_be64(also, i);
    also[ALSO_LEN - 1] = is_last;
}

/* Another random nonce for each writing: an upload that goes on after a crash may write the same chunk
 * number again, with the same or other content. */
void kedge_blob_chunk_seal(const struct kedge_blob_cipher *c, uint64_t i, bool is_last,
                           struct kedge_view plain, uint8_t *out)
{
    uint8_t also[ALSO_LEN];
    size_t nonce = kedge_aead_nonce_len(c->aead);
    put_also(i, is_last, also);
    kedge_os_random(out, nonce);
    kedge_aead_seal(c->aead, c->key, out, kedge_view_of(also, sizeof also), plain, out + nonce);
}

int kedge_blob_chunk_open(const struct kedge_blob_cipher *c, uint64_t i, bool is_last,
                          struct kedge_view stored, uint8_t *out)
{
    uint8_t also[ALSO_LEN];
    size_t nonce = kedge_aead_nonce_len(c->aead);
    if (stored.len < kedge_blob_chunk_overhead(c->aead)) {
        return KEDGE_E_CORRUPT;
    }
    put_also(i, is_last, also);
    return kedge_aead_open(c->aead, c->key, stored.ptr, kedge_view_of(also, sizeof also),
                           kedge_view_of(stored.ptr + nonce, stored.len - nonce), out)
               ? KEDGE_E_CORRUPT
               : KEDGE_OK;
}
