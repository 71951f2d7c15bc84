#include "sim/protocol/protocol.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "job/keys.h"
#include "round/beginning.h"
#include "round/close/params.h"
#include "sim/protocol/impl.h"

enum {
    STREAM = 2, /* of the seed: kedge-sim-check draws from stream 0, kedge sim from 1 */
    DELAY_MS = 40,
    DISK_MS = 10,
    ARRIVED_S = 15, /* sites are enrolled and tenants have joined by then */
};

/* ---- what the world asks ---- */

static void name_site(void *arg, uint32_t site, struct kedge_id *ret)
{
    const struct kedgei_protocol *p = arg;
    kedgei_names_site(&p->l->names, site, ret);
}

static void name_tenant(void *arg, uint32_t tenant, struct kedge_id *ret)
{
    const struct kedgei_protocol *p = arg;
    kedgei_names_tenant(&p->l->names, tenant, ret);
}

static uint64_t ns_of(double seconds)
{
    return seconds < 1e9 ? (uint64_t)(seconds * (double)SIM_SECOND) : (uint64_t)1000000000 * SIM_SECOND;
}

/* The link's part is the transfers'. */
static uint64_t work_ns(void *arg, uint32_t site, const struct kedge_site_task *task)
{
    struct kedgei_protocol *p = arg;
    const struct kedge_learn_device *d = &p->spec->devices[p->l->sites[site].device];
    const struct kedgei_learn_site *s = &p->l->sites[site];
    double samples = task->kind == KEDGE_SITE_EVALUATE   ? s->test_count
                     : task->kind == KEDGE_SITE_PRETRAIN ? (double)p->job.pretrain_steps * p->job.batch
                                                         : (double)s->train_count * p->job.local_epochs;
    if (task->kind == KEDGE_SITE_TRAIN) {
        p->l->line.joules += kedgei_learn_joules(p->l, site);
    }
    return 1 + ns_of(samples / d->samples_per_s);
}

/* Evaluations of a round's models take their time but do not count as traffic: sites make them whatever the
 * strategy is, and the loop of rounds does not count them either. Models that are tried do count. */
static uint64_t transfer_ns(void *arg, uint32_t site, enum sim_transfer what)
{
    struct kedgei_protocol *p = arg;
    const struct kedge_learn_device *d = &p->spec->devices[p->l->sites[site].device];
    const bool up = what == SIM_TRANSFER_UP;
    const uint64_t whole = p->l->shared * 4, sends = up ? p->next_of[site].sends : 0;
    kedgei_learn_tell_bytes(p->l, what == SIM_TRANSFER_DOWN, up);
    p->l->line.bytes_up -= sends > 0 ? whole - sends : 0;
    return ns_of((double)(sends > 0 ? sends : whole) / d->bytes_per_s);
}

static uint64_t weigh(void *arg, const struct kedge_digest *update)
{
    const struct kedgei_update *u = kedgei_protocol_update(arg, update);
    return u ? u->samples : 1;
}

static int verify(void *arg, const struct kedge_digest *update)
{
    struct kedgei_protocol *p = arg;
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_at at;
    if (!kedgei_files_has(&p->files, update)) {
        return KEDGE_E_BLOB_MISSING;
    }
    kedgei_protocol_at(p, update, path, &at);
    const struct kedgei_update *u = kedgei_protocol_update(p, update);
    bool pretrain = u && u->pretrain;
    return kedge_compute_check_update(pretrain ? &p->layout : &p->update_layout, &at,
                                      kedge_job_spec_compact(&p->job, pretrain), p->limit, p->d);
}

/* ---- the world ---- */

static struct sim *make_world(struct kedgei_protocol *p, const struct sim_payload *payload)
{
    struct sim *w = sim_blank(p->spec->job.seed, STREAM, false);
    struct sim_config *g = &w->config;
    struct sim_job *j = &w->jobs[0];
    uint32_t tenants[KEDGE_SPEC_TENANTS_MAX];
    for (uint32_t i = 0; i < p->job.tenant_count; i++) {
        tenants[i] = i;
    }
    w->payload = payload;
    g->tenants = p->spec->job.tenant_count;
    g->sites = p->sites;
    g->jobs = g->slots = 1;
    g->delay_ms = DELAY_MS;
    g->disk_ms = DISK_MS;
    g->train_ms = 1;
    g->limit_ns = UINT64_MAX / 2;
    g->chaos_ns = p->spec->faults ? g->limit_ns : ARRIVED_S * SIM_SECOND; /* until trouble says until when */
    kedge_close_params(&p->job, tenants, &j->params);
    j->share_max = p->job.tenant_share_max;
    sim_allocate(w);
    j->initial = p->initial;
    memcpy(j->begin, p->begin, sizeof j->begin);
    w->steps_max = UINT64_MAX;
    sim_script_common(w);
    for (uint32_t i = 0; i < p->sites; i++) {
        w->devices[i].tenant = p->l->names.tenant[i];
    }
    sim_seat_tenants(w);
    return w;
}

