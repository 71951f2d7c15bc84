/* What a site is shown of the main chain. What cannot be shown whole is left out: a checkpoint without the
 * proof that goes with it would look like another history. */
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/sites/requests.h"
#include "coordinator/daemon/witness/witness.h"

/* None when there is nothing to prove, or what is asked about is not there: the site judges that. An error:
 * there is something to prove, and it cannot be proven now. */
static int prove_growth(struct kedge_host *h, uint64_t from, uint64_t to, struct kedge_path *ret)
{
    ret->count = 0;
    int err = from > 0 && from < to ? kedge_ledger_consistency(h->main.ledger, from, to, ret) : KEDGE_OK;
    if (err) {
        ret->count = 0;
        kedge_log(KEDGE_LOG_WARN, "main chain", "no proof that %llu entries grew from %llu: %s",
                  (unsigned long long)to, (unsigned long long)from, kedge_strerror(err));
    }
    return err;
}

/* Two claims, each with its proof: the newest checkpoint extends what the site has seen, and the
 * newest extends the one that the witnesses' quorum has cosigned. A site that demands the quorum
 * goes by the second. */
void kedge_host_show_chain(struct kedge_host *h, uint64_t seen_size, struct kedge_shown_chain *ret)
{
    uint64_t size = 0;
    *ret = (struct kedge_shown_chain){.since_seen.count = 0};
    kedge_buf_init(&ret->newest, KEDGE_NOTE_MAX);
    kedge_buf_init(&ret->cosigned, KEDGE_NOTE_MAX);
    int err = kedge_ledger_checkpoint(h->main.ledger, &ret->newest, &size);
    if (err && err != KEDGE_E_NOT_FOUND) {
        kedge_log(KEDGE_LOG_WARN, "main checkpoint", "%s", kedge_strerror(err));
    }
    if (err || prove_growth(h, seen_size, size, &ret->since_seen) != KEDGE_OK) {
        kedge_buf_clear(&ret->newest); /* the site asks again */
        return;
    }
    kedge_host_final_note(h, &ret->cosigned);
    if (ret->cosigned.len > 0
        && prove_growth(h, kedge_host_final_size(h), size, &ret->since_cosigned) != KEDGE_OK) {
        kedge_buf_clear(&ret->cosigned); /* only a site that demands the quorum does */
    }
}

void kedge_shown_chain_deinit(struct kedge_shown_chain *shown)
{
    kedge_buf_deinit(&shown->newest);
    kedge_buf_deinit(&shown->cosigned);
}

struct kedge_view kedge_shown_path(const struct kedge_path *path)
{
    return kedge_view_of(path->hashes, path->count * sizeof path->hashes[0]);
}
