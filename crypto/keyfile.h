/* Key files that other tools read: private keys as PKCS#8 PEM (RFC 5958, 8410), public keys as SPKI PEM, both
 * Ed25519. Private key files are 0600; one that group or others may touch is refused. */
#ifndef KEDGE_CRYPTO_KEYFILE_H
#define KEDGE_CRYPTO_KEYFILE_H

#include "common/base/diag.h"
#include "crypto/sealed.h"
#include "crypto/sign.h"

enum { KEDGE_PEM_MAX = 4096 }; /* bytes of one key file */

/* Text forms. put appends to out; the caller wipes buffers that hold private keys. KEDGE_E_KEY from decoding:
 * not one unencrypted Ed25519 key (or, for public keys, a point that may not be trusted). */
KEDGE_NODISCARD int kedge_pem_put_private(struct kedge_buf *out, const struct kedge_key_pair *pair);
KEDGE_NODISCARD int kedge_pem_put_public(struct kedge_buf *out, const struct kedge_public_key *key);
KEDGE_NODISCARD int kedge_pem_get_private(struct kedge_view pem, struct kedge_key_pair *ret_pair);
KEDGE_NODISCARD int kedge_pem_get_public(struct kedge_view pem, struct kedge_public_key *ret_key);

/* Files; writing is durable and replaces. Errors: KEDGE_E_NOT_FOUND, _DENIED (permissions), _KEY, _TOO_LONG,
 * _IO. */
KEDGE_NODISCARD int kedge_keyfile_write_private(const char *path, const struct kedge_key_pair *pair,
                                                struct kedge_diag *reterr);
/* A sealed file (crypto/sealed.h) too, with the passphrase that crypto/passphrase.h gets; with reterr NULL
 * nobody is asked. KEDGE_E_VERIFY: it is another one. */
KEDGE_NODISCARD int kedge_keyfile_read_private(const char *path, struct kedge_key_pair *ret_pair,
                                               struct kedge_diag *reterr);
/* Writes it sealed. Also KEDGE_E_NOMEM, KEDGE_E_ARG. */
KEDGE_NODISCARD int kedge_keyfile_seal(const char *path, const struct kedge_key_pair *pair,
                                       struct kedge_view passphrase, const struct kedge_seal_cost *cost,
                                       struct kedge_diag *reterr);
/* Whether the file holds a sealed key; if so, the public key that it claims. Asks nobody. */
KEDGE_NODISCARD int kedge_keyfile_is_sealed(const char *path, bool *ret, struct kedge_public_key *ret_public,
                                            struct kedge_diag *reterr);
/* A new key at `path`, guarded as the one at `like` is: sealed with the same passphrase at the same cost when
 * that one is sealed. */
KEDGE_NODISCARD int kedge_keyfile_make_like(const char *path, const char *like,
                                            struct kedge_key_pair *ret_pair, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_keyfile_read_public(const char *path, struct kedge_public_key *ret_key,
                                              struct kedge_diag *reterr);

#endif
