/* A full class makes room instead of refusing, or a few idle connections would keep everybody else out.
 * The one that has been idle for longest goes, never one that a known key has at work. */
#include "common/net/admission/admission.h"

#define NS_PER_MS 1000000u
/* A client speaks first, as soon as it is connected; to say who it is takes three ways through the network.
 */
enum { SILENT_GRACE_MS = 200, GRACE_MS = 2000 };

enum kedgei_verdict kedgei_admission(const struct kedgei_places *places, enum kedgei_class class,
                                     unsigned count, unsigned own)
{
    if (own >= places->one[class]) {
        return KEDGEI_EVICT_OWN;
    }
    return count >= places->of[class] ? KEDGEI_EVICT_CLASS : KEDGEI_ADMIT;
}

bool kedgei_admission_may_evict(const struct kedgei_idleness *it, uint64_t now_ns)
{
    uint64_t idle = now_ns > it->since_ns ? now_ns - it->since_ns : 0;
    if (it->class != KEDGEI_STRANGER) {
        return !it->at_work;
    }
    return idle >= (uint64_t)(it->has_spoken ? GRACE_MS : SILENT_GRACE_MS) * NS_PER_MS;
}
