/* Inside of kedge-coordinator: the tables that its files share; who works on them is in the header of each.
 *
 * Threads. The loop thread owns everything in struct kedge_host unless said otherwise; it takes items from
 * one queue. Workers run the heavy parts (signatures, file I/O, aggregation) on values that the loop handed
 * over, and post their completion back as an item. Committers (a pool of threads for all tenants'
 * ledgers, one thread for the main chain) call back from their threads and only post items. So does the
 * network's. There are no locks but those of the queues. */
#ifndef KEDGE_COORDINATOR_DAEMON_HOST_H
#define KEDGE_COORDINATOR_DAEMON_HOST_H

#include <pthread.h>

#include "chain/state/state.h"
#include "chain/store/committer.h"
#include "common/base/os/queue.h"
#include "common/net/server.h"
#include "common/net/web/http.h"
#include "coordinator/core/coord.h"
#include "coordinator/daemon/admin/authority.h"
#include "coordinator/daemon/admin/roles.h"
#include "coordinator/daemon/config.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/members.h"
#include "coordinator/daemon/restore/seen.h"
#include "coordinator/daemon/sites/places.h"
#include "coordinator/daemon/sites/requests.h"
#include "coordinator/daemon/sites/submit.h"
#include "coordinator/daemon/sites/uploads.h"
#include "coordinator/daemon/waiting.h"
#include "coordinator/daemon/web/main_view.h"
#include "coordinator/daemon/witness/witness.h"

struct kedge_events;

struct kedge_host {
    struct kedge_config config;
    char state[KEDGE_PATH_MAX];
    struct kedge_key_pair tls_key, statement_key;
    struct kedge_state_log main;
    struct kedge_committer *main_committer;
    struct kedge_commit_pool *commit_pool; /* commits for all tenants */
    struct kedge_kv *kv;                   /* coordinator.lmdb */
    struct kedge_tenant *tenants;
    uint32_t tenant_count;
    struct kedge_site_entry *sites;
    uint32_t site_count, sites_coming; /* coming: their statement is being written */
    struct kedge_idle_uploads idle_uploads;
    struct kedge_authority authority;
    uint32_t *site_index; /* KEDGE_SITE_INDEX_SIZE */
    struct kedge_seen seen;
    struct kedge_witnesses *witnesses;
    struct kedge_events *events;  /* events/events.h; NULL: none are told */
    struct kedge_job *jobs;       /* KEDGE_JOBS_MAX */
    struct kedge_waiting waiting; /* jobs without a place among them */
    struct kedge_ticket *tickets;
    uint32_t ticket_hint;
    struct kedge_request_slot *requests;
    uint32_t request_free;
    void *coord_mem;
    struct kedge_coord *coord;
    struct kedge_coord_effects fx;
    void (*execute)(struct kedge_host *h, const struct kedge_coord_effect *fx); /* effects.h */
    struct kedge_queue *queue;
    struct kedge_inbox *inbox; /* inbox.h: requests */
    struct kedge_net_server *server;
    struct kedge_known *known;  /* whose TLS keys the network knows; NULL: it does not listen yet */
    struct kedge_places places; /* connections that the limit of open files leaves room for */
    struct kedge_https_turns *https_turns;
    struct kedge_events_waiting *events_waiting; /* web/events_wait.h; NULL: nobody can */
    struct kedge_http_server *https;             /* NULL: does not listen */
    struct kedge_main_view *main_view;           /* any thread */
    struct kedge_buf pruned;       /* digests of models given up before this start, ascending; any thread */
    struct kedge_workers *workers; /* workers.h */
    uint32_t line;                 /* whose request, or work, the loop is at: inbox.h */
    uint64_t started_ns;
    uint64_t main_known; /* entries of the main chain that the loop has taken in; the ledger may have more */
    uint64_t refused_due_ns; /* when what is kept of refused updates is looked through next */
    uint64_t epoch;          /* of this start, see job_moves.h */
    const char *acting;      /* who asked for what is being done to acting_on; NULL: nobody */
    const struct kedge_job *acting_on;
    uint64_t
        moves_due_ns;  /* when moves of jobs that could not be stored are tried again, 0: there are none */
    bool admitting;    /* a job with a deadline is being decided on: admin/promise.h */
    bool begun;        /* the core has started: logs may grow */
    volatile int stop; /* set on the loop thread */
    int fatal;         /* a kedge_err that ends the process */
};

#endif
