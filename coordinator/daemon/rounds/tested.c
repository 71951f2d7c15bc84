/* Jobs with targets: what a round's evaluations say of them, as a statement, and where the first target is
 * newly reached the release of the models that reached it.
 *
 * The core takes no evaluation from the moment it asks for this until it is durable, so what is counted is
 * what the tenants' ledgers hold under the checkpoints of the same batch: an auditor counts the same. */
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/rounds/main_batch.h"
#include "coordinator/daemon/rounds/rounds.h"
#include "round/close/params.h"

static struct kedge_st_round_tested count(struct kedge_job *job, uint32_t round)
{
    struct kedge_st_round_tested t = {.job = job->spec.name, .round = round, .time_ms = kedge_os_unix_ms()};
    const struct kedge_round_history *row = kedge_job_history(job, round, true);
    for (uint32_t g = 0; g < row->room; g++) {
        t.evaluations += row->metrics[g].evaluations;
        t.samples += row->metrics[g].samples;
        t.correct += row->metrics[g].correct;
    }
    return t;
}

/* One for each group, as the last round left them. */
static int add_releases(struct kedge_job *job, uint32_t round, uint32_t tier, struct kedge_statement *st,
                        struct kedge_diag *d)
{
    for (uint32_t g = 0; g < job->at.groups; g++) {
        memset(st, 0, sizeof *st);
        st->kind = KEDGE_ST_RELEASE;
        st->subject = job->at.group[g].model;
        st->u.release =
            (struct kedge_st_release){.job = job->spec.name, .round = round, .group = g, .tier = tier};
        snprintf(st->u.release.file, sizeof st->u.release.file, "%s-g%u.safetensors", job->spec.name.s, g);
        KEDGE_TRY(kedge_main_batch_statement(job->batch, st, d, "release/%s/%02u/%u/%08u", job->spec.name.s,
                                             g, tier, round));
    }
    return KEDGE_OK;
}

static int build(struct kedge_job *job, uint32_t round, struct kedge_diag *d)
{
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    struct kedge_job_test after = job->tested;
    KEDGE_TRY(st ? kedge_main_batch_new(&job->batch) : KEDGE_E_NOMEM);
    for (uint32_t i = 0; i < job->params.tenant_count; i++) {
        KEDGE_TRY(kedge_main_batch_checkpoint(job->batch, job->params.tenants[i]));
    }
    st->kind = KEDGE_ST_ROUND_TESTED;
    st->subject = job->spec_digest;
    st->u.round_tested = count(job, round);
    after.round = round;
    after.tier = kedge_close_test(&job->spec, &st->u.round_tested, &after.held);
    st->u.round_tested.held = after.held.times[0];
    st->u.round_tested.held_last = after.held.times[1];
    st->u.round_tested.tier = after.tier;
    KEDGE_TRY(kedge_main_batch_statement(job->batch, st, d, "round-tested/%s/%08u", job->spec.name.s, round));
    if (kedge_close_releases(&job->spec, job->tested.tier, after.tier)) {
        KEDGE_TRY(add_releases(job, round, after.tier, st, d));
    }
    if (after.tier != job->tested.tier) {
        kedge_log(KEDGE_LOG_INFO, "target", "job=%s round=%u reached=%u before=%u", job->spec.name.s, round,
                  after.tier, job->tested.tier);
    }
    job->tested = after; /* once, however often the statements are tried */
    return KEDGE_OK;
}

int kedge_host_build_tested(struct kedge_job *job, uint32_t round, struct kedge_diag *d)
{
    return job->batch ? KEDGE_OK : build(job, round, d);
}
