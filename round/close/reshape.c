/* Closing a round of training in which groups become one or are cut in two: numbers, models, directions, and
 * who moves. */
#include <string.h>

#include "common/base/mem.h"
#include "round/close/impl.h"
#include "round/reshape.h"

void kedge_close_merged_directions(struct kedge_hash *directions, const uint32_t *merged_into)
{
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        if (merged_into[g]) {
            directions[g] = directions[merged_into[g] - 1];
        }
    }
}

int kedge_close_cut(const struct kedge_close_host *host, const struct kedge_layout *layout, uint32_t site,
                    const struct kedge_hash *update, const struct kedge_hash *directions, uint32_t from,
                    uint32_t to, uint32_t *ret_group, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], paths[2][KEDGE_PATH_MAX];
    const char *const both[2] = {paths[0], paths[1]};
    struct kedge_blob_at at;
    uint32_t nearest = 0;
    double cosine;
    *ret_group = from;
    int err = host->update(host->arg, site, update, path, &at);
    if (err == KEDGE_E_NOT_FOUND) {
        return KEDGE_OK;
    }
    err = err ? err : host->path(host->arg, &directions[from], paths[0]);
    err = err ? err : host->path(host->arg, &directions[to], paths[1]);
    err = err ? err : kedge_compute_nearest(layout, &at, both, 2, &nearest, &cosine, d);
    if (err == KEDGE_E_NOT_FOUND) { /* points nowhere */
        err = KEDGE_OK;
    }
    *ret_group = !err && nearest == 1 ? to : from;
    return err;
}

/* ---- several become one ---- */

static int join_models(struct kedge_close *c, const uint32_t *into, const uint32_t *tenant,
                       const uint32_t *former, uint32_t group)
{
    struct kedge_round_result *r = c->result;
    struct kedge_hash models[KEDGE_GROUPS_MAX];
    uint64_t weight[KEDGE_GROUPS_MAX], of_all[KEDGE_GROUPS_MAX];
    uint32_t n = 0;
    int err =
        kedge_compute_merge_weights(c->spec, tenant, former, c->other_count, into, r->groups, group, of_all);
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        if (into[g] == group) {
            models[n] = r->stepped[g];
            weight[n++] = of_all[g];
        }
    }
    return err ? err : kedgei_close_blend(c, models, weight, n, &r->after[group]);
}

/* The models of the groups that others become part of. */
static int join_all(struct kedge_close *c, const uint32_t *into)
{
    struct kedge_round_result *r = c->result;
    uint32_t *tenant = kedge_mem_new(c->other_count + 1, sizeof *tenant),
             *former = kedge_mem_new(c->other_count + 1, sizeof *former);
    int err = tenant && former ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; i < c->other_count && !err; i++) {
        tenant[i] = c->others[i].place;
        former[i] = c->others[i].former;
    }
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        if (r->joined[g] && into[g] == g) {
            err = join_models(c, into, tenant, former, g);
        }
    }
    kedge_mem_free(tenant);
    kedge_mem_free(former);
    return err;
}

static int join(struct kedge_close *c, const uint32_t *into)
{
    struct kedge_round_result *r = c->result;
    int err = kedgei_close_assignments(r, c->other_count);
    for (uint32_t g = 0; g < r->groups; g++) {
        r->joined[into[g]] = r->joined[into[g]] || into[g] != g;
        r->joined[g] = r->joined[g] || into[g] != g;
    }
    err = err ? err : join_all(c, into);
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        uint32_t with = r->merged_into[g] ? into[r->merged_into[g] - 1] : into[g];
        if (with != g) {
            r->merged_into[g] = with + 1;
            r->after[g] = r->after[with];
        }
    }
    for (size_t i = 0; i < c->other_count && !err; i++) {
        const struct kedge_close_other *o = &c->others[i];
        if (into[o->former] != o->former) {
            kedgei_close_assign(r, o->site, into[o->former]);
        }
    }
    return err;
}

/* ---- one becomes two ---- */

