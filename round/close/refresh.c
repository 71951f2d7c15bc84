/* Closing a round of training in which directions are estimated again, from the updates by which all sites
 * have their groups: newer ones than the groups were made from, of more sites. How far they have moved
 * decides whether the next round makes new groups. */
#include <string.h>

#include "common/base/try.h"
#include "round/close/flexcfl.h"

/* A group without such a site, or all of whose updates are zero, keeps its direction. `made` is set at the
 * first move and stays: drift is measured from where the group was made, else many small moves would never
 * be seen. Zero says that both are the same, so that a step of a group that never moved does not name a
 * vector twice. */
static int estimate(struct kedge_close *c, const struct kedgei_signs *s, uint32_t group)
{
    struct kedge_round_result *r = c->result;
    struct kedge_hash *made = &r->made[group], *now = &r->directions[group], next;
    int err = kedgei_direct(c, group, &s->of, false, &next);
    if (err) {
        return err == KEDGE_E_NO_DIRECTION ? KEDGE_OK : err;
    }
    struct kedge_hash begin = kedge_hash_is_zero(made) ? *now : *made;
    *now = next;
    *made = begin;
    if (kedge_hash_eq(&begin, &next)) {
        memset(made, 0, sizeof *made);
    }
    return KEDGE_OK;
}

/* Drift is one number of all groups, the largest move in units of the mean distance between them, so all
 * directions are estimated first. Groups that drifted far are not reshaped: the next round makes them
 * anew. */
static int refresh(struct kedge_close *c, struct kedgei_signs *s)
{
    struct kedge_round_result *r = c->result;
    KEDGE_TRY(kedgei_choose_signs(c, s->chosen));
    for (uint32_t g = 0; g < r->groups; g++) {
        KEDGE_TRY(kedgei_signs_of(c, s, g));
        KEDGE_TRY(estimate(c, s, g));
    }
    KEDGE_TRY(kedgei_measure_drift(c, &r->drift));
    r->regroup = kedge_job_spec_drifted(r->drift);
    return r->regroup ? KEDGE_OK : kedgei_reshape(c, s);
}

int kedgei_refresh(struct kedge_close *c)
{
    struct kedgei_signs s;
    int err = kedgei_signs_init(c, &s);
    err = err ? err : refresh(c, &s);
    kedgei_signs_deinit(&s);
    return err;
}
