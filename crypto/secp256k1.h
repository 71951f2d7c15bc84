/* ECDSA on secp256k1 (SEC 2) with recoverable signatures, as Ethereum-compatible chains use it. Signing is
 * deterministic (RFC 6979) with low s. libsecp256k1 is known to secp256k1.c alone. Any thread. */
#ifndef KEDGE_CRYPTO_SECP256K1_H
#define KEDGE_CRYPTO_SECP256K1_H

#include "crypto/hash.h"

enum { KEDGE_SECP_SECRET_LEN = 32, KEDGE_SECP_PUBLIC_LEN = 64 };

struct kedge_secp_secret { /* 1 … n−1, big-endian; wipe with kedge_wipe */
    uint8_t b[KEDGE_SECP_SECRET_LEN];
};
struct kedge_secp_public { /* X ‖ Y, big-endian */
    uint8_t b[KEDGE_SECP_PUBLIC_LEN];
};
struct kedge_secp_signature {
    uint8_t r[32], s[32]; /* big-endian */
    uint8_t parity;       /* of R's y: 0 or 1 */
};

/* KEDGE_E_KEY: 0 or not below the group's order. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_secp_public_of(const struct kedge_secp_secret *secret,
                                         struct kedge_secp_public *ret_public);
/* Signs the 32 bytes of a hash. KEDGE_E_KEY as above. A nonce whose R overflows the order (one in 2^127) is
 * KEDGE_E_BUG: Ethereum cannot say such a signature. */
KEDGE_NODISCARD int kedge_secp_sign(const struct kedge_hash *hash, const struct kedge_secp_secret *secret,
                                    struct kedge_secp_signature *ret_signature);
/* The key that made the signature. KEDGE_E_VERIFY: none did, or s is above half the order (EIP-2). */
KEDGE_NODISCARD int kedge_secp_recover(const struct kedge_hash *hash,
                                       const struct kedge_secp_signature *signature,
                                       struct kedge_secp_public *ret_public);

#endif
