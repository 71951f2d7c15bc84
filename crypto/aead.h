/* Authenticated encryption (RFC 5116) with a choice of two ciphers, and the keys for it. AES-256-GCM (NIST SP
 * 800-38D) is OpenSSL's and meant for processors that have AES; XChaCha20-Poly1305
 * (draft-irtf-cfrg-xchacha-03) is libsodium's and fast without. Both work everywhere. A key and a nonce must
 * never serve twice: callers give each message a random nonce under a key of few messages. Any thread; the
 * first call in a thread sets up one reusable context, out of memory there aborts. */
#ifndef KEDGE_CRYPTO_AEAD_H
#define KEDGE_CRYPTO_AEAD_H

#include <stdint.h>

#include "common/base/bytes.h"

/* Values are part of stored formats. */
enum kedge_aead { KEDGE_AEAD_AES256_GCM = 1, KEDGE_AEAD_XCHACHA20_POLY1305 = 2 };
enum { KEDGE_AEAD_KEY_LEN = 32, KEDGE_AEAD_TAG_LEN = 16, KEDGE_AEAD_NONCE_MAX = 24 };

/* The one that this processor is made for. */
enum kedge_aead kedge_aead_best(void);
/* Bytes of a nonce: 12 or 24. */
size_t kedge_aead_nonce_len(enum kedge_aead cipher);

/* out takes plain.len bytes and after them the tag; it may be plain.ptr and must not overlap it otherwise.
 * plain.len below 2^31; `also` is authenticated and not stored. */
void kedge_aead_seal(enum kedge_aead cipher, const uint8_t key[KEDGE_AEAD_KEY_LEN], const uint8_t *nonce,
                     struct kedge_view also, struct kedge_view plain, uint8_t *out);
/* The other way, sealed = ciphertext ‖ tag; out takes sealed.len - KEDGE_AEAD_TAG_LEN bytes and may be
 * sealed.ptr. KEDGE_E_VERIFY: a changed byte, another key, nonce or `also`; out is then zeroed. */
KEDGE_NODISCARD int kedge_aead_open(enum kedge_aead cipher, const uint8_t key[KEDGE_AEAD_KEY_LEN],
                                    const uint8_t *nonce, struct kedge_view also, struct kedge_view sealed,
                                    uint8_t *out);

/* BLAKE2b-256 (RFC 7693) of the parts one after another, under a key: a key for one purpose out of another.
 * Parts must have fixed lengths, or spell where they end. */
void kedge_derive_key(const uint8_t key[KEDGE_AEAD_KEY_LEN], const struct kedge_view *parts, size_t count,
                      uint8_t out[KEDGE_AEAD_KEY_LEN]);

#endif
