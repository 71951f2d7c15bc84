/* One log by itself: leaf hashes and facts in parallel, then the tree, then idempotency keys. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"
#include "chain/log/dsse.h"
#include "chain/statement/entry_index.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* ---- facts ---- */

static size_t body_size(enum kedge_statement_kind kind)
{
    static const size_t sizes[KEDGE_ST_KIND_COUNT] = {
        [KEDGE_ST_KEY] = sizeof(struct kedge_st_key),
        [KEDGE_ST_KEY_ADDED] = sizeof(struct kedge_st_key_added),
        [KEDGE_ST_KEY_ROTATED] = sizeof(struct kedge_st_key_rotated),
        [KEDGE_ST_KEY_REVOKED] = sizeof(struct kedge_st_key_revoked),
        [KEDGE_ST_KEY_RECOVERED] = sizeof(struct kedge_st_key_recovered),
        [KEDGE_ST_SITE_ENROLLED] = sizeof(struct kedge_st_site_enrolled),
        [KEDGE_ST_SITE_REVOKED] = sizeof(struct kedge_st_site_revoked),
        [KEDGE_ST_WITNESS_ENROLLED] = sizeof(struct kedge_st_witness_enrolled),
        [KEDGE_ST_WITNESS_REVOKED] = sizeof(struct kedge_st_witness_revoked),
        [KEDGE_ST_JOB_JOINED] = sizeof(struct kedge_st_job_joined),
        [KEDGE_ST_JOB_LEFT] = sizeof(struct kedge_st_job_left),
        [KEDGE_ST_UPDATE] = sizeof(struct kedge_st_update),
        [KEDGE_ST_EVALUATION] = sizeof(struct kedge_st_evaluation),
        [KEDGE_ST_GROUP_ASSIGNED] = sizeof(struct kedge_st_group_assigned),
        [KEDGE_ST_ERASED] = sizeof(struct kedge_st_erased),
        [KEDGE_ST_CONTACT] = sizeof(struct kedge_st_contact),
        [KEDGE_ST_SITE_LABELS] = sizeof(struct kedge_st_site_labels),
        [KEDGE_ST_POLICY] = sizeof(struct kedge_st_policy),
        [KEDGE_ST_ROLE_GRANTED] = sizeof(struct kedge_st_role_granted),
        [KEDGE_ST_ROLE_REVOKED] = sizeof(struct kedge_st_role_revoked),
        [KEDGE_ST_STATEMENT_KEY_ROTATED] = sizeof(struct kedge_st_statement_key_rotated),
        [KEDGE_ST_POLICY_CHANGED] = sizeof(struct kedge_st_policy_changed),
        [KEDGE_ST_QUOTA_SET] = sizeof(struct kedge_st_quota_set),
        [KEDGE_ST_JOB_ADMITTED] = sizeof(struct kedge_st_job_admission),
        [KEDGE_ST_JOB_REFUSED] = sizeof(struct kedge_st_job_admission),
        [KEDGE_ST_JOB_OPENED] = sizeof(struct kedge_st_job_opened),
        [KEDGE_ST_ROUND_OPENED] = sizeof(struct kedge_st_round_opened),
        [KEDGE_ST_AGGREGATE] = sizeof(struct kedge_st_aggregate),
        [KEDGE_ST_STEP] = sizeof(struct kedge_st_step),
        [KEDGE_ST_ROUND_TESTED] = sizeof(struct kedge_st_round_tested),
        [KEDGE_ST_RELEASE] = sizeof(struct kedge_st_release),
        [KEDGE_ST_JOB_CLOSED] = sizeof(struct kedge_st_job_closed),
        [KEDGE_ST_CLOSED] = sizeof(struct kedge_st_closed),
        [KEDGE_ST_REFUSED] = sizeof(struct kedge_st_refused),
    };
    return (unsigned)kind < KEDGE_ST_KIND_COUNT ? sizes[kind] : 0;
}