/* The direction of the updates of one part. */
static int direct_part(struct kedge_close *c, const struct close_signs *s, const uint32_t *part, uint32_t of,
                       uint32_t group)
{
    struct kedge_blob_at *files = kedge_mem_new(s->count + 1, sizeof *files);
    uint32_t *tenant = kedge_mem_new(s->count + 1, sizeof *tenant);
    struct kedge_compute_sites members = {.files = files, .tenant = tenant};
    for (size_t i = 0; files && tenant && i < s->count; i++) {
        if (part[i] == of) {
            tenant[members.count] = s->tenant[i];
            files[members.count++] = s->files[i];
        }
    }
    int err = files && tenant ? kedgei_close_direct(c, &members, false, &c->result->directions[group])
                              : KEDGE_E_NOMEM;
    kedge_mem_free(files);
    kedge_mem_free(tenant);
    return err;
}

/* A number that no group has: of one that became part of another, or the next. */
static uint32_t free_number(const struct kedge_round_result *r)
{
    uint32_t g = 0;
    while (g < r->groups && !r->merged_into[g]) {
        g++;
    }
    return g;
}

static int cut(struct kedge_close *c, const struct close_signs *s, const uint32_t *part, uint32_t from)
{
    struct kedge_round_result *r = c->result;
    uint32_t to = free_number(r);
    r->whole[from] = r->directions[from];
    memset(&r->made[from], 0, sizeof r->made[from]);
    r->before[to] = r->before[from];
    r->aggregate[to] = r->aggregate[from];
    r->stepped[to] = r->stepped[from];
    r->after[to] = r->after[from];
    r->state_before[to] = r->state_before[from];
    r->state_after[to] = r->state_after[from];
    r->made[to] = r->made[from];
    r->split_of[to] = from + 1;
    r->merged_into[to] = 0;
    r->groups = to + 1 > r->groups ? to + 1 : r->groups;
    int err = direct_part(c, s, part, 0, from);
    err = err ? err : direct_part(c, s, part, 1, to);
    for (size_t i = 0; i < c->other_count && !err; i++) {
        const struct kedge_close_other *o = &c->others[i];
        uint32_t group = from;
        if (o->former == from) {
            err = kedge_close_cut(&c->host, c->layout, o->site, &o->update, r->directions, from, to, &group,
                                  c->d);
        }
        if (group != from) {
            kedgei_close_assign(r, o->site, group);
        }
    }
    return err;
}

static int cut_groups(struct kedge_close *c, const bool *selected, struct close_signs *s)
{
    struct kedge_round_result *r = c->result;
    const uint32_t groups = r->groups, most = kedge_job_spec_groups_most(c->spec);
    uint32_t *part = kedge_mem_new(c->other_count, sizeof *part);
    int err = part ? kedgei_close_assignments(r, c->other_count) : KEDGE_E_NOMEM;
    for (uint32_t g = 0; g < groups && !err; g++) {
        bool is_cut = false, has_room = free_number(r) < most && !r->merged_into[g] && !r->split_of[g];
        err = has_room ? kedgei_close_signs(c, selected, g, s) : KEDGE_OK;
        const struct kedge_compute_sites sites = {s->files, s->tenant, s->count};
        if (!err && has_room) {
            err = kedge_compute_cut(c->layout, c->spec, &sites, part, &is_cut, c->d);
        }
        err = !err && is_cut ? cut(c, s, part, g) : err;
    }
    kedge_mem_free(part);
    return err;
}

int kedgei_close_reshape(struct kedge_close *c, const bool *selected, struct close_signs *s)
{
    struct kedge_round_result *r = c->result;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *directions[KEDGE_GROUPS_MAX];
    uint32_t into[KEDGE_GROUPS_MAX];
    bool any = false;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        directions[g] = r->merged_into[g] ? NULL : paths[g];
        err = c->host.path(c->host.arg, &r->directions[g], paths[g]);
    }
    err = err ? err : kedge_compute_merges(c->layout, c->spec, directions, r->groups, into, &any, c->d);
    if (!err && any) {
        return join(c, into);
    }
    return err || c->spec->options.silhouette >= 1 ? err : cut_groups(c, selected, s);
}
