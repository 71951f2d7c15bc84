/* Rare turns, for the simulator: at each of these places the core takes the unusual branch now and
 * then, by the host's own stream, so that paths which need bad luck are walked in every run.
 * Without a host that asks for it the branches are not taken. */
#include "coordinator/core/rare.h"

#include "coordinator/core/core.h"

static const char *const names[KEDGE_COORD_RARE_COUNT] = {
    [KEDGE_COORD_RARE_BUSY] = "busy",
    [KEDGE_COORD_RARE_FEW_EFFECTS] = "few effects",
    [KEDGE_COORD_RARE_POLL_DROPPED] = "poll dropped",
    [KEDGE_COORD_RARE_UNHEARD] = "unheard",
    [KEDGE_COORD_RARE_UNSETTLED] = "unsettled",
    [KEDGE_COORD_RARE_SHORT_ROUND] = "short round",
    [KEDGE_COORD_RARE_RETRY_NOW] = "retry now",
    [KEDGE_COORD_RARE_OTHER_JOB] = "other job",
    [KEDGE_COORD_RARE_NO_PATIENCE] = "no patience",
};

const char *kedge_coord_rare_name(enum kedge_coord_rare_site site)
{
    KEDGE_ASSERT((size_t)site < KEDGE_COORD_RARE_COUNT);
    return names[site];
}

void kedge_coord_rare_use(struct kedge_coord *c, struct kedge_coord_rare *rare)
{
    KEDGE_ASSERT(!rare || rare->permille <= 1000);
    c->rare = rare;
}

bool kedgei_coord_rare(struct kedge_coord *c, enum kedge_coord_rare_site site)
{
    struct kedge_coord_rare *r = c->rare;
    bool fires = r && r->enabled[site] && kedge_rng_below(&r->rng, 1000) < r->permille;
    if (fires) {
        r->fired[site]++;
    }
    return fires;
}
