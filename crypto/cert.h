/* Self-signed Ed25519 X.509 v3 certificates that carry a key through TLS. Peers are pinned by that key:
 * nothing else in the certificate is trusted, and it never expires (RFC 5280 §4.1.2.5: 99991231235959Z), so a
 * device needs no clock. */
#ifndef KEDGE_CRYPTO_CERT_H
#define KEDGE_CRYPTO_CERT_H

#include "common/base/bytes.h"
#include "crypto/sign.h"

enum { KEDGE_CERT_MAX = 16 * 1024, KEDGE_CERT_NAME_MAX = 64 }; /* bytes of DER or PEM; of the common name */

/* Appends one certificate in PEM: subject and issuer CN = common_name (1 to 64 bytes), subjectAltName URI
 * "kedge:<hex public key>". The same key and name give the same bytes. */
KEDGE_NODISCARD int kedge_cert_self_signed(const struct kedge_key_pair *pair, const char *common_name,
                                           struct kedge_buf *ret_pem);

#endif
