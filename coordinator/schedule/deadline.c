#include "coordinator/schedule/deadline.h"

#include <string.h>

__extension__ typedef unsigned __int128 wide;

static const uint64_t millionth = 1000000;

uint64_t kedge_schedule_speed(const struct kedge_schedule_due *job, uint32_t slots)
{
    return slots == 0 ? 0 : slots * millionth * millionth / (millionth + (uint64_t)job->loss * (slots - 1));
}

/* ---- a plan: steps, and how many slots are free in each ---- */

struct plan {
    uint64_t step_ms;
    uint32_t free[KEDGE_SCHEDULE_STEPS];
};

static void plan_begin(const struct kedge_schedule_room *room, uint64_t far_ms, struct plan *ret)
{
    const uint64_t least_ms = (far_ms + KEDGE_SCHEDULE_STEPS - 1) / KEDGE_SCHEDULE_STEPS;
    ret->step_ms = least_ms > room->step_ms ? least_ms : room->step_ms;
    for (uint32_t i = 0; i < KEDGE_SCHEDULE_STEPS; i++) {
        ret->free[i] = room->slots;
    }
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How long step i lasts before the job is due. */
static uint64_t part_of(const struct plan *p, const struct kedge_schedule_due *job, uint32_t i)
{
    const uint64_t begin = i * p->step_ms, left = job->due_ms > begin ? job->due_ms - begin : 0;
    return left < p->step_ms ? left : p->step_ms;
}

/* With at most so many slots in each step the job ends in time. With `takes` it has them from then on, in the
 * steps before it ends. */
static bool ends_in_time(struct plan *p, const struct kedge_schedule_due *job, uint32_t slots, bool takes)
{
    wide left = job->work;
    for (uint32_t i = 0; i < KEDGE_SCHEDULE_STEPS && left > 0; i++) {
        const uint64_t ms = part_of(p, job, i);
        const uint32_t has = least(slots, p->free[i]);
        const wide done = (wide)kedge_schedule_speed(job, has) * ms;
        if (ms == 0) {
            return false;
        }
        left = done < left ? left - done : 0;
        p->free[i] -= takes ? has : 0;
    }
    return left == 0;
}

/* More slots never do less, so the least number is found by halves. */
static uint32_t least_share(struct plan *p, const struct kedge_schedule_due *job)
{
    uint32_t low = 1, high = job->most;
    if (job->work == 0 || !ends_in_time(p, job, high, false)) {
        return 0;
    }
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (ends_in_time(p, job, mid, false)) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return low;
}

bool kedge_schedule_shares(const struct kedge_schedule_room *room, const struct kedge_schedule_due *jobs,
                           size_t count, uint32_t *ret_shares, uint32_t *ret_now)
{
    struct plan p;
    bool all = true;
    plan_begin(room, count > 0 ? jobs[count - 1].due_ms : 0, &p);
    for (size_t i = 0; i < count; i++) {
        ret_shares[i] = least_share(&p, &jobs[i]);
        ret_now[i] = least(ret_shares[i], p.free[0]);
        all = all && (ret_shares[i] > 0 || jobs[i].work == 0);
        if (ret_shares[i] > 0) {
            (void)ends_in_time(&p, &jobs[i], ret_shares[i], true);
        }
    }
    return all;
}

/* ---- may another one be promised? ---- */

/* By deadline; among equals in the order of calls, so who was admitted first comes first. */
static void insert(struct kedge_schedule_due *sorted, size_t count, const struct kedge_schedule_due *job)
{
    size_t at = count;
    while (at > 0 && sorted[at - 1].due_ms > job->due_ms) {
        at--;
    }
    memmove(&sorted[at + 1], &sorted[at], (count - at) * sizeof *sorted);
    sorted[at] = *job;
}

/* sorted: those that end in time without it. Returns the share with which all of them still do and it does,
 * too; 0: there is none. */
static uint32_t share_beside(const struct kedge_schedule_room *room, const struct kedge_schedule_due *sorted,
                             size_t count, const struct kedge_schedule_due *job)
{
    struct plan p;
    const uint64_t far_ms =
        count > 0 && sorted[count - 1].due_ms > job->due_ms ? sorted[count - 1].due_ms : job->due_ms;
    uint32_t ret = 0;
    size_t i = 0;
    plan_begin(room, far_ms, &p);
    for (; i < count && sorted[i].due_ms <= job->due_ms; i++) {
        (void)ends_in_time(&p, &sorted[i], least_share(&p, &sorted[i]), true);
    }
    ret = least_share(&p, job);
    (void)ends_in_time(&p, job, ret, true);
    for (; i < count && ret > 0; i++) {
        const uint32_t share = least_share(&p, &sorted[i]);
        ret = share > 0 || sorted[i].work == 0 ? ret : 0;
        (void)ends_in_time(&p, &sorted[i], share, true);
    }
    return ret;
}

/* Of the jobs those that end in time, by deadline, into `scratch`; the others have lost already. */
static size_t keep_hopeful(const struct kedge_schedule_room *room, const struct kedge_schedule_due *jobs,
                           size_t count, struct kedge_schedule_due *scratch)
{
    struct plan p;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        insert(scratch, i, &jobs[i]);
    }
    plan_begin(room, count > 0 ? scratch[count - 1].due_ms : 0, &p);
    for (size_t i = 0; i < count; i++) {
        const uint32_t share = least_share(&p, &scratch[i]);
        if (share > 0) {
            (void)ends_in_time(&p, &scratch[i], share, true);
            scratch[kept++] = scratch[i];
        }
    }
    return kept;
}

