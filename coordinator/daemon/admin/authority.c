#include "coordinator/daemon/admin/authority.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/statement/entry_index.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/authority_impl.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/rounds/main_batch.h"
#include "coordinator/daemon/rounds/rounds.h"
#include "coordinator/daemon/sites/known.h"
#include "coordinator/daemon/tenant_keys.h"

void kedge_authority_free(struct kedge_authority_change *c)
{
    kedge_main_batch_free(c->batch);
    kedge_buf_deinit(&c->envelope);
    kedge_key_wipe(&c->next);
    kedge_mem_free(c->st);
    kedge_mem_free(c);
}

/* ---- at start ---- */

static bool concerns(enum kedge_statement_kind kind)
{
    return kedge_mainbook_concerns(kind);
}

static int take_entry(struct kedge_host *h, uint64_t index, struct kedge_statement *st, struct kedge_diag *d)
{
    struct kedge_signed_statement entry;
    struct kedge_main_entry parts;
    struct kedge_buf bytes;
    struct kedge_diag why = {.text = ""};
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    int err = kedge_ledger_get(h->main.ledger, index, &bytes);
    err = err ? err : kedge_main_entry_decode(kedge_buf_view(&bytes), &parts);
    if (!err) {
        err = kedge_statement_read(parts.body, st, &entry, &why);
        kedge_buf_deinit(&entry.payload);
        err = err ? err : kedge_mainbook_apply(&h->authority.book, st, index, &why);
    }
    kedge_buf_deinit(&bytes);
    if (err == KEDGE_E_NOMEM) {
        return kedge_diag_set(d, err, "%s", kedge_strerror(err));
    }
    return err ? kedge_diag_set(d, KEDGE_E_CORRUPT, "log %s, entry %" PRIu64 ": %s", h->main.origin, index,
                                why.text[0] ? why.text : kedge_strerror(err))
               : KEDGE_OK;
}

/* The newest rotations that fit, in their order. */
static void list_rotations(struct kedge_host *h)
{
    struct kedge_authority *a = &h->authority;
    struct kedge_buf entry;
    size_t room = KEDGE_ROTATIONS_MAX;
    uint32_t first = a->book.key_count;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    while (first > 1) { /* the first key came with the policy */
        kedge_buf_clear(&entry);
        if (kedge_ledger_get(h->main.ledger, a->book.keys[first - 1].from, &entry) != KEDGE_OK
            || entry.len + 4 > room) {
            break;
        }
        room -= entry.len + 4;
        first--;
    }
    kedge_buf_clear(&a->rotations);
    for (uint32_t i = first; i < a->book.key_count; i++) {
        kedge_buf_clear(&entry);
        if (i > 0 && kedge_ledger_get(h->main.ledger, a->book.keys[i].from, &entry) == KEDGE_OK) {
            kedge_buf_put_u32(&a->rotations, (uint32_t)entry.len);
            kedge_buf_put(&a->rotations, entry.ptr, entry.len);
        }
    }
    kedge_buf_deinit(&entry);
}

/* The key of the file and the key in force: after a crash between the rotation and the renaming the file's
 * comes next. */
static int check_key(struct kedge_host *h, struct kedge_diag *d)
{
    const struct kedge_public_key *now = kedge_mainbook_key(&h->authority.book);
    char path[KEDGE_PATH_MAX], hex[2 * KEDGE_KEY_LEN + 1];
    struct kedge_key_pair next;
    int err = kedge_state_path(path, d, h->state, "keys/statement-next.pem");
    bool begun = !err && kedge_file_exists(path);
    if (err || kedge_public_key_eq(now, &h->statement_key.public)) {
        if (begun) {
            kedge_log(KEDGE_LOG_WARN, "statement key",
                      "a rotation was begun and is not in the main chain; `kedge key rotate-statement` "
                      "goes on with it");
        }
        return err;
    }
    if (begun) {
        err = kedge_state_key(h->state, KEDGE_STATE_KEY_STATEMENT_NEXT, &next, d);
        if (err) {
            return err;
        }
        if (kedge_public_key_eq(now, &next.public)) {
            err = kedge_state_key_switch(h->state, d);
            h->statement_key = next;
            kedge_key_wipe(&next);
            kedge_log(KEDGE_LOG_INFO, "statement key", "an interrupted rotation is complete");
            return err;
        }
        kedge_key_wipe(&next);
    }
    kedge_hex_encode(now->b, sizeof now->b, hex);
    (void)kedge_diag_set(d, KEDGE_E_KEY, "keys/statement.pem is not the statement key in force, %s", hex);
    return kedge_diag_hint(d, "the main chain's entry %" PRIu64 " names it: put that key's file there",
                           h->authority.book.keys[h->authority.book.key_count - 1].from);
}

