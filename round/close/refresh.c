/* Closing a round of training in which directions are estimated again, from the updates by which all sites
 * have their groups: newer ones than the groups were made from, of more sites. How far they have moved
 * decides whether the next round makes new groups. */
#include <string.h>

#include "common/base/mem.h"
#include "round/close/flexcfl.h"

/* Those who speak for their groups: as many as groups are made from, of each tenant as equal a number as
 * there are. */
static int choose_signs(const struct kedge_close *c, bool *chosen)
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
                                chosen);
    kedge_mem_free(scratch);
    return KEDGE_OK;
}

int kedgei_signs_of(const struct kedge_close *c, struct kedgei_signs *s, uint32_t group)
{
    struct kedgei_members *m = &s->of;
    m->count = 0;
    m->lacks = false;
    for (size_t i = 0; i < c->other_count; i++) {
        const struct kedge_close_other *o = &c->others[i];
        if (!s->chosen[i] || o->former != group) {
            continue;
        }
        int err = c->host.update(c->host.arg, o->site, &o->update, s->path[m->count], &m->files[m->count]);
        if (err == KEDGE_E_NOT_FOUND) { /* gone: the others speak for the group; whose word counted then, no
                                           auditor knows */
            m->lacks = m->lacks || c->host.decided;
        } else if (err) {
            return err;
        } else {
            m->tenant[m->count++] = o->place;
        }
    }
    return KEDGE_OK;
}

/* A group without such a site, or all of whose sites' updates are zero, keeps its direction. */
static int estimate(struct kedge_close *c, const struct kedgei_signs *s, uint32_t group)
{
    struct kedge_round_result *r = c->result;
    struct kedge_hash *made = &r->made[group], *now = &r->directions[group], next;
    int err = kedgei_direct(c, group, &s->of, false, &next);
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

static int refresh(struct kedge_close *c, struct kedgei_signs *s)
{
    struct kedge_round_result *r = c->result;
    int err = choose_signs(c, s->chosen);
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        err = kedgei_signs_of(c, s, g);
        err = err ? err : estimate(c, s, g);
    }
    err = err ? err : kedgei_measure_drift(c, &r->drift);
    if (err) {
        return err;
    }
    r->regroup = kedge_job_spec_drifted(r->drift);
    return r->regroup ? KEDGE_OK : kedgei_reshape(c, s);
}

int kedgei_refresh(struct kedge_close *c)
{
    const size_t n = c->other_count;
    struct kedgei_signs s = {.chosen = kedge_mem_new(n, sizeof *s.chosen),
                             .path = kedge_mem_new(n, sizeof *s.path)};
    int err = kedgei_members_init(&s.of, n);
    err = err ? err : s.chosen && s.path ? refresh(c, &s) : KEDGE_E_NOMEM;
    kedge_mem_free(s.chosen);
    kedge_mem_free(s.path);
    kedgei_members_deinit(&s.of);
    return err;
}
