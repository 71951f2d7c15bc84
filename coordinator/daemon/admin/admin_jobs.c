/* Jobs: submitted, halted, resumed, cancelled. One submit token is one job. */
#include "coordinator/daemon/admin/admin.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/admin/promise.h"
#include "coordinator/daemon/admin/quotas.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/admit.h"
#include "coordinator/daemon/restore/ended_job.h"
#include "coordinator/daemon/restore/job_load.h"
#include "coordinator/daemon/rounds/first_models.h"
#include "round/compute.h"
#include "round/shared_part.h"

/* ---- submit ---- */

/* A submission takes its slot in the table at once, or a row among those that wait for one, as PENDING, and
 * is known to the core, or in line, only when its models and its record are durable. In between it can be
 * cancelled (cancelled_early) and asked for by its token, but nothing is told of it. */
struct submit_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_job *job;
    struct kedge_waiting_job *waiting; /* its row; NULL: it has a slot */
    char *spec_text;
    char *initial_path; /* NULL: from the spec */
    char actor[KEDGE_ACTOR_MAX + 1];
    bool only_checks; /* what the job begins with is looked at, and nothing is made */
    int err;
    struct kedge_diag diag;
};

static int sink_to_blob(void *arg, struct kedge_view bytes)
{
    return kedge_blob_writer_write(arg, bytes, NULL);
}

/* A model that is given must be the file that the spec names by its SHA-256: the spec is what is
 * signed and audited, and a file beside it could be exchanged. */
static int check_named(struct submit_work *w, struct kedge_view file)
{
    const struct kedge_job_spec *spec = &w->job->spec;
    struct kedge_hash digest;
    if (!spec->has_initial_model) {
        return kedge_diag_set(&w->diag, KEDGE_E_FORMAT,
                              "job spec: \"initial_model\" is missing: it must name the file by its SHA-256");
    }
    kedge_sha256(file, &digest);
    return kedge_hash_eq(&digest, &spec->initial_model)
               ? KEDGE_OK
               : kedge_diag_set(&w->diag, KEDGE_E_BLOB_DIGEST,
                                "%s: not the file that the spec's \"initial_model\" names", w->initial_path);
}

static int put_bytes(struct kedge_host *h, struct kedge_view bytes, struct kedge_hash *ret,
                     struct kedge_diag *d)
{
    struct kedge_blob_writer *writer;
    KEDGE_TRY(kedge_blob_writer_open(h->main.blobs, bytes.len, &writer, d));
    int err = kedge_blob_writer_write(writer, bytes, d);
    if (err) {
        kedge_blob_writer_abort(writer);
        return err;
    }
    return kedge_blob_writer_finish(writer, ret, NULL, d);
}

/* The file that came with the job becomes a blob. */
static int put_file(struct kedge_host *h, struct submit_work *w, const struct kedge_layout *layout,
                    struct kedge_hash *ret)
{
    struct kedge_map map;
    KEDGE_TRY(kedge_compute_check_model(layout, w->initial_path, &w->diag));
    KEDGE_TRY(kedge_map_open(w->initial_path, &map, &w->diag));
    const struct kedge_view bytes = kedge_view_of(map.ptr, map.len);
    int err = check_named(w, bytes);
    if (!err && !w->only_checks) {
        err = put_bytes(h, bytes, ret, &w->diag);
    }
    kedge_map_close(&map);
    return err;
}

/* The first weights that the spec names: the file that came with it, or one that is here. */
static int put_named(struct kedge_host *h, struct submit_work *w, const struct kedge_layout *layout,
                     struct kedge_hash *ret)
{
    if (w->initial_path) {
        return put_file(h, w, layout, ret);
    }
    int err = kedge_blobs_find(h->main.blobs, &w->job->spec.initial_model, NULL);
    *ret = w->job->spec.initial_model;
    return err ? kedge_diag_set(&w->diag, err,
                                "job spec: \"initial_model\" is not here; submit it with the job")
               : KEDGE_OK;
}

