/* A change of authority on its way into the main chain.
 *
 * A rotation of the statement key needs a moment in which nothing that the old key signed is on its
 * way: then the checkpoints of all tenants and the rotation are written in one batch, and
 * everything in front of it in every log is the old key's, everything after it the new one's. While
 * that is waited for, what would be signed is held and not refused. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "chain/statement/entry_index.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/authority.h"
#include "coordinator/daemon/admin/authority_impl.h"
#include "coordinator/daemon/admin/quotas.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/rounds/rounds.h"
#include "coordinator/daemon/sites/known.h"

enum { BESIDE_MOST = KEDGE_MAIN_BATCH_MAX / 2 }; /* checkpoints that go in one batch with a change */

/* Work that was held goes on in the order in which it would have been signed: groups first, then
 * jobs' batches. */
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

/* In memory first: from this moment on the new key signs. That the file is renamed later, even by
 * the next start, does no harm, since the start asks the chain which key is in force. */
static void switch_key(struct kedge_host *h, const struct kedge_authority_change *c)
{
    struct kedge_diag d = {.text = ""};
    h->statement_key = c->next;
    if (kedge_state_key_switch(h->state, &d) != KEDGE_OK) { /* the next start does it */
        kedge_log(KEDGE_LOG_WARN, "statement key", "%s", d.text);
    }
    kedge_authority_list_rotations(h);
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
    } else if (c->st->kind == KEDGE_ST_QUOTA_SET) {
        kedge_host_quota_take(h, &c->st->u.quota_set);
    } else if (c->st->kind == KEDGE_ST_ROLE_REVOKED) {
        (void)kedge_net_server_drop_key(h->server, &c->st->u.role_revoked.public_key);
    }
    kedge_host_known_refresh(h);
    kedge_log(KEDGE_LOG_INFO, "authority", "%s entry=%" PRIu64 " approvals=%u",
              kedge_statement_kind_name(c->st->kind), c->index, c->approvals);
}

/* After an I/O error nobody knows what is stored. Going on to sign with either key could put a
 * statement on the wrong side of the rotation, so the process ends and the next start reads the
 * chain. */
static void change_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct kedge_authority_change *c = (struct kedge_authority_change *)item;
    struct kedge_diag d;
    h->authority.pending = NULL;
    /* Stored while no checkpoint could be signed over it: it stands there for ever and is in force. */
    if (!c->err || (c->err == KEDGE_E_UNKNOWN && kedge_authority_is_stored(h, c))) {
        take_change(h, c);
    } else if (c->batch) {
        kedge_main_batch_look(h, c->batch);
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

/* ---- tenants' checkpoints ----
 * Where who signed what, or who is admin, depends on them, they stand before the change. Those that fit are
 * of its own batch. Of thousands of tenants more may have grown than one transaction takes: then the greater
 * part goes before it, batch after batch. Nothing that the old key signs comes in between, for that is held.
 */

static bool needs_checkpoints(const struct kedge_authority_change *c)
{
    return kedge_authority_is_rotation(c) || c->approvals > 0;
}

static int put_checkpoints(struct kedge_host *h, struct kedge_authority_change *c, uint32_t most)
{
    for (uint32_t i = 0; i < h->tenant_count && most > 0 && needs_checkpoints(c); i++) {
        if (kedge_main_batch_is_behind(h, i)) {
            KEDGE_TRY(kedge_main_batch_checkpoint(c->batch, i));
            most--;
        }
    }
    return KEDGE_OK;
}

static uint32_t count_behind(const struct kedge_host *h)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        count += kedge_main_batch_is_behind(h, i);
    }
    return count;
}

static int put_change(struct kedge_host *h, struct kedge_authority_change *c, struct kedge_diag *d)
{
    struct kedge_buf key KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&key, KEDGE_IDEM_KEY_MAX);
    kedge_statement_key(c->st->kind, &c->st->u, &key);
    /* Admins may have changed while a rotation waited, and the checkpoints are those of now. */
    KEDGE_TRY(c->approvals > 0 ? kedge_authority_check_approvals(h, c, d) : KEDGE_OK);
    KEDGE_TRY(key.err);
    KEDGE_TRY(kedge_main_batch_new(&c->batch));
    KEDGE_TRY(put_checkpoints(h, c, UINT32_MAX));
    KEDGE_TRY(kedge_main_batch_envelope(c->batch, kedge_buf_view(&c->envelope), kedge_buf_view(&key)));
    return kedge_main_batch_hand_over(h, c->batch, change_done, c);
}

static void before_handle(struct kedge_host *h, struct kedge_item *item);

static int put_before(struct kedge_host *h, struct kedge_authority_change *c)
{
    KEDGE_TRY(kedge_main_batch_new(&c->batch));
    KEDGE_TRY(put_checkpoints(h, c, KEDGE_MAIN_BATCH_MAX));
    return kedge_main_batch_hand_over(h, c->batch, change_done, c);
}

static void hand_over(struct kedge_host *h, struct kedge_authority_change *c)
{
    struct kedge_diag d = {.text = ""};
    bool fits = !needs_checkpoints(c) || count_behind(h) <= BESIDE_MOST;
    c->item.handle = fits ? change_handle : before_handle;
    int err = fits ? put_change(h, c, &d) : put_before(h, c);
    if (err) { /* else `c` is the committer's */
        c->err = err;
        snprintf(c->why, sizeof c->why, "%s", d.text);
        kedge_host_post(h, &c->item);
    }
}

/* Tenants' checkpoints that went before are durable; what has grown since comes with the change, or before
 * it, too. */
static void before_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct kedge_authority_change *c = (struct kedge_authority_change *)item;
    if (c->err) {
        change_handle(h, item);
        return;
    }
    h->main_known = c->index >= h->main_known ? c->index + 1 : h->main_known;
    kedge_main_batch_settle(h, c->batch);
    kedge_main_batch_free(c->batch);
    c->batch = NULL;
    hand_over(h, c);
}

/* Nothing that the key in force signed is on its way. */
static bool is_quiet(const struct kedge_host *h)
{
    bool quiet = h->authority.assigning == 0 && !h->admitting;
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
    h->authority.pending = c;
    if (kedge_authority_is_rotation(c)) {
        h->authority.holds = true;
        kedge_host_authority_go_on(h);
    } else {
        hand_over(h, c);
    }
}
