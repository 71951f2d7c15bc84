/* Key "plan": the coordinator decides in each round on what part of its data a site trains.
 *
 * Rounds in which sites find classes, means or variances together are not planned: nothing is trained in
 * them, and all data count. What they took says nothing of what training takes. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/percent.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "common/tensor/scales.h"
#include "job/job_spec_impl.h"

static const struct kedge_job_plan usual = {.is_on = true, .data = 10, .energy = 1, .time = 3, .least = 10};

static int bad(struct kedge_diag *d, const char *text)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"plan\": %s", text);
}

/* *io stays where there is no such key. */
static int read_weight(const json_t *o, const char *key, double *io, struct kedge_diag *d)
{
    const json_t *v = json_object_get(o, key);
    double x = 0;
    if (!v) {
        return KEDGE_OK;
    }
    if (kedgei_json_real(v, &x) != KEDGE_OK || !(x >= 0 && x <= KEDGE_JOB_PLAN_WEIGHT_MAX)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"plan\": \"%s\": expected a number from 0 to %d",
                              key, KEDGE_JOB_PLAN_WEIGHT_MAX);
    }
    *io = x;
    return KEDGE_OK;
}

static int read_least(const json_t *o, struct kedge_job_plan *io, struct kedge_diag *d)
{
    const json_t *v = json_object_get(o, "least_percent");
    const json_int_t n = json_integer_value(v);
    if (v && (!json_is_integer(v) || n < 1 || n > KEDGE_PERCENT_ALL)) {
        return bad(d, "\"least_percent\": expected a whole number from 1 to 100");
    }
    io->least = v ? (uint32_t)n : io->least;
    return KEDGE_OK;
}

static int check_names(const json_t *o, struct kedge_diag *d)
{
    static const char *const keys[] = {"data", "energy", "time", "least_percent"};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)o, name, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            is_known = is_known || strcmp(name, keys[i]) == 0;
        }
        if (!is_known) {
            (void)kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"plan\": unknown key \"%.60s\"", name);
            kedge_nearest_hint(d, name, keys, sizeof keys / sizeof keys[0],
                               "its keys are data, energy, time and least_percent");
            return KEDGE_E_FORMAT;
        }
    }
    return KEDGE_OK;
}

/* An external trainer need not know how to train on a part; where rounds do not wait for their sites there is
 * no slowest one to spare. */
static int check_job(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    if (s->in_world) {
        return bad(d, "a simulation's sites say no costs; leave it out");
    }
    if (s->is_external) {
        return bad(d, "it does not go with \"model\": \"external\", whose trainers take all data");
    }
    if (s->strategy->asynchronous) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"plan\": it does not go with strategy \"%s\", whose rounds wait for nobody",
            s->strategy->name);
    }
    return KEDGE_OK;
}

int kedgei_spec_read_plan(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "plan");
    const char *word = json_string_value(v);
    struct kedge_job_plan p = usual;
    if (!v || (word && strcmp(word, "none") == 0)) {
        return KEDGE_OK;
    }
    if (json_is_object(v)) {
        KEDGE_TRY(check_names(v, d));
        KEDGE_TRY(read_weight(v, "data", &p.data, d));
        KEDGE_TRY(read_weight(v, "energy", &p.energy, d));
        KEDGE_TRY(read_weight(v, "time", &p.time, d));
        KEDGE_TRY(read_least(v, &p, d));
    } else if (!word || strcmp(word, "auto") != 0) {
        return bad(
            d, "expected \"none\", \"auto\" or an object like {\"data\": 10, \"energy\": 1, \"time\": 3}");
    }
    KEDGE_TRY(check_job(s, d));
    s->plan = p;
    return KEDGE_OK;
}

bool kedge_job_spec_plans(const struct kedge_job_spec *spec, uint32_t round)
{
    const uint32_t finding = spec->standardize == KEDGE_STANDARDIZE_FEDERATED ? KEDGE_SCALES_STAGES
                             : spec->learns_classes                           ? KEDGE_CLASSES_ROUND
                                                                              : 0;
    return spec->plan.is_on && round > finding;
}

bool kedge_job_spec_takes_part(const struct kedge_job_spec *spec, uint32_t round, uint64_t samples,
                               uint64_t data_samples, uint32_t percent)
{
    return kedge_job_spec_plans(spec, round)
               ? data_samples >= 1 && percent >= 1 && samples == kedge_percent_of(data_samples, percent)
               : data_samples == 0;
}
