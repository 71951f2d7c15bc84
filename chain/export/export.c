/* The order of an export: verify, open, choose the releases, write each kind of file, the manifest last. */
#include "chain/export/export.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/audit/base/shown.h"
#include "chain/export/oms.h"
#include "chain/export/work.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { LINEAGE_MAX = 1 << 30, MANIFEST_MAX = KEDGEI_EX_MANIFEST_MAX };

/* ---- the verification ---- */

/* The exporter's signature says that the record was verified, so a record with an error gives no export
 * at all. The first error is told, for one may have caused others. */
static int verify(struct kedgei_ex_work *w, const char *dir)
{
    KEDGE_TRY(kedge_audit_verify(dir, w->o->trust, w->o->seen, w->o->seen_count, &w->o->audit, &w->report,
                                 w->reterr));
    if (w->report.verdict == KEDGE_AUDIT_YES) {
        return KEDGE_OK;
    }
    const struct kedge_audit_finding *first = NULL;
    for (uint32_t i = w->report.finding_count; i > 0; i--) {
        if (w->report.findings[i - 1].severity == KEDGE_AUDIT_ERROR) {
            first = &w->report.findings[i - 1];
        }
    }
    (void)kedge_diag_set(w->reterr, KEDGE_E_VERIFY, "%s: the record does not verify: %s%s%s", dir,
                         first ? first->where : "", first ? ": " : "", first ? first->text : "");
    (void)kedge_diag_hint(w->reterr, "kedge audit verify %s --trust FILE names every finding", dir);
    return KEDGE_E_VERIFY;
}

/* A finding that names nothing of a tenant which is not exported. Of a tenant's copy the trust file names
 * those whose ledgers are elsewhere. */
static bool may_tell(const struct kedgei_ex_work *w, const struct kedge_audit_finding *f)
{
    bool names_others = w->o->audit.tenant_count > 0 && strcmp(f->where, "tenants") == 0;
    return (w->r.all_permitted && !names_others) || f->code == KEDGE_AUDIT_JOB_UNFINISHED;
}

static void put_finding(json_t *list, const char *code, const char *where, const char *text)
{
    json_array_append_new(
        list, json_pack("{s:s,s:s,s:s,s:s}", "severity", "note", "code", code, "where", where, "text", text));
}

static int claims_json(const struct kedgei_ex_work *w, json_t **ret_shown, json_t **ret_open)
{
    struct kedge_audit_claims told;
    KEDGE_TRY(kedgei_ex_claims(w, &told));
    *ret_shown = kedge_audit_claims_json(&told, true);
    *ret_open = kedge_audit_claims_json(&told, false);
    kedge_audit_claims_deinit(&told);
    return KEDGE_OK;
}

