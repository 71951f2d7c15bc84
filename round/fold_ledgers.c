/* Picks a job's entries out of its ledgers and hands them to the fold in the order in which they became
 * true. The main chain says which rounds there are; lists name the sites by tenant; a tenant's ledger has
 * its sites' group-assigned and, where samples are asked for, its updates.
 *
 * Entries are found by their keys, which begin with kind, job and round, so a restart reads what it needs
 * and not the whole history. */
#include "round/fold_ledgers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"

/* A group-assigned, as much of it as counts. A tenant's ledger has them by site; here they go by round. They
 * are small and few beside the updates, so all of a job's are read at once and sorted, instead of searching
 * each ledger again for every round. */
struct assigned {
    uint32_t round, site, group;
    enum kedge_group_how how;
    struct kedge_hash update;
};

struct reader {
    struct kedge_round_fold *io;
    const struct kedge_round_logs *logs;
    const struct kedge_round_log *log; /* that is read */
    uint32_t tenant;                   /* likewise, its place; KEDGE_ROUND_NONE: main chain */
    enum kedge_statement_kind kind;    /* that is expected */
    struct kedge_statement *st;
    uint64_t last_index; /* of the last key that was seen */
    char last_key[KEDGE_IDEM_KEY_MAX + 1];
    struct assigned *assigned; /* by (round, open or close) */
    size_t assigned_count, assigned_room, assigned_done;
    struct kedge_diag *d;
};

/* ---- entries ---- */

/* An index by key may be wrong where its ledger is right, so each entry that one names is looked at: another
 * kind of statement there is corruption, and is told with log and entry. */
static int read_entry(struct reader *r, uint64_t index)
{
    struct kedge_buf entry;
    struct kedge_signed_statement form;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    int err = kedge_ledger_get(r->log->ledger, index, &entry);
    if (!err) {
        err = kedge_statement_read(kedge_buf_view(&entry), r->st, &form, r->d);
        kedge_buf_deinit(&form.payload);
    }
    kedge_buf_deinit(&entry);
    if (err || r->st->kind != r->kind) {
        return kedge_diag_set(r->d, KEDGE_E_CORRUPT, "log %s, entry %" PRIu64 ": no %s: %s",
                              kedge_ledger_origin(r->log->ledger), index, kedge_statement_kind_name(r->kind),
                              err ? kedge_strerror(err) : "another statement stands there");
    }
    return KEDGE_OK;
}

static int not_folded(struct reader *r, int err, uint64_t index)
{
    if (r->d && r->d->text[0]) { /* a list says more */
        return err;
    }
    return kedge_diag_set(
        r->d, err, "log %s, entry %" PRIu64 ": %s", kedge_ledger_origin(r->log->ledger), index,
        err == KEDGE_E_CORRUPT ? "it names a group that the job cannot have" : kedge_strerror(err));
}

static void turn_to(struct reader *r, uint32_t tenant, enum kedge_statement_kind kind)
{
    r->tenant = tenant;
    r->log = tenant == KEDGE_ROUND_NONE ? &r->logs->main : &r->logs->tenants[tenant];
    r->kind = kind;
}

/* ---- lists ---- */

static int place_list(struct reader *r, uint32_t tenant, const struct kedge_input_list *list)
{
    uint32_t *sites = kedge_mem_new((size_t)list->count + 1, sizeof *sites);
    if (!sites) {
        return KEDGE_E_NOMEM;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        sites[i] = r->logs->site(r->logs->arg, tenant, &list->rows[i].site);
    }
    int err = kedge_round_fold_list(r->io, r->st, list, sites);
    kedge_mem_free(sites);
    return err;
}

/* A list is a blob of its tenant, and the main chain names the tenant by a salted hash only: it is looked
 * for among the job's tenants, of whom the reader has the salt. */
