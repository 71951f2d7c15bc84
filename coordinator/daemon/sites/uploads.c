/* Open uploads. A site has one at most; while a worker writes to it, it is busy and nobody else
 * touches it.
 *
 * Idle uploads lie in a list by the time since when they are idle, so that the loop looks at its
 * oldest end alone. Sites that begin an upload and never go on would otherwise hold a file each for
 * ever. */
#include "coordinator/daemon/sites/uploads.h"

#include "chain/store/blob/blobs.h"
#include "common/base/limits.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"

static const uint64_t IDLE_NS = (uint64_t)KEDGE_UPLOAD_IDLE_S * 1000000000u;

/* ---- the list of those that idle, by the time since when ---- */

static void put_idle(struct kedge_host *h, uint32_t site, uint64_t now_ns)
{
    struct kedge_idle_uploads *list = &h->idle_uploads;
    struct kedge_site_upload *u = &h->sites[site].upload;
    u->is_idle = true;
    u->idle_since_ns = now_ns;
    u->older = list->has_any ? list->newest : KEDGE_COORD_NONE;
    u->newer = KEDGE_COORD_NONE;
    if (list->has_any) {
        h->sites[list->newest].upload.newer = site;
    } else {
        list->oldest = site;
    }
    list->newest = site;
    list->has_any = true;
}

static void take_idle(struct kedge_host *h, uint32_t site)
{
    struct kedge_idle_uploads *list = &h->idle_uploads;
    struct kedge_site_upload *u = &h->sites[site].upload;
    if (!u->is_idle) {
        return;
    }
    if (u->older == KEDGE_COORD_NONE) {
        list->oldest = u->newer;
    } else {
        h->sites[u->older].upload.newer = u->newer;
    }
    if (u->newer == KEDGE_COORD_NONE) {
        list->newest = u->older;
    } else {
        h->sites[u->newer].upload.older = u->older;
    }
    list->has_any = list->oldest != KEDGE_COORD_NONE;
    u->is_idle = false;
}

/* ---- uploads ---- */

struct kedge_site_upload *kedge_uploads_take(struct kedge_host *h, uint32_t site)
{
    struct kedge_site_upload *u = &h->sites[site].upload;
    KEDGE_ASSERT(!u->is_busy);
    take_idle(h, site);
    u->is_busy = true;
    return u;
}

/* Removes the file as well; close_file keeps it, so that the site can go on at the byte. */
static void abort_file(struct kedge_host *h, uint32_t site)
{
    struct kedge_site_upload *u = &h->sites[site].upload;
    take_idle(h, site);
    kedge_upload_abort(u->file);
    u->file = NULL;
    u->is_whole = false;
}

/* The site may have been revoked while the worker wrote. */
void kedge_uploads_give_back(struct kedge_host *h, uint32_t site, uint64_t now_ns)
{
    struct kedge_site_upload *u = &h->sites[site].upload;
    u->is_busy = false;
    if (!h->sites[site].active) {
        abort_file(h, site);
    } else if (u->file) {
        put_idle(h, site, now_ns);
    }
}

void kedge_uploads_drop(struct kedge_host *h, uint32_t site)
{
    if (!h->sites[site].upload.is_busy) {
        abort_file(h, site);
    }
}

static void close_file(struct kedge_host *h, uint32_t site)
{
    struct kedge_site_upload *u = &h->sites[site].upload;
    take_idle(h, site);
    kedge_upload_close(u->file);
    u->file = NULL;
    u->is_whole = false;
}

uint64_t kedge_uploads_due_ns(const struct kedge_host *h)
{
    const struct kedge_idle_uploads *list = &h->idle_uploads;
    return list->has_any ? h->sites[list->oldest].upload.idle_since_ns + IDLE_NS : KEDGE_TIME_NEVER;
}

void kedge_uploads_close_idle(struct kedge_host *h, uint64_t now_ns)
{
    while (now_ns >= kedge_uploads_due_ns(h)) {
        uint32_t site = h->idle_uploads.oldest;
        kedge_log(KEDGE_LOG_INFO, "upload closed",
                  "tenant=%s site=%s: nothing came for %d s; what came is kept",
                  h->tenants[h->sites[site].tenant].id.s, h->sites[site].id.s, KEDGE_UPLOAD_IDLE_S);
        close_file(h, site);
    }
}

void kedge_uploads_close_all(struct kedge_host *h)
{
    for (uint32_t i = 0; i < h->site_count; i++) {
        if (h->sites[i].active) {
            close_file(h, i);
        } else {
            abort_file(h, i);
        }
    }
}
