/* Where a model comes from, as a tree for people and tools. It runs after all of verify and takes only
 * what that has judged; nothing here decides anything. Running out of memory is collected in one flag,
 * because a tree with a piece missing would be a wrong answer. */
#include "chain/audit/explain/explain_impl.h"
#include "chain/log/witness_quorum.h"
#include "common/base/mem.h"
#include "common/json/json.h"

#include <inttypes.h>
#include <string.h>

/* ---- pieces ---- */

/* ---- which model ---- */

static bool find_release(const struct kedgei_audit *a, const struct kedge_hash *model,
                         struct kedgei_origin *ret)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            const struct kedgei_fact *fact = a->jobs[j]->releases[g];
            if (fact && kedge_hash_eq(&fact->subject, model)) {
                *ret = (struct kedgei_origin){"release", a->jobs[j], fact, a->jobs[j]->round_count, g};
                return true;
            }
        }
    }
    return false;
}

/* The newest round whose result, else whose aggregate, this is. The newest first: the same bytes may be
 * the result of several rounds, and the last one is what a reader asks about. */
static bool find_round(const struct kedgei_audit *a, const struct kedge_hash *model,
                       struct kedgei_origin *ret)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        const struct kedgei_job *job = a->jobs[j];
        for (size_t r = job->round_count; r-- > 0;) {
            const struct kedgei_round *round = kedgei_round_at(job, r);
            const struct kedge_st_step *step = round->step ? round->step->body : NULL;
            for (uint32_t g = 0; step && g < step->group_count; g++) {
                if (kedge_hash_eq(&step->groups[g].after, model)) {
                    *ret = (struct kedgei_origin){"round-result", job, NULL, r + 1, step->groups[g].group};
                    return true;
                }
            }
            for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
                if (round->aggregates[g] && kedge_hash_eq(&round->aggregates[g]->subject, model)) {
                    *ret = (struct kedgei_origin){"aggregate", job, NULL, r + 1, g};
                    return true;
                }
            }
        }
    }
    return false;
}

static bool find_initial(const struct kedgei_audit *a, const struct kedge_hash *model,
                         struct kedgei_origin *ret)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        const struct kedge_st_job_opened *o = a->jobs[j]->opened->body;
        for (uint32_t g = 0; g <= o->first_model_count; g++) {
            struct kedge_hash first = kedgei_first_model(a->jobs[j], g);
            if (kedge_hash_eq(&first, model)) {
                *ret = (struct kedgei_origin){"initial-model", a->jobs[j], NULL, 0, g};
                return true;
            }
        }
    }
    return false;
}

/* ---- the job ---- */

static json_t *explain_members(const struct kedgei_audit *a, const struct kedgei_job *job, bool *nomem)
{
    const struct kedge_st_job_opened *o = job->opened->body;
    json_t *list = json_array();
    for (uint32_t t = 0; t < o->tenant_count; t++) {
        const struct kedgei_log *log = kedgei_job_tenant(a, job, &o->tenants[t]);
        const struct kedgei_fact *joined = log ? kedgei_log_find(log, "job-joined/%s", job->id.s) : NULL;
        json_t *row = json_object();
        kedgei_json_set(row, "salted_id", kedgei_json_hash(&o->tenants[t]), nomem);
        if (log) {
            kedgei_json_set(row, "tenant", json_string(log->name), nomem);
        }
        if (joined) {
            kedgei_json_set(row, "joined", kedgei_json_source(log, joined), nomem);
        }
        *nomem = json_array_append_new(list, row) != 0 || *nomem;
    }
    return list;
}

