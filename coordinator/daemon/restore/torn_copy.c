/* Finds out at the start whether the folder's files belong together. A copy that was made with the
 * coordinator running has each file as of another moment: a ledger that is shorter than the main
 * chain says, a round with updates that was never opened. Served as it is, it would sign a second
 * history under the same keys, and every witness would convict it of a fork.
 *
 * There are two looks. One is cheap and made at every start: the last anchored size and root of
 * each tenant, and no update of a round that is still to open. The other reads everything and is
 * made only when STATE/in-use shows that the folder was copied while in use. */
#include "coordinator/daemon/restore/torn_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/note.h"
#include "chain/state/backup.h"
#include "chain/state/in_use.h"
#include "chain/statement/main_entry.h"
#include "chain/store/blob/guard.h"
#include "chain/store/fsck.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/restore/restore_walk.h"

enum { REFS_MAX = 1 << 30 };

static int torn(struct kedge_diag *d)
{
    (void)kedge_diag_wrap(d, KEDGE_E_CORRUPT, "this folder's files are of different times");
    (void)kedge_diag_hint(
        d, "it was copied while its coordinator ran, or a part of it was put back alone. "
           "Copy a coordinator that runs with `kedge backup`, and take a copy with `kedge restore`");
    return KEDGE_E_CORRUPT;
}

/* ---- a copy that was made while its coordinator ran ---- */

struct look {
    const char *state;
    const char **folders; /* of all logs' blobs: main, then the tenants */
    char (*paths)[KEDGE_PATH_MAX];
    struct kedge_id *tenants;
    size_t count;
    bool found;
    struct kedge_diag *d;
};

static void take_finding(void *arg, const struct kedge_fsck_finding *f)
{
    struct look *l = arg;
    if (f->severity == KEDGE_FSCK_DAMAGE && !l->found) {
        l->found = true;
        (void)kedge_diag_set(l->d, KEDGE_E_CORRUPT, "%s: %s: %s", f->where, f->part, f->text);
    }
}

/* As `kedge` checks a folder, but with files that nobody names as no finding: an upload that was on
 * its way leaves some. */
static int look_at_log(struct look *l, size_t i)
{
    struct kedge_fsck f = {.report = take_finding, .arg = l};
    struct kedge_fsck_counts counts = {0};
    struct kedge_buf refs;
    char store[KEDGE_PATH_MAX], mark[KEDGE_PATH_MAX], keys[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(store, l->d, l->folders[i], "ledger.lmdb"));
    KEDGE_TRY(kedge_state_path(mark, l->d, l->state, "high-water/%s", i == 0 ? "main" : l->tenants[i - 1].s));
    kedge_buf_init(&refs, REFS_MAX);
    struct kedge_fsck_ledger ledger = {.dir = store, .mark = mark, .gone = "erased/"};
    int err = kedge_fsck_ledger(&f, &ledger, &refs, &counts, l->d);
    struct kedge_fsck_blobs blobs = {.dir = l->folders[i],
                                     .refs = kedge_buf_view(&refs),
                                     .strays_are_fine = true,
                                     .keys_dir =
                                         kedge_state_blob_keys_beside(l->folders[i], keys) ? keys : NULL,
                                     .keys_belong_here = true,
                                     .elsewhere = l->folders + 1,
                                     .elsewhere_count = i == 0 ? l->count - 1 : 0};
    err = err || l->found ? err : kedge_fsck_blobs(&f, &blobs, &counts, l->d);
    kedge_buf_deinit(&refs);
    return err;
}

/* In a child process: LMDB trusts its file, so a torn page can end in an assertion or a signal, and
 * torn pages are what is looked for. */
static int look_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *reterr)
{
    struct look *l = arg;
    struct kedge_fsck f = {.report = take_finding, .arg = l};
    struct kedge_fsck_counts counts = {0};
    char own[KEDGE_PATH_MAX];
    (void)ret_out;
    l->d = reterr;
    KEDGE_TRY(kedge_state_path(own, reterr, l->state, "coordinator.lmdb"));
    KEDGE_TRY(kedge_fsck_store(&f, own, &counts, reterr));
    for (size_t i = 0; i < l->count && !l->found; i++) {
        KEDGE_TRY(look_at_log(l, i));
    }
    return l->found ? KEDGE_E_CORRUPT : KEDGE_OK;
}

static int name_folders(struct look *l)
{
    l->folders = kedge_mem_new(l->count, sizeof *l->folders);
    l->paths = kedge_mem_new(l->count, sizeof *l->paths);
    int err =
        l->folders && l->paths ? KEDGE_OK : kedge_diag_set(l->d, KEDGE_E_NOMEM, "out of memory at start");
    for (size_t i = 0; i < l->count && !err; i++) {
        l->folders[i] = l->paths[i];
        err = i == 0 ? kedge_state_path(l->paths[i], l->d, l->state, "main")
                     : kedge_state_path(l->paths[i], l->d, l->state, "tenants/%s", l->tenants[i - 1].s);
    }
    return err;
}

static int look_guarded(struct look *l)
{
    KEDGE_TRY(kedge_state_tenants(l->state, &l->tenants, &l->count, l->d));
    l->count++; /* the main chain's, in front of them */
    KEDGE_TRY(name_folders(l));
    return kedge_store_guarded(look_in_child, l, 0, NULL, l->d);
}

