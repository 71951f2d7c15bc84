/* Changes of authority: made, proposed, approved by organisations, submitted.
 *
 * A change that needs no approval is signed and written at once. One that needs it is signed by the
 * coordinator and given out as a proposal, which changes nothing; the organisations add their
 * signatures outside, and it is handed in again. What was checked for the proposal is checked again
 * then, for keys and roles may have changed in between. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/statement/entry_index.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/authority_impl.h"
#include "coordinator/daemon/host.h"

enum {
    BOUND_ENTRIES = 100000, /* of the main chain: how long a proposal is good for */
    BOUND_REST = 4096,      /* what may come before a statement while it is on its way */
};

static struct kedge_authority_change *new_change(struct kedge_host *h, struct kedge_net_request *req,
                                                 struct kedge_statement *st)
{
    struct kedge_authority_change *c = kedge_mem_new(1, sizeof *c);
    KEDGE_ASSERT(c);
    c->h = h;
    c->req = req;
    c->st = st;
    kedge_buf_init(&c->envelope, KEDGE_ENTRY_MAX);
    return c;
}

static void refuse(struct kedge_authority_change *c, int err, const struct kedge_diag *d)
{
    kedge_admin_error(c->req, err, d);
    kedge_authority_free(c);
}

/* One at a time: each is judged by what stands before it. */
static int check_idle(const struct kedge_host *h, struct kedge_diag *d)
{
    return h->authority.pending
               ? kedge_diag_set(d, KEDGE_E_BUSY, "another statement of this kind is being written")
               : KEDGE_OK;
}

/* A key that comes has no other role anywhere; the mainbook knows its own only. */
static int check_clash(const struct kedge_host *h, const struct kedge_statement *st, struct kedge_diag *d)
{
    const struct kedge_public_key *key = st->kind == KEDGE_ST_ROLE_GRANTED ? &st->u.role_granted.public_key
                                         : st->kind == KEDGE_ST_STATEMENT_KEY_ROTATED
                                             ? &st->u.statement_key_rotated.new_key
                                             : NULL;
    return key && kedge_host_key_is_known(h, key)
               ? kedge_diag_set(d, KEDGE_E_KEY, "this key has or had another role here; one key, one role")
               : KEDGE_OK;
}

/* `before` bounds how long a proposal is good for, in entries of the main chain: a proposal that
 * somebody kept cannot be handed in years later. It is judged with some room, since other entries
 * may come in between while the statement is on its way. */
static int check_change(const struct kedge_host *h, const struct kedge_statement *st, struct kedge_diag *d)
{
    const uint64_t at = kedge_ledger_size(h->main.ledger) + BOUND_REST;
    KEDGE_TRY(kedge_mainbook_check(&h->authority.book, st, at, d));
    return check_clash(h, st, d);
}

/* A rotation of the statement key is signed by both keys: by the old one, so that it is authorised,
 * and by the new one, so that its holder really has it. */
static int sign(const struct kedge_host *h, struct kedge_authority_change *c,
                const struct kedge_key_pair *next, struct kedge_diag *d)
{
    if (!next) {
        return kedge_statement_sign(c->st, &h->statement_key, &c->envelope, d);
    }
    struct kedge_buf one KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_statement_sign(c->st, &h->statement_key, &one, d));
    return kedge_statement_cosign(kedge_buf_view(&one), next, &c->envelope, d);
}

static void answer_proposal(const struct kedge_host *h, struct kedge_authority_change *c)
{
    json_t *o = json_pack("{s:s,s:i,s:I}", "statement", kedge_statement_kind_name(c->st->kind), "quorum",
                          (int)kedge_mainbook_quorum(&h->authority.book, c->st), "before",
                          (json_int_t)c->st->u.role_granted.of.before);
    json_object_set_new(o, "envelope", json_stringn((const char *)c->envelope.ptr, c->envelope.len));
    kedge_admin_ok(c->req, o);
    kedge_authority_free(c);
}

/* Judged and signed. */
static int make_change(struct kedge_host *h, struct kedge_authority_change *c,
                       const struct kedge_key_pair *next, bool propose, struct kedge_diag *d)
{
    const uint32_t quorum = kedge_mainbook_quorum(&h->authority.book, c->st);
    KEDGE_TRY(check_idle(h, d));
    KEDGE_TRY(check_change(h, c->st, d));
    if (!propose && quorum > 0) {
        return kedge_diag_set(d, KEDGE_E_DENIED,
                              "%u organisations have to approve this: propose it (--propose FILE), let their "
                              "admins sign it (kedge role approve FILE), submit it (kedge role submit FILE)",
                              quorum);
    }
    return sign(h, c, next, d);
}

void kedge_authority_change(struct kedge_host *h, struct kedge_net_request *req, struct kedge_statement *st,
                            const struct kedge_key_pair *next, bool propose)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_authority_change *c = new_change(h, req, st);
    struct kedge_st_main_bound *of = &st->u.role_granted.of; /* all four begin with it */
    memcpy(of->deployment, h->authority.book.deployment, sizeof of->deployment);
    of->main_log_key = h->authority.book.main_log_key;
    of->before = kedge_ledger_size(h->main.ledger) + BOUND_REST + BOUND_ENTRIES;
    int err = make_change(h, c, next, propose, &d);
    if (err) {
        refuse(c, err, &d);
    } else if (propose) {
        answer_proposal(h, c);
    } else {
        if (next) {
            c->next = *next;
        }
        kedge_authority_start(h, c);
    }
}

