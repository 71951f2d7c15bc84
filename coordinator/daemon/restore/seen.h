/* When each site was last heard of, kept over restarts in coordinator.lmdb, table "state": seen/TENANT/SITE →
 * be64 unix time in ms. Written by a worker, all sites that were heard of since in one transaction: at most
 * once a minute, at most once a second while there are sites that stand there for the first time, and at a
 * clean stop. After a crash a site's time may thus be a minute old. A write that fails is made up for by the
 * next one. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_SEEN_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/diag.h"

struct kedge_host;

/* In struct kedge_host; on the loop thread. */
struct kedge_seen {
    uint64_t written_ns; /* the last write began then */
    bool busy;           /* a worker writes */
};

/* Is it time to write? first: a site was heard of that has no record yet. Pure. */
bool kedge_seen_is_due(const struct kedge_seen *s, uint64_t now_ns, bool first);
/* The site has just asked for something. */
void kedge_host_saw(struct kedge_host *h, uint32_t site);
/* Once, behind the sites: a damaged record is logged and counts as none. */
KEDGE_NODISCARD int kedge_host_seen_load(struct kedge_host *h, struct kedge_diag *d);
/* Once, when no worker runs any more. */
void kedge_host_seen_flush(struct kedge_host *h);

#endif