static int put_report(struct kedgei_ex_work *w)
{
    const struct kedge_audit_counts *n = &w->report.counts;
    json_t *findings = json_array();
    for (uint32_t i = 0; i < w->report.finding_count; i++) {
        const struct kedge_audit_finding *f = &w->report.findings[i];
        if (may_tell(w, f)) {
            put_finding(findings, kedge_audit_code_name(f->code), f->where, f->text);
        }
    }
    if (w->o->audit.tenant_count > 0) {
        put_finding(findings, kedge_audit_code_name(KEDGE_AUDIT_NOT_CHECKED), "tenants",
                    "not checked: this is a copy; ledgers of other tenants are not in it");
    }
    json_t *counts = json_pack("{s:I,s:I,s:I}", "jobs", (json_int_t)n->jobs, "rounds", (json_int_t)n->rounds,
                               "checkpoints", (json_int_t)n->checkpoints);
    if (w->r.all_permitted) { /* they tell how large other tenants are */
        json_t *all = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "entries", (json_int_t)n->entries, "signatures",
                                (json_int_t)n->signatures, "sites", (json_int_t)n->sites, "updates_used",
                                (json_int_t)n->updates_used, "updates_refused",
                                (json_int_t)n->updates_refused, "blobs", (json_int_t)n->blobs);
        json_object_update(counts, all);
        json_decref(all);
    }
    json_t *shown = NULL, *open = NULL;
    if (claims_json(w, &shown, &open) != KEDGE_OK) {
        json_decref(findings);
        json_decref(counts);
        return kedge_diag_set(w->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    char main_note[96];
    snprintf(main_note, sizeof main_note, "checkpoints/main-%llu.note", (unsigned long long)w->r.main.size);
    return kedgei_ex_put_json(w,
                              json_pack("{s:i,s:s,s:o,s:o,s:s,s:s,s:o,s:I,s:o}", "schema_version", 1,
                                        "verdict", "yes", "shown", shown, "not_shown", open, "deployment",
                                        w->r.deployment, "main_checkpoint", main_note, "counts", counts,
                                        "notes", (json_int_t)w->report.note_count, "findings", findings),
                              "verify-report.json");
}

/* ---- which releases ---- */

/* The released model with that content: notes where its file is. False when there is none. */
static bool choose(struct kedgei_ex_work *w, const struct kedge_hash *digest, const char *file)
{
    bool found = false;
    for (uint32_t j = 0; j < w->r.job_count; j++) {
        struct kedgei_ex_job *job = w->r.jobs[j];
        for (size_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            if (job->releases[g] != KEDGEI_EX_NONE && !job->files[g]
                && kedgei_ex_read(&w->r.main, job->releases[g], w->a, NULL) == KEDGE_OK
                && kedge_hash_eq(&w->a->subject, digest)) {
                job->files[g] = file;
                found = true;
            }
        }
    }
    return found;
}

/* Releases without a file leave the export. */
static void drop_others(struct kedgei_ex_work *w)
{
    for (uint32_t j = 0; j < w->r.job_count; j++) {
        struct kedgei_ex_job *job = w->r.jobs[j];
        for (size_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            if (job->releases[g] != KEDGEI_EX_NONE && !job->files[g]) {
                job->releases[g] = KEDGEI_EX_NONE;
                job->release_count--;
            }
        }
    }
}

/* The caller may name models' files: then only their releases are exported, and each file must be one.
 * Without a release there is nothing to prove the origin of, so an export without one is refused rather than
 * empty. */
static int choose_releases(struct kedgei_ex_work *w)
{
    size_t releases = 0;
    for (size_t i = 0; i < w->o->model_count; i++) {
        struct kedge_oms_list list;
        KEDGE_TRY(kedge_oms_read(w->o->models[i], NULL, &list, w->reterr));
        bool found = list.count == 1 && choose(w, &list.files[0].digest, w->o->models[i]);
        kedge_oms_list_deinit(&list);
        if (!found) {
            return kedge_diag_set(w->reterr, KEDGE_E_VERIFY, "%s: no release of this record has this content",
                                  w->o->models[i]);
        }
    }
    if (w->o->model_count > 0) {
        drop_others(w);
    }
    for (uint32_t j = 0; j < w->r.job_count; j++) {
        releases += w->r.jobs[j]->release_count;
    }
    if (releases == 0) {
        (void)kedge_diag_set(w->reterr, KEDGE_E_NOT_FOUND, "the record has no released model to export");
        (void)kedge_diag_hint(w->reterr,
                              "a job releases its models when it is completed: see kedge job list");
        return KEDGE_E_NOT_FOUND;
    }
    return KEDGE_OK;
}

/* ---- models ---- */

/* The file that the caller named, else the folder of released models, else the main chain's blobs. Which
 * it was does not matter, for the copy is compared with the digest of the release. */
static int find_model(const struct kedgei_ex_work *w, const struct kedgei_ex_job *job, size_t g,
                      char out[KEDGE_PATH_MAX])
{
    char path[KEDGE_PATH_MAX];
    if (job->files[g]) {
        return kedge_path_real(job->files[g], out, w->reterr);
    }
    if (w->r.models[0] && kedge_path_join(path, w->r.models, w->a->u.release.file) == KEDGE_OK
        && kedge_file_exists(path)) {
        return kedge_path_real(path, out, w->reterr);
    }
    return kedge_blobs_path(w->r.main.log.blobs, &w->a->subject, out);
}

/* models/NAME/FILE and its signature; the folder is the model. */
static int put_model(struct kedgei_ex_work *w, const struct kedgei_ex_job *job, size_t g)
{
    char from[KEDGE_PATH_MAX], folder[KEDGE_ID_MAX + 16], path[KEDGE_PATH_MAX];
    struct kedge_buf bundle KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&bundle, KEDGE_OMS_BUNDLE_MAX);
    KEDGE_TRY(kedgei_ex_read(&w->r.main, job->releases[g], w->a, w->reterr));
    const char *file = w->a->u.release.file;
    snprintf(folder, sizeof folder, "%s-g%zu", job->id.s, g);
    snprintf(path, sizeof path, "models/%s/%s", folder, file);
    int err = find_model(w, job, g, from);
    if (!err) {
        err = kedgei_ex_copy(&w->f, from, &w->a->subject, path, w->reterr);
    }
    if (err) {
        return kedge_diag_wrap(w->reterr, err, "model %s", file);
    }
    struct kedge_oms_file one = {.name = w->a->u.release.file, .digest = w->a->subject};
    struct kedge_oms_list list = {&one, 1, 1};
    err = kedge_oms_sign(folder, &list, NULL, &w->o->model_key, &bundle);
    if (err) {
        return kedge_diag_set(w->reterr, err, "model %s: cannot be signed: %s", file, kedge_strerror(err));
    }
    w->sum.models++;
    return kedgei_ex_put(&w->f, kedge_buf_view(&bundle), w->reterr, "models/%s/model.sig", folder);
}

