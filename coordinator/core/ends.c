/* How a job ends before its last round: what can never be stored ends it as failed, and it can be
 * cancelled in every state. An effect that is out comes back first; what failed and would be asked for again
 * is given up instead, for a job that ends needs none of it. An append that is given up may be durable all
 * the same: a site that asks gets the receipt of its leaf (the host looks for it), and the record of a job
 * that was cancelled or has failed may hold updates that no list names and lack groups that its last close
 * gave. */
#include "coordinator/core/core.h"

bool kedgei_is_final(int err)
{
    switch (err) {
    case KEDGE_E_EXISTS: /* another entry has its key, and will always have it */
    case KEDGE_E_TOO_LONG:
    case KEDGE_E_FORMAT:
    case KEDGE_E_ARG:
    case KEDGE_E_BUG:
        return true;
    default:
        return false;
    }
}

bool kedgei_is_ending(const struct job *j)
{
    return j->cancelling || j->failing != KEDGE_OK;
}

static void begin_to_end(struct job *j)
{
    j->sweep = 0; /* gives up what failed */
    j->dirty = true;
}

void kedgei_job_fail(struct job *j, int err)
{
    KEDGE_ASSERT(err != KEDGE_OK);
    j->failing = j->failing != KEDGE_OK ? j->failing : err;
    begin_to_end(j);
}

void kedgei_job_cancel(struct job *j)
{
    j->cancelling = true;
    j->halted_by_operator = j->halted_by_quorum = false;
    begin_to_end(j);
}
