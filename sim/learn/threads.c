/* Items are handed out one by one, so that a large site keeps one thread while the others go on. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/learn/engine.h"

struct batch {
    struct kedgei_learn *l;
    kedgei_learn_work *work;
    uint8_t *results;
    size_t size;
    uint32_t count, rank, ranks; /* this process takes the items of order[] at rank, rank + ranks, … */
    const uint32_t *order;
    atomic_uint next, lane;
    atomic_int err;
};

/* One lane per thread: what a lane has room for is used by nobody else meanwhile. The first error ends the
 * handing out; items under way are finished, for their rooms must not be freed under them. */
static void *run_items(void *arg)
{
    struct batch *b = arg;
    struct kedgei_learn_lane *lane = &b->l->lanes[atomic_fetch_add(&b->lane, 1)];
    while (atomic_load(&b->err) == KEDGE_OK) {
        uint64_t at = (uint64_t)atomic_fetch_add(&b->next, 1) * b->ranks + b->rank;
        if (at >= b->count) {
            break;
        }
        uint32_t item = b->order ? b->order[at] : (uint32_t)at;
        int err = b->work(b->l, lane, item, b->results + (size_t)item * b->size);
        if (err) {
            int none = KEDGE_OK;
            (void)atomic_compare_exchange_strong(&b->err, &none, err);
        }
    }
    return NULL;
}

static void run_threads(struct batch *b)
{
    pthread_t threads[KEDGEI_LEARN_THREADS_MAX];
    uint32_t started = 0, mine = (b->count + b->ranks - 1 - b->rank) / b->ranks;
    /* A thread that cannot be had is one less: the caller's own does all that is left. */
    while (started + 1 < b->l->lanes_count && started + 1 < mine
           && pthread_create(&threads[started], NULL, run_items, b) == 0) {
        started++;
    }
    (void)run_items(b);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Everybody's results to everybody: a rank sends its error and its items' results in their order. */
static int exchange_results(struct batch *b)
{
    const struct kedge_learn_exchange *x = b->l->host->exchange;
    uint64_t most = ((uint64_t)b->count + b->ranks - 1) / b->ranks, max = 4 + most * b->size, len = 4;
    uint8_t *mine = kedge_mem_new(max, 1), *all = kedge_mem_new(x->size, max);
    uint64_t *lens = kedge_mem_new(x->size, sizeof *lens);
    int err = mine && all && lens ? KEDGE_OK : KEDGE_E_NOMEM;
    int32_t own = err ? err : atomic_load(&b->err);
    if (!err) {
        memcpy(mine, &own, 4);
        for (uint64_t at = b->rank; at < b->count && !own; at += b->ranks, len += b->size) {
            memcpy(mine + len, b->results + (size_t)(b->order ? b->order[at] : at) * b->size, b->size);
        }
        err = x->allgather(x->arg, mine, len, all, max, lens);
    }
    for (uint32_t r = 0; r < x->size && !err; r++) {
        const uint8_t *from = all + r * max;
        int32_t other = KEDGE_E_FORMAT;
        uint64_t count = r < b->count ? (b->count - r - 1) / b->ranks + 1 : 0;
        if (lens[r] >= 4) {
            memcpy(&other, from, 4);
        }
        err = other ? other : lens[r] == 4 + count * b->size ? KEDGE_OK : KEDGE_E_FORMAT;
        for (uint64_t k = 0; k < count && !err; k++) {
            uint64_t at = r + k * b->ranks;
            memcpy(b->results + (size_t)(b->order ? b->order[at] : at) * b->size, from + 4 + k * b->size,
                   b->size);
        }
    }
    kedge_mem_free(mine);
    kedge_mem_free(all);
    kedge_mem_free(lens);
    return err;
}

/* With several processes each takes every ranks-th item and has all results afterwards. Which thread or
 * process does an item changes no result, so a simulation gives the same bytes on every machine. */
int kedgei_learn_spread(struct kedgei_learn *l, uint32_t count, const uint32_t *order, size_t size,
                        kedgei_learn_work *work, void *results)
{
    const struct kedge_learn_exchange *x = l->host->exchange;
    struct batch b = {.l = l, .work = work, .results = results, .size = size, .count = count, .order = order};
    b.rank = x ? x->rank : 0;
    b.ranks = x && x->size > 1 ? x->size : 1;
    if (count == 0) {
        return KEDGE_OK;
    }
    if (b.rank < count) {
        run_threads(&b);
    }
    int err = b.ranks > 1 ? exchange_results(&b) : atomic_load(&b.err);
    return err ? kedge_diag_set(l->reterr, err, "round %u: %s", l->line.round, kedge_strerror(err))
               : KEDGE_OK;
}

static uint32_t count_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > KEDGEI_LEARN_THREADS_MAX ? KEDGEI_LEARN_THREADS_MAX : (uint32_t)n;
}

/* What a thread needs to train a site, allocated once for all rounds. On an error it is freed with the lanes.
 */
static int init_lane(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t rows)
{
    KEDGE_TRY(kedge_net_new(&l->spec->job.model, rows, &lane->net, l->reterr));
    lane->x = kedge_mem_new_lines((size_t)rows * l->pool.features, sizeof *lane->x);
    lane->labels = kedge_mem_new(rows, sizeof *lane->labels);
    lane->towards = kedge_mem_new(l->d, sizeof *lane->towards);
    lane->start = kedge_mem_new(l->d, sizeof *lane->start);
    if (!lane->x || !lane->labels || !lane->towards || !lane->start) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for a thread's models");
    }
    return KEDGE_OK;
}

/* A lane that failed halfway is counted, too, so that kedgei_learn_lanes_deinit frees what it has. */
int kedgei_learn_lanes_init(struct kedgei_learn *l)
{
    uint32_t count = l->host->threads ? l->host->threads : count_processors();
    count = count < KEDGEI_LEARN_THREADS_MAX ? count : KEDGEI_LEARN_THREADS_MAX;
    l->lanes = kedge_mem_new(count, sizeof *l->lanes);
    if (!l->lanes) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u threads", count);
    }
    uint32_t rows = l->spec->job.batch > KEDGEI_LEARN_CHUNK ? l->spec->job.batch : KEDGEI_LEARN_CHUNK;
    int err = KEDGE_OK;
    for (; l->lanes_count < count && !err; l->lanes_count++) {
        err = init_lane(l, &l->lanes[l->lanes_count], rows);
    }
    return err;
}

void kedgei_learn_lanes_deinit(struct kedgei_learn *l)
{
    for (uint32_t i = 0; i < l->lanes_count; i++) {
        struct kedgei_learn_lane *lane = &l->lanes[i];
        kedge_net_free(lane->net);
        kedge_mem_free(lane->x);
        kedge_mem_free(lane->labels);
        kedge_mem_free(lane->room.rows);
        kedge_mem_free(lane->room.labels);
        kedge_mem_free(lane->towards);
        kedge_mem_free(lane->start);
    }
    kedge_mem_free(l->lanes);
}
