/* A node's JSON-RPC (ethereum.org/developers/docs/apis/json-rpc): asks what the state machine wants to know,
 * reads answers strictly (quantities without leading zeros, data of the right length). One thread. */
#ifndef KEDGE_CHAIN_ANCHOR_HOST_EVM_RPC_H
#define KEDGE_CHAIN_ANCHOR_HOST_EVM_RPC_H

#include "chain/anchor/evm_anchor.h"
#include "chain/anchor/evm_evidence.h"

enum { KEDGE_EVM_REPLY_MAX = 4 * 1024 * 1024, KEDGE_EVM_RPC_MS = 20000 };

struct kedge_evm_rpc;
KEDGE_NODISCARD int kedge_evm_rpc_open(const char *url, struct kedge_evm_rpc **ret,
                                       struct kedge_diag *reterr);
void kedge_evm_rpc_close(struct kedge_evm_rpc *rpc); /* NULL is fine */

/* Any CALL of the machine. The answer's err: KEDGE_E_DENIED with the node's words when it answered by an
 * error. */
void kedge_evm_rpc_call(struct kedge_evm_rpc *rpc, const struct kedge_evm_config *config,
                        const struct kedge_evm_effect *fx, struct kedge_evm_answer *ret);

/* Appends the code at an address (eth_getCode); none is no error. */
KEDGE_NODISCARD int kedge_evm_rpc_code(struct kedge_evm_rpc *rpc, const struct kedge_evm_address *address,
                                       struct kedge_buf *ret, struct kedge_diag *reterr);
/* Address and success of the contract that a transaction made. KEDGE_E_NOT_FOUND: not mined yet. */
KEDGE_NODISCARD int kedge_evm_rpc_created(struct kedge_evm_rpc *rpc, const struct kedge_hash *tx,
                                          struct kedge_evm_address *ret_address, bool *ret_succeeded,
                                          struct kedge_diag *reterr);

/* Fills in what needs the node for an auditor without one: the block's header and the state proof of the
 * contract's head, kept in e->bytes, which must be unused so far and is the caller's to free. Each is left
 * out when the node does not give it or it does not fit together. */
void kedge_evm_rpc_evidence(struct kedge_evm_rpc *rpc, struct kedge_evm_evidence *e);

#endif
