#include "sim/learn/vectors.h"

#include "common/base/bytes.h"
#include "common/base/mem.h"
#include "common/base/try.h"

static int add(struct kedgei_vectors *v, struct kedgei_vector one, struct kedge_hash *ret)
{
    if (v->count == v->max) {
        const uint32_t max = v->max ? 2 * v->max : 64;
        struct kedgei_vector *items = kedge_mem_resize(v->items, max, sizeof *items);
        KEDGE_TRY_MEM(items);
        v->items = items;
        v->max = max;
    }
    one.number = ++v->numbers; /* none is 0, which is no name */
    v->items[v->count++] = one;
    *ret = (struct kedge_hash){{0}};
    kedge_store_be64(ret->b, one.number);
    return KEDGE_OK;
}

int kedgei_vectors_lend(struct kedgei_vectors *v, const void *values, struct kedge_hash *ret)
{
    return add(v, (struct kedgei_vector){.values = values}, ret);
}

int kedgei_vectors_give(struct kedgei_vectors *v, void *values, struct kedge_hash *ret)
{
    int err = add(v, (struct kedgei_vector){.values = values, .owned = values}, ret);
    if (err) {
        kedge_mem_free(values);
    }
    return err;
}

const void *kedgei_vectors_find(const struct kedgei_vectors *v, const struct kedge_hash *name)
{
    const uint64_t number = kedge_load_be64(name->b);
    for (uint32_t i = v->count; i-- > 0;) { /* the newest are asked for most */
        if (v->items[i].number == number) {
            return v->items[i].values;
        }
    }
    return NULL;
}

static bool names(const struct kedge_round_state *state, uint64_t number)
{
    bool any = false;
    for (uint32_t g = 0; g < state->groups && !any; g++) {
        const struct kedge_round_group *group = &state->group[g];
        any = kedge_load_be64(group->model.b) == number || kedge_load_be64(group->direction.b) == number
              || kedge_load_be64(group->direction_made.b) == number
              || kedge_load_be64(group->server_state.b) == number;
    }
    return any;
}

void kedgei_vectors_sweep(struct kedgei_vectors *v, const struct kedge_round_state *state)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < v->count; i++) {
        if (names(state, v->items[i].number)) {
            v->items[left++] = v->items[i];
        } else {
            kedge_mem_free(v->items[i].owned);
        }
    }
    v->count = left;
}

void kedgei_vectors_deinit(struct kedgei_vectors *v)
{
    for (uint32_t i = 0; i < v->count; i++) {
        kedge_mem_free(v->items[i].owned);
    }
    kedge_mem_free(v->items);
    *v = (struct kedgei_vectors){.items = NULL};
}
