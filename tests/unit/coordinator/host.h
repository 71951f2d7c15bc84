/* The third host of the coordinator's core: hand-written events, effects as text. */
#ifndef KEDGE_TESTS_UNIT_COORDINATOR_HOST_H
#define KEDGE_TESTS_UNIT_COORDINATOR_HOST_H

#include "coordinator/core/coord.h"

enum { HOST_TEXT_MAX = 65536 };
#define MS UINT64_C(1000000)

struct host {
    void *mem;
    struct kedge_coord *c;
    struct kedge_coord_limits limits;
    struct kedge_coord_job_params params; /* of the next job_submit or load_job */
    uint64_t now;
    uint64_t cost;            /* of the next updates … */
    bool over_budget;         /* … and what the next closes say */
    char text[HOST_TEXT_MAX]; /* effects of the last event, "; " between them */
};

struct kedge_digest digest_of(uint8_t value);
void host_open(struct host *h);
void host_close(struct host *h);
void host_restart(struct host *h); /* throws the core away; members must be loaded again */
struct kedge_coord_event event_of(const struct host *h, enum kedge_coord_event_type type);
void host_step(struct host *h, const struct kedge_coord_event *ev);

/* Tenants "t0".., sites "s0"..: site s belongs to tenant s % tenants. */
void host_members(struct host *h, uint32_t tenants, uint32_t sites);
void host_site(struct host *h, uint32_t tenant, uint32_t site);     /* one more */
void host_simple(struct host *h, enum kedge_coord_event_type type); /* START, TIMER, JOB_HALT … of job 0 */
void host_joined(struct host *h, uint32_t tenant);
void host_left(struct host *h, uint32_t tenant);
void host_submit_job(struct host *h); /* job 0, initial model digest 1 */
void host_poll(struct host *h, uint32_t site, uint32_t request);
void host_main(struct host *h, int err); /* MAIN_APPENDED of job 0 */
void host_computed(struct host *h, uint32_t round, uint32_t models, uint8_t first, int err);
/* Submission of site with request = ticket = number, envelope = digest of number, weight 1. */
void host_submit(struct host *h, uint32_t site, enum kedge_task_kind kind, uint32_t round, uint32_t group,
                 uint8_t base, uint8_t number);
void host_verified(struct host *h, uint32_t site, enum kedge_task_kind kind, uint32_t ticket, int err);
void host_appended(struct host *h, uint32_t site, enum kedge_task_kind kind, uint32_t ticket, uint64_t leaf,
                   int err);
/* submit, verify and append without a fault; text is that of the append */
void host_accept(struct host *h, uint32_t site, enum kedge_task_kind kind, uint32_t round, uint32_t group,
                 uint8_t base, uint8_t number);

#define EXPECT(h, golden) ck_assert_str_eq((h)->text, golden)

#endif
