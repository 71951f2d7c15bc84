/* A site's samples as its trainer sees them: floats in the order in which the simulation deals them out.
 *
 * Where sites judge trials of groups, their judgement must not see the samples by which the simulation tells
 * how good a strategy is. So a tenth of a site's training samples, spread evenly, are its own test set there,
 * and it does not train on them. Sites of jobs have a test set whatever the strategy is: where strategies are
 * compared all hold back the same share (`held_back`), or the one that judges would be behind for that alone.
 */
#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/learn/engine.h"

enum { HELD_PART = 10, HELD_LEAST = 2, HELD_OF_LEAST = 4 };

static bool holds_back(const struct kedgei_learn *l)
{
    return l->spec->held_back > 0 || kedge_job_spec_tries(&l->spec->job);
}

static uint32_t held_of(const struct kedgei_learn *l, const struct kedgei_learn_site *s)
{
    const double share = l->spec->held_back;
    const uint32_t part = share > 0 ? (uint32_t)(share * s->train_count) : s->train_count / HELD_PART;
    return !holds_back(l) || s->train_count < HELD_OF_LEAST ? 0 : part > HELD_LEAST ? part : HELD_LEAST;
}

/* Training sample i of `all` is one of the `held`. */
static bool is_held(uint32_t i, uint32_t all, uint32_t held)
{
    return (uint64_t)(i + 1) * held / all != (uint64_t)i * held / all;
}

/* Batches are made of the pool's rows each time: these are bytes for the most part, a quarter of what they
 * become, and a batch stays in the cache until its step is done. */
static void make(const struct kedge_dataset_maker *maker, const uint32_t *indices, uint32_t count,
                 uint32_t after, float *out)
{
    const struct kedgei_learn_room *room = (const void *)maker;
    const struct kedgei_learn_pool *pool = &room->l->pool;
    for (uint32_t i = 0; i < count; i++, out += pool->features) {
        const uint32_t row = room->rows[indices[i]];
        kedgei_learn_pool_row(pool, row, room->turn, out);
        if (room->is_poisoned) {
            kedgei_learn_poison(room->l, row, out);
        }
    }
    /* the rows of the next batch are asked for while this one is worked on */
    for (uint32_t i = count; i < 2 * count && i < count + after; i++) {
        kedgei_learn_pool_prefetch(pool, room->rows[indices[i]]);
    }
}

static void room_free(struct kedgei_learn_room *room)
{
    kedge_mem_free(room->rows);
    kedge_mem_free(room->labels);
    *room = (struct kedgei_learn_room){.most = 0};
}

static int reserve(struct kedgei_learn_room *room, uint32_t n)
{
    if (n <= room->most && room->rows) {
        return KEDGE_OK;
    }
    room_free(room);
    room->rows = kedge_mem_new((size_t)n + 1, sizeof *room->rows);
    room->labels = kedge_mem_new((size_t)n + 1, sizeof *room->labels);
    room->most = n;
    if (!room->rows || !room->labels) {
        room_free(room);
        return KEDGE_E_NOMEM;
    }
    return KEDGE_OK;
}

int kedgei_learn_data(const struct kedgei_learn *l, uint32_t site, bool test, struct kedgei_learn_room *room,
                      struct kedge_dataset *ret)
{
    const struct kedgei_learn_site *s = &l->sites[site];
    const bool from_test = test && !holds_back(l);
    const uint32_t *rows = from_test ? s->test : s->train;
    const uint32_t all = from_test ? s->test_count : s->train_count, held = held_of(l, s);
    uint32_t n = 0;
    int32_t most = -1;
    KEDGE_TRY(reserve(room, all));
    room->maker.make = make;
    room->l = l;
    room->turn = s->turn;
    room->is_poisoned = s->attacker && !test;
    for (uint32_t i = 0; i < all; i++) {
        if (!from_test && is_held(i, all, held) != test) {
            continue;
        }
        const int32_t label = l->pool.labels[rows[i]];
        room->rows[n] = rows[i];
        room->labels[n] = room->is_poisoned ? kedgei_learn_poisoned_label(l, rows[i], label) : label;
        most = room->labels[n] > most ? room->labels[n] : most;
        n++;
    }
    *ret = (struct kedge_dataset){.n = n,
                                  .features = l->pool.features,
                                  .classes = (uint32_t)(most + 1),
                                  .labels = room->labels,
                                  .maker = &room->maker};
    return KEDGE_OK;
}
