/* Random events into the coordinator's core: whatever sites, operators and storage do, as long as the host
 * keeps its side of the contract, no assertion falls and the invariants hold. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/coord.h"
#include "coordinator/core/rare.h"

enum { TENANTS = 2, SITES = 5, JOBS = 2, OPEN_MAX = 256, MS = 1000000 };

struct world {
    struct kedge_coord *c;
    const uint8_t *data;
    size_t len, at;
    uint64_t now;
    uint32_t sites, number;
    uint32_t open_count;
    struct kedge_coord_effect open[OPEN_MAX]; /* effects that wait for their completion */
    struct kedge_coord_rare rare;
};

static uint8_t next(struct world *w)
{
    return w->at < w->len ? w->data[w->at++] : 0;
}

static struct kedge_coord_event blank(const struct world *w, enum kedge_coord_event_type type)
{
    struct kedge_coord_event ev;
    memset(&ev, 0, sizeof ev);
    ev.type = type;
    ev.now_ns = w->now;
    ev.tenant = ev.site = ev.request = ev.ticket = ev.group = KEDGE_COORD_NONE;
    return ev;
}

static void keep(struct world *w, const struct kedge_coord_effects *fx)
{
    for (uint32_t i = 0; i < fx->count; i++) {
        enum kedge_coord_effect_type t = fx->items[i].type;
        bool answer = t == KEDGE_FX_TASK || t == KEDGE_FX_WAIT || t == KEDGE_FX_RECEIPT
                      || t == KEDGE_FX_TURN_AWAY || t == KEDGE_FX_CLOSED || t == KEDGE_FX_JOB_STATE
                      || t == KEDGE_FX_NOTED;
        if (!answer) {
            KEDGE_ASSERT(w->open_count < OPEN_MAX);
            w->open[w->open_count++] = fx->items[i];
        }
    }
}

static void step(struct world *w, const struct kedge_coord_event *ev)
{
    static struct kedge_coord_effects fx;
    bool more = kedge_coord_step(w->c, ev, &fx);
    keep(w, &fx);
    while (more) {
        more = kedge_coord_more(w->c, &fx);
        keep(w, &fx);
    }
    KEDGE_ASSERT(kedge_coord_is_valid(w->c));
}

static int pick_err(struct world *w)
{
    static const int errs[] = {KEDGE_OK,          KEDGE_OK,     KEDGE_OK,      KEDGE_OK,
                               KEDGE_E_DISK_FULL, KEDGE_E_BUSY, KEDGE_E_BOUND, KEDGE_E_UNKNOWN,
                               KEDGE_E_REVOKED,   KEDGE_E_BUG};
    return errs[next(w) % (sizeof errs / sizeof errs[0])];
}

/* What a close may give: a PRETRAIN round lists all who have a group or pretrained, a TRAIN round those that
 * must move and some others. */
static void compute(struct world *w, const struct kedge_coord_effect *fx,
                    const struct kedge_coord_job_view *view, struct kedge_coord_event *ev, uint32_t *sites,
                    uint32_t *groups)
{
    const struct kedge_coord_job_params *p = view->params;
    bool pretrain = fx->kind == KEDGE_TASK_PRETRAIN, fixed = kedge_entry_is_settled(p->entry);
    uint8_t how = fixed ? 1 : next(w);
    ev->type = KEDGE_EV_ROUND_COMPUTED;
    if (fx->keeps) {
        ev->model_count = view->model_count;
        return;
    }
    ev->regroup = how % 8 == 2;
    ev->model_count = pretrain || how % 4 == 0 ? 1 + how / 4 % view->params->groups : view->model_count;
    for (uint32_t i = 0; i < w->sites && !fixed; i++) {
        const struct kedge_coord_row *row = kedge_coord_row(w->c, fx->job, i);
        bool grouped = row->group != KEDGE_COORD_NONE;
        bool listed = pretrain ? grouped || row->pretrain.progress == KEDGE_INPUT_ACCEPTED
                               : grouped && (row->group >= ev->model_count || how % 4 == 3);
        if (listed) {
            sites[ev->assigned_count] = i;
            groups[ev->assigned_count++] = next(w) % ev->model_count;
        }
    }
}

