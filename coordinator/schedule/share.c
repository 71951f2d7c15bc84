#include "coordinator/schedule/share.h"

#include <stdbool.h>

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Of the claims with a deadline that have nothing yet, the one that is due first; count: none. */
static size_t next_due(const struct kedge_schedule_claim *claims, size_t count, const uint64_t *given)
{
    size_t next = count;
    for (size_t i = 0; i < count; i++) {
        if (claims[i].least > 0 && given[i] == 0
            && (next == count || claims[i].due_ns < claims[next].due_ns)) {
            next = i;
        }
    }
    return next;
}

/* Returns what is left of the capacity. */
static uint64_t give_promised(const struct kedge_schedule_claim *claims, size_t count, uint64_t capacity,
                              uint64_t *ret)
{
    uint64_t left = capacity * KEDGE_SCHEDULE_PROMISED / KEDGE_SCHEDULE_WHOLE, given = 0;
    for (size_t i; left > 0 && (i = next_due(claims, count, ret)) < count;) {
        ret[i] = least_of(claims[i].least, left);
        left -= ret[i];
        given += ret[i];
    }
    return capacity - given;
}

/* Up to the floor, as far as there is something: all alike. */
static uint64_t give_floors(size_t count, uint64_t floor, uint64_t left, uint64_t *io)
{
    uint64_t asked = 0, given = 0;
    for (size_t i = 0; i < count; i++) {
        asked += io[i] < floor ? floor - io[i] : 0;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t more = io[i] < floor ? floor - io[i] : 0;
        const uint64_t gets = asked > left ? more * left / asked : more;
        io[i] += gets;
        given += gets;
    }
    return left - given;
}

/* By weight. Who would have more than it can use has that much, and the others share what it leaves; each
 * time round one at least is full, or all is given. */
static void give_rest(const struct kedge_schedule_claim *claims, size_t count, uint64_t left, uint64_t *io)
{
    for (bool more = true; more && left > 0;) {
        uint64_t weights = 0, given = 0;
        more = false;
        for (size_t i = 0; i < count; i++) {
            weights += io[i] < KEDGE_SCHEDULE_WHOLE ? claims[i].weight : 0;
        }
        for (size_t i = 0; i < count && weights > 0; i++) {
            const uint64_t room = KEDGE_SCHEDULE_WHOLE - io[i];
            const bool is_full = room > 0 && left * claims[i].weight / weights >= room;
            io[i] += is_full ? room : 0;
            given += is_full ? room : 0;
            more = more || is_full;
        }
        for (size_t i = 0; i < count && weights > 0 && !more; i++) {
            const uint64_t gets = io[i] < KEDGE_SCHEDULE_WHOLE ? left * claims[i].weight / weights : 0;
            io[i] += gets;
        }
        left -= given;
    }
}

void kedge_schedule_divide(const struct kedge_schedule_claim *claims, size_t count, uint64_t capacity,
                           uint32_t floor, uint64_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        ret[i] = 0;
    }
    if (count == 0) {
        return;
    }
    const uint64_t equal = least_of(capacity / count, KEDGE_SCHEDULE_WHOLE);
    const uint64_t least = equal * least_of(floor, KEDGE_SCHEDULE_WHOLE) / KEDGE_SCHEDULE_WHOLE;
    uint64_t left = give_promised(claims, count, capacity, ret);
    left = give_floors(count, least, left, ret);
    give_rest(claims, count, left, ret);
}
