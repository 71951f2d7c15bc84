/* Keccak-256 as Ethereum uses it: the Keccak submission's padding (01 … 80), not FIPS 202's SHA3-256 (06 …
 * 80). Permutation and notation: keccak.team/keccak_specs_summary.html; Ethereum Yellow Paper, "KEC". Pure.
 */
#ifndef KEDGE_CHAIN_ANCHOR_KECCAK256_H
#define KEDGE_CHAIN_ANCHOR_KECCAK256_H

#include "crypto/hash.h"

/* Any length; any thread. */
void kedge_keccak256(struct kedge_view bytes, struct kedge_hash *ret_hash);
/* The same sponge with a chosen padding byte: 0x06 gives SHA3-256, by which tests check the permutation
 * against another implementation. */
void kedgei_keccak256_padded(struct kedge_view bytes, uint8_t padding, struct kedge_hash *ret_hash);

#endif
