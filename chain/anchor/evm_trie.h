/* Merkle Patricia tries of Ethereum-compatible chains (Yellow Paper, appendix D): checks that a value is
 * under a key, given the root and the nodes on the way (EIP-1186 for state and storage; key RLP(index) for
 * the transactions and receipts of a block). Pure. */
#ifndef KEDGE_CHAIN_ANCHOR_EVM_TRIE_H
#define KEDGE_CHAIN_ANCHOR_EVM_TRIE_H

#include "crypto/hash.h"

enum {
    KEDGE_EVM_TRIE_KEY_MAX = 32,   /* bytes */
    KEDGE_EVM_TRIE_NODES_MAX = 65, /* one per nibble, and the end */
};

/* Follows the key from the root through nodes[0 … count): each is the RLP of a node whose keccak the one
 * before names (a node shorter than 32 bytes stands within the one before and is no element). KEDGE_OK: the
 * value is in *ret_value, a view into the nodes. KEDGE_E_VERIFY: anything else, also a proof of absence or
 * nodes that nobody needs. */
KEDGE_NODISCARD int kedge_evm_trie_verify(const struct kedge_hash *root, struct kedge_view key,
                                          const struct kedge_view *nodes, size_t count,
                                          struct kedge_view *ret_value);

#endif
