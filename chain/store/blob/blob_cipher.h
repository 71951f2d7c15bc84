/* A blob's file when it is encrypted. Its name stays the SHA-256 of what is in it. Integers big-endian:
 *
 *   head (64):  "KEDGEBLB" ‖ u8 version = 1 ‖ u8 cipher (crypto/aead.h) ‖ u8 16 (log2 of a chunk) ‖ 5 zeros
 *               (version 2: u8 how ‖ u32 length of the content, which is encrypted in its short form)
 *               ‖ key id (16): the beginning of SHA-256 of the public half of the key ‖ salt (32), random
 *   chunks:     nonce (12 or 24, random) ‖ ciphertext (65,536 bytes; the last one what is left) ‖ tag (16)
 *
 * The file's key is BLAKE2b-256, under the key, of a label, the head and the digest; with each chunk its
 * number and whether it is the last one are authenticated. So a changed bit anywhere, a chunk that is
 * missing, doubled or in another place, another file's chunk and another file under this name are found; a
 * chunk is read without the others. A file always has a last chunk, be it empty. The length is not in the
 * head: cutting the file off makes the last chunk one that was not sealed as such. Nonces are random
 * because an upload that goes on after a crash may write other bytes into the same place. Pure but for
 * randomness. */
#ifndef KEDGE_CHAIN_STORE_BLOB_BLOB_CIPHER_H
#define KEDGE_CHAIN_STORE_BLOB_BLOB_CIPHER_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/aead.h"
#include "crypto/hash.h"
#include "crypto/sign.h"

enum {
    KEDGE_BLOB_HEAD_LEN = 64,
    KEDGE_BLOB_KEY_ID_LEN = 16,
    KEDGE_BLOB_CHUNK = 65536,
    KEDGE_BLOB_STORED_MAX = KEDGE_AEAD_NONCE_MAX + KEDGE_BLOB_CHUNK + KEDGE_AEAD_TAG_LEN, /* of a chunk */
};

struct kedge_blob_key_id {
    uint8_t b[KEDGE_BLOB_KEY_ID_LEN];
};

/* Of one file; its key is secret. */
struct kedge_blob_cipher {
    enum kedge_aead aead;
    uint8_t head[KEDGE_BLOB_HEAD_LEN];
    uint8_t key[KEDGE_AEAD_KEY_LEN];
};

void kedge_blob_key_id(const struct kedge_public_key *key, struct kedge_blob_key_id *ret);
/* Whether a file that begins like this is encrypted. Models, updates, specs and lists never begin so. */
bool kedge_blob_is_sealed(struct kedge_view head);

/* For a new file, with a fresh salt. */
void kedge_blob_cipher_new(enum kedge_aead aead, const struct kedge_blob_key_id *id,
                           const struct kedge_seed *key, const struct kedge_hash *digest,
                           struct kedge_blob_cipher *ret);
/* For a new file that holds the short form of content of that length (blob/short_form.h); how 0: as it is. */
void kedge_blob_cipher_short(enum kedge_aead aead, const struct kedge_blob_key_id *id,
                             const struct kedge_seed *key, const struct kedge_hash *digest, unsigned how,
                             uint32_t len, struct kedge_blob_cipher *ret);
/* What a head says of the content's form. */
void kedge_blob_head_form(const uint8_t head[KEDGE_BLOB_HEAD_LEN], unsigned *ret_how, uint32_t *ret_len);
/* The cipher and key that a head asks for. KEDGE_E_CORRUPT: no such head. */
KEDGE_NODISCARD int kedge_blob_head_read(const uint8_t head[KEDGE_BLOB_HEAD_LEN], enum kedge_aead *ret_aead,
                                         struct kedge_blob_key_id *ret_id);
/* For a file that is there. KEDGE_E_CORRUPT. Whether the key is the right one, the chunks tell. */
KEDGE_NODISCARD int kedge_blob_cipher_of(const uint8_t head[KEDGE_BLOB_HEAD_LEN],
                                         const struct kedge_seed *key, const struct kedge_hash *digest,
                                         struct kedge_blob_cipher *ret);
void kedge_blob_cipher_wipe(struct kedge_blob_cipher *c);

/* Bytes of the file for `len` bytes of content. */
uint64_t kedge_blob_stored_len(enum kedge_aead aead, uint64_t len);
/* Bytes of content, or of its short form, in a file of that length. KEDGE_E_CORRUPT: no file has this length.
 */
KEDGE_NODISCARD int kedge_blob_content_len(enum kedge_aead aead, uint64_t stored, uint64_t *ret);
/* Where chunk i of the file is. */
uint64_t kedge_blob_chunk_offset(enum kedge_aead aead, uint64_t i);
/* Nonce and tag together. */
size_t kedge_blob_chunk_overhead(enum kedge_aead aead);

/* Writes chunk i as stored: plain.len + overhead bytes. */
void kedge_blob_chunk_seal(const struct kedge_blob_cipher *c, uint64_t i, bool is_last,
                           struct kedge_view plain, uint8_t *out);
/* stored: the chunk as it is in the file; out takes its content, stored.len - overhead bytes, and may be
 * stored.ptr + nonce. KEDGE_E_CORRUPT. */
KEDGE_NODISCARD int kedge_blob_chunk_open(const struct kedge_blob_cipher *c, uint64_t i, bool is_last,
                                          struct kedge_view stored, uint8_t *out);

#endif
