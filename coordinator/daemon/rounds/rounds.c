/* What the main chain records of a job: opened, round opened, round closed, job closed. A batch is
 * made once, signed when it is handed over, and kept until it is durable, so that asking again
 * cannot make a second truth.
 *
 * Each function here may be called again by the core after a failure. So each begins by looking
 * whether its batch is there already, and what is done beside the batch (history, the state after
 * the close) is done once. */
#include "coordinator/daemon/rounds/rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/statement/input_list.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/rounds/first_models.h"
#include "coordinator/daemon/rounds/main_batch.h"
#include "strategy/server.h"

/* The batch could not even be made: it is thrown away, for nothing of it was signed, and the core
 * asks again. The answer goes through the queue, because this runs while the core's effects are
 * being executed. */
static void main_failed(struct kedge_host *h, struct kedge_job *job, int err, const struct kedge_diag *d)
{
    kedge_log(KEDGE_LOG_WARN, "main chain", "job=%s: %s", job->spec.name.s,
              d->text[0] ? d->text : kedge_strerror(err));
    kedge_host_job_fault(job, job->classes_fault[0] ? job->classes_fault : "a statement for the main chain",
                         "%s", d->text);
    kedge_main_batch_free(job->batch);
    job->batch = NULL;
    struct kedge_coord_event ev = {.type = KEDGE_EV_MAIN_APPENDED, .job = job->slot, .err = err};
    kedge_host_post_event(h, &ev);
}

/* job-opened fixes what the job is: the digest of its spec, the models that it begins with, and its
 * tenants by salted ids, which say nothing to those who do not know the salts. The references keep
 * the spec and the models from being swept as long as the chain stands. */
void kedge_host_job_opened(struct kedge_host *h, struct kedge_job *job)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_statement *st = NULL;
    int err = KEDGE_OK;
    if (!job->batch) {
        st = kedge_mem_new(1, sizeof *st);
        err = st ? kedge_main_batch_new(&job->batch) : KEDGE_E_NOMEM;
    }
    if (st && !err) {
        struct kedge_st_job_opened *o = &st->u.job_opened;
        st->kind = KEDGE_ST_JOB_OPENED;
        st->subject = job->spec_digest;
        o->job = job->spec.name;
        o->parameters = job->layout.values_count;
        o->initial_model = job->initial_model;
        o->time_ms = kedge_os_unix_ms();
        o->tenant_count = job->params.tenant_count;
        for (uint32_t i = 0; i < o->tenant_count; i++) {
            o->tenants[i] = h->tenants[job->params.tenants[i]].salted;
        }
        if (kedge_job_spec_has_base(&job->spec)) {
            o->base_model = job->spec.initial_model;
        }
        kedge_first_models_state(job, o);
        kedge_statement_sort(st);
        err = kedge_main_batch_statement(job->batch, st, &d, "job-opened/%s", job->spec.name.s);
    }
    kedge_mem_free(st);
    if (err) {
        main_failed(h, job, err, &d);
    } else {
        kedge_main_batch_submit(h, job);
    }
}

/* ---- round opened ---- */

/* Who could have been selected is part of the record: an auditor draws the selection again from
 * seed, round and the list of candidates. The list of each tenant is a blob of its own in that
 * tenant's store, so no tenant learns who the others' sites are. */
struct opened_row {
    uint32_t tenant, site;
    struct kedge_input_row row;
    struct kedge_round_cost cost; /* of the site, where the round is planned */
};
struct opened_work {
    struct kedge_work work;
    struct kedge_job *job;
    uint32_t round, draw;
    enum kedge_task_kind kind;
    uint64_t time_ms;
    struct opened_row *rows;
    size_t count;
    struct kedge_main_batch *batch;
    int err;
    struct kedge_diag diag;
};

/* The list of one tenant's candidates as a blob; *ret has counts and digest. */
static int put_candidates(struct kedge_host *h, const struct opened_work *w, uint32_t tenant,
                          struct kedge_st_round_tenant *ret, struct kedge_diag *d)
{
    struct kedge_input_row *rows KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(w->count, sizeof *rows);
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    size_t n = 0;
    kedge_buf_init(&text, KEDGE_INPUT_LIST_MAX);
    *ret = (struct kedge_st_round_tenant){.id = h->tenants[tenant].salted};
    for (size_t i = 0; rows && i < w->count; i++) {
        if (w->rows[i].tenant == tenant) {
            rows[n++] = w->rows[i].row;
            ret->selected += w->rows[i].row.use == KEDGE_USE_SELECTED;
        }
    }
    ret->candidates = (uint32_t)n;
    KEDGE_TRY(rows ? KEDGE_OK : KEDGE_E_NOMEM);
    if (n > 0) {
        kedge_input_rows_sort(rows, n);
        KEDGE_TRY(kedge_input_list_encode(rows, n, &text));
        struct kedge_view part = kedge_buf_view(&text);
        KEDGE_TRY(kedge_blobs_put(h->tenants[tenant].log.blobs, &part, 1, &ret->list, d));
    }
    return KEDGE_OK;
}

