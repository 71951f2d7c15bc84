/* Operations that find groups: clusters, directions, which one is nearest, which drift, join and part.
 *
 * All have one shape. The function computes what it can into a decision, `kedgei_decided` tells it to the
 * host, and what is in the decision afterwards is used, not what was computed. For a coordinator that is
 * the same. An auditor puts the recorded value there, also where a file is gone and nothing could be
 * computed (KEDGE_E_NOT_FOUND), so no operation may use its own result before that call. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"
#include "round/close/impl.h"
#include "round/drift.h"
#include "round/regroup.h"
#include "round/reshape.h"
#include "round/split.h"
#include "round/trial.h"

int kedgei_members_init(struct kedgei_members *m, size_t most)
{
    *m = (struct kedgei_members){.files = kedge_mem_new(most + 1, sizeof *m->files),
                                 .tenant = kedge_mem_new(most + 1, sizeof *m->tenant)};
    return m->files && m->tenant ? KEDGE_OK : KEDGE_E_NOMEM;
}

void kedgei_members_deinit(struct kedgei_members *m)
{
    kedge_mem_free(m->files);
    kedge_mem_free(m->tenant);
}

static struct kedge_compute_sites sites_of(const struct kedgei_members *m)
{
    return (struct kedge_compute_sites){m->files, m->tenant, m->count};
}

/* ---- clusters ---- */

/* KEDGE_E_NOT_FOUND is set before anything is computed if one update is gone: clusters of the others would
 * be clusters of another set, which is not what the coordinator decided. */
int kedgei_cluster(struct kedge_close *c, const uint32_t *former, uint32_t *ret_group, uint32_t *ret_groups)
{
    struct kedge_decision d = {
        .kind = KEDGE_DECISION_CLUSTER, .count = (uint32_t)c->input_count, .index = ret_group};
    struct kedgei_members m;
    const uint32_t round = c->result->round;
    int err = kedgei_members_init(&m, c->input_count);
    for (size_t i = 0; i < c->input_count && !err; i++) {
        m.files[i] = c->inputs[i].file;
        m.tenant[i] = c->inputs[i].place;
        m.lacks = m.lacks || c->inputs[i].is_gone;
    }
    m.count = c->input_count;
    const struct kedge_compute_sites sites = sites_of(&m);
    if (!err && m.lacks) {
        err = KEDGE_E_NOT_FOUND;
    } else if (!err && former) {
        err = kedge_compute_regroup(c->layout, &sites, c->spec, round, former, ret_group, &d.groups, c->d);
    } else if (!err) {
        err = kedge_compute_groups(c->layout, &sites, c->spec, round, ret_group, &d.groups, c->d);
    }
    err = kedgei_decided(c, &d, err);
    if (!err) {
        *ret_groups = d.groups;
    }
    kedgei_members_deinit(&m);
    return err;
}

/* ---- directions ---- */

/* `end` is called also after an error: it throws the host's begun file away. */
static int make_direction(struct kedge_close *c, const struct kedgei_members *of, bool made,
                          struct kedge_hash *ret)
{
    const struct kedge_compute_sites sites = sites_of(of);
    struct kedge_close_file file;
    int err = of->lacks ? KEDGE_E_NOT_FOUND : kedgei_begin(c, KEDGE_DTYPE_I32, 1, &file);
    if (err) {
        return err;
    }
    err = made ? kedge_compute_made_direction(c->layout, &sites, c->spec, file.sink, c->d)
               : kedge_compute_direction(c->layout, &sites, c->spec, file.sink, c->d);
    return c->host.end(c->host.arg, &file, err, ret, c->d);
}

/* A group whose updates are all zero has no direction. That is a decision, too, not a failure: the host is
 * told of a zero vector and no error, and only the caller hears KEDGE_E_NO_DIRECTION. The recorded
 * direction decides which of the two it is. */
