/* Prints the digest of every kernel for each instruction set that the machine has, a line each; exit status 1
 * when one is not what it must be. scripts/check-neon compares the output of two processors. */
#include <stdio.h>

#include "aggregation/simd.h"
#include "tests/unit/aggregation/digests.h"

int main(void)
{
    static const struct digest_way way = {2, 1000, 3};
    int status = 0;
    digests_open();
    for (enum kedge_simd simd = KEDGE_SIMD_SCALAR; simd <= KEDGE_SIMD_LAST; simd++) {
        if (kedge_simd_set(simd)) {
            continue;
        }
        for (size_t d = 0; d < digests_count; d++) {
            const uint64_t got = digests[d].make(&way, digests[d].arg);
            printf("%016llx %s (%s)\n", (unsigned long long)got, digests[d].name, kedge_simd_name(simd));
            status = got == digests[d].expect ? status : 1;
        }
    }
    return status;
}
