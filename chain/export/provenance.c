/* What made the models, as SLSA provenance v1 in in-toto statements: one per round, one per release; and the
 * outcome of the verification as a Simple Verification Result. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/export/work.h"
#include "common/base/try.h"

static const char slsa_type[] = "https://slsa.dev/provenance/v1";
static const char svr_type[] = "https://in-toto.io/attestation/svr/v0.2";
static const char round_build[] = "https://kedge.dev/build/round/v1";
static const char release_build[] = "https://kedge.dev/build/release/v1";
static const char verifier_id[] = "https://kedge.dev/audit-verify/v1";

/* "tlog:ORIGIN/INDEX": where an entry stands. */
static json_t *ex_uri(const struct kedgei_ex_log *log, uint64_t index)
{
    return json_sprintf("tlog:%s/%llu", log->log.origin, (unsigned long long)index);
}

/* {"name", "uri", "digest"}; uri may be NULL (it is stolen). */
static json_t *resource(json_t *name, json_t *uri, const struct kedge_hash *digest)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", name);
    if (uri) {
        json_object_set_new(o, "uri", uri);
    }
    json_object_set_new(o, "digest", kedgei_ex_digest(digest));
    return o;
}

/* An entry of the main chain: its digest is that of its bytes. */
static int entry_resource(struct kedgei_ex_work *w, const char *name, uint64_t index, json_t *into)
{
    struct kedge_buf entry KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash digest;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedgei_ex_entry(&w->r.main, index, &entry, w->reterr));
    kedge_sha256(kedge_buf_view(&entry), &digest);
    json_array_append_new(into, resource(json_string(name), ex_uri(&w->r.main, index), &digest));
    return KEDGE_OK;
}

static json_t *builder(const struct kedgei_ex_work *w)
{
    /* one identity per deployment and per mode of aggregation, of which there is one so far */
    return json_pack("{s:o}", "id",
                     json_sprintf("https://kedge.dev/builder/%s/plain-aggregation/v1", w->r.deployment));
}

static json_t *subject(json_t *name, const struct kedge_hash *digest)
{
    return json_pack("{s:o,s:o}", "name", name, "digest", kedgei_ex_digest(digest));
}

static json_t *number_text(uint64_t n)
{
    return json_sprintf("%llu", (unsigned long long)n);
}

/* ---- what a round was made from ---- */

/* A tenant's part of an aggregate: each update, or its list alone when the tenant is not exported. Then a
 * salted id stands for its name, and the list's digest for its sites and updates: a party that has the
 * list can show that it is this one, and all others learn only how many updates were used and refused,
 * and with which weight. */
static int inputs_of(struct kedgei_ex_work *w, struct kedgei_ex_job *job,
                     const struct kedge_st_aggregate_tenant *t, uint32_t group, json_t *into)
{
    struct kedgei_ex_log *tenant = kedgei_ex_tenant(&w->r, &t->id);
    if (!tenant || !tenant->permitted) {
        char salted[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&t->id, salted);
        json_t *o = resource(json_sprintf("inputs of tenant %.12s, group %u", salted, group), NULL, &t->list);
        json_object_set_new(o, "annotations",
                            json_pack("{s:s,s:i,s:o,s:i}", "tenant", salted, "updates", (int)t->accepted,
                                      "weight", number_text(t->weight_sum), "refused", (int)t->refused));
        json_array_append_new(into, o);
        return KEDGE_OK;
    }
    struct kedge_input_list list;
    int err = kedgei_ex_list(tenant, &t->list, &list, w->reterr);
    if (err) {
        return err;
    }
    for (uint32_t i = 0; i < list.count && !err; i++) {
        const struct kedge_input_row *row = &list.rows[i];
        if (row->use != KEDGE_USE_AGGREGATED && row->use != KEDGE_USE_GROUPED) {
            continue;
        }
        json_t *o = resource(json_sprintf("update of %s/%s", tenant->name, row->site.s),
                             ex_uri(tenant, row->leaf), &row->update);
        json_object_set_new(o, "annotations",
                            json_pack("{s:i,s:o,s:o}", "group", (int)row->group, "weight",
                                      number_text(row->weight), "entry", kedgei_ex_hex(&row->leaf_hash)));
        json_array_append_new(into, o);
        err = kedgei_ex_job_used(job, (uint32_t)(tenant - w->r.tenants), &row->site);
    }
    kedge_input_list_deinit(&list);
    return err;
}

struct parts {
    json_t *subjects, *inputs, *byproducts;
    char rule[KEDGE_ST_RULE_MAX + 1];
    uint64_t refused;
};

