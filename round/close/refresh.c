/* Closing a round of training in which directions are estimated again, from the updates by which all sites
 * have their groups: newer ones than the groups were made from, of more sites. How far they have moved
 * decides whether the next round makes new groups. */
#include <string.h>

#include "common/base/mem.h"
#include "grouping/flexcfl.h"
#include "round/close/impl.h"
#include "round/drift.h"

/* Those who speak for their groups: as many as groups are made from, of each tenant as equal a number as
 * there are. */
static int choose_signs(const struct kedge_close *c, bool *selected)
{
    const size_t n = c->other_count;
    uint32_t *scratch = kedge_mem_new(3 * n + 1, sizeof *scratch);
    if (!scratch) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        scratch[2 * n + i] = c->others[i].place;
    }
    kedge_coord_select_by_quota(c->spec->seed, c->result->round, scratch + 2 * n, (uint32_t)n, 0, scratch,
                                selected);
    kedge_mem_free(scratch);
    return KEDGE_OK;
}

int kedgei_close_signs(const struct kedge_close *c, const bool *selected, uint32_t group,
                       struct close_signs *s)
{
    int err = KEDGE_OK;
    s->count = 0;
    for (size_t i = 0; i < c->other_count && !err; i++) {
        const struct kedge_close_other *o = &c->others[i];
        if (!selected[i] || o->former != group) {
            continue;
        }
        s->tenant[s->count] = o->place;
        err = c->host.update(c->host.arg, o->site, &o->update, s->path[s->count], &s->files[s->count]);
        s->count += err ? 0 : 1;
        err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err; /* gone */
    }
    return err;
}

/* A group without such a site, or whose sites' updates point nowhere, keeps its direction. */
static int estimate(struct kedge_close *c, const struct close_signs *s, uint32_t group)
{
    const struct kedge_compute_sites members = {s->files, s->tenant, s->count};
    struct kedge_round_result *r = c->result;
    struct kedge_hash *made = &r->made[group], *now = &r->directions[group], next;
    int err = s->count > 0 ? kedgei_close_direct(c, &members, false, &next) : KEDGE_E_NO_DIRECTION;
    if (err) {
        return err == KEDGE_E_NO_DIRECTION ? KEDGE_OK : err;
    }
    struct kedge_hash begin = kedge_hash_is_zero(made) ? *now : *made;
    *now = next;
    *made = begin;
    if (kedge_hash_eq(&begin, &next)) {
        memset(made, 0, sizeof *made);
    }
    return KEDGE_OK;
}

/* Of the groups that are not part of another one. */
static int measure_drift(struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    char paths[2][KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *made[KEDGE_GROUPS_MAX], *now[KEDGE_GROUPS_MAX];
    size_t n = 0;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        const struct kedge_hash *begin = kedge_hash_is_zero(&r->made[g]) ? &r->directions[g] : &r->made[g];
        if (r->merged_into[g]) {
            continue;
        }
        made[n] = paths[0][g];
        now[n++] = paths[1][g];
        err = c->host.path(c->host.arg, begin, paths[0][g]);
        err = err ? err : c->host.path(c->host.arg, &r->directions[g], paths[1][g]);
    }
    return err ? err : kedge_compute_drift(c->layout, made, now, n, &r->drift, c->d);
}

/* A group that is part of another one goes with it, so that who still asks for it is served. */
static void follow_merged(struct kedge_round_result *r)
{
    for (uint32_t g = 0; g < r->groups; g++) {
        if (r->merged_into[g] && !r->joined[g]) {
            uint32_t with = r->merged_into[g] - 1;
            r->after[g] = r->after[with];
            r->directions[g] = r->directions[with];
            r->made[g] = r->made[with];
        }
    }
}

static int refresh(struct kedge_close *c)
{
    const size_t n = c->other_count;
    bool *selected = kedge_mem_new(n, sizeof *selected);
    struct close_signs s = {.path = kedge_mem_new(n, sizeof *s.path),
                            .files = kedge_mem_new(n, sizeof *s.files),
                            .tenant = kedge_mem_new(n, sizeof *s.tenant)};
    int err = selected && s.path && s.files && s.tenant ? choose_signs(c, selected) : KEDGE_E_NOMEM;
    for (uint32_t g = 0; g < c->result->groups && !err; g++) {
        err = kedgei_close_signs(c, selected, g, &s);
        err = err ? err : estimate(c, &s, g);
    }
    err = err ? err : measure_drift(c);
    if (!err && !kedge_job_spec_drifted(c->result->drift)) {
        err = kedgei_close_reshape(c, selected, &s);
    }
    kedge_mem_free(selected);
    kedge_mem_free(s.path);
    kedge_mem_free(s.files);
    kedge_mem_free(s.tenant);
    return err;
}

int kedgei_close_refresh(struct kedge_close *c)
{
    bool due = kedge_job_spec_refreshes(c->spec, c->result->round) && c->other_count > 0;
    int err = due ? refresh(c) : KEDGE_OK;
    if (!err) {
        follow_merged(c->result);
    }
    return err;
}
