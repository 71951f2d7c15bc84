/* Polls that wait: in a heap by the time at which they are answered by WAIT. Each site knows its
 * place in the heap, so a poll that is answered early is taken out of the middle in logarithmic
 * time. */
#include "coordinator/core/core.h"

static bool heap_before(const struct kedge_coord *c, uint32_t a, uint32_t b)
{
    return c->sites[c->heap[a]].park_until_ns < c->sites[c->heap[b]].park_until_ns;
}

static void heap_swap(struct kedge_coord *c, uint32_t a, uint32_t b)
{
    uint32_t t = c->heap[a];
    c->heap[a] = c->heap[b];
    c->heap[b] = t;
    c->sites[c->heap[a]].heap_pos = a;
    c->sites[c->heap[b]].heap_pos = b;
}

/* Restores the order around one changed position. */
static void heap_fix(struct kedge_coord *c, uint32_t at)
{
    while (at > 0 && heap_before(c, at, (at - 1) / 2)) {
        heap_swap(c, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
    while (2 * at + 1 < c->parked_count) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < c->parked_count && heap_before(c, child + 1, child)) {
            child++;
        }
        if (!heap_before(c, child, at)) {
            break;
        }
        heap_swap(c, at, child);
        at = child;
    }
}

void kedgei_park(struct kedge_coord *c, uint32_t site, uint32_t request, uint64_t until_ns)
{
    struct site *s = &c->sites[site];
    KEDGE_ASSERT(s->request == KEDGE_COORD_NONE && request != KEDGE_COORD_NONE);
    KEDGE_ASSERT(c->parked_count < c->limits.sites_max);
    s->request = request;
    s->park_until_ns = until_ns;
    s->heap_pos = c->parked_count;
    c->heap[c->parked_count++] = site;
    heap_fix(c, s->heap_pos);
}

uint32_t kedgei_unpark(struct kedge_coord *c, uint32_t site)
{
    struct site *s = &c->sites[site];
    uint32_t request = s->request;
    if (request == KEDGE_COORD_NONE) {
        return request;
    }
    KEDGE_ASSERT(s->heap_pos < c->parked_count && c->heap[s->heap_pos] == site);
    uint32_t at = s->heap_pos;
    heap_swap(c, at, c->parked_count - 1);
    c->parked_count--;
    if (at < c->parked_count) {
        heap_fix(c, at);
    }
    s->request = KEDGE_COORD_NONE;
    return request;
}

uint64_t kedgei_poll_deadline(const struct kedge_coord *c)
{
    return c->parked_count > 0 ? c->sites[c->heap[0]].park_until_ns : UINT64_MAX;
}
