/* kedge ledger repair: a damaged log of a state folder is built anew from a replica or a backup, and from
 * what is intact here. What comes out is what was signed, or nothing is changed. */
#include "chain/store/repair.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/statement/entry_index.h"
#include "chain/store/blob/guard.h"
#include "chain/store/fsck.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "crypto/keyfile.h"

enum { REFS_MAX = 1 << 30, REFS_MS = 600000 };

_Static_assert((int)KEDGE_ENTRY_REFS_MAX == (int)KEDGE_APPEND_REFS_MAX, "one limit");

struct mending {
    struct kedge_cli *c;
    const char *state, *log;
    bool in_main;
    char deployment[KEDGE_DEPLOYMENT_MAX + 1], origin[KEDGE_ORIGIN_MAX + 1];
    char dir[KEDGE_PATH_MAX], from[KEDGE_PATH_MAX], mark[KEDGE_PATH_MAX];
    struct kedge_key_pair key;
    int lock_fd; /* of the coordinator's own store: it cannot start meanwhile */
};

/* The indexes of a ledger (keys, blobs) are no part of what was signed; they follow from the entries and are
 * made anew, by the rules of the coordinator (kedge_entry_index). */
static int index_entry(void *arg, struct kedge_view entry, struct kedge_buf *ret_key,
                       struct kedge_hash *ret_refs, size_t *ret_count)
{
    const struct mending *m = arg;
    int err = kedge_entry_index(entry, m->deployment, m->in_main, ret_key, ret_refs, ret_count);
    return err == KEDGE_E_NOMEM ? err : KEDGE_OK; /* what is no statement was appended without a key */
}

static void show(void *arg, uint64_t done, uint64_t total)
{
    kedge_cli_progress(arg, "building", done, total, "entries");
}

/* ---- which folders ---- */

static bool has(const char *dir, const char *name)
{
    char path[KEDGE_PATH_MAX];
    return kedge_path_join(path, dir, name) == KEDGE_OK && kedge_file_exists(path);
}

/* The log's folder below a state folder; a folder with a store in it is taken as it is. */
static int find_copy(struct mending *m, const char *from, struct kedge_diag *d)
{
    static const char *const below[] = {"", "state/"};
    char name[KEDGE_ID_MAX + 32];
    KEDGE_TRY(kedge_cli_may_look(from, d));
    int err = KEDGE_E_NOT_FOUND;
    for (size_t i = 0; i < 2 && err == KEDGE_E_NOT_FOUND; i++) {
        snprintf(name, sizeof name, m->in_main ? "%smain" : "%stenants/%s", below[i], m->log);
        char store[sizeof name + sizeof "/ledger.lmdb"];
        snprintf(store, sizeof store, "%s/ledger.lmdb", name);
        if (has(from, store)) {
            err = kedge_path_join(m->from, from, name);
        }
    }
    if (err == KEDGE_E_NOT_FOUND && has(from, "ledger.lmdb")) {
        int n = snprintf(m->from, sizeof m->from, "%s", from);
        err = n >= 0 && (size_t)n < sizeof m->from ? KEDGE_OK : KEDGE_E_TOO_LONG;
    }
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(d, err, "%s: there is no copy of log \"%s\" here", kedge_cli_word(from).s,
                             m->log);
        (void)kedge_diag_hint(d, "name a state folder, or a folder with the log's ledger.lmdb in it");
        return err;
    }
    return err ? kedge_diag_set(d, err, "%s: path too long", from) : KEDGE_OK;
}

/* The private key of the log is needed, because the new store is opened as its coordinator opens it. A copy
 * has no such key: it is followed anew instead. */
static int find_log(struct mending *m, const char *name, struct kedge_diag *d)
{
    char key[KEDGE_PATH_MAX];
    struct kedge_id id;
    m->in_main = strcmp(name, "main") == 0;
    if (!m->in_main && kedge_id_from(kedge_view_str(name), &id) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_USAGE, "\"%s\" is no log: expected main or a tenant's name",
                              kedge_cli_word(name).s);
    }
    KEDGE_TRY(kedge_state_deployment(m->state, m->deployment, d));
    KEDGE_TRY(kedge_state_path(m->dir, d, m->state, m->in_main ? "main" : "tenants/%s", name));
    KEDGE_TRY(kedge_state_path(m->mark, d, m->state, "high-water/%s", name));
    KEDGE_TRY(kedge_state_path(key, d, m->state, "keys/log-%s.pem", name));
    if (!kedge_file_exists(m->dir)) {
        (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND, "%s: there is no log \"%s\" here", m->state, name);
        return KEDGE_E_NOT_FOUND;
    }
    KEDGE_TRY(kedge_keyfile_read_private(key, &m->key, d));
    snprintf(m->origin, sizeof m->origin, "%s/%s", m->deployment, name);
    return KEDGE_OK;
}

