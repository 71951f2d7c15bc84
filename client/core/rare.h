/* Rare branches of the site's core, made frequent by a stream that the host hands in: see
 * coordinator/core/rare.h. The daemon never does. */
#ifndef KEDGE_CLIENT_CORE_RARE_H
#define KEDGE_CLIENT_CORE_RARE_H

#include "client/core/site.h"
#include "common/base/rng.h"

enum kedge_site_rare_site {
    KEDGE_SITE_RARE_EARLY_BEAT,     /* a heartbeat goes out before it is due */
    KEDGE_SITE_RARE_FETCH_GIVEN_UP, /* a fetch is not tried again, the task is dropped */
    KEDGE_SITE_RARE_LONG_PAUSE,     /* a failure is followed by the longest pause at once */
    KEDGE_SITE_RARE_SHORT_POLL,     /* a poll does not wait */
    KEDGE_SITE_RARE_SUBMIT_FIRST,   /* a result is submitted before its file is there */
    KEDGE_SITE_RARE_COUNT,
};
const char *kedge_site_rare_name(enum kedge_site_rare_site site); /* "early beat" */

struct kedge_site_rare {
    struct kedge_rng rng;
    uint32_t permille;                   /* how often an enabled site fires; 0: all is as in the daemon */
    bool enabled[KEDGE_SITE_RARE_COUNT]; /* which ones this run has */
    uint64_t fired[KEDGE_SITE_RARE_COUNT];
};

/* From now on rare branches are drawn from *rare, which the caller keeps while the core lives; NULL: none
 * are. */
void kedge_site_rare_use(struct kedge_site *s, struct kedge_site_rare *rare);

#endif
