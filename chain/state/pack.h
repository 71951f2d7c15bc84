/* The record of a state folder for somebody else: what an audit reads, and nothing that only the operator
 * needs. No private key, no token, no address. */
#ifndef KEDGE_CHAIN_STATE_PACK_H
#define KEDGE_CHAIN_STATE_PACK_H

#include "common/base/diag.h"

/* Copies the record into `out`, an empty folder, as of one moment (snapshot.h): logs, blobs, what names them
 * (config.json with the deployment alone, tenant.json), high-water marks, cosignatures and anchors; with
 * `update_keys` also the keys that encrypted updates are read with. Run it under kedge_store_guarded. */
KEDGE_NODISCARD int kedge_state_pack(const char *state, const char *out, bool update_keys,
                                     struct kedge_diag *reterr);

#endif
