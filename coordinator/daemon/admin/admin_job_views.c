/* job.show, job.model. A job that runs is told from the tables of the loop, one that waits for a place from
 * its record; one that has ended is told from the record, by a worker: there may be very many of them, and
 * nothing of them is in memory. */
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/json/json.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/admin/job_goals.h"
#include "coordinator/daemon/admin/job_logs.h"
#include "coordinator/daemon/admin/job_parts.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/ended_job.h"
#include "coordinator/daemon/restore/history.h"
#include "coordinator/daemon/rounds/classes.h"
#include "coordinator/daemon/rounds/release.h"
#include "coordinator/daemon/rounds/troubles.h"
#include "coordinator/daemon/tenant_keys.h"

/* ---- parts of an answer ---- */

/* fault: what was at fault, ""; of a job that has failed, as its job-closed says. */
static void put_reason(json_t *o, int reason, const char *fault)
{
    if (reason) {
        json_object_set_new(o, "reason", json_string(kedge_err_code(reason)));
        json_object_set_new(o, "reason_text", json_string(fault[0] ? fault : kedge_strerror(reason)));
    }
}

json_t *kedge_admin_job_summary(struct kedge_host *h, const struct kedge_job *job)
{
    struct kedge_coord_job_view view;
    json_t *o = json_pack("{s:s,s:s,s:i,s:i,s:I,s:o}", "job", job->spec.name.s, "state",
                          kedge_job_state_name(job->state), "round", (int)job->round, "rounds",
                          (int)job->spec.rounds, "created_ms", (json_int_t)job->created_ms, "spec",
                          kedgei_json_hex(job->spec_digest.b, KEDGE_HASH_LEN));
    put_reason(o, job->reason,
               job->state == KEDGE_JOB_FAILED || job->reason == KEDGE_E_SITES ? job->fault : "");
    if (kedge_host_job_view(h, job, &view)) {
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

json_t *kedge_admin_ended_summary(const struct kedge_ended_job *job)
{
    const struct kedge_job_record *r = &job->record;
    json_t *o =
        json_pack("{s:s,s:s,s:i,s:i,s:I,s:o}", "job", r->job.s, "state", kedge_job_state_name(r->state),
                  "round", (int)job->round, "rounds", (int)job->spec->rounds, "created_ms",
                  (json_int_t)r->created_ms, "spec", kedgei_json_hex(r->spec.b, KEDGE_HASH_LEN));
    if (job->ended_ms) {
        json_object_set_new(o, "ended_ms", json_integer((json_int_t)job->ended_ms));
    }
    if (job->unopened) {
        json_object_set_new(o, "unopened", json_true());
    }
    put_reason(o, r->reason, job->reason);
    if (!r->reason && job->reason[0]) { /* the record was not written any more, a full disk perhaps */
        json_object_set_new(o, "reason_text", json_string(job->reason));
    }
    return o;
}

json_t *kedge_admin_waiting_summary(const struct kedge_job_record *r, const struct kedge_job_spec *spec,
                                    const struct kedge_waiting_view *view)
{
    json_t *o =
        json_pack("{s:s,s:s,s:i,s:i,s:I,s:o,s:I}", "job", r->job.s, "state",
                  kedge_job_state_name(view->is_held ? KEDGE_JOB_HALTED : KEDGE_JOB_QUEUED), "round", 0,
                  "rounds", (int)spec->rounds, "created_ms", (json_int_t)r->created_ms, "spec",
                  kedgei_json_hex(r->spec.b, KEDGE_HASH_LEN), "enrol_until_ms", (json_int_t)view->until_ms);
    if (view->position > 0) {
        json_object_set_new(o, "queue_position", json_integer(view->position));
        json_object_set_new(o, "queue_length", json_integer(view->count));
    }
    return o;
}

/* Learnt from the job's sites. */
static void put_classes(json_t *o, const struct kedge_job_spec *spec, const char *names)
{
    json_t *list = spec->learns_classes ? json_array() : NULL;
    for (const char *name = names; list && *name != '\0'; name += strlen(name) + 1) {
        json_array_append_new(list, json_string(name));
    }
    if (list) {
        json_object_set_new(o, "classes", list);
    }
}

/* Where the job's metric is the loss nothing is said of accuracy, which it has not. */
static json_t *group_row(const struct kedge_job_spec *spec, const struct kedge_round_history *row, uint32_t g)
{
    const struct kedge_group_metric *m = &row->metrics[g];
    json_t *o = json_pack("{s:i,s:i,s:I,s:I}", "group", (int)g, "sites", (int)m->members, "test_samples",
                          (json_int_t)m->samples, "test_correct", (json_int_t)m->correct);
    if (m->samples > 0) {
        json_object_set_new(o, "loss", kedgei_json_number(kedge_history_loss(m)));
    }
    if (m->samples > 0 && !spec->shows_loss) {
        json_object_set_new(o, "accuracy", kedgei_json_number((double)m->correct / (double)m->samples));
    }
    if (m->personal_samples > 0 && !spec->shows_loss) {
        json_object_set_new(o, "personal_accuracy",
                            kedgei_json_number((double)m->personal_correct / (double)m->personal_samples));
    }
    return o;
}

/* The loss over all groups is weighted by test samples, as the accuracy is. */
static json_t *round_row(const struct kedge_job_spec *spec, const struct kedge_round_history *row)
{
    json_t *groups = json_array();
    uint64_t samples = 0, correct = 0;
    double loss = 0;
    for (uint32_t g = 0; g < row->groups; g++) {
        json_array_append_new(groups, group_row(spec, row, g));
        samples += row->metrics[g].samples;
        correct += row->metrics[g].correct;
        loss += row->metrics[g].samples > 0
                    ? kedge_history_loss(&row->metrics[g]) * (double)row->metrics[g].samples
                    : 0;
    }
    json_t *o =
        json_pack("{s:i,s:i,s:i,s:i,s:I,s:I,s:o}", "round", (int)row->round, "selected", (int)row->selected,
                  "accepted", (int)row->accepted, "refused", (int)row->refused, "statements",
                  (json_int_t)row->statements, "main_size", (json_int_t)row->main_size, "groups", groups);
    if (samples > 0) {
        json_object_set_new(o, "loss", kedgei_json_number(loss / (double)samples));
    }
    if (samples > 0 && !spec->shows_loss) {
        json_object_set_new(o, "accuracy", kedgei_json_number((double)correct / (double)samples));
    }
    if (spec->budget.unit != KEDGE_JOB_BUDGET_NONE) {
        json_object_set_new(o, "charged", kedgei_json_number((double)row->charged / 1e6));
    }
    if (row->opened_ms && row->closed_ms >= row->opened_ms) {
        json_object_set_new(o, "seconds",
                            kedgei_json_number((double)(row->closed_ms - row->opened_ms) / 1000.0));
    }
    return o;
}

static void put_spec(json_t *o, const struct kedge_job_spec *spec)
{
    json_object_set_new(o, "strategy", json_string(spec->strategy->name));
    json_object_set_new(o, "metric", json_string(spec->shows_loss ? "loss" : "accuracy"));
    json_object_set_new(o, "rule", json_string(spec->rule->name));
    json_object_set_new(o, "server", json_string(kedge_job_spec_server_name(spec)));
}

static void answer_not_found(struct kedge_net_request *req, const char *name)
{
    struct kedge_diag d;
    (void)kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no job \"%.63s\"", name ? name : "");
    kedge_admin_error(req, KEDGE_E_NOT_FOUND, &d);
}

/* ---- jobs that run ---- */

/* What the record does not tell the other tenants of a job: which of the sites are connected, and how much
 * all ledgers hold. */
static void forget_sums(json_t *o)
{
    json_t *row;
    size_t at;
    json_array_foreach(json_object_get(o, "history"), at, row)
    {
        json_object_del(row, "statements");
    }
}

static void forget_others(const struct kedge_host *h, const struct kedge_public_key *admin, json_t *o)
{
    uint32_t online = 0;
    for (uint32_t i = 0; i < h->site_count; i++) {
        online += kedge_coord_is_online(h->coord, i)
                  && kedge_tenant_shows_to(&h->tenants[h->sites[i].tenant], admin);
    }
    json_object_set_new(o, "sites_online", json_integer(online));
    forget_sums(o);
}

/* Which of its tenants are still to join, and which have left. */
static void put_members(const struct kedge_host *h, const struct kedge_job *job, json_t *o)
{
    json_t *waiting = json_array(), *gone = json_array();
    for (uint32_t i = 0; i < job->params.tenant_count; i++) {
        const uint32_t tenant = job->params.tenants[i];
        if (!job->joined[tenant] || job->left[tenant]) {
            json_array_append_new(job->left[tenant] ? gone : waiting, json_string(h->tenants[tenant].id.s));
        }
    }
    json_object_set_new(o, "tenants_missing", waiting);
    json_object_set_new(o, "tenants_left", gone);
}

/* for_admin: whose sites are told of; NULL: all. */
static void show_running(struct kedge_host *h, struct kedge_net_request *req, struct kedge_job *job,
                         uint32_t from, const struct kedge_public_key *for_admin)
{
    json_t *o = kedge_admin_job_summary(h, job), *rounds = json_array(), *models = json_array();
    uint32_t shown = 0, most = kedge_history_page_rounds(kedge_job_spec_groups_most(&job->spec)), r = from;
    uint32_t kept = job->round < KEDGE_HISTORY_MAX ? 0 : job->round - KEDGE_HISTORY_MAX + 1;
    for (r = r < kept ? kept : r; r <= job->round && shown < most; r++) {
        const struct kedge_round_history *row = kedge_job_history(job, r, false);
        if (row && row->main_size > 0) {
            json_array_append_new(rounds, round_row(&job->spec, row));
            shown++;
        }
    }
    put_members(h, job, o);
    struct kedge_coord_job_view view;
    bool known = kedge_host_job_view(h, job, &view);
    for (uint32_t g = 0; known && g < view.model_count; g++) {
        struct kedge_hash digest;
        memcpy(digest.b, view.models[g].b, KEDGE_HASH_LEN);
        json_array_append_new(models, kedgei_json_hex(digest.b, KEDGE_HASH_LEN));
    }
    json_object_set_new(o, "history", rounds);
    if (r <= job->round) {
        json_object_set_new(o, "next_round", json_integer(r));
    }
    put_spec(o, &job->spec);
    const uint64_t next = kedge_schedule_estimate(&job->at.book);
    kedge_admin_put_budget(o, &job->spec, job->at.book.spent, &next);
    kedge_admin_put_targets(o, &job->spec, &job->tested);
    kedge_admin_put_plan(h, job, for_admin, o);
    kedge_admin_put_deadline(o, job->deadline_ms);
    put_classes(o, &job->spec, job->classes);
    json_object_set_new(o, "models", models);
    if (for_admin) {
        forget_others(h, for_admin, o);
    }
    kedge_host_troubles_put(h, job, for_admin, kedge_admin_sees_texts(h, req), o);
    kedge_admin_ok(req, o);
}

/* Puts the evidence of a released model into its row; what is not released has none. An ended job's models
 * are handed out when they are final. */
static int put_release(struct kedge_host *h, const struct kedge_id *job, uint32_t group, uint32_t tier,
                       json_t *row, struct kedge_diag *d)
{
    uint64_t index;
    int err = kedge_host_release_find(h, job, group, tier, &index, d);
    if (err == KEDGE_E_NOT_FOUND) {
        return KEDGE_OK;
    }
    KEDGE_TRY(err);
    return kedge_host_main_tell(h, index, row, "release", "proof", d);
}

/* Steals `o`, which gets those of the models that are here, with their releases. If the evidence of
 * one model cannot be told yet, nothing is: half a list would look like all there is. */
static void answer_models(struct kedge_host *h, struct kedge_net_request *req, const struct kedge_id *job,
                          uint32_t tier, const struct kedge_hash *models, uint32_t count, json_t *o)
{
    json_t *files = json_array();
    char path[KEDGE_PATH_MAX];
    struct kedge_diag d = {.text = ""};
    bool is_released = false;
    int err = KEDGE_OK;
    for (uint32_t g = 0; !err && g < count; g++) {
        if (kedge_blobs_path(h->main.blobs, &models[g], path) == KEDGE_OK) {
            json_t *row = json_pack("{s:i,s:o,s:s}", "group", (int)g, "digest",
                                    kedgei_json_hex(models[g].b, KEDGE_HASH_LEN), "path", path);
            err = put_release(h, job, g, tier, row, &d);
            is_released = is_released || json_object_get(row, "release");
            json_array_append_new(files, row);
        }
    }
    json_object_set_new(o, "models", files);
    err = err || !is_released ? err : kedge_host_opened_tell(h, job, o, &d);
    kedge_admin_answer(req, err, &d, o);
}

/* What is in use; of a job that has reached its first target, and has not fallen below it since, what reached
 * it: that is released. */
static void model_of_running(struct kedge_host *h, struct kedge_net_request *req, struct kedge_job *job)
{
    struct kedge_coord_job_view view;
    struct kedge_hash models[KEDGE_GROUPS_MAX];
    uint32_t count = job->at.groups;
    for (uint32_t g = 0; g < count; g++) {
        models[g] = job->at.group[g].model;
    }
    if (kedge_host_job_view(h, job, &view)) {
        count = view.model_count > count ? view.model_count : count;
        memcpy(models, view.models, view.model_count * sizeof models[0]);
    }
    struct kedge_diag d = {.text = ""};
    const uint32_t tier = job->tested.tier < job->spec.target_count ? job->tested.tier : 0;
    int err = tier > 0 ? kedge_admin_models_of_tier(h, job, tier, models, &count, &d) : KEDGE_OK;
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    job->tested.told_count = tier > 0 ? count : 0;
    memcpy(job->tested.told, models, job->tested.told_count * sizeof *models);
    json_t *o = kedge_admin_job_summary(h, job);
    put_classes(o, &job->spec, job->classes);
    answer_models(h, req, &job->spec.name, tier, models, count, o);
}

/* ---- jobs that wait for a place ---- */

/* To a tenant's admin the line is that of its own jobs: how many others wait is not told. */
static uint32_t own_tenant(const struct kedge_host *h, const struct kedge_waiting_job *w,
                           const struct kedge_public_key *key)
{
    for (uint32_t i = 0; key && i < w->tenant_count; i++) {
        if (kedge_tenant_shows_to(&h->tenants[w->tenants[i]], key)) {
            return w->tenants[i];
        }
    }
    return KEDGE_COORD_NONE;
}

static bool says(struct kedge_ledger *tenants, const char *kind, const struct kedge_id *job)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "%s/%s", kind, job->s);
    return kedge_ledger_find(tenants, kedge_view_str(key), NULL) == KEDGE_OK;
}

