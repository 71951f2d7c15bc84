/* The main chain is walked once, up to the checkpoint that the verification ended with, and of each statement
 * only its place is kept, by job and round. The later steps read again what they need (kedgei_ex_read), so an
 * export of a long record takes hardly more memory than one of a short one. Logs are opened for reading:
 * beside a coordinator that goes on writing, or in a copy. */
#include "chain/export/record.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "chain/log/checkpoint.h"
#include "chain/statement/mainbook.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { SHORT_ID = 12 }; /* digits of a salted id that stand for a tenant without a name */

/* ---- reading ---- */

int kedgei_ex_entry(struct kedgei_ex_log *log, uint64_t index, struct kedge_buf *ret,
                    struct kedge_diag *reterr)
{
    int err = kedge_ledger_get(log->log.ledger, index, ret);
    return err ? kedge_diag_set(reterr, err, "%s[%llu]: %s", log->name, (unsigned long long)index,
                                kedge_strerror(err))
               : KEDGE_OK;
}

static int ex_decode(struct kedge_view entry, struct kedge_statement *ret)
{
    struct kedge_signed_statement *parts = kedge_mem_new(1, sizeof *parts);
    KEDGE_TRY_MEM(parts);
    int err = kedge_statement_read(entry, ret, parts, NULL);
    kedge_buf_deinit(&parts->payload);
    kedge_mem_free(parts);
    return err;
}

int kedgei_ex_read(struct kedgei_ex_log *log, uint64_t index, struct kedge_statement *ret,
                   struct kedge_diag *reterr)
{
    struct kedge_buf entry KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedgei_ex_entry(log, index, &entry, reterr));
    int err = ex_decode(kedge_buf_view(&entry), ret);
    return err ? kedge_diag_set(reterr, err, "%s[%llu]: no statement: %s", log->name,
                                (unsigned long long)index, kedge_strerror(err))
               : KEDGE_OK;
}

struct kedgei_ex_log *kedgei_ex_tenant(struct kedgei_ex_record *r, const struct kedge_hash *salted)
{
    for (uint32_t i = 0; i < r->tenant_count; i++) {
        if (kedge_hash_eq(&r->tenants[i].salted, salted)) {
            return &r->tenants[i];
        }
    }
    return NULL;
}

int kedgei_ex_list(struct kedgei_ex_log *tenant, const struct kedge_hash *digest,
                   struct kedge_input_list *ret, struct kedge_diag *reterr)
{
    struct kedge_buf blob KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&blob, KEDGE_INPUT_LIST_MAX);
    int err = kedge_blobs_read(tenant->log.blobs, digest, &blob, reterr);
    return err ? err : kedge_input_list_decode(kedge_buf_view(&blob), ret);
}

/* ---- logs ---- */

static int open_log(struct kedgei_ex_record *r, const struct kedge_id *tenant, bool beside,
                    struct kedgei_ex_log *log, struct kedge_diag *reterr)
{
    enum kedge_state_mode mode = beside ? KEDGE_STATE_READ : KEDGE_STATE_COPY;
    kedge_buf_init(&log->note, KEDGE_NOTE_MAX);
    log->anchor = KEDGEI_EX_NONE;
    KEDGE_TRY(kedge_state_log_open(r->state, tenant, mode, &log->log, reterr));
    log->open = true;
    kedge_state_salted_id(&log->log, &log->salted);
    return KEDGE_OK;
}

static void close_log(struct kedgei_ex_log *log)
{
    if (log->open) {
        kedge_state_log_close(&log->log);
    }
    kedge_buf_deinit(&log->note);
}

/* A tenant that is not to be exported still appears, as rounds counted its updates: by the first digits of
 * its salted id, which those who know the tenant can compute and others cannot turn back into a name. */
static void name_tenant(struct kedgei_ex_log *log, const struct kedge_export_options *options)
{
    log->permitted = options->all_tenants;
    for (size_t i = 0; i < options->tenant_count; i++) {
        log->permitted = log->permitted || kedge_id_eq(&options->tenants[i], &log->log.tenant);
    }
    if (log->permitted) {
        snprintf(log->name, sizeof log->name, "%s", log->log.tenant.s);
    } else {
        kedge_hash_hex(&log->salted, log->name);
        log->name[SHORT_ID] = '\0';
    }
}