static void complete(struct world *w)
{
    if (w->open_count == 0) {
        return;
    }
    uint32_t at = next(w) % w->open_count;
    struct kedge_coord_effect fx = w->open[at];
    w->open[at] = w->open[--w->open_count];
    struct kedge_coord_event ev = blank(w, KEDGE_EV_MAIN_APPENDED);
    struct kedge_digest models[4];
    uint32_t sites[SITES], groups[SITES];
    struct kedge_coord_job_view view;
    KEDGE_ASSERT(kedge_coord_job(w->c, fx.job, &view));
    ev.tenant = fx.tenant;
    ev.site = fx.site;
    ev.job = fx.job;
    ev.round = fx.round;
    ev.group = fx.group;
    ev.kind = fx.kind;
    ev.ticket = fx.ticket;
    ev.leaf = w->number;
    ev.err = pick_err(w);
    if (fx.type == KEDGE_FX_VERIFY) {
        ev.type = KEDGE_EV_VERIFIED;
    } else if (fx.type == KEDGE_FX_APPEND) {
        ev.type = KEDGE_EV_APPENDED;
    } else if (fx.type == KEDGE_FX_APPEND_ASSIGNED) {
        ev.type = KEDGE_EV_ASSIGN_APPENDED;
    } else if (fx.type == KEDGE_FX_ASSIGN) {
        ev.type = KEDGE_EV_ASSIGNED;
        ev.group = next(w) % view.model_count;
    } else if (fx.type == KEDGE_FX_CLOSE_ROUND) {
        memset(models, 20 + (int)(fx.round % 100), sizeof models);
        ev.models = models;
        ev.assigned_sites = sites;
        ev.assigned_groups = groups;
        compute(w, &fx, &view, &ev, sites, groups);
    }
    step(w, &ev);
}

static void submit_job(struct world *w)
{
    struct kedge_coord_job_view view;
    uint32_t slot = next(w) % JOBS;
    if (kedge_coord_job(w->c, slot, &view)) {
        return;
    }
    struct kedge_coord_job_params p;
    memset(&p, 0, sizeof p);
    p.tenant_count = 1 + next(w) % TENANTS;
    p.tenants[1] = 1;
    p.rounds = 1 + next(w) % 3u;
    p.sites_per_round = next(w) % 4u;
    p.sites_min = 1 + next(w) % 3u;
    p.quorum = 1 + next(w) % 3u;
    p.round_timeout_ns = (uint64_t)next(w) * 100 * MS;
    p.groups = 1 + next(w) % 3u;
    p.pretrain_sites = next(w) % 3u;
    p.evaluate_every = next(w) % 3u;
    p.weight_max = 10;
    uint8_t how = next(w);
    p.entry = how % 8 == 1                   ? KEDGE_ENTRY_CHOICE
              : how % 8 == 2                 ? KEDGE_ENTRY_TOGETHER
              : p.groups > 1 && how % 8 == 5 ? KEDGE_ENTRY_TENANT
              : p.groups > 1 && how % 8 == 6 ? KEDGE_ENTRY_NEAREST
                                             : KEDGE_ENTRY_PRETRAIN;
    bool settled = p.entry == KEDGE_ENTRY_TENANT || p.entry == KEDGE_ENTRY_NEAREST;
    p.migrate_every = settled ? 0 : how / 8 % 4;
    p.regroup_every = settled ? 0 : how / 32 % 4;
    p.buffer = p.groups == 1 && how % 8 >= 4 ? 1 + how / 32 % 3u : 0;
    p.staleness_max = how / 8 % 4;
    p.has_root = p.groups == 1 && p.buffer == 0 && how % 8 == 3;
    p.root_site.s[0] = (char)('z' - (char)(how / 32)); /* which may never come */
    p.sites_per_round += p.has_root && p.sites_per_round == 1;
    p.sites_min += p.has_root && p.sites_min == 1;
    p.quorum += p.has_root && p.quorum == 1;
    struct kedge_digest initial[4];
    for (int i = 0; i < 4; i++) {
        memset(&initial[i], 1 + i, sizeof initial[i]);
    }
    struct kedge_coord_event ev = blank(w, KEDGE_EV_JOB_SUBMIT);
    ev.job = slot;
    ev.params = &p;
    ev.models = initial;
    ev.model_count = kedge_coord_first_models(&p);
    step(w, &ev);
}

