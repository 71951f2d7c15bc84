/* Blobs: what statements name against what is there. Every file is hashed once, and checked as each kind
 * of file that some statement says it is.
 *
 * First the list of what statements name, then the list of files, both sorted by log and digest; one walk
 * over both finds what is missing and what nobody names. Then every file is hashed once, in parallel, and
 * checked for each role in which it is named. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/audit/facts/erased.h"
#include "chain/store/blob/pruned.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"
#include "round/step.h"

enum { READ_AHEAD_LEAST = 128 * 1024 }; /* bytes of a file that is worth asking for early */
enum role {
    ROLE_OTHER,
    ROLE_MODEL,
    ROLE_BASE,
    ROLE_UPDATE,
    ROLE_PRETRAINING,
    ROLE_DIRECTION,
    ROLE_STATE
}; /* OTHER: read and judged
      elsewhere */

/* That a statement names a blob. */
struct ref {
    uint32_t log; /* whose blobs: tenant's index, tenant_count for the main chain */
    struct kedge_hash digest;
    enum role role;
    uint32_t job;
    const struct kedgei_log *by;
    uint64_t index;
};

struct file {
    uint32_t log;
    struct kedge_hash digest;
    uint64_t size;
    size_t ref_first, ref_count;
    bool is_unopened; /* the spec of a job that the main chain does not know */
};

enum { LENGTHS_MAX = 256 };

struct sweep {
    struct kedgei_audit *a;
    struct ref *refs;
    size_t ref_count, ref_cap;
    struct file *files;
    size_t file_count, file_cap;
    uint32_t log;                 /* whose folder is being visited */
    atomic_uint_fast64_t *sealed; /* per tenant: files that are encrypted and whose key nobody gave */
    uint64_t pruned;
    struct kedge_hash pruned_last;
    uint64_t lengths[LENGTHS_MAX]; /* of what unopened jobs begin with, each once */
    uint32_t length_count;
    bool nomem;
};

static struct kedgei_log *log_at(struct kedgei_audit *a, uint32_t i)
{
    return i < a->tenant_count ? &a->tenants[i] : &a->main;
}

/* ---- what statements name ---- */

static void add_ref(struct sweep *s, uint32_t log, const struct kedge_hash *digest, enum role role,
                    uint32_t job, const struct kedgei_log *by, uint64_t index)
{
    if (!kedgei_scratch_room(&s->a->scratch, &s->refs, &s->ref_cap, s->ref_count, 256, sizeof *s->refs)) {
        s->nomem = true;
        return;
    }
    kedgei_scratch_evict_if_large(&s->a->scratch); /* what names the blob, and the ref */
    s->refs[s->ref_count++] = (struct ref){log, *digest, role, job, by, index};
}

static bool job_index(const struct kedgei_audit *a, const struct kedge_id *id, uint32_t *ret)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        if (kedge_id_eq(&a->jobs[j]->id, id)) {
            *ret = j;
            return true;
        }
    }
    return false;
}

/* So a digest that only a tenant's statement names is never asked for here: where it matters, it is
 * compared with the main chain's. */
static void ref_tenant_fact(struct sweep *s, uint32_t t, const struct kedgei_fact *fact)
{
    const struct kedgei_audit *a = s->a;
    const struct kedgei_log *log = &a->tenants[t];
    const struct kedge_st_update *u = fact->body;
    uint32_t job;
    if (fact->kind == KEDGE_ST_UPDATE && job_index(a, &u->job, &job)) {
        add_ref(s, t, &fact->subject, u->update_kind == KEDGE_TRAIN_PRETRAIN ? ROLE_PRETRAINING : ROLE_UPDATE,
                job, log, fact->index);
    }
    /* All other digests of tenants' statements must equal ones that the main chain or an update names. */
}

static void ref_list(struct sweep *s, const struct kedgei_job *job, const struct kedge_hash *salted,
                     const struct kedge_hash *list, uint32_t j, uint64_t index)
{
    const struct kedgei_log *log = kedgei_job_tenant(s->a, job, salted);
    if (log) {
        add_ref(s, (uint32_t)(log - s->a->tenants), list, ROLE_OTHER, j, &s->a->main, index);
    }
}

