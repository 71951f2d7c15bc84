/* Two accounts and a reserve. Small requests have an eighth to themselves, so that heartbeats pass while
 * models fill the rest. A large body is accepted only if one more frame would still fit: its reply has
 * room then, so no set of half-served requests can wait for memory that only they could free. No peer
 * holds more than a quarter of the large account, or two small requests with the largest replies where
 * that is more; else one could hold all of it. */
#include "common/net/budget.h"

void kedgei_budget_init(struct kedgei_budget *b, size_t bytes, size_t frame_max)
{
    size_t small = bytes / 8, large = bytes - small;
    size_t share = 2 * frame_max + KEDGEI_SMALL_MAX; /* two small requests with the largest replies */
    large = large < 2 * frame_max ? 2 * frame_max : large;
    *b = (struct kedgei_budget){.small.limit = small < KEDGEI_SMALL_MAX ? KEDGEI_SMALL_MAX : small,
                                .large.limit = large,
                                .frame_max = frame_max,
                                .share = large / 4 < share ? share : large / 4};
}

bool kedgei_budget_is_small(size_t len)
{
    return len <= KEDGEI_SMALL_MAX;
}

bool kedgei_budget_fits_body(const struct kedgei_budget *b, size_t len)
{
    if (kedgei_budget_is_small(len)) {
        return b->small.used + len <= b->small.limit;
    }
    return b->large.used + len + b->frame_max <= b->large.limit;
}

bool kedgei_budget_fits_reply(const struct kedgei_budget *b, size_t more)
{
    return b->large.used + more <= b->large.limit;
}

bool kedgei_budget_fits_share(const struct kedgei_budget *b, size_t own, size_t more)
{
    return own + more <= b->share;
}
