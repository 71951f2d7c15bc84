/* Anchors outside, of all kinds (chain/anchor/kind.h), as they lie in the record. Each is held against
 * itself, against the main chain's tree, and against the trust anchors that were named. One that the main
 * chain does not have at its size, though its own key signed the checkpoint or the trusted account anchored
 * it, shows two histories. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/audit/record.h"
#include "common/base/mem.h"

struct judge {
    struct kedgei_audit *a;
    struct kedge_trust_anchors trust;
    const struct kedge_anchor_kind *kind;
    const uint64_t *numbers;
    struct kedge_audit_anchor *rows; /* one per number; no size: it does not hold */
    atomic_bool *unusable;           /* what the auditor named to trust is none */
};

/* ---- findings ---- */

static void wrong(struct kedgei_findings *f, const char *name, enum kedge_audit_code code, const char *text)
{
    kedgei_find(f, KEDGE_AUDIT_ERROR, code, name, "%s", text);
}

/* Memory that ran out ends the audit and is never a finding. The file's name in the record is told, never
 * the path on the auditor's machine: reports are passed on. */
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
    if (!err) {
        err = kedge_file_read(path, out, &d);
    }
    if (err) { /* without the path of this machine */
        d.text[0] = '\0';
        broken(f, name, err, &d);
    }
    return !err;
}

/* ---- against the main chain ---- */

/* Whether the main chain has this root at this size. `proven`: its own key or the trusted account says
 * that it once had it. Who stands behind the root decides what a contradiction means. If the log's own
 * key or the named account does, the coordinator had another history or has cut this one off: an error of
 * its own kind. If only a stranger does, the file merely has nothing to do with this record. */
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

/* ---- each of them ---- */

/* An anchor of somebody whom the auditor did not name still has to fit the main chain; it is kept, told
 * as a note, and does not count. */
static void judge_claim(const struct judge *j, const char *name, uint64_t number,
                        const struct kedge_anchor_claim *claim, struct kedge_audit_anchor *row,
                        struct kedgei_findings *f)
{
    struct kedge_diag why = {.text = ""};
    if (!fits(j->a, name, claim->size, &claim->root, claim->vouched, f)) {
        return;
    }
    *row = (struct kedge_audit_anchor){.kind = j->kind, .number = number, .claim = *claim};
    if (j->kind->is_others && j->kind->is_others(claim, &j->trust, &why)) {
        kedgei_find(f, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_ANCHOR, name, "%s", why.text);
    }
}

/* Files are read within the kind's bound and judged in parallel; each writes to its own row. KEY means
 * that the auditor's own trust anchors are unusable, which is no fault of the record and ends the audit. */
static void judge_one(void *arg, uint64_t i, struct kedgei_findings *f)
{
    const struct judge *j = arg;
    const struct kedgei_audit *a = j->a;
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), anchor KEDGE_CLEANUP(kedge_buf_deinit);
    char name[KEDGE_ANCHOR_NAME_MAX], note_name[KEDGE_ANCHOR_NAME_MAX];
    struct kedge_anchor_main main = {a->main.origin, a->main.has_vkey ? &a->main.vkey : NULL};
    struct kedge_anchor_claim claim;
    struct kedge_diag d = {.text = ""};
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&anchor, j->kind->most);
    kedge_anchor_name(j->kind, j->numbers[i], name);
    if (j->kind->note_suffix) {
        kedge_anchor_note_name(j->kind, j->numbers[i], note_name);
        if (!read_file(a, note_name, &note, f)) {
            return;
        }
    }
    if (!read_file(a, name, &anchor, f)) {
        return;
    }
    struct kedge_anchor_files files = {j->numbers[i], kedge_buf_view(&anchor), kedge_buf_view(&note)};
    int err = j->kind->claim(&files, &main, &j->trust, &claim, &d);
    if (err == KEDGE_E_KEY) {
        atomic_store(j->unusable, true);
    } else if (err) {
        broken(f, name, err, &d);
    } else {
        judge_claim(j, name, j->numbers[i], &claim, &j->rows[i], f);
    }
}