/* The coordinator's own lock is held for as long as the repair takes: a coordinator that started meanwhile
 * would sign on from a log that is being replaced. */
static int lock_coordinator(struct mending *m, struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX], lock[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(folder, d, m->state, "coordinator.lmdb"));
    KEDGE_TRY(kedge_state_path(lock, d, m->state, "coordinator.lmdb/kedge.lock"));
    if (!kedge_file_exists(folder)) {
        return KEDGE_OK;
    }
    m->lock_fd = kedge_file_lock(lock, d);
    if (m->lock_fd == KEDGE_E_LOCKED) {
        (void)kedge_diag_set(d, KEDGE_E_LOCKED, "%s: the coordinator is running", m->state);
        (void)kedge_diag_hint(d, "stop it first; a repair needs the log for itself");
    }
    return m->lock_fd < 0 ? m->lock_fd : KEDGE_OK;
}

/* ---- blobs ---- */

struct refs_of {
    char store[KEDGE_PATH_MAX];
};

static void ignore_finding(void *arg, const struct kedge_fsck_finding *f)
{
    (void)arg;
    (void)f;
}

/* fsck is asked for the references only; what it finds in a store that is being mended is known already. */
static int refs_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    const struct refs_of *r = arg;
    struct kedge_fsck fsck = {.report = ignore_finding};
    struct kedge_fsck_ledger ledger = {.dir = r->store, .gone = "erased/"};
    struct kedge_fsck_counts counts = {0};
    return kedge_fsck_ledger(&fsck, &ledger, ret_out, &counts, d);
}

static int read_refs(const char *dir, struct kedge_buf *ret, struct kedge_diag *d)
{
    struct refs_of r;
    int err = kedge_path_join(r.store, dir, "ledger.lmdb");
    return err ? err : kedge_store_guarded(refs_in_child, &r, REFS_MS, ret, d);
}

/* Tenants' folders, where lists that the main chain names may be. */
static int list_elsewhere(const struct mending *m, char (**ret)[KEDGE_PATH_MAX], size_t *ret_count,
                          struct kedge_diag *d)
{
    struct kedge_id *ids = NULL;
    size_t count = 0;
    if (!m->in_main) {
        return KEDGE_OK;
    }
    int err = kedge_state_tenants(m->state, &ids, &count, d);
    if (!err) {
        *ret = kedge_mem_new(count + 1, sizeof **ret);
        err = *ret ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < count && !err; i++) {
        err = kedge_state_path((*ret)[i], d, m->state, "tenants/%s", ids[i].s);
        *ret_count = i + 1;
    }
    kedge_mem_free(ids);
    return err;
}

/* After the ledger, because only the whole ledger says which blobs there must be. */
static int mend_blobs(const struct mending *m, struct kedge_repaired_blobs *ret, struct kedge_diag *d)
{
    struct kedge_buf refs KEDGE_CLEANUP(kedge_buf_deinit), also KEDGE_CLEANUP(kedge_buf_deinit);
    char(*folders)[KEDGE_PATH_MAX] KEDGE_CLEANUP(kedge_mem_release) = NULL;
    char main_dir[KEDGE_PATH_MAX];
    size_t count = 0;
    kedge_buf_init(&refs, REFS_MAX);
    kedge_buf_init(&also, REFS_MAX);
    KEDGE_TRY(read_refs(m->dir, &refs, d));
    if (!m->in_main && kedge_state_path(main_dir, NULL, m->state, "main") == KEDGE_OK) {
        (void)!read_refs(main_dir, &also, NULL); /* lists of inputs, which the main chain names */
    }
    KEDGE_TRY(list_elsewhere(m, &folders, &count, d));
    const char **elsewhere KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(count + 1, sizeof *elsewhere);
    if (!elsewhere) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        elsewhere[i] = folders[i];
    }
    char keys[KEDGE_PATH_MAX], from_keys[KEDGE_PATH_MAX];
    struct kedge_blobs_options options = {.read_only = false};
    struct kedge_id tenant;
    if (m->in_main || kedge_id_from(kedge_view_str(m->log), &tenant) == KEDGE_OK) {
        KEDGE_TRY(kedge_state_blob_options(m->state, m->in_main ? NULL : &tenant, keys, &options, d));
    }
    struct kedge_repair_blobs r = {.dir = m->dir,
                                   .from = m->from,
                                   .keys_dir = options.keys_dir,
                                   .from_keys_dir =
                                       kedge_state_blob_keys_beside(m->from, from_keys) ? from_keys : NULL,
                                   .pack = options.pack,
                                   .encrypt = options.encrypt,
                                   .refs = kedge_buf_view(&refs),
                                   .also = kedge_buf_view(&also),
                                   .elsewhere = elsewhere,
                                   .elsewhere_count = count};
    return kedge_repair_blobs(&r, ret, d);
}