static int open_tenants(struct kedgei_ex_record *r, const struct kedge_export_options *options,
                        struct kedge_diag *reterr)
{
    struct kedge_id *ids = NULL;
    size_t count = 0;
    int err = kedge_state_tenants(r->state, &ids, &count, reterr);
    if (!err) {
        r->tenants = kedge_mem_new(count + 1, sizeof *r->tenants);
        err = r->tenants ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    r->all_permitted = true;
    for (size_t i = 0; i < count && !err; i++) {
        struct kedgei_ex_log *log = &r->tenants[r->tenant_count++];
        err = open_log(r, &ids[i], options->audit.beside_coordinator, log, reterr);
        if (!err) {
            name_tenant(log, options);
            r->all_permitted = r->all_permitted && log->permitted;
        }
    }
    for (size_t k = 0; k < options->tenant_count && !err; k++) {
        bool found = false;
        for (size_t i = 0; i < count; i++) {
            found = found || kedge_id_eq(&ids[i], &options->tenants[k]);
        }
        if (!found) {
            err = KEDGE_E_NOT_FOUND;
            (void)kedge_diag_set(reterr, err, "the record has no tenant \"%s\"", options->tenants[k].s);
            (void)kedge_diag_hint(reterr, "kedge ledger list --state %s names its tenants", r->state);
        }
    }
    kedge_mem_free(ids);
    return err;
}

/* ---- the main chain, once from its beginning ---- */

struct scan {
    struct kedgei_ex_record *r;
    struct kedge_statement *st;
    struct kedge_diag *reterr;
};

static struct kedgei_ex_job *find_job(const struct kedgei_ex_record *r, const struct kedge_id *id)
{
    for (uint32_t i = 0; i < r->job_count; i++) {
        if (kedge_id_eq(&r->jobs[i]->id, id)) {
            return r->jobs[i];
        }
    }
    return NULL;
}

static int read_spec(struct scan *s, struct kedgei_ex_job *job)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    int err = kedge_blobs_read(s->r->main.log.blobs, &job->spec_digest, &text, s->reterr);
    return err ? err : kedge_job_spec_parse(kedge_buf_view(&text), &job->spec, s->reterr);
}