/* The aggregates of a round: their inputs, their statements. w->a is theirs. */
static int take_aggregates(struct kedgei_ex_work *w, struct kedgei_ex_job *job,
                           const struct kedgei_ex_round *round, struct parts *p)
{
    for (uint32_t i = 0; i < round->aggregate_count; i++) {
        KEDGE_TRY(kedgei_ex_read(&w->r.main, round->aggregates[i], w->a, w->reterr));
        const struct kedge_st_aggregate *a = &w->a->u.aggregate;
        snprintf(p->rule, sizeof p->rule, "%s", a->rule);
        for (uint32_t t = 0; t < a->tenant_count; t++) {
            p->refused += a->tenants[t].refused;
            KEDGE_TRY(inputs_of(w, job, &a->tenants[t], a->group, p->inputs));
        }
        KEDGE_TRY(entry_resource(w, "aggregate", round->aggregates[i], p->byproducts));
    }
    return KEDGE_OK;
}

/* The models before and after, from the step in w->b. */
static void take_models(const struct kedgei_ex_work *w, const struct kedgei_ex_job *job, struct parts *p)
{
    const struct kedge_st_step *step = &w->b->u.step;
    for (uint32_t g = 0; g < step->group_count; g++) {
        const struct kedge_st_step_group *sg = &step->groups[g];
        json_array_append_new(
            p->subjects,
            subject(json_sprintf("%s/round-%u/group-%u", job->id.s, step->round, sg->group), &sg->after));
        json_array_append_new(p->inputs, resource(json_sprintf("%s/before-round-%u/group-%u", job->id.s,
                                                               step->round, sg->group),
                                                  NULL, &sg->before));
    }
}

/* The whole model that all sites trained a part of; nothing else in the record says that it was an input. */
static void add_base(const struct kedgei_ex_job *job, json_t *inputs)
{
    if (!kedge_hash_is_zero(&job->base_model)) {
        json_array_append_new(inputs, resource(json_sprintf("%s/base", job->id.s), NULL, &job->base_model));
    }
}

static json_t *round_predicate(struct kedgei_ex_work *w, const struct kedgei_ex_job *job,
                               const struct kedge_st_round_opened *opened,
                               const struct kedgei_ex_round *round, struct parts *p)
{
    const struct kedge_st_step *step = &w->b->u.step;
    json_t *external =
        json_pack("{s:o,s:{s:s,s:s},s:i,s:o}", "roundId", json_sprintf("%s/%u", job->id.s, step->round),
                  "algorithm", "aggregate", p->rule, "step", step->rule, "quorum", (int)job->spec.quorum,
                  "configDigest", kedgei_ex_digest(&job->spec_digest));
    json_t *internal = json_pack("{s:s,s:o,s:{s:o,s:o}}", "phase",
                                 opened->round_kind == KEDGE_TRAIN_PRETRAIN ? "pretrain" : "train",
                                 "selectionSeed", number_text(opened->seed), "mainChainBefore", "size",
                                 number_text(opened->main_size), "root", kedgei_ex_hex(&opened->main_root));
    json_t *definition =
        json_pack("{s:s,s:o,s:o,s:o}", "buildType", round_build, "externalParameters", external,
                  "internalParameters", internal, "resolvedDependencies", json_incref(p->inputs));
    json_t *details = json_pack("{s:o,s:{s:o},s:o}", "builder", builder(w), "metadata", "invocationId",
                                ex_uri(&w->r.main, round->opened), "byproducts", json_incref(p->byproducts));
    return json_pack("{s:o,s:o}", "buildDefinition", definition, "runDetails", details);
}

static int round_provenance(struct kedgei_ex_work *w, struct kedgei_ex_job *job,
                            const struct kedgei_ex_round *round)
{
    struct parts p = {json_array(), json_array(), json_array(), "none", 0};
    json_array_append_new(p.inputs, resource(json_sprintf("%s/spec", job->id.s), NULL, &job->spec_digest));
    add_base(job, p.inputs);
    int err = kedgei_ex_read(&w->r.main, round->step, w->b, w->reterr);
    if (!err) {
        take_models(w, job, &p);
        err = take_aggregates(w, job, round, &p);
    }
    if (!err) {
        err = entry_resource(w, "step", round->step, p.byproducts);
    }
    if (!err) {
        err = kedgei_ex_read(&w->r.main, round->opened, w->a, w->reterr);
    }
    if (!err) {
        json_t *predicate = round_predicate(w, job, &w->a->u.round_opened, round, &p);
        err = kedgei_ex_attest(w, kedgei_ex_statement(json_incref(p.subjects), slsa_type, predicate));
    }
    json_decref(p.subjects);
    json_decref(p.inputs);
    json_decref(p.byproducts);
    return err;
}

/* ---- releases ---- */