/* ---- the command ---- */

/* A blob that is lost in both copies leaves the log whole and the exit code 1: the statements hold, and what
 * they name has to come from a third copy. */
static int tell(struct mending *m, const struct kedge_repaired *r, const struct kedge_repaired_blobs *b)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    struct kedge_cli *c = m->c;
    kedge_cli_progress_end(c);
    kedge_cli_say(c, "Log %s is whole again: %llu entries, %llu of them from the damaged store.\n", m->log,
                  (unsigned long long)r->size, (unsigned long long)r->from_here);
    kedge_cli_say(c, "Blobs: %llu were fine, %llu brought from the copy, %llu lost.\n",
                  (unsigned long long)b->fine, (unsigned long long)b->brought, (unsigned long long)b->lost);
    kedge_hash_hex(&b->first_lost, hex);
    if (b->lost > 0) {
        kedge_cli_say(c, "Lost is %s%s: run this again with another copy that has it.\n", hex,
                      b->lost > 1 ? ", and others" : "");
    }
    if (r->aside[0]) {
        kedge_cli_say(c, "The damaged store is kept at %s\n", r->aside);
    }
    kedge_cli_say(c, "Look once more: kedge ledger fsck %s\n", m->state);
    json_t *data = json_pack("{s:s,s:I,s:I,s:I,s:I,s:I}", "log", m->log, "size", (json_int_t)r->size,
                             "entries_from_here", (json_int_t)r->from_here, "blobs_fine", (json_int_t)b->fine,
                             "blobs_brought", (json_int_t)b->brought, "blobs_lost", (json_int_t)b->lost);
    if (data && r->aside[0]) {
        json_object_set_new(data, "aside", json_string(r->aside));
    }
    return kedge_cli_answer(c, data, b->lost > 0 ? 1 : 0);
}

/* The order matters: the copy is looked at before the lock is taken, so that a wrong path costs a running
 * coordinator nothing, and blobs come after the ledger that names them. */
static int mend(struct mending *m, const char *from, bool mark_is_lost, struct kedge_repaired *done,
                struct kedge_repaired_blobs *blobs, struct kedge_diag *d)
{
    KEDGE_TRY(find_log(m, m->log, d));
    KEDGE_TRY(find_copy(m, from, d));
    KEDGE_TRY(lock_coordinator(m, d));
    struct kedge_repair r = {.dir = m->dir,
                             .from = m->from,
                             .origin = m->origin,
                             .key = &m->key,
                             .mark = m->mark,
                             .mark_is_lost = mark_is_lost,
                             .index = index_entry,
                             .index_arg = m,
                             .progress = show,
                             .progress_arg = m->c};
    KEDGE_TRY(kedge_repair_ledger(&r, done, d));
    return mend_blobs(m, blobs, d);
}

/* What refuses says no: the copy is no help. A damaged copy is not this state folder's damage either. */
static int exit_code(int err)
{
    bool is_no =
        err == KEDGE_E_FORK || err == KEDGE_E_SHORTER || err == KEDGE_E_CORRUPT || err == KEDGE_E_STATE;
    return is_no ? 1 : 0;
}

int kedge_cmd_ledger_repair(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct mending m = {.c = c, .lock_fd = -1};
    struct kedge_repaired done;
    struct kedge_repaired_blobs blobs;
    bool mark_is_lost = kedge_cli_flag(c, "mark-lost");
    const char *from = kedge_cli_option(c, "from", NULL);
    if (!kedge_cli_no_more(c, 2)) {
        return 2;
    }
    m.state = kedge_cli_argument(c, 0);
    m.log = kedge_cli_argument(c, 1);
    if (!m.log) {
        return kedge_cli_usage(c, "STATE and LOG are needed: a state folder, and main or a tenant's name");
    }
    if (!from) {
        return kedge_cli_usage(c, "--from is missing: the folder of a replica or backup of this log");
    }
    int err = mend(&m, from, mark_is_lost, &done, &blobs, &d);
    kedge_key_wipe(&m.key);
    if (m.lock_fd >= 0) {
        close(m.lock_fd);
    }
    if (err) {
        return exit_code(err) ? kedge_cli_fail_as(c, err, &d, exit_code(err)) : kedge_cli_fail(c, err, &d);
    }
    return tell(&m, &done, &blobs);
}
