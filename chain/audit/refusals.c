/* Refusals that the auditor was shown (--refusal): whether the coordinator signed them, whether the record
 * says the same, and, where the refused envelope and file are at hand, whether the reason is what they show.
 * That a refusal is not shown says nothing; the record lists those that its rounds had. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/buffer.h"
#include "chain/compute/compute.h"
#include "chain/state/refused.h"
#include "common/base/mem.h"
#include "common/base/os/kept.h"

enum { PIECE = 1 << 16 };

/* What the evidence says of the reason. */
enum shown { SHOWN_NOTHING, SHOWN_FITS, SHOWN_OTHER };

struct look {
    struct kedgei_audit *a;
    char where[32], dirs[2][KEDGE_PATH_MAX]; /* where evidence may lie: beside the refusal, in the record */
    struct kedge_statement *st, *claimed;    /* the refusal; the refused statement, NULL: not at hand */
    const struct kedge_st_refused *r;
    const struct kedgei_log *log;
    struct kedgei_job *job;           /* NULL: not in this record */
    const struct kedgei_round *round; /* NULL: likewise */
    bool is_bad;                      /* an error was found */
    char why[160];                    /* what the evidence shows instead, or why it shows nothing */
};

static void convict(struct look *l, const char *format, ...) KEDGE_PRINTF(2, 3);
static void convict(struct look *l, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    kedgei_find_v(&l->a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_REFUSAL, l->where, format, ap);
    va_end(ap);
    l->is_bad = true;
}

/* ---- who signed it ---- */

static bool opens(struct look *l, struct kedge_view envelope, const struct kedge_public_key *key)
{
    return kedge_statement_open(envelope, key, l->st, NULL) == KEDGE_OK;
}

/* By a statement key of the main chain; which of them was in force when it was signed the refusal cannot
 * prove. */
static bool is_signed(struct look *l, struct kedge_view envelope)
{
    const struct kedgei_log *main = &l->a->main;
    for (uint64_t i = 0; i < main->count; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(main, i);
        if (fact->codes == 0 && fact->kind == KEDGE_ST_POLICY
            && opens(l, envelope, &((const struct kedge_st_policy *)fact->body)->statement_key)) {
            return true;
        }
        if (fact->codes == 0 && fact->kind == KEDGE_ST_STATEMENT_KEY_ROTATED
            && opens(l, envelope, &((const struct kedge_st_statement_key_rotated *)fact->body)->new_key)) {
            return true;
        }
    }
    return false;
}

/* ---- what was refused ---- */

static bool is_site_key(const struct look *l, struct kedge_view envelope, const struct kedge_public_key *key)
{
    return kedge_statement_open(envelope, key, l->claimed, NULL) == KEDGE_OK;
}

static bool is_sites(const struct look *l, struct kedge_view envelope)
{
    const struct kedgei_fact *enrolled = kedgei_log_find(l->log, "site-enrolled/%s", l->r->site.s);
    if (enrolled
        && is_site_key(l, envelope,
                       &((const struct kedge_st_site_enrolled *)enrolled->body)->statement_key)) {
        return true;
    }
    for (uint64_t i = 0; i < l->log->count; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(l->log, i);
        const struct kedge_st_key_rotated *k = fact->body;
        if (fact->kind == KEDGE_ST_KEY_ROTATED && k->role == KEDGE_ROLE_SITE
            && kedge_id_eq(&k->site, &l->r->site) && is_site_key(l, envelope, &k->new_key)) {
            return true;
        }
    }
    return false;
}

static bool says_the_same(const struct look *l)
{
    const struct kedge_st_refused *r = l->r;
    const struct kedge_st_update *u = &l->claimed->u.update;
    return l->claimed->kind == KEDGE_ST_UPDATE && kedge_hash_eq(&l->claimed->subject, &r->update)
           && kedge_id_eq(&u->tenant, &r->tenant) && kedge_id_eq(&u->site, &r->site)
           && kedge_id_eq(&u->job, &r->job) && u->round == r->round && u->group == r->group
           && u->update_kind == r->update_kind;
}