static int fold_list(struct reader *r, const struct kedge_hash *salted, const struct kedge_hash *digest)
{
    uint32_t tenant = 0;
    while (tenant < r->logs->tenant_count && !kedge_hash_eq(&r->logs->tenants[tenant].salted, salted)) {
        tenant++;
    }
    if (tenant == r->logs->tenant_count) {
        return kedge_diag_set(r->d, KEDGE_E_CORRUPT,
                              "the main chain names a tenant in a round of job \"%s\" that is not of the job",
                              r->io->spec->name.s);
    }
    struct kedge_input_list list;
    struct kedge_buf text;
    kedge_buf_init(&text, KEDGE_INPUT_LIST_MAX);
    int err = kedge_blobs_read(r->logs->tenants[tenant].blobs, digest, &text, r->d);
    if (!err) {
        err = kedge_input_list_decode(kedge_buf_view(&text), &list);
    }
    kedge_buf_deinit(&text);
    if (err) {
        return kedge_diag_wrap(r->d, err, "job \"%s\": a list of its rounds", r->io->spec->name.s);
    }
    err = place_list(r, tenant, &list);
    kedge_input_list_deinit(&list);
    return err;
}

static int fold_lists(struct reader *r)
{
    if (r->st->kind == KEDGE_ST_ROUND_OPENED) {
        const struct kedge_st_round_opened *o = &r->st->u.round_opened;
        for (uint32_t i = 0; i < o->tenant_count; i++) {
            KEDGE_TRY(fold_list(r, &o->tenants[i].id, &o->tenants[i].list));
        }
    } else if (r->st->kind == KEDGE_ST_AGGREGATE) {
        const struct kedge_st_aggregate *a = &r->st->u.aggregate;
        for (uint32_t i = 0; i < a->tenant_count; i++) {
            KEDGE_TRY(fold_list(r, &a->tenants[i].id, &a->tenants[i].list));
        }
    }
    return KEDGE_OK;
}

/* ---- statements ---- */

static uint32_t site_of(const struct reader *r)
{
    return r->kind == KEDGE_ST_UPDATE ? r->logs->site(r->logs->arg, r->tenant, &r->st->u.update.site)
                                      : KEDGE_ROUND_NONE;
}

static int visit(void *arg, struct kedge_view key, uint64_t index)
{
    struct reader *r = arg;
    (void)key;
    KEDGE_TRY(read_entry(r, index));
    int err = kedge_round_fold(r->io, r->st, site_of(r));
    if (!err) {
        err = fold_lists(r);
    }
    return err ? not_folded(r, err, index) : KEDGE_OK;
}

