/* A witness's folder: who it is, whom it watches, its keys; and copies of the logs beside them
 * (chain/state/copy.h).
 *
 *   DIR/witness.json             names, the coordinator's address and key, the logs' verifier keys,
 *                              the tenant's first admin key
 *   DIR/keys/tls.pem cosign.pem  for reading, and for cosigning only (0600)
 *   DIR/cosigned/{main,own}.note what it cosigned last
 *   DIR/evidence/                what convicts a log */
#ifndef KEDGE_CLI_WITNESS_WITNESS_FOLDER_H
#define KEDGE_CLI_WITNESS_WITNESS_FOLDER_H

#include <jansson.h>

#include "chain/log/note.h"
#include "common/base/os/file.h"
#include "common/base/text.h"

enum { KEDGE_WITNESS_ADDRESS_MAX = 256 };

struct kedge_witness_folder {
    char deployment[129];
    struct kedge_id tenant, witness;
    char name[KEDGE_KEY_NAME_MAX + 1]; /* of its cosignature key */
    char address[KEDGE_WITNESS_ADDRESS_MAX];
    struct kedge_public_key server_key;
    struct kedge_public_key admin_key; /* entry 0 of the tenant's ledger, from the trust file */
    struct kedge_vkey main_log, log;
    struct kedge_key_pair tls, cosign; /* wipe with kedge_witness_folder_wipe */
};

/* Makes folder, keys and witness.json of what `w` says (its key pairs are filled in). KEDGE_E_EXISTS: there
 * is a witness already. */
KEDGE_NODISCARD int kedge_witness_folder_create(const char *dir, struct kedge_witness_folder *w,
                                                struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_witness_folder_read(const char *dir, struct kedge_witness_folder *ret,
                                              struct kedge_diag *reterr);
void kedge_witness_folder_wipe(struct kedge_witness_folder *w);
/* A log's or witness's verifier key as text (C2SP signed-note); a new reference, NULL without memory. */
json_t *kedge_witness_vkey(const struct kedge_vkey *vkey);

#endif
