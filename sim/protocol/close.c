/* Closing a round as kedge-coordinator closes it, by the functions of chain/compute: what updates weigh,
 * aggregates, the server's step, mixing; groups at the start. It writes `next` and nothing else, so that it
 * may be asked again. */
#include <string.h>

#include "chain/compute/aggregate.h"
#include "chain/compute/step.h"
#include "common/base/mem.h"
#include "grouping/flexcfl.h"
#include "sim/protocol/impl.h"

void kedgei_protocol_at(const struct kedgei_protocol *p, const struct kedge_digest *update,
                        char path[KEDGE_PATH_MAX], struct kedge_blob_at *ret)
{
    kedgei_files_path(&p->files, update, path);
    *ret = (struct kedge_blob_at){.path = path};
    memcpy(ret->digest.b, update->b, sizeof ret->digest.b);
}

/* ---- inputs of a group ---- */

/* The updates of a group, in site order; for kedge_compute_*. Arrays of all inputs' length. */
struct members {
    size_t count;
    struct kedge_blob_at *files;
    char (*paths)[KEDGE_PATH_MAX];
    uint32_t *tenant;
    struct kedge_compute_input *inputs;
    uint64_t *weight;
};

static void members_deinit(struct members *m)
{
    kedge_mem_free(m->files);
    kedge_mem_free(m->paths);
    kedge_mem_free(m->tenant);
    kedge_mem_free(m->inputs);
    kedge_mem_free(m->weight);
}

/* group KEDGE_COORD_NONE: all inputs. */
static int members_of(const struct kedgei_protocol *p, const struct sim_close *c, uint32_t group,
                      struct members *m)
{
    size_t room = (size_t)c->input_count + 1;
    *m = (struct members){.files = kedge_mem_new(room, sizeof *m->files),
                          .paths = kedge_mem_new(room, sizeof *m->paths),
                          .tenant = kedge_mem_new(room, sizeof *m->tenant),
                          .inputs = kedge_mem_new(room, sizeof *m->inputs),
                          .weight = kedge_mem_new(room, sizeof *m->weight)};
    if (!m->files || !m->paths || !m->tenant || !m->inputs || !m->weight) {
        members_deinit(m);
        return KEDGE_E_NOMEM;
    }
    for (uint32_t i = 0; i < c->input_count; i++) {
        const struct sim_close_input *in = &c->inputs[i];
        const struct kedgei_update *u = kedgei_protocol_update(p, &in->update);
        if (group != KEDGE_COORD_NONE && in->group != group) {
            continue;
        }
        size_t k = m->count++;
        kedgei_protocol_at(p, &in->update, m->paths[k], &m->files[k]);
        m->tenant[k] = in->tenant;
        m->inputs[k] = (struct kedge_compute_input){.update = m->files[k],
                                                    .tenant = in->tenant,
                                                    .facts = {.samples = u ? u->samples : 1,
                                                              .steps = u ? u->steps : 1,
                                                              .loss = u ? u->base_loss : 0}};
    }
    return KEDGE_OK;
}

/* ---- a group ---- */

static int aggregate(struct kedgei_protocol *p, const struct members *m, const struct kedge_digest *base,
                     bool cold, uint64_t *since, struct kedge_digest *ret)
{
    struct kedge_compute_weights weights = {.rule = p->job.rule, .weight = m->weight};
    char path[KEDGE_PATH_MAX];
    struct kedgei_file file;
    kedgei_files_path(&p->files, base, path);
    int err = kedge_compute_weigh(&p->job, &p->layout, cold, m->inputs, m->count, &weights, p->d);
    for (size_t i = 0; i < m->count && !err; i++) {
        *since += kedge_job_spec_meeting_share(&p->job, m->weight[i], m->inputs[i].facts.samples);
    }
    err = err ? err : kedgei_file_begin(&p->files, 0, &file, p->d);
    if (err) {
        return err;
    }
    err = kedge_compute_aggregate(&p->job, &p->layout, path, m->inputs, m->count, &weights, p->limit,
                                  file.sink, p->d);
    return kedgei_file_end(&file, err, ret, p->d);
}

