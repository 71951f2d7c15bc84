/* The order of a close. */
#include "round/close/close.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "grouping/flexcfl.h"
#include "round/close/impl.h"
#include "round/meet.h"

void kedge_round_result_free(struct kedge_round_result *r)
{
    if (r) {
        kedge_mem_free(r->aggregates);
        kedge_mem_free(r->assigned_sites);
        kedge_mem_free(r->assigned_groups);
        kedge_mem_free(r);
    }
}

int kedgei_close_assignments(struct kedge_round_result *r, size_t count)
{
    r->assigned_sites = kedge_mem_new(count + 1, sizeof *r->assigned_sites);
    r->assigned_groups = kedge_mem_new(count + 1, sizeof *r->assigned_groups);
    return r->assigned_sites && r->assigned_groups ? KEDGE_OK : KEDGE_E_NOMEM;
}

void kedgei_close_assign(struct kedge_round_result *r, uint32_t site, uint32_t group)
{
    r->assigned_sites[r->assigned_count] = site;
    r->assigned_groups[r->assigned_count++] = group;
}

/* ---- directions ---- */

int kedgei_close_direct(struct kedge_close *c, const struct kedge_compute_sites *sites, bool made,
                        struct kedge_hash *ret)
{
    struct kedge_close_file file;
    int err = c->host.begin(c->host.arg, kedge_safetensors_file_len(c->layout, KEDGE_DTYPE_I32), &file, c->d);
    if (err) {
        return err;
    }
    err = made ? kedge_compute_made_direction(c->layout, sites, c->spec, file.sink, c->d)
               : kedge_compute_direction(c->layout, sites, c->spec, file.sink, c->d);
    return c->host.end(c->host.arg, &file, err, ret, c->d);
}

int kedgei_close_direction(struct kedge_close *c, uint32_t group)
{
    struct kedge_blob_at *files = kedge_mem_new(c->input_count + 1, sizeof *files);
    uint32_t *tenant = kedge_mem_new(c->input_count + 1, sizeof *tenant);
    struct kedge_compute_sites members = {.files = files, .tenant = tenant};
    for (size_t i = 0; files && tenant && i < c->input_count; i++) {
        if (!c->inputs[i].left_out && c->inputs[i].group == group) {
            tenant[members.count] = c->inputs[i].place;
            files[members.count++] = c->inputs[i].file;
        }
    }
    int err = files && tenant ? kedgei_close_direct(c, &members, true, &c->result->directions[group])
                              : KEDGE_E_NOMEM;
    kedge_mem_free(files);
    kedge_mem_free(tenant);
    return err;
}

int kedge_close_nearest(const struct kedge_close_host *host, const struct kedge_layout *layout, uint32_t site,
                        const struct kedge_hash *update, const struct kedge_hash *former,
                        const struct kedge_hash *directions, uint32_t groups, uint32_t *ret_group,
                        struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *new_ones[KEDGE_GROUPS_MAX];
    struct kedge_blob_at at;
    double cosine;
    int err = host->update(host->arg, site, update, path, &at);
    if (err == KEDGE_E_NOT_FOUND) {
        err = host->path(host->arg, former, path);
        at = (struct kedge_blob_at){.path = path, .digest = *former};
    }
    for (uint32_t g = 0; g < groups && !err; g++) {
        new_ones[g] = paths[g];
        err = host->path(host->arg, &directions[g], paths[g]);
    }
    err = err ? err : kedge_compute_nearest(layout, &at, new_ones, groups, ret_group, &cosine, d);
    if (err == KEDGE_E_NOT_FOUND) { /* points nowhere */
        *ret_group = 0;
        err = KEDGE_OK;
    }
    return err;
}

/* ---- models of several groups ---- */

