/* The inventory: CycloneDX 1.6 with one machine-learning model per release (ML-BOM). Data sets appear by the
 * name that the job's spec gives them; nothing about their content is known here, or said. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/export/work.h"

/* "urn:uuid:…": a name-based identifier, RFC 9562 version 8. It is derived from the main chain's
 * checkpoint and not drawn at random, so that two inventories of the same checkpoint have the same
 * number. */
static json_t *serial_number(const struct kedgei_ex_work *w)
{
    struct kedge_hash h;
    kedge_sha256_2(kedge_view_str("kedge cyclonedx\n"), kedge_buf_view(&w->r.main.note), &h);
    uint8_t *b = h.b;
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x80);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    return json_sprintf("urn:uuid:%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                        b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                        b[14], b[15]);
}

static json_t *hashes(const struct kedge_hash *digest)
{
    return json_pack("[{s:s,s:o}]", "alg", "SHA-256", "content", kedgei_ex_hex(digest));
}

static void add_property(json_t *properties, const char *name, json_t *value)
{
    json_array_append_new(properties, json_pack("{s:s,s:o}", "name", name, "value", value));
}

static json_t *real_text(double v)
{
    char text[KEDGE_REAL_MAX];
    kedge_real_encode(v, text);
    return json_string(text);
}

/* Layers such as "dense 64-16 relu, dense 16-10". */
static json_t *architecture(const struct kedge_model_spec *model)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, 64 * KEDGE_LAYERS_MAX);
    for (uint32_t i = 0; i < model->count; i++) {
        const struct kedge_layer *l = &model->layers[i];
        kedge_buf_printf(&text, "%sdense %u-%u%s", i ? ", " : "", l->in, l->out,
                         l->activation == KEDGE_ACTIVATION_RELU ? " relu" : "");
    }
    kedge_buf_put_u8(&text, 0);
    return text.err ? NULL : json_string((const char *)text.ptr);
}

/* Of a model that only the sites' trainers understand nothing is known but its trainer's name. */
static json_t *external_parameters(const struct kedgei_ex_job *job)
{
    return json_pack("{s:{s:s},s:s,s:o,s:[{s:o}]}", "approach", "type", "supervised", "architectureFamily",
                     "external", "modelArchitecture",
                     json_sprintf("as the trainer \"%s\" has it", job->spec.external.trainer.s), "datasets",
                     "ref", json_sprintf("data:%s", job->id.s));
}

static json_t *model_parameters(const struct kedgei_ex_job *job)
{
    if (job->spec.is_external) {
        return external_parameters(job);
    }
    const struct kedge_model_spec *model = &job->spec.model;
    bool number = kedge_job_spec_predicts_number(&job->spec);
    return json_pack("{s:{s:s},s:s,s:s,s:o,s:[{s:o}],s:[{s:o}],s:[{s:o}]}", "approach", "type", "supervised",
                     "task", number ? "regression" : "classification", "architectureFamily",
                     model->count > 1 ? "multilayer perceptron"
                     : number         ? "linear regression"
                                      : "multinomial logistic regression",
                     "modelArchitecture", architecture(model), "datasets", "ref",
                     json_sprintf("data:%s", job->id.s), "inputs", "format",
                     json_sprintf("F32[%u]", kedge_model_inputs(model)), "outputs", "format",
                     json_sprintf(number ? "F32[%u]" : "F32[%u] logits", kedge_model_outputs(model)));
}

static json_t *metrics(const struct kedgei_ex_job *job, uint32_t group)
{
    const struct kedgei_ex_metrics *m = &job->metrics[group];
    char slice[128];
    snprintf(slice, sizeof slice, "after round %u, local test splits of %llu sites, %llu samples", m->round,
             (unsigned long long)m->sites, (unsigned long long)m->samples);
    if (job->spec.shows_loss) {
        return json_pack("[{s:s,s:o,s:s}]", "type", "loss", "value",
                         real_text(m->loss_sum / (double)m->samples), "slice", slice);
    }
    return json_pack("[{s:s,s:o,s:s},{s:s,s:o,s:s}]", "type", "accuracy", "value",
                     real_text((double)m->correct / (double)m->samples), "slice", slice, "type", "loss",
                     "value", real_text(m->loss_sum / (double)m->samples), "slice", slice);
}

static json_t *job_properties(const struct kedgei_ex_job *job, uint32_t group, uint32_t round)
{
    json_t *p = json_array();
    add_property(p, "kedge:job", json_string(job->id.s));
    add_property(p, "kedge:group", json_sprintf("%u", group));
    add_property(p, "kedge:round", json_sprintf("%u", round));
    add_property(p, "kedge:spec:sha256", kedgei_ex_hex(&job->spec_digest));
    add_property(p, "kedge:tenants", json_sprintf("%u", job->spec.tenant_count));
    add_property(p, "kedge:local-epochs", json_sprintf("%u", job->spec.local_epochs));
    add_property(p, "kedge:batch",
                 job->spec.batch_auto ? json_string("auto") : json_sprintf("%u", job->spec.batch));
    add_property(p, "kedge:learning-rate", real_text(job->spec.learning_rate));
    add_property(p, "kedge:l2", real_text(job->spec.l2));
    if (job->updates > 0 && job->joules_known) {
        add_property(p, "kedge:energy:joules", real_text(job->joules));
        add_property(p, "kedge:energy:quality", json_string(job->joules_modelled ? "modelled" : "measured"));
    }
    return p;
}

static json_t *reference(const char *type, json_t *url)
{
    return json_pack("{s:s,s:o}", "type", type, "url", url);
}

static json_t *ancestor(json_t *name, const struct kedge_hash *digest)
{
    return json_pack("{s:s,s:o,s:o}", "type", "machine-learning-model", "name", name, "hashes",
                     hashes(digest));
}

