/* What only a node can tell once and an auditor wants to keep: code, created contracts, headers, state
 * proofs. */
#include <string.h>

#include "chain/anchor/host/evm_rpc_impl.h"
#include "chain/anchor/keccak256.h"
#include "chain/anchor/rlp.h"
#include "common/base/try.h"

enum { PROOF_MAX = 256 * 1024 };

int kedge_evm_rpc_code(struct kedge_evm_rpc *rpc, const struct kedge_evm_address *address,
                       struct kedge_buf *ret, struct kedge_diag *reterr)
{
    json_t *result KEDGE_CLEANUP(json_decrefp) = NULL;
    KEDGE_TRY(kedgei_evm_ask(
        rpc, "eth_getCode",
        json_pack("[o,s]", kedgei_evm_data_json(kedge_view_of(address->b, sizeof address->b)), "latest"),
        &result, reterr));
    if (!kedgei_evm_bytes(result, ret)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "eth_getCode: a malformed answer");
    }
    return KEDGE_OK;
}

int kedge_evm_rpc_created(struct kedge_evm_rpc *rpc, const struct kedge_hash *tx,
                          struct kedge_evm_address *ret_address, bool *ret_succeeded,
                          struct kedge_diag *reterr)
{
    json_t *result = NULL;
    uint64_t status = 0;
    int err = kedgei_evm_ask(rpc, "eth_getTransactionReceipt",
                             json_pack("[o]", kedgei_evm_data_json(kedge_view_of(tx->b, sizeof tx->b))),
                             &result, reterr);
    if (!err && json_is_null(result)) {
        err = KEDGE_E_NOT_FOUND;
    } else if (!err
               && (!kedgei_evm_quantity(json_object_get(result, "status"), &status)
                   || !kedgei_evm_data(json_object_get(result, "contractAddress"), ret_address->b,
                                       sizeof ret_address->b))) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "eth_getTransactionReceipt: a malformed answer");
    }
    *ret_succeeded = status == 1;
    json_decref(result);
    return err;
}

/* ---- the header ---- */

/* The fields in the order of the header's RLP; a fork appends to them, so the list may end at any optional
 * one. 'd' data, 'q' an integer. */
static const struct {
    const char *key;
    char kind;
} header_fields[] = {
    {"parentHash", 'd'},       {"sha3Uncles", 'd'},   {"miner", 'd'},         {"stateRoot", 'd'},
    {"transactionsRoot", 'd'}, {"receiptsRoot", 'd'}, {"logsBloom", 'd'},     {"difficulty", 'q'},
    {"number", 'q'},           {"gasLimit", 'q'},     {"gasUsed", 'q'},       {"timestamp", 'q'},
    {"extraData", 'd'},        {"mixHash", 'd'},      {"nonce", 'd'},         {"baseFeePerGas", 'q'},
    {"withdrawalsRoot", 'd'},  {"blobGasUsed", 'q'},  {"excessBlobGas", 'q'}, {"parentBeaconBlockRoot", 'd'},
    {"requestsHash", 'd'},
};

static bool put_field(struct kedge_buf *items, const json_t *value, char kind)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    uint64_t v;
    kedge_buf_init(&bytes, KEDGE_EVM_HEADER_MAX);
    if (kind == 'q') {
        bool good = kedgei_evm_quantity(value, &v);
        if (good) {
            kedge_rlp_put_u64(items, v);
        }
        return good;
    }
    if (!kedgei_evm_bytes(value, &bytes)) {
        return false;
    }
    kedge_rlp_put_string(items, kedge_buf_view(&bytes));
    return true;
}

/* Appends the header made from a block's JSON, if it then has the block's hash: made from parts, but proven
 * by the hash. */
