/* Any bytes as the SPEC.json of `kedge sim`: an error that names something, or something that can be run. */
#include "cli/sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_cli_sim sim;
    struct kedge_diag d = {.text = ""};
    if (kedge_cli_sim_parse(kedge_view_of(data, len), &sim, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0] != '\0');
        return 0;
    }
    KEDGE_ASSERT(sim.seeds >= 1);
    return 0;
}