/* The refused statement into l->claimed. False: it is not at hand, or not what the refusal says. */
static bool find_envelope(struct look *l)
{
    bool found = false;
    for (size_t i = 0; i < 2 && !found; i++) {
        char path[KEDGE_PATH_MAX];
        struct kedge_buf text;
        struct kedge_hash hash;
        kedge_buf_init(&text, KEDGE_ENTRY_MAX);
        if (kedge_kept_path(path, l->dirs[i], &l->r->site, l->st->subject.b, KEDGE_REFUSED_ENVELOPE)
                == KEDGE_OK
            && kedge_file_exists(path) && kedge_file_read(path, &text, NULL) == KEDGE_OK) {
            kedge_sha256(kedge_buf_view(&text), &hash);
            found = kedge_hash_eq(&hash, &l->st->subject);
        }
        if (found && !is_sites(l, kedge_buf_view(&text))) {
            convict(l, "the refused envelope is not signed by a key of site \"%s\"", l->r->site.s);
        } else if (found && !says_the_same(l)) {
            convict(l, "the refusal names another update than the refused envelope");
        }
        kedge_buf_deinit(&text);
    }
    return found && !l->is_bad;
}

static bool has_digest(const struct kedge_blob_at *at)
{
    static _Thread_local uint8_t piece[PIECE];
    struct kedge_blob_file f;
    struct kedge_hasher *hasher = NULL;
    struct kedge_hash hash;
    if (kedge_blob_file_open(at, KEDGE_BLOB_READ, &f, NULL) != KEDGE_OK) {
        return false;
    }
    int err = kedge_hasher_new(&hasher);
    for (uint64_t offset = 0; offset < f.size && !err; offset += PIECE) {
        size_t len = f.size - offset < PIECE ? (size_t)(f.size - offset) : PIECE;
        err = kedge_blob_file_read(&f, offset, piece, len);
        if (!err) {
            kedge_hasher_update(hasher, kedge_view_of(piece, len));
        }
    }
    if (!err) {
        kedge_hasher_final(hasher, &hash);
    }
    kedge_hasher_free(hasher);
    kedge_blob_file_close(&f);
    return !err && kedge_hash_eq(&hash, &at->digest);
}

/* The refused file: beside the refusal, in the record, or an update's blob. */
static bool find_file(const struct look *l, char path[KEDGE_PATH_MAX], struct kedge_blob_at *ret)
{
    *ret =
        (struct kedge_blob_at){.path = path, .keys = kedge_blobs_keys(l->log->blobs), .digest = l->r->update};
    for (size_t i = 0; i < 2; i++) {
        if (kedge_kept_path(path, l->dirs[i], &l->r->site, l->r->update.b, KEDGE_REFUSED_UPDATE) == KEDGE_OK
            && kedge_file_exists(path) && has_digest(ret)) {
            return true;
        }
    }
    return kedge_blobs_at(l->log->blobs, &l->r->update, path, ret) == KEDGE_OK && has_digest(ret);
}

/* ---- judging the reason ---- */

static enum shown other(struct look *l, const char *why)
{
    snprintf(l->why, sizeof l->why, "%s", why);
    return SHOWN_OTHER;
}

static enum shown nothing(struct look *l, const char *why)
{
    snprintf(l->why, sizeof l->why, "%s", why);
    return SHOWN_NOTHING;
}

static enum shown judge_file(struct look *l, int claimed)
{
    const struct kedge_compact *compact =
        kedge_job_spec_compact(&l->job->spec, l->r->update_kind == KEDGE_TRAIN_PRETRAIN);
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_at at;
    if (!l->job->usable || !find_file(l, path, &at)) {
        return nothing(l, "the refused file is not here");
    }
    int err = kedge_compute_check_update(&l->job->update_layout, &at, compact, l->job->limit, NULL);
    if (err == claimed) {
        return SHOWN_FITS;
    }
    if (err && kedge_err_class(err) != KEDGE_CLASS_REJECT) {
        return nothing(l, "the refused file can not be read");
    }
    snprintf(l->why, sizeof l->why, err ? "the file shows %s" : "the file is what the job asks for",
             err ? kedge_err_code(err) : "");
    return SHOWN_OTHER;
}

