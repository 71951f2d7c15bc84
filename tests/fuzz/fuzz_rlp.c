/* RLP and transactions from anywhere: what is accepted has no other spelling. */
#include "chain/anchor/evm_tx.h"
#include "chain/anchor/rlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_view bytes = kedge_view_of(data, len);
    struct kedge_rlp_item item;
    struct kedge_evm_tx tx;
    if (kedge_rlp_decode(bytes, &item) == KEDGE_OK) {
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&b, len + 16);
        if (item.is_list) {
            kedge_rlp_put_list(&b, item.body);
        } else {
            kedge_rlp_put_string(&b, item.body);
        }
        KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), bytes));
    }
    if (kedge_evm_tx_decode(bytes, &tx, NULL, NULL) == KEDGE_OK) {
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&b, KEDGE_EVM_RAW_MAX);
        KEDGE_ASSERT(kedge_evm_tx_preimage(&tx, &b) == KEDGE_OK);
        KEDGE_ASSERT(b.len <= len); /* chain id and two zeros in the place of the signature, at most */
    }
    return 0;
}
