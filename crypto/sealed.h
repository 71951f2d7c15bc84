/* Private keys under a passphrase: Argon2id (RFC 9106) over the passphrase gives the key of an
 * XChaCha20-Poly1305 box around the Ed25519 seed. One spelling, all integers big-endian:
 *
 *   -----BEGIN KEDGE SEALED PRIVATE KEY-----
 *   base64, in lines of 64 characters, of 132 bytes:
 *     u8 version = 1 ‖ u8 kdf = 1 (Argon2id 1.3, one lane) ‖ u8 cipher = 1 (XChaCha20-Poly1305-IETF) ‖ u8 0
 *     u32 passes ‖ u32 memory in KiB ‖ salt (16) ‖ nonce (24) ‖ public key (32)    all of it authenticated
 *     box (48): seed ‖ tag
 *   -----END KEDGE SEALED PRIVATE KEY-----
 *
 * What a file demands is bounded before any memory is taken for it. */
#ifndef KEDGE_CRYPTO_SEALED_H
#define KEDGE_CRYPTO_SEALED_H

#include "common/base/diag.h"
#include "crypto/sign.h"

enum {
    KEDGE_PASSPHRASE_MAX = 1024, /* bytes */
    KEDGE_SEAL_SALT_LEN = 16,
    KEDGE_SEAL_NONCE_LEN = 24,
    KEDGE_SEAL_BOX_LEN = 48,
    KEDGE_SEAL_PASSES_MAX = 10,
    KEDGE_SEAL_MEMORY_MIN_KIB = 8 * 1024,
    KEDGE_SEAL_MEMORY_MAX_KIB = 1024 * 1024,
};

/* What a guess costs, and each use. */
struct kedge_seal_cost {
    uint32_t passes;     /* 1 … KEDGE_SEAL_PASSES_MAX */
    uint32_t memory_kib; /* KEDGE_SEAL_MEMORY_MIN_KIB … _MAX_KIB */
};
extern const struct kedge_seal_cost kedge_seal_moderate; /* 3 passes over 256 MiB: some 0.7 s */
extern const struct kedge_seal_cost kedge_seal_small;    /* 2 passes over 64 MiB, for small devices */

struct kedge_sealed {
    struct kedge_seal_cost cost;
    uint8_t salt[KEDGE_SEAL_SALT_LEN];
    uint8_t nonce[KEDGE_SEAL_NONCE_LEN];
    struct kedge_public_key public_key; /* of the key inside; only a claim until it is unsealed */
    uint8_t box[KEDGE_SEAL_BOX_LEN];
};

/* Does the text begin as a sealed key does? */
bool kedge_sealed_is(struct kedge_view text);
/* Appends the text. */
void kedge_sealed_encode(const struct kedge_sealed *sealed, struct kedge_buf *out);
/* KEDGE_E_KEY: not that one spelling, or a cost out of bounds. Asks nobody. */
KEDGE_NODISCARD int kedge_sealed_decode(struct kedge_view text, struct kedge_sealed *ret);

/* The passphrase has 1…KEDGE_PASSPHRASE_MAX bytes and a cost within bounds (KEDGE_E_ARG). KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_seal(const struct kedge_key_pair *pair, struct kedge_view passphrase,
                               const struct kedge_seal_cost *cost, struct kedge_sealed *ret);
/* KEDGE_E_VERIFY: another passphrase, or a damaged file. KEDGE_E_NOMEM, KEDGE_E_ARG. */
KEDGE_NODISCARD int kedge_unseal(const struct kedge_sealed *sealed, struct kedge_view passphrase,
                                 struct kedge_key_pair *ret);

#endif
