#include "tests/unit/coordinator/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

struct kedge_digest digest_of(uint8_t value)
{
    struct kedge_digest d;
    memset(d.b, value, sizeof d.b);
    return d;
}

void host_restart(struct host *h)
{
    struct kedge_coord_times times;
    kedge_coord_times_default(&times);
    size_t size = kedge_coord_size(&h->limits);
    memset(h->mem, 0xa5, size); /* the core must not rely on zeroed memory */
    KEDGE_ASSERT(kedge_coord_init(h->mem, size, &h->limits, &times, &h->c) == KEDGE_OK);
}

void host_open(struct host *h)
{
    memset(h, 0, sizeof *h);
    h->limits = (struct kedge_coord_limits){.tenants_max = 4, .sites_max = 128, .jobs_max = 2};
    h->mem = kedge_mem_new(1, kedge_coord_size(&h->limits));
    KEDGE_ASSERT(h->mem);
    h->now = 1000 * MS;
    h->params = (struct kedge_coord_job_params){.tenant_count = 1,
                                                .rounds = 2,
                                                .sites_min = 2,
                                                .quorum = 1,
                                                .round_timeout_ns = 10000 * MS,
                                                .seed = 7,
                                                .groups = 1,
                                                .weight_max = 100};
    host_restart(h);
}

void host_close(struct host *h)
{
    kedge_mem_free(h->mem);
}

struct kedge_coord_event event_of(const struct host *h, enum kedge_coord_event_type type)
{
    struct kedge_coord_event ev;
    memset(&ev, 0, sizeof ev);
    ev.type = type;
    ev.now_ns = h->now;
    ev.tenant = ev.site = ev.request = ev.ticket = ev.group = KEDGE_COORD_NONE;
    return ev;
}

static void put(struct host *h, const char *format, ...) KEDGE_PRINTF(2, 3);
static void put(struct host *h, const char *format, ...)
{
    size_t used = strlen(h->text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(h->text + used, sizeof h->text - used, format, args);
    va_end(args);
}

static const char *kind_name(enum kedge_task_kind kind)
{
    static const char *const names[] = {"none", "pretrain", "train", "evaluate"};
    return names[kind];
}

static void put_group(struct host *h, uint32_t group)
{
    if (group == KEDGE_COORD_NONE) {
        put(h, " cold");
    } else {
        put(h, " g%u", group);
    }
}

static void put_task(struct host *h, const struct kedge_coord_effect *fx)
{
    put(h, "task q%u s%u %s r%u", fx->request, fx->site, kind_name(fx->kind), fx->round);
    put_group(h, fx->group);
    put(h, " base=%u", fx->base.b[0]);
    if (fx->evaluate_base) {
        put(h, " evaluate=%u", fx->evaluate_round);
    }
}

static void put_effect(struct host *h, const struct kedge_coord_effect *fx)
{
    put(h, "%s", h->text[0] ? "; " : "");
    switch (fx->type) {
    case KEDGE_FX_TASK:
        put_task(h, fx);
        break;
    case KEDGE_FX_WAIT:
        put(h, "wait q%u", fx->request);
        break;
    case KEDGE_FX_NOTED:
        put(h, "noted q%u%s", fx->request, fx->ended ? " ended" : "");
        break;
    case KEDGE_FX_VERIFY:
        put(h, "verify s%u %s t%u", fx->site, kind_name(fx->kind), fx->ticket);
        break;
    case KEDGE_FX_APPEND:
        put(h, "append s%u %s t%u", fx->site, kind_name(fx->kind), fx->ticket);
        break;
    case KEDGE_FX_RECEIPT:
        put(h, "receipt q%u leaf=%u", fx->request, (unsigned)fx->leaf);
        break;
    case KEDGE_FX_TURN_AWAY:
        put(h, "away q%u %s%s", fx->request, kedge_err_code(fx->err), fx->retry_ns > 0 ? " again" : "");
        break;
    case KEDGE_FX_CLOSED:
        put(h, "closed q%u r%u", fx->request, fx->round);
        break;
    case KEDGE_FX_MAIN_JOB_OPENED:
        put(h, "job-opened");
        break;
    case KEDGE_FX_MAIN_ROUND_OPENED:
        put(h, "round-opened r%u", fx->round);
        if (fx->draw > 0) {
            put(h, " draw %u", fx->draw);
        }
        break;
    case KEDGE_FX_CLOSE_ROUND:
        put(h, "close r%u%s", fx->round, fx->keeps ? " keeps" : "");
        if (fx->charged > 0) {
            put(h, " charged=%u", (unsigned)fx->charged);
        }
        break;
    case KEDGE_FX_MAIN_ROUND_CLOSED:
        put(h, "round-closed r%u", fx->round);
        break;
    case KEDGE_FX_ASSIGN:
        put(h, "assign s%u", fx->site);
        break;
    case KEDGE_FX_APPEND_ASSIGNED:
        put(h, "append-assigned s%u g%u", fx->site, fx->group);
        break;
    case KEDGE_FX_MAIN_ROUND_TESTED:
        put(h, "round-tested r%u", fx->round);
        break;
    case KEDGE_FX_MAIN_JOB_CLOSED:
        put(h, "job-closed %s", kedge_job_state_name(fx->state));
        break;
    case KEDGE_FX_JOB_STATE:
        put(h, "%s>%s", kedge_job_state_name(fx->from), kedge_job_state_name(fx->state));
        if (fx->err != KEDGE_OK) {
            put(h, " %s", kedge_err_code(fx->err));
        }
        break;
    }
}

void host_step(struct host *h, const struct kedge_coord_event *ev)
{
    static struct kedge_coord_effects fx;
    h->text[0] = '\0';
    bool more = kedge_coord_step(h->c, ev, &fx);
    for (int turns = 0; turns < 1000; turns++) {
        for (uint32_t i = 0; i < fx.count; i++) {
            put_effect(h, &fx.items[i]);
        }
        if (!more) {
            KEDGE_ASSERT(kedge_coord_is_valid(h->c));
            return;
        }
        more = kedge_coord_more(h->c, &fx);
    }
    KEDGE_ASSERT(false); /* the core never comes to rest */
}

void host_members(struct host *h, uint32_t tenants, uint32_t sites)
{
    for (uint32_t i = 0; i < tenants; i++) {
        struct kedge_coord_event ev = event_of(h, KEDGE_EV_TENANT_ADDED);
        ev.tenant = i;
        (void)snprintf(ev.id.s, sizeof ev.id.s, "t%u", i);
        host_step(h, &ev);
        h->params.tenants[i] = i;
    }
    h->params.tenant_count = tenants;
    for (uint32_t i = 0; i < sites; i++) {
        host_site(h, i % tenants, i);
    }
}

void host_site(struct host *h, uint32_t tenant, uint32_t site)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_SITE_ADDED);
    ev.site = site;
    ev.tenant = tenant;
    (void)snprintf(ev.id.s, sizeof ev.id.s, "s%u", site);
    host_step(h, &ev);
}