static enum shown judge_weight(struct look *l)
{
    const struct kedge_st_update *u = &l->claimed->u.update;
    const struct kedge_job_spec *spec = &l->job->spec;
    bool fits =
        u->samples >= 1 && u->samples <= spec->weight_max
        && (u->update_kind == KEDGE_TRAIN_PRETRAIN
            || (kedge_job_spec_takes(spec, u->samples, u->steps, u->loss)
                && kedge_job_spec_takes_batch(spec, u->samples, u->steps, u->batch, u->learning_rate)));
    return fits ? other(l, "the job takes the samples, steps and batch that the statement says") : SHOWN_FITS;
}

static enum shown judge_base(struct look *l)
{
    const struct kedge_st_update *u = &l->claimed->u.update;
    struct kedge_hash base;
    if (u->update_kind == KEDGE_TRAIN_PRETRAIN) {
        base = ((const struct kedge_st_job_opened *)l->job->opened->body)->initial_model;
    } else if (kedgei_job_is_asynchronous(l->job)
               || !kedgei_model_before(l->job, l->round, u->group, &base)) {
        return nothing(l, "the record does not tell which model it was to start from");
    }
    return kedge_hash_eq(&base, &u->base) ? other(l, "it started from the very model that the record says")
                                          : SHOWN_FITS;
}

/* The group was the site's, and no other was, for as long as the round was open. */
static enum shown judge_group(struct look *l)
{
    const struct kedge_st_update *u = &l->claimed->u.update;
    const struct kedge_job_spec *spec = &l->job->spec;
    uint64_t least = kedgei_anchored_before(l->log, l->round->opened->index);
    if (u->update_kind == KEDGE_TRAIN_PRETRAIN || kedge_job_spec_is_chosen(spec)) {
        return nothing(l, "groups of pre-training and of the site's own choice are not judged");
    }
    uint32_t is = 0, others = 0;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        bool was = kedgei_group_was(l->log, &l->job->id, &l->r->site, least, KEDGEI_NEVER, g);
        is += was && g == u->group;
        others += was && g != u->group;
    }
    if (is + others == 0) {
        is = u->group == kedgei_first_group(l->a, l->job, l->log);
    }
    return is == 0       ? SHOWN_FITS
           : others == 0 ? other(l, "it is for the group that the record gives the site")
                         : nothing(l, "the site was in this group and in others");
}

static enum shown judge_selection(struct look *l)
{
    const struct kedge_st_round_opened *o = l->round->opened->body;
    for (uint32_t t = 0; t < o->tenant_count; t++) {
        struct kedge_input_list list;
        if (kedgei_job_tenant(l->a, l->job, &o->tenants[t].id) != l->log
            || !kedgei_list_read(l->a, l->log, &o->tenants[t].list, l->round->opened->index, &list,
                                 &l->a->findings)) {
            continue;
        }
        bool selected = false;
        for (uint32_t i = 0; i < list.count; i++) {
            selected =
                selected
                || (list.rows[i].use == KEDGE_USE_SELECTED && kedge_id_eq(&list.rows[i].site, &l->r->site));
        }
        kedge_input_list_deinit(&list);
        return selected ? other(l, "the round's list says that the site was selected") : SHOWN_FITS;
    }
    return SHOWN_FITS;
}

