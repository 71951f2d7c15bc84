/* Any bytes as SITE/energy: an error, or what can be used and comes back as it was. */
#include <string.h>

#include "client/daemon/energy/energy_stored.h"
#include "common/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_energy_stored s, again;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf one, two;
    if (kedge_energy_stored_decode(kedge_view_of(data, len), &s, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0] && s.task_count == 0);
        return 0;
    }
    kedge_buf_init(&one, KEDGE_ENERGY_TEXT_MAX);
    kedge_buf_init(&two, KEDGE_ENERGY_TEXT_MAX);
    KEDGE_ASSERT(kedge_energy_stored_encode(&s, &one) == KEDGE_OK);
    KEDGE_ASSERT(kedge_energy_stored_decode(kedge_buf_view(&one), &again, &d) == KEDGE_OK);
    KEDGE_ASSERT(kedge_energy_stored_encode(&again, &two) == KEDGE_OK);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&one), kedge_buf_view(&two)));
    struct kedge_rng rng;
    kedge_rng_init(&rng, 1, KEDGE_RNG_TEST, 0, 0);
    for (uint32_t i = 0; i < s.task_count; i++) {
        const struct kedge_rounds_ask ask = {.samples = 100, .seconds = 1};
        const struct kedge_rounds_choice c = kedge_rounds_choose(&s.tasks[i].rounds, &ask, &rng);
        KEDGE_ASSERT(c.place < s.tasks[i].rounds.batch.count);
    }
    kedge_budget_recover(&s.budget);
    KEDGE_ASSERT(s.budget.open_count == 0 && s.budget.job_count <= KEDGE_BUDGET_JOBS_MAX);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&two);
    return 0;
}