static void ref_round(struct sweep *s, uint32_t j, const struct kedgei_round *round)
{
    const struct kedgei_job *job = s->a->jobs[j];
    const struct kedgei_log *main_log = &s->a->main;
    uint32_t m = s->a->tenant_count;
    const struct kedge_st_round_opened *o = round->opened->body;
    for (uint32_t t = 0; t < o->tenant_count; t++) {
        ref_list(s, job, &o->tenants[t].id, &o->tenants[t].list, j, round->opened->index);
    }
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedgei_fact *fact = round->aggregates[g];
        const struct kedge_st_aggregate *agg = fact ? fact->body : NULL;
        for (uint32_t t = 0; agg && t < agg->tenant_count; t++) {
            ref_list(s, job, &agg->tenants[t].id, &agg->tenants[t].list, j, fact->index);
        }
        if (agg) {
            add_ref(s, m, &fact->subject, ROLE_MODEL, j, main_log, fact->index);
        }
    }
    const struct kedge_st_step *step = round->step ? round->step->body : NULL;
    for (uint32_t g = 0; step && g < step->group_count; g++) {
        add_ref(s, m, &step->groups[g].aggregate, ROLE_MODEL, j, main_log, round->step->index);
        add_ref(s, m, &step->groups[g].after, ROLE_MODEL, j, main_log, round->step->index);
        if (!kedge_hash_is_zero(&step->groups[g].direction)) {
            add_ref(s, m, &step->groups[g].direction, ROLE_DIRECTION, j, main_log, round->step->index);
        }
        if (!kedge_hash_is_zero(&step->groups[g].whole)) {
            add_ref(s, m, &step->groups[g].whole, ROLE_DIRECTION, j, main_log, round->step->index);
        }
        if (!kedge_hash_is_zero(&step->groups[g].stepped)) {
            add_ref(s, m, &step->groups[g].stepped, ROLE_MODEL, j, main_log, round->step->index);
        }
        if (!kedge_hash_is_zero(&step->groups[g].trial)) {
            add_ref(s, m, &step->groups[g].trial, ROLE_MODEL, j, main_log, round->step->index);
        }
        if (!kedge_hash_is_zero(&step->groups[g].state_after)) {
            add_ref(s, m, &step->groups[g].state_after, ROLE_STATE, j, main_log, round->step->index);
        }
    }
}

static void collect_refs(struct sweep *s)
{
    struct kedgei_audit *a = s->a;
    for (uint32_t j = 0; j < a->job_count; j++) {
        const struct kedgei_job *job = a->jobs[j];
        const struct kedge_st_job_opened *o = job->opened->body;
        add_ref(s, a->tenant_count, &job->opened->subject, ROLE_OTHER, j, &a->main, job->opened->index);
        add_ref(s, a->tenant_count, &o->initial_model, ROLE_MODEL, j, &a->main, job->opened->index);
        if (!kedge_hash_is_zero(&o->base_model)) {
            add_ref(s, a->tenant_count, &o->base_model, ROLE_BASE, j, &a->main, job->opened->index);
        }
        for (uint32_t i = 0; i < o->first_model_count; i++) {
            add_ref(s, a->tenant_count, &o->first_models[i].model, ROLE_MODEL, j, &a->main,
                    job->opened->index);
        }
        for (size_t r = 0; r < kedgei_opening_count(job); r++) {
            ref_round(s, j, kedgei_opening_at(job, r));
        }
        for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            if (job->releases[g]) {
                add_ref(s, a->tenant_count, &job->releases[g]->subject, ROLE_MODEL, j, &a->main,
                        job->releases[g]->index);
            }
        }
    }
    for (uint64_t i = 0; i < a->main.count; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(&a->main, i);
        if (fact->kind == KEDGE_ST_JOB_ADMITTED || fact->kind == KEDGE_ST_JOB_REFUSED) {
            add_ref(s, a->tenant_count, &fact->subject, ROLE_OTHER, 0, &a->main, i); /* there may be no job */
        }
    }
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        for (uint64_t i = 0; i < a->tenants[t].count; i++) {
            ref_tenant_fact(s, t, kedgei_fact_at(&a->tenants[t], i));
        }
    }
}

