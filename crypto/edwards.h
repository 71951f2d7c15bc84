/* Multiples of fixed points of edwards25519 (RFC 8032 section 5.1) by tables, for checking many signatures by
 * the same key: sums of table entries take the place of the 253 doublings of a check that knows nothing of
 * the key. For public values only: time and memory access depend on them. Internal to this room. */
#ifndef KEDGE_CRYPTO_EDWARDS_H
#define KEDGE_CRYPTO_EDWARDS_H

#include "crypto/field25519.h"
#include "crypto/sign.h"

/* An affine point as what a mixed addition takes (Hisil, Wong, Carter, Dawson: Twisted Edwards Curves
 * Revisited, 2008, section 3.1). */
struct kedgei_niels {
    struct kedgei_fe sum, difference, product; /* y + x, y - x, 2dxy */
};

enum { KEDGEI_TABLE_ROWS = 32, KEDGEI_TABLE_ROW = 8 };

/* at[i][k] = (k + 1) · 256^i · -A; 30 KiB. */
struct kedgei_key_table {
    struct kedgei_niels at[KEDGEI_TABLE_ROWS][KEDGEI_TABLE_ROW];
};

/* About 0.2 ms. false: the key is no canonical encoding of a point of prime order, and has no table. */
bool kedgei_key_table_init(const struct kedge_public_key *key, struct kedgei_key_table *ret);
/* Whether this signature by the table's key is one that libsodium accepts, as far as that can be said with
 * little work. true is final; false may be wrong: ask libsodium. About a third of its time. */
bool kedgei_key_table_accepts(const struct kedgei_key_table *table, const struct kedge_public_key *key,
                              struct kedge_view message, const struct kedge_signature *sig);

#endif
