/* Rounds of asynchronous jobs: who is at work from round to round, and in which close an update belongs.
 * Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_FACTS_BUFFER_H
#define KEDGE_CHAIN_AUDIT_FACTS_BUFFER_H

#include "chain/audit/record.h"

/* A site that is at work, as the last round-opened says it. */
struct kedgei_at_work {
    struct kedge_id site;
    uint32_t task;
    bool settled; /* it stands in a list of that round's close */
};
/* Of one tenant; rows ascend by site. */
struct kedgei_crew {
    bool known; /* its lists are here */
    uint32_t count;
    struct kedgei_at_work *sites;
};

bool kedgei_job_is_asynchronous(const struct kedgei_job *job);
/* The round of the task that a row of the round's lists is about: the round itself, unless the row names
 * another. */
uint32_t kedgei_row_round(const struct kedgei_round *round, const struct kedge_input_row *row);
/* Steps that the server made since the task of that row, which stands in a list of `round`. */
static inline uint32_t kedgei_staleness(uint32_t round, const struct kedge_input_row *row)
{
    return row->round > 0 && row->round < round ? round - row->round : 0;
}
/* Whether a row of round-opened, or of a close, may name that round; of the former also whether it may weigh
 * so much. */
bool kedgei_opened_row_fits(const struct kedgei_job *job, const struct kedgei_round *round,
                            const struct kedge_input_row *row);
bool kedgei_closed_row_fits(const struct kedgei_job *job, const struct kedgei_round *round,
                            const struct kedge_input_row *row);
/* A row names an entry that an earlier close covers: it belonged in there. */
bool kedgei_is_overdue(const struct kedgei_job *job, const struct kedgei_round *round,
                       const struct kedgei_log *log, uint64_t leaf);
/* The tenant's list of round-opened against who was at work before; `crew` becomes what the list says. NULL:
 * its list is not here; no rows: it has none. */
void kedgei_crew_opened(const struct kedgei_audit *a, const struct kedgei_round *round,
                        const struct kedgei_job *job, const struct kedgei_log *log,
                        const struct kedge_input_list *list, struct kedgei_crew *crew,
                        struct kedgei_findings *f);
/* The site stands in a list of the close. */
void kedgei_crew_settle(struct kedgei_crew *crew, const struct kedge_id *site);
void kedgei_crew_deinit(struct kedgei_crew *crew);
/* The round takes no more updates than the job's buffer holds. */
void kedgei_check_buffer(const struct kedgei_audit *a, const struct kedgei_job *job,
                         const struct kedgei_round *round, struct kedgei_findings *f);
/* Every update that the job's last close covers stands in some list. */
void kedgei_check_unlisted(const struct kedgei_audit *a, const struct kedgei_job *job,
                           struct kedgei_findings *f);

#endif
