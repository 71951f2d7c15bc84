/* What `job show` tells of a job's budget, targets and deadline, and which models have reached one. */
#include "coordinator/daemon/admin/job_goals.h"

#include <jansson.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/restore/restore_walk.h"
#include "coordinator/daemon/rounds/release.h"

/* Units of a budget, which is counted in millionths of them. */
static json_t *units(uint64_t millionths)
{
    return kedgei_json_number((double)millionths / 1e6);
}

void kedge_admin_put_budget(json_t *o, const struct kedge_job_spec *spec, uint64_t spent,
                            const uint64_t *next)
{
    if (spec->budget.unit == KEDGE_JOB_BUDGET_NONE) {
        return;
    }
    json_t *budget = json_pack("{s:s,s:o,s:o}", "unit", kedge_job_budget_unit_name(spec->budget.unit), "most",
                               kedgei_json_number(spec->budget.most), "spent", units(spent));
    if (next) {
        json_object_set_new(budget, "next_round", units(*next));
    }
    json_object_set_new(o, "budget", budget);
}

void kedge_admin_put_targets(json_t *o, const struct kedge_job_spec *spec,
                             const struct kedge_job_test *tested)
{
    if (spec->target_count == 0) {
        return;
    }
    json_t *values = json_array(), *held = json_array();
    for (uint32_t i = 0; i < spec->target_count; i++) {
        json_array_append_new(values, kedgei_json_number(spec->targets[i] / 1e6));
        json_array_append_new(held, json_integer(tested->held.times[i]));
    }
    json_object_set_new(o, "targets",
                        json_pack("{s:o,s:i,s:o,s:i,s:i}", "values", values, "hold", (int)spec->hold, "held",
                                  held, "reached", (int)tested->tier, "tested_round", (int)tested->round));
}

void kedge_admin_put_deadline(json_t *o, uint64_t deadline_ms)
{
    if (deadline_ms > 0) {
        json_object_set_new(o, "deadline_ms", json_integer((json_int_t)deadline_ms));
        json_object_set_new(o, "deadline_passed", json_boolean(kedge_os_unix_ms() > deadline_ms));
    }
}

/* The models that reached so many targets, as the release of each says: of the groups that there were. */
int kedge_admin_models_of_tier(struct kedge_host *h, const struct kedge_job *job, uint32_t tier,
                               struct kedge_hash *ret, uint32_t *ret_count, struct kedge_diag *d)
{
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    KEDGE_TRY_MEM(st);
    for (*ret_count = 0; *ret_count < KEDGE_GROUPS_MAX; ++*ret_count) {
        uint64_t index;
        int err = kedge_host_release_find(h, &job->spec.name, *ret_count, tier, &index, d);
        if (err == KEDGE_E_NOT_FOUND && *ret_count > 0) {
            break;
        }
        KEDGE_TRY(err);
        KEDGE_TRY(kedge_walk_entry(h->main.ledger, index, st, d));
        ret[*ret_count] = st->subject;
    }
    return KEDGE_OK;
}