/* What the job begins with where it is computed: from the spec's seed, or as the shared part of the base. */
static int put_made(struct kedge_host *h, struct submit_work *w, const struct kedge_blob_at *base)
{
    struct kedge_job *job = w->job;
    struct kedge_blob_writer *writer;
    KEDGE_TRY(kedge_blob_writer_open(h->main.blobs, job->model_len, &writer, &w->diag));
    const struct kedge_sink sink = {.write = sink_to_blob, .arg = writer};
    int err = base ? kedge_compute_shared_part(&job->spec, base, sink, &w->diag)
                   : kedge_compute_initial(&job->spec, sink, &w->diag);
    if (err) {
        kedge_blob_writer_abort(writer);
        return err;
    }
    return kedge_blob_writer_finish(writer, &job->initial_model, NULL, &w->diag);
}

static int put_base(struct kedge_host *h, struct submit_work *w)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_layout whole;
    struct kedge_hash digest;
    struct kedge_blob_at at;
    KEDGE_TRY(kedge_job_spec_whole_layout(&w->job->spec, &whole, &w->diag));
    int err = put_named(h, w, &whole, &digest);
    kedge_layout_deinit(&whole);
    if (err || w->only_checks) {
        return err;
    }
    KEDGE_TRY(kedge_blobs_at(h->main.blobs, &digest, path, &at));
    return put_made(h, w, &at);
}

static int put_initial(struct kedge_host *h, struct submit_work *w)
{
    if (kedge_job_spec_has_base(&w->job->spec)) {
        return put_base(h, w);
    }
    if (w->initial_path || w->job->spec.has_initial_model) {
        return put_named(h, w, &w->job->layout, &w->job->initial_model);
    }
    return w->only_checks ? KEDGE_OK : put_made(h, w, NULL);
}

/* All blobs first; the record, which names them, comes after that on the loop. */
static void submit_run(struct kedge_host *h, struct kedge_work *work)
{
    struct submit_work *w = (struct submit_work *)work;
    struct kedge_view text = kedge_view_str(w->spec_text);
    struct kedge_hash digest;
    w->err = put_initial(h, w);
    w->err = w->err ? w->err : kedge_first_models_make(h, w->job, &w->diag);
    w->err = w->err ? w->err : kedge_blobs_put(h->main.blobs, &text, 1, &digest, &w->diag);
}

/* waits: for a place, so the main chain will not know it before. */
static void answer_job(struct kedge_net_request *req, const struct kedge_id *name, enum kedge_job_state state,
                       const struct kedge_hash *spec, bool waits)
{
    json_t *o = json_pack("{s:s,s:s,s:o}", "job", name->s, "state", kedge_job_state_name(state), "spec",
                          kedgei_json_hex(spec->b, KEDGE_HASH_LEN));
    if (waits) {
        json_object_set_new(o, "waits", json_true());
    }
    kedge_admin_ok(req, o);
}

/* From here on its row and its record are all there is of it. Should its end not be stored it waits on, as if
 * nobody had asked for it: the log says so. */
static void get_in_line(struct kedge_host *h, struct submit_work *w)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_job *job = w->job;
    const bool is_cancelled = job->cancelled_early;
    w->waiting->spec = job->spec_digest;
    w->waiting->initial_model = job->initial_model;
    w->waiting->base = kedge_job_spec_has_base(&job->spec) ? job->spec.initial_model : job->initial_model;
    kedge_waiting_set(h, w->waiting, NULL, false);
    int err = is_cancelled ? kedge_host_waiting_cancel(h, w->waiting, job->cancelled_by, &d) : KEDGE_OK;
    if (err) {
        kedge_log(KEDGE_LOG_ERROR, "job", "job=%s is not cancelled: %s", job->spec.name.s,
                  d.text[0] ? d.text : kedge_strerror(err));
    }
    kedge_host_job_free(job);
}

