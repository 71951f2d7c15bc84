/* Jobs that wait for a place among the KEDGE_JOBS_MAX that a coordinator has in hand. Such a job is a record
 * in coordinator.lmdb with its spec and first model as blobs; the main chain does not know it, nor does the
 * core. What is kept of it in memory is a row here. Whose turn it is, and how many may wait: schedule/line.h.
 * Who is given a place: restore/admit.h. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_WAITING_H
#define KEDGE_COORDINATOR_DAEMON_WAITING_H

#include "common/base/diag.h"
#include "common/base/text.h"
#include "crypto/hash.h"
#include "job/job_spec.h"

struct kedge_host;
struct kedge_job;

struct kedge_waiting_job {
    struct kedge_id name;
    struct kedge_hash spec, initial_model; /* blobs that no statement names yet … */
    struct kedge_hash base;                /* … also the frozen base; without one: initial_model */
    uint64_t created_ms;                   /* unix time */
    uint64_t until_ms;                     /* when it has waited for enrol_within_s, and ends as failed */
    struct kedge_job
        *coming;  /* it is not in line now: it is being submitted, and has no record yet, or has
                     been given a place, and the core is about to hear of it; NULL: it is in line */
    bool is_held; /* halted by the operator */
    uint32_t tenant_count;
    uint32_t tenants[]; /* handles, of the spec's order */
};

struct kedge_waiting {
    struct kedge_waiting_job **jobs; /* by created_ms and name */
    uint32_t count, ready;           /* ready: neither coming nor held */
    size_t max;
    uint32_t *tenant_counts; /* by handle: how many of its jobs wait */
    uint64_t until_ms;       /* none of them has waited for too long before this; UINT64_MAX: there is none */
    uint64_t again_ns;       /* none is given a place before this: the last attempt met a full disk */
};

/* KEDGE_E_FULL: no more may wait, or none of one of its tenants. To be asked before anything of it is made.
 * KEDGE_E_NOT_FOUND: there is no such tenant; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_waiting_room(struct kedge_host *h, const struct kedge_job_spec *spec,
                                       struct kedge_diag *d);
/* Adds a row, in line, which kedge_waiting_remove frees; its blobs are the caller's to set. Tenants that are
 * not here are left out. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_waiting_add(struct kedge_host *h, const struct kedge_job_spec *spec,
                                      uint64_t created_ms, struct kedge_waiting_job **ret);
/* Whether it is in line, and held: see the row. */
void kedge_waiting_set(struct kedge_host *h, struct kedge_waiting_job *w, struct kedge_job *coming,
                       bool is_held);
void kedge_waiting_remove(struct kedge_host *h, struct kedge_waiting_job *w);
/* NULL: no such job waits. */
struct kedge_waiting_job *kedge_waiting_find(const struct kedge_host *h, const struct kedge_id *name);
bool kedge_waiting_names(const struct kedge_waiting_job *w, uint32_t tenant);
/* What is told of one in line. */
struct kedge_waiting_view {
    struct kedge_id job;
    uint32_t position, count; /* where it stands, from 1 on, of how many in line */
    bool is_held;
    uint64_t until_ms;
};
/* tenant: counted are jobs that name it alone; KEDGE_COORD_NONE: all. Position and count are 0 if memory is
 * short. */
void kedge_waiting_view(const struct kedge_host *h, const struct kedge_waiting_job *w, uint32_t tenant,
                        struct kedge_waiting_view *ret);
/* Of all in line, or of those that name the tenant; the caller's (kedge_mem_free). KEDGE_E_NOMEM. On the
 * loop; then on any thread _sort, once, and _view_find: NULL: it is none of them. */
KEDGE_NODISCARD int kedge_waiting_views(const struct kedge_host *h, uint32_t tenant,
                                        struct kedge_waiting_view **ret, uint32_t *ret_count);
void kedge_waiting_views_sort(struct kedge_waiting_view *views, uint32_t count);
const struct kedge_waiting_view *kedge_waiting_view_find(const struct kedge_waiting_view *views,
                                                         uint32_t count, const struct kedge_id *job);
/* Whose place the next free one is, NULL: nobody's. */
struct kedge_waiting_job *kedge_waiting_next(const struct kedge_host *h);
void kedge_waiting_free(struct kedge_host *h);

#endif
