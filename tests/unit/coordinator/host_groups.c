#include "tests/unit/coordinator/host_groups.h"

#include <check.h>

static const enum kedge_task_kind T = KEDGE_TASK_TRAIN;

void host_load_job(struct host *h, uint32_t models)
{
    struct kedge_digest begin[2] = {digest_of(1), digest_of(2)};
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_JOB);
    host_members(h, 1, HOST_GROUP_SITES);
    ev.params = &h->params;
    ev.models = begin;
    ev.model_count = models;
    ev.state = KEDGE_JOB_TRAINING;
    host_step(h, &ev);
    host_joined(h, 0);
}

void host_load_closed(struct host *h, uint32_t round, enum kedge_task_kind kind, uint32_t models,
                      bool regroup)
{
    struct kedge_digest made[2] = {digest_of(20), digest_of(21)};
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_ROUND);
    ev.round = round;
    ev.kind = kind;
    ev.closed = true;
    ev.regroup = regroup;
    ev.models = made;
    ev.model_count = models;
    host_step(h, &ev);
}

void host_load_open(struct host *h, uint32_t round, enum kedge_task_kind kind)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_ROUND);
    ev.round = round;
    ev.kind = kind;
    host_step(h, &ev);
    for (uint32_t i = 0; i < HOST_GROUP_SITES; i++) {
        ev = event_of(h, KEDGE_EV_LOAD_ROW);
        ev.site = i;
        ev.selected = i != 2;
        host_step(h, &ev);
    }
}

void host_load_group(struct host *h, uint32_t site, uint32_t round, uint32_t group, bool durable)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_GROUP);
    ev.site = site;
    ev.round = round;
    ev.group = group;
    ev.durable = durable;
    host_step(h, &ev);
}

void host_load_accepted(struct host *h, uint32_t site, enum kedge_task_kind kind, uint32_t group,
                        uint8_t number)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_LOAD_ACCEPTED);
    ev.site = site;
    ev.kind = kind;
    ev.group = group;
    ev.leaf = number;
    ev.envelope = ev.update = digest_of(number);
    ev.weight = 1;
    host_step(h, &ev);
}

void host_poll_shifted(struct host *h, uint32_t site, uint32_t request)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_POLL);
    ev.site = site;
    ev.request = request;
    ev.wait_ns = 5000 * MS;
    ev.shifted = 1; /* job 0 */
    host_step(h, &ev);
}

void host_assigned(struct host *h, uint32_t site, uint32_t group, int err)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_ASSIGNED);
    ev.site = site;
    ev.group = group;
    ev.err = err;
    host_step(h, &ev);
}

void host_stated(struct host *h, uint32_t site, int err)
{
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_ASSIGN_APPENDED);
    ev.site = site;
    ev.err = err;
    host_step(h, &ev);
}

void host_closes(struct host *h, uint32_t round, uint32_t models, uint8_t first,
                 const int groups[HOST_GROUP_SITES], bool regroup)
{
    struct kedge_digest made[KEDGE_GROUPS_MAX];
    uint32_t sites[HOST_GROUP_SITES], to[HOST_GROUP_SITES];
    struct kedge_coord_event ev = event_of(h, KEDGE_EV_ROUND_COMPUTED);
    for (uint32_t i = 0; i < models; i++) {
        made[i] = digest_of((uint8_t)(first + i));
    }
    for (uint32_t i = 0; i < HOST_GROUP_SITES; i++) {
        if (groups[i] != HOST_GROUP_NONE) {
            sites[ev.assigned_count] = i;
            to[ev.assigned_count++] = (uint32_t)groups[i];
        }
    }
    ev.round = round;
    ev.model_count = models;
    ev.models = made;
    ev.regroup = regroup;
    ev.assigned_sites = sites;
    ev.assigned_groups = to;
    host_step(h, &ev);
}

bool host_may_read(const struct host *h, uint32_t site, uint8_t model)
{
    struct kedge_digest d = digest_of(model);
    return kedge_coord_may_read(h->c, 0, site, &d);
}

void host_train_all(struct host *h, uint32_t round, const uint32_t groups[HOST_GROUP_SITES],
                    const uint8_t bases[HOST_GROUP_SITES], uint8_t number)
{
    for (uint32_t i = 0; i < HOST_GROUP_SITES; i++) {
        host_accept(h, i, T, round, groups[i], bases[i], (uint8_t)(number + i));
    }
}
