/* The logs of tenants, copied for a worker. Ledgers and blobs may be read by any thread, and live as long as
 * the process; what is copied is where they are. */
#include "coordinator/daemon/admin/job_logs.h"

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"

int kedge_job_logs_copy(const struct kedge_host *h, struct kedge_job_logs *ret)
{
    struct kedge_history_log *logs = kedge_mem_new(h->tenant_count + 1, sizeof *logs);
    KEDGE_TRY_MEM(logs);
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        const struct kedge_tenant *t = &h->tenants[i];
        logs[i] = (struct kedge_history_log){t->id, t->salted, t->log.ledger, t->log.blobs};
    }
    *ret = (struct kedge_job_logs){logs, h->tenant_count};
    return KEDGE_OK;
}

uint32_t kedge_job_logs_choose(struct kedge_job_logs *l, const struct kedge_job_spec *spec)
{
    uint32_t chosen = 0;
    for (uint32_t t = 0; t < spec->tenant_count; t++) {
        for (uint32_t i = chosen; i < l->count; i++) {
            if (kedge_id_eq(&l->logs[i].tenant, &spec->tenants[t])) {
                struct kedge_history_log other = l->logs[chosen];
                l->logs[chosen++] = l->logs[i];
                l->logs[i] = other;
                break;
            }
        }
    }
    return chosen;
}
