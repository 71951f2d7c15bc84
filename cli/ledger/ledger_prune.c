/* kedge ledger prune: gives up intermediate models of ended jobs, after a replay has made each of them again.
 */
#include <string.h>

#include "chain/audit/audit.h"
#include "chain/state/state.h"
#include "chain/store/blob/pruned.h"
#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/try.h"

enum { DIGESTS_MAX = 1 << 27 };

struct prune {
    uint64_t count, bytes, freed;
    bool refused; /* the record is not what a replay gives */
};

/* Which, by a replay of the whole record. A log that does not replay prunes nothing: what is given up is only
 * what this replay has just made. */
static int choose(const char *state, const char *trust_path, const struct kedge_audit_prune *ask,
                  bool *ret_no, struct kedge_diag *d)
{
    struct kedge_audit_report report;
    struct kedge_trust trust;
    KEDGE_TRY(kedge_trust_read(trust_path, &trust, d));
    int err = kedge_audit_prunable(state, &trust, NULL, ask, &report, d);
    if (!err) {
        *ret_no = report.verdict != KEDGE_AUDIT_YES;
        kedge_audit_report_deinit(&report);
    }
    kedge_trust_deinit(&trust);
    return err;
}

/* The list first, so that at no moment a model is missing that nobody gave up. */
static int give_up(const char *state, struct kedge_view digests, bool dry_run, struct prune *p,
                   struct kedge_diag *d)
{
    struct kedge_state_log log;
    char folder[KEDGE_PATH_MAX];
    struct kedge_hash digest;
    uint64_t bytes, ms;
    KEDGE_TRY(kedge_state_path(folder, d, state, "main"));
    KEDGE_TRY(kedge_state_log_open(state, NULL, dry_run ? KEDGE_STATE_READ : KEDGE_STATE_WRITE, &log, d));
    int err = dry_run || digests.len == 0 ? KEDGE_OK : kedge_pruned_add(folder, digests, d);
    for (size_t at = 0; at < digests.len && !err; at += KEDGE_HASH_LEN) {
        memcpy(digest.b, digests.ptr + at, sizeof digest.b);
        if (kedge_blobs_stored(log.blobs, &digest, &bytes, &ms) == KEDGE_OK) { /* else it went before */
            p->count++;
            p->bytes += bytes;
            err = dry_run ? KEDGE_OK : kedge_blobs_remove(log.blobs, &digest, d);
        }
    }
    err = err || dry_run ? err : kedge_blobs_compact(log.blobs, &p->freed, d);
    kedge_state_log_close(&log);
    return err;
}

/* Said with what brings them back: an operator who sees models vanish should know that a replay makes them
 * again. */
static int tell(struct kedge_cli *c, const struct prune *p, bool dry_run)
{
    kedge_cli_progress_end(c);
    kedge_cli_say(c, "%s %llu intermediate models of ended jobs, %.1f kB.\n",
                  dry_run ? "Would give up" : "Gave up", (unsigned long long)p->count,
                  (double)p->bytes / 1000);
    kedge_cli_say(c, "kedge audit replay makes them again from the updates, as it did now.\n");
    return kedge_cli_answer(c,
                            json_pack("{s:b,s:I,s:I}", "dry_run", dry_run, "models", (json_int_t)p->count,
                                      "bytes", (json_int_t)p->bytes),
                            0);
}

/* The record is audited with a replay first, and what may go is collected by that audit: models are given up
 * only while they can still be computed again from what stays. */
int kedge_cmd_ledger_prune(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct prune p = {.count = 0};
    struct kedge_buf digests KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_id job;
    uint64_t keep_every = 0;
    kedge_buf_init(&digests, DIGESTS_MAX);
    bool dry_run = kedge_cli_flag(c, "dry-run"), refused = false;
    const char *trust = c->trust, *name = kedge_cli_option(c, "job", NULL);
    if (!kedge_cli_number(c, "keep-every", 1, UINT32_MAX, 0, &keep_every) || !kedge_cli_no_more(c, 1)) {
        return 2;
    }
    const char *state = kedge_cli_argument(c, 0) ? kedge_cli_argument(c, 0) : c->state;
    if (!trust) {
        return kedge_cli_usage(
            c, "--trust is missing: the keys by which the record is replayed before anything goes");
    }
    if (name && kedge_id_from(kedge_view_str(name), &job) != KEDGE_OK) {
        return kedge_cli_usage(c, "--job: not a job's name");
    }
    const struct kedge_audit_prune ask = {
        .job = name ? &job : NULL, .keep_every = (uint32_t)keep_every, .ret = &digests};
    KEDGE_CLI_TRY(c, choose(state, trust, &ask, &refused, &d), &d);
    if (refused) {
        (void)kedge_diag_set(&d, KEDGE_E_VERIFY, "%s: the record does not hold: nothing was removed", state);
        (void)kedge_diag_hint(&d, "see what is wrong with: kedge audit replay %s --trust %s", state, trust);
        return kedge_cli_fail_as(c, KEDGE_E_VERIFY, &d, 1);
    }
    KEDGE_CLI_TRY(c, give_up(state, kedge_buf_view(&digests), dry_run, &p, &d), &d);
    return tell(c, &p, dry_run);
}
