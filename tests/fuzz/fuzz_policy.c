/* Any bytes as a site's policy.json: an error that names the file, or a policy within its ranges. */
#include <jansson.h>
#include <string.h>

#include "client/daemon/policy.h"
#include "common/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_site_policy p;
    struct kedge_diag d = {.text = ""};
    if (kedge_policy_parse(kedge_view_of(data, len), "policy.json", &p, &d) != KEDGE_OK) {
        KEDGE_ASSERT(strncmp(d.text, "policy.json: ", 13) == 0);
        return 0;
    }
    KEDGE_ASSERT(p.job_count <= KEDGE_POLICY_JOBS_MAX && (!p.allow_all || p.job_count == 0));
    for (uint32_t i = 0; i < p.job_count; i++) {
        KEDGE_ASSERT(kedge_id_is_valid(kedge_view_str(p.jobs[i].s)));
    }
    KEDGE_ASSERT(p.trainer[KEDGE_TRAINER_ARGS_MAX] == NULL && (!p.trainer[0] || p.trainer[0][0]));
    KEDGE_ASSERT(!p.data || json_is_object(p.data));
    KEDGE_ASSERT(p.threads >= 1 && p.threads <= 256 && p.train_seconds_max <= 604800);
    KEDGE_ASSERT(p.memory_max <= INT64_MAX);
    kedge_policy_deinit(&p);
    return 0;
}
