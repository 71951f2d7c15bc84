/* Whose anchors of the main chain outside count. Each kind of anchor reads, writes and asks its own members
 * (kind.h); nobody else knows what they mean. */
#ifndef KEDGE_CHAIN_ANCHOR_TRUST_H
#define KEDGE_CHAIN_ANCHOR_TRUST_H

#include "chain/anchor/evm_tx.h"

struct kedge_trust_anchors {
    bool has_evm; /* only what this account anchored by this contract on this chain */
    uint64_t chain_id;
    struct kedge_evm_address contract, account;
    char *tsa_ca;  /* owned; PEM: certificates under which RFC 3161 time stamps must verify; NULL: none */
    bool required; /* every release must have an anchor that counts */
};
/* "CHAIN:CONTRACT:ACCOUNT", as in "1:0x…:0x…". KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_trust_anchor_parse(const char *text, struct kedge_trust_anchors *into);

#endif