/* The part of its data that each selected site trains on, by what they have said that it takes them. Of
 * another draw of the round the plan is another one: it is of other sites. */
static int plan(struct opened_work *w)
{
    struct kedge_round_cost *costs KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(w->count + 1, sizeof *costs);
    uint32_t *percent KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(w->count + 1, sizeof *percent);
    uint32_t n = 0, at = 0;
    KEDGE_TRY_MEM(costs && percent);
    for (size_t i = 0; i < w->count; i++) {
        if (w->rows[i].row.use == KEDGE_USE_SELECTED) {
            costs[n++] = w->rows[i].cost;
        }
    }
    KEDGE_TRY(kedge_round_plan(&w->job->spec, w->round, costs, n, percent));
    for (size_t i = 0; i < w->count; i++) {
        w->rows[i].row.percent = w->rows[i].row.use == KEDGE_USE_SELECTED ? percent[at++] : 0;
    }
    return KEDGE_OK;
}

/* A round that is drawn again has several of these statements. Their keys end with the number of
 * the draw, and the last one counts; the key of the first has no number. */
static int build_opened(struct kedge_host *h, struct opened_work *w, struct kedge_statement *st)
{
    struct kedge_job *job = w->job;
    struct kedge_st_round_opened *o = &st->u.round_opened;
    st->kind = KEDGE_ST_ROUND_OPENED;
    st->subject = job->spec_digest;
    o->job = job->spec.name;
    o->round = w->round;
    o->draw = w->draw;
    o->round_kind = w->kind == KEDGE_TASK_PRETRAIN ? KEDGE_TRAIN_PRETRAIN : KEDGE_TRAIN_TRAIN;
    o->seed = job->spec.seed;
    o->time_ms = w->time_ms;
    o->main_size = kedge_ledger_size(h->main.ledger);
    int err = kedge_ledger_root(h->main.ledger, o->main_size, &o->main_root);
    if (!err && w->kind == KEDGE_TASK_TRAIN && kedge_job_spec_plans(&job->spec, w->round)) {
        err = plan(w);
    }
    for (uint32_t i = 0; i < job->params.tenant_count && !err; i++) {
        struct kedge_st_round_tenant *row = &o->tenants[o->tenant_count];
        err = put_candidates(h, w, job->params.tenants[i], row, &w->diag);
        if (!err && row->candidates > 0) {
            o->tenant_count++;
        }
    }
    if (!err) {
        kedge_statement_sort(st);
        err = kedge_main_batch_new(&w->batch);
    }
    if (err) {
        return err;
    }
    char draw[16] = "";
    if (w->draw > 0) {
        snprintf(draw, sizeof draw, "/%02" PRIu32, w->draw);
    }
    return kedge_main_batch_statement(w->batch, st, &w->diag, "round-opened/%s/%08u%s", job->spec.name.s,
                                      w->round, draw);
}

/* On a worker, since lists of thousands of candidates are sorted, hashed and written. The snapshot
 * was taken on the loop, so what the core does meanwhile does not matter. */
static void opened_run(struct kedge_host *h, struct kedge_work *work)
{
    struct opened_work *w = (struct opened_work *)work;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    w->err = st ? build_opened(h, w, st) : KEDGE_E_NOMEM;
    kedge_mem_free(st);
}

static void opened_done(struct kedge_host *h, struct kedge_item *item)
{
    struct opened_work *w = (struct opened_work *)item;
    w->job->batch = w->batch;
    for (size_t i = 0; i < w->count; i++) { /* no site has a task before this opening is durable */
        w->job->sites[w->rows[i].site].percent = w->rows[i].row.percent;
    }
    if (w->err) {
        main_failed(h, w->job, w->err, &w->diag);
    } else {
        kedge_main_batch_submit(h, w->job);
    }
    kedge_mem_free(w->rows);
    kedge_mem_free(w);
}

