/* Keys that a spec has and nothing reads: with another strategy, partition or world they would mean
 * something, here they change nothing, which their author should hear. Inside of sim/learn. Pure. */
#ifndef KEDGE_SIM_LEARN_SPEC_SPEC_UNREAD_H
#define KEDGE_SIM_LEARN_SPEC_SPEC_UNREAD_H

#include "sim/learn/spec/spec_rows.h"

enum { KEDGEI_SPEC_UNREAD_MAX = 32 };

/* Which keys of the table are read by one of the specs that a file stands for. */
struct kedgei_spec_read {
    bool by[KEDGEI_SPEC_UNREAD_MAX];
};
void kedgei_spec_reads(const struct kedge_learn_spec *spec, struct kedgei_spec_read *ret);

/* The keys of the object at `at`. KEDGE_E_FORMAT names the first one that nothing reads and that has another
 * value than its default, which spec.json of results writes for every key. alone: there are no variants and
 * no comparison, for which such keys of groups as one of the strategies does not read may stand there. */
KEDGE_NODISCARD int kedgei_spec_check_read(const struct kedgei_spec_layer *l, uint32_t at,
                                           const struct kedgei_spec_read *read, bool alone);

#endif