/* A broken rule of the protocol is an error of the program and named as one; a job that did not complete is
 * the spec's, with the reason that the coordinator gave. */
static int judge(struct kedgei_protocol *p)
{
    const struct sim *w = p->w;
    if (p->err || w->stopped) {
        return p->err;
    }
    if (w->failed) {
        return kedge_diag_set(p->d, KEDGE_E_STATE, "through: \"protocol\": a rule is broken: %s", w->why);
    }
    if (w->jobs[0].state != KEDGE_JOB_COMPLETED) {
        char why[200];
        (void)snprintf(why, sizeof why, "%.190s",
                       p->d && p->d->text[0] ? p->d->text
                       : w->jobs[0].reason   ? kedge_strerror(w->jobs[0].reason)
                                             : "its quorum cannot come any more");
        return kedge_diag_set(p->d, KEDGE_E_STATE, "the job is %s behind round %u: %s",
                              kedge_job_state_name(w->jobs[0].state), p->last.r.round, why);
    }
    return KEDGE_OK;
}

static int run_world(struct kedgei_protocol *p)
{
    const struct sim_payload payload = {.arg = p,
                                        .site_id = name_site,
                                        .tenant_id = name_tenant,
                                        .work_ns = work_ns,
                                        .transfer_ns = transfer_ns,
                                        .begin = kedgei_protocol_begin,
                                        .end = kedgei_protocol_end,
                                        .has_shifted = kedgei_protocol_has_shifted,
                                        .trial = kedgei_protocol_trial,
                                        .weight = weigh,
                                        .verify = verify,
                                        .nearest = kedgei_protocol_nearest,
                                        .close = kedgei_protocol_close,
                                        .opened = kedgei_protocol_opened,
                                        .closed = kedgei_protocol_closed};
    p->w = make_world(p, &payload);
    (void)sim_run(p->w);
    int err = judge(p);
    sim_free(p->w);
    return err;
}

/* ---- around it ---- */

/* The models that groups begin with. */
static int make_models(struct kedgei_protocol *p)
{
    p->at = (struct kedge_round_state){.round = KEDGE_ROUND_NONE, .groups = kedge_job_spec_models(&p->job)};
    for (uint32_t g = 0; g < p->at.groups; g++) {
        struct kedgei_file file;
        p->begin[g] = p->initial;
        if (g == 0 || kedge_job_spec_has_model_per_group_at_start(&p->job)) {
            KEDGE_TRY(kedgei_file_begin(&p->files, 0, &file, p->d));
            KEDGE_TRY(kedgei_file_end(&file, kedge_compute_beginning(&p->job, g, file.sink, p->d),
                                      &p->begin[g], p->d));
        }
        p->initial = p->begin[0];
        p->at.group[g].model = kedgei_protocol_hash(&p->begin[g]);
    }
    return KEDGE_OK;
}

static int open_record(struct kedgei_protocol *p)
{
    char path[KEDGE_PATH_MAX];
    p->record = -1;
    if (!p->host->scratch) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedge_path_join(path, p->host->scratch, "job.json"));
    KEDGE_TRY(kedge_file_write(path, kedge_buf_view(&p->job_text), 0600, p->d));
    KEDGE_TRY(kedge_path_join(path, p->host->scratch, "record.jsonl"));
    p->record = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return p->record < 0 ? kedge_diag_set(p->d, KEDGE_E_IO, "%s: it cannot be written", path) : KEDGE_OK;
}

static int make_tables(struct kedgei_protocol *p)
{
    uint32_t n = p->sites;
    p->works = kedge_mem_new((size_t)n * 2, sizeof *p->works);
    p->queue = kedge_mem_new((size_t)n * 2, sizeof *p->queue);
    p->last.assigned = kedge_mem_new(n, sizeof *p->last.assigned);
    p->next.assigned = kedge_mem_new(n, sizeof *p->next.assigned);
    p->last.inputs = kedge_mem_new(n, sizeof *p->last.inputs);
    p->next.inputs = kedge_mem_new(n, sizeof *p->next.inputs);
    p->last.weights = kedge_mem_new(n, sizeof *p->last.weights);
    p->next.weights = kedge_mem_new(n, sizeof *p->next.weights);
    const bool goes_near = kedge_job_spec_grouped_by(&p->job) == KEDGE_GROUPED_BY_TASK;
    p->next_of = kedge_mem_new(n, sizeof *p->next_of);
    p->trained = goes_near ? kedge_mem_new(n, sizeof *p->trained) : NULL;
    const bool tries = kedge_job_spec_tries(&p->job);
    p->found = tries ? kedge_mem_new(n, sizeof *p->found) : NULL;
    p->l->asks_own = tries && p->spec->planted == 0;
    bool ok = p->works && p->queue && p->last.assigned && p->next.assigned && p->last.inputs && p->next.inputs
              && p->last.weights && p->next.weights && p->next_of && (!goes_near || p->trained)
              && (!tries || p->found);
    return ok ? KEDGE_OK : kedge_diag_set(p->d, KEDGE_E_NOMEM, "no memory for %u sites", n);
}

