/* Anchors outside: what an Ethereum-compatible chain and time-stamping authorities saw of the main chain, as
 * it lies in the record (STATE/anchors). Each is held against itself, against the main chain's tree, and
 * against the trust anchors that were named. One that the main chain does not have at its size, though its
 * own key signed the checkpoint or the trusted account anchored it, shows two histories. */
#include <stdlib.h>
#include <string.h>

#include "chain/anchor/evm_evidence.h"
#include "chain/anchor/stamp.h"
#include "chain/audit/record.h"
#include "common/base/mem.h"

struct judge {
    struct kedgei_audit *a;
    struct kedge_trust_anchors trust;
    enum kedge_anchor_kind kind;
    const uint64_t *numbers;
    struct kedge_audit_anchor *rows; /* one per number; size 0: it does not hold */
    atomic_bool *bad_ca;             /* the certificates that the auditor named are none */
};

/* ---- findings ---- */

static void wrong(struct kedgei_findings *f, const char *name, enum kedge_audit_code code, const char *text)
{
    kedgei_find(f, KEDGE_AUDIT_ERROR, code, name, "%s", text);
}

/* Memory that ran out ends the audit and is never a finding. */
static void broken(struct kedgei_findings *f, const char *name, int err, const struct kedge_diag *d)
{
    if (err == KEDGE_E_NOMEM) {
        f->nomem = true;
    } else {
        wrong(f, name, KEDGE_AUDIT_ANCHOR, d->text[0] ? d->text : kedge_strerror(err));
    }
}

static bool read_file(const struct kedgei_audit *a, const char *name, struct kedge_buf *out,
                      struct kedgei_findings *f)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_diag d = {.text = ""};
    int err = kedge_state_path(path, &d, a->state, "%s", name);
    err = err ? err : kedge_file_read(path, out, &d);
    if (err) { /* without the path of this machine */
        d.text[0] = '\0';
        broken(f, name, err, &d);
    }
    return !err;
}

/* ---- against the main chain ---- */

/* Whether the main chain has this root at this size. `proven`: its own key or the trusted account says that
 * it once had it. */
static bool fits(const struct kedgei_audit *a, const char *name, uint64_t size, const struct kedge_hash *root,
                 bool proven, struct kedgei_findings *f)
{
    struct kedge_hash ours;
    if (size > a->main.count) {
        if (a->options.beside_coordinator) {
            return false; /* newer than what was read first */
        }
        kedgei_find(f, KEDGE_AUDIT_ERROR, proven ? KEDGE_AUDIT_TRUNCATED : KEDGE_AUDIT_ANCHOR, name,
                    "anchored are %llu entries of the main chain, which has %llu", (unsigned long long)size,
                    (unsigned long long)a->main.count);
        return false;
    }
    kedgei_log_root(&a->main, size, &ours);
    if (!kedge_hash_eq(&ours, root)) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, proven ? KEDGE_AUDIT_FORK : KEDGE_AUDIT_ANCHOR, name,
                    proven
                        ? "two histories: other entries were anchored than the first %llu of this main chain"
                        : "it is not about the first %llu entries of this main chain",
                    (unsigned long long)size);
        return false;
    }
    return true;
}

/* ---- time stamps ---- */

static void judge_stamp(const struct judge *j, uint64_t number, const char *name,
                        struct kedge_audit_anchor *row, struct kedgei_findings *f)
{
    const struct kedgei_audit *a = j->a;
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), reply KEDGE_CLEANUP(kedge_buf_deinit);
    char note_name[KEDGE_ANCHOR_NAME_MAX];
    struct kedge_stamp s;
    struct kedge_diag d = {.text = ""};
    const char *ca = j->trust.tsa_ca;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&reply, KEDGE_TSR_MAX);
    kedge_anchor_note_name(number, note_name);
    if (!read_file(a, note_name, &note, f) || !read_file(a, name, &reply, f)) {
        return;
    }
    int err = kedge_stamp_check(kedge_buf_view(&note), kedge_buf_view(&reply), kedge_view_str(a->main.origin),
                                a->main.has_vkey ? &a->main.vkey : NULL,
                                ca ? kedge_view_str(ca) : kedge_view_of(NULL, 0), &s, &d);
    if (err == KEDGE_E_KEY) {
        atomic_store(j->bad_ca, true);
    } else if (err) {
        broken(f, name, err, &d);
    } else if (s.size != number) {
        wrong(f, name, KEDGE_AUDIT_ANCHOR, "its checkpoint is of another size than its name says");
    } else if (fits(a, name, s.size, &s.root, a->main.has_vkey, f)) {
        *row = (struct kedge_audit_anchor){.kind = KEDGE_ANCHOR_TSA,
                                           .number = number,
                                           .trusted = ca != NULL,
                                           .size = s.size,
                                           .time_s = s.token.time_s};
        memcpy(row->by, s.token.authority, strnlen(s.token.authority, sizeof row->by - 1));
    }
}