/* Every statement under the key KIND/JOB/ROUND/…. */
static int fold_under(struct reader *r, enum kedge_statement_kind kind, uint32_t tenant, uint32_t round)
{
    char prefix[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(prefix, sizeof prefix, "%s/%s/%08" PRIu32 "/", kedge_statement_kind_name(kind),
             r->io->spec->name.s, round);
    turn_to(r, tenant, kind);
    return kedge_ledger_scan_keys(r->log->ledger, kedge_view_str(prefix), visit, r);
}

/* The statement under that key of the main chain, if there is one. */
static int fold_one(struct reader *r, enum kedge_statement_kind kind, const char *key, bool *ret_found)
{
    uint64_t index;
    turn_to(r, KEDGE_ROUND_NONE, kind);
    int err = kedge_ledger_find(r->log->ledger, kedge_view_str(key), &index);
    *ret_found = err != KEDGE_E_NOT_FOUND;
    return !*ret_found ? KEDGE_OK : err ? err : visit(r, kedge_view_str(key), index);
}

/* ---- group-assigned ---- */

/* Room is doubled: a long job has as many of these as sites times moves, and their number is not known
 * before. */
static int note_assigned(void *arg, struct kedge_view key, uint64_t index)
{
    struct reader *r = arg;
    (void)key;
    int err = read_entry(r, index);
    if (err) {
        return err;
    }
    const struct kedge_st_group_assigned *a = &r->st->u.group_assigned;
    if (r->assigned_count == r->assigned_room) {
        size_t room = r->assigned_room ? 2 * r->assigned_room : 256;
        struct assigned *grown = kedge_mem_resize(r->assigned, room, sizeof *grown);
        if (!grown) {
            return KEDGE_E_NOMEM;
        }
        r->assigned = grown;
        r->assigned_room = room;
    }
    r->assigned[r->assigned_count++] =
        (struct assigned){.round = a->round,
                          .site = r->logs->site(r->logs->arg, r->tenant, &a->site),
                          .group = a->group,
                          .how = a->how,
                          .update = a->update};
    return KEDGE_OK;
}

static bool is_of_close(const struct assigned *a)
{
    const struct kedge_st_group_assigned st = {.how = a->how};
    return kedge_round_is_of_close(&st);
}

/* By round, and within one the group-assigned of the close last. Those that are equal by that are of
 * different sites or may come in any order: a site gets at most one while a round is open. */
static int compare(const void *pa, const void *pb)
{
    const struct assigned *a = pa, *b = pb;
    int c = (a->round > b->round) - (a->round < b->round);
    return c ? c : (int)is_of_close(a) - (int)is_of_close(b);
}

static int note_all_assigned(struct reader *r)
{
    char prefix[KEDGE_IDEM_KEY_MAX + 1];
    int err = KEDGE_OK;
    snprintf(prefix, sizeof prefix, "group-assigned/%s/", r->io->spec->name.s);
    for (uint32_t i = 0; i < r->logs->tenant_count && !err; i++) {
        turn_to(r, i, KEDGE_ST_GROUP_ASSIGNED);
        err = kedge_ledger_scan_keys(r->log->ledger, kedge_view_str(prefix), note_assigned, r);
    }
    if (!err && r->assigned_count > 0) {
        qsort(r->assigned, r->assigned_count, sizeof *r->assigned, compare);
    }
    return err;
}

/* Those of the rounds before this one, and with_open those that came while it was open. The group-assigned of
 * a close belong after that close although they name its round: `compare` sorts them to its end, and they are
 * left for the next call. */
static int fold_assigned(struct reader *r, uint32_t round, bool with_open)
{
    int err = KEDGE_OK;
    while (r->assigned_done < r->assigned_count && !err) {
        const struct assigned *a = &r->assigned[r->assigned_done];
        if (a->round > round || (a->round == round && (!with_open || is_of_close(a)))) {
            return KEDGE_OK;
        }
        r->st->kind = KEDGE_ST_GROUP_ASSIGNED;
        r->st->u.group_assigned = (struct kedge_st_group_assigned){
            .round = a->round, .group = a->group, .how = a->how, .update = a->update};
        err = kedge_round_fold(r->io, r->st, a->site);
        r->assigned_done++;
    }
    return err ? kedge_diag_set(r->d, err, "job \"%s\": a site was given a group that the job cannot have",
                                r->io->spec->name.s)
               : KEDGE_OK;
}

/* ---- rounds ---- */

/* Its aggregates and its step, unless it is open. */
static int fold_close(struct reader *r, uint32_t round, bool *ret_found)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t index;
    snprintf(key, sizeof key, "step/%s/%08" PRIu32, r->io->spec->name.s, round);
    int err = kedge_ledger_find(r->logs->main.ledger, kedge_view_str(key), &index);
    *ret_found = err != KEDGE_E_NOT_FOUND;
    if (err) {
        return *ret_found ? err : KEDGE_OK;
    }
    bool asks_samples =
        r->io->spec->plan.is_on                                              /* what they cost */
        || kedge_job_spec_grouped_by(r->io->spec) == KEDGE_GROUPED_BY_PLACE; /* lists have weights */
    for (uint32_t i = 0; i < r->logs->tenant_count && asks_samples; i++) {
        KEDGE_TRY(fold_under(r, KEDGE_ST_UPDATE, i, round));
    }
    KEDGE_TRY(fold_under(r, KEDGE_ST_AGGREGATE, KEDGE_ROUND_NONE, round));
    KEDGE_TRY(fold_one(r, KEDGE_ST_STEP, key, ret_found));
    return r->logs->closed ? r->logs->closed(r->logs->arg, r->io) : KEDGE_OK;
}

