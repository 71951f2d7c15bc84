#include "coordinator/schedule/fair.h"

#include <stddef.h>

#include "common/base/err.h"

enum { DEBT_MAX_NS = 1000000000 };

void kedge_fair_init(struct kedge_fair *f)
{
    f->turn = f->last = KEDGE_FAIR_NONE;
    f->count = 0;
}

static void append(struct kedge_fair *f, uint32_t flow)
{
    f->flows[flow].after = KEDGE_FAIR_NONE;
    if (f->last == KEDGE_FAIR_NONE) {
        f->turn = flow;
    } else {
        f->flows[f->last].after = flow;
    }
    f->last = flow;
}

/* The flow whose turn it is leaves the round. */
static void drop_first(struct kedge_fair *f)
{
    f->turn = f->flows[f->turn].after;
    f->last = f->turn == KEDGE_FAIR_NONE ? KEDGE_FAIR_NONE : f->last;
}

bool kedge_fair_put(struct kedge_fair *f, uint32_t flow, struct kedge_fair_item *item)
{
    struct kedge_fair_flow *line = &f->flows[flow];
    KEDGE_ASSERT(flow < f->flow_count);
    if (line->count == f->line_max) {
        return false;
    }
    item->next = NULL;
    if (line->count++ == 0) {
        line->first = item;
        append(f, flow);
    } else {
        line->last->next = item;
    }
    line->last = item;
    f->count++;
    return true;
}

/* Turns of flows in debt pass until one has something left. Alone in the round a flow pays its debt at once:
 * there is nobody who waits for it. That is at most DEBT_MAX_NS / quantum turns of each flow. */
struct kedge_fair_item *kedge_fair_take(struct kedge_fair *f, uint32_t *ret_flow)
{
    if (f->count == 0) {
        return NULL;
    }
    for (;;) {
        struct kedge_fair_flow *line = &f->flows[f->turn];
        bool alone = f->turn == f->last;
        if (!line->has_turn) {
            line->has_turn = true;
            line->left_ns += (int64_t)f->quantum_ns;
            line->left_ns = alone && line->left_ns <= 0 ? (int64_t)f->quantum_ns : line->left_ns;
        }
        if (line->left_ns > 0) {
            break;
        }
        uint32_t passed = f->turn;
        line->has_turn = false;
        drop_first(f);
        append(f, passed);
    }
    *ret_flow = f->turn;
    struct kedge_fair_flow *line = &f->flows[f->turn];
    struct kedge_fair_item *item = line->first;
    line->first = item->next;
    line->count--;
    f->count--;
    if (line->count == 0) {
        drop_first(f);
        line->has_turn = false;
    }
    return item;
}

void kedge_fair_charge(struct kedge_fair *f, uint32_t flow, uint64_t cost_ns)
{
    struct kedge_fair_flow *line = &f->flows[flow];
    int64_t cost = cost_ns < DEBT_MAX_NS ? (int64_t)cost_ns : DEBT_MAX_NS;
    line->left_ns -= cost;
    line->left_ns = line->left_ns < -DEBT_MAX_NS ? -DEBT_MAX_NS : line->left_ns;
    if (line->count == 0 && line->left_ns > 0) {
        line->left_ns = 0;
    }
}