/* The record is durable before the answer, so a job that was confirmed is there after a crash. The
 * core hears of it after the answer was sent; from then on it runs. */
static void submit_done(struct kedge_host *h, struct kedge_item *item)
{
    struct submit_work *w = (struct submit_work *)item;
    struct kedge_job *job = w->job;
    int err = w->err;
    if (!err) {
        job->state = KEDGE_JOB_QUEUED;
        h->acting = w->actor;
        h->acting_on = job;
        err = kedge_host_job_move(h, job, KEDGE_JOB_PENDING) ? kedge_host_job_store(h, job, &w->diag)
                                                             : KEDGE_E_BUG;
        h->acting = NULL;
    }
    if (err) {
        kedge_admin_error(w->req, err, &w->diag);
        if (w->waiting) {
            kedge_waiting_remove(h, w->waiting);
        }
        kedge_host_job_free(job);
    } else {
        answer_job(w->req, &job->spec.name, job->state, &job->spec_digest, w->waiting != NULL);
        if (w->waiting) {
            get_in_line(h, w);
        } else {
            kedge_job_load_begin(h, job);
        }
    }
    kedge_mem_free(w->spec_text);
    kedge_mem_free(w->initial_path);
    kedge_mem_free(w);
}

static void submit_admitted(struct kedge_host *h, void *arg, int err, const struct kedge_diag *d)
{
    struct submit_work *w = arg;
    if (!err) {
        w->only_checks = false;
        w->work = (struct kedge_work){.item = {submit_done}, .run = submit_run};
        kedge_host_work(h, &w->work);
        return;
    }
    w->err = err;
    w->diag = *d;
    submit_done(h, &w->work.item);
}

/* A promise holds back other jobs, and nobody can take it back: so a first model that is not what the spec
 * says is found before. */
static void check_run(struct kedge_host *h, struct kedge_work *work)
{
    struct submit_work *w = (struct submit_work *)work;
    w->err = put_initial(h, w);
}

static void check_done(struct kedge_host *h, struct kedge_item *item)
{
    struct submit_work *w = (struct submit_work *)item;
    if (w->err) {
        submit_done(h, item);
    } else {
        kedge_host_decide_promise(h, w->job, w->spec_text, submit_admitted, w);
    }
}

/* The job that the token submitted, running or ended; an empty name: none. */
static int job_of_token(struct kedge_host *h, const char *token_hash, struct kedge_id *ret,
                        struct kedge_diag *d)
{
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    struct kedge_buf key KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_view name;
    *ret = (struct kedge_id){.s = ""};
    kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) { /* one that is being submitted has no record yet */
        if (h->jobs[i].used && strcmp(h->jobs[i].token_hash, token_hash) == 0) {
            *ret = h->jobs[i].spec.name;
            return KEDGE_OK;
        }
    }
    for (uint32_t i = 0; i < h->waiting.count; i++) { /* … neither has this one */
        const struct kedge_job *coming = h->waiting.jobs[i]->coming;
        if (coming && strcmp(coming->token_hash, token_hash) == 0) {
            *ret = coming->spec.name;
            return KEDGE_OK;
        }
    }
    KEDGE_TRY(kedge_kv_begin(h->kv, false, &tx, d));
    kedge_job_token_key(token_hash, &key);
    int err = key.err ? key.err : kedge_kv_peek(tx, KEDGE_KV_STATE, kedge_buf_view(&key), &name);
    if (!err) {
        err = kedge_job_token_decode(kedge_buf_view(&key), name, ret, d);
    }
    return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
}

/* In the table, or in no line yet: of all others the record tells. */
static struct kedge_job *find_job(struct kedge_host *h, const struct kedge_id *name)
{
    struct kedge_job *job = kedge_host_job_find(h, name, true);
    const struct kedge_waiting_job *w = job ? NULL : kedge_waiting_find(h, name);
    return w ? w->coming : job;
}