/* The server's step from before and aggregate: models[group] and states[group] of `next`. */
static int step(struct kedgei_protocol *p, uint32_t group, const struct kedge_digest *before)
{
    struct kedgei_close *n = &p->next;
    char paths[3][KEDGE_PATH_MAX];
    struct kedgei_file model, state;
    static const struct kedge_digest none;
    bool begins = sim_same(&n->states[group], &none);
    kedgei_files_path(&p->files, before, paths[0]);
    kedgei_files_path(&p->files, &n->models[group], paths[1]);
    kedgei_files_path(&p->files, &n->states[group], paths[2]);
    int err = kedgei_file_begin(&p->files, 0, &model, p->d);
    if (err) {
        return err;
    }
    int state_err = kedgei_file_begin(&p->files, 1, &state, p->d);
    err = state_err ? state_err
                    : kedge_compute_server(&p->job, &p->layout, paths[0], paths[1], begins ? NULL : paths[2],
                                           model.sink, state.sink, p->d);
    err = kedgei_file_end(&model, err, &n->models[group], p->d);
    return state_err ? err : kedgei_file_end(&state, err, &n->states[group], p->d);
}

static int close_group(struct kedgei_protocol *p, const struct sim_close *c, uint32_t group, bool cold)
{
    struct kedgei_close *n = &p->next;
    struct kedge_digest before = cold ? p->initial : c->models[group];
    struct members m;
    int err = members_of(p, c, group, &m);
    if (err) {
        return err;
    }
    n->models[group] = before;
    n->trained[group] = m.count > 0;
    err = m.count > 0 ? aggregate(p, &m, &before, cold, &n->since[group], &n->models[group]) : KEDGE_OK;
    members_deinit(&m);
    bool steps = !cold && n->trained[group] && kedge_server_states(p->job.server) > 0;
    return err || !steps ? err : step(p, group, &before);
}

int kedgei_protocol_direct(struct kedgei_protocol *p, const struct sim_close *c, uint32_t group)
{
    struct members m;
    struct kedgei_file file;
    int err = members_of(p, c, group, &m);
    if (err) {
        return err;
    }
    const struct kedge_compute_sites sites = {.files = m.files, .tenant = m.tenant, .count = m.count};
    err = kedgei_file_begin(&p->files, 0, &file, p->d);
    if (!err) {
        err = kedge_compute_direction(&p->layout, &sites, &p->job, file.sink, p->d);
        err = kedgei_file_end(&file, err, &p->next.directions[group], p->d);
    }
    members_deinit(&m);
    return err;
}

/* ---- rounds ---- */

static int mix(struct kedgei_protocol *p)
{
    struct kedgei_close *n = &p->next;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    struct kedgei_file files[KEDGE_GROUPS_MAX];
    struct kedge_sink sinks[KEDGE_GROUPS_MAX] = {{NULL, NULL}};
    uint32_t begun = 0;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < n->groups; g++) {
        models[g] = paths[g];
        kedgei_files_path(&p->files, &n->models[g], paths[g]);
    }
    for (; begun < n->groups && !err; begun++) {
        err = n->trained[begun] ? kedgei_file_begin(&p->files, begun, &files[begun], p->d) : KEDGE_OK;
        if (err) {
            break;
        }
        sinks[begun] = n->trained[begun] ? files[begun].sink : (struct kedge_sink){NULL, NULL};
    }
    err = err ? err
              : kedge_compute_mixing(&p->layout, models, n->trained, n->groups, p->job.mixing, sinks, p->d);
    for (uint32_t g = 0; g < begun; g++) {
        err = n->trained[g] ? kedgei_file_end(&files[g], err, &n->models[g], p->d) : err;
    }
    return err;
}

static int train_round(struct kedgei_protocol *p, const struct sim_close *c)
{
    uint32_t trained = 0;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < c->model_count && !err; g++) {
        err = close_group(p, c, g, false);
        trained += p->next.trained[g];
    }
    err = err || trained < 2 || p->job.mixing <= 0 ? err : mix(p);
    return err ? err : kedgei_protocol_meet(p);
}

