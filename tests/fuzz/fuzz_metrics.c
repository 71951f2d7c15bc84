/* Any bytes as a trainer's answer: an error that names the trainer, or metrics that a statement takes. */
#include <math.h>
#include <string.h>

#include "client/daemon/trainer/metrics.h"
#include "common/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try_answer(struct kedge_view line, bool train, bool test)
{
    struct kedge_metrics m;
    struct kedge_diag d = {.text = ""};
    int err = kedge_metrics_parse(line, train, test, &m, &d);
    if (err) {
        KEDGE_ASSERT(err == KEDGE_E_TRAINER && strncmp(d.text, "trainer: ", 9) == 0);
        return;
    }
    size_t engine = strnlen(m.engine, sizeof m.engine);
    KEDGE_ASSERT(engine >= 1 && engine <= KEDGE_ST_ENGINE_MAX);
    KEDGE_ASSERT(kedge_utf8_is_valid(kedge_view_of(m.engine, engine)));
    for (size_t i = 0; i < engine; i++) {
        KEDGE_ASSERT((unsigned char)m.engine[i] >= 0x20 && m.engine[i] != 0x7f);
    }
    KEDGE_ASSERT(isfinite(m.seconds) && m.seconds >= 0 && isfinite(m.test_loss));
    KEDGE_ASSERT(m.samples <= KEDGE_ST_COUNT_MAX && m.steps <= KEDGE_ST_COUNT_MAX);
    KEDGE_ASSERT(m.test_correct <= m.test_samples && m.test_samples <= KEDGE_ST_COUNT_MAX);
    KEDGE_ASSERT(test || m.test_samples == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    try_answer(kedge_view_of(data, len), true, true);
    try_answer(kedge_view_of(data, len), true, false);
    try_answer(kedge_view_of(data, len), false, true);
    return 0;
}
