/* What Kedge says to its contract (chain/anchor/contract/KedgeAnchor.sol) and reads from it: call data, the
 * event, storage slots (Solidity ABI specification; storage layout of mappings and packed structs). Pure. */
#ifndef KEDGE_CHAIN_ANCHOR_EVM_ABI_H
#define KEDGE_CHAIN_ANCHOR_EVM_ABI_H

#include "chain/anchor/evm_tx.h"

enum {
    KEDGE_EVM_WORD = 32,
    KEDGE_EVM_ANCHOR_CALL_LEN = 4 + 4 * KEDGE_EVM_WORD,
    KEDGE_EVM_HEADS_CALL_LEN = 4 + 2 * KEDGE_EVM_WORD,
    KEDGE_EVM_TOPICS_MAX = 4,
};

/* One root as it is anchored. */
struct kedge_evm_point {
    struct kedge_hash ns; /* namespace: SHA-256 of the main chain's origin */
    uint64_t seq;         /* 1, 2, 3 … per sender and namespace, without gaps */
    uint64_t size;        /* entries of the main chain */
    struct kedge_hash root;
};
bool kedge_evm_point_eq(const struct kedge_evm_point *a, const struct kedge_evm_point *b);
void kedge_evm_namespace(struct kedge_view origin, struct kedge_hash *ret);

/* anchor(bytes32,uint64,uint64,bytes32) */
void kedge_evm_anchor_call(const struct kedge_evm_point *p, uint8_t out[KEDGE_EVM_ANCHOR_CALL_LEN]);
/* KEDGE_E_FORMAT unless exactly such a call with numbers of 64 bits. */
KEDGE_NODISCARD int kedge_evm_anchor_call_decode(struct kedge_view data, struct kedge_evm_point *ret);

/* heads(address,bytes32): the contract's newest root of a sender and namespace; all zero before the first. */
struct kedge_evm_head {
    uint64_t seq, size, block;
    struct kedge_hash root;
};
void kedge_evm_heads_call(const struct kedge_evm_address *sender, const struct kedge_hash *ns,
                          uint8_t out[KEDGE_EVM_HEADS_CALL_LEN]);
/* Reads the answer, four words. KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_evm_heads_decode(struct kedge_view answer, struct kedge_evm_head *ret);

/* A log of a transaction's receipt, views borrowed. */
struct kedge_evm_log {
    struct kedge_evm_address address;
    struct kedge_hash topics[KEDGE_EVM_TOPICS_MAX];
    size_t topic_count;
    struct kedge_view data;
};
struct kedge_evm_anchored {
    struct kedge_evm_address who;
    struct kedge_evm_point point;
    struct kedge_hash previous; /* the root before; zero for the first */
};
/* Anchored(address indexed,bytes32 indexed,uint64 indexed,uint64,bytes32,bytes32). KEDGE_E_FORMAT for
 * anything else; the log's address is the caller's to check. */
KEDGE_NODISCARD int kedge_evm_anchored_decode(const struct kedge_evm_log *log,
                                              struct kedge_evm_anchored *ret);

/* Storage of heads[sender][ns], a mapping in the contract's slot 0: the word with seq, size and block packed
 * from the low bytes; the root is in the next slot. */
void kedge_evm_head_slots(const struct kedge_evm_address *sender, const struct kedge_hash *ns,
                          struct kedge_hash *ret_packed, struct kedge_hash *ret_root);
/* From the two words' values. KEDGE_E_FORMAT when the packed word's top bytes are not zero. */
KEDGE_NODISCARD int kedge_evm_head_from_words(const struct kedge_hash *packed, const struct kedge_hash *root,
                                              struct kedge_evm_head *ret);

#endif
