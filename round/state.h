/* What is known of a job between its rounds: the models and directions of its groups, and of each site the
 * group that it is in. The coordinator keeps it while it runs; a restart folds it from the record
 * (round/fold.h), and both must be the same. Plain data; groups' arrays belong to no strategy, what one does
 * not use stays zero. Pure. */
#ifndef KEDGE_ROUND_STATE_H
#define KEDGE_ROUND_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/task_kind.h"
#include "coordinator/schedule/budget.h"
#include "crypto/hash.h"
#include "job/job_spec.h"
#include "round/plan.h"

#define KEDGE_ROUND_NONE UINT32_MAX /* no group, no round */

struct kedge_round_group {
    struct kedge_hash model, direction;
    struct kedge_hash direction_made;   /* with which the group was made; zero: `direction` */
    struct kedge_hash direction_before; /* before the last close; zero: there was none */
    struct kedge_hash server_state;     /* of the server's optimiser; zero: it begins */
    uint64_t weight_since_meeting;      /* edges: what was added up for this one since they met */
    uint32_t split_of;       /* by the last close cut off this group, numbered from 1; 0: it was not */
    struct kedge_hash trial; /* by which its sites and those of `tried_with`, from 1, judge; zero: by none */
    uint32_t tried_with;
    uint32_t merged_into; /* part of this one for ever, numbered from 1; 0: of none */
};

struct kedge_round_state {
    uint32_t round; /* the last that is closed; KEDGE_ROUND_NONE: none is */
    enum kedge_task_kind kind;
    uint32_t groups;
    bool regroup; /* groups have drifted so far that the next round makes them anew */
    bool
        is_personal; /* sites have found that what their own training makes of the model serves them better */
    struct kedge_schedule_book book; /* of a job with a budget, in millionths of its unit; else zeros */
    struct kedge_round_group group[KEDGE_GROUPS_MAX];
};

struct kedge_round_site {
    uint32_t group;       /* that it is in, or that the last close gives it; KEDGE_ROUND_NONE */
    uint32_t since;       /* round of its last group-assigned; KEDGE_ROUND_NONE: it has none */
    uint32_t task;        /* it is at work on the task of this round; KEDGE_ROUND_NONE: on none */
    uint64_t samples;     /* of its training update for the open round; 0: none so far */
    bool is_candidate;    /* of the round that is open */
    bool is_away;         /* asynchronous: at work, and not heard of as the round opened */
    bool is_unstated;     /* `group` is the last close's, and its group-assigned is still to come … */
    bool is_undecided;    /* … or that close gave it one that no list says: `group` is the former one */
    struct kedge_hash by; /* the update that gave it `group`; zero: none */
    struct kedge_hash last_update, last_base; /* what it trained last, where groups follow from that */
    struct kedge_round_cost cost;             /* what training takes it, in jobs that plan */
    uint32_t percent; /* of its data that the open round's plan gives it; 0: it is not planned */
};

/* SHA-256 of all of it in one order of bytes. Sites of which the record says nothing yet do not count; the
 * others count in the order of the array, which the caller keeps: by (tenant id, site id). KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_round_state_digest(const struct kedge_round_state *state,
                                             const struct kedge_round_site *sites, uint32_t site_count,
                                             struct kedge_hash *ret);

/* A site as it begins. place: of its tenant in the spec. */
struct kedge_round_site kedge_round_site_first(const struct kedge_job_spec *spec, uint32_t place);

#endif
