/* The list of all decisions of a record, in the order in which their results stand in its digest.
 *
 * The order of this list is a promise: its results are hashed in it, and the digest of a record must stay
 * what it was in every later version (test_results in test_record.c). The number of a kind is hashed as well,
 * so a new kind gets a new number. */
#include "chain/audit/rounds/replay.h"
#include "round/split.h"
#include "strategy/server.h"

static void add(struct kedgei_replay *r, struct kedgei_decision d)
{
    if (!kedgei_scratch_room(&r->a->scratch, &r->items, &r->cap, r->count, 64, sizeof *r->items)) {
        r->nomem = true;
        return;
    }
    r->items[r->count++] = d;
}

/* ---- of rounds ---- */

/* What a close decides of a group, or of all together (group 0). It must name exactly what the engine
 * will ask for in this round: a decision that is listed and never answered is reported as missing, one
 * that is answered and not listed would not be counted. */
static bool decides(const struct kedgei_job *job, const struct kedgei_round *round,
                    enum kedgei_decision_kind kind, uint32_t group)
{
    const struct kedge_st_step_group *row = kedgei_step_group(round->step, group);
    const bool is_refreshed = kedgei_refreshes(job, round);
    switch (kind) {
    case KEDGEI_AGGREGATE:
        return round->aggregates[group] != NULL;
    case KEDGEI_GROUPING:
        return round->pretrain && group == 0;
    case KEDGEI_DIRECTION:
        return row && (round->pretrain || (is_refreshed && kedgei_estimate_of(job, round, group)));
    case KEDGEI_SERVER:
        return row && !round->pretrain && round->aggregates[group]
               && kedge_server_states(job->spec.server) > 0;
    case KEDGEI_DRIFT:
        return is_refreshed && group == 0;
    case KEDGEI_RESHAPE:
        return is_refreshed && !kedgei_drifted(round) && group == 0;
    case KEDGEI_TRIALS:
        return kedgei_tries(job, round) && group == 0;
    case KEDGEI_JOINED:
        return row && !round->pretrain && !row->merged_into && kedgei_is_joined(job, round, group);
    case KEDGEI_SPLIT:
        return !round->pretrain && round->aggregates[group]
               && kedge_compute_split_is_open(&job->spec, round->number);
    case KEDGEI_MEETING:
        return !round->pretrain && kedgei_meets(job, round) && group == 0;
    case KEDGEI_MIXING:
        return !round->pretrain && job->spec.mixing > 0 && round->aggregate_count >= 2 && group == 0;
    case KEDGEI_INITIAL:
    case KEDGEI_SELECTION:
    case KEDGEI_ASSIGNED:
    case KEDGEI_NEAREST:
        break;
    }
    return false; /* of no close */
}

/* Which groups become one, are cut or tried: no group's alone. */
static bool is_of_all(enum kedgei_decision_kind kind)
{
    return kind == KEDGEI_RESHAPE || kind == KEDGEI_TRIALS;
}

/* Without a step the round was not closed; then only the aggregates that are already stated can be
 * judged. */
static void add_round(struct kedgei_replay *r, const struct kedgei_job *job, const struct kedgei_round *round)
{
    static const enum kedgei_decision_kind of_close[] = {
        KEDGEI_AGGREGATE, KEDGEI_GROUPING, KEDGEI_SERVER, KEDGEI_DIRECTION, KEDGEI_DRIFT, KEDGEI_RESHAPE,
        KEDGEI_TRIALS,    KEDGEI_JOINED,   KEDGEI_SPLIT,  KEDGEI_MEETING,   KEDGEI_MIXING};
    add(r, (struct kedgei_decision){.kind = KEDGEI_SELECTION, .job = job, .round = round});
    if (round->kept || round->replaced) {
        return; /* nothing was computed */
    }
    for (size_t k = 0; k < (round->step ? sizeof of_close / sizeof of_close[0] : 1); k++) {
        for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            if (decides(job, round, of_close[k], g)) {
                add(r, (struct kedgei_decision){.kind = of_close[k],
                                                .job = job,
                                                .round = round,
                                                .fact = of_close[k] == KEDGEI_AGGREGATE ? round->aggregates[g]
                                                                                        : NULL,
                                                .group = is_of_all(of_close[k]) ? KEDGE_GROUP_NONE : g});
            }
        }
    }
}

