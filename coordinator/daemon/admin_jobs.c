/* Jobs: submitted, listed, shown, halted, resumed, cancelled. One submit token is one job. */
#include "coordinator/daemon/admin.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/compute/compute.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/admin_args.h"
#include "coordinator/daemon/first_models.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/release.h"

enum { SHOW_ROUNDS_MAX = 512 };

static json_t *hex_hash(const struct kedge_hash *h)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(h, hex);
    return json_string(hex);
}

static json_t *real(double v)
{
    char text[KEDGE_REAL_MAX];
    kedge_real_encode(v, text);
    return json_string(text);
}

/* ---- submit ---- */

struct submit_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_job *job;
    char *spec_text;
    char *initial_path; /* NULL: from the spec */
    int err;
    struct kedge_diag diag;
};

static int sink_to_blob(void *arg, struct kedge_view bytes)
{
    return kedge_blob_writer_write(arg, bytes, NULL);
}

static int put_initial(struct kedge_host *h, struct submit_work *w)
{
    struct kedge_job *job = w->job;
    struct kedge_blob_writer *writer;
    struct kedge_map map;
    if (!w->initial_path && job->spec.has_initial_model) {
        int err = kedge_blobs_find(h->main.blobs, &job->spec.initial_model, NULL);
        job->initial_model = job->spec.initial_model;
        return err ? kedge_diag_set(&w->diag, err,
                                    "job spec: \"initial_model\" is not here; submit it with the job")
                   : KEDGE_OK;
    }
    int err = kedge_blob_writer_open(h->main.blobs, job->model_len, &writer, &w->diag);
    if (err) {
        return err;
    }
    if (w->initial_path) {
        err = kedge_compute_check_model(&job->layout, w->initial_path, &w->diag);
        err = err ? err : kedge_map_open(w->initial_path, &map, &w->diag);
        if (!err) {
            err = kedge_blob_writer_write(writer, kedge_view_of(map.ptr, map.len), &w->diag);
            kedge_map_close(&map);
        }
    } else {
        err = kedge_compute_initial(&job->spec, (struct kedge_sink){sink_to_blob, writer}, &w->diag);
    }
    if (err) {
        kedge_blob_writer_abort(writer);
        return err;
    }
    err = kedge_blob_writer_finish(writer, &job->initial_model, NULL, &w->diag);
    if (!err && job->spec.has_initial_model
        && !kedge_hash_eq(&job->initial_model, &job->spec.initial_model)) {
        err = kedge_diag_set(&w->diag, KEDGE_E_BLOB_DIGEST,
                             "%s: not the file that the spec's \"initial_model\" names", w->initial_path);
    } else if (!err && w->initial_path && !job->spec.has_initial_model) {
        err = kedge_diag_set(&w->diag, KEDGE_E_FORMAT,
                             "job spec: \"initial_model\" is missing: it must name the file by its SHA-256");
    }
    return err;
}

static void submit_run(struct kedge_host *h, struct kedge_work *work)
{
    struct submit_work *w = (struct submit_work *)work;
    struct kedge_view text = kedge_view_str(w->spec_text);
    struct kedge_hash digest;
    w->err = put_initial(h, w);
    w->err = w->err ? w->err : kedge_first_models_make(h, w->job, &w->diag);
    w->err = w->err ? w->err : kedge_blobs_put(h->main.blobs, &text, 1, &digest, &w->diag);
}

static void answer_job(struct kedge_net_request *req, const struct kedge_job *job)
{
    kedge_admin_ok(req, json_pack("{s:s,s:s,s:o}", "job", job->spec.name.s, "state",
                                  kedge_job_state_name(job->state), "spec", hex_hash(&job->spec_digest)));
}

static void submit_done(struct kedge_host *h, struct kedge_item *item)
{
    struct submit_work *w = (struct submit_work *)item;
    struct kedge_job *job = w->job;
    int err = w->err;
    if (!err) {
        job->state = KEDGE_JOB_QUEUED;
        err = kedge_host_job_store(h, job, &w->diag);
    }
    if (err) {
        kedge_admin_error(w->req, err, &w->diag);
        kedge_host_job_free(job);
    } else {
        answer_job(w->req, job);
        struct kedge_digest models[KEDGE_GROUPS_MAX];
        struct kedge_coord_event ev = {.type = KEDGE_EV_JOB_SUBMIT, .job = job->slot, .params = &job->params};
        kedge_first_models_begin(job);
        kedge_first_models_tell(job, models, &ev);
        kedge_host_step(h, &ev);
    }
    kedge_mem_free(w->spec_text);
    kedge_mem_free(w->initial_path);
    kedge_mem_free(w);
}