static json_t *explain_job(const struct kedgei_audit *a, const struct kedgei_job *job, bool *nomem)
{
    const struct kedge_st_job_opened *o = job->opened->body;
    json_t *row = json_object();
    kedgei_json_set(row, "name", json_string(job->id.s), nomem);
    kedgei_json_set(row, "spec", kedgei_json_hash(&job->opened->subject), nomem);
    kedgei_json_set(row, "opened", kedgei_json_source(&a->main, job->opened), nomem);
    kedgei_json_set(row, "parameters", json_integer((json_int_t)o->parameters), nomem);
    kedgei_json_set(row, "initial_model", kedgei_json_hash(&o->initial_model), nomem);
    kedgei_json_set(row, "rounds", json_integer((json_int_t)job->round_count), nomem);
    kedgei_json_set(row, "groups", json_integer(job->groups), nomem);
    if (job->usable) {
        kedgei_json_set(row, "data", json_string(job->spec.data), nomem);
        kedgei_json_set(row, "seed", json_sprintf("%" PRIu64, job->spec.seed), nomem);
    }
    if (job->closed) {
        kedgei_json_set(row, "closed", kedgei_json_source(&a->main, job->closed), nomem);
    }
    kedgei_json_set(row, "tenants", explain_members(a, job, nomem), nomem);
    return row;
}

/* ---- decisions about groups ---- */

/* Every time that a site was given the group and until when, so a reader can see that a site moved. */
static json_t *explain_grouping(const struct kedgei_audit *a, const struct kedgei_origin *origin, bool *nomem)
{
    json_t *list = json_array();
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        const struct kedgei_log *log = &a->tenants[t];
        for (uint64_t i = 0; i < log->count; i++) {
            const struct kedgei_fact *fact = kedgei_fact_at(log, i);
            const struct kedge_st_group_assigned *g = fact->body;
            if (fact->kind != KEDGE_ST_GROUP_ASSIGNED || !kedge_id_eq(&g->job, &origin->job->id)
                || g->group != origin->group) {
                continue;
            }
            const struct kedgei_fact *next = kedgei_group_behind(log, &g->job, &g->site, fact->index);
            const struct kedge_st_group_assigned *left = next ? next->body : NULL;
            json_t *row = json_object();
            kedgei_json_set(row, "tenant", json_string(log->name), nomem);
            kedgei_json_set(row, "site", json_string(g->site.s), nomem);
            kedgei_json_set(row, "round", json_integer(g->round), nomem);
            kedgei_json_set(row, "how", json_string(kedge_group_how_name(g->how)), nomem);
            if (left) {
                kedgei_json_set(row, "until", json_integer(left->round), nomem);
            }
            kedgei_json_set(row, "similarity", kedgei_json_number(g->similarity), nomem);
            kedgei_json_set(row, "source", kedgei_json_source(log, fact), nomem);
            *nomem = json_array_append_new(list, row) != 0 || *nomem;
        }
    }
    return list;
}

/* ---- checkpoints ---- */

/* Witnesses of the trust file's policy whose cosignature of the checkpoint holds. Other names on it are
 * anybody's. A policy that is not met (DENIED) still says which of its witnesses cosigned. */
static json_t *cosigner_names(const struct kedgei_audit *a, const struct kedgei_log *log,
                              struct kedge_view note, bool *nomem)
{
    const char *text = a->trust ? a->trust->witness_policy : NULL;
    json_t *list = json_array();
    struct kedge_witness_policy *policy = NULL;
    struct kedge_witness_demand demand = {
        .origin = kedge_view_str(log->origin), .logs = &log->vkey, .log_count = 1};
    if (!text || !log->has_vkey) {
        return list;
    }
    struct kedge_witness_evaluation *e = kedge_mem_new(1, sizeof *e);
    int err = e ? kedge_witness_policy_parse(kedge_view_str(text), &policy, NULL) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_witness_policy_evaluate(policy, note, &demand, e, NULL);
    }
    *nomem = *nomem || err == KEDGE_E_NOMEM;
    for (uint32_t i = 0; (!err || err == KEDGE_E_DENIED) && i < policy->witness_count; i++) {
        if (e->states[i] == KEDGE_WITNESS_COSIGNED) {
            *nomem = json_array_append_new(list, json_string(policy->witnesses[i].vkey.name)) != 0 || *nomem;
        }
    }
    kedge_witness_policy_free(policy);
    kedge_mem_free(e);
    return list;
}