static bool put_header(const json_t *block, const struct kedge_hash *wanted, struct kedge_buf *out)
{
    struct kedge_buf items KEDGE_CLEANUP(kedge_buf_deinit), header KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash hash;
    kedge_buf_init(&items, KEDGE_EVM_HEADER_MAX);
    kedge_buf_init(&header, KEDGE_EVM_HEADER_MAX);
    for (size_t i = 0; i < sizeof header_fields / sizeof header_fields[0]; i++) {
        const json_t *value = json_object_get(block, header_fields[i].key);
        if (!value) {
            break;
        }
        if (!put_field(&items, value, header_fields[i].kind)) {
            return false;
        }
    }
    kedge_rlp_put_list(&header, kedge_buf_view(&items));
    kedge_keccak256(kedge_buf_view(&header), &hash);
    if (items.err || header.err || !kedge_hash_eq(&hash, wanted)) {
        return false;
    }
    kedge_buf_put(out, header.ptr, header.len);
    return out->err == KEDGE_OK;
}

/* ---- the state proof ---- */

static bool put_nodes(const json_t *array, struct kedge_buf *bytes, struct kedge_evm_nodes *ret)
{
    size_t count = json_array_size(array);
    if (count == 0 || count > KEDGE_EVM_TRIE_NODES_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = bytes->len;
        if (!kedgei_evm_bytes(json_array_get(array, i), bytes)) {
            return false;
        }
        ret->node[i] = kedge_view_of(bytes->ptr + at, bytes->len - at);
    }
    ret->count = count;
    return true;
}

static bool put_state(const json_t *proof, struct kedge_evm_evidence *e)
{
    const json_t *storage = json_object_get(proof, "storageProof");
    return put_nodes(json_object_get(proof, "accountProof"), &e->bytes, &e->account)
           && put_nodes(json_object_get(json_array_get(storage, 0), "proof"), &e->bytes, &e->packed)
           && put_nodes(json_object_get(json_array_get(storage, 1), "proof"), &e->bytes, &e->root);
}

/* Each piece may be missing: then evidence proves less, but nothing false. A block with fields that this
 * program does not know hashes to something else and is left out; and without a header that has the block's
 * hash no state proof is asked for, as nothing would tie it to the block. */
void kedge_evm_rpc_evidence(struct kedge_evm_rpc *rpc, struct kedge_evm_evidence *e)
{
    struct kedge_hash packed, root;
    json_t *block = NULL, *proof = NULL;
    struct kedge_diag d;
    kedge_buf_init(&e->bytes, PROOF_MAX);
    if (kedge_buf_reserve(&e->bytes, PROOF_MAX) != KEDGE_OK /* at once: views into it must not move */
        || kedgei_evm_ask(rpc, "eth_getBlockByNumber",
                          json_pack("[o,b]", kedgei_evm_quantity_json(e->block), 0), &block, &d)
               != KEDGE_OK) {
        return;
    }
    size_t at = e->bytes.len;
    if (put_header(block, &e->block_hash, &e->bytes)) {
        e->header = kedge_view_of(e->bytes.ptr + at, e->bytes.len - at);
        kedge_evm_head_slots(&e->sender, &e->point.ns, &packed, &root);
        json_t *slots = json_pack("[o,o]", kedgei_evm_data_json(kedge_view_of(packed.b, sizeof packed.b)),
                                  kedgei_evm_data_json(kedge_view_of(root.b, sizeof root.b)));
        json_t *params =
            json_pack("[o,o,o]", kedgei_evm_data_json(kedge_view_of(e->contract.b, sizeof e->contract.b)),
                      slots, kedgei_evm_quantity_json(e->block));
        if (kedgei_evm_ask(rpc, "eth_getProof", params, &proof, &d) == KEDGE_OK) {
            e->has_state = put_state(proof, e);
        }
    }
    if (e->has_state && kedge_evm_evidence_check(e, &d) != KEDGE_OK) {
        e->has_state = false; /* another anchor of ours was in the same block, or the node is wrong */
    }
    json_decref(block);
    json_decref(proof);
}
