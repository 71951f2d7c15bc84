/* Time stamps of an outside authority (RFC 3161, with OpenSSL's TS): a query over bytes, and the check of the
 * reply. Nothing here talks to a network. A token says that the bytes existed at its time; it is checked with
 * certificates that were valid at that time, which is what RFC 3161 tokens are for, so that it outlives them.
 */
#ifndef KEDGE_CRYPTO_TIMESTAMP_H
#define KEDGE_CRYPTO_TIMESTAMP_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "crypto/hash.h"

enum {
    KEDGE_TSR_MAX = 64 * 1024, /* bytes of a reply: about 1,300 with one certificate, 8,000 with a chain */
    KEDGE_TSA_PEM_MAX = 256 * 1024,
    KEDGE_TSA_CERTS_MAX = 16, /* in one file of certificates */
    KEDGE_TSA_NAME_MAX = 255,
};

struct kedge_timestamp {
    struct kedge_hash imprint; /* SHA-256 of the bytes that it is about */
    int64_t time_s;            /* POSIX seconds */
    char serial[43];           /* hexadecimal, of at most 20 bytes */
    bool has_nonce;            /* of at most 64 bits; longer ones are none of ours */
    uint64_t nonce;
    char policy[80];                        /* object identifier with dots */
    char authority[KEDGE_TSA_NAME_MAX + 1]; /* subject of the signer's certificate, RFC 2253; "" unverified */
};

/* Appends the DER of a query over the SHA-256 of the data, asking for the signer's certificate. nonce: a
 * random number that the token must then have, so that it is known to be made for this query; NULL: none, a
 * reply is recognised by the digest, and the same data give the same query. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_timestamp_query(struct kedge_view data, const uint64_t *nonce,
                                          struct kedge_buf *ret_der);
/* What a reply claims, unchecked: for finding the data that belong to it. KEDGE_E_FORMAT: no RFC 3161 reply
 * with a SHA-256 token, or the authority refused. */
KEDGE_NODISCARD int kedge_timestamp_parse(struct kedge_view reply, struct kedge_timestamp *ret);
/* That an authority under one of the CA certificates (PEM) signed that data existed at ret->time_s. The
 * signer's certificate must be for time stamping only. KEDGE_E_VERIFY, _FORMAT, _KEY (no usable certificate
 * in ca_pem); reterr says what openssl found. */
KEDGE_NODISCARD int kedge_timestamp_verify(struct kedge_view reply, struct kedge_view data,
                                           struct kedge_view ca_pem, struct kedge_timestamp *ret,
                                           struct kedge_diag *reterr);

#endif