static int compare_places(uint32_t log_a, const struct kedge_hash *a, uint32_t log_b,
                          const struct kedge_hash *b)
{
    int c = (log_a > log_b) - (log_a < log_b);
    return c ? c : kedge_hash_cmp(a, b);
}

static int compare_refs(const void *pa, const void *pb)
{
    const struct ref *a = pa, *b = pb;
    int c = compare_places(a->log, &a->digest, b->log, &b->digest);
    c = c ? c : ((int)a->role > (int)b->role) - ((int)a->role < (int)b->role);
    c = c ? c : (a->job > b->job) - (a->job < b->job);
    return c ? c : (a->index > b->index) - (a->index < b->index);
}

/* One ref per blob, role and job: the first statement that names it. A model that is named by twenty
 * statements needs one check for each role and job; the first statement that names it stands for them in
 * findings. */
static int sort_refs(struct sweep *s)
{
    size_t n = 0;
    int err = kedgei_scratch_sort(&s->a->scratch, s->refs, s->ref_count, sizeof *s->refs, compare_refs);
    for (size_t i = 0; i < s->ref_count && !err; i++) {
        const struct ref *last = n ? &s->refs[n - 1] : NULL, *ref = &s->refs[i];
        if (!last || compare_places(last->log, &last->digest, ref->log, &ref->digest) != 0
            || last->role != ref->role || last->job != ref->job) {
            s->refs[n++] = *ref;
        }
        kedgei_scratch_evict_if_large(&s->a->scratch);
    }
    s->ref_count = n;
    return err;
}

/* ---- what is there ---- */

/* The finding names the path inside the record: the auditor's own folders are nobody's business. */
static enum kedge_blob_verdict visit_file(void *arg, const struct kedge_hash *digest, uint64_t size,
                                          const char *path)
{
    struct sweep *s = arg;
    if (!digest) {
        size_t prefix = strlen(s->a->state);
        const char *where =
            strncmp(path, s->a->state, prefix) == 0 && path[prefix] == '/' ? path + prefix + 1 : path;
        kedgei_find(&s->a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_STRAY_FILE, where,
                    "not a blob's name: expected blobs/ab/cdef…, 64 lower-case hex digits");
        return KEDGE_BLOB_KEEP;
    }
    if (!kedgei_scratch_room(&s->a->scratch, &s->files, &s->file_cap, s->file_count, 256, sizeof *s->files)) {
        s->nomem = true;
        return KEDGE_BLOB_STOP;
    }
    s->files[s->file_count++] = (struct file){.log = s->log, .digest = *digest, .size = size};
    return KEDGE_BLOB_KEEP;
}

static int compare_files(const void *pa, const void *pb)
{
    const struct file *a = pa, *b = pb;
    return compare_places(a->log, &a->digest, b->log, &b->digest);
}

static int collect_files(struct sweep *s)
{
    int err = KEDGE_OK;
    for (uint32_t i = 0; i <= s->a->tenant_count && !err; i++) {
        s->log = i;
        err = kedge_blobs_for_each(log_at(s->a, i)->blobs, visit_file, s, &s->a->diag);
        err =
            err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err; /* no folder, no blobs: missing ones are said below */
    }
    return err ? err
               : kedgei_scratch_sort(&s->a->scratch, s->files, s->file_count, sizeof *s->files,
                                     compare_files);
}

/* ---- both ---- */

/* "tenants/T/blobs/ab/cdef…" */
static void name_blob(const struct kedgei_audit *a, uint32_t log, const struct kedge_hash *digest,
                      char out[KEDGE_AUDIT_WHERE_MAX])
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(digest, hex);
    snprintf(out, KEDGE_AUDIT_WHERE_MAX, "%s%s/blobs/%.2s/%s", log < a->tenant_count ? "tenants/" : "",
             log < a->tenant_count ? a->tenants[log].name : "main", hex, hex + 2);
}

