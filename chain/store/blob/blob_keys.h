/* The keys of a tenant's encrypted blobs: a folder of private key files (crypto/keyfile.h), each named after
 * the job whose updates it is for, "JOB.pem". What encrypts is derived from the seed; the public half only
 * names the key in the files. A key may be sealed with a passphrase (`kedge key protect`): it is asked for at
 * the first use. New keys are 0600, and sealed when the owner's own key is, ../../statement.pem or
 * ../../tls.pem. Destroying a key makes every copy of what it encrypted noise. Thread-safe. */
#ifndef KEDGE_CHAIN_STORE_BLOB_BLOB_KEYS_H
#define KEDGE_CHAIN_STORE_BLOB_BLOB_KEYS_H

#include "chain/store/blob/blob_cipher.h"
#include "common/base/diag.h"
#include "common/base/text.h"

struct kedge_blob_keys;

/* Looks what keys there are; the folder need not be there. Unseals nothing. */
KEDGE_NODISCARD int kedge_blob_keys_open(const char *dir, struct kedge_blob_keys **ret,
                                         struct kedge_diag *reterr);
/* Overwrites what was read. NULL is fine. */
void kedge_blob_keys_close(struct kedge_blob_keys *keys);
/* A key file from elsewhere, or a folder of such, for reading. KEDGE_E_NOT_FOUND, errors of reading. */
KEDGE_NODISCARD int kedge_blob_keys_add(struct kedge_blob_keys *keys, const char *path,
                                        struct kedge_diag *reterr);
/* How many are known; NULL: none. */
size_t kedge_blob_keys_count(struct kedge_blob_keys *keys);

/* The key of that id; wipe it. KEDGE_E_SEALED: it is not here. Errors of reading. NULL: no keys. */
KEDGE_NODISCARD int kedge_blob_keys_find(struct kedge_blob_keys *keys, const struct kedge_blob_key_id *id,
                                         struct kedge_seed *ret, struct kedge_diag *reterr);
/* The key of that name, which is made, durably, when there is none. */
KEDGE_NODISCARD int kedge_blob_keys_get(struct kedge_blob_keys *keys, const struct kedge_id *name,
                                        struct kedge_blob_key_id *ret_id, struct kedge_seed *ret,
                                        struct kedge_diag *reterr);
/* Name of the i-th key ("" for a file from elsewhere that is called otherwise) and its id; false behind the
 * last. Order may change when keys come and go. */
bool kedge_blob_keys_at(struct kedge_blob_keys *keys, size_t i, struct kedge_id *ret_name,
                        struct kedge_blob_key_id *ret_id);
/* Overwrites the key's file, removes it, durably, and forgets the key. KEDGE_E_NOT_FOUND. On media that do
 * not write in place the old bytes may stay. */
KEDGE_NODISCARD int kedge_blob_keys_destroy(struct kedge_blob_keys *keys, const struct kedge_id *name,
                                            struct kedge_diag *reterr);
/* Ends what a crash cut off in the middle of destroying. For who writes; before anything else is destroyed.
 */
KEDGE_NODISCARD int kedge_blob_keys_finish(struct kedge_blob_keys *keys, struct kedge_diag *reterr);

#endif
