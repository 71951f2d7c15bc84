/* Whether those signed who must have: statements, in parallel. Stored checkpoints, tenants' checkpoints in
 * the main chain and checkpoints seen elsewhere are notes of log keys. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"
#include "common/base/os/file.h"
#include "common/base/try.h"

/* ---- signatures ---- */

struct signing {
    struct kedgei_audit *audit;
    const struct kedgei_log *log;
};

/* The envelope is decoded anew and the signature checked over exactly the bytes of its payload, not over
 * what the parser understood of it. */
static void verify_statement(const struct kedgei_log *log, const struct kedgei_fact *fact,
                             struct kedgei_findings *f)
{
    struct kedge_view envelope = kedgei_entry_at(log, fact->index);
    struct kedge_dsse_entry entry;
    struct kedge_buf payload;
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    int err = kedge_dsse_decode(envelope, &payload, &entry);
    if (!err) {
        err = kedge_dsse_entry_verify(&entry, kedge_buf_view(&payload), &fact->key);
    }
    kedge_buf_deinit(&payload);
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (err) {
        kedgei_error(f, KEDGE_AUDIT_SIGNATURE, log, fact->index, "%s: not signed by the key in force",
                     kedge_statement_kind_name((enum kedge_statement_kind)fact->kind));
    }
}

/* The stored checkpoint of that size, or NULL. */
static const struct kedgei_head *head_at(const struct kedgei_log *log, uint64_t size)
{
    size_t lo = 0, hi = log->head_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (kedgei_head_at(log, mid)->size < size) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < log->head_count && kedgei_head_at(log, lo)->size == size ? kedgei_head_at(log, lo) : NULL;
}

/* Mostly it is, byte for byte, the checkpoint that the tenant's own log has of that size. Then its
 * signature was verified once already (open_head) and the result is taken over. */
static void verify_anchor(const struct signing *s, const struct kedgei_fact *fact, struct kedgei_findings *f)
{
    const struct kedgei_anchor *anchor = fact->body;
    const struct kedgei_log *log =
        anchor->tenant < s->audit->tenant_count ? &s->audit->tenants[anchor->tenant] : NULL;
    struct kedge_checkpoint c;
    if (!log || !log->has_vkey) {
        return;
    }
    const struct kedgei_head *head = head_at(log, anchor->size);
    int err = head && kedge_view_eq(head->note, anchor->note)
                  ? head->err
                  : kedge_checkpoint_open(anchor->note, kedge_view_str(log->origin), &log->vkey, 1, &c, NULL);
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (err) {
        kedgei_error(f, KEDGE_AUDIT_SIGNATURE, s->log, fact->index,
                     "checkpoint of \"%s\": not signed by its log's key", log->name);
    }
}

static void verify_fact(void *arg, uint64_t i, struct kedgei_findings *f)
{
    const struct signing *s = arg;
    const struct kedgei_fact *fact = kedgei_fact_at(s->log, i);
    if (fact->kind == KEDGEI_FACT_CHECKPOINT) {
        verify_anchor(s, fact, f);
    } else if (fact->has_key) {
        verify_statement(s->log, fact, f);
    }
}

/* Origin, form and signature of a stored checkpoint. */
static void open_head(void *arg, uint64_t i, struct kedgei_findings *f)
{
    struct kedgei_log *log = arg;
    struct kedgei_head *head = kedgei_head_at(log, i);
    struct kedge_checkpoint c;
    struct kedge_note note;
    if (log->has_vkey) {
        head->err = kedge_checkpoint_open(head->note, kedge_view_str(log->origin), &log->vkey, 1, &c, NULL);
    } else {
        head->err = kedge_note_parse(head->note, &note);
        head->err = head->err ? head->err : kedge_checkpoint_parse(note.text, &c);
    }
    f->nomem = f->nomem || head->err == KEDGE_E_NOMEM;
}

/* A stored checkpoint: of this log, signed by its key, with the root that the entries give. Signature and
 * root are told apart, since they accuse differently: a checkpoint that the log's key signed for another
 * root is proof of a second history, one with a bad signature proves nothing. */
static void judge_head(const struct kedgei_log *log, const struct kedgei_head *head,
                       struct kedgei_findings *f)
{
    char where[KEDGE_AUDIT_WHERE_MAX];
    struct kedge_checkpoint c = {.size = 0};
    struct kedge_note note;
    struct kedge_hash root;
    int err = head->err ? head->err : kedge_note_parse(head->note, &note);
    if (!err) {
        err = kedge_checkpoint_parse(note.text, &c);
    }
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (!err && c.size == head->size && c.size <= log->count) {
        kedgei_log_root(log, c.size, &root);
        if (kedge_hash_eq(&root, &c.root)) {
            return;
        }
    }
    snprintf(where, sizeof where, "%s checkpoint %llu", log->name, (unsigned long long)head->size);
    if (err == KEDGE_E_VERIFY) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_SIGNATURE, where, "not signed by the key of %s",
                    log->origin);
    } else if (err) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_HEAD, where, "malformed: %s", kedge_strerror(err));
    } else if (c.size != head->size || c.size > log->count) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_HEAD, where,
                    "states size %llu, the log has %llu entries", (unsigned long long)c.size,
                    (unsigned long long)log->count);
    } else {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_HEAD, where, "its root is not that of the entries");
    }
}

