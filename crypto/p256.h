/* ECDSA (FIPS 186-5) for formats that ask for it, such as OpenSSF model signatures; Kedge's own statements
 * stay with Ed25519. Signing is P-256 with SHA-256 and the nonce of RFC 6979: the same key and message give
 * the same bytes. Verifying takes P-256, P-384 and P-521 with SHA-256, SHA-384 and SHA-512. Signatures are
 * DER, keys PEM. */
#ifndef KEDGE_CRYPTO_P256_H
#define KEDGE_CRYPTO_P256_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "crypto/hash.h"

enum {
    KEDGE_P256_LEN = 32,
    KEDGE_EC_SIGNATURE_MAX = 144, /* DER of two 521-bit numbers: 139 bytes */
    KEDGE_EC_PEM_MAX = 4096,      /* bytes of one key file */
};

/* Secret: wipe with kedge_wipe. */
struct kedge_p256_key {
    uint8_t secret[KEDGE_P256_LEN]; /* big-endian, 1 … n−1 */
};

KEDGE_NODISCARD int kedge_p256_generate(struct kedge_p256_key *ret_key);
/* Appends the DER signature. KEDGE_E_KEY when the secret is out of range; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_p256_sign(struct kedge_view message, const struct kedge_p256_key *key,
                                    struct kedge_buf *ret_der);

/* PKCS#8 (private; the caller wipes the buffer) and SPKI (public) as `openssl` writes them; appended.
 * Decoding a private key takes any unencrypted PEM of a P-256 key: KEDGE_E_KEY. */
KEDGE_NODISCARD int kedge_p256_put_private(struct kedge_buf *out, const struct kedge_p256_key *key);
KEDGE_NODISCARD int kedge_p256_put_public(struct kedge_buf *out, const struct kedge_p256_key *key);
KEDGE_NODISCARD int kedge_p256_get_private(struct kedge_view pem, struct kedge_p256_key *ret_key);

/* KEDGE_OK or KEDGE_E_VERIFY; KEDGE_E_KEY when public_pem is no SPKI key on one of the three curves. */
KEDGE_NODISCARD int kedge_ec_verify(struct kedge_view message, struct kedge_view der,
                                    struct kedge_view public_pem);
/* What OpenSSF model signatures call "hint": SHA-256 of the key's SPKI PEM text as `openssl pkey -pubout`
 * writes it. KEDGE_E_KEY as above. */
KEDGE_NODISCARD int kedge_ec_hint(struct kedge_view public_pem, struct kedge_hash *ret_hint);

/* The private key in the file (0600, else KEDGE_E_DENIED); with `create` a new one is made and stored when
 * there is none. Errors name the path. */
KEDGE_NODISCARD int kedge_p256_file(const char *path, bool create, struct kedge_p256_key *ret_key,
                                    struct kedge_diag *reterr);

#endif
