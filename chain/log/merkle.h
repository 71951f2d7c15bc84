/* The RFC 6962 §2.1 Merkle tree (RFC 9162 §2.1 is the same tree): hashes, the frontier that a log grows by,
 * proofs and their verification. No storage, no recursion; sizes and indexes are below 2^63. Pure. */
#ifndef KEDGE_CHAIN_LOG_MERKLE_H
#define KEDGE_CHAIN_LOG_MERKLE_H

#include <stdint.h>

#include "common/base/bytes.h"
#include "common/base/limits.h"
#include "crypto/hash.h"

#define KEDGE_TREE_SIZE_MAX ((uint64_t)INT64_MAX)

/* SHA-256(00 ‖ entry) */
void kedge_merkle_leaf(struct kedge_view entry, struct kedge_hash *ret_hash);
/* SHA-256(01 ‖ left ‖ right); ret_hash may be one of the inputs. */
void kedge_merkle_node(const struct kedge_hash *left, const struct kedge_hash *right,
                       struct kedge_hash *ret_hash);
/* Root of the tree without leaves: SHA-256(""). */
void kedge_merkle_empty_root(struct kedge_hash *ret_hash);

/* The roots ("peaks") of the complete subtrees of a tree of `size` leaves, largest first: popcount(size) of
 * them. Everything that appending and the root need. All zero is the empty tree. */
struct kedge_frontier {
    uint64_t size;
    struct kedge_hash peaks[KEDGE_PROOF_MAX];
};

unsigned kedge_frontier_peak_count(const struct kedge_frontier *f);
/* Adds a leaf hash; KEDGE_E_FULL at KEDGE_TREE_SIZE_MAX leaves a full tree as it was. Amortised one node
 * hash. */
KEDGE_NODISCARD int kedge_frontier_append(struct kedge_frontier *f, const struct kedge_hash *leaf);
void kedge_frontier_root(const struct kedge_frontier *f, struct kedge_hash *ret_root);
/* 8 bytes of size, big-endian, then the peaks: one encoding. decode: KEDGE_E_FORMAT. */
void kedge_frontier_encode(const struct kedge_frontier *f, struct kedge_buf *out);
KEDGE_NODISCARD int kedge_frontier_decode(struct kedge_view bytes, struct kedge_frontier *ret_frontier);

/* Path of a proof, leaf side first. */
struct kedge_path {
    uint32_t count;
    struct kedge_hash hashes[KEDGE_PROOF_MAX];
};

/* Where generation finds hashes: *ret = root of the complete subtree over leaves
 * [index·2^level, (index+1)·2^level), which lies inside the tree asked about. Returns KEDGE_OK or an error,
 * which the generator hands on. Called O(log n) times a proof. */
typedef int (*kedge_subtree_fn)(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret);

/* Root of the first `size` leaves. */
KEDGE_NODISCARD int kedge_merkle_root(kedge_subtree_fn get, void *arg, uint64_t size,
                                      struct kedge_hash *ret_root);
/* Path of leaf `index` in the tree of `size` leaves; KEDGE_E_ARG unless index < size. */
KEDGE_NODISCARD int kedge_inclusion_prove(kedge_subtree_fn get, void *arg, uint64_t index, uint64_t size,
                                          struct kedge_path *ret_path);
/* Path from the tree of `old_size` leaves to that of `size`; KEDGE_E_ARG unless 0 < old_size <= size. */
KEDGE_NODISCARD int kedge_consistency_prove(kedge_subtree_fn get, void *arg, uint64_t old_size, uint64_t size,
                                            struct kedge_path *ret_path);

/* KEDGE_OK or KEDGE_E_VERIFY; RFC 9162 §2.1.3.2. */
KEDGE_NODISCARD int kedge_inclusion_verify(uint64_t index, uint64_t size, const struct kedge_hash *leaf,
                                           const struct kedge_hash *path, size_t path_len,
                                           const struct kedge_hash *root);
/* KEDGE_OK or KEDGE_E_VERIFY; RFC 9162 §2.1.4.2. Equal sizes: empty path and equal roots. old_size 0 is
 * refused: that any tree extends the empty one is for the protocol above to say. */
KEDGE_NODISCARD int kedge_consistency_verify(uint64_t old_size, uint64_t size,
                                             const struct kedge_hash *old_root, const struct kedge_hash *root,
                                             const struct kedge_hash *path, size_t path_len);
/* What a path whose first hash is spelled out even where a consistency proof leaves it unsaid (old_size a
 * power of two) says: the roots of both trees. KEDGE_E_VERIFY when it fits no such pair of sizes,
 * 0 < old_size < size. That a signed root of `size` comes out shows which tree of old_size leaves it extends,
 * without regard to what was signed for that one. */
KEDGE_NODISCARD int kedge_consistency_roots(uint64_t old_size, uint64_t size, const struct kedge_hash *path,
                                            size_t path_len, struct kedge_hash *ret_old_root,
                                            struct kedge_hash *ret_root);
/* Makes that path; errors as kedge_consistency_prove, and KEDGE_E_ARG for equal sizes. */
KEDGE_NODISCARD int kedge_consistency_prove_explicit(kedge_subtree_fn get, void *arg, uint64_t old_size,
                                                     uint64_t size, struct kedge_path *ret_path);

#endif