static int put_models(struct kedgei_ex_work *w)
{
    int err = KEDGE_OK;
    for (uint32_t j = 0; j < w->r.job_count; j++) {
        for (size_t g = 0; g < KEDGE_GROUPS_MAX && !err; g++) {
            if (w->r.jobs[j]->releases[g] != KEDGEI_EX_NONE) {
                err = put_model(w, w->r.jobs[j], g);
            }
        }
    }
    return err;
}

/* ---- manifest ---- */

static json_t *parameters(const struct kedgei_ex_work *w)
{
    json_t *tenants = json_array();
    for (uint32_t i = 0; i < w->r.tenant_count; i++) {
        if (w->r.tenants[i].permitted) {
            json_array_append_new(tenants, json_string(w->r.tenants[i].name));
        }
    }
    json_t *o = json_pack("{s:o,s:s,s:I}", "tenants", tenants, "time", w->time.s, "main_size",
                          (json_int_t)w->r.main.size);
    return o;
}

/* The manifest names every other file by digest, and its envelope names the manifest by digest, so one
 * signature covers the folder. It comes after everything else; only the envelope itself is written later.
 */
static int put_manifest(struct kedgei_ex_work *w)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, MANIFEST_MAX);
    kedgei_ex_sort(&w->f);
    json_t *files = json_array();
    for (size_t i = 0; i < w->f.count; i++) {
        json_array_append_new(files, json_pack("{s:s,s:I,s:o}", "path", w->f.files[i].path, "size",
                                               (json_int_t)w->f.files[i].size, "sha256",
                                               kedgei_ex_hex(&w->f.files[i].digest)));
    }
    KEDGE_TRY(kedgei_ex_put_json(w,
                                 json_pack("{s:i,s:s,s:s,s:o,s:o}", "schema_version", 1, "tool", w->o->tool,
                                           "deployment", w->r.deployment, "parameters", parameters(w),
                                           "files", files),
                                 "manifest.json"));
    json_t *subject = json_pack("[{s:s,s:o}]", "name", "manifest.json", "digest",
                                kedgei_ex_digest(&w->f.files[w->f.count - 1].digest));
    json_t *predicate = json_pack("{s:s,s:s}", "deployment", w->r.deployment, "time", w->time.s);
    int err = kedgei_ex_envelope(kedgei_ex_statement(subject, "https://kedge.dev/export/v1", predicate),
                                 &w->o->key, &text);
    kedge_buf_put_u8(&text, '\n');
    if (err || text.err) {
        return kedge_diag_set(w->reterr, err ? err : text.err, "manifest.intoto.json: cannot be signed");
    }
    w->sum.attestations++;
    return kedgei_ex_put(&w->f, kedge_buf_view(&text), w->reterr, "manifest.intoto.json");
}

