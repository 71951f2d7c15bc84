/* How many connections and tenants the limit of open files leaves room for. A process that runs out of
 * descriptors cannot open its own files any more, so connections are given what files can spare, and are
 * refused beyond. */
#ifndef KEDGE_COORDINATOR_DAEMON_SITES_PLACES_H
#define KEDGE_COORDINATOR_DAEMON_SITES_PLACES_H

#include <stdbool.h>
#include <stdint.h>

struct kedge_places {
    uint64_t files;     /* that the process may have open */
    uint32_t tenants;   /* that there may be, until the next start counts anew */
    unsigned known;     /* connections of known keys … */
    unsigned strangers; /* … of others … */
    unsigned https;     /* … and of readers of the logs */
    bool is_short;      /* fewer than there would be without the limit */
};

/* Raises the limit of open files as far as this process may, and tells what it is. */
uint64_t kedge_places_raise(void);
/* How many tenants' ledgers may be open at a time, of so many files: for kedge_kv_lmdb_open_most. Pure. */
unsigned kedge_places_stores(uint64_t files);
/* Pure. https_wanted 0: KEDGE_HTTP_CONNECTIONS. At least a few of each, however low the limit is. */
void kedge_places_for(uint64_t files, uint32_t tenants, unsigned https_wanted, struct kedge_places *ret);

#endif