/* True when the request is answered: the token or the name is known already. */
static bool answer_known(struct kedge_host *h, struct kedge_net_request *req, const struct kedge_id *name,
                         const struct kedge_hash *digest, const char *token_hash)
{
    struct kedge_diag d;
    uint64_t index;
    char key[KEDGE_IDEM_KEY_MAX + 1];
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX && token_hash[0]; i++) {
        struct kedge_job *job = &h->jobs[i];
        if (job->used && strcmp(job->token_hash, token_hash) == 0) {
            if (kedge_hash_eq(&job->spec_digest, digest)) {
                answer_job(req, job);
            } else {
                (void)kedge_diag_set(&d, KEDGE_E_EXISTS,
                                     "the submit token belongs to job \"%s\" with another spec",
                                     job->spec.name.s);
                kedge_admin_error(req, KEDGE_E_EXISTS, &d);
            }
            return true;
        }
    }
    snprintf(key, sizeof key, "job-opened/%s", name->s);
    if (kedge_host_job_find(h, name, true)
        || kedge_ledger_find(h->main.ledger, kedge_view_str(key), &index) == KEDGE_OK) {
        (void)kedge_diag_set(&d, KEDGE_E_EXISTS, "there is a job \"%s\" already; names are not reused",
                             name->s);
        kedge_admin_error(req, KEDGE_E_EXISTS, &d);
        return true;
    }
    return false;
}

static void job_submit(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_submit a = {.spec = NULL};
    char token_hash[KEDGE_HASH_HEX_LEN + 1] = "";
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    struct kedge_hash digest;
    struct kedge_job *job;
    int err = spec ? KEDGE_OK : KEDGE_E_NOMEM;
    err = err ? err : kedge_admin_submit_args(args, &a, &d);
    if (!err && a.initial && kedge_net_request_peer(req)->kind != KEDGE_NET_IPC) {
        err = kedge_diag_set(&d, KEDGE_E_DENIED,
                             "an initial model by path needs a command on the coordinator's machine");
    }
    err = err ? err : kedge_job_spec_parse(kedge_view_str(a.spec), spec, &d);
    if (!err) {
        kedge_sha256(kedge_view_str(a.spec), &digest);
        if (a.token) { /* kept as a hash: a token may be a secret of the submitter's */
            struct kedge_hash t;
            kedge_sha256(kedge_view_str(a.token), &t);
            kedge_hash_hex(&t, token_hash);
        }
        if (answer_known(h, req, &spec->name, &digest, token_hash)) {
            kedge_mem_free(spec);
            return;
        }
        err = kedge_host_job_make(h, kedge_view_str(a.spec), &job, &d);
    }
    kedge_mem_free(spec);
    struct submit_work *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    if (!w) {
        kedge_admin_error(req, err ? err : KEDGE_E_NOMEM, &d);
        return;
    }
    snprintf(job->token_hash, sizeof job->token_hash, "%s", token_hash);
    if (job->params.has_root
        && kedge_host_site_find(h, job->params.root_tenant, &job->params.root_site) == KEDGE_COORD_NONE) {
        kedge_log(KEDGE_LOG_WARN, "job",
                  "job=%s root site %s/%s is not signed in; no round opens before it is", job->spec.name.s,
                  job->spec.tenants[job->spec.root_tenant].s, job->params.root_site.s);
    }
    *w = (struct submit_work){.work = {{submit_done}, submit_run},
                              .req = req,
                              .job = job,
                              .spec_text = kedge_mem_strdup(a.spec),
                              .initial_path = a.initial ? kedge_mem_strdup(a.initial) : NULL};
    KEDGE_ASSERT(w->spec_text);
    kedge_host_work(h, &w->work);
}

/* ---- list, show ---- */

