/* The contract that roots are anchored in, as bytes: contract/KedgeAnchor.sol compiled by solc 0.8.37 with
 * the optimizer at 200 runs, evmVersion paris (no opcode that older chains lack), no metadata behind the
 * code. tests/interop/anvil compiles the source again and compares. Pure. */
#ifndef KEDGE_CHAIN_ANCHOR_EVM_CONTRACT_H
#define KEDGE_CHAIN_ANCHOR_EVM_CONTRACT_H

#include "common/base/bytes.h"

enum { KEDGE_EVM_CONTRACT_LEN = 741, KEDGE_EVM_CONTRACT_HEAD = 31 };

/* What a transaction without `to` carries; the last part of it, behind KEDGE_EVM_CONTRACT_HEAD bytes, is what
 * the chain then keeps as the contract's code (eth_getCode). */
void kedge_evm_contract_code(uint8_t out[KEDGE_EVM_CONTRACT_LEN]);

#endif