static int look_at_all(const char *state, struct kedge_diag *d)
{
    struct look l = {.state = state, .d = d};
    int err = look_guarded(&l);
    kedge_mem_free(l.folders);
    kedge_mem_free(l.paths);
    kedge_mem_free(l.tenants);
    return err == KEDGE_E_CORRUPT || err == KEDGE_E_FORK || err == KEDGE_E_SHORTER ? torn(d) : err;
}

int kedge_torn_check_folder(const char *state, struct kedge_diag *d)
{
    if (kedge_backup_is(state)) {
        (void)kedge_diag_set(d, KEDGE_E_STATE, "%s is a backup, which stays as it is", state);
        (void)kedge_diag_hint(d, "make a state folder of it: kedge restore %s STATE", state);
        return KEDGE_E_STATE;
    }
    if (kedge_in_use_look(state) != KEDGE_IN_USE_ELSEWHERE) {
        return KEDGE_OK;
    }
    kedge_log(
        KEDGE_LOG_WARN, "copied folder",
        "%s is a copy that was made while its coordinator ran or after it was killed: looking at all of it",
        state);
    return look_at_all(state, d);
}

/* ---- logs of different times ---- */

static int parse_anchored(const struct kedge_walk *w, struct kedge_note *note, struct kedge_checkpoint *ret)
{
    struct kedge_main_entry entry;
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_ledger_get(w->ledger, w->last_index, &bytes));
    KEDGE_TRY(kedge_main_entry_decode(kedge_buf_view(&bytes), &entry));
    KEDGE_TRY(kedge_note_parse(entry.body, note));
    KEDGE_TRY(kedge_checkpoint_parse(note->text, ret));
    ret->origin = ret->extensions = kedge_view_of(NULL, 0); /* they were in bytes */
    return KEDGE_OK;
}

/* Size and root that the main chain's entry says the tenant's ledger had. */
static int read_anchored(struct kedge_walk *w, struct kedge_checkpoint *ret)
{
    struct kedge_note *note = kedge_mem_new(1, sizeof *note);
    int err = note ? parse_anchored(w, note, ret) : KEDGE_E_NOMEM;
    kedge_mem_free(note);
    return err ? kedge_diag_set(w->d, err, "log %s, entry %" PRIu64 ": %s", kedge_ledger_origin(w->ledger),
                                w->last_index, kedge_strerror(err))
               : KEDGE_OK;
}

/* Size first, then root. A shorter ledger is the usual case (its file was copied earlier); another
 * root at the same size means that it was put back from another history. */
int kedge_torn_check_anchored(struct kedge_walk *w, const struct kedge_tenant *t)
{
    struct kedge_checkpoint anchored;
    struct kedge_hash root;
    uint64_t size = kedge_ledger_size(t->log.ledger);
    KEDGE_TRY(read_anchored(w, &anchored));
    if (anchored.size > size) {
        (void)kedge_diag_set(w->d, KEDGE_E_CORRUPT,
                             "tenant %s: its ledger has %" PRIu64
                             " entries, the main chain speaks of %" PRIu64,
                             t->id.s, size, anchored.size);
        return torn(w->d);
    }
    int err = kedge_ledger_root(t->log.ledger, anchored.size, &root);
    if (err) {
        return kedge_diag_set(w->d, err, "tenant %s: its ledger: %s", t->id.s, kedge_strerror(err));
    }
    if (!kedge_hash_eq(&root, &anchored.root)) {
        (void)kedge_diag_set(w->d, KEDGE_E_CORRUPT,
                             "tenant %s: the first %" PRIu64
                             " entries of its ledger are not those that the main "
                             "chain speaks of",
                             t->id.s, anchored.size);
        return torn(w->d);
    }
    return KEDGE_OK;
}

static int stop_at_first(void *arg, struct kedge_view key, uint64_t index)
{
    uint64_t *found = arg;
    (void)key;
    *found = index;
    return 1;
}

/* Keys have the round in them, so one look at the first key from that round on is enough. */
int kedge_torn_check_rounds(struct kedge_walk *w)
{
    const char *name = w->job->spec.name.s;
    char prefix[KEDGE_IDEM_KEY_MAX + 1], from[KEDGE_IDEM_KEY_MAX + 1];
    int err = kedge_walk_last(w, w->h->main.ledger, "round-opened", name);
    snprintf(prefix, sizeof prefix, "update/%s/", name);
    snprintf(from, sizeof from, "update/%s/%08" PRIu32, name, w->found ? w->job->round + 1 : 0);
    for (uint32_t i = 0; i < w->job->params.tenant_count && !err; i++) {
        const struct kedge_tenant *t = &w->h->tenants[w->job->params.tenants[i]];
        uint64_t index = 0;
        err = kedge_ledger_scan_keys_from(t->log.ledger, kedge_view_str(prefix), kedge_view_str(from),
                                          stop_at_first, &index);
        if (err == 1) {
            (void)kedge_diag_set(w->d, KEDGE_E_CORRUPT,
                                 "tenant %s: entry %" PRIu64
                                 " is an update of a round of job %s that the main "
                                 "chain has not opened",
                                 t->id.s, index, name);
            return torn(w->d);
        }
    }
    return err;
}
