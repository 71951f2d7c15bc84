/* A map from 64-bit keys to numbers, for look-ups in what is durable. Keys are hashes; who looks up
 * compares. */
#ifndef KEDGE_SIM_INDEX_H
#define KEDGE_SIM_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct sim_index {  /* zero-initialised: empty */
    uint64_t *keys; /* 0: free */
    uint32_t *values;
    uint32_t count, max; /* max: 0 or a power of two */
};

/* False when the key is there already: its value stays. */
bool sim_index_put(struct sim_index *index, uint64_t key, uint32_t value);
bool sim_index_find(const struct sim_index *index, uint64_t key, uint32_t *ret_value);
void sim_index_deinit(struct sim_index *index);

/* Room for at least `count` items of `size` bytes; *max is in items. Out of memory ends the program: a
 * simulation has nothing to save. */
void *sim_grow(void *items, uint32_t count, uint32_t *max, uint64_t size);
/* Zeroed memory, likewise. */
void *sim_new_array(uint64_t count, uint64_t size);

#endif