static void deinit(struct kedgei_protocol *p)
{
    kedge_layout_deinit(&p->layout);
    kedge_layout_deinit(&p->update_layout);
    kedgei_protocol_nexts_free(p);
    kedge_mem_free(p->trained);
    kedge_mem_free(p->found);
    kedge_buf_deinit(&p->job_text);
    kedge_mem_free(p->works);
    kedge_mem_free(p->queue);
    kedge_mem_free(p->updates);
    sim_index_deinit(&p->index);
    kedge_mem_free(p->last.assigned);
    kedge_mem_free(p->next.assigned);
    kedge_mem_free(p->last.inputs);
    kedge_mem_free(p->next.inputs);
    kedge_mem_free(p->last.weights);
    kedge_mem_free(p->next.weights);
    kedge_mem_free(p->former);
    kedgei_learn_free(p->l);
    if (p->record >= 0) {
        (void)close(p->record);
    }
}

/* Resuming means computing again: the state is only the number of rounds that were told, for the protocol's
 * own state is spread over coordinator, devices and disks. */
static int init(struct kedgei_protocol *p)
{
    const struct kedge_learn_host *host = p->host;
    p->record = -1;
    if (host->exchange && host->exchange->size > 1) {
        return kedge_diag_set(p->d, KEDGE_E_ARG,
                              "through: \"protocol\" runs in one process; --threads shares its work");
    }
    if (host->resume && host->resume_len != 8) {
        return kedge_diag_set(p->d, KEDGE_E_CORRUPT, "the state of another kind of run");
    }
    p->told = host->resume ? (uint32_t)kedge_load_be64(host->resume) : 0;
    KEDGE_TRY(kedgei_learn_new(p->spec, host, p->d, &p->l));
    p->sites = p->l->names.sites;
    p->l->owner = p;
    kedgei_learn_release(p->l, 0);
    int err = kedgei_protocol_job(p);
    return err ? err : make_tables(p);
}

/* The caller closes the files, also after an error. */
static int run_in_files(struct kedgei_protocol *p)
{
    KEDGE_TRY(kedgei_files_open(p->host->scratch, &p->files, p->d));
    KEDGE_TRY(make_models(p));
    KEDGE_TRY(open_record(p));
    return run_world(p);
}

static int run(struct kedgei_protocol *p)
{
    int err = run_in_files(p);
    kedgei_files_close(&p->files);
    return err;
}

/* ret_job: the job is printed there; else dir NULL: runs it; else *ret_sites: how many there are. */
static int run_or_export(const struct kedge_learn_spec *spec, const struct kedge_learn_host *host,
                         const char *dir, struct kedge_buf *ret_job, uint32_t *ret_sites,
                         struct kedge_diag *reterr)
{
    struct kedge_diag own = {.text = ""};
    struct kedgei_protocol *p = kedge_mem_new(1, sizeof *p);
    if (!p) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a simulation");
    }
    p->spec = spec;
    p->host = host;
    p->d = reterr ? reterr : &own;
    /* Who the sites are matters where the data say how many there are, and for the name of the root. */
    bool is_known = !kedge_learn_spec_is_natural(spec) && !spec->job.rule->needs_root;
    p->record = -1;
    int err = kedgei_protocol_refuse(spec, p->d);
    if (!err && ret_job && is_known) {
        p->sites = spec->sites;
        err = kedgei_protocol_job(p);
    } else if (!err) {
        err = init(p);
    }
    if (!err && ret_job) {
        kedge_buf_put(ret_job, p->job_text.ptr, p->job_text.len);
        err = ret_job->err;
    } else if (!err) {
        err = dir ? kedgei_protocol_put_files(p, dir) : run(p);
    }
    if (!err && ret_sites) {
        *ret_sites = p->sites;
    }
    deinit(p);
    kedge_mem_free(p);
    return err;
}

int kedge_protocol_run(const struct kedge_learn_spec *spec, const struct kedge_learn_host *host,
                       struct kedge_diag *reterr)
{
    switch (spec->through) {
    case KEDGE_LEARN_THROUGH_ROUNDS:
        if (kedge_job_spec_tries(&spec->job)) { /* sites judge trials, which only the close of jobs makes */
            return run_or_export(spec, host, NULL, NULL, NULL, reterr);
        }
        break;
    case KEDGE_LEARN_THROUGH_PROTOCOL:
        return run_or_export(spec, host, NULL, NULL, NULL, reterr);
    }
    return kedge_learn_run(spec, host, reterr);
}

int kedge_protocol_export(const struct kedge_learn_spec *spec, const char *dir, uint32_t *ret_sites,
                          struct kedge_diag *reterr)
{
    static const struct kedge_learn_host host = {.threads = 1};
    return run_or_export(spec, &host, dir, NULL, ret_sites, reterr);
}

int kedge_protocol_job(const struct kedge_learn_spec *spec, struct kedge_buf *ret, struct kedge_diag *reterr)
{
    static const struct kedge_learn_host host = {.threads = 1};
    return run_or_export(spec, &host, NULL, ret, NULL, reterr);
}