/* ---- all ---- */

/* Some steps collect what later ones need: statements and provenance fill the lineage and add up what
 * sites and tenants gave; the tenants' statements give the lines of keys.jsonl; checkpoints and anchors
 * give the notes among which time stamps find what they are about; the page shows all of it. The folder
 * appears under its name in the last step, so a failure before it leaves nothing. */
static int write_all(struct kedgei_ex_work *w)
{
    KEDGE_TRY(put_models(w));
    KEDGE_TRY(kedgei_ex_statements(w));
    int err = kedgei_ex_provenance(w);
    if (!err) {
        err = kedgei_ex_put(&w->f, kedge_buf_view(&w->lineage), w->reterr, "lineage.intoto.jsonl");
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(kedgei_ex_keys(w));
    KEDGE_TRY(kedgei_ex_checkpoints(w));
    KEDGE_TRY(kedgei_ex_anchors(w));
    KEDGE_TRY(kedgei_ex_timestamps(w));
    KEDGE_TRY(kedgei_ex_result(w));
    KEDGE_TRY(put_report(w));
    KEDGE_TRY(kedgei_ex_bom(w));
    KEDGE_TRY(kedgei_ex_page(w));
    err = put_manifest(w);
    return err ? err : kedgei_ex_folder_commit(&w->f, w->reterr);
}

static void free_work(struct kedgei_ex_work *w)
{
    for (size_t i = 0; i < w->note_count; i++) {
        kedge_buf_deinit(&w->notes[i].bytes);
    }
    kedge_mem_free(w->notes);
    kedge_buf_deinit(&w->key_lines);
    kedge_mem_free(w->a);
    kedge_mem_free(w->b);
    kedge_buf_deinit(&w->lineage);
    kedge_audit_report_deinit(&w->report);
    kedgei_ex_folder_deinit(&w->f);
    kedgei_ex_record_deinit(&w->r);
    kedge_mem_free(w);
}

static int export(struct kedgei_ex_work *w, const char *dir, const char *out)
{
    if (!w->a || !w->b) {
        return kedge_diag_set(w->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    KEDGE_TRY(kedgei_ex_folder_open(out, &w->f, w->reterr));
    KEDGE_TRY(verify(w, dir));
    KEDGE_TRY(kedgei_ex_record_open(dir, w->o, &w->report, &w->r, w->reterr));
    KEDGE_TRY(choose_releases(w));
    return write_all(w);
}

int kedge_export(const char *dir, const char *out, const struct kedge_export_options *options,
                 struct kedge_export_summary *ret, struct kedge_diag *reterr)
{
    struct kedge_diag own = {.text = ""};
    struct kedgei_ex_work *w = kedge_mem_new(1, sizeof *w);
    if (!w) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    w->o = options;
    w->reterr = reterr ? reterr : &own;
    w->a = kedge_mem_new(1, sizeof *w->a);
    w->b = kedge_mem_new(1, sizeof *w->b);
    kedge_buf_init(&w->lineage, LINEAGE_MAX);
    kedge_buf_init(&w->key_lines, MANIFEST_MAX);
    w->time = kedgei_ex_time(options->time_s);
    int err = export(w, dir, out);
    if (!err) {
        w->sum.files = w->f.count;
        w->sum.bytes = w->f.bytes;
        w->sum.time_s = options->time_s;
        *ret = w->sum;
    }
    free_work(w);
    return err;
}