/* Tenants may join, and leave, before it has its place: their ledgers say so. */
static void put_members_in_line(const struct kedge_host *h, const struct kedge_waiting_job *w, json_t *o)
{
    json_t *missing = json_array(), *gone = json_array();
    for (uint32_t i = 0; i < w->tenant_count; i++) {
        const struct kedge_tenant *t = &h->tenants[w->tenants[i]];
        const bool has_left = says(t->log.ledger, "job-left", &w->name);
        if (has_left || !says(t->log.ledger, "job-joined", &w->name)) {
            json_array_append_new(has_left ? gone : missing, json_string(t->id.s));
        }
    }
    json_object_set_new(o, "tenants_missing", missing);
    json_object_set_new(o, "tenants_left", gone);
}

/* It has no rounds and no models yet. */
static void show_waiting(struct kedge_host *h, struct kedge_net_request *req,
                         const struct kedge_waiting_job *w, const struct kedge_public_key *for_admin)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_job_record record;
    struct kedge_job_spec *spec = NULL;
    struct kedge_waiting_view view;
    json_t *o = NULL;
    int err = kedge_job_record_get(h, &w->name, &record, &d);
    err = err ? err : kedge_job_record_spec(h, &record, &spec, &d);
    if (!err) {
        kedge_waiting_view(h, w, own_tenant(h, w, for_admin), &view);
        o = kedge_admin_waiting_summary(&record, spec, &view);
        json_object_set_new(o, "history", json_array());
        json_object_set_new(o, "models", json_array());
        put_members_in_line(h, w, o);
        put_spec(o, spec);
        kedge_admin_put_budget(o, spec, 0, NULL);
        put_classes(o, spec, "");
    }
    kedge_mem_free(spec);
    kedge_admin_answer(req, err, &d, o);
}