static const struct kedgei_fact *erased_by(const struct sweep *s, const struct ref *ref)
{
    return ref->role == ROLE_UPDATE || ref->role == ROLE_PRETRAINING
               ? kedgei_erased(s->a, log_at(s->a, ref->log), &ref->digest)
               : NULL;
}

/* Missing by order (erased), missing on purpose (pruned) and missing from this copy are no faults;
 * everything else that a statement names has to be here. */
static void report_missing(struct sweep *s, const struct ref *ref)
{
    char where[KEDGE_AUDIT_WHERE_MAX];
    if (erased_by(s, ref)) {
        return; /* as it should be */
    }
    if (ref->log == s->a->tenant_count && kedge_pruned_has(kedge_buf_view(&s->a->pruned), &ref->digest)) {
        s->pruned += !kedge_hash_eq(&s->pruned_last, &ref->digest); /* the refs of one blob lie together */
        s->pruned_last = ref->digest;
        return;
    }
    if (KEDGEI_SKIP(s->a, blobs)) {
        return;
    }
    name_blob(s->a, ref->log, &ref->digest, where);
    kedgei_flaw(ref->by, ref->index, KEDGE_AUDIT_BLOB_MISSING);
    kedgei_find(&s->a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_BLOB_MISSING, where,
                "is not there; %s[%llu] needs it", ref->by->name, (unsigned long long)ref->index);
}

static bool has_length(const struct sweep *s, uint64_t length)
{
    bool has = false;
    for (uint32_t i = 0; i < s->length_count && !has; i++) {
        has = s->lengths[i] == length;
    }
    return has;
}

static void take_length(struct sweep *s, int err, struct kedge_layout *layout)
{
    const uint64_t length = err ? 0 : kedge_safetensors_file_len(layout, KEDGE_DTYPE_F32);
    if (!err && s->length_count < LENGTHS_MAX && !has_length(s, length)) {
        s->lengths[s->length_count++] = length;
    }
    if (!err) {
        kedge_layout_deinit(layout);
    }
}

/* The spec of a job that waits for its place, or ended there: it is told of for ever. What it begins with,
 * and a frozen base, are models of known lengths. */
static bool take_unopened(struct sweep *s, const struct file *file)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_layout layout;
    struct kedge_job_spec *spec KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *spec);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    if (!spec || file->log != s->a->tenant_count
        || kedge_blobs_read(s->a->main.blobs, &file->digest, &text, NULL) != KEDGE_OK
        || kedge_job_spec_parse(kedge_buf_view(&text), spec, NULL) != KEDGE_OK
        || kedgei_job_find(s->a, &spec->name)) {
        return false;
    }
    take_length(s, kedge_job_spec_layout(spec, &layout, NULL), &layout);
    if (kedge_job_spec_has_base(spec)) {
        take_length(s, kedge_job_spec_whole_layout(spec, &layout, NULL), &layout);
    }
    return true;
}

static void report_unreferenced(struct sweep *s, const struct file *file)
{
    char where[KEDGE_AUDIT_WHERE_MAX];
    uint64_t length;
    const bool is_first = file->log == s->a->tenant_count && s->length_count > 0
                          && kedge_blobs_find(s->a->main.blobs, &file->digest, &length) == KEDGE_OK
                          && has_length(s, length);
    const bool is_note = s->a->options.live || s->a->skipped || file->is_unopened || is_first;
    name_blob(s->a, file->log, &file->digest, where);
    kedgei_find(&s->a->findings, is_note ? KEDGE_AUDIT_NOTE : KEDGE_AUDIT_ERROR,
                KEDGE_AUDIT_BLOB_UNREFERENCED, where, "no statement names this blob");
}

/* While a coordinator writes, it may be between the order and the file. */
static void report_not_erased(struct sweep *s, const struct file *file)
{
    const struct kedgei_fact *by = file->ref_count > 0 ? erased_by(s, &s->refs[file->ref_first]) : NULL;
    char where[KEDGE_AUDIT_WHERE_MAX];
    if (by) {
        name_blob(s->a, file->log, &file->digest, where);
        kedgei_find(&s->a->findings, s->a->options.live ? KEDGE_AUDIT_NOTE : KEDGE_AUDIT_ERROR,
                    KEDGE_AUDIT_ERASED, where, "is still here; %s[%llu] says that it is erased",
                    log_at(s->a, file->log)->name, (unsigned long long)by->index);
    }
}

