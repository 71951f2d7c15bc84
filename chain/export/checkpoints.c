/* Signed checkpoints, consistency proofs between those seen earlier and now, and time stamps over them. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/export/work.h"
#include "chain/log/checkpoint.h"
#include "common/base/mem.h"
#include "common/base/try.h"

static int add_note(struct kedgei_ex_work *w, struct kedge_view bytes, const char *path)
{
    for (size_t i = 0; i < w->note_count; i++) {
        if (strcmp(w->notes[i].path, path) == 0) {
            return KEDGE_OK; /* seen twice */
        }
    }
    if (w->note_count == KEDGEI_EX_NOTES_MAX) {
        return kedge_diag_set(w->reterr, KEDGE_E_FULL, "more than %d checkpoints", KEDGEI_EX_NOTES_MAX);
    }
    struct kedgei_ex_note *n = &w->notes[w->note_count];
    snprintf(n->path, sizeof n->path, "%s", path);
    kedge_buf_init(&n->bytes, KEDGE_NOTE_MAX);
    kedge_buf_put(&n->bytes, bytes.ptr, bytes.len);
    w->note_count++;
    return n->bytes.err ? n->bytes.err : kedgei_ex_put(&w->f, bytes, w->reterr, "%s", n->path);
}

static int put_newest(struct kedgei_ex_work *w, const struct kedgei_ex_log *log)
{
    char path[sizeof w->notes->path];
    if (log->note.len == 0 || !log->permitted) {
        return KEDGE_OK;
    }
    snprintf(path, sizeof path, "checkpoints/%s-%llu.note", log->name, (unsigned long long)log->size);
    return add_note(w, kedge_buf_view(&log->note), path);
}

static bool is_there(const struct kedgei_ex_folder *f, const char *path)
{
    for (size_t i = f->count; i > 0; i--) { /* from the newest: what is looked for is near the end */
        if (strcmp(f->files[i - 1].path, path) == 0) {
            return true;
        }
    }
    return false;
}

/* That the trees of another checkpoint and of the newest are of one history. */
static int put_consistency(struct kedgei_ex_work *w, struct kedgei_ex_log *log, uint64_t other)
{
    const uint64_t from = other < log->size ? other : log->size, to = other < log->size ? log->size : other;
    struct kedge_path path;
    struct kedge_hash old_root, root;
    char name[160];
    snprintf(name, sizeof name, "checkpoints/%s-%llu-%llu.consistency.json", log->name,
             (unsigned long long)from, (unsigned long long)to);
    if (from == 0 || from == to || is_there(&w->f, name)) {
        return KEDGE_OK;
    }
    int err = kedge_ledger_root(log->log.ledger, from, &old_root);
    if (!err) {
        err = kedge_ledger_root(log->log.ledger, to, &root);
    }
    if (!err) {
        err = kedge_ledger_consistency(log->log.ledger, from, to, &path);
    }
    if (err) {
        return kedge_diag_set(w->reterr, err, "%s: no consistency proof from %llu to %llu: %s", log->name,
                              (unsigned long long)from, (unsigned long long)to, kedge_strerror(err));
    }
    json_t *hashes = json_array();
    for (uint32_t i = 0; i < path.count; i++) {
        json_array_append_new(hashes, kedgei_ex_hex(&path.hashes[i]));
    }
    return kedgei_ex_put_json(w,
                              json_pack("{s:s,s:I,s:I,s:o,s:o,s:o}", "origin", log->log.origin, "from",
                                        (json_int_t)from, "to", (json_int_t)to, "from_root",
                                        kedgei_ex_hex(&old_root), "to_root", kedgei_ex_hex(&root), "path",
                                        hashes),
                              name);
}

static int open_main_note(const struct kedgei_ex_work *w, struct kedge_view bytes,
                          struct kedge_checkpoint *ret)
{
    const struct kedge_vkey *log = &w->o->trust->main_log;
    return kedge_checkpoint_open(bytes, kedge_view_str(log->name), log, 1, ret, NULL);
}

int kedgei_ex_main_note(struct kedgei_ex_work *w, struct kedge_view bytes, const char *what)
{
    struct kedge_checkpoint c;
    struct kedge_hash root;
    char path[sizeof w->notes->path];
    int err = open_main_note(w, bytes, &c);
    if (err) {
        return kedge_diag_set(w->reterr, err == KEDGE_E_NOMEM ? err : KEDGE_E_VERIFY,
                              "%s: no checkpoint that the main chain's log key signed", what);
    }
    err = kedge_ledger_root(w->r.main.log.ledger, c.size, &root);
    if (err || !kedge_hash_eq(&root, &c.root)) {
        return kedge_diag_set(w->reterr, KEDGE_E_VERIFY, "%s: not a state of this main chain", what);
    }
    snprintf(path, sizeof path, "checkpoints/main-%llu-%s.note", (unsigned long long)c.size, what);
    err = add_note(w, bytes, path);
    return err ? err : put_consistency(w, &w->r.main, c.size);
}

