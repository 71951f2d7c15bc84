/* Internal to net: names to addresses, without keeping the caller waiting when the system's resolver does. */
#ifndef KEDGE_COMMON_NET_RESOLVE_H
#define KEDGE_COMMON_NET_RESOLVE_H

#include "common/base/err.h"

struct addrinfo;
struct kedgei_resolution;

/* Begins, on a thread of its own unless the host is a number. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_resolve_begin(const char *host, const char *port, struct kedgei_resolution **ret);
/* Readable once there is an answer. */
int kedgei_resolve_fd(const struct kedgei_resolution *r);
/* The answer, borrowed; NULL when the name means nothing, or no answer has come yet. */
const struct addrinfo *kedgei_resolve_list(struct kedgei_resolution *r);
/* At any time: a thread that is still asking frees it later. NULL is fine. */
void kedgei_resolve_end(struct kedgei_resolution *r);

#endif
