/* Who speaks for the groups when directions are estimated again: the updates by which sites have theirs. */
#include "common/base/mem.h"
#include "round/close/flexcfl.h"

int kedgei_signs_init(const struct kedge_close *c, struct kedgei_signs *s)
{
    const size_t n = c->other_count;
    *s = (struct kedgei_signs){.chosen = kedge_mem_new(n + 1, sizeof *s->chosen),
                               .path = kedge_mem_new(n + 1, sizeof *s->path)};
    int err = kedgei_members_init(&s->of, n);
    return err ? err : s->chosen && s->path ? KEDGE_OK : KEDGE_E_NOMEM;
}

void kedgei_signs_deinit(struct kedgei_signs *s)
{
    kedge_mem_free(s->chosen);
    kedge_mem_free(s->path);
    kedgei_members_deinit(&s->of);
}

/* Which sites' updates are read: 512 at most (KEDGE_GRAM_VECTORS_MAX), of each tenant as equal a number as
 * it has sites. That bounds memory and time of a refresh, whatever the number of sites, and keeps a tenant
 * with many sites from speaking alone. The draw goes by seed and round, so an auditor makes it again. */
int kedgei_choose_signs(const struct kedge_close *c, bool *chosen)
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