int kedgei_direct(struct kedge_close *c, uint32_t group, const struct kedgei_members *of, bool made,
                  struct kedge_hash *ret)
{
    struct kedge_decision d = {.kind = KEDGE_DECISION_DIRECTION, .group = group};
    int err = of->count > 0 || of->lacks ? make_direction(c, of, made, &d.vector) : KEDGE_E_NO_DIRECTION;
    bool is_zero = err == KEDGE_E_NO_DIRECTION;
    err = kedgei_decided(c, &d, is_zero ? KEDGE_OK : err);
    if (err) {
        return err;
    }
    if (kedge_hash_is_zero(&d.vector)) {
        return KEDGE_E_NO_DIRECTION;
    }
    *ret = d.vector;
    return KEDGE_OK;
}

/* A coordinator that was killed after a close, and a party that reads the ledgers later, must find the same
 * group. An owner may have had the update erased meanwhile. Then the direction of the group that the site
 * was in stands for it: no owner can have that one erased. */
int kedge_close_nearest(const struct kedge_close_host *host, const struct kedge_layout *layout, uint32_t site,
                        const struct kedge_hash *update, const struct kedge_hash *former,
                        const struct kedge_hash *directions, uint32_t groups, uint32_t *ret_group,
                        struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    struct kedge_blob_at at, new_ones[KEDGE_GROUPS_MAX];
    double cosine;
    int err = host->update(host->arg, site, update, path, &at);
    if (err == KEDGE_E_NOT_FOUND) {
        err = host->vector(host->arg, former, path, &at);
    }
    for (uint32_t g = 0; g < groups && !err; g++) {
        err = host->vector(host->arg, &directions[g], paths[g], &new_ones[g]);
    }
    if (err) {
        return err;
    }
    err = kedge_compute_nearest(layout, &at, new_ones, groups, ret_group, &cosine, d);
    if (err == KEDGE_E_NOT_FOUND) { /* its length is zero */
        *ret_group = 0;
        err = KEDGE_OK;
    }
    return err;
}

/* Only two directions are compared, for the site is in the group that is cut: a third one that happens to
 * be nearer is not asked. Without an update it stays with the first part, whose number the group keeps. */
int kedge_close_cut(const struct kedge_close_host *host, const struct kedge_layout *layout, uint32_t site,
                    const struct kedge_hash *update, const struct kedge_hash *directions, uint32_t from,
                    uint32_t to, uint32_t *ret_group, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], paths[2][KEDGE_PATH_MAX];
    struct kedge_blob_at at, both[2];
    uint32_t nearest = 0;
    double cosine;
    *ret_group = from;
    int err = host->update(host->arg, site, update, path, &at);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    KEDGE_TRY(host->vector(host->arg, &directions[from], paths[0], &both[0]));
    KEDGE_TRY(host->vector(host->arg, &directions[to], paths[1], &both[1]));
    err = kedge_compute_nearest(layout, &at, both, 2, &nearest, &cosine, d);
    if (err == KEDGE_E_NOT_FOUND) { /* its length is zero */
        return KEDGE_OK;
    }
    *ret_group = !err && nearest == 1 ? to : from;
    return err;
}

/* An auditor's: the update or one of these directions is not here. The two functions above go on without an
 * update, since its owner may have it erased. An auditor must not: whether the file was there when the
 * coordinator looked is not recorded, so it takes the recorded group instead. */
static bool is_gone(const struct kedge_close *c, const struct kedge_close_other *site,
                    const struct kedge_hash *directions, uint32_t count)
{
    struct kedgei_paths paths = {.count = 0};
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_at at;
    if (!c->host.decided) {
        return false;
    }
    bool lacks = c->host.update(c->host.arg, site->site, &site->update, path, &at) == KEDGE_E_NOT_FOUND;
    for (uint32_t g = 0; g < count && !lacks; g++) {
        lacks = kedgei_path_of(c, &paths, &directions[g]) == KEDGE_E_NOT_FOUND;
    }
    return lacks;
}

