/* "batch": a number, or "auto": each site chooses within bounds, and the learning rate follows by a stated
 * rule. Sites differ then in how many steps they make of the same samples, so such a job must weigh by
 * effective steps (FedNova), and what a site states is held against the sizes that it may choose. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "common/base/try.h"
#include "job/job_spec_impl.h"

enum { BATCH_MAX = 65536, START = 16, LEAST = 4, MOST = 256 };

static int bad(struct kedge_diag *d, const char *key, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"%s\": expected %s", key, expected);
}

static int read_size(const json_t *root, const char *key, uint32_t fallback, uint32_t *ret,
                     struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, key);
    const json_int_t n = v ? json_integer_value(v) : (json_int_t)fallback;
    if ((v && !json_is_integer(v)) || n < 1 || n > BATCH_MAX) {
        return bad(d, key, "a whole number from 1 to 65536");
    }
    *ret = (uint32_t)n;
    return KEDGE_OK;
}

static int read_rule(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "learning_rate_rule");
    uint32_t word = KEDGE_RATE_SQRT;
    int err =
        v ? kedgei_spec_word(v, "learning_rate_rule", kedgei_words_learning_rate_rule, &word, d) : KEDGE_OK;
    s->rate_rule = (enum kedge_rate_rule)word;
    return err;
}

/* A start outside the usual bounds moves the bound that it is beyond, so that "batch_start" alone is a
 * whole setting. */
int kedgei_spec_read_batch(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    static const char *const keys[] = {"batch_start", "batch_least", "batch_most", "learning_rate_rule"};
    const json_t *v = json_object_get(root, "batch");
    const char *word = json_string_value(v);
    s->batch_auto = word && strcmp(word, "auto") == 0;
    if (!s->batch_auto) {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            if (json_object_get(root, keys[i])) {
                return kedge_diag_set(d, KEDGE_E_FORMAT,
                                      "job spec: \"%s\": only with \"batch\": \"auto\"; leave it out",
                                      keys[i]);
            }
        }
        if (v && !json_is_integer(v)) {
            return bad(d, "batch", "a whole number from 1 to 65536, or \"auto\"");
        }
        return read_size(root, "batch", 10, &s->batch, d);
    }
    KEDGE_TRY(read_size(root, "batch_start", START, &s->batch, d));
    KEDGE_TRY(read_size(root, "batch_least", s->batch < LEAST ? s->batch : LEAST, &s->batch_least, d));
    KEDGE_TRY(read_size(root, "batch_most", s->batch > MOST ? s->batch : MOST, &s->batch_most, d));
    int err = read_rule(root, s, d);
    if (!err && (s->batch_least > s->batch || s->batch_most < s->batch)) {
        return bad(d, "batch_start", "a size from \"batch_least\" to \"batch_most\"");
    }
    return err;
}

/* The sizes that a site may choose from: the start times powers of two, within the bounds. Both sides count
 * them here, so a site cannot state another size. */
uint32_t kedge_job_spec_batches(const struct kedge_job_spec *spec, uint32_t ret_sizes[KEDGE_SPEC_BATCHES_MAX],
                                uint32_t *ret_start)
{
    uint32_t count = 0, size = spec->batch;
    if (!spec->batch_auto) {
        ret_sizes[0] = spec->batch;
        *ret_start = 0;
        return 1;
    }
    for (int i = 0; i < 17 && size % 2 == 0 && size / 2 >= spec->batch_least; i++) {
        size /= 2;
    }
    for (; count < KEDGE_SPEC_BATCHES_MAX && size <= spec->batch_most; size *= 2) {
        *ret_start = size == spec->batch ? count : *ret_start;
        ret_sizes[count++] = size;
    }
    return count;
}

/* Larger batches have less noise in their steps and take longer ones: in proportion (Goyal et al. 2017), or
 * by the root. The start has the job's own rate. */
double kedge_job_spec_rate(const struct kedge_job_spec *spec, uint32_t batch)
{
    const double ratio = (double)batch / (double)spec->batch;
    if (!spec->batch_auto || spec->rate_rule == KEDGE_RATE_NONE) {
        return spec->learning_rate;
    }
    return spec->learning_rate * (spec->rate_rule == KEDGE_RATE_LINEAR ? ratio : sqrt(ratio));
}

/* Steps of the job's passes over so many samples. */
static uint64_t steps_of(const struct kedge_job_spec *spec, uint64_t samples, uint64_t batch)
{
    return spec->local_epochs * (samples / batch + (samples % batch > 0));
}

/* Size, rate and steps must fit each other: a site that states a smaller rate or more steps than it made
 * would change what its update weighs. */
bool kedge_job_spec_takes_batch(const struct kedge_job_spec *spec, uint64_t samples, uint64_t steps,
                                uint64_t batch, double learning_rate)
{
    uint32_t sizes[KEDGE_SPEC_BATCHES_MAX] = {0}, start = 0;
    if (!spec->batch_auto) {
        return true;
    }
    const uint32_t count = kedge_job_spec_batches(spec, sizes, &start);
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] == batch) {
            const double rate = kedge_job_spec_rate(spec, sizes[i]);
            return !(learning_rate < rate) && !(learning_rate > rate)
                   && steps <= steps_of(spec, samples, batch);
        }
    }
    return false;
}

uint64_t kedgei_spec_steps_most(const struct kedge_job_spec *s, uint64_t samples)
{
    uint32_t sizes[KEDGE_SPEC_BATCHES_MAX] = {0}, start = 0;
    (void)kedge_job_spec_batches(s, sizes, &start);
    return steps_of(s, samples, sizes[0]);
}

/* Weights of FedNova are ratios of effective steps. The largest over the least that can be stated must stay
 * below 2^20, or no whole numbers hold both (strategy/weigh.h). */
int kedgei_spec_check_batch(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    uint32_t sizes[KEDGE_SPEC_BATCHES_MAX] = {0}, start = 0;
    if (!s->batch_auto) {
        return KEDGE_OK;
    }
    if (s->strategy->weigh != kedge_weigh_fednova || !s->rule->samples) {
        (void)kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"batch\": \"auto\": sites with other batches make other numbers of steps, and "
            "strategy \"%s\" with rule \"%s\" would favour those that make many",
            s->strategy->name, s->rule->name);
        (void)kedge_diag_hint(
            d, "say \"strategy\": \"fednova\", which divides by the steps, with \"rule\": \"mean\"; "
               "or a number as \"batch\"");
        return KEDGE_E_FORMAT;
    }
    const uint32_t count = kedge_job_spec_batches(s, sizes, &start);
    double most = 0;
    for (uint32_t i = 0; i < count; i++) { /* how far a site may go, and the least that one may say */
        const double way = (double)steps_of(s, s->weight_max, sizes[i]) * kedge_job_spec_rate(s, sizes[i]);
        most = way > most ? way : most;
    }
    if (most / kedge_job_spec_rate(s, sizes[0]) > KEDGE_WEIGHT_ONE) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"weight_max\": with \"batch\": \"auto\" local_epochs · weight_max / "
            "batch_least must not be above %d; lower it",
            KEDGE_WEIGHT_ONE);
    }
    return KEDGE_OK;
}
