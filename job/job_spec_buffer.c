/* Asynchronous jobs (FedBuff): what their spec must say. */
#include <inttypes.h>

#include "job/job_spec_impl.h"

uint32_t kedge_job_spec_buffer(const struct kedge_job_spec *spec)
{
    return spec->strategy->asynchronous ? (uint32_t)spec->options.buffer : 0;
}

/* How many updates a close can have at most. Bounds of sums and of memory are computed from it, so it must
 * never be too small: without a limit it is all sites that a coordinator takes. */
uint64_t kedgei_spec_updates_most(const struct kedge_job_spec *s)
{
    uint32_t buffer = kedge_job_spec_buffer(s);
    return buffer > 0 ? buffer : s->sites_per_round > 0 ? s->sites_per_round : KEDGE_SITES_MAX;
}

static int check_asynchronous(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    uint32_t buffer = kedge_job_spec_buffer(s);
    uint32_t most = s->sites_per_round > 0 ? s->sites_per_round : KEDGE_SITES_MAX;
    double whole = buffer;
    if (s->grouping != KEDGE_GROUPING_NONE) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"grouping\": strategy \"%s\" has one model: sites that are at work "
                              "for several rounds cannot change their group; leave it out",
                              s->strategy->name);
    }
    if (s->options.buffer < whole || s->options.buffer > whole || buffer > most) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"options\": \"buffer\" %g: expected a whole number of updates from 1 "
            "to %" PRIu32 ", as many sites as are at work at a time (\"sites_per_round\")",
            s->options.buffer, most);
    }
    if (s->quorum > buffer) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"quorum\": expected at most %" PRIu32
                              ", the \"buffer\" of updates with which a round closes",
                              buffer);
    }
    if (s->rule->kind != KEDGE_RULE_MEAN && buffer > KEDGE_RULE_VECTORS_MAX) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"rule\": \"%s\" takes at most %d updates of a round: expected "
                              "\"buffer\" from 1 to %d",
                              s->rule->name, KEDGE_RULE_VECTORS_MAX, KEDGE_RULE_VECTORS_MAX);
    }
    return KEDGE_OK;
}

int kedgei_spec_check_buffer(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    if (s->strategy->asynchronous) {
        return check_asynchronous(s, d);
    }
    return s->staleness_max != KEDGEI_STALENESS_DEFAULT
               ? kedge_diag_set(d, KEDGE_E_FORMAT,
                                "job spec: \"staleness_max\": with strategy \"%s\" no update outlives its "
                                "round; leave it out",
                                s->strategy->name)
               : KEDGE_OK;
}
