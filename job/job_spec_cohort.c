/* Key "sites_per_round": how many sites a round takes, or from how many to how many. */
#include <inttypes.h>
#include <jansson.h>

#include "common/base/try.h"
#include "job/job_spec_impl.h"

static bool is_count(const json_t *v, json_int_t least)
{
    return json_is_integer(v) && json_integer_value(v) >= least && json_integer_value(v) <= KEDGE_SITES_MAX;
}

int kedgei_spec_read_cohort(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *least = json_array_get(v, 0), *most = json_array_get(v, 1);
    if (is_count(v, 0)) {
        s->sites_per_round = (uint32_t)json_integer_value(v);
        return KEDGE_OK;
    }
    if (json_array_size(v) != 2 || !is_count(least, 1) || !is_count(most, json_integer_value(least))) {
        return kedgei_spec_bad(d, "sites_per_round",
                               "0 to 4096 sites, or from how many to how many, like [2, 8]");
    }
    s->sites_least = (uint32_t)json_integer_value(least);
    s->sites_per_round = (uint32_t)json_integer_value(most);
    return KEDGE_OK;
}

/* Rounds of an asynchronous job keep no site to themselves, and the root site is asked in every round
 * whatever it has to do. */
int kedgei_spec_check_cohort(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    if (s->in_world && s->priority != KEDGE_SPEC_PRIORITY) {
        return kedgei_spec_bad(d, "priority", "no such key in a simulation, where there are no other jobs");
    }
    const char *why = s->sites_least == 0         ? NULL
                      : s->in_world               ? "in a simulation there are no other jobs; give one number"
                      : s->strategy->asynchronous ? "an asynchronous job keeps no sites; give one number"
                      : s->rule->needs_root       ? "the root site is asked in every round; give one number"
                                                  : NULL;
    if (why) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"sites_per_round\": %s", why);
    }
    if (s->sites_least > 0 && json_object_get(root, "sites_min")) {
        return kedgei_spec_bad(d, "sites_min", "no such key beside a range of sites, which says how few do");
    }
    s->sites_min = s->sites_least > 0 ? s->sites_least : s->sites_min;
    return KEDGE_OK;
}
