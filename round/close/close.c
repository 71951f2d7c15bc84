/* The order of a close. */
#include "round/close/close.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "round/close/grouping.h"
#include "round/close/impl.h"

void kedge_round_result_free(struct kedge_round_result *r)
{
    if (r) {
        kedge_mem_free(r->aggregates);
        kedge_mem_free(r->assigned_sites);
        kedge_mem_free(r->assigned_groups);
        kedge_mem_free(r);
    }
}

/* ---- what operations share ---- */

int kedgei_path_of(const struct kedge_close *c, struct kedgei_paths *paths, const struct kedge_hash *vector)
{
    char *path = paths->path[paths->count];
    KEDGE_ASSERT(paths->count < KEDGE_GROUPS_MAX);
    int err = c->host.path(c->host.arg, vector, path);
    if (!err) {
        paths->at[paths->count++] = path;
    }
    return err;
}

int kedgei_begin(const struct kedge_close *c, enum kedge_dtype dtype, size_t vectors,
                 struct kedge_close_file *ret)
{
    return c->host.begin(c->host.arg, kedge_safetensors_file_len(c->layout, dtype) * vectors, ret, c->d);
}

int kedgei_decided(struct kedge_close *c, struct kedge_decision *d, int err)
{
    d->err = err;
    return c->host.decided ? c->host.decided(c->host.arg, d, c->d) : err;
}

int kedgei_assignments(struct kedge_close *c, size_t count)
{
    struct kedge_round_result *r = c->result;
    r->assigned_sites = kedge_mem_new(count + 1, sizeof *r->assigned_sites);
    r->assigned_groups = kedge_mem_new(count + 1, sizeof *r->assigned_groups);
    return r->assigned_sites && r->assigned_groups ? KEDGE_OK : KEDGE_E_NOMEM;
}

void kedgei_assign(struct kedge_close *c, uint32_t site, uint32_t group)
{
    struct kedge_round_result *r = c->result;
    r->assigned_sites[r->assigned_count] = site;
    r->assigned_groups[r->assigned_count++] = group;
}

void kedgei_copy_group(struct kedge_round_result *r, uint32_t from, uint32_t to)
{
    r->before[to] = r->before[from];
    r->aggregate[to] = r->aggregate[from];
    r->stepped[to] = r->stepped[from];
    r->after[to] = r->after[from];
    r->state_before[to] = r->state_before[from];
    r->state_after[to] = r->state_after[from];
    r->made[to] = r->made[from];
}

/* ---- rounds ---- */

bool kedge_close_needs_no_files(const struct kedge_job_spec *spec)
{
    return kedge_job_spec_weighs_samples(spec) && spec->rule->kind == KEDGE_RULE_MEAN
           && !kedgei_grouping_of(spec)->marks_inputs;
}

int kedge_close_weigh(struct kedge_close *c)
{
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < c->result->groups && !err; g++) {
        err = kedgei_weigh_group(c, g, false);
    }
    return err;
}

int kedge_close_train(struct kedge_close *c)
{
    const struct kedgei_grouping *grouping = kedgei_grouping_of(c->spec);
    struct kedge_round_result *r = c->result;
    uint32_t trained = 0;
    for (uint32_t g = 0; g < r->groups; g++) {
        int err = kedgei_aggregate_group(c, g, false);
        if (err) {
            return err;
        }
        trained += r->trained[g];
    }
    r->mixed = trained >= 2 && c->spec->mixing > 0;
    int err = r->mixed ? kedgei_mix(c) : KEDGE_OK;
    return err || !grouping->close ? err : grouping->close(c);
}

int kedge_close_pretrain(struct kedge_close *c)
{
    const struct kedgei_grouping *grouping = kedgei_grouping_of(c->spec);
    return grouping->make ? grouping->make(c) : KEDGE_E_STATE;
}

void kedge_close_keep(struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    r->kept = true;
    for (uint32_t g = 0; g < r->groups; g++) {
        r->aggregate[g] = r->stepped[g] = r->after[g] = r->before[g];
        r->state_after[g] = r->state_before[g];
    }
    for (size_t i = 0; i < c->input_count; i++) {
        c->inputs[i].left_out = true;
    }
}
