/* Keys that a spec has and its job does not read, and models of which not all files of the job can be made.
 * Records keep the specs of old jobs, which nobody can mend, so that this is asked where a job is submitted
 * or simulated and not where a spec is parsed. */
#include <jansson.h>
#include <string.h>

#include "common/base/try.h"
#include "common/json/json.h"
#include "job/job_spec_impl.h"
#include "job/keys.h"

static const struct {
    const char *key, *why;
} reasons[] = {
    {"pretrain_steps", "no site pre-trains"},
    {"pretrain_sites", "no site pre-trains"},
    {"migration_pause", "no site moves to another group"},
    {"mixing", "there is one model, and no other to move towards"},
    {"groups", "it makes no groups"},
};

static const char *why_not(const char *key)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (strcmp(reasons[i].key, key) == 0) {
            return reasons[i].why;
        }
    }
    return "nothing depends on it";
}

/* Whether the value is the one that says nothing: a spec that was printed in full, or written for another
 * strategy, may have it. */
static bool is_usual(const struct kedge_job_key *row, const json_t *v)
{
    const char *word = json_string_value(v);
    double found = 0;
    if (json_is_object(v) && json_object_size(v) == 0) {
        return true; /* no options */
    }
    if (word && strcmp(row->key, "plan") == 0 && strcmp(word, "none") == 0) {
        return true;
    }
    if (row->kind == KEDGE_JOB_KEY_WORD) {
        return word && strcmp(word, row->words[0]) == 0;
    }
    return row->kind != KEDGE_JOB_KEY_OWN && kedgei_json_real(v, &found) == KEDGE_OK
           && !(found < row->fallback || found > row->fallback);
}

int kedge_job_spec_check_keys(const json_t *keys, const struct kedge_job_spec *spec,
                              struct kedge_diag *reterr)
{
    for (size_t i = 0; i < kedge_job_key_count; i++) {
        const struct kedge_job_key *row = &kedge_job_keys[i];
        const json_t *v = json_object_get(keys, row->key);
        if (v && !kedge_job_key_is_read(spec, row) && !is_usual(row, v)) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                  "job spec: \"%s\": strategy \"%s\" does not read it: %s; leave it out",
                                  row->key, spec->strategy->name, why_not(row->key));
        }
    }
    return KEDGE_OK;
}

int kedge_job_spec_check_read(struct kedge_view text, const struct kedge_job_spec *spec,
                              struct kedge_diag *reterr)
{
    json_t *root KEDGE_CLEANUP(json_decrefp) = NULL;
    KEDGE_TRY(kedgei_json_load(text, KEDGE_SPEC_MAX, "job spec", &root, reterr));
    KEDGE_TRY(kedge_job_spec_check_keys(root, spec, reterr));
    return kedgei_spec_check_room(spec, reterr);
}
