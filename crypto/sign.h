/* Ed25519 (RFC 8032) keys and detached signatures with libsodium's acceptance rule: S >= L, small-order and
 * non-canonical R or A are refused, the equation is cofactorless. One bit of answer: KEDGE_OK or
 * KEDGE_E_VERIFY. Hazard: a key serves one role and one signature type only (an Ed25519 note key never
 * cosigns). */
#ifndef KEDGE_CRYPTO_SIGN_H
#define KEDGE_CRYPTO_SIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/bytes.h"
#include "crypto/hash.h"

enum { KEDGE_KEY_LEN = 32, KEDGE_SECRET_LEN = 64, KEDGE_SIGNATURE_LEN = 64 };

struct kedge_public_key {
    uint8_t b[KEDGE_KEY_LEN];
};

struct kedge_seed { /* secret: 32 bytes from which the key pair follows */
    uint8_t b[KEDGE_KEY_LEN];
};

struct kedge_signature {
    uint8_t b[KEDGE_SIGNATURE_LEN];
};

struct kedge_key_pair {
    struct kedge_public_key public;
    uint8_t secret[KEDGE_SECRET_LEN]; /* seed ‖ public key; wipe with kedge_key_wipe */
};

/* Once per process before any thread uses this room; calling it again is harmless. */
KEDGE_NODISCARD int kedge_crypto_init(void);

void kedge_key_generate(struct kedge_key_pair *ret_pair);
void kedge_key_from_seed(const struct kedge_seed *seed, struct kedge_key_pair *ret_pair);
void kedge_key_seed(const struct kedge_key_pair *pair, struct kedge_seed *ret_seed);
void kedge_key_wipe(struct kedge_key_pair *pair);
/* Overwrites secrets in a way the compiler keeps. */
void kedge_wipe(void *p, size_t len);

bool kedge_public_key_eq(const struct kedge_public_key *a, const struct kedge_public_key *b);
/* Canonical encoding of a point in the prime-order subgroup other than the identity: demanded of every key
 * before it is registered or trusted. */
bool kedge_public_key_is_valid(const struct kedge_public_key *key);
/* SHA-256 of the 32 raw bytes: the key's name in statements and envelopes. */
void kedge_public_key_hash(const struct kedge_public_key *key, struct kedge_hash *ret_hash);

/* Deterministic; about 25 µs. */
void kedge_sign(struct kedge_view message, const struct kedge_key_pair *pair,
                struct kedge_signature *ret_sig);
/* KEDGE_OK or KEDGE_E_VERIFY: what libsodium says. About 70 µs. */
KEDGE_NODISCARD int kedge_verify(struct kedge_view message, const struct kedge_signature *sig,
                                 const struct kedge_public_key *key);
/* Whether kedge_verify may accept what this room's own curve arithmetic accepts, for a key that is met often,
 * without asking libsodium: a third of the time (docs/modules/crypto.md). Off in every process until it is
 * turned on: the coordinator does, whose record others audit, and an audit that was asked to be fast. For the
 * whole process; from any thread. Returns what was set before. */
bool kedge_verify_allow_tables(bool allowed);

#endif
