/* Refusals that the auditor was shown (--refusal): whether the coordinator signed them, whether the record
 * says the same, and, where the refused envelope and file are at hand, whether the reason is what they show.
 * That a refusal is not shown says nothing; the record lists those that its rounds had. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/facts/buffer.h"
#include "chain/audit/facts/refusals.h"
#include "chain/state/refused.h"
#include "common/base/mem.h"

/* ---- who signed it ---- */

static bool opens(struct kedgei_look *l, struct kedge_view envelope, const struct kedge_public_key *key)
{
    return kedge_statement_open(envelope, key, l->st, NULL) == KEDGE_OK;
}

static const struct kedge_public_key *key_of(const struct kedgei_fact *fact)
{
    if (fact->codes == 0 && fact->kind == KEDGE_ST_POLICY) {
        return &((const struct kedge_st_policy *)fact->body)->statement_key;
    }
    if (fact->codes == 0 && fact->kind == KEDGE_ST_STATEMENT_KEY_ROTATED) {
        return &((const struct kedge_st_statement_key_rotated *)fact->body)->new_key;
    }
    return NULL;
}

enum signer { SIGNER_NONE, SIGNER_OTHER_TIME, SIGNER_IN_FORCE };

/* By a statement key of the main chain, in force where the refusal says that it was signed: behind the entry
 * that the key came with, and in front of the one that it went with. No key comes twice. A thief of a former
 * key can name an earlier place; then the round that the refusal is about was not open (`check_time`), or the
 * refusal says nothing of a time in which that key was gone. */
static enum signer who_signed(struct kedgei_look *l, struct kedge_view envelope)
{
    const struct kedgei_log *main = &l->a->main;
    uint64_t from = KEDGEI_NEVER, until = KEDGEI_NEVER;
    for (uint64_t i = 0; i < main->count && until == KEDGEI_NEVER; i++) {
        const struct kedge_public_key *key = key_of(kedgei_fact_at(main, i));
        if (key && from != KEDGEI_NEVER) {
            until = i;
        } else if (key && opens(l, envelope, key)) {
            from = i;
        }
    }
    if (from == KEDGEI_NEVER || l->st->kind != KEDGE_ST_REFUSED) {
        return SIGNER_NONE;
    }
    return from < l->r->main_size && l->r->main_size <= until ? SIGNER_IN_FORCE : SIGNER_OTHER_TIME;
}

/* The main chain that the refusal names is this one, and the round was open in it, where the reason says
 * so. The refusal names size and root of the main chain as the coordinator saw it. Another root at that
 * size is a second history, signed by the coordinator itself. */
static bool check_time(struct kedgei_look *l)
{
    const struct kedgei_log *main = &l->a->main;
    struct kedge_hash root;
    uint64_t size = l->r->main_size;
    if (size <= main->count) {
        kedgei_log_root(main, size, &root);
        if (!kedge_hash_eq(&root, &l->r->main_root)) {
            kedgei_refusal_convict(
                l, "the refusal names another main chain of %llu entries than this record has",
                (unsigned long long)size);
            return false;
        }
    }
    if (l->round && kedgei_refusal_needs_open_round(kedge_err_find(l->r->code))
        && size <= l->round->opened->index) {
        kedgei_refusal_convict(l,
                               "signed at %llu entries of the main chain, in which round %u was not open yet",
                               (unsigned long long)size, l->r->round);
        return false;
    }
    return true;
}

/* ---- the record's lists ---- */

struct rows {
    bool any_list, unread, has_site, has_update;
    char reason[KEDGE_INPUT_REASON_MAX + 1];
};

/* All lists of the tenant in this round, for a refusal stands in the list of its group or in the first. */
static void look_at_round(const struct kedgei_look *l, const struct kedgei_round *round, struct rows *rows)
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

/* What the record says of this refusal, in words. A refusal that says that it is listed must be in the
 * lists of its round; another reason there than the one that was signed to the site is a contradiction
 * between two statements of one coordinator. */
