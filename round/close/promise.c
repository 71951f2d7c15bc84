#include "round/close/promise.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/schedule/deadline.h"
#include "crypto/hash.h"

__extension__ typedef unsigned __int128 wide;

enum { STEP_MS = 1000 };
static const uint64_t work_most = (uint64_t)1 << 62;

struct queue {
    const struct kedge_promise *rows[KEDGE_ST_PROMISES_MAX]; /* by name */
    uint32_t count;
};

static bool share_tenants(const struct kedge_job_spec *a, const struct kedge_job_spec *b)
{
    for (uint32_t i = 0; i < a->tenant_count; i++) {
        for (uint32_t k = 0; k < b->tenant_count; k++) {
            if (kedge_id_eq(&a->tenants[i], &b->tenants[k])) {
                return true;
            }
        }
    }
    return false;
}

static bool is_reached(const struct queue *q, const struct kedge_job_spec *spec,
                       const struct kedge_job_spec *other)
{
    bool is = share_tenants(spec, other);
    for (uint32_t i = 0; i < q->count && !is; i++) {
        is = share_tenants(q->rows[i]->spec, other);
    }
    return is;
}

static void insert(struct queue *q, const struct kedge_promise *p)
{
    uint32_t at = q->count++;
    for (; at > 0 && strcmp(q->rows[at - 1]->spec->name.s, p->spec->name.s) > 0; at--) {
        q->rows[at] = q->rows[at - 1];
    }
    q->rows[at] = p;
}

/* Those that share sites with the new job, through others too: until none is found any more. */
static void find_queue(const struct kedge_job_spec *spec, const struct kedge_promise *promises,
                       uint32_t count, uint64_t now_ms, struct queue *ret)
{
    bool is_in[KEDGE_ST_PROMISES_MAX] = {false}, more = true;
    ret->count = 0;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < count; i++) {
            const struct kedge_promise *p = &promises[i];
            if (!is_in[i] && p->deadline_ms > now_ms && is_reached(ret, spec, p->spec)) {
                is_in[i] = more = true;
                insert(ret, p);
            }
        }
    }
}

static uint64_t round_of(const struct kedge_promise *p)
{
    const uint64_t longest = kedge_schedule_estimate(&p->times);
    return longest > 0 ? longest : p->round_ms;
}

static uint32_t rounds_left(const struct kedge_promise *p)
{
    return p->spec->rounds > p->round ? p->spec->rounds - p->round : 0;
}

/* Row after row: SHA-256 of the digest so far and the row. */
static void hash_queue(const struct queue *q, struct kedge_hash *ret)
{
    memset(ret, 0, sizeof *ret);
    for (uint32_t i = 0; i < q->count; i++) {
        const struct kedge_promise *p = q->rows[i];
        char line[KEDGE_ID_MAX + 80];
        const int len = snprintf(line, sizeof line, "%s %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
                                 p->spec->name.s, rounds_left(p), round_of(p), p->deadline_ms);
        kedge_sha256_2(kedge_view_of(ret->b, sizeof ret->b), kedge_view_of(line, (size_t)len), ret);
    }
}

/* The lower one of two in the middle; of none 0. */
static uint64_t median(uint64_t *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint64_t v = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > v; at--) {
            values[at] = values[at - 1];
        }
        values[at] = v;
    }
    return count > 0 ? values[(count - 1) / 2] : 0;
}

static uint64_t work_of(uint32_t rounds, uint64_t round_ms)
{
    const wide work = (wide)round_ms * rounds * KEDGE_ST_SHARES * 1000000 / 4 * 5;
    return work < work_most ? (uint64_t)work : work_most;
}

static struct kedge_schedule_due due_of(uint32_t rounds, uint64_t round_ms, uint64_t deadline_ms,
                                        uint64_t now_ms)
{
    const uint64_t left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
    return (struct kedge_schedule_due){.work = work_of(rounds, round_ms),
                                       .due_ms =
                                           left_ms < KEDGE_SCHEDULE_FAR_MS ? left_ms : KEDGE_SCHEDULE_FAR_MS,
                                       .most = KEDGE_PROMISED_SHARES};
}

static void estimate_round(const struct kedge_job_spec *spec, const struct queue *q,
                           struct kedge_st_job_admission *io)
{
    uint64_t times[KEDGE_ST_PROMISES_MAX];
    for (uint32_t i = 0; i < q->count; i++) {
        times[i] = round_of(q->rows[i]);
    }
    io->round_from = spec->round_s > 0 ? KEDGE_PROMISE_DECLARED
                     : q->count > 0    ? KEDGE_PROMISE_MEDIAN
                                       : KEDGE_PROMISE_TIMEOUT;
    io->round_ms = spec->round_s > 0 ? (uint64_t)spec->round_s * 1000
                   : q->count > 0    ? median(times, q->count)
                                     : (uint64_t)spec->round_timeout_s * 1000;
}

enum kedge_statement_kind kedge_close_promise(const struct kedge_job_spec *spec,
                                              const struct kedge_promise *promises, uint32_t count,
                                              struct kedge_st_job_admission *io)
{
    struct queue q;
    struct kedge_schedule_due jobs[KEDGE_ST_PROMISES_MAX], scratch[KEDGE_ST_PROMISES_MAX + 1];
    uint64_t sizes[KEDGE_ST_PROMISES_MAX];
    find_queue(spec, promises, count, io->time_ms, &q);
    hash_queue(&q, &io->queue);
    io->queued = q.count;
    estimate_round(spec, &q, io);
    for (uint32_t i = 0; i < q.count; i++) {
        const struct kedge_promise *p = q.rows[i];
        jobs[i] = due_of(rounds_left(p), round_of(p), p->deadline_ms, io->time_ms);
        sizes[i] = work_of(p->spec->rounds, round_of(p));
    }
    io->deadline_ms = io->time_ms + (uint64_t)spec->deadline_s * 1000;
    const struct kedge_schedule_due mine = due_of(spec->rounds, io->round_ms, io->deadline_ms, io->time_ms);
    const struct kedge_schedule_room room = {KEDGE_PROMISED_SHARES, STEP_MS, io->guard_ms};
    const struct kedge_schedule_decision d =
        kedge_schedule_admit(&room, jobs, q.count, &mine, median(sizes, q.count), scratch);
    io->share = d.share;
    io->too_large = d.verdict == KEDGE_SCHEDULE_TOO_LARGE;
    io->earliest_ms = d.earliest_ms > 0 ? io->time_ms + d.earliest_ms : 0;
    return d.verdict == KEDGE_SCHEDULE_ADMITTED ? KEDGE_ST_JOB_ADMITTED : KEDGE_ST_JOB_REFUSED;
}