static enum shown judge_duplicate(struct look *l)
{
    const struct kedgei_fact *fact =
        kedgei_log_find(l->log, "update/%s/%08u/%s/%s", l->r->job.s, l->r->round,
                        l->r->update_kind == KEDGE_TRAIN_PRETRAIN ? "pretrain" : "train", l->r->site.s);
    return fact             ? SHOWN_FITS
           : l->round->step ? other(l, "the record has no other update of the site for this round")
                            : nothing(l, "the round is still open");
}

/* With the statement, where the reason is one that its fields decide. */
static enum shown judge_reason(struct look *l, bool has_statement)
{
    int claimed = kedge_err_find(l->r->code);
    if (!l->job || !l->round) {
        return nothing(l, "this record has no such round");
    }
    switch (claimed) {
    case KEDGE_E_NOT_SELECTED:
        return kedgei_job_is_asynchronous(l->job) ? nothing(l, "its rounds overlap") : judge_selection(l);
    case KEDGE_E_DUPLICATE:
        return judge_duplicate(l);
    case KEDGE_E_SHAPE:
    case KEDGE_E_BOUND:
    case KEDGE_E_FORMAT:
    case KEDGE_E_TOO_LONG:
    case KEDGE_E_NOT_FINITE:
        return judge_file(l, claimed);
    case KEDGE_E_WEIGHT:
    case KEDGE_E_WRONG_BASE:
    case KEDGE_E_WRONG_GROUP:
        break;
    default:
        return nothing(l, "a reason that no record can show");
    }
    if (!has_statement || !l->job->usable) {
        return nothing(l, "the refused envelope is not here");
    }
    return claimed == KEDGE_E_WEIGHT       ? judge_weight(l)
           : claimed == KEDGE_E_WRONG_BASE ? judge_base(l)
                                           : judge_group(l);
}

/* ---- the record's lists ---- */

struct rows {
    bool any_list, unread, has_site, has_update;
    char reason[KEDGE_INPUT_REASON_MAX + 1];
};

static void look_at_round(const struct look *l, const struct kedgei_round *round, struct rows *rows)
{
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedgei_fact *fact = round->aggregates[g];
        const struct kedge_st_aggregate *aggregate = fact ? fact->body : NULL;
        rows->any_list = rows->any_list || fact;
        for (uint32_t t = 0; aggregate && t < aggregate->tenant_count; t++) {
            struct kedge_input_list list;
            if (kedgei_job_tenant(l->a, l->job, &aggregate->tenants[t].id) != l->log) {
                continue;
            }
            if (!kedgei_list_read(l->a, l->log, &aggregate->tenants[t].list, fact->index, &list,
                                  &l->a->findings)) {
                rows->unread = true;
                continue;
            }
            for (uint32_t i = 0; i < list.count; i++) {
                const struct kedge_input_row *row = &list.rows[i];
                if (!kedge_id_eq(&row->site, &l->r->site)) {
                    continue;
                }
                rows->has_site = true;
                if (row->use == KEDGE_USE_REFUSED && kedge_hash_eq(&row->update, &l->r->update)) {
                    rows->has_update = true;
                    snprintf(rows->reason, sizeof rows->reason, "%s", row->reason);
                }
            }
            kedge_input_list_deinit(&list);
        }
    }
}

/* What the record says of this refusal, in words. */
static const char *judge_lists(struct look *l)
{
    struct rows rows = {.any_list = false};
    if (!l->round) {
        return "this record has no such round";
    }
    if (!l->round->step) {
        return "its round is still open in this record, which has no list yet";
    }
    bool later = kedgei_job_is_asynchronous(l->job); /* the list of the close in whose time it was refused */
    for (size_t i = 0; i < l->job->round_count; i++) {
        const struct kedgei_round *round = kedgei_round_at(l->job, i);
        if (round->number == l->r->round || (later && round->number > l->r->round)) {
            look_at_round(l, round, &rows);
        }
    }
    if (rows.has_update && strcmp(rows.reason, l->r->code) != 0) {
        convict(l, "the coordinator signed that it refused the update for %s; the record's list says %s",
                l->r->code, rows.reason);
        return "the record's list has another reason";
    }
    if (rows.has_update) {
        return "the record's list has it";
    }
    if (!rows.any_list || rows.unread) {
        return "its round has no list here";
    }
    if (l->r->listed && !rows.has_site) {
        convict(l,
                "the coordinator signed that the round's list has this refusal, and the record's lists of "
                "round %u "
                "have none of site \"%s\"",
                l->r->round, l->r->site.s);
        return "the record's lists lack it";
    }
    return rows.has_site ? "the record's list has another update of the site in its place"
                         : "it is none of those that lists have";
}