/* Without what is free at the end of the arrays of its kind. Kinds whose last member is an array for up
 * to 256 tenants or groups are stored without its unused end: most statements name few of them. */
static size_t body_len(const struct kedge_statement *st)
{
    switch ((int)st->kind) {
    case KEDGE_ST_UPDATE:
        return offsetof(struct kedge_st_update, engine) + strlen(st->u.update.engine) + 1;
    case KEDGE_ST_JOB_OPENED:
        return offsetof(struct kedge_st_job_opened, tenants)
               + st->u.job_opened.tenant_count * sizeof st->u.job_opened.tenants[0];
    case KEDGE_ST_ROUND_OPENED:
        return offsetof(struct kedge_st_round_opened, tenants)
               + st->u.round_opened.tenant_count * sizeof st->u.round_opened.tenants[0];
    case KEDGE_ST_AGGREGATE:
        return offsetof(struct kedge_st_aggregate, tenants)
               + st->u.aggregate.tenant_count * sizeof st->u.aggregate.tenants[0];
    case KEDGE_ST_STEP:
        return offsetof(struct kedge_st_step, groups) + st->u.step.group_count * sizeof st->u.step.groups[0];
    default:
        return body_size(st->kind);
    }
}

static int set_body(struct kedgei_log *log, struct kedgei_fact *fact, const void *body, size_t len)
{
    fact->body = kedgei_arena_put(&log->bodies, body, len);
    return fact->body ? KEDGE_OK : KEDGE_E_NOMEM;
}

/* Only the decoded fields are kept. The payload is read again where signatures need it, which costs less
 * than to hold it for every entry. */
static int read_statement(struct kedgei_log *log, struct kedge_view envelope, struct kedgei_fact *fact,
                          struct kedge_diag *d)
{
    struct kedge_signed_statement entry;
    struct kedge_statement st;
    int err = kedge_statement_read(envelope, &st, &entry, d);
    kedge_buf_deinit(&entry.payload);
    if (err) {
        return err;
    }
    fact->subject = st.subject;
    fact->has_classes = (st.kind == KEDGE_ST_UPDATE && st.u.update.classes[0] != '\0')
                        || (st.kind == KEDGE_ST_STEP && st.u.step.classes[0] != '\0');
    err = set_body(log, fact, &st.u, body_len(&st));
    fact->kind = err ? KEDGEI_FACT_BAD : (int)st.kind;
    return err;
}

static int read_checkpoint(struct kedgei_audit *a, struct kedge_view note_bytes, struct kedgei_fact *fact,
                           struct kedge_diag *d)
{
    struct kedgei_anchor anchor = {.note = note_bytes, .tenant = UINT32_MAX};
    struct kedge_note note;
    struct kedge_checkpoint c;
    int err = kedge_note_parse(note_bytes, &note);
    if (!err) {
        err = kedge_checkpoint_parse(note.text, &c);
    }
    if (err) {
        return kedge_diag_set(d, err, "a checkpoint that is none: %s", kedge_strerror(err));
    }
    anchor.size = c.size;
    anchor.root = c.root;
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        if (kedge_view_eq(c.origin, kedge_view_str(a->tenants[t].origin))) {
            anchor.tenant = t;
        }
    }
    err = set_body(&a->main, fact, &anchor, sizeof anchor);
    fact->kind = err ? KEDGEI_FACT_BAD : KEDGEI_FACT_CHECKPOINT;
    return err;
}

struct reading {
    struct kedgei_audit *audit;
    struct kedgei_log *log;
};

/* Runs for many entries at once: it writes to its own fact and its own leaf hash only, and findings go
 * into the list of its block. A withheld entry has no bytes; its leaf hash comes with it, so that the
 * tree and all roots can still be judged. */