int kedge_host_authority_load(struct kedge_host *h, struct kedge_diag *d)
{
    uint64_t *indexes = NULL;
    size_t count = 0;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    kedge_mainbook_init(&h->authority.book);
    kedge_buf_init(&h->authority.rotations, KEDGE_ROTATIONS_MAX);
    int err = st ? kedge_entries_of(h->main.ledger, concerns, &indexes, &count) : KEDGE_E_NOMEM;
    if (err) {
        (void)kedge_diag_set(d, err, "log %s: cannot read its keys: %s", h->main.origin, kedge_strerror(err));
    }
    err = err ? err : take_entry(h, 0, st, d); /* the policy has no name after its kind */
    for (size_t i = 0; i < count && !err; i++) {
        err = take_entry(h, indexes[i], st, d);
    }
    kedge_mem_free(indexes);
    kedge_mem_free(st);
    err = err ? err : check_key(h, d);
    if (!err) {
        list_rotations(h);
    }
    return err;
}

void kedge_host_authority_close(struct kedge_host *h)
{
    kedge_mainbook_deinit(&h->authority.book);
    kedge_buf_deinit(&h->authority.rotations);
}

bool kedge_host_key_is_known(const struct kedge_host *h, const struct kedge_public_key *key)
{
    bool known =
        kedge_public_key_eq(key, &h->tls_key.public) || kedge_mainbook_names(&h->authority.book, key);
    for (uint32_t i = 0; i < h->tenant_count && !known; i++) {
        known = kedge_keybook_find(&h->tenants[i].keys, key)
                || kedge_public_key_eq(key, &h->tenants[i].log.key.public);
    }
    return known;
}

int kedge_host_check_coming(const struct kedge_host *h, const struct kedge_statement *st,
                            struct kedge_diag *d)
{
    const struct kedge_public_key *keys[2] = {NULL, NULL};
    bool taken = false;
    switch ((int)st->kind) {
    case KEDGE_ST_KEY_ADDED:
        keys[0] = &st->u.key_added.public_key;
        break;
    case KEDGE_ST_KEY_ROTATED:
        keys[0] = &st->u.key_rotated.new_key;
        taken = st->u.key_rotated.role == KEDGE_ROLE_SITE_TLS
                && (kedge_host_site_by_key(h, keys[0]) != KEDGE_COORD_NONE
                    || kedge_host_witness_by_key(h, keys[0]) != KEDGE_COORD_NONE);
        break;
    case KEDGE_ST_KEY_RECOVERED:
        keys[0] = &st->u.key_recovered.public_key;
        break;
    case KEDGE_ST_SITE_ENROLLED:
        keys[0] = &st->u.site_enrolled.tls_key;
        keys[1] = &st->u.site_enrolled.statement_key;
        break;
    case KEDGE_ST_WITNESS_ENROLLED:
        keys[0] = &st->u.witness_enrolled.tls_key;
        keys[1] = &st->u.witness_enrolled.cosign_key;
        break;
    default:
        break;
    }
    for (int i = 0; i < 2 && keys[i]; i++) {
        taken = taken || kedge_public_key_eq(keys[i], &h->tls_key.public)
                || kedge_mainbook_names(&h->authority.book, keys[i]);
    }
    return taken
               ? kedge_diag_set(d, KEDGE_E_KEY, "a key that has or had another role here; one key, one role")
               : KEDGE_OK;
}

/* ---- becoming durable ---- */

bool kedge_host_authority_holds(const struct kedge_host *h)
{
    return h->authority.holds;
}

static void let_go(struct kedge_host *h)
{
    h->authority.holds = false;
    kedge_host_assigned_go_on(h);
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        if (h->jobs[i].used && h->jobs[i].batch && h->jobs[i].batch->held) {
            kedge_main_batch_submit(h, &h->jobs[i]);
        }
    }
}

static void switch_key(struct kedge_host *h, const struct kedge_authority_change *c)
{
    struct kedge_diag d = {.text = ""};
    h->statement_key = c->next;
    if (kedge_state_key_switch(h->state, &d) != KEDGE_OK) { /* the next start does it */
        kedge_log(KEDGE_LOG_WARN, "statement key", "%s", d.text);
    }
    list_rotations(h);
}