/* Mostly what an honest site would send, with one byte that may spoil any of it. */
static void submit(struct world *w)
{
    struct kedge_coord_event ev = blank(w, KEDGE_EV_SUBMIT);
    struct kedge_coord_job_view view;
    ev.site = next(w) % (SITES + 1);
    ev.job = next(w) % (JOBS + 1);
    ev.request = ev.ticket = w->number++;
    ev.weight = 1;
    memset(&ev.envelope, next(w), sizeof ev.envelope);
    memset(&ev.base, 1, sizeof ev.base);
    uint8_t spoil = next(w);
    ev.kind = (enum kedge_task_kind)(spoil % 5);
    if (ev.job < JOBS && kedge_coord_job(w->c, ev.job, &view)) {
        const struct kedge_coord_row *row = kedge_coord_row(w->c, ev.job, ev.site);
        ev.round = view.round - (ev.kind == KEDGE_TASK_EVALUATE && view.round > 0 && view.round_open ? 1 : 0);
        ev.group = row && ev.kind != KEDGE_TASK_PRETRAIN ? row->group : KEDGE_COORD_NONE;
        if (ev.kind != KEDGE_TASK_PRETRAIN && row && row->group < view.model_count) {
            ev.base = view.models[row->group];
        }
        if (view.params->buffer > 0 && ev.kind == KEDGE_TASK_TRAIN && row && row->selected) {
            ev.round = row->task_round; /* of its task, with the model that the round before left */
            memset(&ev.base, ev.round > 1 ? 20 + (int)((ev.round - 1) % 100) : 1, sizeof ev.base);
        }
        if (view.params->entry == KEDGE_ENTRY_CHOICE && ev.kind == KEDGE_TASK_TRAIN) {
            ev.group = ev.envelope.b[0] % view.model_count;
            ev.base = view.models[ev.group];
        }
    }
    ev.round += spoil >> 4 == 1 ? next(w) : 0;
    ev.weight += spoil >> 4 == 2 ? next(w) : 0;
    ev.group = spoil >> 4 == 3 ? next(w) : ev.group;
    ev.base.b[0] = spoil >> 4 == 4 ? next(w) : ev.base.b[0];
    step(w, &ev);
}

static void outside(struct world *w, uint8_t what)
{
    static const enum kedge_coord_event_type types[] = {KEDGE_EV_JOB_HALT,   KEDGE_EV_JOB_RESUME,
                                                        KEDGE_EV_JOB_CANCEL, KEDGE_EV_JOB_JOINED,
                                                        KEDGE_EV_TIMER,      KEDGE_EV_REQUEST_GONE};
    struct kedge_coord_event ev = blank(w, types[what % 6]);
    ev.job = next(w) % JOBS;
    ev.tenant = next(w) % TENANTS;
    if (what == 6 && w->sites < SITES) {
        ev = blank(w, KEDGE_EV_SITE_ADDED);
        ev.site = w->sites;
        ev.tenant = w->sites % TENANTS;
        ev.id.s[0] = (char)('z' - (char)w->sites);
        w->sites++;
    } else if (what == 7 && w->sites > 0) {
        ev = blank(w, KEDGE_EV_SITE_REVOKED);
        ev.site = next(w) % w->sites;
    } else if (what == 8) { /* the host could not store a piece of an update, or now it can */
        static const int errs[] = {KEDGE_OK, KEDGE_E_DISK_FULL, KEDGE_E_NOMEM, KEDGE_E_FULL};
        if (w->sites == 0) {
            return;
        }
        ev = blank(w, KEDGE_EV_UPLOAD);
        ev.job = next(w) % JOBS;
        ev.site = next(w) % w->sites;
        ev.err = errs[next(w) % 4];
    } else if (what == 5) {
        ev.site = next(w) % (SITES + 1);
        ev.request = next(w);
    }
    step(w, &ev);
}

