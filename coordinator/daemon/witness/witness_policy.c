/* The policy that says which witnesses count, and what was final before a restart. */
#include <inttypes.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/witness/witness_impl.h"

/* Only a checkpoint that our own log key signed counts here, so nobody but the holder of that key
 * can stop a coordinator in this way. Larger than the log: this is an old copy. Another root at a
 * size that the log has: the key signed two histories, and the record is to be looked at before
 * anything more is signed. */
bool kedgei_witness_is_ahead(struct kedge_host *h, uint32_t log, struct kedge_view note, struct kedge_diag *d)
{
    struct kedge_checkpoint c;
    struct kedge_vkey vkey;
    struct kedge_hash root;
    const struct kedge_state_log *l = log == KEDGE_COORD_NONE ? &h->main : &h->tenants[log].log;
    if (kedge_vkey_make(kedge_view_str(l->origin), KEDGE_KEY_ED25519, &l->key.public, &vkey) != KEDGE_OK
        || kedge_checkpoint_open(note, kedge_view_str(l->origin), &vkey, 1, &c, NULL) != KEDGE_OK) {
        return false;
    }
    uint64_t have = kedge_ledger_size(l->ledger);
    if (c.size > have) {
        (void)kedge_diag_set(
            d, KEDGE_E_CORRUPT,
            "log %s was signed with %" PRIu64 " entries and has %" PRIu64
            " here: this is an old backup or a rolled-back machine; restore the newest state, or "
            "repair it from a tenant's copy (kedge ledger repair)",
            l->origin, c.size, have);
        return true;
    }
    if (kedge_ledger_root(l->ledger, c.size, &root) == KEDGE_OK && !kedge_hash_eq(&root, &c.root)) {
        (void)kedge_diag_set(d, KEDGE_E_FORK,
                             "log %s was signed with another history of its first %" PRIu64
                             " entries: its key is used in two places",
                             l->origin, c.size);
        return true;
    }
    return false;
}

/* A quorum that a minority of dishonest witnesses could satisfy twice, for two histories, protects
 * from nothing. It is refused with witness_strict and told in the log otherwise
 * (chain/log/witness_quorum.h). */
static int read_policy(struct kedge_host *h, bool strict, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    struct kedge_quorum_safety safety;
    struct kedge_witnesses *w = h->witnesses;
    int err = kedge_state_path(path, d, h->state, "witness-policy.txt");
    if (err || !kedge_file_exists(path)) {
        return err;
    }
    kedge_buf_init(&text, KEDGE_WITNESS_POLICY_MAX);
    err = kedge_file_read(path, &text, d);
    if (!err) {
        err = kedge_witness_policy_parse(kedge_buf_view(&text), &w->policy, d);
        err = err ? kedge_diag_wrap(d, err, "%s", path) : KEDGE_OK;
    }
    kedge_buf_deinit(&text);
    if (err) {
        return err;
    }
    w->has_quorum = w->policy->quorum.kind != KEDGE_QUORUM_NONE;
    err = kedge_witness_policy_require_safe(w->policy, strict, &safety, d);
    if (err) {
        return kedge_diag_wrap(d, err, "%s", path);
    }
    if (w->has_quorum && !safety.is_safe) {
        kedge_log(KEDGE_LOG_WARN, "witness policy", "%s", safety.text);
    }
    return KEDGE_OK;
}

int kedgei_witness_evaluate(const struct kedge_host *h, struct kedge_view note, uint64_t *ret_size,
                            struct kedge_diag *d)
{
    struct kedge_vkey log;
    struct kedge_witness_evaluation *e KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *e);
    struct kedge_witness_demand demand = {
        .origin = kedge_view_str(h->main.origin), .logs = &log, .log_count = 1};
    KEDGE_TRY(e ? kedge_vkey_make(demand.origin, KEDGE_KEY_ED25519, &h->main.key.public, &log)
                : KEDGE_E_NOMEM);
    KEDGE_TRY(kedge_witness_policy_evaluate(h->witnesses->policy, note, &demand, e, d));
    *ret_size = e->checkpoint.size;
    return KEDGE_OK;
}

