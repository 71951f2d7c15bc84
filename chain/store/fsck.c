/* Looks at every live bit of a folder and names each damage, changes nothing, and stops only where it
 * cannot look any further. It is run in a child process (guard.h), because LMDB maps the file and a
 * damaged page may kill the process that reads it. */
#include "chain/store/fsck.h"

#include <stdio.h>
#include <string.h>

#include "chain/store/kv/kv_lmdb_file.h"
#include "chain/store/ledger_impl.h"

enum { MARK_TRIES = 3 };

static const char *const mend_ledger = "keep this folder as it is; kedge ledger repair builds the ledger "
                                       "anew with the help of a replica or backup";
static const char *const mend_store = "keep this folder as it is and restore the store from a backup";

struct run {
    const struct kedge_fsck *f;
    const char *dir, *mend;
    struct kedge_kv *kv;
    struct kedge_kv_tx *tx;
    struct kedge_fsck_counts *counts;
    enum kedge_kv_table table;
    uint64_t index, total;
    bool bad;
};

static void find_in(const struct run *r, const char *part, bool has_index, uint64_t index, const char *text)
{
    struct kedge_fsck_finding finding = {.severity = KEDGE_FSCK_DAMAGE,
                                         .part = part,
                                         .where = r->dir,
                                         .has_index = has_index,
                                         .index = index,
                                         .text = text,
                                         .mend = r->mend};
    r->f->report(r->f->arg, &finding);
}

static void progress(const struct run *r, const char *what, uint64_t done, uint64_t total)
{
    if (r->f->progress) {
        r->f->progress(r->f->arg, what, done, total);
    }
}

/* Damage is a finding; what keeps from looking is an error. */
static int unless_damage(const struct run *r, int err, const char *part, const struct kedge_diag *d)
{
    if (err == KEDGE_E_CORRUPT || err == KEDGE_E_FORK || err == KEDGE_E_SHORTER || err == KEDGE_E_STATE) {
        find_in(r, part, false, 0, d->text[0] ? d->text : kedge_strerror(err));
        return KEDGE_OK;
    }
    return err;
}

/* ---- any store ---- */

/* A tree that is damaged in a branch page can be whole for a scan and lose keys for a search, which is
 * what all other readers use. */
static int visit_record(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct run *r = arg;
    struct kedge_view again;
    if (kedge_kv_peek(r->tx, r->table, key, &again) != KEDGE_OK || !kedge_view_eq(again, value)) {
        find_in(r, kedge_kv_table_name(r->table), true, r->index, "a record is not found by its key");
    }
    r->index++;
    r->counts->records++;
    if (r->index % 4096 == 0) {
        progress(r, kedge_kv_table_name(r->table), r->index, r->total);
    }
    return KEDGE_OK;
}

static int check_table(struct run *r, enum kedge_kv_table table)
{
    struct kedge_view all = kedge_view_of(NULL, 0);
    struct kedge_buf last;
    const char *name = kedge_kv_table_name(table);
    r->table = table;
    r->index = r->total = 0;
    int err = kedge_kv_count(r->tx, table, &r->total);
    if (!err) {
        err = kedge_kv_scan(r->tx, table, all, all, visit_record, r);
    }
    if (err == KEDGE_E_CORRUPT) {
        find_in(r, name, true, r->index, "the table cannot be read beyond this record");
        return KEDGE_OK;
    }
    if (!err && r->index != r->total) {
        find_in(r, name, true, r->index, "records are missing or too many");
    }
    kedge_buf_init(&last, KEDGE_KV_KEY_MAX);
    if (!err) {
        err = kedge_kv_last(r->tx, table, &last, NULL);
    }
    kedge_buf_deinit(&last);
    if (err == KEDGE_E_CORRUPT || (err == KEDGE_E_NOT_FOUND && r->total > 0)) {
        find_in(r, name, true, r->index, "the last record is not found");
    }
    return err == KEDGE_E_NOT_FOUND || err == KEDGE_E_CORRUPT ? KEDGE_OK : err;
}

/* Beside a running writer, pages are judged as of the state that this process's own read transaction
 * pins: later states do not reuse those pages. A writer that was always two transactions further on, or
 * another version of LMDB, is a note and no damage. */
