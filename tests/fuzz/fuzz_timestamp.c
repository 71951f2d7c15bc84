/* RFC 3161 replies: whatever is parsed is bounded text, and nothing verifies against bytes it is not about.
 */
#include <string.h>

#include "crypto/timestamp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_view reply = kedge_view_of(data, len);
    struct kedge_timestamp t;
    if (kedge_timestamp_parse(reply, &t) == KEDGE_OK) {
        KEDGE_ASSERT(t.time_s >= 0);
        KEDGE_ASSERT(memchr(t.serial, 0, sizeof t.serial) != NULL);
        KEDGE_ASSERT(memchr(t.policy, 0, sizeof t.policy) != NULL && t.policy[0] != '\0');
        KEDGE_ASSERT(t.authority[0] == '\0');
    }
    KEDGE_ASSERT(kedge_timestamp_verify(reply, kedge_view_str("never signed"), reply, &t, NULL) != KEDGE_OK);
    return 0;
}