int kedgei_close_blend(struct kedge_close *c, const struct kedge_hash *models, const uint64_t *weight,
                       uint32_t count, struct kedge_hash *ret)
{
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *files[KEDGE_GROUPS_MAX];
    struct kedge_close_file file;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < count && !err; g++) {
        files[g] = paths[g];
        err = c->host.path(c->host.arg, &models[g], paths[g]);
    }
    err =
        err ? err
            : c->host.begin(c->host.arg, kedge_safetensors_file_len(c->layout, KEDGE_DTYPE_F32), &file, c->d);
    if (err) {
        return err;
    }
    err = kedge_compute_blend(c->layout, files, weight, count, file.sink, c->d);
    return c->host.end(c->host.arg, &file, err, ret, c->d);
}

static int mix(struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    uint64_t len = kedge_safetensors_file_len(c->layout, KEDGE_DTYPE_F32);
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    struct kedge_close_file files[KEDGE_GROUPS_MAX];
    struct kedge_sink sinks[KEDGE_GROUPS_MAX] = {{NULL, NULL}};
    uint32_t begun = 0;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        models[g] = paths[g];
        err = c->host.path(c->host.arg, &r->stepped[g], paths[g]);
    }
    while (begun < r->groups && !err) {
        err = r->trained[begun] ? c->host.begin(c->host.arg, len, &files[begun], c->d) : KEDGE_OK;
        if (!err && r->trained[begun]) {
            sinks[begun] = files[begun].sink;
        }
        begun += err ? 0 : 1;
    }
    err = err ? err
              : kedge_compute_mixing(c->layout, models, r->trained, r->groups, c->spec->mixing, sinks, c->d);
    for (uint32_t g = 0; g < begun; g++) {
        err = r->trained[g] ? c->host.end(c->host.arg, &files[g], err, &r->after[g], c->d) : err;
    }
    return err;
}

/* ---- rounds ---- */

bool kedge_close_needs_no_files(const struct kedge_job_spec *spec)
{
    return kedge_job_spec_weighs_samples(spec) && spec->rule->kind == KEDGE_RULE_MEAN
           && !kedge_job_spec_splits(spec);
}

int kedge_close_weigh(struct kedge_close *c)
{
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < c->result->groups && !err; g++) {
        err = kedgei_close_weigh(c, g, false);
    }
    return err;
}

int kedge_close_train(struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    uint32_t trained = 0;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        err = kedgei_close_group(c, g, false);
        trained += r->trained[g];
    }
    r->mixed = trained >= 2 && c->spec->mixing > 0;
    err = !err && r->mixed ? mix(c) : err;
    err = err ? err : kedgei_close_edges(c);
    err = err ? err : kedgei_close_refresh(c);
    return err ? err : kedgei_close_split(c);
}

static int cold_start(struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    struct kedge_blob_at *files = kedge_mem_new(c->input_count + 1, sizeof *files);
    uint32_t *group = kedge_mem_new(c->input_count + 1, sizeof *group),
             *tenant = kedge_mem_new(c->input_count + 1, sizeof *tenant);
    struct kedge_compute_sites sites = {.files = files, .tenant = tenant, .count = c->input_count};
    int err = files && group && tenant ? kedgei_close_assignments(r, c->input_count) : KEDGE_E_NOMEM;
    for (size_t i = 0; !err && i < c->input_count; i++) {
        files[i] = c->inputs[i].file;
        tenant[i] = c->inputs[i].place;
    }
    err = err ? err : kedge_compute_groups(c->layout, &sites, c->spec, 0, group, &r->groups, c->d);
    for (size_t i = 0; !err && i < c->input_count; i++) {
        c->inputs[i].group = group[i];
        c->inputs[i].left_out = group[i] == KEDGE_GROUP_NONE;
        if (!c->inputs[i].left_out) {
            kedgei_close_assign(r, c->inputs[i].site, group[i]);
        }
    }
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        r->before[g] = c->initial;
        err = kedgei_close_weigh(c, g, true);
        err = err ? err : kedgei_close_group(c, g, true);
        err = err ? err : kedgei_close_direction(c, g);
    }
    kedge_mem_free(files);
    kedge_mem_free(group);
    kedge_mem_free(tenant);
    return err;
}

int kedge_close_pretrain(struct kedge_close *c)
{
    return c->result->round == 0 ? cold_start(c) : kedgei_close_regroup(c);
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