static void read_entry(void *arg, uint64_t i, struct kedgei_findings *f)
{
    struct reading *r = arg;
    struct kedgei_log *log = r->log;
    struct kedgei_fact *fact = kedgei_fact_at(log, i);
    struct kedge_diag d = {.err = KEDGE_OK};
    fact->kind = KEDGEI_FACT_BAD;
    fact->index = i;
    struct kedge_view bytes = kedgei_entry_at(log, i);
    if (log->is_copy && bytes.len == 0) {
        memcpy(log->levels[0][i].b, bytes.ptr, KEDGE_HASH_LEN);
        fact->kind = KEDGEI_FACT_WITHHELD;
        if (!KEDGEI_SKIP(r->audit, withheld)) {
            kedgei_error(f, KEDGE_AUDIT_STATEMENT, log, i,
                         "withheld from this copy: say which tenants' ledgers it holds (--tenant)");
        }
        return;
    }
    kedge_merkle_leaf(bytes, kedgei_hash_at(log, 0, i));
    int err;
    if (log->tenant.s[0]) {
        err = read_statement(log, bytes, fact, &d);
    } else {
        struct kedge_main_entry entry;
        err = kedge_main_entry_decode(bytes, &entry);
        if (err) {
            (void)kedge_diag_set(&d, err, "neither statement nor checkpoint: %s", kedge_strerror(err));
        } else if (entry.kind == KEDGE_MAIN_CHECKPOINT) {
            err = read_checkpoint(r->audit, entry.body, fact, &d);
        } else {
            err = read_statement(log, entry.body, fact, &d);
        }
    }
    if (err == KEDGE_E_NOMEM) {
        f->nomem = true;
    } else if (err) {
        kedgei_error(f, KEDGE_AUDIT_STATEMENT, log, i, "%s", d.text);
    }
}

/* ---- tree ---- */

/* All levels are kept, two hashes for each entry. Checkpoints, anchors and positions ask for thousands of
 * roots, and each is then put together of at most 63 hashes. */
static int build_tree(struct kedgei_audit *a, struct kedgei_log *log)
{
    for (unsigned k = 1; k < KEDGEI_LEVELS && log->count >> k > 0; k++) {
        uint64_t n = log->count >> k;
        log->levels[k] = kedgei_scratch_new(&a->scratch, (size_t)n, sizeof *log->levels[k]);
        if (!log->levels[k]) {
            return kedgei_scratch_error(&a->scratch, &a->diag);
        }
        for (uint64_t i = 0; i < n; i++) {
            const struct kedge_hash *left = kedgei_hash_at(log, k - 1, 2 * i);
            kedge_merkle_node(left, left + 1, kedgei_hash_at(log, k, i));
        }
    }
    return KEDGE_OK;
}

static int get_subtree(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret)
{
    const struct kedgei_log *log = arg;
    KEDGE_ASSERT(level < KEDGEI_LEVELS && index < log->count >> level);
    *ret = *kedgei_hash_at(log, level, index);
    return KEDGE_OK;
}

void kedgei_log_root(const struct kedgei_log *log, uint64_t size, struct kedge_hash *ret)
{
    KEDGE_ASSERT(size <= log->count);
    if (size == 0) {
        kedge_merkle_empty_root(ret);
        return;
    }
    int err = kedge_merkle_root(get_subtree, (void *)(uintptr_t)log, size, ret);
    KEDGE_ASSERT(err == KEDGE_OK);
}

/* ---- idempotency keys ---- */

/* Appends the key that the entry must have been stored with; nothing for one that has none. */
static void put_key(const struct kedgei_audit *a, const struct kedgei_fact *fact, struct kedge_buf *out)
{
    const struct kedgei_anchor *anchor = fact->body;
    if (fact->kind != KEDGEI_FACT_CHECKPOINT) {
        if (fact->kind >= 0) {
            kedge_statement_key((enum kedge_statement_kind)fact->kind, fact->body, out);
        }
    } else if (anchor->tenant < a->tenant_count) {
        kedge_checkpoint_key(&a->tenants[anchor->tenant].tenant, anchor->size, out);
    }
}

