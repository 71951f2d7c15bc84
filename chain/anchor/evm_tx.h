/* Transactions of Ethereum-compatible chains: addresses, EIP-155 (legacy with chain id) and EIP-1559 bytes,
 * and who signed them. Amounts are wei in 64 bits (up to 18.4 ether), which bounds what Kedge can ever spend
 * by one transaction. Pure; the key is used through crypto/secp256k1.h. */
#ifndef KEDGE_CHAIN_ANCHOR_EVM_TX_H
#define KEDGE_CHAIN_ANCHOR_EVM_TX_H

#include "crypto/secp256k1.h"

enum {
    KEDGE_EVM_ADDRESS_LEN = 20,
    KEDGE_EVM_RAW_MAX = 8192, /* bytes of a transaction that is read or made: an anchor has about 250 */
};

struct kedge_evm_address {
    uint8_t b[KEDGE_EVM_ADDRESS_LEN];
};
bool kedge_evm_address_eq(const struct kedge_evm_address *a, const struct kedge_evm_address *b);
/* "0x" and 40 hex digits of either case; with mixed case the checksum (EIP-55) must be right. KEDGE_E_FORMAT.
 */
KEDGE_NODISCARD int kedge_evm_address_parse(struct kedge_view text, struct kedge_evm_address *ret);
/* With checksum case (EIP-55). */
enum { KEDGE_EVM_ADDRESS_TEXT = 2 + 2 * KEDGE_EVM_ADDRESS_LEN + 1 };
void kedge_evm_address_text(const struct kedge_evm_address *a, char out[KEDGE_EVM_ADDRESS_TEXT]);
/* Last 20 bytes of keccak(X ‖ Y). */
void kedge_evm_address_of_key(const struct kedge_secp_public *key, struct kedge_evm_address *ret);
/* Of the contract that `sender` creates by its transaction number `nonce`: keccak(RLP[sender, nonce]). */
void kedge_evm_address_of_contract(const struct kedge_evm_address *sender, uint64_t nonce,
                                   struct kedge_evm_address *ret);

enum kedge_evm_tx_kind { KEDGE_EVM_EIP155, KEDGE_EVM_EIP1559 };

struct kedge_evm_tx {
    enum kedge_evm_tx_kind kind;
    uint64_t chain_id; /* EIP-155: at most (2^64 − 37) / 2 */
    uint64_t nonce, gas;
    uint64_t max_fee;      /* per gas; EIP-155: the gas price */
    uint64_t priority_fee; /* per gas; EIP-1559 only, at most max_fee */
    uint64_t value;
    bool creates;                /* makes a contract: `to` is absent */
    struct kedge_evm_address to; /* unless creates */
    struct kedge_view data;      /* borrowed */
};

/* Appends the bytes whose keccak is signed. KEDGE_E_ARG: fields out of range. */
KEDGE_NODISCARD int kedge_evm_tx_preimage(const struct kedge_evm_tx *tx, struct kedge_buf *out);
/* Appends the signed transaction; ret_hash, its name on the chain, may be NULL. KEDGE_E_ARG, _KEY, _NOMEM. */
KEDGE_NODISCARD int kedge_evm_tx_sign(const struct kedge_evm_tx *tx, const struct kedge_secp_secret *secret,
                                      struct kedge_buf *out, struct kedge_hash *ret_hash);
/* Reads a signed transaction and recovers who signed it. ret_tx borrows raw. KEDGE_E_FORMAT: not exactly one
 * transaction of the two kinds with an empty access list and amounts of 64 bits; KEDGE_E_VERIFY: no key made
 * this signature. Either of ret_sender and ret_hash may be NULL. */
KEDGE_NODISCARD int kedge_evm_tx_decode(struct kedge_view raw, struct kedge_evm_tx *ret_tx,
                                        struct kedge_evm_address *ret_sender, struct kedge_hash *ret_hash);
/* gas · max_fee + value: the most it can cost. KEDGE_E_OVERFLOW beyond 64 bits. */
KEDGE_NODISCARD int kedge_evm_tx_cost(const struct kedge_evm_tx *tx, uint64_t *ret_wei);

#endif
