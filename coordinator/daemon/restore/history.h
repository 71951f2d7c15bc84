/* A job's rounds as its statements tell them. What `job show` says of a round is computed from statements
 * alone, by the same functions while the job runs, after a restart and when it has ended: so it is the same
 * each time. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_HISTORY_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_HISTORY_H

#include "chain/statement/statement.h"
#include "chain/store/blob/blobs.h"
#include "chain/store/ledger.h"
#include "common/base/diag.h"
#include "job/job_spec.h"

__extension__ typedef __int128 kedge_int128;

struct kedge_group_metric {
    uint64_t samples, correct;
    kedge_int128 loss_sum; /* of loss · samples in units of 2^-KEDGE_LOSS_BITS: the same in any order */
    uint64_t personal_samples, personal_correct; /* of sites' own models, where they keep any */
    uint32_t evaluations;
    uint32_t members; /* accepted inputs */
};
enum { KEDGE_LOSS_BITS = 24 };

/* What the updates of a round cost, by what their statements say. Joules that were measured and joules that a
 * site computed from a model of its device are not added up. */
struct kedge_round_costs {
    uint64_t updates, untold; /* untold: of those that say nothing of their energy */
    uint64_t bytes, erased; /* of the files that were uploaded; erased: files that are gone, not in `bytes` */
    double joules_measured, joules_modelled;
    uint64_t measured, modelled; /* updates that say so */
    double site_seconds;
    uint64_t trained, data; /* samples, of updates of a planned part: trained on, of so many */
};

struct kedge_round_history {
    uint32_t round;
    uint32_t groups; /* 0: there is no such row */
    uint32_t selected, accepted, refused;
    uint64_t opened_ms, closed_ms; /* as its statements say; 0: they do not */
    uint64_t charged, spent;       /* as its step says: of the job's budget, in millionths of its unit */
    uint64_t main_size;            /* entries of the main chain up to its step; 0: it is not closed */
    uint64_t
        statements; /* main_size, and what the checkpoints up to there say of the job's tenants' ledgers */
    struct kedge_round_costs costs;     /* where the page has with_costs */
    uint32_t room;                      /* groups that there is room for; others are not counted */
    struct kedge_group_metric *metrics; /* of the models that the round gave, by group */
};

/* Empty rows with room for so many groups each, in one block that the caller frees. NULL: no memory. */
struct kedge_round_history *kedge_history_rows_new(size_t count, uint32_t groups);
/* Into a row with as much room. */
void kedge_history_copy(struct kedge_round_history *to, const struct kedge_round_history *from);
/* An empty row of that round, with the room that it has. */
void kedge_history_begin(struct kedge_round_history *ret, const struct kedge_job_spec *spec, uint32_t round);
void kedge_history_add_aggregate(struct kedge_round_history *row, const struct kedge_st_aggregate *a);
void kedge_history_add_evaluation(struct kedge_round_history *row, const struct kedge_st_evaluation *e);
/* Over all test samples of the group; samples must not be 0. */
double kedge_history_loss(const struct kedge_group_metric *m);

/* Where a job's statements are. Ledgers and blobs may be read by any thread. */
struct kedge_history_log {
    struct kedge_id tenant;
    struct kedge_hash salted;
    struct kedge_ledger *ledger;
    struct kedge_blobs *blobs;
};
struct kedge_history_source {
    const struct kedge_job_spec *spec;
    struct kedge_ledger *main;
    const struct kedge_history_log *tenants; /* of this job */
    uint32_t tenant_count;
};

/* What one page of rounds may take. */
enum {
    KEDGE_HISTORY_PAGE_MAX = 512,      /* rounds */
    KEDGE_HISTORY_STATEMENTS = 100000, /* statements read; a page that has a round ends after that round */
};
/* Rounds whose JSON is sure to fit into one answer, for so many groups. */
uint32_t kedge_history_page_rounds(uint32_t groups);

struct kedge_history_page {
    struct kedge_round_history *rows; /* room for `most` */
    uint32_t most, count;
    bool without_evaluations; /* metrics stay zero */
    bool with_costs;          /* reads the update statements, too */
    uint32_t next;            /* round to go on with; KEDGE_HISTORY_END: there are no more */
};
#define KEDGE_HISTORY_END UINT32_MAX

/* Reads the closed rounds from …to `last`, at most page->most of them. KEDGE_E_CORRUPT names the entry. */
KEDGE_NODISCARD int kedge_history_read(const struct kedge_history_source *source, uint32_t from,
                                       uint32_t last, struct kedge_history_page *page,
                                       struct kedge_diag *reterr);
/* What a round-opened says: sites selected (of a job with a buffer also those still at work, from its lists),
 * time. */
KEDGE_NODISCARD int kedge_history_take_opened(const struct kedge_history_source *source,
                                              const struct kedge_st_round_opened *o,
                                              struct kedge_round_history *row, struct kedge_diag *reterr);

#endif