/* Answers a submission that came before: with its job as it is now. The same token with another
 * spec is a mistake of the sender and is told as one: to answer with the old job would hide that
 * the new spec does not run. */
static int answer_again(struct kedge_host *h, struct kedge_net_request *req, const struct kedge_id *name,
                        const struct kedge_hash *digest, struct kedge_diag *d)
{
    const struct kedge_job *job = find_job(h, name);
    struct kedge_job_record r;
    KEDGE_TRY(job ? KEDGE_OK : kedge_job_record_get(h, name, &r, d));
    if (!kedge_hash_eq(job ? &job->spec_digest : &r.spec, digest)) {
        return kedge_diag_set(d, KEDGE_E_EXISTS, "the submit token belongs to job \"%s\" with another spec",
                              name->s);
    }
    const struct kedge_waiting_job *w = kedge_waiting_find(h, name);
    answer_job(req, name, job ? job->state : r.state, digest, w && !w->coming);
    return KEDGE_OK;
}

/* True when the request is answered: the token or the name is known already. Names are never used
 * again, also not that of a job that ended long ago: the record's keys are made of them. */
static bool answer_known(struct kedge_host *h, struct kedge_net_request *req, const struct kedge_id *name,
                         const struct kedge_hash *digest, const char *token_hash)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id submitted = {.s = ""};
    struct kedge_job_record record;
    uint64_t index;
    char key[KEDGE_IDEM_KEY_MAX + 1];
    int err = token_hash[0] ? job_of_token(h, token_hash, &submitted, &d) : KEDGE_OK;
    snprintf(key, sizeof key, "job-opened/%s", name->s);
    if (!err && submitted.s[0]) {
        err = answer_again(h, req, &submitted, digest, &d);
        if (!err) {
            return true;
        }
    } else if (!err
               && (find_job(h, name)
                   || kedge_ledger_find(h->main.ledger, kedge_view_str(key), &index) == KEDGE_OK
                   || kedge_job_record_get(h, name, &record, &d) == KEDGE_OK)) {
        err = kedge_diag_set(&d, KEDGE_E_EXISTS, "there is a job \"%s\" already; names are not reused",
                             name->s);
    } else if (!err) {
        err = kedge_host_promise_check(h, name, digest, &d);
    }
    if (err) {
        kedge_admin_error(req, err, &d);
    }
    return err != KEDGE_OK;
}

/* The spec is parsed once to find its name, and again by kedge_host_job_make into its slot: a spec
 * with an error must not take a slot, which may cost an ended job its place. */
static int read_submission(const struct kedge_net_request *req, const json_t *args,
                           struct kedge_admin_submit *ret, struct kedge_job_spec *ret_spec,
                           struct kedge_diag *d)
{
    KEDGE_TRY(kedge_admin_submit_args(args, ret, d));
    if (ret->initial && kedge_net_request_peer(req)->kind != KEDGE_NET_IPC) {
        return kedge_diag_set(d, KEDGE_E_DENIED,
                              "an initial model by path needs a command on the coordinator's machine");
    }
    KEDGE_TRY(kedge_job_spec_parse(kedge_view_str(ret->spec), ret_spec, d));
    return kedge_job_spec_check_read(kedge_view_str(ret->spec), ret_spec, d);
}

/* A job has its place at once where one is free and nobody waits; else it waits, with a row from now on, so
 * that no more of them are taken than may wait. One with a deadline does not wait: what is promised counts
 * from now on, and nothing would be done for it. */
