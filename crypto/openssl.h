/* Internal to crypto: helpers over libcrypto's objects. The only header here with third-party types. */
#ifndef KEDGE_CRYPTO_OPENSSL_H
#define KEDGE_CRYPTO_OPENSSL_H

#include <openssl/bio.h>
#include <openssl/evp.h>

#include "crypto/sign.h"

/* Appends what a memory BIO holds. */
KEDGE_NODISCARD int kedgei_bio_take(BIO *bio, struct kedge_buf *out);
/* New reference or NULL. */
EVP_PKEY *kedgei_pkey_private(const struct kedge_key_pair *pair);
/* KEDGE_E_KEY unless key is Ed25519 and valid; NULL is KEDGE_E_KEY. */
KEDGE_NODISCARD int kedgei_pkey_public(EVP_PKEY *key, struct kedge_public_key *ret_key);
/* For OpenSSL's readers of PEM: an encrypted block is an error. Without it OpenSSL asks at the terminal for
 * the passphrase, in the middle of a daemon. */
int kedgei_refuse_passphrase(char *buf, int size, int writing, void *arg);

#endif
