/* The order of an audit: read, understand, check each log by itself, then the logs against each other,
 * then files.
 *
 * Order matters twice. Each step may rely on what those before it established: signatures are checked
 * under keys that the order of the ledgers gave, rounds are judged over lists whose tables were read,
 * replay runs over inputs that verify has vouched for. And what is wrong early is told first, so that a
 * reader sees the cause before its consequences. */
#include <string.h>
#include <unistd.h>

#include "chain/audit/explain/explain.h"
#include "chain/audit/explain/explain_impl.h"
#include "chain/audit/facts/erased.h"
#include "chain/audit/files/prune.h"
#include "chain/audit/record.h"
#include "chain/audit/rounds/erased_decisions.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { THREADS_MAX = 64 };

/* What is asked beyond verify. */
struct question {
    bool replay;
    const struct kedge_hash *model; /* to explain, or NULL */
    json_t **ret_tree;
    const struct kedge_audit_prune *prune; /* or NULL */
};

static uint32_t thread_count(const struct kedge_audit_options *options)
{
    long n = options->threads ? (long)options->threads : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (uint32_t)n;
}

static void free_audit(struct kedgei_audit *a)
{
    kedgei_rebuild_end(a);
    for (uint32_t j = 0; j < a->job_count; j++) {
        kedge_layout_deinit(&a->jobs[j]->layout);
        kedge_layout_deinit(&a->jobs[j]->update_layout);
        kedgei_scratch_free(&a->scratch, a->jobs[j]->rounds);
        kedgei_scratch_free(&a->scratch, a->jobs[j]->replaced);
        kedge_mem_free(a->jobs[j]);
    }
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        kedgei_log_deinit(a, &a->tenants[t]);
    }
    kedgei_log_deinit(a, &a->main);
    kedge_mem_free(a->skipped);
    kedge_mem_free(a->jobs);
    kedgei_admissions_deinit(a);
    kedge_mem_free(a->tenants);
    kedge_mem_free(a->outside);
    kedge_mem_free(a->evidence);
    kedge_mem_free(a->refusals);
    kedgei_scratch_free(&a->scratch, a->updates);
    kedgei_scratch_free(&a->scratch, a->trained);
    kedgei_scratch_deinit(&a->scratch);
    kedgei_findings_deinit(&a->findings);
    kedge_mem_free(a);
}

/* Everything that needs all logs. Only errors of the machine end the run; whatever is wrong with the
 * record is a finding, and the next step goes on around it. */
static int check_all(struct kedgei_audit *a, const char *const *seen_paths, size_t seen_count, bool replay)
{
    KEDGE_TRY(kedgei_logs_read(a));
    KEDGE_TRY(kedgei_check_keys(a));
    KEDGE_TRY(kedgei_check_signatures(a));
    KEDGE_TRY(kedgei_check_seen(a, seen_paths, seen_count));
    KEDGE_TRY(kedgei_check_finality(a));
    KEDGE_TRY(kedgei_check_anchors(a));
    KEDGE_TRY(kedgei_check_main(a));
    KEDGE_TRY(kedgei_check_contacts(a));
    KEDGE_TRY(kedgei_check_labels(a));
    KEDGE_TRY(kedgei_check_tenants(a));
    kedgei_check_erased(a);
    KEDGE_TRY(kedgei_check_quotas(a));
    KEDGE_TRY(kedgei_check_inputs(a));
    KEDGE_TRY(kedgei_check_budgets(a));
    KEDGE_TRY(kedgei_check_plans(a));
    kedgei_check_tests(a);
    KEDGE_TRY(kedgei_check_refusals(a));
    KEDGE_TRY(kedgei_check_models(a));
    KEDGE_TRY(kedgei_pruned_load(a));
    KEDGE_TRY(kedgei_check_blobs(a));
    KEDGE_TRY(kedgei_tell_erased(a));
    if (replay) {
        KEDGE_TRY(kedgei_replay(a));
    }
    kedgei_tell_skipped(a);
    return !a->options.each || a->findings.nomem ? KEDGE_OK : kedgei_tell_entries(a);
}

/* All that is asked of a record whose logs could be read. */
static int answer(struct kedgei_audit *a, const char *const *seen_paths, size_t seen_count,
                  const struct question *q)
{
    KEDGE_TRY(check_all(a, seen_paths, seen_count, q->replay));
    if (q->model) {
        KEDGE_TRY(kedgei_explain(a, q->model, q->ret_tree));
    }
    return q->prune ? kedgei_intermediate(a, q->prune->job, q->prune->keep_every, q->prune->ret) : KEDGE_OK;
}

/* Ownership of the lists moves to the report only when nothing can fail any more. A verdict is never
 * given after memory ran out: an audit that could not look everywhere must not say yes. */
