/* Internal to net: the bytes that a server holds in memory, in two accounts, so that polls and heartbeats
 * never wait for models. Pure; the caller locks.
 *
 * A large body may come only while one more frame would fit behind it. So whatever the bodies that have
 * come so far wait for (a reply of at most one frame), the first of them gets it: nothing locks up. */
#ifndef KEDGE_COMMON_NET_BUDGET_H
#define KEDGE_COMMON_NET_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

enum { KEDGEI_SMALL_MAX = 4096 }; /* bytes of a request that asks for no large reply, and of its reply */

struct kedgei_account {
    size_t used, limit;
};

struct kedgei_budget {
    struct kedgei_account small, large;
    size_t frame_max;
    size_t share; /* of the large account: what one connection may hold */
};

/* An eighth of `bytes` is for small requests; raised to two frames and that eighth. */
void kedgei_budget_init(struct kedgei_budget *b, size_t bytes, size_t frame_max);
bool kedgei_budget_is_small(size_t len);
/* Whether a body may come, and whether `more` bytes for a reply may be promised; `own`: what the connection
 * holds of the large account. They only look. */
bool kedgei_budget_fits_body(const struct kedgei_budget *b, size_t len);
bool kedgei_budget_fits_reply(const struct kedgei_budget *b, size_t more);
bool kedgei_budget_fits_share(const struct kedgei_budget *b, size_t own, size_t more);

#endif
