/* What operations share: where vectors lie, what is told of a decision, whose group a site gets. Results
 * are assembled in the round's result; files only through the host. */
#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "round/close/close.h"
#include "round/close/impl.h"

int kedgei_path_of(const struct kedge_close *c, struct kedgei_paths *paths, const struct kedge_hash *vector)
{
    const uint32_t k = paths->count;
    KEDGE_ASSERT(k < KEDGE_GROUPS_MAX);
    int err = c->host.vector(c->host.arg, vector, paths->path[k], &paths->at[k]);
    paths->count += !err;
    return err;
}

int kedgei_begin(const struct kedge_close *c, enum kedge_dtype dtype, size_t vectors,
                 struct kedge_close_file *ret)
{
    return c->host.begin(c->host.arg, kedge_safetensors_file_len(c->layout, dtype) * vectors, ret, c->d);
}

/* A host without `decided` takes every decision as it is, and every error ends the close. An auditor's host
 * turns an error into the recorded value and answers KEDGE_OK, so that one file that is missing does not
 * end the replay of a whole round. */
int kedgei_decided(struct kedge_close *c, struct kedge_decision *d, int err)
{
    d->err = err;
    return c->host.decided ? c->host.decided(c->host.arg, d, c->d) : err;
}

int kedgei_assignments(struct kedge_close *c, size_t count)
{
    struct kedge_round_result *r = c->result;
    if (r->assigned_sites && r->assigned_groups) { /* a close that joins groups and cuts others */
        return KEDGE_OK;
    }
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
