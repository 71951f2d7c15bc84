/* The record of a job, entry by entry, folded into what is known between its rounds (round/state.h).
 *
 * Entries come in the order in which they became true, which the main chain's checkpoints of the tenants'
 * ledgers give: job-opened; of each round its round-opened, what came while it was open (update,
 * group-assigned by newcomer, migration or nearest), its aggregates and its step, then the group-assigned of
 * its close. So a fold may begin at any round from which on nothing is missing (kedge_round_fold_first) with
 * the sites' group-assigned of the rounds before it.
 *
 * Where a close gives a site a group that no list says, the site is left `is_undecided`: its group follows
 * from vectors (kedge_close_follow, round/close), which a fold does not read. Nothing is verified here but
 * what keeps the fold within its arrays. Pure. */
#ifndef KEDGE_ROUND_FOLD_H
#define KEDGE_ROUND_FOLD_H

#include "chain/statement/input_list.h"
#include "chain/statement/statement.h"
#include "round/state.h"

struct kedge_round_fold {
    const struct kedge_job_spec *spec;
    struct kedge_round_state state;
    struct kedge_round_site *sites; /* the caller's, each begun by kedge_round_site_first */
    uint32_t site_count;
    /* of the round that is open, or of the last one */
    uint32_t round, draw;
    enum kedge_task_kind kind;
    bool is_open;
};

/* Before the job's first entry. */
void kedge_round_fold_begin(struct kedge_round_fold *ret, const struct kedge_job_spec *spec,
                            struct kedge_round_site *sites, uint32_t site_count);
/* One statement about the job. site: the place in io->sites of the site that it is about; KEDGE_ROUND_NONE
 * where it is about none, or about one that nobody knows. Statements of other kinds change nothing.
 * KEDGE_E_CORRUPT: a group that the job cannot have. */
KEDGE_NODISCARD int kedge_round_fold(struct kedge_round_fold *io, const struct kedge_statement *st,
                                     uint32_t site);
/* A list of the round-opened or aggregate that was folded last. sites: the places of its rows' sites, as
 * above. */
KEDGE_NODISCARD int kedge_round_fold_list(struct kedge_round_fold *io, const struct kedge_statement *st,
                                          const struct kedge_input_list *list, const uint32_t *sites);

/* A training update of the site, for the model of this group, was taken: where groups follow from that, what
 * follows. */
void kedge_round_site_trained(const struct kedge_job_spec *spec, uint32_t group,
                              const struct kedge_hash *update, const struct kedge_hash *base,
                              struct kedge_round_site *io);

/* From which round on a fold must read for the state after the close of round `last`. */
uint32_t kedge_round_fold_first(const struct kedge_job_spec *spec, uint32_t last);
/* The group-assigned of the close of their round, the others are of the time when it was open. */
bool kedge_round_is_of_close(const struct kedge_st_group_assigned *assigned);

#endif