static int open_job(struct scan *s, uint64_t index)
{
    struct kedgei_ex_record *r = s->r;
    struct kedgei_ex_job *job = kedge_mem_new(1, sizeof *job);
    struct kedgei_ex_job **jobs =
        job ? kedge_mem_resize(r->jobs, (size_t)r->job_count + 1, sizeof job) : NULL;
    if (!jobs) {
        kedge_mem_free(job);
        return kedge_diag_set(s->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    r->jobs = jobs;
    r->jobs[r->job_count++] = job;
    job->id = s->st->u.job_opened.job;
    job->spec_digest = s->st->subject;
    job->initial_model = s->st->u.job_opened.initial_model;
    job->base_model = s->st->u.job_opened.base_model;
    job->opened = index;
    job->closed = KEDGEI_EX_NONE;
    for (size_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        job->releases[g] = KEDGEI_EX_NONE;
    }
    if (kedgei_ex_job_take(job, s->st) != KEDGE_OK) {
        return kedge_diag_set(s->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    return read_spec(s, job);
}

static int open_round(struct scan *s, struct kedgei_ex_job *job, uint64_t index)
{
    if (s->st->u.round_opened.draw > 0 && job->round_count) { /* in the place of the one before */
        job->rounds[job->round_count - 1].opened = index;
        return KEDGE_OK;
    }
    if (!kedge_mem_grow(&job->rounds, &job->round_cap, job->round_count, 16, sizeof *job->rounds)) {
        return kedge_diag_set(s->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    job->rounds[job->round_count++] = (struct kedgei_ex_round){
        .number = s->st->u.round_opened.round, .opened = index, .step = KEDGEI_EX_NONE};
    return KEDGE_OK;
}

/* A tenant's newest checkpoint in the main chain is the one under which its entries are proved. */
static int take_checkpoint(struct kedgei_ex_record *r, struct kedge_view note, uint64_t index)
{
    struct kedge_note parsed;
    struct kedge_checkpoint checkpoint;
    if (index >= r->main.size || kedge_note_parse(note, &parsed) != KEDGE_OK
        || kedge_checkpoint_parse(parsed.text, &checkpoint) != KEDGE_OK) {
        return KEDGE_OK; /* not proved yet */
    }
    for (uint32_t i = 0; i < r->tenant_count; i++) {
        struct kedgei_ex_log *t = &r->tenants[i];
        if (kedge_view_eq(checkpoint.origin, kedge_view_str(t->log.origin))) {
            kedge_buf_clear(&t->note);
            kedge_buf_put(&t->note, note.ptr, note.len);
            t->size = checkpoint.size;
            t->anchor = index;
            return t->note.err;
        }
    }
    return KEDGE_OK;
}

static int take_rotation(struct scan *s, uint64_t index)
{
    struct kedgei_ex_record *r = s->r;
    uint64_t *more = r->rotation_count < KEDGE_STATEMENT_KEYS_MAX
                         ? kedge_mem_resize(r->rotations, (size_t)r->rotation_count + 1, sizeof *more)
                         : NULL;
    if (!more) {
        return kedge_diag_set(s->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    r->rotations = more;
    r->rotations[r->rotation_count++] = index;
    return KEDGE_OK;
}

/* Of the statements that belong to a job which is open. */
static int take_statement(struct scan *s, uint64_t index)
{
    const struct kedge_statement *st = s->st;
    enum kedge_statement_kind kind = st->kind;
    const struct kedge_id *id = kind == KEDGE_ST_ROUND_OPENED ? &st->u.round_opened.job
                                : kind == KEDGE_ST_AGGREGATE  ? &st->u.aggregate.job
                                : kind == KEDGE_ST_STEP       ? &st->u.step.job
                                : kind == KEDGE_ST_RELEASE    ? &st->u.release.job
                                : kind == KEDGE_ST_JOB_CLOSED ? &st->u.job_closed.job
                                                              : NULL;
    struct kedgei_ex_job *job = id ? find_job(s->r, id) : NULL;
    struct kedgei_ex_round *round = job && job->round_count ? &job->rounds[job->round_count - 1] : NULL;
    if (kind == KEDGE_ST_POLICY && s->r->policy == KEDGEI_EX_NONE) {
        s->r->policy = index;
    } else if (kind == KEDGE_ST_STATEMENT_KEY_ROTATED) {
        return take_rotation(s, index);
    } else if (kind == KEDGE_ST_JOB_OPENED) {
        return open_job(s, index);
    } else if (!job) {
        return KEDGE_OK;
    } else if (kind == KEDGE_ST_ROUND_OPENED) {
        int err = open_round(s, job, index);
        return err ? err : kedgei_ex_job_take(job, st);
    } else if (kind == KEDGE_ST_AGGREGATE && round && round->aggregate_count < KEDGE_GROUPS_MAX) {
        round->aggregates[round->aggregate_count++] = index;
    } else if (kind == KEDGE_ST_STEP && round) {
        round->step = index;
    } else if (kind == KEDGE_ST_RELEASE && st->u.release.tier == 0
               && st->u.release.group < KEDGE_GROUPS_MAX) {
        job->releases[st->u.release.group] = index;
        job->release_count++;
    } else if (kind == KEDGE_ST_JOB_CLOSED) {
        job->closed = index;
    }
    return job ? kedgei_ex_job_take(job, st) : KEDGE_OK;
}

/* What is no entry of a known form is passed over, since the verification has judged it already. */
static int visit(void *arg, uint64_t index, struct kedge_view entry)
{
    struct scan *s = arg;
    struct kedge_main_entry e;
    if (index >= s->r->main.size || kedge_main_entry_decode(entry, &e) != KEDGE_OK) {
        return KEDGE_OK;
    }
    if (e.kind == KEDGE_MAIN_CHECKPOINT) {
        return take_checkpoint(s->r, e.body, index);
    }
    return ex_decode(e.body, s->st) == KEDGE_OK ? take_statement(s, index) : KEDGE_OK;
}

/* The checkpoint as the witnesses cosigned it, when they have: proofs then carry their word. Only when the
 * log's own signature is in it as well: the verification looks at that file only where a policy demands it.
 */
static int take_cosigned(struct kedgei_ex_record *r, const struct kedge_vkey *log, struct kedge_diag *reterr)
{
    struct kedge_checkpoint checkpoint;
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX];
    kedge_buf_init(&bytes, KEDGE_NOTE_MAX);
    int err = kedge_state_path(path, reterr, r->state, "main/cosigned.note");
    if (err || !kedge_file_exists(path)) {
        return err;
    }
    struct kedge_note *notes = kedge_mem_new(2, sizeof *notes);
    if (!notes) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    err = kedge_file_read(path, &bytes, reterr);
    if (!err && kedge_note_parse(kedge_buf_view(&bytes), &notes[0]) == KEDGE_OK
        && kedge_note_parse(kedge_buf_view(&r->main.note), &notes[1]) == KEDGE_OK
        && kedge_view_eq(notes[0].text, notes[1].text)
        && kedge_checkpoint_open(kedge_buf_view(&bytes), kedge_view_str(log->name), log, 1, &checkpoint, NULL)
               == KEDGE_OK) {
        kedge_buf_clear(&r->main.note);
        kedge_buf_put(&r->main.note, bytes.ptr, bytes.len);
        err = r->main.note.err;
    }
    kedge_mem_free(notes);
    return err;
}

/* The checkpoint that the verification ended with: a coordinator that goes on writes entries that nobody has
 * looked at. */
static int take_verified(struct kedgei_ex_record *r, const struct kedge_audit_report *report,
                         struct kedge_diag *reterr)
{
    const struct kedge_audit_log *main = report->logs;
    struct kedge_hash digest;
    int err = main ? kedge_ledger_checkpoint_at(r->main.log.ledger, main->head_size, &r->main.note)
                   : KEDGE_E_NOT_FOUND;
    if (err && err != KEDGE_E_NOT_FOUND) {
        return err;
    }
    kedge_sha256(kedge_buf_view(&r->main.note), &digest);
    if (err || !kedge_hash_eq(&digest, &main->head_note)) {
        (void)kedge_diag_set(reterr, KEDGE_E_VERIFY, "%s: not what was verified a moment ago", r->state);
        (void)kedge_diag_hint(reterr, "export a copy that nobody writes to");
        return KEDGE_E_VERIFY;
    }
    r->main.size = main->head_size;
    return KEDGE_OK;
}

static int read_main(struct kedgei_ex_record *r, const struct kedge_export_options *options,
                     const struct kedge_audit_report *report, struct kedge_diag *reterr)
{
    struct scan s = {r, kedge_mem_new(1, sizeof *s.st), reterr};
    r->policy = KEDGEI_EX_NONE;
    if (!s.st) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    int err = take_verified(r, report, reterr);
    if (!err) {
        err = take_cosigned(r, &options->trust->main_log, reterr);
    }
    if (!err) {
        err = kedge_ledger_for_each(r->main.log.ledger, 0, visit, &s);
    }
    kedge_mem_free(s.st);
    if (err && reterr && !reterr->text[0]) {
        (void)kedge_diag_set(reterr, err, "main chain: %s", kedge_strerror(err));
    }
    return err;
}

/* ---- open ---- */

/* Either a coordinator's state folder itself, which has config.json, or a folder with one as "state" and the
 * released models beside it, as an archive unpacks. */
static int find_folders(struct kedgei_ex_record *r, const char *dir, struct kedge_diag *reterr)
{
    char config[KEDGE_PATH_MAX];
    struct stat st;
    if (kedge_path_join(config, dir, "config.json") != KEDGE_OK
        || kedge_path_join(r->models, dir, "models") != KEDGE_OK
        || kedge_path_join(r->state, dir, "state") != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: path too long", dir);
    }
    if (kedge_file_exists(config)) {
        snprintf(r->state, sizeof r->state, "%s", dir);
        r->models[0] = '\0';
    } else if (stat(r->models, &st) != 0 || !S_ISDIR(st.st_mode)) {
        r->models[0] = '\0';
    }
    return KEDGE_OK;
}

int kedgei_ex_record_open(const char *dir, const struct kedge_export_options *options,
                          const struct kedge_audit_report *report, struct kedgei_ex_record *r,
                          struct kedge_diag *reterr)
{
    KEDGE_TRY(find_folders(r, dir, reterr));
    KEDGE_TRY(kedge_state_deployment(r->state, r->deployment, reterr));
    KEDGE_TRY(open_log(r, NULL, options->audit.beside_coordinator, &r->main, reterr));
    snprintf(r->main.name, sizeof r->main.name, "main");
    r->main.permitted = true;
    KEDGE_TRY(open_tenants(r, options, reterr));
    return read_main(r, options, report, reterr);
}

void kedgei_ex_record_deinit(struct kedgei_ex_record *r)
{
    for (uint32_t i = 0; i < r->job_count; i++) {
        kedgei_ex_job_deinit(r->jobs[i]);
        kedge_mem_free(r->jobs[i]);
    }
    for (uint32_t i = 0; i < r->tenant_count; i++) {
        close_log(&r->tenants[i]);
    }
    close_log(&r->main);
    kedge_mem_free(r->jobs);
    kedge_mem_free(r->tenants);
    kedge_mem_free(r->rotations);
}
