/* The open uploads: each site has one file at most that it is sending. The code that works on it marks it
 * busy and gives it back; a file that nobody works on is closed when its site is revoked, when nothing came
 * for KEDGE_UPLOAD_IDLE_S, and when the coordinator ends. On the loop thread but for what is said of `file`.
 */
#ifndef KEDGE_COORDINATOR_DAEMON_SITES_UPLOADS_H
#define KEDGE_COORDINATOR_DAEMON_SITES_UPLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/hash.h"

struct kedge_host;
struct kedge_upload;

struct kedge_site_upload {
    struct kedge_upload *file; /* NULL: none is open; a worker's while is_busy */
    struct kedge_hash digest;  /* announced; also of one that is closed again */
    bool is_busy;              /* a worker has it, or a file that is a blob already */
    bool is_whole;             /* all bytes are here, and they have the digest */
    /* While it idles: since when, and its neighbours in the list by that time. */
    bool is_idle;
    uint64_t idle_since_ns;
    uint32_t older, newer; /* sites; KEDGE_COORD_NONE: the end */
};

/* The idle ones, the longest first. */
struct kedge_idle_uploads {
    bool has_any;
    uint32_t oldest, newest; /* sites, when there is any */
};

/* From here on the site's upload is a worker's; it must not be busy. */
struct kedge_site_upload *kedge_uploads_take(struct kedge_host *h, uint32_t site);
/* The worker is done with it. What a revoked site has sent is removed. */
void kedge_uploads_give_back(struct kedge_host *h, uint32_t site, uint64_t now_ns);
/* Removes what came of it so far: other bytes take its place, or nobody wants these. While it is busy nothing
 * happens, except for a revoked site, whose file goes when it is given back. */
void kedge_uploads_drop(struct kedge_host *h, uint32_t site);
/* When the next one has idled for too long; KEDGE_TIME_NEVER: none will. */
uint64_t kedge_uploads_due_ns(const struct kedge_host *h);
/* Closes those that idle too long. What has come stays in staging, where the site's next piece finds it. */
void kedge_uploads_close_idle(struct kedge_host *h, uint64_t now_ns);
/* Closes all, busy ones too: no worker runs any more. What has come stays in staging. */
void kedge_uploads_close_all(struct kedge_host *h);

#endif