void kedge_authority_state(struct kedge_host *h, struct kedge_net_request *req, struct kedge_statement *st)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_authority_change *c = new_change(h, req, st);
    int err = check_idle(h, &d);
    if (!err) {
        err = sign(h, c, NULL, &d);
    }
    if (err) {
        refuse(c, err, &d);
    } else {
        kedge_authority_start(h, c);
    }
}

/* ---- approved by organisations ---- */

static int check_entry(struct kedge_host *h, struct kedge_authority_change *c,
                       const struct kedge_signed_statement *entry, struct kedge_diag *d)
{
    uint32_t others;
    if (c->st->kind == KEDGE_ST_POLICY || !kedge_mainbook_concerns(c->st->kind)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "a %s statement; expected a proposal that `kedge role` made",
                              kedge_statement_kind_name(c->st->kind));
    }
    if (kedge_authority_is_stored(h, c)) {
        return KEDGE_E_DUPLICATE;
    }
    KEDGE_TRY(check_idle(h, d));
    KEDGE_TRY(kedge_mainbook_verify(&h->authority.book, c->st, entry, &others, d));
    KEDGE_TRY(check_change(h, c->st, d));
    return kedge_authority_approved(h, c, entry, d);
}

static int check_submitted(struct kedge_host *h, struct kedge_authority_change *c, struct kedge_diag *d)
{
    struct kedge_signed_statement entry;
    int err = kedge_statement_read(kedge_buf_view(&c->envelope), c->st, &entry, d);
    if (!err) {
        err = check_entry(h, c, &entry, d);
    }
    kedge_buf_deinit(&entry.payload);
    return err;
}

/* ---- the key that comes: its file is read or made by a worker ---- */

struct next_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_authority_change *submitted; /* NULL: a new rotation */
    bool propose;
    char reason[KEDGE_ST_REASON_MAX + 1];
    struct kedge_key_pair next;
    int err;
    struct kedge_diag diag;
};

/* The new key's file is made durable before anything names the key: a chain that names a key whose
 * file was lost would have no speaker. */
static void next_run(struct kedge_host *h, struct kedge_work *work)
{
    struct next_work *w = (struct next_work *)work;
    w->err = w->submitted ? kedge_state_key(h->state, KEDGE_STATE_KEY_STATEMENT_NEXT, &w->next, &w->diag)
                          : kedge_state_key_make_next(h->state, &w->next, &w->diag);
}

static void go_on_with(struct kedge_host *h, struct next_work *w)
{
    struct kedge_authority_change *c = w->submitted;
    struct kedge_diag d = {.text = ""};
    int err = check_submitted(h, c, &d); /* once more: time has passed */
    if (!err && !kedge_public_key_eq(&w->next.public, &c->st->u.statement_key_rotated.new_key)) {
        err = kedge_diag_set(&d, KEDGE_E_KEY, "keys/statement-next.pem is not the key that was proposed");
    }
    if (err) {
        refuse(c, err, &d);
        return;
    }
    c->next = w->next;
    kedge_authority_start(h, c);
}

static void next_done(struct kedge_host *h, struct kedge_item *item)
{
    struct next_work *w = (struct next_work *)item;
    struct kedge_statement *st = NULL;
    if (w->err && w->submitted) {
        refuse(w->submitted, w->err, &w->diag);
    } else if (w->err) {
        kedge_admin_error(w->req, w->err, &w->diag);
    } else if (w->submitted) {
        go_on_with(h, w);
    } else {
        st = kedge_mem_new(1, sizeof *st);
        KEDGE_ASSERT(st);
        st->kind = KEDGE_ST_STATEMENT_KEY_ROTATED;
        st->u.statement_key_rotated.old_key = h->statement_key.public;
        st->u.statement_key_rotated.new_key = w->next.public;
        memcpy(st->u.statement_key_rotated.reason, w->reason, sizeof w->reason);
        kedge_authority_change(h, w->req, st, &w->next, w->propose);
    }
    kedge_key_wipe(&w->next);
    kedge_mem_free(w);
}

static struct next_work *new_work(struct kedge_net_request *req)
{
    struct next_work *w = kedge_mem_new(1, sizeof *w);
    KEDGE_ASSERT(w);
    w->work = (struct kedge_work){.item = {next_done}, .run = next_run};
    w->req = req;
    return w;
}

void kedge_authority_rotate(struct kedge_host *h, struct kedge_net_request *req, const char *reason,
                            bool propose)
{
    struct kedge_diag d = {.text = ""};
    int err = check_idle(h, &d);
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    struct next_work *w = new_work(req);
    w->propose = propose;
    snprintf(w->reason, sizeof w->reason, "%s", reason ? reason : "");
    kedge_host_work(h, &w->work);
}

/* An envelope that stands in the chain already is answered with its entry. Only if it is a rotation
 * is the new key's file read, on a worker. */
void kedge_authority_submit(struct kedge_host *h, struct kedge_net_request *req, struct kedge_view envelope)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    KEDGE_ASSERT(st);
    struct kedge_authority_change *c = new_change(h, req, st);
    kedge_buf_put(&c->envelope, envelope.ptr, envelope.len);
    int err = c->envelope.err ? c->envelope.err : check_submitted(h, c, &d);
    if (err == KEDGE_E_DUPLICATE) { /* it is there already */
        kedge_admin_ok(req, json_pack("{s:I,s:s}", "leaf_index", (json_int_t)c->index, "statement",
                                      kedge_statement_kind_name(st->kind)));
        kedge_authority_free(c);
    } else if (err) {
        refuse(c, err, &d);
    } else if (kedge_authority_is_rotation(c)) {
        struct next_work *w = new_work(req);
        w->submitted = c;
        kedge_host_work(h, &w->work);
    } else {
        kedge_authority_start(h, c);
    }
}
