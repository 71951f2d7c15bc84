/* Internal: one request and its answer, and strict readers of hex. */
#ifndef KEDGE_CHAIN_ANCHOR_HOST_EVM_RPC_IMPL_H
#define KEDGE_CHAIN_ANCHOR_HOST_EVM_RPC_IMPL_H

#include <jansson.h>

#include "chain/anchor/host/evm_rpc.h"

/* Asks; steals params. KEDGE_OK: *ret_result (may be JSON null) is the caller's. KEDGE_E_DENIED: the node
 * answered by an error, whose words are the diagnostic. */
KEDGE_NODISCARD int kedgei_evm_ask(struct kedge_evm_rpc *rpc, const char *method, json_t *params,
                                   json_t **ret_result, struct kedge_diag *reterr);
/* Takes "result" out of an answer that has this id, or tells its error, as kedgei_evm_ask does. */
KEDGE_NODISCARD int kedgei_evm_open_reply(struct kedge_view text, uint64_t id_asked, const char *method,
                                          json_t **ret, struct kedge_diag *reterr);
/* Reads a result of fx's method into *ret; false: malformed, and *ret is of no use. */
bool kedgei_evm_get_result(const json_t *result, const struct kedge_evm_config *config,
                           const struct kedge_evm_effect *fx, struct kedge_evm_answer *ret);
/* "0x0" or "0x" and digits without leading zero, up to 64 bits. */
bool kedgei_evm_quantity(const json_t *value, uint64_t *ret);
/* "0x" and exactly len bytes. */
bool kedgei_evm_data(const json_t *value, uint8_t *out, size_t len);
/* "0x" and any bytes, appended. */
bool kedgei_evm_bytes(const json_t *value, struct kedge_buf *out);
/* JSON strings. */
json_t *kedgei_evm_quantity_json(uint64_t v);
json_t *kedgei_evm_data_json(struct kedge_view bytes);

#endif