/* The site as the core and the daemon know it. */
static struct kedge_round_site site_now(const struct kedge_job *job, const struct kedge_coord_row *row,
                                        uint32_t site)
{
    struct kedge_round_site ret = job->sites[site];
    ret.group = row->group;
    ret.since = row->group_round;
    ret.task = row->selected ? row->task_round : KEDGE_ROUND_NONE;
    ret.samples = 0;
    ret.is_candidate = row->candidate;
    ret.is_away = row->selected && row->away;
    ret.is_unstated = row->group != KEDGE_COORD_NONE && !row->group_durable;
    ret.is_undecided = false;
    return ret;
}

/* What the round begins with, by its digest: that of the record's fold up to its round-opened. It
 * stands in the log only. If a restart or an audit comes to other groups or another state, the
 * first round in which the digests differ is where to look. */
static void put_state(const struct kedge_host *h, const struct kedge_job *job,
                      char ret[KEDGE_HASH_HEX_LEN + 1])
{
    struct kedge_hash digest = {{0}};
    uint32_t n, count = 0;
    const uint32_t *order = kedge_coord_site_order(h->coord, &n);
    struct kedge_round_site *sites = kedge_mem_new((size_t)n + 1, sizeof *sites);
    for (uint32_t i = 0; sites && i < n; i++) {
        const struct kedge_coord_row *row = kedge_coord_row(h->coord, job->slot, order[i]);
        if (row) {
            sites[count++] = site_now(job, row, order[i]);
        }
    }
    int err = sites ? kedge_round_state_digest(&job->at, sites, count, &digest) : KEDGE_E_NOMEM;
    kedge_hash_hex(&digest, ret);
    ret[0] = err ? '\0' : ret[0]; /* it is told, nothing rests on it */
    kedge_mem_free(sites);
}

/* Once for each round-opened, however often it is tried. */
static void note_opened(const struct kedge_host *h, struct kedge_job *job, struct opened_work *w,
                        uint32_t selected)
{
    char state[KEDGE_HASH_HEX_LEN + 1];
    struct kedge_round_history *history = kedge_job_history(job, w->round, true);
    history->selected = selected;
    put_state(h, job, state);
    if (w->draw > 0) {
        kedge_log(KEDGE_LOG_INFO, "round drawn again",
                  "job=%s round=%" PRIu32 " draw=%" PRIu32 " selected=%" PRIu32 " state=%s", job->spec.name.s,
                  w->round, w->draw, selected, state);
        w->time_ms = kedge_os_unix_ms();
        return;
    }
    if (!history->opened_ms) {
        kedge_log(KEDGE_LOG_INFO, "round opened",
                  "job=%s round=%" PRIu32 " kind=%s selected=%" PRIu32 " state=%s", job->spec.name.s,
                  w->round, w->kind == KEDGE_TASK_PRETRAIN ? "pretrain" : "train", selected, state);
    }
    history->opened_ms = w->time_ms = history->opened_ms ? history->opened_ms : kedge_os_unix_ms();
}

/* The rows are taken in the order of sites, which is the order in which candidates are numbered for
 * the draw (kedge_coord_select); the auditor numbers them in the same order. */
void kedge_host_round_opened(struct kedge_host *h, struct kedge_job *job, const struct kedge_coord_effect *fx)
{
    uint32_t round = fx->round;
    uint32_t n;
    const uint32_t *order = kedge_coord_site_order(h->coord, &n);
    struct opened_work *w = NULL;
    if (job->batch) {
        kedge_main_batch_submit(h, job);
        return;
    }
    w = kedge_mem_new(1, sizeof *w);
    struct opened_row *rows = kedge_mem_new(n, sizeof *rows);
    KEDGE_ASSERT(w && rows);
    *w = (struct opened_work){.work = {.item = {opened_done}, .run = opened_run},
                              .job = job,
                              .round = round,
                              .draw = fx->draw,
                              .kind = fx->kind,
                              .rows = rows};
    uint32_t selected = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct kedge_coord_row *row = kedge_coord_row(h->coord, job->slot, order[i]);
        if (row && (row->candidate || row->selected)) {
            struct opened_row *r = &rows[w->count++];
            bool goes_on = row->selected && row->task_round != round;
            r->tenant = h->sites[order[i]].tenant;
            r->site = order[i];
            r->cost = job->sites[order[i]].cost;
            r->row = (struct kedge_input_row){.site = h->sites[order[i]].id,
                                              .use = !row->selected ? KEDGE_USE_CANDIDATE
                                                     : !goes_on     ? KEDGE_USE_SELECTED
                                                     : row->away    ? KEDGE_USE_AWAY
                                                                    : KEDGE_USE_WORKING,
                                              .group = row->group == KEDGE_COORD_NONE ? 0 : row->group,
                                              .weight = row->draw,
                                              .round = goes_on ? row->task_round : 0};
            selected += row->selected;
        }
    }
    note_opened(h, job, w, selected);
    job->round = round;
    kedge_host_work_own(h, &w->work);
}

