/* The digest is over a canonical form: every number as 64 bits in big-endian order, every member in one
 * order. It is compared between a running coordinator and a fold of its record, so what differs by history
 * alone (sites that the record does not know) is left out. */
#include "round/state.h"

#include "common/base/bytes.h"

static void put_u64(struct kedge_buf *out, uint64_t value)
{
    uint8_t bytes[8];
    kedge_store_be64(bytes, value);
    kedge_buf_put(out, bytes, sizeof bytes);
}

static void put_hash(struct kedge_buf *out, const struct kedge_hash *hash)
{
    kedge_buf_put(out, hash->b, sizeof hash->b);
}

static void put_group(struct kedge_buf *out, const struct kedge_round_group *g)
{
    put_hash(out, &g->model);
    put_hash(out, &g->direction);
    put_hash(out, &g->direction_made);
    put_hash(out, &g->direction_before);
    put_hash(out, &g->server_state);
    put_u64(out, g->weight_since_meeting);
    put_u64(out, g->split_of);
    put_u64(out, g->merged_into);
    put_u64(out, g->tried_with);
    put_hash(out, &g->trial);
}

/* Where nothing was charged there is nothing to say. */
static void put_book(struct kedge_buf *out, const struct kedge_schedule_book *book)
{
    put_u64(out, book->spent);
    for (uint32_t i = 0; i < KEDGE_SCHEDULE_COSTS; i++) {
        put_u64(out, book->costs[i]);
    }
}

/* Only what a plan of the next round would look at: a fold does not read what is older. */
static void put_cost(struct kedge_buf *out, const struct kedge_round_cost *c)
{
    put_u64(out, c->round);
    put_u64(out, c->is.samples);
    put_u64(out, c->is.trained);
    put_u64(out, c->is.microseconds);
    put_u64(out, c->is.has_joules ? c->is.microjoules : UINT64_MAX);
}

static void put_site(struct kedge_buf *out, const struct kedge_round_site *s)
{
    put_u64(out, s->group);
    put_u64(out, s->since);
    put_u64(out, s->task);
    put_u64(out, s->samples);
    put_u64(out, (uint64_t)s->is_candidate | (uint64_t)s->is_away << 1 | (uint64_t)s->is_unstated << 2
                     | (uint64_t)s->is_undecided << 3);
    put_hash(out, &s->by);
    put_hash(out, &s->last_update);
    put_hash(out, &s->last_base);
}

/* Does the record say anything about this site? */
static bool is_known(const struct kedge_round_site *s)
{
    return s->is_candidate || s->is_unstated || s->since != KEDGE_ROUND_NONE || s->task != KEDGE_ROUND_NONE
           || !kedge_hash_is_zero(&s->by);
}

int kedge_round_state_digest(const struct kedge_round_state *state, const struct kedge_round_site *sites,
                             uint32_t site_count, struct kedge_hash *ret)
{
    struct kedge_buf bytes;
    kedge_buf_init(&bytes, SIZE_MAX);
    put_u64(&bytes, state->round);
    put_u64(&bytes, (uint64_t)state->kind);
    put_u64(&bytes, (uint64_t)state->regroup | (uint64_t)state->is_personal << 1);
    put_u64(&bytes, state->groups);
    for (uint32_t g = 0; g < state->groups; g++) {
        put_group(&bytes, &state->group[g]);
    }
    if (state->book.spent > 0) {
        put_book(&bytes, &state->book);
    }
    for (uint32_t i = 0; i < site_count; i++) {
        if (is_known(&sites[i])) {
            put_site(&bytes, &sites[i]);
            if (kedge_round_cost_counts(&sites[i].cost, state->round + 1)) {
                put_cost(&bytes, &sites[i].cost);
            }
        }
    }
    int err = bytes.err;
    if (!err) {
        kedge_sha256(kedge_buf_view(&bytes), ret);
    }
    kedge_buf_deinit(&bytes);
    return err;
}

struct kedge_round_site kedge_round_site_first(const struct kedge_job_spec *spec, uint32_t place)
{
    struct kedge_round_site ret = {.since = KEDGE_ROUND_NONE, .task = KEDGE_ROUND_NONE};
    const enum kedge_grouped_by by = kedge_job_spec_grouped_by(spec);
    bool together = spec->groups <= 1 || by == KEDGE_GROUPED_BY_CUT;
    ret.group = by == KEDGE_GROUPED_BY_PLACE ? kedge_job_spec_edge(place) : together ? 0 : KEDGE_ROUND_NONE;
    return ret;
}