int kedgei_nearest(struct kedge_close *c, const struct kedge_close_other *site,
                   const struct kedge_hash *former_direction, uint32_t *ret_group)
{
    const struct kedge_round_result *r = c->result;
    struct kedge_decision d = {.kind = KEDGE_DECISION_NEAREST, .site = site->site};
    int err = is_gone(c, site, r->directions, r->groups)
                  ? KEDGE_E_NOT_FOUND
                  : kedge_close_nearest(&c->host, c->layout, site->site, &site->update, former_direction,
                                        r->directions, r->groups, &d.group, c->d);
    err = kedgei_decided(c, &d, err);
    *ret_group = d.group;
    return err;
}

int kedgei_side(struct kedge_close *c, const struct kedge_close_other *site, uint32_t from, uint32_t to,
                uint32_t *ret_group)
{
    const struct kedge_hash both[] = {c->result->directions[from], c->result->directions[to]};
    struct kedge_decision d = {.kind = KEDGE_DECISION_NEAREST, .site = site->site, .group = from};
    int err = is_gone(c, site, both, 2) ? KEDGE_E_NOT_FOUND
                                        : kedge_close_cut(&c->host, c->layout, site->site, &site->update,
                                                          c->result->directions, from, to, &d.group, c->d);
    err = kedgei_decided(c, &d, err);
    *ret_group = d.group;
    return err;
}

/* ---- what becomes of groups ---- */

/* Of the groups that are not part of another one: a joined group has the direction of the one that it is
 * in, and would count that one twice. A zero `made` says that the direction has not moved since. */
static int find_drift(struct kedge_close *c, double *ret)
{
    const struct kedge_round_result *r = c->result;
    struct kedgei_paths made = {.count = 0}, now = {.count = 0};
    for (uint32_t g = 0; g < r->groups; g++) {
        const struct kedge_hash *begin = kedge_hash_is_zero(&r->made[g]) ? &r->directions[g] : &r->made[g];
        if (r->merged_into[g]) {
            continue;
        }
        KEDGE_TRY(kedgei_path_of(c, &made, begin));
        KEDGE_TRY(kedgei_path_of(c, &now, &r->directions[g]));
    }
    return kedge_compute_drift(c->layout, made.at, now.at, now.count, ret, c->d);
}

int kedgei_measure_drift(struct kedge_close *c, double *ret)
{
    struct kedge_decision d = {.kind = KEDGE_DECISION_DRIFT};
    int err = find_drift(c, &d.drift);
    err = kedgei_decided(c, &d, err);
    *ret = d.drift;
    return err;
}

/* A group that is part of another one keeps its place in the table, so that into[] has an item for every
 * number, but gets no path: kedge_compute_merges leaves such groups out. */
static int find_merges(struct kedge_close *c, uint32_t *ret_into, bool *ret_any)
{
    const struct kedge_round_result *r = c->result;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    struct kedge_blob_at directions[KEDGE_GROUPS_MAX];
    for (uint32_t g = 0; g < r->groups; g++) {
        int err = c->host.vector(c->host.arg, &r->directions[g], paths[g], &directions[g]);
        if (err) {
            return err;
        }
        directions[g].path = r->merged_into[g] ? NULL : directions[g].path;
    }
    return kedge_compute_merges(c->layout, c->spec, directions, r->groups, ret_into, ret_any, c->d);
}

int kedgei_find_merges(struct kedge_close *c, uint32_t *ret_into, bool *ret_any)
{
    const uint32_t groups = c->result->groups;
    struct kedge_decision d = {.kind = KEDGE_DECISION_MERGES, .count = groups, .index = ret_into};
    int err = find_merges(c, ret_into, ret_any);
    err = kedgei_decided(c, &d, err);
    *ret_any = false;
    for (uint32_t g = 0; g < groups && !err; g++) {
        *ret_any = *ret_any || ret_into[g] != g;
    }
    return err;
}

/* ---- trials ---- */