static int compare_keys(struct kedge_view a, struct kedge_view b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static int compare_rows(const void *pa, const void *pb)
{
    const struct kedgei_key_row *a = pa, *b = pb;
    int c = compare_keys(a->key, b->key);
    return c ? c : (a->index > b->index) - (a->index < b->index);
}

/* Whether the entry must have been stored with a key. */
static bool has_idem_key(const struct kedgei_audit *a, const struct kedgei_fact *fact)
{
    return fact->kind == KEDGEI_FACT_CHECKPOINT
               ? ((const struct kedgei_anchor *)fact->body)->tenant < a->tenant_count
               : fact->kind >= 0 && fact->kind != KEDGE_ST_CLOSED && fact->kind != KEDGE_ST_REFUSED;
}

static const struct kedgei_key_row *stored_at(const struct kedgei_log *log, size_t i)
{
    kedgei_scratch_evict_if_large(log->scratch);
    return &log->stored_keys[i];
}

/* Whether the stored table is just what the entries give: as many ascending keys as entries that have
 * one, each the key of its entry. Then no key is stated twice. Three conditions, as many as expected,
 * strictly ascending, each the key of its entry, make the table equal to the derived one; so a sound
 * record of ten million entries needs no sort of its own. If one fails, nothing of the table is believed
 * and it is derived (build_keys). */
static bool table_fits(struct kedgei_audit *a, const struct kedgei_log *log)
{
    struct kedge_buf key KEDGE_CLEANUP(kedge_buf_deinit);
    uint64_t expected = 0;
    bool fits = true;
    kedge_buf_init(&key, 2 * KEDGE_IDEM_KEY_MAX);
    for (uint64_t i = 0; i < log->count; i++) {
        expected += has_idem_key(a, kedgei_fact_at(log, i));
    }
    fits = expected == log->stored_key_count;
    for (size_t i = 0; i < log->stored_key_count && fits; i++) {
        const struct kedgei_key_row *row = stored_at(log, i);
        kedge_buf_clear(&key);
        if (row->index < log->count) {
            put_key(a, kedgei_fact_at(log, row->index), &key);
        }
        fits = !key.err && key.len > 0 && kedge_view_eq(kedge_buf_view(&key), row->key)
               && (i == 0 || compare_keys(row[-1].key, row->key) < 0);
    }
    return fits;
}

/* Bytes of the keys of all entries. */
static uint64_t measure_keys(struct kedgei_audit *a, const struct kedgei_log *log, struct kedge_buf *key)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < log->count && !key->err; i++) {
        kedge_buf_clear(key);
        put_key(a, kedgei_fact_at(log, i), key);
        sum += key->len;
    }
    return sum;
}

/* From the entries alone. Keys lie in one block and are sorted by reference: the text of a key for each
 * entry on the heap would be most of what an audit holds. */
static int build_keys(struct kedgei_audit *a, struct kedgei_log *log)
{
    struct kedge_buf key KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&key, 2 * KEDGE_IDEM_KEY_MAX);
    log->key_text = kedgei_scratch_new(&a->scratch, (size_t)measure_keys(a, log, &key) + 1, 1);
    log->keys = kedgei_scratch_new(&a->scratch, (size_t)log->count + 1, sizeof *log->keys);
    if (!log->key_text || !log->keys || key.err) {
        return kedgei_scratch_error(&a->scratch, &a->diag);
    }
    uint8_t *at = log->key_text;
    for (uint64_t i = 0; i < log->count && !key.err; i++) {
        kedge_buf_clear(&key);
        put_key(a, kedgei_fact_at(log, i), &key);
        if (key.len > 0) {
            memcpy(at, key.ptr, key.len);
            log->keys[log->key_count++] = (struct kedgei_key_row){kedge_view_of(at, key.len), i};
            at += key.len;
        }
    }
    return key.err
               ? key.err
               : kedgei_scratch_sort(&a->scratch, log->keys, log->key_count, sizeof *log->keys, compare_rows);
}