static json_t *explain_log(const struct kedgei_audit *a, const struct kedgei_log *log, bool *nomem)
{
    const struct kedgei_head *head = log->head_count ? kedgei_head_at(log, log->head_count - 1) : NULL;
    json_t *row = json_object();
    kedgei_json_set(row, "log", json_string(log->name), nomem);
    kedgei_json_set(row, "entries", json_integer((json_int_t)log->count), nomem);
    if (head && head->size <= log->count) {
        struct kedge_hash root;
        kedgei_log_root(log, head->size, &root);
        kedgei_json_set(row, "checkpoint", json_integer((json_int_t)head->size), nomem);
        kedgei_json_set(row, "root", kedgei_json_hash(&root), nomem);
        kedgei_json_set(row, "cosignatures", cosigner_names(a, log, head->note, nomem), nomem);
    }
    if (log->has_vkey) {
        struct kedge_hash id;
        kedge_public_key_hash(&log->vkey.key, &id);
        kedgei_json_set(row, "key", kedgei_json_hash(&id), nomem);
    }
    if (log->tenant.s[0]) {
        kedgei_json_set(row, "anchored", json_integer((json_int_t)kedgei_anchored_before(log, KEDGEI_NEVER)),
                        nomem);
    }
    return row;
}

static json_t *explain_logs(const struct kedgei_audit *a, const struct kedgei_origin *origin, bool *nomem)
{
    const struct kedge_st_job_opened *o = origin->job->opened->body;
    json_t *list = json_array();
    *nomem = json_array_append_new(list, explain_log(a, &a->main, nomem)) != 0 || *nomem;
    for (uint32_t t = 0; t < o->tenant_count; t++) {
        const struct kedgei_log *log = kedgei_job_tenant(a, origin->job, &o->tenants[t]);
        if (log) {
            *nomem = json_array_append_new(list, explain_log(a, log, nomem)) != 0 || *nomem;
        }
    }
    return list;
}

/* ---- all ---- */

/* A model that the record does not know is no error: `*ret` stays NULL, and the caller says so. */
int kedgei_explain(const struct kedgei_audit *a, const struct kedge_hash *model, json_t **ret)
{
    struct kedgei_origin origin;
    bool nomem = false;
    *ret = NULL;
    if (!find_release(a, model, &origin) && !find_round(a, model, &origin)
        && !find_initial(a, model, &origin)) {
        return KEDGE_OK;
    }
    json_t *tree = json_object();
    kedgei_json_set(tree, "model", kedgei_json_hash(model), &nomem);
    kedgei_json_set(tree, "role", json_string(origin.role), &nomem);
    kedgei_json_set(tree, "deployment", json_string(a->deployment), &nomem);
    kedgei_json_set(tree, "group", json_integer(origin.group), &nomem);
    kedgei_json_set(tree, "job", explain_job(a, origin.job, &nomem), &nomem);
    if (origin.release) {
        const struct kedge_st_release *r = origin.release->body;
        json_t *release = json_object();
        kedgei_json_set(release, "file", json_string(r->file), &nomem);
        kedgei_json_set(release, "round", json_integer(r->round), &nomem);
        kedgei_json_set(release, "source", kedgei_json_source(&a->main, origin.release), &nomem);
        kedgei_json_set(tree, "release", release, &nomem);
    }
    if (origin.job->groups > 1) {
        kedgei_json_set(tree, "grouping", explain_grouping(a, &origin, &nomem), &nomem);
    }
    kedgei_json_set(tree, "anchors", kedgei_explain_anchors(a, &origin, &nomem), &nomem);
    kedgei_json_set(tree, "logs", explain_logs(a, &origin, &nomem), &nomem);
    int err = nomem ? KEDGE_E_NOMEM : kedgei_explain_rounds(a, &origin, tree);
    if (err) {
        json_decref(tree);
        return err;
    }
    *ret = tree;
    return KEDGE_OK;
}