/* What was final before the restart is so still; a file that says nothing usable is no reason not to start,
 * one that says more than the log has is: the log is an old backup. */
static int read_final(struct kedge_host *h, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_diag why = {.text = ""};
    struct kedge_witnesses *w = h->witnesses;
    int err = kedge_state_path(path, d, h->state, "main/cosigned.note");
    if (err || !w->has_quorum || !kedge_file_exists(path)) {
        return err;
    }
    err = kedge_file_read(path, &w->final_note, &why);
    if (!err && kedgei_witness_is_ahead(h, KEDGE_COORD_NONE, kedge_buf_view(&w->final_note), d)) {
        return kedge_diag_wrap(d, d->err, "%s", path);
    }
    if (err || kedgei_witness_evaluate(h, kedge_buf_view(&w->final_note), &w->final_size, &why) != KEDGE_OK) {
        kedge_log(KEDGE_LOG_WARN, "cosigned checkpoint",
                  "%s does not count: %s; witnesses will be asked again", path, why.text);
        kedge_buf_clear(&w->final_note);
        w->final_size = 0;
    }
    return KEDGE_OK;
}

void kedgei_proposal_init(struct kedgei_proposal *p)
{
    kedge_buf_init(&p->bare, KEDGE_NOTE_MAX);
    kedge_buf_init(&p->note, KEDGE_NOTE_MAX);
}

void kedgei_proposal_deinit(struct kedgei_proposal *p)
{
    kedge_buf_deinit(&p->bare);
    kedge_buf_deinit(&p->note);
}

/* The table is there also without a policy: witnesses enrol, cosign their tenants' ledgers and are
 * listed; only nothing waits for them. */
int kedge_host_witnesses_open(struct kedge_host *h, bool strict, struct kedge_diag *d)
{
    struct kedge_witnesses *w = kedge_mem_new(1, sizeof *w);
    h->witnesses = w;
    if (!w) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory at start");
    }
    kedgei_proposal_init(&w->main);
    kedge_buf_init(&w->final_note, KEDGE_NOTE_MAX);
    w->tenants = kedge_mem_new(KEDGE_TENANTS_MAX, sizeof *w->tenants);
    if (!w->tenants) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory at start");
    }
    int err = read_policy(h, strict, d);
    w->settled = !w->has_quorum;
    w->started_ns = kedge_os_now_ns();
    return err ? err : read_final(h, d);
}

/* Twice, because the first look of a witness shows it the log as it is, and only if that
 * contradicts what it had seen before does it come back with the evidence, which ends this process.
 * A second ordinary look therefore says that the first one was fine. Witnesses that do not come are
 * waited for a few seconds only: otherwise one that is switched off would keep the federation from
 * starting. */
bool kedge_host_witnesses_settled(struct kedge_host *h)
{
    struct kedge_witnesses *w = h->witnesses;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        missing += w->rows[i].active && w->rows[i].in_policy && w->rows[i].asked < ASKED_TWICE;
    }
    bool waited = kedge_os_now_ns() - w->started_ns >= (uint64_t)KEDGE_SETTLE_MS * 1000000u;
    if (!w->settled && missing > 0 && waited) {
        kedge_log(KEDGE_LOG_WARN, "witnesses",
                  "%" PRIu32 " of them were not heard since the start; beginning without their word",
                  missing);
    }
    w->settled = w->settled || missing == 0 || waited;
    return w->settled;
}

void kedge_host_witnesses_close(struct kedge_host *h)
{
    struct kedge_witnesses *w = h->witnesses;
    if (!w) {
        return;
    }
    kedge_witness_policy_free(w->policy);
    kedgei_proposal_deinit(&w->main);
    kedge_buf_deinit(&w->final_note);
    for (uint32_t i = 0; i < h->tenant_count && w->tenants; i++) {
        kedgei_proposal_deinit(&w->tenants[i]);
    }
    kedge_mem_free(w->tenants);
    kedge_mem_free(w->rows);
    kedge_mem_free(w);
    h->witnesses = NULL;
}