/* Both lists are tables that may lie in files, so every step of this walk is counted
 * (kedgei_scratch_evict_if_large). */
static void match(struct sweep *s)
{
    size_t r = 0;
    for (size_t i = 0; i < s->file_count; i++) {
        struct file *file = &s->files[i];
        while (r < s->ref_count
               && compare_places(s->refs[r].log, &s->refs[r].digest, file->log, &file->digest) < 0) {
            report_missing(s, &s->refs[r++]);
            kedgei_scratch_evict_if_large(&s->a->scratch);
        }
        file->ref_first = r;
        while (r < s->ref_count
               && compare_places(s->refs[r].log, &s->refs[r].digest, file->log, &file->digest) == 0) {
            r++;
            kedgei_scratch_evict_if_large(&s->a->scratch);
        }
        file->ref_count = r - file->ref_first;
        file->is_unopened = file->ref_count == 0 && take_unopened(s, file);
        report_not_erased(s, file);
        kedgei_scratch_evict_if_large(&s->a->scratch);
        s->a->counts.blobs++;
        s->a->counts.blob_bytes += file->size;
    }
    while (r < s->ref_count) {
        report_missing(s, &s->refs[r++]);
        kedgei_scratch_evict_if_large(&s->a->scratch);
    }
    for (size_t i = 0; i < s->file_count; i++) {
        if (s->files[i].ref_count == 0) {
            report_unreferenced(s, &s->files[i]);
        }
        kedgei_scratch_evict_if_large(&s->a->scratch);
    }
}

/* Asks the system for the file that a thread will take up next: the storage works while processors hash. */
static void read_ahead(const struct sweep *s, uint64_t i)
{
    char path[KEDGE_PATH_MAX];
    if (i >= s->file_count || s->files[i].size < READ_AHEAD_LEAST
        || kedge_blobs_path(log_at(s->a, s->files[i].log)->blobs, &s->files[i].digest, path) != KEDGE_OK) {
        return;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
        close(fd);
    }
}

/* A whole model, of which the job trains a part. */
static int check_base(const struct kedgei_job *job, const char *path, struct kedge_diag *d)
{
    struct kedge_layout whole;
    KEDGE_TRY(kedge_job_spec_whole_layout(&job->spec, &whole, d));
    int err = kedge_compute_check_model(&whole, path, d);
    kedge_layout_deinit(&whole);
    return err;
}

/* An encrypted file without a key is counted and not judged, unless keys do lie in the record: then a
 * file that none of them opens has a damaged head. The file's role decides what it must be; one that has
 * its digest can still be no model of this job. */