/* ---- of sites ---- */

/* The round whose directions a group was found by: it made them, or it is the last one closed before. A
 * newcomer is compared with the groups as they were when it came, which are those of the round before. */
static const struct kedgei_round *directions_of(const struct kedgei_job *job,
                                                const struct kedge_st_group_assigned *g)
{
    bool made = g->how != KEDGE_GROUP_NEWCOMER && g->how != KEDGE_GROUP_MIGRATION;
    const struct kedgei_round *round = made           ? kedgei_round_find(job, g->round)
                                       : g->round > 0 ? kedgei_round_closed(job, g->round - 1)
                                                      : NULL;
    return round && round->step && g->group < kedgei_groups_after(job, round->number) ? round : NULL;
}

/* Whether a statement of this round gave the site the group that it trained for; else the group that it had
 * stays. */
static bool is_stated(const struct kedgei_log *log, const struct kedgei_fact *update)
{
    const struct kedge_st_update *u = update->body;
    const struct kedgei_fact *last = kedgei_group_before(log, &u->job, &u->site, update->index);
    return last && ((const struct kedge_st_group_assigned *)last->body)->round == u->round;
}

/* A group that is stated, or (by_model) taken for granted by an update. Updates count as well where
 * groups follow from a site's last model: no statement says the group, so that it trained for it is the
 * claim to be judged. */
static void add_placed(struct kedgei_replay *r, const struct kedgei_log *log, bool by_model)
{
    for (uint64_t i = 0; i < log->count; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(log, i);
        const struct kedge_st_group_assigned *g = fact->body;
        const struct kedge_st_update *u = fact->body;
        bool moves = fact->kind == KEDGE_ST_GROUP_ASSIGNED;
        bool stays = by_model && fact->kind == KEDGE_ST_UPDATE && u->update_kind == KEDGE_TRAIN_TRAIN;
        const struct kedgei_job *job =
            moves || stays ? kedgei_job_find(r->a, moves ? &g->job : &u->job) : NULL;
        if (!job || !job->usable || job->round_count == 0) {
            continue;
        }
        const bool goes_by_model = kedge_job_spec_grouped_by(&job->spec) == KEDGE_GROUPED_BY_TASK;
        const struct kedgei_round *round = NULL;
        if (by_model && goes_by_model && !(stays && is_stated(log, fact))) {
            round = kedgei_round_find(job, moves ? g->round : u->round);
        } else if (!by_model && kedgei_round_at(job, 0)->number == 0) {
            round = directions_of(job, g);
        }
        if (round) {
            add(r, (struct kedgei_decision){.kind = by_model ? KEDGEI_NEAREST : KEDGEI_ASSIGNED,
                                            .job = job,
                                            .round = round,
                                            .log = log,
                                            .fact = fact});
        }
    }
}

/* A job of which a tenant's ledger is missing is left out of a whole record's replay (that is an error
 * already) and kept in the replay of a tenant's copy, where its decisions are counted as skipped. */
int kedgei_decisions_collect(struct kedgei_replay *r)
{
    for (uint32_t j = 0; j < r->a->job_count; j++) {
        const struct kedgei_job *job = r->a->jobs[j];
        if (!job->usable || (!r->a->skipped && !kedgei_job_whole(job))) {
            continue; /* said already */
        }
        const struct kedge_st_job_opened *o = job->opened->body;
        const bool is_made = !job->spec.has_initial_model || kedge_job_spec_has_base(&job->spec);
        for (uint32_t g = 0; is_made && g <= o->first_model_count; g++) {
            add(r, (struct kedgei_decision){.kind = KEDGEI_INITIAL, .job = job, .group = g});
        }
        for (size_t k = 0; k < kedgei_opening_count(job); k++) {
            add_round(r, job, kedgei_opening_at(job, k));
        }
    }
    for (uint32_t t = 0; t < r->a->tenant_count; t++) {
        add_placed(r, &r->a->tenants[t], false);
        add_placed(r, &r->a->tenants[t], true);
    }
    return r->nomem ? kedgei_scratch_error(&r->a->scratch, &r->a->diag) : KEDGE_OK;
}