/* ---- one refusal ---- */

static void find_place(struct look *l)
{
    const struct kedge_st_refused *r = l->r;
    for (uint32_t t = 0; t < l->a->tenant_count; t++) {
        if (kedge_id_eq(&l->a->tenants[t].tenant, &r->tenant)) {
            l->log = &l->a->tenants[t];
        }
    }
    l->job = kedgei_job_find(l->a, &r->job);
    l->round = l->job ? kedgei_round_find(l->job, r->round) : NULL;
}

static void judge(struct look *l)
{
    static const char *const words[] = {"whether its reason is true is not shown",
                                        "its reason is what the evidence shows", ""};
    find_place(l);
    if (!l->log) {
        kedgei_find(&l->a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_REFUSAL, l->where,
                    "of tenant \"%s\", whose ledger is not here: signed by the coordinator, else not judged",
                    l->r->tenant.s);
        return;
    }
    const char *lists = judge_lists(l);
    bool has_statement = find_envelope(l);
    if (l->is_bad) {
        return;
    }
    enum shown shown = judge_reason(l, has_statement);
    if (shown == SHOWN_OTHER) {
        convict(l,
                "round %u of job \"%s\", site \"%s\", refused for %s: the refusal's reason is not what the "
                "update "
                "shows: %s",
                l->r->round, l->r->job.s, l->r->site.s, l->r->code, l->why);
        return;
    }
    kedgei_find(&l->a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_REFUSAL, l->where,
                "signed by the coordinator: round %u of job \"%s\", site \"%s\", refused for %s; %s; %s%s%s",
                l->r->round, l->r->job.s, l->r->site.s, l->r->code, lists, words[shown],
                l->why[0] ? ": " : "", l->why);
}

static int look_at(struct kedgei_audit *a, size_t i, struct look *l)
{
    const char *path = a->options.refusals[i];
    const char *slash = strrchr(path, '/');
    struct kedge_buf text;
    l->a = a;
    l->r = &l->st->u.refused;
    snprintf(l->where, sizeof l->where, "--refusal %zu", i + 1);
    snprintf(l->dirs[0], sizeof l->dirs[0], "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    int err = kedge_file_read(path, &text, &a->diag);
    if (!err && (!is_signed(l, kedge_buf_view(&text)) || l->st->kind != KEDGE_ST_REFUSED)) {
        convict(l, "not a refusal that a statement key of this deployment signed");
    } else if (!err) {
        err =
            kedge_state_path(l->dirs[1], &a->diag, a->state, "tenants/%s/" KEDGE_REFUSED_DIR, l->r->tenant.s);
        if (!err) {
            judge(l);
        }
    }
    kedge_buf_deinit(&text);
    return err;
}

int kedgei_check_refusals(struct kedgei_audit *a)
{
    int err = KEDGE_OK;
    for (size_t i = 0; i < a->options.refusal_count && !err; i++) {
        struct look *l = kedge_mem_new(1, sizeof *l);
        struct kedge_statement *st = kedge_mem_new(2, sizeof *st);
        if (l && st) {
            l->st = &st[0];
            l->claimed = &st[1];
            err = look_at(a, i, l);
        } else {
            err = kedge_diag_set(&a->diag, KEDGE_E_NOMEM, "out of memory");
        }
        kedge_mem_free(l);
        kedge_mem_free(st);
    }
    return err;
}
