/* Keys "targets" and "hold": accuracies at which a job is useful, and at which it ends. */
#include <inttypes.h>
#include <jansson.h>

#include "common/base/try.h"
#include "job/job_spec_impl.h"

static int read_values(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const size_t n = json_array_size(v);
    if (n < 1 || n > KEDGE_SPEC_TARGETS_MAX) {
        return kedgei_spec_bad(d, "targets", "a list of one or two accuracies, like [0.8, 0.9]");
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t share = 0;
        KEDGE_TRY(kedgei_spec_share(json_array_get(v, i), "targets", &share, d));
        if (i > 0 && share <= s->targets[i - 1]) {
            return kedgei_spec_bad(d, "targets", "the higher accuracy second: the job ends there");
        }
        s->targets[i] = (uint32_t)share;
    }
    s->target_count = (uint32_t)n;
    return KEDGE_OK;
}

int kedgei_spec_read_targets(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "targets");
    if (!v) {
        return json_object_get(root, "hold") ? kedgei_spec_bad(
                   d, "hold", "no such key without \"targets\": it says how long these must hold")
                                             : KEDGE_OK;
    }
    KEDGE_TRY(read_values(v, s, d));
    const char *why = s->shows_loss               ? "targets are accuracies, and the job's metric is the loss"
                      : s->evaluate_every == 0    ? "with \"evaluate_every\" 0 nobody evaluates"
                      : s->strategy->asynchronous ? "rounds of an asynchronous job wait for no evaluation"
                                                  : NULL;
    return why ? kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"targets\": %s", why) : KEDGE_OK;
}

bool kedge_job_spec_tests(const struct kedge_job_spec *spec, uint32_t round)
{
    return spec->target_count > 0 && round > 0 && round < spec->rounds && round % spec->evaluate_every == 0;
}
