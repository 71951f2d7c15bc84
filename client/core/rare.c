/* Rare branches of a site's core, drawn by the simulator from a stream of its own. That stream is separate
 * from the site's jitter, so that enabling a branch does not change every other draw of the run, and a seed
 * that fails stays a reproduction. In the daemon s->rare is NULL and each of these costs one comparison. */
#include "client/core/rare.h"

#include "client/core/core.h"

static const char *const names[KEDGE_SITE_RARE_COUNT] = {
    [KEDGE_SITE_RARE_EARLY_BEAT] = "early beat",     [KEDGE_SITE_RARE_FETCH_GIVEN_UP] = "fetch given up",
    [KEDGE_SITE_RARE_LONG_PAUSE] = "long pause",     [KEDGE_SITE_RARE_SHORT_POLL] = "short poll",
    [KEDGE_SITE_RARE_SUBMIT_FIRST] = "submit first",
};

const char *kedge_site_rare_name(enum kedge_site_rare_site site)
{
    KEDGE_ASSERT((size_t)site < KEDGE_SITE_RARE_COUNT);
    return names[site];
}

void kedge_site_rare_use(struct kedge_site *s, struct kedge_site_rare *rare)
{
    KEDGE_ASSERT(!rare || rare->permille <= 1000);
    s->rare = rare;
}

bool kedgei_site_rare(struct kedge_site *s, enum kedge_site_rare_site site)
{
    struct kedge_site_rare *r = s->rare;
    bool fires = r && r->enabled[site] && kedge_rng_below(&r->rng, 1000) < r->permille;
    if (fires) {
        r->fired[site]++;
    }
    return fires;
}
