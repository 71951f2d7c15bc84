/* A table from 64-bit keys to numbers: open addressing, linear probing, at most half full, nothing is ever
 * taken out. Keys are hashes, of which 0 stands for a free slot and is stored as 1. Where memory ends a
 * simulation ends: it has nothing to save. */
#include "sim/index.h"

#include "common/base/mem.h"

enum { INDEX_MIN = 64, GROW_MIN = 16 };

void *sim_new_array(uint64_t count, uint64_t size)
{
    void *p = kedge_mem_new(count ? count : 1, size);
    KEDGE_ASSERT(p);
    return p;
}

void *sim_grow(void *items, uint32_t count, uint32_t *max, uint64_t size)
{
    if (count <= *max) {
        return items;
    }
    uint32_t more = *max < GROW_MIN ? GROW_MIN : 2 * *max;
    *max = more > count ? more : count;
    void *p = kedge_mem_resize(items, *max, size);
    KEDGE_ASSERT(p);
    return p;
}

/* The slot of the key, or the free one where it would stand. */
static uint32_t slot_of(const struct sim_index *x, uint64_t key)
{
    uint32_t mask = x->max - 1, at = (uint32_t)(key ^ key >> 32) & mask;
    while (x->keys[at] != 0 && x->keys[at] != key) { /* half of the slots are free */
        at = (at + 1) & mask;
    }
    return at;
}

static void grow(struct sim_index *x)
{
    struct sim_index old = *x;
    x->max = old.max ? 2 * old.max : INDEX_MIN;
    x->keys = sim_new_array(x->max, sizeof *x->keys);
    x->values = sim_new_array(x->max, sizeof *x->values);
    for (uint32_t i = 0; i < old.max; i++) {
        if (old.keys[i] != 0) {
            uint32_t at = slot_of(x, old.keys[i]);
            x->keys[at] = old.keys[i];
            x->values[at] = old.values[i];
        }
    }
    sim_index_deinit(&old);
}

bool sim_index_put(struct sim_index *x, uint64_t key, uint32_t value)
{
    key = key ? key : 1;
    if (x->count >= x->max / 2) {
        grow(x);
    }
    uint32_t at = slot_of(x, key);
    if (x->keys[at] != 0) {
        return false;
    }
    x->keys[at] = key;
    x->values[at] = value;
    x->count++;
    return true;
}

bool sim_index_find(const struct sim_index *x, uint64_t key, uint32_t *ret_value)
{
    key = key ? key : 1;
    if (x->max == 0) {
        return false;
    }
    uint32_t at = slot_of(x, key);
    if (x->keys[at] == 0) {
        return false;
    }
    *ret_value = x->values[at];
    return true;
}

void sim_index_deinit(struct sim_index *x)
{
    kedge_mem_free(x->keys);
    kedge_mem_free(x->values);
    *x = (struct sim_index){.count = 0};
}