static json_t *summary(struct kedge_host *h, const struct kedge_job *job)
{
    struct kedge_coord_job_view view;
    json_t *o =
        json_pack("{s:s,s:s,s:i,s:i,s:I,s:o}", "job", job->spec.name.s, "state",
                  kedge_job_state_name(job->state), "round", (int)job->round, "rounds", (int)job->spec.rounds,
                  "created_ms", (json_int_t)job->created_ms, "spec", hex_hash(&job->spec_digest));
    if (job->reason) {
        json_object_set_new(o, "reason", json_string(kedge_err_code(job->reason)));
        json_object_set_new(o, "reason_text", json_string(kedge_strerror(job->reason)));
    }
    if (kedge_coord_job(h->coord, job->slot, &view)) {
        json_object_set_new(o, "state", json_string(kedge_job_state_name(view.state)));
        json_object_set_new(o, "round", json_integer(view.round));
        json_object_set_new(o, "round_open", json_boolean(view.round_open));
        json_object_set_new(o, "tenants_joined", json_integer(view.joined_count));
        json_object_set_new(o, "sites_online", json_integer(view.online_count));
        json_object_set_new(o, "selected", json_integer(view.selected_count));
        json_object_set_new(o, "accepted", json_integer(view.accepted_count));
        json_object_set_new(o, "refused", json_integer(view.refused_count));
    }
    return o;
}

static void job_list(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    json_t *list = json_array();
    (void)args;
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        if (h->jobs[i].used) {
            json_array_append_new(list, summary(h, &h->jobs[i]));
        }
    }
    kedge_admin_ok(req, json_pack("{s:o}", "jobs", list));
}

static json_t *group_row(const struct kedge_round_history *row, uint32_t g)
{
    const struct kedge_group_metric *m = &row->metrics[g];
    json_t *o = json_pack("{s:i,s:i,s:I,s:I}", "group", (int)g, "sites", (int)row->members[g], "test_samples",
                          (json_int_t)m->samples, "test_correct", (json_int_t)m->correct);
    if (m->samples > 0) {
        json_object_set_new(o, "accuracy", real((double)m->correct / (double)m->samples));
        json_object_set_new(o, "loss", real(m->loss_sum / (double)m->samples));
    }
    if (m->personal_samples > 0) {
        json_object_set_new(o, "personal_accuracy",
                            real((double)m->personal_correct / (double)m->personal_samples));
    }
    return o;
}

static json_t *round_row(const struct kedge_round_history *row)
{
    json_t *groups = json_array();
    uint64_t samples = 0, correct = 0;
    uint32_t count = row->groups < KEDGE_GROUPS_MAX ? row->groups : KEDGE_GROUPS_MAX;
    for (uint32_t g = 0; g < count; g++) {
        json_array_append_new(groups, group_row(row, g));
        samples += row->metrics[g].samples;
        correct += row->metrics[g].correct;
    }
    json_t *o =
        json_pack("{s:i,s:i,s:i,s:i,s:I,s:I,s:o}", "round", (int)row->round, "selected", (int)row->selected,
                  "accepted", (int)row->accepted, "refused", (int)row->refused, "statements",
                  (json_int_t)row->statements, "main_size", (json_int_t)row->main_size, "groups", groups);
    if (samples > 0) {
        json_object_set_new(o, "accuracy", real((double)correct / (double)samples));
    }
    if (row->opened_ms && row->closed_ms >= row->opened_ms) {
        json_object_set_new(o, "seconds", real((double)(row->closed_ms - row->opened_ms) / 1000.0));
    }
    return o;
}

static struct kedge_job *get_job(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d;
    struct kedge_id id;
    const char *name = json_string_value(json_object_get(args, "job"));
    struct kedge_job *job = name && kedge_id_from(kedge_view_str(name), &id) == KEDGE_OK
                                ? kedge_host_job_find(h, &id, true)
                                : NULL;
    if (!job) {
        (void)kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no job \"%.63s\"", name ? name : "");
        kedge_admin_error(req, KEDGE_E_NOT_FOUND, &d);
    }
    return job;
}

static void put_models(struct kedge_host *h, const struct kedge_job *job, json_t *o)
{
    struct kedge_coord_job_view view;
    json_t *models = json_array();
    if (kedge_coord_job(h->coord, job->slot, &view)) {
        for (uint32_t g = 0; g < view.model_count; g++) {
            struct kedge_hash digest;
            memcpy(digest.b, view.models[g].b, KEDGE_HASH_LEN);
            json_array_append_new(models, hex_hash(&digest));
        }
    }
    json_object_set_new(o, "models", models);
}

