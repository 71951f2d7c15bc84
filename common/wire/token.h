/* Enrolment tokens: what a site needs to know before it can speak to a coordinator, as one line of text.
 * Pure.
 *
 *   kedge-enroll-1.<base64url without padding>
 *
 * over STR address, HASH server_key, ID tenant, ID site, HASH secret, u64 expires (fields as in
 * messages.def) and a CRC-32 of them, which tells a mistyped token from an unknown one. One spelling
 * only. A token is a secret: any holder of it can enrol one device under that name, once, until it
 * expires. */
#ifndef KEDGE_COMMON_WIRE_TOKEN_H
#define KEDGE_COMMON_WIRE_TOKEN_H

#include "common/base/diag.h"
#include "common/wire/messages.h"

enum {
    KEDGE_TOKEN_ADDRESS_MAX = 255, /* characters of the address: a host name has at most 253 */
    KEDGE_TOKEN_TEXT_MAX = 640,    /* characters of the text, NUL included */
};

struct kedge_token {
    char address[KEDGE_TOKEN_ADDRESS_MAX + 1]; /* "tls+tcp://host:port" */
    uint8_t server_key[KEDGE_WIRE_HASH];       /* the coordinator's raw Ed25519 public key */
    struct kedge_id tenant, site;
    uint8_t secret[KEDGE_WIRE_HASH];
    uint64_t expires; /* seconds since 1970; 0: does not expire */
};

/* Writes the text with its NUL. KEDGE_E_ARG: address empty or not printable ASCII, or an invalid
 * identifier. */
KEDGE_NODISCARD int kedge_token_encode(const struct kedge_token *token, char out[KEDGE_TOKEN_TEXT_MAX]);
/* Reads exactly what kedge_token_encode writes (no white space around it), else KEDGE_E_FORMAT with a
 * diagnostic that does not repeat the text. Expiry is not judged here. */
KEDGE_NODISCARD int kedge_token_decode(struct kedge_view text, struct kedge_token *ret,
                                       struct kedge_diag *reterr);

#endif
