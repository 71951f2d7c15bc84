/* A statement that a tenant's admin signed, from the request into the ledger: opened, judged by the
 * keys that are in force in that ledger, appended, and only then in effect.
 *
 * The coordinator signs nothing of it and cannot: it checks and stores. What is judged must stand
 * on the state that it was judged by, so of statements that change keys only one is on its way for
 * each tenant; the next is told BUSY. And what stands in the ledger is in force even if the answer
 * is an error, for nobody can take it out again. */
#include "coordinator/daemon/admin/admin_append.h"

#include <stdio.h>

#include "chain/statement/entry_index.h"
#include "chain/statement/statement_position.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/sites/known.h"

/* The keybook changes exactly when the entry is durable. If the append failed for good, it stays as
 * it was. */
static void take_keys(struct kedge_host *h, const struct kedge_admin_append *a, bool is_stored)
{
    struct kedge_tenant *t = &h->tenants[a->tenant];
    struct kedge_diag d = {.text = ""};
    const uint64_t changed = t->keys.changed;
    t->keys_pending = false;
    if (is_stored) {
        int err = kedge_keybook_apply(&t->keys, a->st, a->index, &d);
        KEDGE_ASSERT(err == KEDGE_OK); /* it was checked: without memory for it there is no way on */
    }
    if (t->keys.changed != changed) { /* other admins */
        kedge_host_known_refresh(h);
    }
}

void kedge_admin_append_free(struct kedge_admin_append *a)
{
    kedge_buf_deinit(&a->stored);
    kedge_mem_free(a->st);
    kedge_mem_free(a);
}

/* Stored, while no checkpoint could be signed over it: it stands in the ledger for ever, so it is in force
 * from now on, even if the answer is an error. */
static bool find_stored(const struct kedge_tenant *t, struct kedge_admin_append *a)
{
    struct kedge_hash leaf;
    struct kedge_buf key;
    uint64_t index;
    kedge_buf_init(&key, KEDGE_IDEM_KEY_MAX);
    kedge_statement_key(a->st->kind, &a->st->u, &key);
    bool found = !key.err && kedge_ledger_find(t->log.ledger, kedge_buf_view(&key), &index) == KEDGE_OK
                 && kedge_ledger_leaf_hash(t->log.ledger, index, &leaf) == KEDGE_OK
                 && kedge_hash_eq(&leaf, &a->leaf);
    kedge_buf_deinit(&key);
    a->index = found ? index : a->index;
    return found;
}

/* UNKNOWN means: perhaps stored, without a checkpoint over it. Then the ledger itself is asked, by
 * key and leaf hash. If the entry is there it takes effect like any other, and the sender still
 * gets the error, because no receipt can be made yet. */
static void append_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct kedge_admin_append *a = (struct kedge_admin_append *)item;
    int unsigned_err = a->err == KEDGE_E_UNKNOWN ? a->err : KEDGE_OK;
    bool is_stored = unsigned_err ? find_stored(&h->tenants[a->tenant], a) : !a->err;
    if (a->changes_keys) {
        take_keys(h, a, is_stored);
    }
    if (is_stored) {
        a->err = KEDGE_OK;
        a->then(h, a);
        a->err = a->err ? a->err : unsigned_err;
    } else if (a->undo) {
        a->undo(h, a);
    }
    if (!is_stored && (a->err == KEDGE_E_IO || kedge_err_class(a->err) == KEDGE_CLASS_CORRUPT)) {
        kedge_host_fail(h, a->err, "a tenant's ledger");
    }
    if (a->err) {
        struct kedge_diag d;
        (void)kedge_diag_set(&d, a->err, "ledger of tenant %s: %s", h->tenants[a->tenant].id.s,
                             a->why[0] ? a->why : kedge_strerror(a->err));
        kedge_admin_error(a->req, a->err, &d);
    } else {
        json_t *o = json_object();
        json_object_set_new(o, "tenant", json_string(h->tenants[a->tenant].id.s));
        json_object_set_new(o, "leaf_index", json_integer((json_int_t)a->index));
        kedge_admin_ok(a->req, o);
    }
    kedge_admin_append_free(a);
}

static void append_done(void *arg, const struct kedge_commit_result *result)
{
    struct kedge_admin_append *a = arg;
    kedge_host_log_commit(result);
    a->err = result->err;
    snprintf(a->why, sizeof a->why, "%s", result->err && result->diag ? result->diag->text : "");
    a->index = result->err ? 0 : result->items[0].index;
    kedge_host_post(a->h, &a->item);
}

/* Does the ledger say this already? An answer may have been lost, and who asks again has signed anew, at
 * another position; the entry that stands is the answer, and nothing is appended. */
static bool is_repeated(const struct kedge_tenant *t, const struct kedge_statement *st,
                        struct kedge_buf *ret_entry)
{
    struct kedge_buf key;
    struct kedge_signed_statement parts;
    struct kedge_statement *stored = kedge_mem_new(1, sizeof *stored);
    uint64_t index;
    kedge_buf_init(&key, KEDGE_IDEM_KEY_MAX);
    kedge_statement_key(st->kind, &st->u, &key);
    bool same = stored && !key.err
                && kedge_ledger_find(t->log.ledger, kedge_buf_view(&key), &index) == KEDGE_OK
                && kedge_ledger_get(t->log.ledger, index, ret_entry) == KEDGE_OK;
    if (same) {
        same = kedge_statement_read(kedge_buf_view(ret_entry), stored, &parts, NULL) == KEDGE_OK
               && kedge_statement_says_same(stored, st);
        kedge_buf_deinit(&parts.payload);
    }
    kedge_buf_deinit(&key);
    kedge_mem_free(stored);
    return same;
}