/* One that is being submitted, and will wait. */
static void show_coming(struct kedge_host *h, struct kedge_net_request *req, const struct kedge_job *job)
{
    json_t *o = kedge_admin_job_summary(h, job);
    json_object_set_new(o, "history", json_array());
    json_object_set_new(o, "models", json_array());
    json_object_set_new(o, "tenants_missing", json_array());
    put_spec(o, &job->spec);
    kedge_admin_ok(req, o);
}

/* True when the request is answered: no such job has a place, and one waits. */
static bool show_in_line(struct kedge_host *h, struct kedge_net_request *req, const struct kedge_id *id,
                         const struct kedge_public_key *for_admin)
{
    const struct kedge_waiting_job *w = kedge_waiting_find(h, id);
    if (w && w->coming) {
        show_coming(h, req, w->coming);
    } else if (w) {
        show_waiting(h, req, w, for_admin);
    }
    return w != NULL;
}

/* ---- jobs that have ended ---- */

struct view_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_id job;
    uint32_t from;    /* job.show */
    bool only_models; /* job.model */
    bool for_tenant;  /* one of the job's, by its admin */
    json_t *o;        /* the answer */
    uint32_t model_count;
    struct kedge_hash models[KEDGE_GROUPS_MAX];
    struct kedge_job_logs logs;
    int err;
    struct kedge_diag diag;
};