static void check_file(void *arg, uint64_t i, struct kedgei_findings *f)
{
    const struct sweep *s = arg;
    read_ahead(s, i + s->a->threads);
    const struct file *file = &s->files[i];
    const struct kedge_blobs *blobs = log_at(s->a, file->log)->blobs;
    char where[KEDGE_AUDIT_WHERE_MAX], path[KEDGE_PATH_MAX];
    struct kedge_diag d = {.err = KEDGE_OK};
    name_blob(s->a, file->log, &file->digest, where);
    int err = kedge_blobs_verify(blobs, &file->digest, &d);
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (err == KEDGE_E_SEALED && log_at(s->a, file->log)->own_blob_keys == 0) {
        atomic_fetch_add(&s->sealed[file->log], 1);
        return;
    }
    if (err) {
        for (size_t k = 0; k < file->ref_count; k++) {
            const struct ref *ref = &s->refs[file->ref_first + k];
            kedgei_flaw(ref->by, ref->index, KEDGE_AUDIT_BLOB_DIGEST);
        }
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_BLOB_DIGEST, where, "%s",
                    err == KEDGE_E_CORRUPT ? "its content has another SHA-256 than its name"
                                           : kedge_strerror(err));
        return;
    }
    struct kedge_blob_at at;
    err = kedge_blobs_at(blobs, &file->digest, path, &at);
    for (size_t k = 0; k < file->ref_count && !err; k++) {
        const struct ref *ref = &s->refs[file->ref_first + k];
        const struct kedgei_job *job = ref->role != ROLE_OTHER ? s->a->jobs[ref->job] : NULL;
        int bad = KEDGE_OK;
        if (!job || !job->usable) {
            continue;
        }
        if (ref->role == ROLE_MODEL) {
            bad = kedge_compute_check_model(&job->layout, path, &d);
        } else if (ref->role == ROLE_BASE) {
            bad = check_base(job, path, &d);
        } else if (ref->role == ROLE_STATE) {
            bad = kedge_compute_check_state(&job->layout, job->spec.server, path, &d);
        } else if (ref->role == ROLE_UPDATE) {
            bad = kedge_compute_check_update(&job->update_layout, &at,
                                             kedge_job_spec_compact(&job->spec, false), job->limit, &d);
        } else if (ref->role == ROLE_PRETRAINING || ref->role == ROLE_DIRECTION) {
            bool update = ref->role == ROLE_PRETRAINING;
            bad = kedge_compute_check_update(update ? &job->update_layout : &job->layout, &at, NULL,
                                             update ? job->limit : INT32_MAX, &d);
        }
        f->nomem = f->nomem || bad == KEDGE_E_NOMEM;
        if (bad) {
            kedgei_flaw(ref->by, ref->index, KEDGE_AUDIT_BLOB_CONTENT);
            size_t own = strlen(path); /* the text begins with the path, which `where` has already */
            const char *text =
                strncmp(d.text, path, own) == 0 && d.text[own] == ':' ? d.text + own + 2 : d.text;
            kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_BLOB_CONTENT, where, "for %s[%llu]: %s",
                        ref->by->name, (unsigned long long)ref->index, text);
        }
    }
}

static void tell_sealed(const struct sweep *s)
{
    for (uint32_t t = 0; t < s->a->tenant_count; t++) {
        const char *name = s->a->tenants[t].name;
        char where[KEDGE_AUDIT_WHERE_MAX];
        s->a->counts.sealed += s->sealed[t];
        if (s->sealed[t] > 0) {
            snprintf(where, sizeof where, "tenants/%s/blobs", name);
            kedgei_find(&s->a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_SEALED, where,
                        "not checked: the content of %llu updates, which are encrypted under keys that are "
                        "not here (--blob-key %s=FILE); who sent them, when, and what they weigh is",
                        (unsigned long long)s->sealed[t], name);
        }
    }
}

static void tell_pruned(const struct sweep *s)
{
    s->a->counts.pruned = s->pruned;
    if (s->pruned > 0) {
        kedgei_find(
            &s->a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_BLOB_MISSING, "main/pruned.txt",
            "%llu intermediate models of ended jobs are pruned: their digests are signed, and replay makes "
            "them again from the updates",
            (unsigned long long)s->pruned);
    }
}

/* The counters of encrypted files are atomics, one for each tenant, because threads meet them in any
 * order. */
int kedgei_check_blobs(struct kedgei_audit *a)
{
    struct sweep s = {.a = a, .sealed = kedge_mem_new(a->tenant_count + 1, sizeof *s.sealed)};
    KEDGE_TRY_MEM(s.sealed);
    collect_refs(&s);
    int err = sort_refs(&s);
    if (!err) {
        err = collect_files(&s);
    }
    err = s.nomem ? kedgei_scratch_error(&a->scratch, &a->diag) : err;
    if (!err) {
        match(&s);
        err = kedgei_parallel(a, "blobs", s.file_count, check_file, &s);
        tell_sealed(&s);
        tell_pruned(&s);
    }
    kedge_mem_free(s.sealed);
    kedgei_scratch_free(&a->scratch, s.refs);
    kedgei_scratch_free(&a->scratch, s.files);
    return err;
}
