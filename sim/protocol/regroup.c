/* A round in which groups are made anew, as coordinator/daemon/close_regroup.c closes it. */
#include "chain/compute/regroup.h"

#include <string.h>

#include "common/base/mem.h"
#include "sim/protocol/impl.h"

struct made {
    uint32_t *then, *group, *tenant; /* by input … */
    uint64_t *weight;                /* … what its site counts in its group's model */
    struct kedge_blob_at *files;
    char (*paths)[KEDGE_PATH_MAX];
};

static void made_deinit(struct made *b)
{
    kedge_mem_free(b->then);
    kedge_mem_free(b->group);
    kedge_mem_free(b->tenant);
    kedge_mem_free(b->weight);
    kedge_mem_free(b->files);
    kedge_mem_free(b->paths);
}

static int made_init(struct kedgei_protocol *p, const struct sim_close *c, struct made *b)
{
    size_t room = (size_t)c->input_count + 1;
    *b = (struct made){.then = kedge_mem_new(room, sizeof *b->then),
                       .group = kedge_mem_new(room, sizeof *b->group),
                       .tenant = kedge_mem_new(room, sizeof *b->tenant),
                       .weight = kedge_mem_new(room, sizeof *b->weight),
                       .files = kedge_mem_new(room, sizeof *b->files),
                       .paths = kedge_mem_new(room, sizeof *b->paths)};
    if (!b->then || !b->group || !b->tenant || !b->weight || !b->files || !b->paths) {
        made_deinit(b);
        return KEDGE_E_NOMEM;
    }
    for (uint32_t i = 0; i < c->input_count; i++) {
        b->then[i] = c->inputs[i].former;
        b->tenant[i] = c->inputs[i].tenant;
        kedgei_protocol_at(p, &c->inputs[i].update, b->paths[i], &b->files[i]);
    }
    return KEDGE_OK;
}

static int model_of(struct kedgei_protocol *p, const struct sim_close *c, const struct made *b,
                    uint32_t group)
{
    struct kedgei_close *n = &p->next;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX], initial[KEDGE_PATH_MAX];
    const char *former[KEDGE_GROUPS_MAX];
    struct kedgei_file file;
    kedgei_files_path(&p->files, &p->initial, initial);
    for (uint32_t g = 0; g < c->model_count; g++) {
        former[g] = paths[g];
        kedgei_files_path(&p->files, &c->models[g], paths[g]);
    }
    int err = kedge_compute_regroup_weigh(b->tenant, b->then, b->group, c->input_count, c->model_count, group,
                                          b->weight);
    err = err ? err : kedgei_file_begin(&p->files, 0, &file, p->d);
    if (err) {
        return err;
    }
    err = kedge_compute_regrouped(&p->layout, former, c->model_count, initial, b->then, b->group, b->weight,
                                  c->input_count, group, file.sink, p->d);
    memset(&n->states[group], 0, sizeof n->states[group]);
    return kedgei_file_end(&file, err, &n->models[group], p->d);
}

/* Sites that took part are where the clustering puts them; all others that have a group go to the nearest. */
static int assign(struct kedgei_protocol *p, struct sim_close *c)
{
    struct kedgei_close *n = &p->next;
    int err = KEDGE_OK;
    for (uint32_t i = 0; i < c->other_count && !err; i++) {
        struct sim_close_other *o = &c->others[i];
        err = kedgei_protocol_find(p, &o->update, n->directions, n->groups, &o->group);
    }
    for (uint32_t i = 0; i < c->input_count; i++) {
        struct sim_close_input *in = &c->inputs[i];
        bool lost = in->group == KEDGE_COORD_NONE && in->former != KEDGE_COORD_NONE;
        in->group = lost ? 0 : in->group;
    }
    return err;
}

int kedgei_protocol_regroup(struct kedgei_protocol *p, struct sim_close *c)
{
    struct kedgei_close *n = &p->next;
    struct made b;
    int err = made_init(p, c, &b);
    if (err) {
        return err;
    }
    const struct kedge_compute_sites sites = {.files = b.files, .tenant = b.tenant, .count = c->input_count};
    err = kedge_compute_regroup(&p->layout, &sites, &p->job, c->round, b.then, b.group, &n->groups, p->d);
    for (uint32_t i = 0; i < c->input_count && !err; i++) {
        c->inputs[i].group = b.group[i] < n->groups ? b.group[i] : KEDGE_COORD_NONE;
        if (b.group[i] < n->groups) {
            n->trained[b.group[i]] = true;
        }
    }
    for (uint32_t g = 0; g < n->groups && !err; g++) {
        err = model_of(p, c, &b, g);
        err = err ? err : kedgei_protocol_direct(p, c, g);
    }
    made_deinit(&b);
    return err ? err : assign(p, c);
}
