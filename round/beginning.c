#include "round/beginning.h"

#include "common/base/mem.h"

/* Models that began alike would stay alike: every site would find the same loss in all of them. The
 * constant is 2^64 over the golden ratio, odd, so that all multiples differ and lie far from each other,
 * also for seeds that are near each other. */
int kedge_compute_beginning(const struct kedge_job_spec *spec, uint32_t group, struct kedge_sink sink,
                            struct kedge_diag *reterr)
{
    const uint64_t apart = UINT64_C(0x9e3779b97f4a7c15);
    struct kedge_job_spec *other = kedge_mem_new(1, sizeof *other);
    if (!other) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for the first model of group %u", group);
    }
    *other = *spec;
    other->seed += group * apart;
    int err = kedge_compute_initial(other, sink, reterr);
    kedge_mem_free(other);
    return err;
}
