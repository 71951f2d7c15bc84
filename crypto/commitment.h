/* Salted commitments: a record can name personal data without holding it. The commitment stands where it may
 * never be changed; salt and text lie elsewhere, and when both are destroyed it is noise.
 *
 *   commitment = HMAC-SHA-256(salt, "kedge/commit/v1" ‖ 00 ‖ SHA-256(text) ‖ u64 length of the text,
 * big-endian)
 *
 * Hides the text as long as the salt is secret (32 random bytes, used once), binds to it as SHA-256 does. */
#ifndef KEDGE_CRYPTO_COMMITMENT_H
#define KEDGE_CRYPTO_COMMITMENT_H

#include "crypto/hash.h"

enum { KEDGE_COMMITMENT_SALT_LEN = 32 };

struct kedge_commitment_salt {
    uint8_t b[KEDGE_COMMITMENT_SALT_LEN];
};

/* Fresh and random. */
void kedge_commitment_salt_new(struct kedge_commitment_salt *ret);
void kedge_commitment_make(const struct kedge_commitment_salt *salt, struct kedge_view text,
                           struct kedge_hash *ret);

#endif
