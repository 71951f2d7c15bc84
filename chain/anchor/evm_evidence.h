/* The evidence of one final anchor as a file (JSON): what an auditor without a network checks, and what
 * remains to be asked of a node. The pieces, each checked by itself:
 *
 * transaction: raw bytes; who signed which root for which chain and contract (needs nobody's word).
 *
 * checkpoint: the main chain's signed note of that size and root.
 *
 * block: header bytes whose keccak is the block's hash (that this block is in the chain: a node's word).
 *
 * state: an EIP-1186 proof that at that block the contract's head is this anchor.
 *
 * docs/modules/anchor.md has the format. Pure. */
#ifndef KEDGE_CHAIN_ANCHOR_EVM_EVIDENCE_H
#define KEDGE_CHAIN_ANCHOR_EVM_EVIDENCE_H

#include "chain/anchor/evm_abi.h"
#include "chain/anchor/evm_trie.h"
#include "common/base/diag.h"

enum {
    KEDGE_EVM_EVIDENCE_MAX = 1024 * 1024,
    KEDGE_EVM_ORIGIN_MAX = 255,
    KEDGE_EVM_HEADER_MAX = 4096,
};

struct kedge_evm_nodes { /* of one trie proof; views borrowed */
    size_t count;
    struct kedge_view node[KEDGE_EVM_TRIE_NODES_MAX];
};

struct kedge_evm_evidence {
    uint64_t chain_id, block, log_index;
    struct kedge_evm_address contract, sender;
    char origin[KEDGE_EVM_ORIGIN_MAX + 1]; /* of the main chain; the namespace is its hash */
    struct kedge_evm_point point;
    struct kedge_hash tx_hash, block_hash;
    struct kedge_view raw;        /* transaction */
    struct kedge_view checkpoint; /* note; len 0: none */
    struct kedge_view header;     /* RLP; len 0: none */
    char finality[16];            /* "safe" or "final": what the node said when this was written */
    bool has_state;
    struct kedge_evm_nodes account, packed, root;
    struct kedge_buf bytes; /* what the views point into, when read from a file */
};

/* Appends the file's text. */
KEDGE_NODISCARD int kedge_evm_evidence_write(const struct kedge_evm_evidence *e, struct kedge_buf *out);
/* Reads the text and checks all that it holds against itself: the transaction says what the fields say and
 * its signature is the sender's, the header has the block's hash and number, the state proof leads from the
 * header to this anchor. KEDGE_E_FORMAT: no such file; KEDGE_E_VERIFY: a piece contradicts another, and the
 * diagnostic says which. *ret is the caller's by kedge_evm_evidence_deinit, also after an error. The
 * checkpoint is only carried. */
KEDGE_NODISCARD int kedge_evm_evidence_read(struct kedge_view text, struct kedge_evm_evidence *ret,
                                            struct kedge_diag *reterr);
void kedge_evm_evidence_deinit(struct kedge_evm_evidence *e);
/* The pieces of evidence against one another, as read does. */
KEDGE_NODISCARD int kedge_evm_evidence_check(const struct kedge_evm_evidence *e, struct kedge_diag *reterr);
/* When the block was made, by its own header: POSIX seconds. KEDGE_E_NOT_FOUND: there is no header in it, or
 * none that says. Of evidence that was checked. */
KEDGE_NODISCARD int kedge_evm_evidence_time(const struct kedge_evm_evidence *e, uint64_t *ret_s);
/* Whether the contract whose state is proven has Kedge's code (evm_contract.h): only then are there no gaps
 * behind its number, and no longer log before it. False without a state proof. Of evidence that was checked.
 */
bool kedge_evm_evidence_code_is_ours(const struct kedge_evm_evidence *e);
/* Is it about this checkpoint of the main chain (origin, size, root)? KEDGE_E_VERIFY with the reason. */
KEDGE_NODISCARD int kedge_evm_evidence_is_about(const struct kedge_evm_evidence *e, struct kedge_view origin,
                                                uint64_t size, const struct kedge_hash *root,
                                                struct kedge_diag *reterr);

#endif