static int take(struct kedge_host *h, const struct kedge_job_spec *spec, struct kedge_view text,
                struct kedge_job **ret, struct kedge_waiting_job **ret_waiting, struct kedge_diag *d)
{
    const bool is_due = spec->deadline_s > 0;
    *ret_waiting = NULL;
    if ((is_due ? h->waiting.ready : h->waiting.count) == 0 && kedge_host_job_has_room(h)) {
        return kedge_host_job_make(h, text, ret, d);
    }
    if (is_due) {
        return kedge_diag_set(d, KEDGE_E_FULL,
                              "job \"%s\": has a deadline, so it cannot wait for a place, and there is none "
                              "now; submit it when a job has ended and none waits",
                              spec->name.s);
    }
    KEDGE_TRY(kedge_waiting_room(h, spec, d));
    KEDGE_TRY(kedge_host_job_make_waiting(h, text, ret, d));
    int err = kedge_waiting_add(h, spec, (*ret)->created_ms, ret_waiting);
    if (err) {
        kedge_host_job_free(*ret);
        return err;
    }
    kedge_waiting_set(h, *ret_waiting, *ret, false);
    return KEDGE_OK;
}

static void job_submit(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_waiting_job *waiting = NULL;
    struct kedge_admin_submit a = {.spec = NULL};
    char token_hash[KEDGE_HASH_HEX_LEN + 1] = "";
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    struct kedge_hash digest;
    struct kedge_job *job;
    int err = spec ? read_submission(req, args, &a, spec, &d) : KEDGE_E_NOMEM;
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
        err = kedge_quota_check_job(h, spec, &d);
        err = err ? err : take(h, spec, kedge_view_str(a.spec), &job, &waiting, &d);
    }
    kedge_mem_free(spec);
    struct submit_work *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    if (!w) {
        if (!err && waiting) {
            kedge_waiting_remove(h, waiting);
        }
        if (!err) { /* or its slot would stay taken, by a job that nobody can end */
            kedge_host_job_free(job);
        }
        kedge_admin_error(req, err ? err : KEDGE_E_NOMEM, &d);
        return;
    }
    snprintf(job->token_hash, sizeof job->token_hash, "%s", token_hash);
    if (job->params.has_root
        && kedge_host_site_find(h, job->params.root_tenant, &job->params.root_site) == KEDGE_COORD_NONE) {
        kedge_log(KEDGE_LOG_WARN, "job",
                  "job=%s root site %s/%s is not enrolled; no round opens before it is", job->spec.name.s,
                  job->spec.tenants[job->spec.root_tenant].s, job->params.root_site.s);
    }
    *w = (struct submit_work){.work = {.item = {submit_done}, .run = submit_run},
                              .req = req,
                              .job = job,
                              .waiting = waiting,
                              .spec_text = kedge_mem_strdup(a.spec),
                              .initial_path = a.initial ? kedge_mem_strdup(a.initial) : NULL};
    KEDGE_ASSERT(w->spec_text);
    kedge_host_actor(h, kedge_net_request_peer(req), w->actor);
    if (job->spec.deadline_s > 0) {
        w->only_checks = true;
        w->work = (struct kedge_work){.item = {check_done}, .run = check_run};
    }
    kedge_host_work(h, &w->work);
}

/* ---- halt, resume, cancel ---- */

static struct kedge_job *get_job(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d;
    struct kedge_id id;
    const char *name = json_string_value(json_object_get(args, "job"));
    struct kedge_job *job =
        name && kedge_id_from(kedge_view_str(name), &id) == KEDGE_OK ? find_job(h, &id) : NULL;
    if (job) {
        return job;
    }
    bool ended =
        name && kedge_id_from(kedge_view_str(name), &id) == KEDGE_OK && kedge_ended_job_is_known(h, &id);
    int err = ended ? kedge_diag_set(&d, KEDGE_E_STATE, "job \"%s\" has ended", id.s)
                    : kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no job \"%.63s\"", name ? name : "");
    kedge_admin_error(req, err, &d);
    return NULL;
}

/* Of a job in line, if it is one: then the request is answered. It is cancelled or halted at once, for nobody
 * else works on it. */
