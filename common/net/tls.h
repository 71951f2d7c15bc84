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
/* After all streams that use it. NULL is fine. */
void kedgei_tls_free(struct kedgei_tls *tls);

#endif
