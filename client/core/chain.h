/* What a site demands of the main chain: it only grows. Pure.
 *
 * The coordinator shows a checkpoint that is durable in its log, and makes an answer after it has read the
 * request. So an answer shows at least what the site had seen when it asked; one that shows less comes from
 * a log that was cut, such as a restored backup. Answers may overtake each other, though: one that was made
 * before another, and read after it, shows less than what the site has seen by now, and is only late.
 *
 * What this can not tell: a chain that was cut, grew beyond what the site has seen while the site was away,
 * and is then shown. That takes a consistency proof: `kedge audit verify --seen SITE/seen-main`. */
#ifndef KEDGE_CLIENT_CORE_CHAIN_H
#define KEDGE_CLIENT_CORE_CHAIN_H

#include "client/core/site.h"

enum kedge_site_chain_verdict {
    KEDGE_SITE_CHAIN_SAME,    /* what was seen; or nothing is shown and nothing was seen */
    KEDGE_SITE_CHAIN_NEWER,   /* to be remembered */
    KEDGE_SITE_CHAIN_LATE,    /* older than what was seen, but not than what was seen when asking */
    KEDGE_SITE_CHAIN_MISSING, /* nothing is shown though something was seen: no answer */
    KEDGE_SITE_CHAIN_SHORTER, /* the log was cut */
    KEDGE_SITE_CHAIN_FORK,    /* two roots for one size */
};

/* asked_size: size seen when the request was made, at most seen->size. */
enum kedge_site_chain_verdict kedge_site_chain_judge(const struct kedge_site_chain *seen, uint64_t asked_size,
                                                     const struct kedge_site_chain *shown);

#endif
