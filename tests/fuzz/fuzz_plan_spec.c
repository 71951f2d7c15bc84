/* Any bytes as the PLAN.json of `kedge job plan`: an error that names something, or a plan that keeps its
 * bounds. */
#include "cli/job/plan_spec.h"
#include "common/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_cli_plan plan;
    struct kedge_diag d = {.text = ""};
    if (kedge_cli_plan_parse(kedge_view_of(data, len), &plan, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0] != '\0');
        return 0;
    }
    struct kedge_plan_choice *choices = kedge_mem_new(plan.count, sizeof *choices);
    KEDGE_ASSERT(choices);
    KEDGE_ASSERT(kedge_plan_round(&plan.setting, plan.devices, plan.count, 1, choices) == KEDGE_OK);
    for (uint32_t i = 0; i < plan.count; i++) {
        KEDGE_ASSERT(choices[i].energy <= plan.devices[i].charge
                     && choices[i].data <= plan.setting.data_levels);
        KEDGE_ASSERT((choices[i].data == 0) == (choices[i].energy == 0));
    }
    kedge_mem_free(choices);
    kedge_mem_free(plan.devices);
    return 0;
}