static int cold_start(struct kedgei_protocol *p, struct sim_close *c)
{
    struct kedgei_close *n = &p->next;
    uint32_t *group = kedge_mem_new((size_t)c->input_count + 1, sizeof *group);
    struct members m;
    int err = group ? members_of(p, c, KEDGE_COORD_NONE, &m) : KEDGE_E_NOMEM;
    if (err) {
        kedge_mem_free(group);
        return err;
    }
    const struct kedge_compute_sites sites = {.files = m.files, .tenant = m.tenant, .count = m.count};
    err = kedge_compute_groups(&p->layout, &sites, &p->job, c->round, group, &n->groups, p->d);
    members_deinit(&m);
    for (uint32_t i = 0; i < c->input_count && !err; i++) {
        c->inputs[i].group = group[i] == KEDGE_GROUP_NONE ? KEDGE_COORD_NONE : group[i];
    }
    for (uint32_t g = 0; g < n->groups && !err; g++) {
        err = close_group(p, c, g, true);
        err = err ? err : kedgei_protocol_direct(p, c, g);
    }
    kedge_mem_free(group);
    return err;
}

int kedgei_protocol_find(struct kedgei_protocol *p, const struct kedge_digest *update,
                         const struct kedge_digest *directions, uint32_t groups, uint32_t *ret_group)
{
    char path[KEDGE_PATH_MAX], paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *ways[KEDGE_GROUPS_MAX];
    struct kedge_blob_at at;
    double cosine;
    kedgei_protocol_at(p, update, path, &at);
    for (uint32_t g = 0; g < groups; g++) {
        ways[g] = paths[g];
        kedgei_files_path(&p->files, &directions[g], paths[g]);
    }
    int err = kedge_compute_nearest(&p->layout, &at, ways, groups, ret_group, &cosine, p->d);
    if (err == KEDGE_E_NOT_FOUND) { /* it points nowhere */
        *ret_group = 0;
        err = KEDGE_OK;
    }
    return err;
}

int kedgei_protocol_nearest(void *arg, uint32_t site, const struct kedge_digest *update, uint32_t *ret_group)
{
    struct kedgei_protocol *p = arg;
    (void)site;
    int err = kedgei_protocol_find(p, update, p->last.directions, p->last.groups, ret_group);
    p->err = p->err ? p->err : err;
    return err;
}

static void note_assigned(struct kedgei_close *n, const struct sim_close *c, uint32_t sites)
{
    for (uint32_t i = 0; i < sites; i++) {
        n->assigned[i] = KEDGE_COORD_NONE;
    }
    for (uint32_t i = 0; i < c->input_count && c->kind == KEDGE_TASK_PRETRAIN; i++) {
        n->assigned[c->inputs[i].site] = c->inputs[i].group;
    }
    for (uint32_t i = 0; i < c->other_count; i++) {
        n->assigned[c->others[i].site] = c->others[i].group;
    }
    n->input_count = c->input_count;
    for (uint32_t i = 0; i < c->input_count; i++) {
        n->inputs[i] = c->inputs[i].update;
    }
}

int kedgei_protocol_close(void *arg, struct sim_close *c)
{
    struct kedgei_protocol *p = arg;
    struct kedgei_close *n = &p->next;
    bool first = c->kind == KEDGE_TASK_PRETRAIN && c->round == 0;
    uint32_t *assigned = n->assigned;
    struct kedge_digest *inputs = n->inputs;
    *n = p->last;
    n->assigned = assigned;
    n->inputs = inputs;
    n->round = c->round;
    n->kind = c->kind;
    n->groups = c->model_count;
    memset(n->trained, 0, sizeof n->trained);
    int err = first                            ? cold_start(p, c)
              : c->kind == KEDGE_TASK_PRETRAIN ? kedgei_protocol_regroup(p, c)
                                               : train_round(p, c);
    if (err) { /* the coordinator would try again for ever what is not for the job to answer for */
        bool is_ours = kedge_err_class(err) != KEDGE_CLASS_REJECT;
        p->err = p->err || !is_ours ? p->err : err;
        p->w->stopped = p->w->stopped || is_ours;
        return err;
    }
    c->model_count = n->groups;
    memcpy(c->models, n->models, n->groups * sizeof c->models[0]);
    note_assigned(n, c, p->l->n);
    return KEDGE_OK;
}
