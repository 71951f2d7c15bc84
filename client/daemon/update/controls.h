/* Which control variate of a job goes with what the coordinator has (SCAFFOLD;
 * docs/modules/client-daemon.md). A site's control variate changes with an update, and only if that update is
 * accepted: then the server adds the same change. So a variate is named by the update that it goes with, and
 * this table, a part of SITE/memory, says which one counts. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_UPDATE_CONTROLS_H
#define KEDGE_CLIENT_DAEMON_UPDATE_CONTROLS_H

#include "client/core/site.h"

enum { KEDGE_CONTROLS_MAX = 16 };

struct kedge_control_row {
    struct kedge_id job;
    struct kedge_site_digest accepted; /* the last update with a receipt; zero: none, the variate is zero */
    struct kedge_site_digest pending;  /* signed last, its receipt not yet seen; zero: none */
};
/* The jobs trained for last; the oldest first. */
struct kedge_controls {
    uint32_t count;
    struct kedge_control_row items[KEDGE_CONTROLS_MAX];
};

/* This update was signed for the job. */
void kedge_controls_signed(struct kedge_controls *c, const struct kedge_id *job,
                           const struct kedge_site_digest *update);
/* A receipt came: KEDGE_OK again does no harm. Updates of other jobs are none of its business. */
void kedge_controls_accepted(struct kedge_controls *c, const struct kedge_id *job,
                             const struct kedge_site_digest *update);
/* The update that the variate in force goes with; zero: it is zero. */
struct kedge_site_digest kedge_controls_in_force(const struct kedge_controls *c, const struct kedge_id *job);

#endif