/* The nearest deadline that would do, to one part in 64: doubled until one does, and halved from there. */
static uint64_t earliest(const struct kedge_schedule_room *room, const struct kedge_schedule_due *sorted,
                         size_t count, const struct kedge_schedule_due *job)
{
    struct kedge_schedule_due later = *job;
    uint64_t low = job->due_ms, high = job->due_ms > room->step_ms ? job->due_ms : room->step_ms;
    for (later.due_ms = high; share_beside(room, sorted, count, &later) == 0; later.due_ms = high) {
        if (high == KEDGE_SCHEDULE_FAR_MS) {
            return 0;
        }
        low = high;
        high = high < KEDGE_SCHEDULE_FAR_MS / 2 ? 2 * high : KEDGE_SCHEDULE_FAR_MS;
    }
    while (high - low > high / 64 && high - low > 1) {
        later.due_ms = low + (high - low) / 2;
        if (share_beside(room, sorted, count, &later) > 0) {
            high = later.due_ms;
        } else {
            low = later.due_ms;
        }
    }
    return high;
}

static bool is_too_large(const struct kedge_schedule_room *room, const struct kedge_schedule_due *jobs,
                         size_t count, const struct kedge_schedule_due *job, uint64_t median)
{
    wide promised = 0;
    for (size_t i = 0; i < count; i++) {
        promised += jobs[i].work;
    }
    return room->guard_ms > 0 && median > 0 && job->work / 2 > median
           && promised > (wide)room->slots * room->guard_ms * millionth;
}

struct kedge_schedule_decision kedge_schedule_admit(const struct kedge_schedule_room *room,
                                                    const struct kedge_schedule_due *jobs, size_t count,
                                                    const struct kedge_schedule_due *job, uint64_t median,
                                                    struct kedge_schedule_due *scratch)
{
    struct kedge_schedule_decision d = {.verdict = KEDGE_SCHEDULE_ADMITTED};
    if (is_too_large(room, jobs, count, job, median)) {
        d.verdict = KEDGE_SCHEDULE_TOO_LARGE;
        return d;
    }
    const size_t kept = keep_hopeful(room, jobs, count, scratch);
    d.share = share_beside(room, scratch, kept, job);
    if (d.share == 0) {
        d.verdict = KEDGE_SCHEDULE_TOO_EARLY;
        d.earliest_ms = earliest(room, scratch, kept, job);
    }
    return d;
}
