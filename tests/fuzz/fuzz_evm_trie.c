/* Trie proofs from anywhere: input = key length, key, then nodes, each behind a length of two bytes. The root
 * is the hash of the first node, so that the walk gets beyond it. */
#include "chain/anchor/evm_trie.h"
#include "chain/anchor/keccak256.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_reader r = kedge_reader_of(kedge_view_of(data, len));
    struct kedge_view nodes[KEDGE_EVM_TRIE_NODES_MAX], value;
    struct kedge_hash root = {{0}};
    size_t count = 0;
    struct kedge_view key = kedge_read_bytes(&r, kedge_read_u8(&r) % (KEDGE_EVM_TRIE_KEY_MAX + 2));
    while (r.rest.len > 0 && !r.failed && count < KEDGE_EVM_TRIE_NODES_MAX) {
        nodes[count++] = kedge_read_bytes(&r, kedge_read_u16(&r));
    }
    if (r.failed || count == 0) {
        return 0;
    }
    kedge_keccak256(nodes[0], &root);
    if (kedge_evm_trie_verify(&root, key, nodes, count, &value) == KEDGE_OK) {
        KEDGE_ASSERT(value.len > 0 && value.ptr >= data && value.ptr + value.len <= data + len);
    }
    return 0;
}
