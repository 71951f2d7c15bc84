/* A coordinator of an older program could leave a tenant's folder for a `tenant add` that it then
 * refused for want of room. Counted as tenants, such folders could be more than there is room for,
 * and the coordinator would not start any more. Those in which nothing has happened are left out
 * then, the newest first; nothing is deleted. */
#include "coordinator/daemon/restore/tenant_folders.h"

#include <string.h>
#include <sys/stat.h>

#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"

/* When a tenant was made, as far as nothing has come of it yet. */
struct bare {
    bool is_bare;
    struct timespec made;
};

static bool is_newer(const struct bare *a, const struct bare *b)
{
    return a->made.tv_sec != b->made.tv_sec ? a->made.tv_sec > b->made.tv_sec
                                            : a->made.tv_nsec > b->made.tv_nsec;
}

/* What cannot be read counts as in use: opening it will say why. */
static struct bare look_at(const struct kedge_host *h, const struct kedge_id *id)
{
    struct bare b = {.is_bare = false};
    struct kedge_state_log log;
    struct stat st;
    char path[KEDGE_PATH_MAX];
    if (kedge_state_path(path, NULL, h->state, "tenants/%s/tenant.json", id->s) != KEDGE_OK
        || stat(path, &st) != 0
        || kedge_state_log_open(h->state, id, KEDGE_STATE_READ, &log, NULL) != KEDGE_OK) {
        return b;
    }
    b.is_bare = kedge_ledger_size(log.ledger) <= 1;
    b.made = st.st_mtim;
    kedge_state_log_close(&log);
    return b;
}

/* Quadratic in the number of folders, and only where there are too many of them. */
static int leave_out(const struct kedge_host *h, struct kedge_id *ids, size_t *count, struct kedge_diag *d)
{
    struct bare *bare = kedge_mem_new(*count, sizeof *bare);
    int err = bare ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory at start");
    for (size_t i = 0; i < *count && !err; i++) {
        bare[i] = look_at(h, &ids[i]);
    }
    while (*count > KEDGE_TENANTS_MAX && !err) {
        size_t newest = *count;
        for (size_t i = 0; i < *count; i++) {
            if (bare[i].is_bare && (newest == *count || is_newer(&bare[i], &bare[newest]))) {
                newest = i;
            }
        }
        if (newest == *count) {
            err = kedge_diag_set(d, KEDGE_E_FULL, "%s/tenants: %zu tenants, no room for more than %d",
                                 h->state, *count, KEDGE_TENANTS_MAX);
            break;
        }
        kedge_log(
            KEDGE_LOG_WARN, "tenant left out",
            "tenant=%s: no room for more than %d; its ledger holds its admin's key alone, as a refused "
            "`tenant add` of an older program left it: remove the folder tenants/%s when it is not wanted",
            ids[newest].s, KEDGE_TENANTS_MAX, ids[newest].s);
        (*count)--;
        memmove(ids + newest, ids + newest + 1, (*count - newest) * sizeof *ids);
        memmove(bare + newest, bare + newest + 1, (*count - newest) * sizeof *bare);
    }
    kedge_mem_free(bare);
    return err;
}

int kedge_host_tenant_folders(const struct kedge_host *h, struct kedge_id **ret_ids, size_t *ret_count,
                              struct kedge_diag *d)
{
    struct kedge_id *ids = NULL;
    size_t count = 0;
    int err = kedge_state_tenants(h->state, &ids, &count, d);
    if (!err && count > KEDGE_TENANTS_MAX) {
        err = leave_out(h, ids, &count, d);
    }
    if (err) {
        kedge_mem_free(ids);
        return err;
    }
    *ret_ids = ids;
    *ret_count = count;
    return KEDGE_OK;
}
