/* Any bytes as a job spec: an error that names something, or a spec within its ranges. */
#include <string.h>

#include "aggregation/share_cap.h"
#include "job/job_spec.h"
#include "job/keys.h"

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
    if (kedge_job_spec_check_read(kedge_view_of(data, len), &spec, &d) == KEDGE_OK) {
        static struct kedge_job_spec again;
        struct kedge_buf out;
        kedge_buf_init(&out, 4 * KEDGE_SPEC_MAX);
        kedge_job_spec_put(&spec, &out); /* defaults may make it longer than what is read */
        KEDGE_ASSERT(out.err == KEDGE_OK);
        KEDGE_ASSERT(out.len > KEDGE_SPEC_MAX
                     || (kedge_job_spec_parse(kedge_buf_view(&out), &again, &d) == KEDGE_OK
                         && memcmp(&spec, &again, sizeof spec) == 0));
        kedge_buf_deinit(&out);
    }
    KEDGE_ASSERT(spec.rounds >= 1 && spec.batch >= 1 && spec.groups >= 1 && spec.groups <= KEDGE_GROUPS_MAX);
    return 0;
}
