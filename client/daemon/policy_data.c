/* The owner's binding of a job's data, with what the job's spec says of them. */
#include <jansson.h>
#include <string.h>

#include "client/daemon/policy.h"

/* The spec's names, where the owner has none of their own. Those of the owner say what the site's files call
 * the job's classes, so that there must be as many. */
static int put_classes(json_t *binding, const struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *own = json_object_get(binding, "classes");
    const char *name = s->classes;
    if (own) {
        return json_array_size(own) == s->classes_count
                   ? KEDGE_OK
                   : kedge_diag_set(d, KEDGE_E_DENIED,
                                    "policy.json: data \"%s\": \"classes\" has %zu names, but the job has %u",
                                    s->data, json_array_size(own), s->classes_count);
    }
    json_t *names = json_array();
    int failed = 0;
    for (uint32_t i = 0; i < s->classes_count; i++, name += strlen(name) + 1) {
        failed |= json_array_append_new(names, json_string(name));
    }
    failed |= json_object_set_new(binding, "classes", names);
    return failed ? kedge_diag_set(d, KEDGE_E_NOMEM, "no memory for names of classes") : KEDGE_OK;
}

int kedge_policy_binding(const struct kedge_site_policy *p, const struct kedge_job_spec *spec, json_t **ret,
                         struct kedge_diag *reterr)
{
    json_t *own = json_object_get(p->data, spec->data);
    if (!own) {
        return kedge_diag_set(reterr, KEDGE_E_DENIED, "policy.json binds no data named \"%s\"", spec->data);
    }
    json_t *binding = json_copy(own);
    int err = binding ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a data binding");
    const bool is_object = json_is_object(own); /* anything else is for the trainer to refuse */
    if (!err && is_object && spec->classes_count > 0) {
        err = put_classes(binding, spec, reterr);
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