size_t kedgei_log_lower(const struct kedgei_log *log, struct kedge_view key)
{
    size_t lo = 0, hi = log->key_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (compare_keys(kedgei_key_at(log, mid)->key, key) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

struct kedgei_fact *kedgei_log_find(const struct kedgei_log *log, const char *format, ...)
{
    char text[2 * KEDGE_IDEM_KEY_MAX];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text) {
        return NULL;
    }
    struct kedge_view key = kedge_view_of(text, (size_t)n);
    size_t lo = kedgei_log_lower(log, key);
    const struct kedgei_key_row *row = lo < log->key_count ? kedgei_key_at(log, lo) : NULL;
    return row && compare_keys(row->key, key) == 0 ? kedgei_fact_at(log, row->index) : NULL;
}

/* An entry that cannot be read has no key that could be compared; that it is bad is told elsewhere. */
static void report_stored(struct kedgei_audit *a, const struct kedgei_log *log,
                          const struct kedgei_key_row *stored)
{
    const struct kedgei_fact *fact = stored->index < log->count ? kedgei_fact_at(log, stored->index) : NULL;
    if (a->skipped && fact && fact->kind == KEDGEI_FACT_CHECKPOINT
        && ((const struct kedgei_anchor *)fact->body)->tenant >= a->tenant_count) {
        return; /* of a tenant whose ledger is not here */
    }
    if (!fact || fact->kind != KEDGEI_FACT_BAD) {
        kedgei_error(&a->findings, KEDGE_AUDIT_IDEMPOTENCY, log, stored->index,
                     "the store has the key \"%.*s\" for this entry, whose statement gives another",
                     (int)stored->key.len, (const char *)stored->key.ptr);
    }
}

/* Each key once, and the stored table exactly those. Both lists are ascending. Both lists are walked side
 * by side, so each key is looked at once. A key that two entries have means that the coordinator stated
 * the same fact twice, which its store would have refused. */
static void check_keys(struct kedgei_audit *a, const struct kedgei_log *log)
{
    size_t s = 0;
    for (size_t i = 0; i < log->key_count; i++) {
        const struct kedgei_key_row *row = kedgei_key_at(log, i);
        if (i > 0 && compare_keys(row[-1].key, row->key) == 0) {
            kedgei_error(&a->findings, KEDGE_AUDIT_DOUBLED, log, row->index,
                         "\"%.*s\" is stated a second time, first in entry %llu", (int)row->key.len,
                         (const char *)row->key.ptr, (unsigned long long)row[-1].index);
            continue;
        }
        while (s < log->stored_key_count && compare_keys(stored_at(log, s)->key, row->key) < 0) {
            report_stored(a, log, stored_at(log, s++));
        }
        if (s < log->stored_key_count && compare_keys(stored_at(log, s)->key, row->key) == 0) {
            if (stored_at(log, s)->index != row->index) {
                report_stored(a, log, stored_at(log, s));
            }
            s++;
        } else {
            kedgei_error(&a->findings, KEDGE_AUDIT_IDEMPOTENCY, log, row->index,
                         "the store does not have this statement's key \"%.*s\"", (int)row->key.len,
                         (const char *)row->key.ptr);
        }
    }
    while (s < log->stored_key_count) {
        report_stored(a, log, stored_at(log, s++));
    }
}

static int read_keys(struct kedgei_audit *a, struct kedgei_log *log)
{
    if (table_fits(a, log)) {
        log->keys = log->stored_keys;
        log->key_count = log->stored_key_count;
        return KEDGE_OK;
    }
    int err = build_keys(a, log);
    if (!err && !(log->is_copy && log->stored_key_count == 0)) {
        check_keys(a, log);
    }
    return err;
}

static int read_log(struct kedgei_audit *a, struct kedgei_log *log)
{
    struct reading r = {a, log};
    kedgei_arena_init(&log->bodies, &a->scratch);
    log->facts = kedgei_scratch_new(&a->scratch, (size_t)log->count + 1, sizeof *log->facts);
    log->levels[0] = kedgei_scratch_new(&a->scratch, (size_t)log->count + 1, sizeof *log->levels[0]);
    if (!log->facts || !log->levels[0]) {
        return kedgei_scratch_error(&a->scratch, &a->diag);
    }
    KEDGE_TRY(kedgei_parallel(a, "statements", log->count, read_entry, &r));
    if (a->findings.nomem) {
        return kedgei_scratch_error(&a->scratch, &a->diag);
    }
    KEDGE_TRY(build_tree(a, log));
    KEDGE_TRY(read_keys(a, log));
    a->counts.logs++;
    a->counts.entries += log->count;
    a->counts.heads += log->head_count;
    return KEDGE_OK;
}

int kedgei_logs_read(struct kedgei_audit *a)
{
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        KEDGE_TRY(read_log(a, &a->tenants[t]));
    }
    return read_log(a, &a->main);
}