/* The model before the last round is its ancestor, and so is the base that the job trained a part of; w->a
 * holds the release. */
static json_t *pedigree(struct kedgei_ex_work *w, const struct kedgei_ex_job *job, uint32_t group, int *err)
{
    struct kedge_hash before = job->initial_model;
    json_t *name = json_sprintf("%s first model", job->id.s);
    for (size_t i = job->round_count; i > 0; i--) {
        const struct kedgei_ex_round *round = &job->rounds[i - 1];
        if (round->step == KEDGEI_EX_NONE) {
            continue;
        }
        *err = kedgei_ex_read(&w->r.main, round->step, w->b, w->reterr);
        const struct kedge_st_step *step = &w->b->u.step;
        for (uint32_t g = 0; !*err && g < step->group_count; g++) {
            if (step->groups[g].group == group) {
                before = step->groups[g].before;
                json_decref(name);
                name = json_sprintf("%s group %u before round %u", job->id.s, group, step->round);
            }
        }
        break;
    }
    json_t *ancestors = json_pack("[o]", ancestor(name, &before));
    if (!kedge_hash_is_zero(&job->base_model)) {
        json_array_append_new(ancestors, ancestor(json_sprintf("%s base", job->id.s), &job->base_model));
    }
    return json_pack("{s:o}", "ancestors", ancestors);
}

static json_t *model_component(struct kedgei_ex_work *w, const struct kedgei_ex_job *job, uint32_t group,
                               int *err)
{
    *err = kedgei_ex_read(&w->r.main, job->releases[group], w->a, w->reterr);
    if (*err) {
        return NULL;
    }
    const struct kedge_st_release *r = &w->a->u.release;
    json_t *card = json_pack("{s:o}", "modelParameters", model_parameters(job));
    if (job->metrics[group].samples > 0) {
        json_object_set_new(card, "quantitativeAnalysis",
                            json_pack("{s:o}", "performanceMetrics", metrics(job, group)));
    }
    json_object_set_new(
        card, "considerations",
        json_pack(
            "{s:[s]}", "technicalLimitations",
            "Trained by several organisations on data that never left them; nobody has seen all of it."));
    json_t *references = json_array();
    json_array_append_new(references, reference("attestation", json_string("lineage.intoto.jsonl")));
    json_array_append_new(references, reference("attestation", json_string("verification.intoto.json")));
    json_array_append_new(references, reference("digital-signature",
                                                json_sprintf("models/%s-g%u/model.sig", job->id.s, group)));
    json_array_append_new(references,
                          reference("evidence", json_sprintf("proofs/main-%08llu.tlog-proof",
                                                             (unsigned long long)job->releases[group])));
    json_t *c =
        json_pack("{s:s,s:o,s:s,s:o,s:o,s:o,s:o,s:o}", "type", "machine-learning-model", "bom-ref",
                  json_sprintf("model:%s", r->file), "name", r->file, "version",
                  json_sprintf("round %u", r->round), "hashes", hashes(&w->a->subject), "modelCard", card,
                  "externalReferences", references, "properties", job_properties(job, group, r->round));
    if (c) {
        json_object_set_new(c, "pedigree", pedigree(w, job, group, err));
    }
    return c;
}

static json_t *data_component(const struct kedgei_ex_job *job)
{
    return json_pack(
        "{s:s,s:o,s:s,s:s,s:[{s:s,s:s,s:s}]}", "type", "data", "bom-ref", json_sprintf("data:%s", job->id.s),
        "name", job->spec.data, "description",
        "Local data of the sites, bound to this name by each of them; they never left the sites.", "data",
        "type", "dataset", "name", job->spec.data, "description",
        "Features and labels; content not disclosed.");
}

int kedgei_ex_bom(struct kedgei_ex_work *w)
{
    int err = KEDGE_OK;
    json_t *components = json_array(), *dependencies = json_array();
    for (uint32_t j = 0; j < w->r.job_count && !err; j++) {
        const struct kedgei_ex_job *job = w->r.jobs[j];
        if (job->release_count == 0) {
            continue;
        }
        for (uint32_t g = 0; g < KEDGE_GROUPS_MAX && !err; g++) {
            if (job->releases[g] != KEDGEI_EX_NONE) {
                json_t *c = model_component(w, job, g, &err);
                json_array_append_new(dependencies,
                                      json_pack("{s:O,s:[o]}", "ref", json_object_get(c, "bom-ref"),
                                                "dependsOn", json_sprintf("data:%s", job->id.s)));
                json_array_append_new(components, c);
            }
        }
        json_array_append_new(components, data_component(job));
    }
    json_t *tools = json_pack("{s:[{s:s,s:s,s:s}]}", "components", "type", "application", "name", "kedge",
                              "description", w->o->tool);
    json_t *metadata = json_pack(
        "{s:s,s:o,s:{s:s,s:s,s:s,s:o}}", "timestamp", w->time.s, "tools", tools, "component", "type",
        "application", "bom-ref", "federation", "name", w->r.deployment, "externalReferences",
        json_pack("[o]", reference("log", json_sprintf("checkpoints/main-%llu.note",
                                                       (unsigned long long)w->r.main.size))));
    json_t *bom = json_pack("{s:s,s:s,s:s,s:o,s:i,s:o,s:o,s:o}", "$schema",
                            "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat", "CycloneDX",
                            "specVersion", "1.6", "serialNumber", serial_number(w), "version", 1, "metadata",
                            metadata, "components", components, "dependencies", dependencies);
    if (err) {
        json_decref(bom);
        return err;
    }
    return kedgei_ex_put_json(w, bom, "bom.cdx.json");
}