static int release_provenance(struct kedgei_ex_work *w, const struct kedgei_ex_job *job, uint64_t index)
{
    json_t *byproducts = json_array();
    int err = kedgei_ex_read(&w->r.main, index, w->a, w->reterr);
    if (!err) {
        err = entry_resource(w, "release", index, byproducts);
    }
    if (err) {
        json_decref(byproducts);
        return err;
    }
    const struct kedge_st_release *r = &w->a->u.release;
    struct kedge_hash digest;
    kedge_sha256(kedge_buf_view(&w->r.main.note), &digest);
    json_array_append_new(byproducts, resource(json_string("main chain's checkpoint"),
                                               ex_uri(&w->r.main, w->r.main.size), &digest));
    json_t *inputs = json_array();
    json_array_append_new(
        inputs,
        resource(json_sprintf("%s/round-%u/group-%u", job->id.s, r->round, r->group), NULL, &w->a->subject));
    json_array_append_new(inputs,
                          resource(json_sprintf("%s/first-model", job->id.s), NULL, &job->initial_model));
    json_array_append_new(inputs, resource(json_sprintf("%s/spec", job->id.s), NULL, &job->spec_digest));
    add_base(job, inputs);
    json_t *definition =
        json_pack("{s:s,s:{s:o,s:i,s:o},s:o}", "buildType", release_build, "externalParameters", "releaseId",
                  json_sprintf("%s/%u", job->id.s, r->group), "round", (int)r->round, "configDigest",
                  kedgei_ex_digest(&job->spec_digest), "resolvedDependencies", inputs);
    json_t *details = json_pack("{s:o,s:{s:o},s:o}", "builder", builder(w), "metadata", "invocationId",
                                ex_uri(&w->r.main, index), "byproducts", byproducts);
    json_t *predicate = json_pack("{s:o,s:o}", "buildDefinition", definition, "runDetails", details);
    json_t *subjects = json_pack("[o]", subject(json_string(r->file), &w->a->subject));
    return kedgei_ex_attest(w, kedgei_ex_statement(subjects, slsa_type, predicate));
}

int kedgei_ex_provenance(struct kedgei_ex_work *w)
{
    for (uint32_t j = 0; j < w->r.job_count; j++) {
        struct kedgei_ex_job *job = w->r.jobs[j];
        if (job->release_count == 0) {
            continue;
        }
        for (size_t i = 0; i < job->round_count; i++) {
            if (job->rounds[i].step != KEDGEI_EX_NONE) {
                KEDGE_TRY(round_provenance(w, job, &job->rounds[i]));
            }
        }
        for (size_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            if (job->releases[g] != KEDGEI_EX_NONE) {
                KEDGE_TRY(release_provenance(w, job, job->releases[g]));
            }
        }
    }
    return KEDGE_OK;
}

/* ---- the verification ---- */

int kedgei_ex_result(struct kedgei_ex_work *w)
{
    json_t *subjects = json_array();
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, 16 * 1024 * 1024);
    for (uint32_t j = 0; j < w->r.job_count; j++) {
        const struct kedgei_ex_job *job = w->r.jobs[j];
        for (size_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            if (job->releases[g] == KEDGEI_EX_NONE) {
                continue;
            }
            int err = kedgei_ex_read(&w->r.main, job->releases[g], w->a, w->reterr);
            if (err) {
                json_decref(subjects);
                return err;
            }
            json_array_append_new(subjects, subject(json_string(w->a->u.release.file), &w->a->subject));
        }
    }
    json_t *properties =
        w->o->audit.tenant_count == 0
            ? json_pack("[s,s,s,s]", "KEDGE_RECORD_VERIFIED", "KEDGE_SIGNED_BY_TRUSTED_KEYS",
                        "KEDGE_EVERY_RECORDED_UPDATE_COUNTED_ONCE", "KEDGE_MODEL_IS_THE_RECORDED_RELEASE")
            : json_pack("[s,s,s]", "KEDGE_COPY_VERIFIED", "KEDGE_SIGNED_BY_TRUSTED_KEYS",
                        "KEDGE_MODEL_IS_THE_RECORDED_RELEASE"); /* other tenants' ledgers were not there */
    json_t *predicate =
        json_pack("{s:{s:s,s:[],s:{s:s}},s:s,s:o}", "verifier", "id", verifier_id, "policies", "version",
                  "tool", w->o->tool, "timeCreated", w->time.s, "properties", properties);
    int err = kedgei_ex_envelope(kedgei_ex_statement(subjects, svr_type, predicate), &w->o->key, &text);
    kedge_buf_put_u8(&text, '\n');
    if (err || text.err) {
        return kedge_diag_set(w->reterr, err ? err : text.err, "verification result: cannot be signed");
    }
    w->sum.attestations++;
    return kedgei_ex_put(&w->f, kedge_buf_view(&text), w->reterr, "verification.intoto.json");
}