static void put_members_of_ended(const struct view_work *w, uint32_t count)
{
    json_t *missing = json_array(), *gone = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct kedge_history_log *log = &w->logs.logs[i];
        const bool has_left = says(log->ledger, "job-left", &w->job);
        if (has_left || !says(log->ledger, "job-joined", &w->job)) {
            json_array_append_new(has_left ? gone : missing, json_string(log->tenant.s));
        }
    }
    json_object_set_new(w->o, "tenants_missing", missing);
    json_object_set_new(w->o, "tenants_left", gone);
}

static int put_tested(struct kedge_host *h, struct view_work *w, const struct kedge_ended_job *job)
{
    struct kedge_job_test tested;
    KEDGE_TRY(kedge_job_tested_read(h, &w->job, &tested, &w->diag));
    kedge_admin_put_targets(w->o, job->spec, &tested);
    return KEDGE_OK;
}

/* The same functions as for a job that runs, over the logs of the job's tenants alone. */
static int put_history(struct kedge_host *h, struct view_work *w, const struct kedge_ended_job *job)
{
    uint32_t count = kedge_job_logs_choose(&w->logs, job->spec);
    struct kedge_history_source source = {
        .spec = job->spec, .main = h->main.ledger, .tenants = w->logs.logs, .tenant_count = count};
    const uint32_t groups = kedge_job_spec_groups_most(job->spec);
    struct kedge_history_page page = {.most = kedge_history_page_rounds(groups)};
    page.rows = kedge_history_rows_new(page.most, groups);
    int err = page.rows ? kedge_history_read(&source, w->from, job->round, &page, &w->diag) : KEDGE_E_NOMEM;
    json_t *rounds = json_array(), *models = json_array();
    for (uint32_t i = 0; i < page.count && !err; i++) {
        json_array_append_new(rounds, round_row(job->spec, &page.rows[i]));
    }
    for (uint32_t g = 0; g < w->model_count; g++) {
        json_array_append_new(models, kedgei_json_hex(w->models[g].b, KEDGE_HASH_LEN));
    }
    json_object_set_new(w->o, "history", rounds);
    if (page.next != KEDGE_HISTORY_END) {
        json_object_set_new(w->o, "next_round", json_integer(page.next));
    }
    put_members_of_ended(w, count);
    put_spec(w->o, job->spec);
    if (page.next == KEDGE_HISTORY_END) { /* the last page has the last round */
        kedge_admin_put_budget(w->o, job->spec, page.count > 0 ? page.rows[page.count - 1].spent : 0, NULL);
    }
    json_object_set_new(w->o, "models", models);
    kedge_mem_free(page.rows);
    return err;
}

