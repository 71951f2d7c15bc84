/* Any bytes as a Merkle tree's frontier: refused, or a tree with one encoding, a root, and room for a leaf or
 * a refusal of it. */
#include <string.h>

#include "chain/log/merkle.h"
#include "common/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_frontier f;
    struct kedge_hash before, after, leaf;
    struct kedge_buf same;
    if (kedge_frontier_decode(kedge_view_of(data, len), &f) != KEDGE_OK) {
        return 0;
    }
    KEDGE_ASSERT(len == 8 + (size_t)kedge_frontier_peak_count(&f) * KEDGE_HASH_LEN);
    kedge_buf_init(&same, sizeof f);
    kedge_frontier_encode(&f, &same);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&same), kedge_view_of(data, len)));
    kedge_buf_deinit(&same);
    kedge_frontier_root(&f, &before);
    kedge_merkle_leaf(kedge_view_of(data, len), &leaf);
    uint64_t size = f.size;
    int err = kedge_frontier_append(&f, &leaf);
    KEDGE_ASSERT(f.size == size + (err ? 0 : 1));
    kedge_frontier_root(&f, &after);
    KEDGE_ASSERT(err ? kedge_hash_eq(&before, &after) : !kedge_hash_eq(&before, &after));
    return 0;
}
