/* SHA-256 (FIPS 180-4) and the fixed-size hash that names everything in Kedge. Any thread; no shared state
 * that a caller sees. The first call in a thread sets up one reusable context; out of memory there aborts. */
#ifndef KEDGE_CRYPTO_HASH_H
#define KEDGE_CRYPTO_HASH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/bytes.h"

enum { KEDGE_HASH_LEN = 32, KEDGE_HASH_HEX_LEN = 64 };

struct kedge_hash {
    uint8_t b[KEDGE_HASH_LEN];
};

/* Bit-for-bit equality, in constant time. */
bool kedge_hash_eq(const struct kedge_hash *a, const struct kedge_hash *b);
/* Order of the bytes, as memcmp: for sorting, not for secrets. */
int kedge_hash_cmp(const struct kedge_hash *a, const struct kedge_hash *b);
/* The all-zero value stands for "none" in records. */
bool kedge_hash_is_zero(const struct kedge_hash *h);
/* 64 lower-case digits and a NUL. */
void kedge_hash_hex(const struct kedge_hash *h, char out[KEDGE_HASH_HEX_LEN + 1]);
/* Exactly 64 lower-case digits, else KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_hash_from_hex(struct kedge_view text, struct kedge_hash *ret_hash);

void kedge_sha256(struct kedge_view bytes, struct kedge_hash *ret_hash);
/* SHA-256(a ‖ b) without joining them. */
void kedge_sha256_2(struct kedge_view a, struct kedge_view b, struct kedge_hash *ret_hash);

/* Streaming: new, any number of updates, final (which starts over for the next message), free. */
struct kedge_hasher;
KEDGE_NODISCARD int kedge_hasher_new(struct kedge_hasher **ret_hasher);
void kedge_hasher_free(struct kedge_hasher *h); /* NULL is fine */
void kedge_hasher_update(struct kedge_hasher *h, struct kedge_view bytes);
void kedge_hasher_final(struct kedge_hasher *h, struct kedge_hash *ret_hash);

#endif