static void view_run(struct kedge_host *h, struct kedge_work *work)
{
    struct view_work *w = (struct view_work *)work;
    struct kedge_ended_job job;
    char classes[KEDGE_CLASS_NAMES_ROOM] = "";
    w->err = kedge_ended_job_find(h, &w->job, &job, &w->diag);
    if (w->err) {
        return;
    }
    w->o = kedge_admin_ended_summary(&job);
    w->err = kedge_ended_job_models(h, &job, w->models, &w->model_count, &w->diag);
    if (!w->err && job.spec->learns_classes) {
        w->err = kedge_learnt_classes(h, &w->job, classes, &w->diag);
    }
    put_classes(w->o, job.spec, classes);
    if (!w->err && !w->only_models) {
        w->err = put_history(h, w, &job);
        w->err = w->err ? w->err : put_tested(h, w, &job);
    }
    kedge_ended_job_deinit(&job);
    if (w->err == KEDGE_E_NOT_FOUND) { /* the job is there: something that it names is not */
        w->err = KEDGE_E_CORRUPT;
    }
}

static void view_done(struct kedge_host *h, struct kedge_item *item)
{
    struct view_work *w = (struct view_work *)item;
    if (w->err) {
        json_decref(w->o);
        if (w->err == KEDGE_E_NOT_FOUND) {
            answer_not_found(w->req, w->job.s);
        } else {
            kedge_admin_error(w->req, w->err, &w->diag);
        }
    } else if (w->only_models) {
        answer_models(h, w->req, &w->job, 0, w->models, w->model_count, w->o);
    } else {
        if (w->for_tenant) {
            forget_sums(w->o);
        }
        kedge_admin_ok(w->req, w->o);
    }
    kedge_mem_free(w->logs.logs);
    kedge_mem_free(w);
}