static int check_structure(struct run *r, struct kedge_diag *reterr)
{
    struct kedge_diag d = {.text = ""};
    int err = kedgei_lmdb_check_structure(r->dir, r->f->beside ? kedgei_lmdb_number_of(r->tx) : 0, &d);
    if (err == KEDGE_E_BUSY || err == KEDGE_E_VERSION) {
        struct kedge_fsck_finding note = {
            .severity = KEDGE_FSCK_NOTE,
            .part = "file",
            .where = r->dir,
            .text = err == KEDGE_E_VERSION
                        ? d.text
                        : "the writer was too busy for a look at the pages that no read returns",
            .mend = err == KEDGE_E_VERSION
                        ? "run it with LMDB 0.9; the pages were not looked at, all else was"
                        : "run it once more, or when the coordinator is stopped"};
        r->f->report(r->f->arg, &note);
        return KEDGE_OK;
    }
    int left = unless_damage(r, err, "file", &d);
    if (left && reterr) {
        *reterr = d;
    }
    return left;
}

/* Opens what there is; *ret_open false when it is too damaged for that, which has been told. */
static int open_store(struct run *r, bool *ret_open, struct kedge_diag *reterr)
{
    struct kedge_kv_lmdb_options options = {.read_only = true, .no_lock = !r->f->beside};
    struct kedge_diag d = {.text = ""};
    progress(r, "file", 0, 0);
    *ret_open = false;
    int err = kedge_kv_lmdb_open(r->dir, &options, &r->kv, &d);
    if (!err) {
        err = kedge_kv_begin(r->kv, false, &r->tx, &d);
        if (err) {
            kedge_kv_close(r->kv);
        }
    }
    *ret_open = !err;
    err = unless_damage(r, err, "file", &d);
    if (err && reterr) {
        *reterr = d;
    }
    return err;
}

static void close_store(struct run *r)
{
    kedge_kv_abort(r->tx);
    kedge_kv_close(r->kv);
}

int kedge_fsck_store(const struct kedge_fsck *f, const char *dir, struct kedge_fsck_counts *counts,
                     struct kedge_diag *reterr)
{
    struct run r = {.f = f, .dir = dir, .mend = mend_store, .counts = counts};
    bool open;
    int err = open_store(&r, &open, reterr);
    if (err || !open) {
        return err;
    }
    err = check_structure(&r, reterr);
    for (unsigned t = 0; t < KEDGE_KV_TABLES && !err; t++) {
        err = check_table(&r, (enum kedge_kv_table)t);
        if (err) {
            (void)kedge_diag_set(reterr, err, "%s: %s table: %s", dir,
                                 kedge_kv_table_name((enum kedge_kv_table)t), kedge_strerror(err));
        }
    }
    close_store(&r);
    return err;
}

/* ---- a ledger's ---- */

static void on_damage(void *arg, enum kedge_kv_table table, uint64_t index, const char *what)
{
    struct run *r = arg;
    r->bad = true;
    find_in(r, kedge_kv_table_name(table), true, index, what);
}

static void on_progress(void *arg, uint64_t done, uint64_t total)
{
    progress(arg, "entries", done, total);
}

struct refs {
    const struct run *r;
    const char *gone;
    struct kedge_buf *out;
};

/* A blob whose update was erased must not be asked for: its absence is what the ledger orders. The
 * idempotency key of the tenant's `erased` statement names the digest. */
static bool is_gone(const struct refs *refs, struct kedge_view digest)
{
    char key[KEDGE_IDEM_KEY_MAX + 1], hex[KEDGE_HASH_HEX_LEN + 1];
    struct kedge_view value;
    if (!refs->gone) {
        return false;
    }
    kedge_hex_encode(digest.ptr, digest.len, hex);
    snprintf(key, sizeof key, "%s%s", refs->gone, hex);
    return kedge_kv_peek(refs->r->tx, KEDGE_KV_IDEM, kedge_view_str(key), &value) == KEDGE_OK;
}

static int append_ref(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct refs *refs = arg;
    (void)value;
    if (key.len == KEDGE_HASH_LEN && !is_gone(refs, key)) {
        kedge_buf_put(refs->out, key.ptr, key.len);
    }
    return refs->out->err;
}