static int fill_report(struct kedgei_audit *a, bool readable, bool replayed, struct kedge_audit_report *ret)
{
    if (a->findings.nomem) {
        return KEDGE_E_NOMEM;
    }
    struct kedge_audit_report r = {.replayed = replayed,
                                   .partial = a->options.tenant_count > 0,
                                   .fast = a->options.fast,
                                   .counts = a->counts,
                                   .results = a->results,
                                   .anchor_count = a->outside_count,
                                   .anchors = a->outside,
                                   .evidence_count = a->evidence_count,
                                   .evidence = a->evidence,
                                   .refusal_count = a->refusals ? (uint32_t)a->options.refusal_count : 0,
                                   .refusals = a->refusals,
                                   .error_count = a->findings.errors,
                                   .note_count = a->findings.notes,
                                   .finding_count = a->findings.count,
                                   .findings = a->findings.items};
    r.verdict = r.error_count ? KEDGE_AUDIT_NO : a->trust ? KEDGE_AUDIT_YES : KEDGE_AUDIT_SELF_CONSISTENT;
    memcpy(r.deployment, a->deployment, sizeof r.deployment);
    KEDGE_TRY(readable ? kedgei_describe_logs(a, &r) : KEDGE_OK);
    a->findings.items = NULL;
    a->outside = NULL;
    a->evidence = NULL;
    a->refusals = NULL;
    *ret = r;
    return KEDGE_OK;
}

/* Whether signatures may be checked by tables is a setting of the process (crypto/sign.h), so it is put
 * back to what it was, whatever comes of the audit. */
static int run_audit(const char *dir, const struct kedge_trust *trust, const char *const *seen_paths,
                     size_t seen_count, const struct kedge_audit_options *options, struct question q,
                     struct kedge_audit_report *ret, struct kedge_diag *reterr)
{
    struct kedgei_audit *a = kedge_mem_new(1, sizeof *a);
    bool readable = true;
    if (!a) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    if (options) {
        a->options = *options;
    }
    if (a->options.tenant_count > 0) {
        a->skipped = kedge_mem_new(1, sizeof *a->skipped);
        if (!a->skipped) {
            kedge_mem_free(a);
            return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
        }
    }
    kedgei_scratch_init(&a->scratch, a->options.table_bytes);
    a->trust = trust;
    a->threads = thread_count(&a->options);
    bool tables = kedge_verify_allow_tables(a->options.fast);
    int err = kedgei_record_load(a, dir, &readable);
    if (!err && readable) { /* else what cannot be read is named, and the rest would only follow from it */
        err = answer(a, seen_paths, seen_count, &q);
    }
    if (!err) {
        err = fill_report(a, readable, q.replay, ret);
    }
    if (err) {
        if (!a->diag.text[0]) {
            (void)kedge_diag_set(&a->diag, err, "%s: %s", dir, kedge_strerror(err));
        }
        if (reterr) {
            *reterr = a->diag;
            reterr->err = err;
        }
    }
    (void)kedge_verify_allow_tables(tables);
    free_audit(a);
    return err;
}

int kedge_audit_verify(const char *dir, const struct kedge_trust *trust, const char *const *seen_paths,
                       size_t seen_count, const struct kedge_audit_options *options,
                       struct kedge_audit_report *ret, struct kedge_diag *reterr)
{
    return run_audit(dir, trust, seen_paths, seen_count, options, (struct question){.replay = false}, ret,
                     reterr);
}

int kedge_audit_replay(const char *dir, const struct kedge_trust *trust, const char *const *seen_paths,
                       size_t seen_count, const struct kedge_audit_options *options,
                       struct kedge_audit_report *ret, struct kedge_diag *reterr)
{
    return run_audit(dir, trust, seen_paths, seen_count, options, (struct question){.replay = true}, ret,
                     reterr);
}

int kedge_audit_prunable(const char *dir, const struct kedge_trust *trust,
                         const struct kedge_audit_options *options, const struct kedge_audit_prune *prune,
                         struct kedge_audit_report *ret, struct kedge_diag *reterr)
{
    return run_audit(dir, trust, NULL, 0, options, (struct question){.replay = true, .prune = prune}, ret,
                     reterr);
}

int kedge_audit_explain(const char *dir, const struct kedge_trust *trust, const char *const *seen_paths,
                        size_t seen_count, const struct kedge_audit_options *options,
                        const struct kedge_hash *model, struct kedge_audit_report *ret, json_t **ret_tree,
                        struct kedge_diag *reterr)
{
    json_t *tree = NULL;
    int err = run_audit(dir, trust, seen_paths, seen_count, options,
                        (struct question){.model = model, .ret_tree = &tree}, ret, reterr);
    if (err) {
        json_decref(tree);
        return err;
    }
    *ret_tree = tree;
    return KEDGE_OK;
}
