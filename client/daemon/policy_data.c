/* The owner's binding of a job's data, with what the job's spec says of them: names of classes, and whether
 * columns are standardized.
 *
 * The binding in policy.json is copied and the copy completed, so that the trainer is told one thing. Where
 * owner and job both have a say, the owner decides what the files are and what may be told, the job what the
 * model needs; a contradiction is refused here, before training, with the policy's key. */
#include <jansson.h>
#include <string.h>

#include "client/daemon/policy.h"
#include "common/tensor/class_names.h"

/* The owner lets jobs learn what labels there are. */
static bool tells_classes(const json_t *binding)
{
    const char *word = json_string_value(json_object_get(binding, "classes"));
    return word && strcmp(word, "federated") == 0;
}

static int put_names(json_t *binding, const char *name, uint32_t count, struct kedge_diag *d)
{
    json_t *names = json_array();
    int failed = 0;
    for (uint32_t i = 0; i < count; i++, name += strlen(name) + 1) {
        failed |= json_array_append_new(names, json_string(name));
    }
    failed |= json_object_set_new(binding, "classes", names);
    return failed ? kedge_diag_set(d, KEDGE_E_NOMEM, "no memory for names of classes") : KEDGE_OK;
}

/* The spec's names, where the owner has none of their own. Those of the owner say what the site's files call
 * the job's classes, so that there must be as many. */
static int put_classes(json_t *binding, const struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *own = json_object_get(binding, "classes");
    if (own && !json_is_string(own)) {
        return json_array_size(own) == s->classes_count
                   ? KEDGE_OK
                   : kedge_diag_set(d, KEDGE_E_DENIED,
                                    "policy.json: data \"%s\": \"classes\" has %zu names, but the job has %u",
                                    s->data, json_array_size(own), s->classes_count);
    }
    return put_names(binding, s->classes, s->classes_count, d);
}

/* Of a job that learns them. What labels there are is told to others, so that the owner must have said it. */
static int put_learnt(json_t *binding, const struct kedge_job_spec *s, const char *learnt,
                      struct kedge_diag *d)
{
    if (!tells_classes(binding)) {
        (void)kedge_diag_set(
            d, KEDGE_E_DENIED,
            "policy.json: data \"%s\": the job learns the names of its classes from its sites, "
            "and this binding does not say that its labels may be told",
            s->data);
        return kedge_diag_hint(d, "\"classes\": \"federated\" beside \"train\", if others may know them");
    }
    return learnt[0] == '\0' ? KEDGE_OK : put_names(binding, learnt, kedge_class_names_count(learnt), d);
}

int kedge_policy_binding(const struct kedge_site_policy *p, const struct kedge_job_spec *spec,
                         const char *learnt, json_t **ret, struct kedge_diag *reterr)
{
    json_t *own = json_object_get(p->data, spec->data);
    if (!own) {
        return kedge_diag_set(reterr, KEDGE_E_DENIED, "policy.json binds no data named \"%s\"", spec->data);
    }
    json_t *binding = json_copy(own);
    int err = binding ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a data binding");
    const bool is_object = json_is_object(own); /* anything else is for the trainer to refuse */
    if (!err && is_object && spec->learns_classes) {
        err = put_learnt(binding, spec, learnt, reterr);
    } else if (!err && is_object && spec->classes_count > 0) {
        err = put_classes(binding, spec, reterr);
    } else if (!err && is_object && tells_classes(binding)) {
        (void)json_object_del(binding, "classes"); /* this job asks for no names */
    }
    if (!err && is_object && spec->standardize != KEDGE_STANDARDIZE_UNSAID) {
        bool local = spec->standardize == KEDGE_STANDARDIZE_LOCAL;
        if (json_object_set_new(binding, "standardize", json_string(local ? "local" : "none")) != 0) {
            err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a data binding");
        }
    }
    if (err) {
        json_decref(binding);
        return err;
    }
    *ret = binding;
    return KEDGE_OK;
}