/* Its round-opened, and those that took the place of it, unless the main chain has not opened it. */
static int fold_opening(struct reader *r, uint32_t round, bool *ret_found)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "round-opened/%s/%08" PRIu32, r->io->spec->name.s, round);
    int err = fold_one(r, KEDGE_ST_ROUND_OPENED, key, ret_found);
    return err || !*ret_found ? err : fold_under(r, KEDGE_ST_ROUND_OPENED, KEDGE_ROUND_NONE, round);
}

/* Rounds follow each other, and the first that the main chain has not opened, or not closed, ends the fold.
 * Groups given by the close before come first (fold_assigned without the open ones), then the opening, then
 * those that were given while it was open. */
static int fold_rounds(struct reader *r, uint32_t from, uint32_t until)
{
    for (uint32_t round = from; round <= KEDGE_ROUNDS_MAX; round++) {
        bool is_there;
        KEDGE_TRY(fold_assigned(r, round, false));
        KEDGE_TRY(fold_opening(r, round, &is_there));
        if (!is_there && round == 0) {
            continue; /* no job begins there whose groups need no pre-training */
        }
        if (!is_there || round == until) {
            return KEDGE_OK;
        }
        KEDGE_TRY(fold_assigned(r, round, true));
        KEDGE_TRY(fold_close(r, round, &is_there));
        if (!is_there) {
            return KEDGE_OK;
        }
    }
    return KEDGE_OK;
}

static int visit_last(void *arg, struct kedge_view key, uint64_t index)
{
    struct reader *r = arg;
    r->last_index = index;
    snprintf(r->last_key, sizeof r->last_key, "%.*s", (int)key.len, (const char *)key.ptr);
    return KEDGE_OK;
}

/* The last round that is closed, or the one before `until`. Keys are in the order of rounds, so the last that
 * a scan meets is the last step. */
static int last_closed(struct reader *r, uint32_t until, uint32_t *ret)
{
    char prefix[KEDGE_IDEM_KEY_MAX + 1];
    turn_to(r, KEDGE_ROUND_NONE, KEDGE_ST_STEP);
    r->last_key[0] = '\0';
    snprintf(prefix, sizeof prefix, "step/%s/", r->io->spec->name.s);
    int err = kedge_ledger_scan_keys(r->log->ledger, kedge_view_str(prefix), visit_last, r);
    if (err || !r->last_key[0]) {
        *ret = 0;
        return err;
    }
    err = read_entry(r, r->last_index);
    *ret = err ? 0 : r->st->u.step.round;
    *ret = until == KEDGE_ROUND_NONE || *ret < until ? *ret : until > 0 ? until - 1 : 0;
    return err;
}

static int fold_all(struct reader *r, uint32_t from, uint32_t until)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    uint32_t last = 0;
    bool is_opened;
    snprintf(key, sizeof key, "job-opened/%s", r->io->spec->name.s);
    KEDGE_TRY(fold_one(r, KEDGE_ST_JOB_OPENED, key, &is_opened));
    KEDGE_TRY(last_closed(r, until, &last));
    KEDGE_TRY(note_all_assigned(r));
    from = from == KEDGE_ROUND_NONE ? kedge_round_fold_first(r->io->spec, last) : from;
    KEDGE_TRY(fold_rounds(r, from, until));
    return until == KEDGE_ROUND_NONE ? fold_assigned(r, KEDGE_ROUND_NONE, true) : KEDGE_OK;
}

int kedge_round_fold_ledgers(struct kedge_round_fold *io, const struct kedge_round_logs *logs, uint32_t from,
                             uint32_t until, struct kedge_diag *reterr)
{
    struct reader r = {.io = io, .logs = logs, .d = reterr, .st = kedge_mem_new(1, sizeof *r.st)};
    int err = r.st ? fold_all(&r, from, until) : KEDGE_E_NOMEM;
    kedge_mem_free(r.assigned);
    kedge_mem_free(r.st);
    return err;
}
