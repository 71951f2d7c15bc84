/* Effects of the step that is going on, and times that follow from its own. */
#include <string.h>

#include "coordinator/core/coord.h"
#include "coordinator/core/core.h"

uint32_t kedgei_room(const struct kedge_coord *c)
{
    return c->fx_max - c->fx->count;
}

uint64_t kedgei_after(const struct kedge_coord *c, uint64_t pause_ns)
{
    return pause_ns < UINT64_MAX - c->now_ns ? c->now_ns + pause_ns : UINT64_MAX;
}

/* All handles begin as NONE, so a field that an effect does not set names nothing and not handle 0. */
struct kedge_coord_effect *kedgei_emit(struct kedge_coord *c, enum kedge_coord_effect_type type)
{
    KEDGE_ASSERT(c->stepping && kedgei_room(c) > 0);
    struct kedge_coord_effect *fx = &c->fx->items[c->fx->count++];
    memset(fx, 0, sizeof *fx);
    fx->type = type;
    fx->tenant = fx->site = fx->job = fx->round = fx->group = fx->request = fx->ticket = KEDGE_COORD_NONE;
    fx->evaluate_round = KEDGE_COORD_NONE;
    return fx;
}

struct kedge_coord_effect *kedgei_emit_job(struct kedge_coord *c, enum kedge_coord_effect_type type,
                                           uint32_t job)
{
    struct kedge_coord_effect *fx = kedgei_emit(c, type);
    fx->job = job;
    fx->round = c->jobs[job].round;
    return fx;
}

struct kedge_coord_effect *kedgei_emit_site(struct kedge_coord *c, enum kedge_coord_effect_type type,
                                            uint32_t job, uint32_t site)
{
    struct kedge_coord_effect *fx = kedgei_emit_job(c, type, job);
    fx->site = site;
    fx->tenant = c->sites[site].tenant;
    return fx;
}
