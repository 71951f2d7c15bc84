/* Closing a round in which groups are made anew. Sites that took part are where the clustering puts them; all
 * others that have a group go to the nearest of the new ones. */
#include "round/regroup.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "round/close/impl.h"

/* What the round began with, and its inputs, item by item. */
struct before {
    uint32_t groups;
    struct kedge_hash models[KEDGE_GROUPS_MAX], directions[KEDGE_GROUPS_MAX];
    struct kedge_blob_at *files;
    uint32_t *then, *group, *tenant;
    uint64_t *weight; /* what its site counts in its group's model */
};

static void before_deinit(struct before *b)
{
    kedge_mem_free(b->files);
    kedge_mem_free(b->then);
    kedge_mem_free(b->group);
    kedge_mem_free(b->tenant);
    kedge_mem_free(b->weight);
}

/* Deinit also behind an error. */
static int before_init(const struct kedge_close *c, struct before *b)
{
    const size_t n = c->input_count;
    *b = (struct before){.groups = c->result->groups,
                         .files = kedge_mem_new(n + 1, sizeof *b->files),
                         .then = kedge_mem_new(n + 1, sizeof *b->then),
                         .group = kedge_mem_new(n + 1, sizeof *b->group),
                         .tenant = kedge_mem_new(n + 1, sizeof *b->tenant),
                         .weight = kedge_mem_new(n + 1, sizeof *b->weight)};
    memcpy(b->models, c->result->before, sizeof b->models);
    memcpy(b->directions, c->result->directions, sizeof b->directions);
    if (!b->files || !b->then || !b->group || !b->tenant || !b->weight) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        b->files[i] = c->inputs[i].file;
        b->then[i] = c->inputs[i].former;
        b->tenant[i] = c->inputs[i].place;
    }
    return KEDGE_OK;
}

static int model_of_group(struct kedge_close *c, const struct before *b, uint32_t group)
{
    struct kedge_round_result *r = c->result;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX], initial[KEDGE_PATH_MAX];
    const char *former[KEDGE_GROUPS_MAX];
    struct kedge_close_file file;
    int err = c->host.path(c->host.arg, &c->initial, initial);
    for (uint32_t g = 0; g < b->groups && !err; g++) {
        former[g] = paths[g];
        err = c->host.path(c->host.arg, &b->models[g], paths[g]);
    }
    err = err ? err
              : kedge_compute_regroup_weigh(b->tenant, b->then, b->group, c->input_count, b->groups, group,
                                            b->weight);
    err =
        err ? err
            : c->host.begin(c->host.arg, kedge_safetensors_file_len(c->layout, KEDGE_DTYPE_F32), &file, c->d);
    if (!err) {
        err = kedge_compute_regrouped(c->layout, former, b->groups, initial, b->then, b->group, b->weight,
                                      c->input_count, group, file.sink, c->d);
        err = c->host.end(c->host.arg, &file, err, &r->aggregate[group], c->d);
    }
    r->before[group] = group < b->groups ? b->models[group] : c->initial;
    r->stepped[group] = r->after[group] = r->aggregate[group];
    if (group >= b->groups) {
        memset(&r->state_before[group], 0, sizeof r->state_before[group]);
    }
    memset(&r->state_after[group], 0, sizeof r->state_after[group]);
    return err;
}

static void take_groups(struct kedge_close *c, const struct before *b)
{
    struct kedge_round_result *r = c->result;
    for (size_t i = 0; i < c->input_count; i++) {
        struct kedge_close_input *in = &c->inputs[i];
        in->group = b->group[i];
        in->left_out = in->group >= r->groups; /* points nowhere */
        if (!in->left_out) {
            r->members[in->group]++;
            r->trained[in->group] = true;
            kedgei_close_assign(r, in->site, in->group);
        }
    }
}

static int move_others(struct kedge_close *c, const struct before *b)
{
    struct kedge_round_result *r = c->result;
    int err = KEDGE_OK;
    for (size_t i = 0; i < c->other_count && !err; i++) {
        const struct kedge_close_other *o = &c->others[i];
        uint32_t group = 0;
        err = kedge_close_nearest(&c->host, c->layout, o->site, &o->update, &b->directions[o->former],
                                  r->directions, r->groups, &group, c->d);
        kedgei_close_assign(r, o->site, group);
    }
    for (size_t i = 0; i < c->input_count && !err; i++) {
        if (c->inputs[i].left_out && c->inputs[i].former != KEDGE_COORD_NONE) {
            kedgei_close_assign(r, c->inputs[i].site, 0);
        }
    }
    return err;
}

static int regroup(struct kedge_close *c, struct before *b)
{
    struct kedge_round_result *r = c->result;
    const struct kedge_compute_sites sites = {b->files, b->tenant, c->input_count};
    memset(r->members, 0, sizeof r->members);
    memset(r->trained, 0, sizeof r->trained);
    int err =
        kedge_compute_regroup(c->layout, &sites, c->spec, r->round, b->then, b->group, &r->groups, c->d);
    if (!err) {
        take_groups(c, b);
    }
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        err = model_of_group(c, b, g);
        err = err ? err : kedgei_close_direction(c, g);
    }
    for (size_t i = 0; i < c->input_count && !err; i++) { /* as lists say it */
        c->inputs[i].weight = c->inputs[i].left_out ? 0 : b->weight[i];
    }
    return err ? err : move_others(c, b);
}

int kedgei_close_regroup(struct kedge_close *c)
{
    struct before b;
    int err = before_init(c, &b);
    err = err ? err : kedgei_close_assignments(c->result, c->input_count + c->other_count);
    err = err ? err : regroup(c, &b);
    before_deinit(&b);
    return err;
}