static int root_of(void *arg, uint64_t size, struct kedge_hash *ret)
{
    return kedge_ledger_root(arg, size, ret);
}

/* Where in the ledger the signer meant the statement to stand. It stops replays: an old envelope
 * cannot be handed in again later, and one for another tenant or deployment fits nowhere
 * (chain/statement/statement_position.h). */
static int check_position(const struct kedge_host *h, const struct kedge_tenant *t,
                          const struct kedge_statement *st, struct kedge_diag *d)
{
    struct kedge_position_ledger ledger = {.main_log_key = &h->main.key.public,
                                           .size = kedge_ledger_size(t->log.ledger),
                                           .late = KEDGE_POSITION_LATE,
                                           .root = root_of,
                                           .arg = t->log.ledger};
    return kedge_position_judge(&t->keys, st, &ledger, d);
}

/* Signatures, then what the statement would do, then its place. The order is that of the messages:
 * who is not authorised is told this and nothing about the state of the keys. */
static int check_entry(const struct kedge_host *h, const struct kedge_tenant *t,
                       const struct kedge_statement *st, const struct kedge_signed_statement *entry,
                       struct kedge_diag *d)
{
    if (t->keys_pending) {
        return kedge_diag_set(d, KEDGE_E_BUSY,
                              "another statement about the keys of tenant %s is being written", t->id.s);
    }
    int err = kedge_keybook_verify(&t->keys, st, entry, d);
    if (err == KEDGE_E_VERIFY) {
        err = kedge_diag_wrap(d, KEDGE_E_DENIED, "the statement is not signed as its tenant's keys demand");
    }
    KEDGE_TRY(err);
    KEDGE_TRY(kedge_keybook_check(&t->keys, st, d));
    return check_position(h, t, st, d);
}

static int open_envelope(const struct kedge_host *h, const struct kedge_tenant *t, struct kedge_view envelope,
                         enum kedge_statement_kind kind, struct kedge_admin_append *a, struct kedge_diag *d)
{
    struct kedge_signed_statement entry;
    int err = kedge_statement_read(envelope, a->st, &entry, d);
    if (!err && a->st->kind != kind) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT, "expected a %s statement", kedge_statement_kind_name(kind));
    }
    if (!err) {
        a->repeated = is_repeated(t, a->st, &a->stored);
        a->changes_keys = !a->repeated && kedge_keybook_takes(kind);
        err = a->repeated ? KEDGE_OK : check_entry(h, t, a->st, &entry, d);
    }
    kedge_buf_deinit(&entry.payload);
    return err;
}

int kedge_admin_append_open(struct kedge_host *h, const json_t *args, enum kedge_statement_kind kind,
                            struct kedge_admin_append *a, struct kedge_diag *d)
{
    struct kedge_admin_signed said;
    KEDGE_TRY(kedge_admin_signed_args(args, &said, d));
    a->tenant = kedge_host_tenant_find(h, &said.tenant);
    if (a->tenant == KEDGE_COORD_NONE) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no tenant \"%s\" here", said.tenant.s);
    }
    a->st = kedge_mem_new(1, sizeof *a->st);
    int err = a->st ? open_envelope(h, &h->tenants[a->tenant], said.envelope, kind, a, d) : KEDGE_E_NOMEM;
    return err || a->repeated ? err : kedge_host_check_coming(h, a->st, d);
}

/* A repeated statement is appended again, with the bytes that stand in the ledger: the same key and
 * the same leaf are no second entry but the old one's index. So first time and repetition take one
 * way and get one answer. */
void kedge_admin_append_submit(struct kedge_host *h, struct kedge_admin_append *a, const json_t *args,
                               const char *idem_key)
{
    struct kedge_ledger_append item = {
        .entry = a->repeated ? kedge_buf_view(&a->stored)
                             : kedge_view_str(json_string_value(json_object_get(args, "envelope"))),
        .idem_key = kedge_view_str(idem_key)};
    a->item.handle = append_handle;
    a->h = h;
    kedge_merkle_leaf(item.entry, &a->leaf);
    h->tenants[a->tenant].keys_pending = h->tenants[a->tenant].keys_pending || a->changes_keys;
    int err = kedge_committer_submit(h->tenants[a->tenant].committer, &item, 1, append_done, a);
    if (err) { /* else `a` is the committer's, which may be done with it already */
        a->err = err;
        kedge_host_post(h, &a->item);
    }
}

struct kedge_admin_append *kedge_admin_append_new(struct kedge_net_request *req)
{
    struct kedge_admin_append *a = kedge_mem_new(1, sizeof *a);
    KEDGE_ASSERT(a);
    a->req = req;
    kedge_buf_init(&a->stored, KEDGE_ENTRY_MAX);
    return a;
}

void kedge_admin_append_fail(struct kedge_admin_append *a, int err, const struct kedge_diag *d)
{
    kedge_admin_error(a->req, err, d);
    kedge_admin_append_free(a);
}
