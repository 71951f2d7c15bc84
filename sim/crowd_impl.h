/* Inside of crowd*.c. */
#ifndef KEDGE_SIM_CROWD_IMPL_H
#define KEDGE_SIM_CROWD_IMPL_H

#include "client/core/site.h"
#include "coordinator/core/coord.h"
#include "sim/crowd.h"

#define CROWD_SECOND UINT64_C(1000000000)

/* A site may have one request of each kind open; its handle in the core is site · CROWD_CALLS + kind. */
enum crowd_call { CROWD_POLL, CROWD_BEAT, CROWD_SUBMIT, CROWD_CALLS };

enum crowd_event_type {
    CROWD_TO_SERVER,
    CROWD_TO_SITE,
    CROWD_SITE_DONE,
    CROWD_SITE_TIMER,
    CROWD_SERVER_DONE,
    CROWD_SERVER_TIMER
};

struct crowd_event {
    enum crowd_event_type type;
    enum crowd_call call; /* TO_SERVER, TO_SITE */
    uint32_t site;
    uint64_t born;                          /* of the awake site that it is for or from */
    union {                                 /* filled as far as the type says: they are large */
        struct kedge_site_event to_site;    /* TO_SITE, SITE_DONE, SITE_TIMER */
        struct kedge_coord_event to_server; /* SERVER_DONE */
    };
    struct crowd_event *next_free;
};

struct crowd_due { /* in the queue */
    uint64_t at_ns, seq;
    struct crowd_event *event;
};

/* A site that has something to do. A task wakes it by the path of a restart; when it asks for the next one it
 * is thrown away. */
struct crowd_site {
    uint64_t born; /* events for those who had this slot before are late */
    uint64_t serial[CROWD_CALLS];
    uint64_t timer_ns;
    uint64_t weight; /* samples of its update */
    struct kedge_site_result result;
    struct kedge_site *core;
    uint32_t next_free;
};

struct crowd_input { /* accepted in the open round */
    uint32_t site;
    uint64_t weight;
    struct kedge_digest update;
};

struct crowd {
    struct kedge_crowd_spec spec;
    const char *why; /* NULL: all rules hold */
    bool completed;
    uint64_t now_ns, seq, born, events, updates, receipts, digest;
    /* what is under way, earliest first */
    struct crowd_due *queue;
    struct crowd_event *free_events;
    uint32_t queue_count, queue_max;
    /* sites */
    uint32_t *slot_of; /* by site: its slot + 1, 0: asleep */
    struct crowd_site *slots;
    uint32_t slot_count, slot_max, free_slot;
    /* coordinator */
    void *mem;
    struct kedge_coord *core;
    struct kedge_coord_job_params *params;
    struct kedge_coord_effects fx;
    struct kedge_digest model;
    struct crowd_input *inputs; /* sites_per_round of them */
    uint32_t input_count, rounds_closed;
    uint64_t main_count, server_timer_ns;
    struct kedge_digest main_root;
};

uint64_t crowd_mix(uint64_t a, uint64_t b);                    /* a hash of both */
void crowd_note(struct crowd *c, uint64_t what, uint64_t who); /* into the digest */
void crowd_violate(struct crowd *c, const char *why);          /* the first one stays */
struct crowd_event *crowd_push(struct crowd *c, enum crowd_event_type type, uint64_t after_ns, uint32_t site);

/* crowd_site.c */
struct kedge_digest crowd_sign(uint32_t site, uint32_t round, uint64_t weight,
                               const struct kedge_site_digest *update);
struct crowd_site *crowd_site_find(struct crowd *c, uint32_t site); /* NULL: asleep */
void crowd_site_sleep(struct crowd *c, uint32_t site);
void crowd_site_event(struct crowd *c, struct crowd_event *ev);
void crowd_sites_deinit(struct crowd *c);

/* crowd_server.c */
void crowd_server_event(struct crowd *c, const struct crowd_event *ev);
int crowd_server_begin(struct crowd *c); /* tenants, sites, the job; KEDGE_E_NOMEM */

#endif