/* A tenant leaves a job, or one that it has not joined. */
static void leave(struct world *w)
{
    struct kedge_coord_event ev = blank(w, KEDGE_EV_JOB_LEFT);
    ev.job = next(w) % JOBS;
    ev.tenant = next(w) % TENANTS;
    step(w, &ev);
}

static void poll(struct world *w)
{
    struct kedge_coord_event ev = blank(w, KEDGE_EV_POLL);
    ev.site = next(w) % (SITES + 1);
    ev.request = w->number++;
    uint8_t how = next(w);
    ev.busy = how % 4 == 0;
    ev.anew = how % 16 == 2;
    ev.shifted = how % 4 == 1 ? next(w) % (UINT64_C(1) << (JOBS + 1)) : 0;
    ev.wait_ns = (uint64_t)how * 100 * MS;
    step(w, &ev);
}

static void end_task(struct world *w)
{
    struct kedge_coord_event ev = blank(w, KEDGE_EV_TASK_ENDED);
    uint8_t how = next(w);
    ev.site = next(w) % (SITES + 1);
    ev.request = w->number++;
    ev.job = how % (JOBS + 1);
    ev.round = how / 4 % 4;
    ev.kind = (enum kedge_task_kind)(1 + how / 16 % 3);
    ev.trouble = (enum kedge_trouble)(1 + next(w) % (KEDGE_TROUBLE_COUNT - 1));
    ev.wait_ns = (uint64_t)next(w) * 500 * MS;
    step(w, &ev);
}

/* In every other run rare branches are taken, the sites and their frequency drawn from the input. */
static void use_rare(struct world *w)
{
    uint8_t seed = next(w);
    if (seed % 2 == 0) {
        return;
    }
    kedge_rng_init(&w->rare.rng, seed, KEDGE_RNG_TEST, 0, 0);
    w->rare.permille = 4 * (uint32_t)next(w) % 1001;
    uint32_t sites = next(w) | (uint32_t)next(w) << 8;
    for (uint32_t i = 0; i < KEDGE_COORD_RARE_COUNT; i++) {
        w->rare.enabled[i] = (sites >> i & 1) != 0;
    }
    kedge_coord_rare_use(w->c, &w->rare);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct world w;
    static _Alignas(16) uint8_t mem[1 << 17];
    struct kedge_coord_limits limits = {TENANTS, SITES, JOBS};
    struct kedge_coord_times times;
    kedge_coord_times_default(&times);
    memset(&w, 0, sizeof w);
    memset(mem, 0xa5, sizeof mem);
    w.data = data;
    w.len = len;
    KEDGE_ASSERT(kedge_coord_init(mem, sizeof mem, &limits, &times, &w.c) == KEDGE_OK);
    use_rare(&w);
    struct kedge_coord_event ev = blank(&w, KEDGE_EV_START);
    step(&w, &ev);
    for (uint32_t t = 0; t < TENANTS; t++) {
        ev = blank(&w, KEDGE_EV_TENANT_ADDED);
        ev.tenant = t;
        ev.id.s[0] = (char)('a' + (char)t);
        step(&w, &ev);
    }
    while (w.at < w.len) {
        uint8_t op = next(&w);
        w.now += op >> 5 == 7 ? (uint64_t)next(&w) * 100 * MS : 1;
        switch (op % 32) {
        case 0:
            submit_job(&w);
            break;
        case 1:
        case 2:
        case 3:
        case 4:
        case 5:
        case 6:
        case 7:
        case 8:
        case 9:
            outside(&w, (uint8_t)(op % 32 - 1));
            break;
        case 10:
            end_task(&w);
            break;
        case 11:
            leave(&w);
            break;
        default:
            if (op % 3 == 0) {
                poll(&w);
            } else if (op % 3 == 1) {
                submit(&w);
            } else {
                complete(&w);
            }
            break;
        }
    }
    return 0;
}