static void job_show(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d;
    uint32_t from, shown = 0;
    int err = kedge_admin_from_round(args, &from, &d);
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    struct kedge_job *job = get_job(h, req, args);
    if (!job) {
        return;
    }
    json_t *o = summary(h, job), *rounds = json_array(), *waiting = json_array();
    for (uint32_t r = from; r <= job->round && shown < SHOW_ROUNDS_MAX; r++) {
        const struct kedge_round_history *row = kedge_job_history(job, r, false);
        if (row && row->accepted > 0) {
            json_array_append_new(rounds, round_row(row));
            shown++;
        }
    }
    for (uint32_t i = 0; i < job->params.tenant_count; i++) {
        if (!job->joined[job->params.tenants[i]]) {
            json_array_append_new(waiting, json_string(h->tenants[job->params.tenants[i]].id.s));
        }
    }
    json_object_set_new(o, "history", rounds);
    json_object_set_new(o, "tenants_missing", waiting);
    json_object_set_new(o, "strategy", json_string(job->spec.strategy->name));
    json_object_set_new(o, "rule", json_string(job->spec.rule->name));
    json_object_set_new(o, "server", json_string(kedge_job_spec_server_name(&job->spec)));
    put_models(h, job, o);
    kedge_admin_ok(req, o);
}

/* Puts the evidence of a released model into its row; what is not released has none. An ended job's models
 * are handed out when they are final. */
static int put_release(struct kedge_host *h, const struct kedge_job *job, uint32_t group, json_t *row,
                       struct kedge_diag *d)
{
    uint64_t index;
    int err = kedge_host_release_find(h, &job->spec.name, group, &index, d);
    if (err == KEDGE_E_NOT_FOUND) {
        return KEDGE_OK;
    }
    return err ? err : kedge_host_release_tell(h, index, row, d);
}

/* Releases of an ended job, models in use of a running one. */
static void job_model(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_job *job = get_job(h, req, args);
    if (!job) {
        return;
    }
    json_t *o = summary(h, job), *files = json_array();
    char path[KEDGE_PATH_MAX];
    struct kedge_coord_job_view view;
    struct kedge_diag d = {.text = ""};
    int err = KEDGE_OK;
    bool known = kedge_coord_job(h->coord, job->slot, &view);
    for (uint32_t g = 0; !err && (g < job->model_count || (known && g < view.model_count)); g++) {
        struct kedge_hash digest = job->models[g];
        if (known) {
            memcpy(digest.b, view.models[g].b, KEDGE_HASH_LEN);
        }
        if (kedge_blobs_path(h->main.blobs, &digest, path) == KEDGE_OK) {
            json_t *row =
                json_pack("{s:i,s:o,s:s}", "group", (int)g, "digest", hex_hash(&digest), "path", path);
            err = put_release(h, job, g, row, &d);
            json_array_append_new(files, row);
        }
    }
    json_object_set_new(o, "models", files);
    if (err) {
        json_decref(o);
        kedge_admin_error(req, err, &d);
        return;
    }
    kedge_admin_ok(req, o);
}

/* ---- halt, resume, cancel ---- */

static void job_event(struct kedge_host *h, struct kedge_net_request *req, const json_t *args,
                      enum kedge_coord_event_type type)
{
    struct kedge_job *job = get_job(h, req, args);
    struct kedge_coord_job_view view;
    struct kedge_diag d;
    if (!job) {
        return;
    }
    if (!kedge_coord_job(h->coord, job->slot, &view)) {
        (void)kedge_diag_set(&d, KEDGE_E_STATE, "job \"%s\" has ended", job->spec.name.s);
        kedge_admin_error(req, KEDGE_E_STATE, &d);
        return;
    }
    struct kedge_coord_event ev = {.type = type, .job = job->slot};
    kedge_host_step(h, &ev);
    kedge_admin_ok(req, summary(h, job));
}

static void job_halt(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    job_event(h, req, args, KEDGE_EV_JOB_HALT);
}

static void job_resume(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    job_event(h, req, args, KEDGE_EV_JOB_RESUME);
}

static void job_cancel(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    job_event(h, req, args, KEDGE_EV_JOB_CANCEL);
}

void kedge_admin_jobs(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                      const json_t *args)
{
    static const struct {
        const char *verb;
        void (*run)(struct kedge_host *h, struct kedge_net_request *req, const json_t *args);
    } verbs[] = {
        {"job.submit", job_submit}, {"job.list", job_list},
        {"job.show", job_show},     {"job.model", job_model},
        {"job.halt", job_halt},     {"job.resume", job_resume},
        {"job.cancel", job_cancel}, {"job.groups", kedge_admin_job_groups},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].verb, verb) == 0) {
            verbs[i].run(h, req, args);
            return;
        }
    }
    struct kedge_diag d;
    (void)kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "unknown verb \"%.40s\"", verb);
    kedge_admin_error(req, KEDGE_E_NOT_FOUND, &d);
}