/* ---- Ethereum-compatible chains ---- */

/* The checkpoint that the evidence carries: signed by the log itself, of this size and root. */
static bool is_signed(const struct kedgei_audit *a, const struct kedge_evm_evidence *e)
{
    struct kedge_checkpoint c;
    return e->checkpoint.len > 0 && a->main.has_vkey
           && kedge_checkpoint_open(e->checkpoint, kedge_view_str(a->main.origin), &a->main.vkey, 1, &c, NULL)
                  == KEDGE_OK
           && c.size == e->point.size && kedge_hash_eq(&c.root, &e->point.root);
}

static bool is_named(const struct kedge_trust_anchors *t, const struct kedge_evm_evidence *e)
{
    return t->has_evm && t->chain_id == e->chain_id && kedge_evm_address_eq(&t->contract, &e->contract)
           && kedge_evm_address_eq(&t->account, &e->sender);
}

static void judge_evidence(const struct judge *j, const struct kedge_evm_evidence *e, uint64_t number,
                           const char *name, struct kedge_audit_anchor *row, struct kedgei_findings *f)
{
    const struct kedgei_audit *a = j->a;
    bool named = is_named(&j->trust, e);
    uint64_t time_s = 0;
    if (strcmp(e->origin, a->main.origin) != 0) {
        wrong(f, name, KEDGE_AUDIT_ANCHOR, "it is about another log");
    } else if (e->point.seq != number) {
        wrong(f, name, KEDGE_AUDIT_ANCHOR, "it is another anchor than its name says");
    } else if (fits(a, name, e->point.size, &e->point.root, named || is_signed(a, e), f)) {
        bool told = kedge_evm_evidence_time(e, &time_s) == KEDGE_OK && time_s <= INT64_MAX;
        *row = (struct kedge_audit_anchor){.kind = KEDGE_ANCHOR_EVM,
                                           .number = number,
                                           .trusted = named,
                                           .size = e->point.size,
                                           .time_s = told ? (int64_t)time_s : 0,
                                           .chain_id = e->chain_id,
                                           .block = e->block,
                                           .block_hash = e->block_hash,
                                           .in_block = kedge_evm_evidence_code_is_ours(e)};
        kedge_evm_address_text(&e->sender, row->by);
        if (j->trust.has_evm && !named) {
            kedgei_find(
                f, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_ANCHOR, name,
                "does not count: anchored by account %s on chain %llu, or by another contract than the "
                "one that is named",
                row->by, (unsigned long long)e->chain_id);
        }
    }
}

static void judge_evm(const struct judge *j, uint64_t number, const char *name,
                      struct kedge_audit_anchor *row, struct kedgei_findings *f)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_diag d = {.text = ""};
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    kedge_buf_init(&text, KEDGE_EVM_EVIDENCE_MAX);
    if (!e) {
        f->nomem = true;
    } else if (read_file(j->a, name, &text, f)) {
        int err = kedge_evm_evidence_read(kedge_buf_view(&text), e, &d);
        if (err) {
            broken(f, name, err, &d);
        } else {
            judge_evidence(j, e, number, name, row, f);
        }
        kedge_evm_evidence_deinit(e);
    }
    kedge_mem_free(e);
}

/* ---- all of them ---- */

static void judge_one(void *arg, uint64_t i, struct kedgei_findings *f)
{
    const struct judge *j = arg;
    char name[KEDGE_ANCHOR_NAME_MAX];
    kedge_anchor_name(j->kind, j->numbers[i], name);
    (j->kind == KEDGE_ANCHOR_TSA ? judge_stamp : judge_evm)(j, j->numbers[i], name, &j->rows[i], f);
}

/* Judges those of one kind; those that hold are added to the audit's. */
static int judge_kind(struct judge *j)
{
    struct kedgei_audit *a = j->a;
    uint64_t *numbers = NULL;
    size_t count = 0;
    int err = kedge_anchor_list(a->state, j->kind, &numbers, &count, &a->diag);
    if (err == KEDGE_E_FULL) {
        wrong(&a->findings, "anchors", KEDGE_AUDIT_ANCHOR, "more files than anybody anchors");
        return KEDGE_OK;
    }
    if (err || count == 0) {
        kedge_mem_free(numbers);
        return err;
    }
    j->numbers = numbers;
    struct kedge_audit_anchor *all =
        kedge_mem_resize(a->outside, a->outside_count + count, sizeof *a->outside);
    if (!all) {
        kedge_mem_free(numbers);
        return KEDGE_E_NOMEM;
    }
    a->outside = all;
    j->rows = all + a->outside_count;
    memset(j->rows, 0, count * sizeof *j->rows);
    err = kedgei_parallel(a, "anchors", count, judge_one, j);
    for (size_t i = 0; i < count; i++) {
        if (j->rows[i].size > 0) {
            all[a->outside_count++] = j->rows[i];
        }
    }
    kedge_mem_free(numbers);
    return err;
}

