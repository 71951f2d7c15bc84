/* Which of the jobs that wait gets the next place, where a coordinator has a bounded number of them. Pure.
 *
 * One line in the order of submission would let a tenant that submits a thousand jobs at once keep all others
 * waiting for the last of them. So tenants take turns: a job's turn is the number of places that its tenants'
 * jobs have already, with those that wait before it, and the lowest turn is next; among equals that which
 * was submitted first. So while all tenants have jobs that wait, each gets as many places as the others; a
 * tenant that has none has its first job next. A job of several tenants counts for each of them, and its turn
 * is that of the one that has most. Turns are the order as it stands now: when a job ends, its tenants' turns
 * come earlier.
 *
 * How many may wait is bounded, and no tenant may have more than are left for all (the dynamic thresholds of
 * Choudhury and Hahne, 1998, for shared buffers): one alone may have half of the line, two a third each, and
 * there is always room for one that has none. */
#ifndef KEDGE_COORDINATOR_SCHEDULE_LINE_H
#define KEDGE_COORDINATOR_SCHEDULE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kedge_line_job {
    const uint32_t *tenants; /* indices into the places; each once */
    uint32_t tenant_count;
    bool is_held;   /* by the operator: it keeps its turn, and is passed over */
    uint32_t order; /* its index in the order of submission: _turns sets it … */
    uint32_t turn;  /* … and this */
};

/* Sets the turns of `count` jobs, which are in the order of their submission. io_places: by tenant, how many
 * places its jobs have; afterwards with all of these jobs, too. */
void kedge_line_turns(struct kedge_line_job *jobs, uint32_t count, uint32_t *io_places);
/* Whether a is before b, both with turns; held ones are after all others. */
bool kedge_line_is_before(const struct kedge_line_job *a, const struct kedge_line_job *b);
/* The job that is next, an index; UINT32_MAX: all are held, or there is none. */
uint32_t kedge_line_next(const struct kedge_line_job *jobs, uint32_t count);
/* For qsort over struct kedge_line_job: in the order in which they are next. */
int kedge_line_compare(const void *a, const void *b);
/* May one more job wait, of a tenant of which `own` wait, where `all` do and `most` may? */
bool kedge_line_has_room(uint32_t own, uint32_t all, uint32_t most);

#endif