void host_simple(struct host *h, enum kedge_coord_event_type type)
{
    struct kedge_coord_event ev = event_of(h, type);
    host_step(h, &ev);
}

void host_joined(struct host *h, uint32_t tenant)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_JOB_JOINED);
    ev.tenant = tenant;
    host_step(h, &ev);
}

void host_left(struct host *h, uint32_t tenant)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_JOB_LEFT);
    ev.tenant = tenant;
    host_step(h, &ev);
}

void host_submit_job(struct host *h)
{
    struct kedge_digest initial = digest_of(1);
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_JOB_SUBMIT);
    ev.params = &h->params;
    ev.model_count = 1;
    ev.models = &initial;
    host_step(h, &ev);
}

void host_poll(struct host *h, uint32_t site, uint32_t request)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_POLL);
    ev.site = site;
    ev.request = request;
    ev.wait_ns = 5000 * MS;
    host_step(h, &ev);
}

void host_main(struct host *h, int err)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_MAIN_APPENDED);
    ev.err = err;
    host_step(h, &ev);
}

void host_computed(struct host *h, uint32_t round, uint32_t models, uint8_t first, int err)
{
    struct kedge_digest made[KEDGE_GROUPS_MAX];
    for (uint32_t i = 0; i < models; i++) {
        made[i] = digest_of((uint8_t)(first + i));
    }
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_ROUND_COMPUTED);
    ev.round = round;
    ev.err = err;
    ev.model_count = models;
    ev.models = made;
    ev.over_budget = h->over_budget;
    host_step(h, &ev);
}

void host_submit(struct host *h, uint32_t site, enum kedge_task_kind kind, uint32_t round, uint32_t group,
                 uint8_t base, uint8_t number)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_SUBMIT);
    ev.site = site;
    ev.kind = kind;
    ev.round = round;
    ev.group = group;
    ev.base = digest_of(base);
    ev.request = ev.ticket = number;
    ev.envelope = ev.update = digest_of(number);
    ev.weight = 1;
    ev.cost = h->cost;
    host_step(h, &ev);
}

void host_verified(struct host *h, uint32_t site, enum kedge_task_kind kind, uint32_t ticket, int err)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_VERIFIED);
    ev.site = site;
    ev.kind = kind;
    ev.ticket = ticket;
    ev.err = err;
    host_step(h, &ev);
}

void host_appended(struct host *h, uint32_t site, enum kedge_task_kind kind, uint32_t ticket, uint64_t leaf,
                   int err)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_APPENDED);
    ev.site = site;
    ev.kind = kind;
    ev.ticket = ticket;
    ev.leaf = leaf;
    ev.err = err;
    host_step(h, &ev);
}

void host_accept(struct host *h, uint32_t site, enum kedge_task_kind kind, uint32_t round, uint32_t group,
                 uint8_t base, uint8_t number)
{
    host_submit(h, site, kind, round, group, base, number);
    if (kind != KEDGE_TASK_EVALUATE) {
        host_verified(h, site, kind, number, KEDGE_OK);
    }
    host_appended(h, site, kind, number, number, KEDGE_OK);
}
