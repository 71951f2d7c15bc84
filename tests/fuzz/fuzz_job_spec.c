/* Any bytes as a job spec: an error that names something, or a spec within its ranges. */
#include "aggregation/share_cap.h"
#include "job/job_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_job_spec spec;
    struct kedge_diag d = {.text = ""};
    int err = kedge_job_spec_parse(kedge_view_of(data, len), &spec, &d);
    if (err) {
        KEDGE_ASSERT(d.text[0] != '\0');
        return 0;
    }
    KEDGE_ASSERT(spec.tenant_count >= 1 && spec.tenant_count <= KEDGE_SPEC_TENANTS_MAX);
    KEDGE_ASSERT(spec.tenant_share_max >= 1 && spec.tenant_share_max <= KEDGE_SHARE_ONE);
    KEDGE_ASSERT((uint64_t)spec.tenant_share_max * spec.tenant_count >= KEDGE_SHARE_ONE);
    if (spec.is_external) {
        struct kedge_layout layout;
        KEDGE_ASSERT(kedge_job_spec_layout(&spec, &layout, &d) == KEDGE_OK && layout.count >= 1);
        kedge_layout_deinit(&layout);
    }
    KEDGE_ASSERT(spec.rounds >= 1 && spec.batch >= 1 && spec.groups >= 1 && spec.groups <= KEDGE_GROUPS_MAX);
    return 0;
}