static bool asked_in_line(struct kedge_host *h, struct kedge_net_request *req, const json_t *args,
                          enum kedge_coord_event_type type)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id id;
    char actor[KEDGE_ACTOR_MAX + 1];
    const char *name = json_string_value(json_object_get(args, "job"));
    struct kedge_waiting_job *w =
        name && kedge_id_from(kedge_view_str(name), &id) == KEDGE_OK ? kedge_waiting_find(h, &id) : NULL;
    if (!w || w->coming) {
        return false;
    }
    kedge_host_actor(h, kedge_net_request_peer(req), actor);
    const bool is_end = type == KEDGE_EV_JOB_CANCEL;
    int err = is_end ? kedge_host_waiting_cancel(h, w, actor, &d)
                     : kedge_host_waiting_hold(h, w, type == KEDGE_EV_JOB_HALT, actor, &d);
    if (err) {
        kedge_admin_error(req, err, &d);
    } else {
        const enum kedge_job_state state = is_end                      ? KEDGE_JOB_CANCELLED
                                           : type == KEDGE_EV_JOB_HALT ? KEDGE_JOB_HALTED
                                                                       : KEDGE_JOB_QUEUED;
        json_t *o = json_pack("{s:s,s:s}", "job", id.s, "state", kedge_job_state_name(state));
        if (is_end) {
            json_object_set_new(o, "unopened", json_true());
        }
        kedge_admin_ok(req, o);
    }
    return true;
}

/* What the operator asks of a job before the core knows it: cancelling is remembered, everything
 * else has to come again. */
static void job_event(struct kedge_host *h, struct kedge_net_request *req, const json_t *args,
                      enum kedge_coord_event_type type)
{
    struct kedge_job *job = asked_in_line(h, req, args, type) ? NULL : get_job(h, req, args);
    struct kedge_coord_job_view view;
    struct kedge_diag d;
    if (!job) {
        return;
    }
    char actor[KEDGE_ACTOR_MAX + 1];
    kedge_host_actor(h, kedge_net_request_peer(req), actor);
    if (type == KEDGE_EV_JOB_CANCEL && !job->cancelled_by[0]) {
        memcpy(job->cancelled_by, actor, sizeof actor);
    }
    const bool is_coming = !kedge_host_job_is_told(job); /* its first model is being made */
    if (is_coming && type == KEDGE_EV_JOB_CANCEL) {
        job->cancelled_early = true;
        kedge_admin_ok(req, kedge_admin_job_summary(h, job));
        return;
    }
    if (is_coming) {
        (void)kedge_diag_set(&d, KEDGE_E_BUSY, "job \"%s\" is being %s; try again when it is",
                             job->spec.name.s, job->unopened ? "given its place" : "submitted");
        kedge_admin_error(req, KEDGE_E_BUSY, &d);
        return;
    }
    if (!kedge_host_job_view(h, job, &view)) {
        (void)kedge_diag_set(&d, KEDGE_E_STATE, "job \"%s\" has ended", job->spec.name.s);
        kedge_admin_error(req, KEDGE_E_STATE, &d);
        return;
    }
    uint32_t unable = type == KEDGE_EV_JOB_RESUME ? kedge_host_troubles_unable(h, job) : 0;
    struct kedge_coord_event ev = {.type = type, .job = job->slot};
    h->acting = actor;
    h->acting_on = job;
    kedge_host_step(h, &ev);
    h->acting = NULL;
    json_t *o = kedge_admin_job_summary(h, job);
    if (unable > 0) {
        json_object_set_new(o, "asked_again", json_integer(unable));
    }
    kedge_admin_ok(req, o);
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
        {"job.submit", job_submit},
        {"job.list", kedge_admin_job_list},
        {"job.show", kedge_admin_job_show},
        {"job.model", kedge_admin_job_model},
        {"job.halt", job_halt},
        {"job.resume", job_resume},
        {"job.cancel", job_cancel},
        {"job.groups", kedge_admin_job_groups},
        {"job.events", kedge_admin_job_events},
        {"job.spec", kedge_admin_job_spec},
        {"job.costs", kedge_admin_job_costs},
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
