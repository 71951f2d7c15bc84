/* A node's answers, from anywhere, read as the answer to each question. */
#include <string.h>

#include "chain/anchor/host/evm_rpc_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct kedge_evm_config config = {.chain_id = 1};
    static struct kedge_evm_answer answer;
    struct kedge_evm_effect fx;
    json_t *result = NULL;
    if (kedgei_evm_open_reply(kedge_view_of(data, len), 1, "method", &result, NULL) != KEDGE_OK) {
        return 0;
    }
    memset(&fx, 0, sizeof fx);
    for (int method = KEDGE_EVM_CALL_CHAIN_ID; method <= KEDGE_EVM_CALL_SEND; method++) {
        fx.method = (enum kedge_evm_method)method;
        memset(&answer, 0, sizeof answer);
        (void)kedgei_evm_get_result(result, &config, &fx, &answer);
    }
    json_decref(result);
    return 0;
}