static void view_ended(struct kedge_host *h, struct kedge_net_request *req, const struct kedge_id *job,
                       uint32_t from, bool only_models, bool for_tenant)
{
    struct view_work *w = kedge_mem_new(1, sizeof *w);
    struct kedge_job_logs logs;
    if (!w || kedge_job_logs_copy(h, &logs) != KEDGE_OK) {
        kedge_mem_free(w);
        kedge_admin_error(req, KEDGE_E_NOMEM, NULL);
        return;
    }
    *w = (struct view_work){.work = {.item = {view_done}, .run = view_run},
                            .req = req,
                            .job = *job,
                            .from = from,
                            .only_models = only_models,
                            .for_tenant = for_tenant,
                            .logs = logs};
    kedge_host_work(h, &w->work);
}

/* ---- the verbs ---- */

void kedge_admin_job_show_to(struct kedge_host *h, struct kedge_net_request *req, const json_t *args,
                             const struct kedge_public_key *for_admin)
{
    struct kedge_diag d;
    struct kedge_id id;
    uint32_t from;
    const char *name = json_string_value(json_object_get(args, "job"));
    int err = kedge_admin_from_round(args, &from, &d);
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    if (!name || kedge_id_from(kedge_view_str(name), &id) != KEDGE_OK) {
        answer_not_found(req, name);
        return;
    }
    struct kedge_job *job = kedge_host_job_find(h, &id, false);
    if (job) {
        show_running(h, req, job, from, for_admin);
    } else if (!show_in_line(h, req, &id, for_admin)) {
        view_ended(h, req, &id, from, false, for_admin != NULL);
    }
}

void kedge_admin_job_show(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    kedge_admin_job_show_to(h, req, args, NULL);
}

void kedge_admin_job_model(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_id id;
    const char *name = json_string_value(json_object_get(args, "job"));
    if (!name || kedge_id_from(kedge_view_str(name), &id) != KEDGE_OK) {
        answer_not_found(req, name);
        return;
    }
    struct kedge_job *job = kedge_host_job_find(h, &id, false);
    if (job) {
        model_of_running(h, req, job);
    } else if (!show_in_line(h, req, &id, NULL)) {
        view_ended(h, req, &id, 0, true, false);
    }
}