/* How many sites and tenants the two groups have. */
static struct kedge_trial_crowd crowd_of(const struct kedge_close *c, uint32_t a, uint32_t b)
{
    struct kedge_trial_crowd crowd = {.tenants = 0};
    bool has_site[KEDGE_SPEC_TENANTS_MAX] = {false};
    for (size_t i = 0; i < c->other_count; i++) {
        const struct kedge_close_other *o = &c->others[i];
        if (o->former == a || o->former == b) {
            crowd.sites[o->former == b]++;
            crowd.tenants += !has_site[o->place];
            has_site[o->place] = true;
        }
    }
    return crowd;
}

/* A cut leaves both parts with the model of the whole, so that they may become it again as if nothing had
 * been. Two groups that have trained apart never have one model. */
bool kedgei_are_parts(const struct kedge_round_result *r, uint32_t a, uint32_t b)
{
    return r->tried_before[a] == b + 1 && kedge_hash_eq(&r->before[a], &r->before[b]);
}

/* Sites of both groups have tested the trial model. Evaluations of other groups, and of groups without a
 * trial, are not about this pair. */
static int judge_pair(const struct kedge_close *c, uint32_t a, uint32_t b, struct kedge_trial_input *inputs,
                      bool *ret_joins)
{
    const struct kedge_trial_crowd crowd = crowd_of(c, a, b);
    size_t n = 0;
    for (size_t i = 0; i < c->evaluation_count; i++) {
        const struct kedge_close_evaluation *e = &c->evaluations[i];
        if (e->group == a || e->group == b) {
            inputs[n++] = (struct kedge_trial_input){.tenant = e->place,
                                                     .side = e->group == b,
                                                     .samples = e->samples,
                                                     .loss = e->loss,
                                                     .trial_loss = e->trial_loss};
        }
    }
    if (!kedgei_are_parts(c->result, a, b)) {
        return kedge_compute_trial(c->spec, inputs, n, &crowd, ret_joins);
    }
    bool stays = false;
    int err = kedge_compute_cut_stays(c->spec, inputs, n, &crowd, &stays);
    *ret_joins = !err && !stays;
    return err;
}

/* Each pair is judged once, from its lower number: tried_before is symmetric and counts from 1, 0 is none.
 * The higher group becomes part of the lower, as wherever groups join, so that numbers stay stable. */
static int judge_trials(const struct kedge_close *c, uint32_t *ret_into)
{
    const struct kedge_round_result *r = c->result;
    struct kedge_trial_input *inputs = kedge_mem_new(c->evaluation_count + 1, sizeof *inputs);
    int err = inputs ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        const uint32_t with = r->tried_before[g];
        bool joins = false;
        if (with > g + 1 && with <= r->groups) {
            err = judge_pair(c, g, with - 1, inputs, &joins);
            ret_into[with - 1] = joins ? g : with - 1;
        }
    }
    kedge_mem_free(inputs);
    return err;
}

int kedgei_judge_trials(struct kedge_close *c, uint32_t *ret_into, bool *ret_any)
{
    const uint32_t groups = c->result->groups;
    struct kedge_decision d = {.kind = KEDGE_DECISION_VERDICTS, .count = groups, .index = ret_into};
    for (uint32_t g = 0; g < groups; g++) {
        ret_into[g] = g;
    }
    int err = c->lacks_evaluations ? KEDGE_E_NOT_FOUND : judge_trials(c, ret_into);
    err = kedgei_decided(c, &d, err);
    *ret_any = false;
    for (uint32_t g = 0; g < groups && !err; g++) {
        *ret_any = *ret_any || ret_into[g] != g;
    }
    return err;
}

static int find_personal(const struct kedge_close *c, bool *ret_is_personal)
{
    struct kedge_trial_input *inputs = kedge_mem_new(c->evaluation_count + 1, sizeof *inputs);
    size_t n = 0;
    if (!inputs) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < c->evaluation_count; i++) {
        const struct kedge_close_evaluation *e = &c->evaluations[i];
        if (e->personal_loss > 0) {
            inputs[n++] = (struct kedge_trial_input){
                .tenant = e->place, .samples = e->samples, .loss = e->loss, .trial_loss = e->personal_loss};
        }
    }
    *ret_is_personal = c->result->is_personal;
    int err = kedge_compute_personal(c->spec, inputs, n, ret_is_personal);
    kedge_mem_free(inputs);
    return err;
}

