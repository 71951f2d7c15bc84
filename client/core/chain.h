/* What a site demands of the main chain: it only grows. Pure.
 *
 * The coordinator shows a checkpoint that is durable in its log, and makes an answer after it has read the
 * request. So an answer shows at least what the site had seen when it asked; one that shows less comes from
 * a log that was cut, such as a restored backup. Answers may overtake each other, though: one that was made
 * before another, and read after it, shows less than what the site has seen by now, and is only late.
 *
 * A larger one must prove that it grew out of what was seen when asking; the host checks that proof (RFC 6962
 * §2.1.2). When more has been seen since, a proof from the earlier state says nothing about the later one:
 * such an answer is late, too, and the next one proves it. No task is taken from a late answer: it may belong
 * to another history than the one seen by now.
 *
 * The main chain is never empty, its first entry is the policy. An answer that shows none is no answer, else
 * a coordinator that shows nothing would never be held to anything. */
#ifndef KEDGE_CLIENT_CORE_CHAIN_H
#define KEDGE_CLIENT_CORE_CHAIN_H

#include "client/core/site.h"

enum kedge_site_chain_verdict {
    KEDGE_SITE_CHAIN_SAME,    /* what was seen */
    KEDGE_SITE_CHAIN_NEWER,   /* to be remembered */
    KEDGE_SITE_CHAIN_LATE,    /* not older than what was seen when asking, but more has been seen since */
    KEDGE_SITE_CHAIN_MISSING, /* nothing is shown: no answer */
    KEDGE_SITE_CHAIN_SHORTER, /* the log was cut */
    KEDGE_SITE_CHAIN_FORK,    /* two roots for one size, or a history that does not contain what was seen */
};

/* asked_size: size seen when the request was made, at most seen->size. breaks: what is shown is no smaller
 * than that and not what was seen then, grown. */
enum kedge_site_chain_verdict kedge_site_chain_judge(const struct kedge_site_chain *seen, uint64_t asked_size,
                                                     const struct kedge_site_chain *shown, bool breaks);

#endif
