/* Internal to net: one TLS identity with its rule for peers. OpenSSL's types stay in the .c files. */
#ifndef KEDGE_COMMON_NET_TLS_H
#define KEDGE_COMMON_NET_TLS_H

#include "common/base/diag.h"
#include "crypto/sign.h"

struct kedgei_tls;

/* A server (pinned NULL) takes any Ed25519 key, a client only the pinned one. `key` is read during new
 * only. */
KEDGE_NODISCARD int kedgei_tls_new(bool server, const struct kedge_key_pair *key,
                                   const struct kedge_public_key *pinned, struct kedgei_tls **ret_tls,
                                   struct kedge_diag *reterr);
/* For clients that are not ours (https): they show no certificate; we show a self-signed one of `key`, or,
 * unless NULL, the chain of certificate_file with the private key of key_file (both PEM; the key unencrypted
 * and for its owner only). KEDGE_E_KEY and the errors of reading name the file. */
KEDGE_NODISCARD int kedgei_tls_web_new(const struct kedge_key_pair *key, const char *certificate_file,
                                       const char *key_file, struct kedgei_tls **ret_tls,
                                       struct kedge_diag *reterr);
/* After all streams that use it. NULL is fine. */
void kedgei_tls_free(struct kedgei_tls *tls);

#endif
