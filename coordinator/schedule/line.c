#include "coordinator/schedule/line.h"

void kedge_line_turns(struct kedge_line_job *jobs, uint32_t count, uint32_t *io_places)
{
    for (uint32_t i = 0; i < count; i++) {
        struct kedge_line_job *job = &jobs[i];
        job->order = i;
        job->turn = 0;
        for (uint32_t t = 0; t < job->tenant_count; t++) {
            uint32_t *places = &io_places[job->tenants[t]];
            job->turn = *places > job->turn ? *places : job->turn;
            *places += !job->is_held; /* one that is held takes no place before others do */
        }
    }
}

bool kedge_line_is_before(const struct kedge_line_job *a, const struct kedge_line_job *b)
{
    if (a->is_held != b->is_held) {
        return b->is_held;
    }
    return a->turn != b->turn ? a->turn < b->turn : a->order < b->order;
}

uint32_t kedge_line_next(const struct kedge_line_job *jobs, uint32_t count)
{
    uint32_t next = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (!jobs[i].is_held && (next == UINT32_MAX || kedge_line_is_before(&jobs[i], &jobs[next]))) {
            next = i;
        }
    }
    return next;
}

int kedge_line_compare(const void *a, const void *b)
{
    return kedge_line_is_before(a, b) ? -1 : kedge_line_is_before(b, a);
}

bool kedge_line_has_room(uint32_t own, uint32_t all, uint32_t most)
{
    return all < most && own < most - all;
}
