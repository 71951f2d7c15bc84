/* Shares out the files that the process may have open. A coordinator that runs out of them fails
 * where it hurts most, in the middle of an append or an upload, so connections are bounded before
 * that: each place that is given away has its file in reserve. */
#include "coordinator/daemon/sites/places.h"

#include <sys/resource.h>

#include "chain/store/kv/kv.h"
#include "common/base/limits.h"
#include "common/net/server.h"
#include "common/net/web/http.h"

enum {
    OWN = 128,      /* stores, listeners, logs, what workers read and write */
    PER_TENANT = 1, /* its ledger's lock, … */
    STORES = 48,    /* … and of so many files one ledger is open, with what LMDB wants for it */
    STORES_LEAST = 8,
    COMING = 8, /* this part of what is left is for tenants that come while the process runs */
    LEAST = 8,
};

/* The soft limit of a shell is often 1,024, the hard one far higher. Raising it needs no privilege. */
uint64_t kedge_places_raise(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return 1024; /* what POSIX systems start with */
    }
    if (files.rlim_cur < files.rlim_max) {
        const struct rlimit raised = {files.rlim_max, files.rlim_max};
        files.rlim_cur = setrlimit(RLIMIT_NOFILE, &raised) == 0 ? files.rlim_max : files.rlim_cur;
    }
    return files.rlim_cur;
}

unsigned kedge_places_stores(uint64_t files)
{
    uint64_t stores = files / STORES;
    return stores < STORES_LEAST               ? STORES_LEAST
           : stores < KEDGE_KV_LMDB_OPEN_USUAL ? (unsigned)stores
                                               : KEDGE_KV_LMDB_OPEN_USUAL;
}

static unsigned at_least(uint64_t n)
{
    return n < LEAST ? LEAST : (unsigned)n;
}

static uint64_t less(uint64_t n, uint64_t by)
{
    return n > by ? n - by : 0;
}

/* First what the process cannot do without: its own files, the tenants that there are, readers over
 * HTTPS up to an eighth of all. Of the rest a part is kept for tenants that come while the process
 * runs, and the remainder is halved, since each connection may have a file open. Strangers get at
 * most a quarter of the connections, so they can never take those of the sites. */
void kedge_places_for(uint64_t files, uint32_t tenants, unsigned https_wanted, struct kedge_places *ret)
{
    uint64_t wanted = https_wanted ? https_wanted : KEDGE_HTTP_CONNECTIONS;
    uint64_t https = wanted < files / 8 ? wanted : files / 8;
    uint64_t stores = (uint64_t)kedge_places_stores(files) * (KEDGE_KV_LMDB_FILES - PER_TENANT);
    uint64_t left = less(files, OWN + KEDGE_NET_DOOR_MAX + stores + (uint64_t)PER_TENANT * tenants + https);
    uint64_t more = tenants < KEDGE_TENANTS_MAX ? KEDGE_TENANTS_MAX - tenants : 0;
    more = more < left / COMING / PER_TENANT ? more : left / COMING / PER_TENANT;
    uint64_t connections = (left - more * PER_TENANT) / 2; /* each may have an upload's file open */
    uint64_t strangers =
        connections / 4 < KEDGE_NET_STRANGERS_MAX ? connections / 4 : KEDGE_NET_STRANGERS_MAX;
    uint64_t known = less(connections, strangers);
    *ret = (struct kedge_places){.files = files,
                                 .tenants = tenants + (uint32_t)more,
                                 .known = at_least(known < KEDGE_NET_PEERS_MAX ? known : KEDGE_NET_PEERS_MAX),
                                 .strangers = at_least(strangers),
                                 .https = at_least(https),
                                 .is_short = known < KEDGE_NET_PEERS_MAX || https < wanted};
}