/* ---- anchors ---- */

/* By halves over the tenant's checkpoints in the main chain. "Before entry N of the main chain, the
 * tenant's ledger had at least so many entries" is how statements of two logs are put in order. */
uint64_t kedgei_anchored_before(const struct kedgei_log *log, uint64_t main_index)
{
    size_t lo = 0, hi = log->anchor_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (log->anchors[mid].main_index < main_index) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo > 0 ? log->anchors[lo - 1].size : 0;
}

uint64_t kedgei_anchored_after(const struct kedgei_log *log, uint64_t main_index)
{
    size_t lo = 0, hi = log->anchor_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (log->anchors[mid].main_index <= main_index) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < log->anchor_count ? log->anchors[lo].size : KEDGEI_NEVER;
}

/* ---- findings about entries ---- */

static_assert(KEDGE_AUDIT_CODE_COUNT <= 64, "a bit for each code");

/* Findings are limited in number, these bits are not: the report's list of entries shows every flawed
 * one. Relaxed atomics suffice, since the bits are read only after the threads have been joined. */
void kedgei_flaw(const struct kedgei_log *log, uint64_t index, enum kedge_audit_code code)
{
    if (log->facts && index < log->count) {
        atomic_fetch_or_explicit(&kedgei_fact_at(log, index)->codes, UINT64_C(1) << code,
                                 memory_order_relaxed);
    }
}

void kedgei_error(struct kedgei_findings *f, enum kedge_audit_code code, const struct kedgei_log *log,
                  uint64_t index, const char *format, ...)
{
    char where[KEDGE_AUDIT_WHERE_MAX];
    va_list ap;
    snprintf(where, sizeof where, "%s[%llu]", log->name, (unsigned long long)index);
    kedgei_flaw(log, index, code);
    va_start(ap, format);
    kedgei_find_v(f, KEDGE_AUDIT_ERROR, code, where, format, ap);
    va_end(ap);
}

/* Beside a running coordinator the ledgers may be newer than the main chain that was read before them, and so
 * they may be in a copy that somebody keeps of one; what the main chain cannot know yet is a note. Everything
 * that an anchor covers is judged as ever. */
void kedgei_error_if_settled(const struct kedgei_audit *a, struct kedgei_findings *f,
                             enum kedge_audit_code code, const struct kedgei_log *log, uint64_t index,
                             const char *format, ...)
{
    char where[KEDGE_AUDIT_WHERE_MAX];
    bool fresh =
        (a->options.beside_coordinator || log->is_copy) && index >= kedgei_anchored_before(log, KEDGEI_NEVER);
    va_list ap;
    snprintf(where, sizeof where, "%s[%llu]", log->name, (unsigned long long)index);
    if (!fresh) {
        kedgei_flaw(log, index, code);
    }
    va_start(ap, format);
    kedgei_find_v(f, fresh ? KEDGE_AUDIT_NOTE : KEDGE_AUDIT_ERROR, code, where, format, ap);
    va_end(ap);
}