static void take_change(struct kedge_host *h, struct kedge_authority_change *c)
{
    struct kedge_diag d = {.text = ""};
    h->main_known = c->index >= h->main_known ? c->index + 1 : h->main_known;
    kedge_main_batch_settle(h, c->batch);
    int err = kedge_mainbook_apply(&h->authority.book, c->st, c->index, &d);
    KEDGE_ASSERT(err == KEDGE_OK); /* it was checked: without memory for it there is no way on */
    if (kedge_authority_is_rotation(c)) {
        switch_key(h, c);
    } else if (c->st->kind == KEDGE_ST_ROLE_REVOKED) {
        (void)kedge_net_server_drop_key(h->server, &c->st->u.role_revoked.public_key);
    }
    kedge_host_known_refresh(h);
    kedge_log(KEDGE_LOG_INFO, "authority", "%s entry=%" PRIu64 " approvals=%u",
              kedge_statement_kind_name(c->st->kind), c->index, c->approvals);
}

static void change_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct kedge_authority_change *c = (struct kedge_authority_change *)item;
    struct kedge_diag d;
    h->authority.pending = NULL;
    /* Stored while no checkpoint could be signed over it: it stands there for ever and is in force. */
    if (!c->err || (c->err == KEDGE_E_UNKNOWN && kedge_authority_is_stored(h, c))) {
        take_change(h, c);
    } else if (c->batch) {
        kedge_main_batch_abandon(h, c->batch);
    }
    if (!c->err) {
        kedge_admin_ok(c->req,
                       json_pack("{s:I,s:s,s:i}", "leaf_index", (json_int_t)c->index, "statement",
                                 kedge_statement_kind_name(c->st->kind), "approvals", (int)c->approvals));
    } else {
        (void)kedge_diag_set(&d, c->err, "main chain: %s", c->why[0] ? c->why : kedge_strerror(c->err));
        kedge_admin_error(c->req, c->err, &d);
    }
    if (c->err == KEDGE_E_IO || kedge_err_class(c->err) == KEDGE_CLASS_CORRUPT) {
        kedge_host_fail(h, c->err, "the main chain"); /* the next start sees what became durable */
    } else if (kedge_authority_is_rotation(c)) {
        let_go(h);
    }
    kedge_authority_free(c);
}

static void change_done(void *arg, const struct kedge_commit_result *result)
{
    struct kedge_authority_change *c = arg;
    kedge_host_log_commit(result);
    c->err = result->err;
    snprintf(c->why, sizeof c->why, "%s", result->err && result->diag ? result->diag->text : "");
    c->index = result->err ? 0 : result->items[result->count - 1].index;
    kedge_host_post(c->h, &c->item);
}

/* After the tenants' checkpoints, where who signed what, or who is admin, depends on them. */
static void hand_over(struct kedge_host *h, struct kedge_authority_change *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf key;
    kedge_buf_init(&key, KEDGE_IDEM_KEY_MAX);
    kedge_statement_key(c->st->kind, &c->st->u, &key);
    /* Admins may have changed while a rotation waited, and the checkpoints are those of now. */
    int err = c->approvals > 0 ? kedge_authority_check_approvals(h, c, &d) : KEDGE_OK;
    err = err ? err : key.err ? key.err : kedge_main_batch_new(&c->batch);
    for (uint32_t i = 0; i < h->tenant_count && !err && (kedge_authority_is_rotation(c) || c->approvals > 0);
         i++) {
        err = kedge_main_batch_checkpoint(c->batch, i);
    }
    err = err ? err : kedge_main_batch_envelope(c->batch, kedge_buf_view(&c->envelope), kedge_buf_view(&key));
    err = err ? err : kedge_main_batch_hand_over(h, c->batch, change_done, c);
    kedge_buf_deinit(&key);
    if (err) { /* else `c` is the committer's */
        c->err = err;
        snprintf(c->why, sizeof c->why, "%s", d.text);
        kedge_host_post(h, &c->item);
    }
}

/* Nothing that the key in force signed is on its way. */
static bool is_quiet(const struct kedge_host *h)
{
    bool quiet = h->authority.assigning == 0;
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX && quiet; i++) {
        quiet = !(h->jobs[i].used && h->jobs[i].batch && h->jobs[i].batch->is_signed);
    }
    return quiet;
}

void kedge_host_authority_go_on(struct kedge_host *h)
{
    struct kedge_authority_change *c = h->authority.pending;
    if (h->authority.holds && c && !c->batch && !c->err && is_quiet(h)) {
        hand_over(h, c);
    }
}

void kedge_authority_start(struct kedge_host *h, struct kedge_authority_change *c)
{
    c->item.handle = change_handle;
    h->authority.pending = c;
    if (kedge_authority_is_rotation(c)) {
        h->authority.holds = true;
        kedge_host_authority_go_on(h);
    } else {
        hand_over(h, c);
    }
}
