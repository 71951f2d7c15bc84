/* Tenants and sites, as their ledgers say. */
#ifndef KEDGE_COORDINATOR_DAEMON_MEMBERS_H
#define KEDGE_COORDINATOR_DAEMON_MEMBERS_H

#include "chain/state/state.h"
#include "chain/statement/keybook.h"
#include "chain/statement/statement.h"
#include "chain/store/committer.h"
#include "common/base/limits.h"
#include "common/base/rate.h"
#include "coordinator/daemon/sites/uploads.h"

struct kedge_host;

enum { KEDGE_SITE_INDEX_SIZE = 4 * KEDGE_SITES_MAX }; /* open addressing by TLS key */

/* Whose TLS key sees what the tenant's admins see, and changes nothing; admin/viewers.h. */
struct kedge_viewer {
    struct kedge_id name;
    struct kedge_public_key key;
    uint64_t since_s; /* unix time */
};

/* As the newest quota-set says, of all zeros before the first; admin/quotas.h. 0: what every tenant may. */
struct kedge_quota {
    uint64_t number;
    bool suspended;
    uint32_t sites, jobs, tokens, statements_per_s;
    uint64_t bytes_per_s;
    char reason[KEDGE_ST_REASON_MAX + 1];
};

struct kedge_tenant {
    struct kedge_id id;
    struct kedge_public_key admin_key; /* the first one: what trust files name */
    struct kedge_keybook keys;         /* as durable; on the loop thread */
    bool keys_pending;                 /* a statement that changes them is being written */
    bool erasing;                      /* a statement that an update is erased is being written … */
    struct kedge_hash erased;          /* … about this one */
    struct kedge_hash salted;
    struct kedge_state_log log; /* reads from any thread; writes through the committer */
    struct kedge_committer *committer;
    struct kedge_quota quota;
    struct kedge_bucket statements, bytes; /* of its sites, where the quota has rates */
    uint32_t tokens;                       /* for sites, that were made */
    uint32_t sites_coming;                 /* their statement is being written */
    struct kedge_viewer *viewers;
    uint32_t viewer_count;
    struct kedge_bucket changes; /* that its admins ask for from elsewhere: admin/tenant_verbs.c */
    uint64_t anchored_size;      /* size of its last checkpoint in the main chain */
    uint64_t anchoring_size;     /* of the last one on its way there */
};

struct kedge_site_entry {
    uint32_t tenant;
    struct kedge_id id;
    struct kedge_public_key tls_key, statement_key;
    bool active;                   /* enrolled and not revoked */
    uint32_t labels_number;        /* of the last statement about its labels, 0: there is none … */
    struct kedge_label_set labels; /* … and what that says */
    uint64_t last_seen_ms;         /* wall clock, 0: never; coordinator/daemon/restore/seen.h … */
    uint64_t stored_seen_ms;       /* … keeps it: what its record says */
    uint64_t refuses_since_ms; /* wall clock: it refuses the main chain, as its polls say; 0: it does not */
    struct kedge_site_upload upload; /* uploads.h */
    uint64_t
        said_ns; /* when the log last had a line that it can bring about as often as it likes; 0: never */
    uint64_t
        unstored; /* jobs, a bit each, of whose updates a piece could last not be stored; the core knows */
};

uint32_t kedge_host_tenant_find(const struct kedge_host *h, const struct kedge_id *id); /* KEDGE_COORD_NONE */
uint32_t kedge_host_site_find(const struct kedge_host *h, uint32_t tenant, const struct kedge_id *id);
uint32_t kedge_host_site_by_key(const struct kedge_host *h, const struct kedge_public_key *tls_key);
/* KEDGE_E_FULL: no more tenants are taken. To be asked before anything of a new one is made. */
KEDGE_NODISCARD int kedge_host_tenant_room(const struct kedge_host *h, struct kedge_diag *d);
/* Opens its log, reads its keys and tells the core. The admin key is that of its ledger's first entry;
 * KEDGE_E_NOT_FOUND: there is none yet, a crash came between the making of the ledger and that entry. */
KEDGE_NODISCARD int kedge_host_tenant_load(struct kedge_host *h, const struct kedge_id *id,
                                           struct kedge_diag *d);
/* Adds a site whose statement is durable; KEDGE_E_FULL, KEDGE_E_EXISTS. */
KEDGE_NODISCARD int kedge_host_site_add(struct kedge_host *h, uint32_t tenant,
                                        const struct kedge_st_site_enrolled *st, uint32_t *ret_site);
/* True at most once a second of a site: for lines of the log that it can bring about as often as it likes. */
bool kedge_host_site_may_say(struct kedge_host *h, uint32_t site);
/* The site comes with another TLS key from now on; nobody has that one. */
void kedge_host_site_rekey(struct kedge_host *h, uint32_t site, const struct kedge_public_key *tls_key);
void kedge_host_site_revoke(struct kedge_host *h, uint32_t site);
/* What its durable statement says it is, from now on. */
void kedge_host_site_label(struct kedge_host *h, uint32_t site, const struct kedge_st_site_labels *st);

#endif