/* What the federation's witnesses have cosigned, and the policy that says which of them count. */
static int put_cosigned(struct kedgei_ex_work *w)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX];
    const char *policy = w->o->trust->witness_policy;
    kedge_buf_init(&bytes, KEDGE_NOTE_MAX);
    int err = kedge_state_path(path, w->reterr, w->r.state, "main/cosigned.note");
    if (!err && kedge_file_exists(path)) {
        err = kedge_file_read(path, &bytes, w->reterr);
        struct kedge_checkpoint c;
        if (!err && !kedge_view_eq(kedge_buf_view(&bytes), kedge_buf_view(&w->r.main.note))
            && open_main_note(w, kedge_buf_view(&bytes), &c) == KEDGE_OK) { /* another than the newest */
            err = kedgei_ex_main_note(w, kedge_buf_view(&bytes), "cosigned");
        }
    }
    return err || !policy ? err : kedgei_ex_put(&w->f, kedge_view_str(policy), w->reterr, "policy.txt");
}

/* A checkpoint that somebody saw earlier: the verification found it consistent. */
static int put_seen(struct kedgei_ex_work *w, const char *file)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_note note;
    struct kedge_checkpoint c;
    char path[sizeof w->notes->path];
    kedge_buf_init(&bytes, KEDGE_NOTE_MAX);
    int err = kedge_file_read(file, &bytes, w->reterr);
    if (!err) {
        err = kedge_note_parse(kedge_buf_view(&bytes), &note);
    }
    if (!err) {
        err = kedge_checkpoint_parse(note.text, &c);
    }
    if (err) {
        return kedge_diag_set(w->reterr, err, "%s: no signed checkpoint", file);
    }
    struct kedgei_ex_log *log = NULL;
    if (kedge_view_eq(c.origin, kedge_view_str(w->r.main.log.origin))) {
        log = &w->r.main;
    }
    for (uint32_t i = 0; i < w->r.tenant_count; i++) {
        struct kedgei_ex_log *t = &w->r.tenants[i];
        if (t->permitted && kedge_view_eq(c.origin, kedge_view_str(t->log.origin))) {
            log = t;
        }
    }
    if (!log) {
        return KEDGE_OK; /* of a tenant that is not exported */
    }
    struct kedge_hash digest;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_sha256(kedge_buf_view(&bytes), &digest);
    kedge_hash_hex(&digest, hex); /* one checkpoint may have been seen with several sets of cosignatures */
    snprintf(path, sizeof path, "checkpoints/%s-%llu-seen-%.8s.note", log->name, (unsigned long long)c.size,
             hex);
    err = add_note(w, kedge_buf_view(&bytes), path);
    return err ? err : put_consistency(w, log, c.size);
}

int kedgei_ex_checkpoints(struct kedgei_ex_work *w)
{
    w->notes = kedge_mem_new(KEDGEI_EX_NOTES_MAX, sizeof *w->notes);
    if (!w->notes) {
        return kedge_diag_set(w->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    KEDGE_TRY(put_newest(w, &w->r.main));
    for (uint32_t i = 0; i < w->r.tenant_count; i++) {
        KEDGE_TRY(put_newest(w, &w->r.tenants[i]));
    }
    KEDGE_TRY(put_cosigned(w));
    for (size_t i = 0; i < w->o->seen_count; i++) {
        KEDGE_TRY(put_seen(w, w->o->seen[i]));
    }
    return KEDGE_OK;
}

/* ---- time stamps ---- */

static const struct kedgei_ex_note *find_note(const struct kedgei_ex_work *w,
                                              const struct kedge_hash *imprint)
{
    for (size_t i = 0; i < w->note_count; i++) {
        struct kedge_hash digest;
        kedge_sha256(kedge_buf_view(&w->notes[i].bytes), &digest);
        if (kedge_hash_eq(&digest, imprint)) {
            return &w->notes[i];
        }
    }
    return NULL;
}

/* A stamp names what it is about by digest only, so the checkpoint is sought among the notes that this
 * export has. A stamp about anything else says nothing about the record, and is refused with a hint
 * rather than left out in silence. */
int kedgei_ex_token(struct kedgei_ex_work *w, const char *file, struct kedge_view ca)
{
    struct kedge_buf reply KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedgei_ex_token *t = &w->tokens[w->token_count];
    struct kedge_timestamp claimed;
    kedge_buf_init(&reply, KEDGE_TSR_MAX);
    KEDGE_TRY(kedge_file_read(file, &reply, w->reterr));
    int err = kedge_timestamp_parse(kedge_buf_view(&reply), &claimed);
    if (err) {
        return kedge_diag_set(w->reterr, err,
                              "%s: no RFC 3161 reply that grants a token over a SHA-256 digest", file);
    }
    const struct kedgei_ex_note *note = find_note(w, &claimed.imprint);
    if (!note) {
        (void)kedge_diag_set(w->reterr, KEDGE_E_VERIFY, "%s: its token is about no checkpoint of this export",
                             file);
        (void)kedge_diag_hint(w->reterr, "give the checkpoint that was stamped with --seen FILE as well");
        return KEDGE_E_VERIFY;
    }
    err = kedge_timestamp_verify(kedge_buf_view(&reply), kedge_buf_view(&note->bytes), ca, &t->stamp,
                                 w->reterr);
    if (err) {
        return kedge_diag_wrap(w->reterr, err, "%s", file);
    }
    w->token_count++;
    w->sum.timestamps++;
    snprintf(t->path, sizeof t->path, "tsa/%02zu.tsr", w->token_count);
    snprintf(t->checkpoint, sizeof t->checkpoint, "%s", note->path);
    return kedgei_ex_put(&w->f, kedge_buf_view(&reply), w->reterr, "%s", t->path);
}
