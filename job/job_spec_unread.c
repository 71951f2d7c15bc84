/* Keys that a spec has and its job does not read. Records keep the specs of old jobs, which nobody can mend,
 * so that this is asked where a job is submitted and not where a spec is parsed. */
#include <jansson.h>

#include "common/json/json.h"
#include "job/job_spec_impl.h"
#include "job/keys.h"

static const struct {
    const char *key;
    double usual; /* which says nothing */
    const char *why;
} keys[] = {
    {"pretrain_steps", 50, "no site pre-trains"},
    {"pretrain_sites", 0, "no site pre-trains"},
    {"migration_pause", 1, "no site moves to another group"},
    {"mixing", 0, "there is one model, and no other to move towards"},
};

int kedge_job_spec_check_read(struct kedge_view text, const struct kedge_job_spec *spec,
                              struct kedge_diag *reterr)
{
    json_t *root = NULL;
    int err = kedgei_json_load(text, KEDGE_SPEC_MAX, "job spec", &root, reterr);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !err; i++) {
        const json_t *v = json_object_get(root, keys[i].key);
        double found = keys[i].usual;
        if (!v || kedge_job_key_is_read(spec, kedge_job_key_find(keys[i].key))
            || kedgei_json_real(v, &found) != KEDGE_OK || !(found < keys[i].usual || found > keys[i].usual)) {
            continue;
        }
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "job spec: \"%s\": strategy \"%s\" does not read it: %s; leave it out",
                             keys[i].key, spec->strategy->name, keys[i].why);
    }
    json_decref(root);
    return err;
}
