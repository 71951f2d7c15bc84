/* What the record says of a close. */
#include <stdio.h>

#include "round/close/close.h"
#include "round/regroup.h"
#include "strategy/server.h"

/* `stepped` is written only where something followed the server's step (mixing, a meeting, a joining): then
 * `after` no longer shows what the server made, and an auditor could not check the two separately. The
 * names of rules come in a fixed order: groups kept, groups made anew, else that of server and mixing, or
 * of a meeting. */
void kedge_close_state_step(const struct kedge_round_result *r, const struct kedge_job_spec *spec,
                            struct kedge_st_step *ret)
{
    const bool is_cold = r->kind == KEDGE_TASK_PRETRAIN;
    const struct kedge_rule_name rule =
        r->met ? kedge_job_spec_meeting_rule(spec) : kedge_job_spec_step_rule(spec, is_cold, r->mixed);
    *ret = (struct kedge_st_step){.job = spec->name,
                                  .round = r->round,
                                  .eta = r->mixed ? spec->mixing : 0,
                                  .drift = r->drift,
                                  .personal = r->is_personal,
                                  .charged = r->charged,
                                  .spent = r->spent,
                                  .group_count = r->groups};
    snprintf(ret->rule, sizeof ret->rule, "%s",
             r->kept                   ? KEDGE_RULE_KEPT
             : is_cold && r->round > 0 ? KEDGE_RULE_RECLUSTER
                                       : rule.s);
    for (uint32_t g = 0; g < r->groups; g++) {
        const bool is_changed = r->mixed || r->met || r->joined[g];
        ret->groups[g] = (struct kedge_st_step_group){.group = g,
                                                      .before = r->before[g],
                                                      .aggregate = r->aggregate[g],
                                                      .after = r->after[g],
                                                      .direction = r->directions[g],
                                                      .made = r->made[g],
                                                      .whole = r->whole[g],
                                                      .split_of = r->split_of[g],
                                                      .merged_into = r->merged_into[g],
                                                      .trial = r->trial[g],
                                                      .tried_with = r->tried_with[g],
                                                      .state_before = r->state_before[g],
                                                      .state_after = r->state_after[g]};
        if (is_changed && r->trained[g] && kedge_server_states(spec->server) > 0) {
            ret->groups[g].stepped = r->stepped[g];
        }
    }
}
