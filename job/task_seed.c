#include "job/task_seed.h"

#include "common/base/bytes.h"
#include "crypto/hash.h"

/* Every site shuffles in another order, and an auditor or a simulation can make the same one. Halved,
 * because readers of JSON keep whole numbers only below 2^63. */
uint64_t kedge_task_seed(uint64_t job_seed, uint32_t round, const struct kedge_id *site)
{
    struct kedge_hash h;
    uint8_t head[16];
    kedge_store_be64(head, job_seed);
    kedge_store_be64(head + 8, round);
    kedge_sha256_2(kedge_view_of(head, sizeof head), kedge_view_str(site->s), &h);
    return kedge_load_be64(h.b) >> 1;
}