int kedgei_judge_personal(struct kedge_close *c)
{
    struct kedge_decision d = {.kind = KEDGE_DECISION_PERSONAL};
    int err = c->lacks_evaluations ? KEDGE_E_NOT_FOUND : find_personal(c, &d.is_personal);
    err = kedgei_decided(c, &d, err);
    if (!err) {
        c->result->is_personal = d.is_personal;
    }
    return err;
}

static int find_pairs(struct kedge_close *c, uint32_t *ret_with)
{
    const struct kedge_round_result *r = c->result;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    struct kedge_blob_at directions[KEDGE_GROUPS_MAX];
    bool is_part[KEDGE_GROUPS_MAX] = {false};
    for (uint32_t g = 0; g < r->groups; g++) {
        is_part[g] = r->merged_into[g] > 0;
        int err =
            is_part[g] ? KEDGE_OK : c->host.vector(c->host.arg, &r->directions[g], paths[g], &directions[g]);
        if (err) {
            return err;
        }
    }
    return kedge_compute_pairs(c->layout, directions, is_part, r->groups, ret_with, c->d);
}

int kedgei_find_pairs(struct kedge_close *c, uint32_t *ret_with)
{
    struct kedge_decision d = {.kind = KEDGE_DECISION_PAIRS, .count = c->result->groups, .index = ret_with};
    for (uint32_t g = 0; g < c->result->groups; g++) {
        ret_with[g] = g;
    }
    return kedgei_decided(c, &d, find_pairs(c, ret_with));
}

typedef int cut_fn(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                   const struct kedge_compute_sites *sites, uint32_t *part, bool *ret_cut,
                   struct kedge_diag *d);

/* Both ways to cut a group differ in which updates they look at and by what; what is decided, and told, is
 * the same. */
static int cut_by(struct kedge_close *c, enum kedge_decision_kind kind, uint32_t group,
                  const struct kedgei_members *of, cut_fn *find, uint32_t *ret_part, bool *ret_cut)
{
    const struct kedge_compute_sites sites = sites_of(of);
    struct kedge_decision d = {.kind = kind, .group = group, .count = (uint32_t)of->count, .index = ret_part};
    int err = of->lacks ? KEDGE_E_NOT_FOUND : find(c->layout, c->spec, &sites, ret_part, &d.is_cut, c->d);
    err = kedgei_decided(c, &d, err);
    *ret_cut = d.is_cut;
    return err;
}

int kedgei_cut_by_angles(struct kedge_close *c, uint32_t group, const struct kedgei_members *of,
                         uint32_t *ret_part, bool *ret_cut)
{
    return cut_by(c, KEDGE_DECISION_CUT, group, of, kedge_compute_cut, ret_part, ret_cut);
}

int kedgei_cut_by_halves(struct kedge_close *c, uint32_t group, const struct kedgei_members *of,
                         uint32_t *ret_part, bool *ret_cut)
{
    return cut_by(c, KEDGE_DECISION_CUT, group, of, kedge_compute_halves, ret_part, ret_cut);
}

static int find_parts(const struct kedge_layout *layout, const struct kedge_job_spec *spec,
                      const struct kedge_compute_sites *sites, uint32_t *part, bool *ret_cut,
                      struct kedge_diag *d)
{
    return kedge_compute_split(layout, spec, sites->files, sites->count, part, ret_cut, d);
}

int kedgei_cut_by_lengths(struct kedge_close *c, uint32_t group, const struct kedgei_members *of,
                          uint32_t *ret_part, bool *ret_cut)
{
    return cut_by(c, KEDGE_DECISION_SPLIT, group, of, find_parts, ret_part, ret_cut);
}
