/* One site as a test drives it: events in, effects as text. */
#ifndef KEDGE_TESTS_UNIT_CLIENT_SITE_HOST_H
#define KEDGE_TESTS_UNIT_CLIENT_SITE_HOST_H

#include <stddef.h>

#include "client/core/site.h"

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

struct host {
    union {
        max_align_t align;
        uint8_t bytes[8192];
    } mem;
    struct kedge_site *s;
    struct kedge_site_params params;
    struct kedge_id allowed;
    uint64_t now, call, beat, work; /* serials of the last effects */
    uint64_t pause;                 /* that the last "ended" asked for */
    struct kedge_site_memory stored;
    char text[4096];
};

void site_step(struct host *h, struct kedge_site_event *ev);
void site_start(struct host *h, const struct kedge_site_memory *memory);
void site_open_host(struct host *h);
void site_open_enrolled(struct host *h);
void site_reply(struct host *h, enum kedge_site_reply_kind kind, int err);
void site_give(struct host *h, const char *job, enum kedge_site_kind kind, uint32_t round, bool evaluate);
void site_done(struct host *h, enum kedge_site_event_type type, int err);
void site_trained(struct host *h, uint32_t round, bool evaluation);
void site_timer(struct host *h);

#endif