/* ---- all of them ---- */

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
        if (j->rows[i].claim.size > 0) {
            all[a->outside_count++] = j->rows[i];
        }
    }
    kedge_mem_free(numbers);
    return err;
}

/* What was found but nobody named whose word counts. */
static void tell_unnamed(struct kedgei_audit *a, const struct kedge_trust_anchors *trust)
{
    for (size_t k = kedge_anchor_kind_count(); k-- > 0;) {
        const struct kedge_anchor_kind *kind = kedge_anchor_kind_at(k);
        char folder[KEDGE_ANCHOR_NAME_MAX];
        uint64_t count = 0;
        for (uint32_t i = 0; i < a->outside_count; i++) {
            count += a->outside[i].kind == kind;
        }
        if (count > 0 && kind->is_named && !kind->is_named(trust)) {
            snprintf(folder, sizeof folder, "anchors/%s", kind->name);
            kedgei_find(&a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_NOT_CHECKED, folder,
                        "not checked: %llu %s fit the main chain; name %s to have them count",
                        (unsigned long long)count, kind->plural, kind->whose);
        }
    }
}

static size_t place_of(const struct kedge_anchor_kind *kind)
{
    size_t i = 0;
    while (kedge_anchor_kind_at(i) && kedge_anchor_kind_at(i) != kind) {
        i++;
    }
    return i;
}

static int compare(const void *a, const void *b)
{
    const struct kedge_audit_anchor *x = a, *y = b;
    if (x->claim.size != y->claim.size) {
        return x->claim.size < y->claim.size ? -1 : 1;
    }
    return x->kind != y->kind ? (place_of(x->kind) < place_of(y->kind) ? -1 : 1)
                              : (x->number > y->number) - (x->number < y->number);
}

/* Only releases are demanded, because a release is what outsiders receive; the rest of a chain that grows
 * is always newer than its last anchor. */
static void demand(struct kedgei_audit *a)
{
    uint64_t anchored = 0;
    for (uint32_t i = 0; i < a->outside_count; i++) {
        const struct kedge_anchor_claim *claim = &a->outside[i].claim;
        if (claim->trusted && claim->proven) {
            anchored = claim->size; /* ascending */
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

/* What the command line names takes the place of what the trust file says. */
int kedgei_check_anchors(struct kedgei_audit *a)
{
    atomic_bool unusable = false;
    struct judge j = {.a = a, .unusable = &unusable};
    if (a->options.anchors) {
        j.trust = *a->options.anchors;
    } else if (a->trust) {
        j.trust = a->trust->anchors;
    }
    int err = KEDGE_OK;
    for (size_t i = 0; !err && (j.kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        err = judge_kind(&j);
        if (!err && unusable) { /* says nothing about the record */
            err = kedge_diag_set(&a->diag, KEDGE_E_KEY, "%s", j.kind->unusable);
        }
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

/* Rows ascend by size, so the last one that fits is the newest; one that is not trusted never takes the
 * place of one that is. */
const struct kedge_audit_anchor *kedge_audit_anchor_newest(const struct kedge_audit_report *report,
                                                           const struct kedge_anchor_kind *kind)
{
    const struct kedge_audit_anchor *best = NULL;
    for (uint32_t i = 0; i < report->anchor_count; i++) {
        const struct kedge_audit_anchor *row = &report->anchors[i];
        if (row->kind == kind && (!best || row->claim.trusted || !best->claim.trusted)) {
            best = row;
        }
    }
    return best;
}

const struct kedge_audit_anchor *kedge_audit_anchor_first(const struct kedge_audit_anchor *anchors,
                                                          uint32_t count,
                                                          const struct kedge_anchor_kind *kind,
                                                          uint64_t index)
{
    const struct kedge_audit_anchor *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct kedge_audit_anchor *row = &anchors[i];
        if (row->kind == kind && row->claim.size > index
            && (!best || (row->claim.trusted && !best->claim.trusted))) {
            best = row;
        }
    }
    return best;
}