/* ---- round closed ---- */

static int add_step(struct kedge_job *job, uint64_t time_ms, struct kedge_statement *st, struct kedge_diag *d)
{
    const struct kedge_round_result *r = job->result;
    struct kedge_st_step *step = &st->u.step;
    memset(st, 0, sizeof *st);
    st->kind = KEDGE_ST_STEP;
    kedge_close_state_step(r, &job->spec, step);
    step->time_ms = time_ms;
    if (kedge_job_spec_asks_classes(&job->spec, r->round)) {
        memcpy(step->classes, job->classes, sizeof step->classes);
    }
    return kedge_main_batch_statement(job->batch, st, d, "step/%s/%08u", job->spec.name.s, r->round);
}

static int add_aggregate(struct kedge_job *job, const struct kedge_st_aggregate *a,
                         struct kedge_statement *st, struct kedge_diag *d)
{
    memset(st, 0, sizeof *st);
    st->kind = KEDGE_ST_AGGREGATE;
    st->subject = job->result->aggregate[a->group];
    st->u.aggregate = *a;
    kedge_statement_sort(st);
    return kedge_main_batch_statement(job->batch, st, d, "aggregate/%s/%08u/%02u", job->spec.name.s, a->round,
                                      a->group);
}

/* The tenants' checkpoints come first in the batch: the aggregates after them count entries of
 * these ledgers, and a reader of the chain finds the ledgers' sizes fixed before what was made of
 * them. */
static int add_checkpoints(struct kedge_job *job)
{
    int err = KEDGE_OK;
    for (uint32_t i = 0; i < job->params.tenant_count && !err; i++) {
        err = kedge_main_batch_checkpoint(job->batch, job->params.tenants[i]);
    }
    return err;
}

/* What the round's statements say of it. Made anew with each batch that is made: the row is that of the
 * statements. */
static struct kedge_round_history *note_history(struct kedge_job *job)
{
    const struct kedge_round_result *r = job->result;
    struct kedge_round_history *row = kedge_job_history(job, r->round, true);
    row->accepted = row->refused = 0;
    row->charged = r->charged;
    row->spent = r->spent;
    for (uint32_t g = 0; g < row->room; g++) {
        row->metrics[g].members = 0;
    }
    for (uint32_t i = 0; i < r->aggregate_count; i++) {
        kedge_history_add_aggregate(row, &r->aggregates[i]);
    }
    row->closed_ms = kedge_os_unix_ms();
    return row;
}

static int build_round_closed(struct kedge_job *job, struct kedge_diag *d)
{
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    KEDGE_TRY(st ? kedge_main_batch_new(&job->batch) : KEDGE_E_NOMEM);
    KEDGE_TRY(add_checkpoints(job));
    for (uint32_t i = 0; i < job->result->aggregate_count; i++) {
        KEDGE_TRY(add_aggregate(job, &job->result->aggregates[i], st, d));
    }
    return add_step(job, note_history(job)->closed_ms, st, d);
}

/* The aggregates were computed by workers; here they only become statements. The state of the job
 * moves on at the first try and not when the batch is durable: the core opens no other round before
 * that, and a crash in between reads the state from the record again. */
void kedge_host_round_closed(struct kedge_host *h, struct kedge_job *job, uint32_t round)
{
    struct kedge_diag d = {.text = ""};
    int err = KEDGE_OK;
    KEDGE_ASSERT(job->result && job->result->round == round);
    if (job->classes_fault[0]) { /* coord.h: the job ends */
        err = kedge_diag_set(&d, KEDGE_E_ARG, "%s", job->classes_fault);
    } else if (!job->batch) {
        err = build_round_closed(job, &d);
    }
    if (err) {
        main_failed(h, job, err, &d);
        return;
    }
    if (job->at.round != round) { /* once, however often the statements are tried */
        kedge_close_end(job->result, &job->at);
        memset(job->evaluations, 0, KEDGE_SITES_MAX * sizeof *job->evaluations);
    }
    kedge_main_batch_submit(h, job);
}