static const char *judge_lists(struct kedgei_look *l)
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
        kedgei_refusal_convict(
            l, "the coordinator signed that it refused the update for %s; the record's list says %s",
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
        kedgei_refusal_convict(
            l,
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

static void find_place(struct kedgei_look *l)
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

/* First what the record says against the refusal itself, then its reason: a refusal that contradicts the
 * record is not made better by a reason that fits. */
static void judge(struct kedgei_look *l)
{
    static const char *const words[] = {"whether its reason is true is not shown",
                                        "its reason is what the evidence shows", ""};
    find_place(l);
    if (!l->log) {
        kedgei_find(&l->a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_REFUSAL, l->where,
                    "of tenant \"%s\", whose ledger is not here: signed by the coordinator, else not judged",
                    l->r->tenant.s);
        l->verdict = KEDGE_AUDIT_REFUSAL_NOT_SHOWN;
        return;
    }
    const char *lists = judge_lists(l);
    bool has_statement = kedgei_refusal_envelope(l);
    if (l->is_bad || !check_time(l)) {
        l->verdict = KEDGE_AUDIT_REFUSAL_CONTRADICTED;
        return;
    }
    enum kedgei_shown shown = kedgei_refusal_reason(l, has_statement);
    if (shown == KEDGEI_SHOWN_OTHER) {
        l->verdict = KEDGE_AUDIT_REFUSAL_INVENTED;
        kedgei_refusal_convict(
            l,
            "round %u of job \"%s\", site \"%s\", refused for %s: the refusal's reason is not what the "
            "update "
            "shows: %s",
            l->r->round, l->r->job.s, l->r->site.s, l->r->code, l->why);
        return;
    }
    l->verdict = shown == KEDGEI_SHOWN_FITS ? KEDGE_AUDIT_REFUSAL_CONFIRMED : KEDGE_AUDIT_REFUSAL_NOT_SHOWN;
    kedgei_find(&l->a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_REFUSAL, l->where,
                "signed by the coordinator: round %u of job \"%s\", site \"%s\", refused for %s; %s; %s%s%s",
                l->r->round, l->r->job.s, l->r->site.s, l->r->code, lists, words[shown],
                l->why[0] ? ": " : "", l->why);
}

static void put_row(const struct kedgei_look *l, struct kedge_audit_refusal *row)
{
    row->verdict = l->verdict;
    if (l->verdict != KEDGE_AUDIT_REFUSAL_NOT_SIGNED) {
        row->job = l->r->job;
        row->tenant = l->r->tenant;
        row->site = l->r->site;
        row->round = l->r->round;
        memcpy(row->code, l->r->code, sizeof row->code);
    }
}

/* A file that cannot be read is an error of the auditor's command line. One that no key of this
 * deployment signed is a finding, since somebody showed it as evidence. */
static int look_at(struct kedgei_audit *a, size_t i, struct kedgei_look *l)
{
    const char *path = a->options.refusals[i];
    const char *slash = strrchr(path, '/');
    struct kedge_buf text;
    l->a = a;
    l->r = &l->st->u.refused;
    l->verdict = KEDGE_AUDIT_REFUSAL_NOT_SIGNED;
    snprintf(l->where, sizeof l->where, "--refusal %zu", i + 1);
    snprintf(l->dirs[0], sizeof l->dirs[0], "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    int err = kedge_file_read(path, &text, &a->diag);
    enum signer signer = err ? SIGNER_NONE : who_signed(l, kedge_buf_view(&text));
    kedge_buf_deinit(&text);
    if (err) {
        return err;
    }
    if (signer == SIGNER_NONE) {
        kedgei_refusal_convict(l, "not a refusal that a statement key of this deployment signed");
    } else if (signer == SIGNER_OTHER_TIME) {
        kedgei_refusal_convict(
            l, "signed by a statement key that was not in force at %llu entries of the main chain",
            (unsigned long long)l->r->main_size);
    } else {
        err =
            kedge_state_path(l->dirs[1], &a->diag, a->state, "tenants/%s/" KEDGE_REFUSED_DIR, l->r->tenant.s);
        if (err) {
            return err;
        }
        judge(l);
    }
    put_row(l, &a->refusals[i]);
    return KEDGE_OK;
}

int kedgei_check_refusals(struct kedgei_audit *a)
{
    size_t count = a->options.refusal_count;
    a->refusals = count > 0 ? kedge_mem_new(count, sizeof *a->refusals) : NULL;
    int err = count > 0 && !a->refusals ? KEDGE_E_NOMEM : KEDGE_OK;
    for (size_t i = 0; i < count && !err; i++) {
        struct kedgei_look *l = kedge_mem_new(1, sizeof *l);
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
