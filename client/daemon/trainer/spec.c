/* The spec of a job, as the work thread has it: read once for all tasks of a job that follow each other.
 *
 * The digest is computed from the file's bytes even though the download was checked: the file may be of a
 * former process, and a power cut may have left anything in it. The spec must be of the task's job, else a
 * coordinator could have a site train job A under the name of job B, which the owner's policy allows. */
#include <jansson.h>
#include <string.h>

#include "client/daemon/energy/energy.h"
#include "common/base/mem.h"
#include "common/base/try.h"

static int layouts_of(const struct kedge_job_spec *spec, struct kedge_layout *ret,
                      struct kedge_layout *ret_whole, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_job_spec_layout(spec, ret, d));
    int err = kedge_job_spec_whole_layout(spec, ret_whole, d);
    if (err) {
        kedge_layout_deinit(ret);
    }
    return err;
}

/* The bytes are hashed again even though the file's name is its digest: files here are not synced, and this
 * one decides what is trained. */
static int read_spec(struct kedge_client_work *w, const struct kedge_site_digest *digest,
                     struct kedge_job_spec *spec, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    struct kedge_hash hash;
    KEDGE_TRY(kedge_client_work_path(w, "spec", digest, path));
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    int err = kedge_file_read(path, &text, d);
    if (!err) {
        kedge_sha256(kedge_buf_view(&text), &hash);
        err = memcmp(hash.b, digest->b, sizeof hash.b) == 0
                  ? kedge_job_spec_parse(kedge_buf_view(&text), spec, d)
                  : kedge_diag_set(d, KEDGE_E_BLOB_DIGEST, "%s", path);
    }
    kedge_buf_deinit(&text);
    return err;
}

/* Whether the data are bound is asked here, when the spec arrives, and not when training begins: a job whose
 * data are missing is refused before its model is fetched. */
static int check_policy(struct kedge_client_work *w, const struct kedge_job_spec *spec, struct kedge_diag *d)
{
    if (spec->is_external && !kedge_trainers_find(&w->policy->trainers, &spec->external.trainer)) {
        return kedge_diag_set(d, KEDGE_E_DENIED,
                              "policy.json binds no trainer named \"%s\": the job's model is external",
                              spec->external.trainer.s);
    }
    json_t *binding = NULL;
    int err = kedge_policy_binding(w->policy, spec, "", &binding, d);
    json_decref(binding);
    bool bound = json_object_get(w->policy->data, spec->data) != NULL;
    w->trouble = !err ? KEDGE_TROUBLE_NONE : bound ? KEDGE_TROUBLE_DATA_SHAPE : KEDGE_TROUBLE_DATA_MISSING;
    return err;
}

static int load_spec(struct kedge_client_work *w, const struct kedge_id *job,
                     const struct kedge_site_digest *digest, struct kedge_job_spec *spec,
                     struct kedge_layout *ret_layout, struct kedge_layout *ret_whole, struct kedge_diag *d)
{
    KEDGE_TRY(read_spec(w, digest, spec, d));
    if (!kedge_id_eq(&spec->name, job)) {
        return kedge_diag_set(d, KEDGE_E_DENIED, "the spec is of job %s, the task of job %s", spec->name.s,
                              job->s);
    }
    KEDGE_TRY(check_policy(w, spec, d));
    return layouts_of(spec, ret_layout, ret_whole, d);
}

/* The spec in force is replaced only by one that is whole, checked and allowed: after an error the work still
 * has the former one, with its digest, and the same task can be tried again. */
int kedge_client_spec(struct kedge_client_work *w, const struct kedge_id *job,
                      const struct kedge_site_digest *digest, struct kedge_diag *d)
{
    if (w->spec && memcmp(w->spec_digest.b, digest->b, sizeof digest->b) == 0) {
        return KEDGE_OK;
    }
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    struct kedge_layout layout, whole;
    int err = spec ? load_spec(w, job, digest, spec, &layout, &whole, d) : KEDGE_E_NOMEM;
    if (err) {
        kedge_mem_free(spec);
        return err;
    }
    if (w->spec) {
        kedge_layout_deinit(&w->layout);
        kedge_layout_deinit(&w->whole);
        kedge_mem_free(w->spec);
    }
    w->spec = spec;
    w->layout = layout;
    w->whole = whole;
    w->spec_job = *job;
    memcpy(w->spec_digest.b, digest->b, sizeof digest->b);
    return KEDGE_OK;
}
