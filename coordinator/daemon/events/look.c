/* What nobody tells the loop, and it looks for once a second: whether the companion lives, which sites and
 * witnesses are here, whether there are new anchors. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/events/events_impl.h"

enum { SITES_AT_ONCE = 1024 }; /* sites that one look looks at */

static void open_streams(struct kedge_events *e)
{
    struct kedge_event_frame f = {.type = KEDGE_EVENT_FRAME_OPEN};
    kedge_companion_write(&e->companion, &f);
    for (uint32_t i = 0; i < e->stream_count; i++) {
        f.name = kedge_view_str(e->streams[i].id.s);
        kedge_companion_write(&e->companion, &f);
    }
}

uint64_t kedge_host_events_due_ns(const struct kedge_host *h)
{
    return h->events ? h->events->due_ns : KEDGE_TIME_NEVER;
}

/* Tells subscribers that the stream lives, and what its last number is: who has lost the last one learns of
 * it without waiting for the next. */
static void beat(struct kedge_host *h)
{
    struct kedge_events *e = h->events;
    const struct kedge_event_frame f = {.type = KEDGE_EVENT_FRAME_BEAT};
    for (uint32_t s = 0; s <= e->stream_count; s++) {
        const bool own = s < e->stream_count;
        struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&text, KEDGE_EVENT_LINE_MAX);
        if (own && e->streams[s].tenant == KEDGE_COORD_NONE) {
            e->streams[s].tenant = kedge_host_tenant_find(h, &e->streams[s].id);
        }
        kedge_buf_printf(
            &text, "stream/alive {\"v\":%d,\"alive\":{\"seq\":%" PRIu64 ",\"time_ms\":%" PRIu64 "}}",
            KEDGE_EVENT_VERSION, kedge_host_events_next(h, own ? e->streams[s].tenant : KEDGE_COORD_NONE) - 1,
            kedge_os_unix_ms());
        if (!own || e->streams[s].tenant != KEDGE_COORD_NONE) {
            kedge_companion_write(&e->companion, &(struct kedge_event_frame){
                                                     .type = KEDGE_EVENT_FRAME_SAY,
                                                     .name = kedge_view_str(own ? e->streams[s].id.s : ""),
                                                     .payload = kedge_buf_view(&text)});
        }
    }
    kedge_companion_write(&e->companion, &f);
}

/* Who was heard of within its lease is here. A part of the sites at each look, so that thousands cost the
 * loop no more than a few. */
static void look_at_sites(struct kedge_host *h)
{
    struct kedge_events *e = h->events;
    if (!kedgei_events_grow_sites(h)) {
        return;
    }
    for (uint32_t n = 0; n < h->site_count && n < SITES_AT_ONCE; n++) {
        const uint32_t site = e->site_next < h->site_count ? e->site_next : 0;
        const struct kedge_site_entry *s = &h->sites[site];
        const bool is_online = s->active && kedge_coord_is_online(h->coord, site);
        e->site_next = site + 1;
        if (is_online != e->sites[site].is_online) {
            e->sites[site].is_online = is_online;
            struct kedge_event event = {.kind = KEDGE_EVENT_SITE,
                                        .entry = KEDGE_EVENT_NO_ENTRY,
                                        .tenant = h->tenants[s->tenant].id,
                                        .site = s->id,
                                        .to = is_online   ? "online"
                                              : s->active ? "offline"
                                                          : "revoked"};
            kedge_host_event(h, &event, &s->tenant, 1);
        }
    }
}

static void look_at_witnesses(struct kedge_host *h)
{
    const uint32_t count = kedge_host_witness_count(h);
    for (uint32_t i = 0; i < count; i++) {
        struct kedge_event event = {.kind = KEDGE_EVENT_WITNESS, .entry = KEDGE_EVENT_NO_ENTRY};
        uint32_t tenant;
        const bool is_here = kedge_host_witness_presence(h, i, &tenant, &event.site);
        if (is_here != h->events->is_witness_here[i]) {
            h->events->is_witness_here[i] = is_here;
            event.tenant = h->tenants[tenant].id;
            event.to = is_here ? "online" : kedge_host_witness_is_active(h, i) ? "offline" : "revoked";
            kedge_host_event(h, &event, &tenant, 1);
        }
    }
}

void kedge_host_events_look(struct kedge_host *h, uint64_t now_ns)
{
    struct kedge_events *e = h->events;
    bool started;
    if (!e || now_ns < e->due_ns) {
        return;
    }
    e->due_ns = now_ns + KEDGEI_EVENTS_LOOK_NS;
    kedge_companion_look(&e->companion, now_ns, &started);
    if (started) {
        open_streams(e);
    }
    if (h->begun) {
        look_at_sites(h);
        look_at_witnesses(h);
        kedge_host_anchors_look(h, &e->anchors, now_ns);
    }
    beat(h);
}

void kedge_host_events_serve(struct kedge_host *h)
{
    const struct kedge_config *c = &h->config;
    struct kedge_events *e = h->events;
    if (!e || c->events_off) {
        return;
    }
    struct kedge_companion *companion = &e->companion;
    char state[KEDGE_PATH_MAX]; /* absolute, for those who are told where the socket is */
    int err = kedge_path_real(h->state, state, NULL);
    err = err ? err : kedge_path_join(companion->folder, state, "events");
    if (c->events_folder[0]) {
        snprintf(companion->folder, sizeof companion->folder, "%s", c->events_folder);
    }
    for (unsigned i = 0; i < c->events_listen_count; i++) {
        snprintf(companion->listen[i], sizeof companion->listen[i], "%s", c->events_listen[i]);
        kedge_log(KEDGE_LOG_WARN, "event stream",
                  "%s: every program on this machine can read all events there", c->events_listen[i]);
    }
    companion->listen_count = c->events_listen_count;
    err = err ? err : kedge_path_join(companion->socket, companion->folder, "operator.ipc");
    for (unsigned i = 0; i < c->events_tenant_count; i++) {
        e->streams[e->stream_count++] = (struct kedgei_event_stream){c->events_tenants[i], KEDGE_COORD_NONE};
    }
    if (err || !kedge_companion_find(companion)) {
        kedge_log(KEDGE_LOG_INFO, "event stream",
                  "none: kedge-events is not installed beside this program; kedge events asks instead");
    }
    e->due_ns = 0;
    kedge_host_events_look(h, kedge_os_now_ns());
}
