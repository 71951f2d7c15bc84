/* A job's record folded from its ledgers (round/fold.h): which entries, in which order. A coordinator's
 * restart reads no more of them than it needs; with `from` 0 all of the record is read, and what comes of
 * it must be the same. */
#ifndef KEDGE_ROUND_FOLD_LEDGERS_H
#define KEDGE_ROUND_FOLD_LEDGERS_H

#include "chain/store/blob/blobs.h"
#include "chain/store/ledger.h"
#include "common/base/diag.h"
#include "round/fold.h"

struct kedge_round_log {
    struct kedge_id tenant; /* empty: main chain */
    struct kedge_hash salted;
    struct kedge_ledger *ledger;
    struct kedge_blobs *blobs; /* with the lists */
};

struct kedge_round_logs {
    struct kedge_round_log main;
    const struct kedge_round_log *tenants; /* of the job */
    uint32_t tenant_count;
    /* The place of a site in the fold, KEDGE_ROUND_NONE where nobody knows it; tenant: place in `tenants`. */
    uint32_t (*site)(void *arg, uint32_t tenant, const struct kedge_id *site);
    /* A round was folded to its step; NULL: nobody asks. An error ends the fold. */
    int (*closed)(void *arg, const struct kedge_round_fold *at);
    void *arg;
};

/* io: begun. Reads from round `from` on (KEDGE_ROUND_NONE: from the first that the end depends on) up to the
 * round-opened of round `until`, or with KEDGE_ROUND_NONE up to the end, but for the updates of a round that
 * is open: the caller folds them. KEDGE_E_CORRUPT says which log and entry, or what is missing. */
KEDGE_NODISCARD int kedge_round_fold_ledgers(struct kedge_round_fold *io, const struct kedge_round_logs *logs,
                                             uint32_t from, uint32_t until, struct kedge_diag *reterr);

#endif
