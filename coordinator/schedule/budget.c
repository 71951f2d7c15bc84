#include "coordinator/schedule/budget.h"

#include <string.h>

static uint64_t at_most(uint64_t value)
{
    return value < KEDGE_SCHEDULE_MOST ? value : KEDGE_SCHEDULE_MOST;
}

uint64_t kedge_schedule_sum(uint64_t a, uint64_t b)
{
    return at_most(at_most(a) + at_most(b));
}

void kedge_schedule_charge(struct kedge_schedule_book *io, uint64_t cost)
{
    memmove(&io->costs[1], &io->costs[0], sizeof io->costs - sizeof io->costs[0]);
    io->costs[0] = at_most(cost);
    io->spent = kedge_schedule_sum(io->spent, cost);
}

uint64_t kedge_schedule_estimate(const struct kedge_schedule_book *book)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < KEDGE_SCHEDULE_COSTS; i++) {
        most = book->costs[i] > most ? book->costs[i] : most;
    }
    return most;
}

bool kedge_schedule_fits(const struct kedge_schedule_book *book, uint64_t most)
{
    return book->spent < most && kedge_schedule_estimate(book) <= most - book->spent;
}