/* Beside a writer the mark is newer than the state that was read before it; then the ledger is looked at
 * once more. MARK_TRIES bounds that, since a busy writer may always be ahead; only a mark that stays
 * ahead is damage. */
static int check_mark(const struct run *r, struct kedge_ledger *l, const char *mark)
{
    struct kedge_diag d = {.text = ""};
    struct run at_mark = *r;
    at_mark.dir = mark;
    at_mark.mend =
        "put back the newest data folder, or keep both folders as evidence: to sign now would fork "
        "the log";
    if (!kedge_file_exists(mark)) {
        struct kedge_fsck_finding missing = {
            .severity = KEDGE_FSCK_STRAY,
            .part = "high-water",
            .where = mark,
            .text = "the mark of the largest size that was signed is missing: the log will not be opened for "
                    "signing",
            .mend = "restore the file from this machine's own copy; an old backup of it protects nothing"};
        if (kedge_ledger_size(l) > 0) {
            r->f->report(r->f->arg, &missing);
        }
        return KEDGE_OK;
    }
    int err = kedge_ledger_check_high_water(l, mark, &d);
    for (unsigned i = 0; i < MARK_TRIES && err == KEDGE_E_CORRUPT && r->f->beside; i++) {
        err = kedge_ledger_refresh(l, &d); /* the mark may tell of a commit that came between */
        if (!err) {
            err = kedge_ledger_check_high_water(l, mark, &d);
        }
    }
    return unless_damage(&at_mark, err, "high-water", &d);
}

/* As the writer would open it, which says more than the tables by themselves: against the mark too. When
 * tables are damaged already, an error here is only their consequence and is not told twice. */
static int check_as_opened(struct run *r, const struct kedge_fsck_ledger *ledger)
{
    struct kedge_ledger_options options = {.origin = ledger->origin, .public_key = ledger->key};
    struct kedge_diag d = {.text = ""};
    struct kedge_ledger *l;
    int err = kedge_ledger_open(r->kv, &options, &l, &d);
    if (err) {
        return r->bad ? KEDGE_OK : unless_damage(r, err, "meta", &d);
    }
    r->counts->entries = kedge_ledger_size(l);
    err = ledger->mark ? check_mark(r, l, ledger->mark) : KEDGE_OK;
    kedge_ledger_close(l);
    return err;
}

/* The references are gathered for the blobs' check (fsck_blobs.c), also from a damaged table as far as it
 * can be read: a blob that is named nowhere else is better looked at than passed over. */
int kedge_fsck_ledger(const struct kedge_fsck *f, const struct kedge_fsck_ledger *ledger,
                      struct kedge_buf *ret_refs, struct kedge_fsck_counts *counts, struct kedge_diag *reterr)
{
    struct run r = {.f = f, .dir = ledger->dir, .mend = mend_ledger, .counts = counts};
    struct kedge_view all = kedge_view_of(NULL, 0);
    struct kedge_diag d = {.text = ""};
    struct kedge_ledger *l = NULL;
    bool open;
    int err = open_store(&r, &open, reterr);
    if (err || !open) {
        return err;
    }
    err = check_structure(&r, reterr);
    if (!err) {
        err = kedgei_ledger_open_unchecked(r.kv, ledger->origin, ledger->key, &l, &d);
        err = err == KEDGE_E_NOT_FOUND ? KEDGE_E_CORRUPT : err; /* a store without a ledger */
        bool readable = !err;
        err = unless_damage(&r, err, "meta", &d);
        err = err || !readable ? err : kedge_ledger_check_all(l, on_damage, on_progress, &r, &d);
        err = err || !readable ? err : check_as_opened(&r, ledger);
        kedge_ledger_close(l);
    }
    if (!err) {
        err = kedge_kv_count(r.tx, KEDGE_KV_HEAD, &counts->heads);
        struct refs refs = {&r, ledger->gone, ret_refs};
        if (!err) {
            err = kedge_kv_scan(r.tx, KEDGE_KV_REF, all, all, append_ref, &refs);
        }
        err = err == KEDGE_E_CORRUPT ? KEDGE_OK : err; /* which the check has told */
    }
    if (err && reterr && !reterr->text[0]) {
        (void)kedge_diag_set(reterr, err, "%s: %s", ledger->dir, d.text[0] ? d.text : kedge_strerror(err));
    }
    close_store(&r);
    return err;
}