/* ---- round tested ---- */

void kedge_host_round_tested(struct kedge_host *h, struct kedge_job *job, uint32_t round)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_host_build_tested(job, round, &d);
    if (err) {
        main_failed(h, job, err, &d);
    } else {
        kedge_main_batch_submit(h, job);
    }
}

/* ---- job closed ---- */

/* One release for each group, in the order of groups and without a gap: those who ask for a job's
 * models stop at the first number that is missing (web/tenant_models.c). */
static int add_releases(struct kedge_job *job, const struct kedge_coord_job_view *view,
                        struct kedge_statement *st, struct kedge_diag *d)
{
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < view->model_count && !err; g++) {
        memset(st, 0, sizeof *st);
        st->kind = KEDGE_ST_RELEASE;
        memcpy(st->subject.b, view->models[g].b, KEDGE_HASH_LEN);
        st->u.release = (struct kedge_st_release){.job = job->spec.name, .round = view->round, .group = g};
        snprintf(st->u.release.file, sizeof st->u.release.file, "%s-g%u.safetensors", job->spec.name.s, g);
        err = kedge_main_batch_statement(job->batch, st, d, "release/%s/%02u", job->spec.name.s, g);
    }
    return err;
}

/* Every tenant of the job may read it: what failed, but nothing of whose. */
static void put_reason(const struct kedge_job *job, int err, char ret[KEDGE_ST_REASON_MAX + 1])
{
    snprintf(ret, KEDGE_ST_REASON_MAX + 1, "%s%s%s", job->fault_of ? job->fault_of : "",
             job->fault_of ? ": " : "", kedge_strerror(err));
}

/* The last statement of a job. Releases are in the same batch, so a job is never recorded as
 * completed without its models, or the other way round. */
static int build_job_closed(struct kedge_host *h, struct kedge_job *job, enum kedge_job_state outcome,
                            int reason, struct kedge_diag *d)
{
    struct kedge_coord_job_view view;
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    bool known = kedge_coord_job(h->coord, job->slot, &view);
    if (reason == KEDGE_E_SITES) {
        kedge_host_troubles_tell(h, job);
    }
    KEDGE_ASSERT(known);
    KEDGE_TRY(st ? kedge_main_batch_new(&job->batch) : KEDGE_E_NOMEM);
    KEDGE_TRY(add_checkpoints(job));
    if (outcome == KEDGE_JOB_COMPLETED) {
        KEDGE_TRY(add_releases(job, &view, st, d));
    }
    memset(st, 0, sizeof *st);
    st->kind = KEDGE_ST_JOB_CLOSED;
    st->subject = job->spec_digest;
    st->u.job_closed =
        (struct kedge_st_job_closed){.job = job->spec.name,
                                     .time_ms = kedge_os_unix_ms(),
                                     .rounds = view.closed_round,
                                     .outcome = outcome == KEDGE_JOB_COMPLETED ? KEDGE_OUTCOME_COMPLETED
                                                : outcome == KEDGE_JOB_FAILED  ? KEDGE_OUTCOME_FAILED
                                                                               : KEDGE_OUTCOME_CANCELLED};
    if (outcome == KEDGE_JOB_FAILED) {
        put_reason(job, reason, st->u.job_closed.reason);
    } else if (outcome == KEDGE_JOB_COMPLETED && kedge_job_is_at_target(job)) {
        snprintf(st->u.job_closed.reason, sizeof st->u.job_closed.reason, "its target is reached");
    }
    job->batch->closes_job = true;
    return kedge_main_batch_statement(job->batch, st, d, "job-closed/%s", job->spec.name.s);
}

/* A batch of the job may still be waiting, such as the close of a round that could not be stored.
 * It is given up first: at most one batch of a job is on its way. */
void kedge_host_job_closed(struct kedge_host *h, struct kedge_job *job, enum kedge_job_state outcome,
                           int reason)
{
    struct kedge_diag d = {.text = ""};
    if (job->batch && !job->batch->closes_job) { /* of a round that the job gives up */
        kedge_main_batch_give_up(h, job);
    }
    int err = job->batch ? KEDGE_OK : build_job_closed(h, job, outcome, reason, &d);
    if (err) {
        main_failed(h, job, err, &d);
    } else {
        kedge_main_batch_submit(h, job);
    }
}