static void verify_head(void *arg, uint64_t i, struct kedgei_findings *f)
{
    const struct kedgei_log *log = arg;
    judge_head(log, kedgei_head_at(log, i), f);
}

static int check_log_signatures(struct kedgei_audit *a, struct kedgei_log *log)
{
    struct signing s = {a, log};
    a->counts.signatures += log->has_vkey ? log->head_count : 0;
    for (uint64_t i = 0; i < log->count; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(log, i);
        a->counts.signatures += fact->has_key || fact->kind == KEDGEI_FACT_CHECKPOINT;
    }
    int err = kedgei_parallel(a, "signatures", log->count, verify_fact, &s);
    return err ? err : kedgei_parallel(a, "checkpoints", log->head_count, verify_head, log);
}

/* Checkpoints first: the main chain has them again. */
int kedgei_check_signatures(struct kedgei_audit *a)
{
    KEDGE_TRY(kedgei_parallel(a, "checkpoints", a->main.head_count, open_head, &a->main));
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        KEDGE_TRY(kedgei_parallel(a, "checkpoints", a->tenants[t].head_count, open_head, &a->tenants[t]));
    }
    KEDGE_TRY(check_log_signatures(a, &a->main));
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        KEDGE_TRY(check_log_signatures(a, &a->tenants[t]));
    }
    return KEDGE_OK;
}

/* ---- checkpoints seen earlier ---- */

static const struct kedgei_log *log_of(const struct kedgei_audit *a, struct kedge_view origin)
{
    if (kedge_view_eq(origin, kedge_view_str(a->main.origin))) {
        return &a->main;
    }
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        if (kedge_view_eq(origin, kedge_view_str(a->tenants[t].origin))) {
            return &a->tenants[t];
        }
    }
    return NULL;
}

/* A checkpoint that somebody kept outside is what the coordinator cannot change afterwards. Fewer entries
 * than it says is a log that was cut off; another root at its size is another history. As evidence it
 * counts only if the log's trusted key signed it. */
static void check_seen_note(struct kedgei_audit *a, struct kedge_view bytes, enum kedge_audit_source source,
                            const char *where)
{
    struct kedgei_findings *f = &a->findings;
    struct kedge_note note;
    struct kedge_checkpoint c;
    struct kedge_hash root;
    if (kedge_note_parse(bytes, &note) != KEDGE_OK || kedge_checkpoint_parse(note.text, &c) != KEDGE_OK) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_SEEN, where, "not a signed checkpoint");
        return;
    }
    const struct kedgei_log *log = log_of(a, c.origin);
    if (!log) {
        kedgei_find(f, a->skipped ? KEDGE_AUDIT_NOTE : KEDGE_AUDIT_ERROR,
                    a->skipped ? KEDGE_AUDIT_NOT_CHECKED : KEDGE_AUDIT_SEEN, where,
                    "of log \"%.*s\", which is not here", (int)(c.origin.len < 100 ? c.origin.len : 100),
                    (const char *)c.origin.ptr);
        return;
    }
    if (log->has_vkey && kedge_checkpoint_open(bytes, c.origin, &log->vkey, 1, &c, NULL) != KEDGE_OK) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_SEEN, where, "not signed by the key of %s",
                    log->origin);
        return;
    }
    if (c.size > log->count) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_TRUNCATED, where,
                    "%s had %llu entries when this was seen, now it has %llu", log->origin,
                    (unsigned long long)c.size, (unsigned long long)log->count);
        return;
    }
    kedgei_log_root(log, c.size, &root);
    if (!kedge_hash_eq(&root, &c.root)) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_FORK, where,
                    "the first %llu entries of %s were others when this was seen", (unsigned long long)c.size,
                    log->origin);
        return;
    }
    if (log->has_vkey) { /* else nobody knows who signed it */
        kedgei_add_evidence(a, log, c.size, source, where);
    }
}

int kedgei_check_seen(struct kedgei_audit *a, const char *const *paths, size_t count)
{
    char where[KEDGE_AUDIT_WHERE_MAX];
    int err = KEDGE_OK;
    for (uint32_t i = 0; a->trust && i < a->trust->seen_count; i++) {
        snprintf(where, sizeof where, "trust file, seen[%u]", i);
        check_seen_note(a, kedge_view_str(a->trust->seen[i]), KEDGE_AUDIT_BY_TRUST_FILE, where);
    }
    for (size_t i = 0; i < count && !err; i++) {
        struct kedge_buf text;
        kedge_buf_init(&text, KEDGE_NOTE_MAX);
        err = kedge_file_read(paths[i], &text, &a->diag);
        if (!err) {
            check_seen_note(a, kedge_buf_view(&text), KEDGE_AUDIT_BY_SEEN, paths[i]);
        }
        kedge_buf_deinit(&text);
    }
    return err;
}