/* What was found but nobody named whose word counts. */
static void tell_unnamed(struct kedgei_audit *a, const struct kedge_trust_anchors *trust)
{
    uint64_t stamps = 0, evm = 0;
    for (uint32_t i = 0; i < a->outside_count; i++) {
        stamps += a->outside[i].kind == KEDGE_ANCHOR_TSA;
        evm += a->outside[i].kind == KEDGE_ANCHOR_EVM;
    }
    if (stamps > 0 && !trust->tsa_ca) {
        kedgei_find(&a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_NOT_CHECKED, "anchors/tsa",
                    "not checked: %llu time stamps fit the main chain; name the authority's certificates "
                    "(--tsa-ca FILE) to have them count",
                    (unsigned long long)stamps);
    }
    if (evm > 0 && !trust->has_evm) {
        kedgei_find(&a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_NOT_CHECKED, "anchors/evm",
                    "not checked: %llu anchors fit the main chain; name the account (--anchor "
                    "CHAIN:CONTRACT:ACCOUNT) to have them count",
                    (unsigned long long)evm);
    }
}

static int compare(const void *a, const void *b)
{
    const struct kedge_audit_anchor *x = a, *y = b;
    if (x->size != y->size) {
        return x->size < y->size ? -1 : 1;
    }
    return x->kind != y->kind ? (int)x->kind - (int)y->kind
                              : (x->number > y->number) - (x->number < y->number);
}

static void demand(struct kedgei_audit *a)
{
    uint64_t anchored = 0;
    for (uint32_t i = 0; i < a->outside_count; i++) {
        const struct kedge_audit_anchor *row = &a->outside[i];
        if (row->trusted && (row->kind == KEDGE_ANCHOR_TSA || row->in_block)) {
            anchored = row->size; /* ascending */
        }
    }
    for (uint64_t i = anchored; i < a->main.count; i++) {
        if (kedgei_fact_at(&a->main, i)->kind == KEDGE_ST_RELEASE) {
            kedgei_error_if_settled(a, &a->findings, KEDGE_AUDIT_NOT_ANCHORED, &a->main, i,
                                    "anchored outside, by those who are trusted with it, are the first %llu "
                                    "entries of the main chain, and not this release",
                                    (unsigned long long)anchored);
        }
    }
}

int kedgei_check_anchors(struct kedgei_audit *a)
{
    atomic_bool bad_ca = false;
    struct judge j = {.a = a, .bad_ca = &bad_ca};
    if (a->options.anchors) {
        j.trust = *a->options.anchors;
    } else if (a->trust) {
        j.trust = a->trust->anchors;
    }
    int err = KEDGE_OK;
    for (j.kind = 0; j.kind < KEDGE_ANCHOR_KINDS && !err; j.kind++) {
        err = judge_kind(&j);
    }
    if (!err && bad_ca) { /* says nothing about the record */
        err =
            kedge_diag_set(&a->diag, KEDGE_E_KEY, "tsa_ca: expected certificates in PEM, and there is none");
    }
    if (!err) {
        if (a->outside_count > 1) {
            qsort(a->outside, a->outside_count, sizeof *a->outside, compare);
        }
        tell_unnamed(a, &j.trust);
        if (j.trust.required) {
            demand(a);
        }
    }
    return err;
}

/* ---- for those who tell ---- */

const struct kedge_audit_anchor *kedge_audit_anchor_newest(const struct kedge_audit_report *report,
                                                           enum kedge_anchor_kind kind)
{
    const struct kedge_audit_anchor *best = NULL;
    for (uint32_t i = 0; i < report->anchor_count; i++) {
        const struct kedge_audit_anchor *row = &report->anchors[i];
        if (row->kind == kind && (!best || row->trusted || !best->trusted)) {
            best = row;
        }
    }
    return best;
}

const struct kedge_audit_anchor *kedge_audit_anchor_first(const struct kedge_audit_anchor *anchors,
                                                          uint32_t count, enum kedge_anchor_kind kind,
                                                          uint64_t index)
{
    const struct kedge_audit_anchor *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct kedge_audit_anchor *row = &anchors[i];
        if (row->kind == kind && row->size > index && (!best || (row->trusted && !best->trusted))) {
            best = row;
        }
    }
    return best;
}
