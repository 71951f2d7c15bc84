/* What the device of a site allows and takes: whether it is there, by the trace, and time and joules of its
 * part in a round. */
#include <math.h>

#include "sim/learn/engine.h"

bool kedgei_learn_is_there(const struct kedgei_learn *l, uint32_t site)
{
    return !l->has_trace
           || kedgei_trace_at(&l->trace, site, l->sites[site].device, l->line.virtual_s).available;
}

bool kedgei_learn_stays(const struct kedgei_learn *l, uint32_t site, double seconds)
{
    double now = l->line.virtual_s;
    return !l->has_trace
           || kedgei_trace_when(&l->trace, site, l->sites[site].device, now, false) >= now + seconds;
}

double kedgei_learn_somebody_s(const struct kedgei_learn *l)
{
    double first = (double)INFINITY, now = l->line.virtual_s;
    for (uint32_t i = 0; i < l->n; i++) {
        double at = kedgei_learn_is_there(l, i)
                        ? now
                        : kedgei_trace_when(&l->trace, i, l->sites[i].device, now, true);
        first = at < first ? at : first;
    }
    return first;
}

double kedgei_learn_seconds(const struct kedgei_learn *l, uint32_t site)
{
    const struct kedge_learn_device *d = &l->spec->devices[l->sites[site].device];
    double samples = (double)l->sites[site].train_count * l->spec->job.local_epochs, speed = d->samples_per_s;
    if (l->has_trace) {
        double own = kedgei_trace_at(&l->trace, site, l->sites[site].device, l->line.virtual_s).samples_per_s;
        speed = own > 0 ? own : speed;
    }
    if (l->spec->job.compression.kind != KEDGE_COMPACT_NONE) {
        return samples / speed + ((double)l->d * 4 + (double)kedgei_learn_update_bytes(l)) / d->bytes_per_s;
    }
    return samples / speed + (double)l->travels * (double)l->shared * 4 / d->bytes_per_s;
}

double kedgei_learn_joules(const struct kedgei_learn *l, uint32_t site)
{
    const struct kedge_learn_device *d = &l->spec->devices[l->sites[site].device];
    double samples = (double)l->sites[site].train_count * l->spec->job.local_epochs;
    return samples * d->joules_per_sample + kedgei_learn_seconds(l, site) * d->joules_per_s;
}
