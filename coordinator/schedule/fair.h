/* Whose request is next, where tenants ask one coordinator: deficit round robin (Shreedhar and Varghese,
 * 1995) by measured cost. Pure: no clock, no heap; the caller says what an item has cost.
 *
 * Each flow (a tenant's, say) has its own line, and the flows that have something in line take turns. A turn
 * adds one quantum to what the flow may use, and it is served as long as it has something left. What an item
 * costs is known only when it is done, so it is paid afterwards: a flow may go into debt by one item, and its
 * next turns go by until that is paid. Two flows that always have something in line differ by at most one
 * quantum and one item's cost, however long the lines are and whatever they are filled with: a tenant that
 * asks a thousand things at once waits behind itself. A flow that has nothing in line gives its rest back,
 * so nobody saves up; a debt stays, or one could ask for dear things one at a time. */
#ifndef KEDGE_COORDINATOR_SCHEDULE_FAIR_H
#define KEDGE_COORDINATOR_SCHEDULE_FAIR_H

#include <stdbool.h>
#include <stdint.h>

#define KEDGE_FAIR_NONE UINT32_MAX

/* First member of what stands in line. */
struct kedge_fair_item {
    struct kedge_fair_item *next;
};

struct kedge_fair_flow {
    struct kedge_fair_item *first, *last;
    uint32_t count;
    uint32_t after;  /* the flow whose turn comes next; KEDGE_FAIR_NONE: it is the last */
    int64_t left_ns; /* what it may use; below 0: its debt */
    bool has_turn;   /* the quantum of its turn is in left_ns */
};

struct kedge_fair {
    struct kedge_fair_flow *flows; /* the caller's, zero to begin with */
    uint32_t flow_count;
    uint32_t line_max;   /* items of one flow; what goes beyond is refused */
    uint64_t quantum_ns; /* above 0 */
    uint32_t turn, last; /* the flows with something in line, KEDGE_FAIR_NONE: none; _init sets them */
    uint32_t count;      /* items in all lines */
};

/* Of flows, flow_count, line_max and quantum_ns, which are set. */
void kedge_fair_init(struct kedge_fair *f);
/* Puts the item, which stays the caller's memory, at the end of the flow's line; false: that is full. */
bool kedge_fair_put(struct kedge_fair *f, uint32_t flow, struct kedge_fair_item *item);
/* Takes the next one out, NULL when there is none; *ret_flow is whose it was, for kedge_fair_charge. */
struct kedge_fair_item *kedge_fair_take(struct kedge_fair *f, uint32_t *ret_flow);
/* What the item has cost, once it is done. Debts end at a second's, so that nobody is shut out by one item.
 */
void kedge_fair_charge(struct kedge_fair *f, uint32_t flow, uint64_t cost_ns);

#endif
