/* Of the stores that are open on demand so many at a time have a seat, that is a map, LMDB's lists and three
 * descriptors; the others keep their lock and nothing else. Who needs one when all are taken gets that of the
 * store that was used longest ago. Internal to this room; knows nothing of LMDB. */
#ifndef KEDGE_CHAIN_STORE_KV_KV_SEATS_H
#define KEDGE_CHAIN_STORE_KV_KV_SEATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct kedgei_kv_seat {
    struct kedgei_kv_seat *next; /* of those taken; under the seats' mutex, as the next one */
    bool is_taken;
    atomic_uint_least64_t used; /* the greater the later */
    /* Leaves the seat if nobody needs it at this moment; must not wait. Under the seats' mutex. */
    bool (*leave)(struct kedgei_kv_seat *s);
};

/* Takes a seat; with one already it keeps that. When none is free and nobody can leave, there is one more for
 * a while: who has a transaction open cannot be asked to go, and there are no more of these than threads. */
void kedgei_kv_seat_take(struct kedgei_kv_seat *s);
/* It is used; cheap, for every transaction. */
void kedgei_kv_seat_use(struct kedgei_kv_seat *s);
/* Gives it up; without one nothing happens. */
void kedgei_kv_seat_give(struct kedgei_kv_seat *s);

/* Before and after an environment is opened: kedge_kv_lmdb_around_opening. */
void kedgei_kv_opening(bool is_writer, bool begins);

#endif
