/* Any bytes as a reading of the kernel's: refused, or digits that come back from the number. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/energy/meter.h"
#include "common/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint64_t v, size;
    char text[32];
    if (kedge_reading_parse(kedge_view_of(data, len), &v) == KEDGE_OK) {
        const size_t n = (size_t)snprintf(text, sizeof text, "%" PRIu64, v);
        KEDGE_ASSERT(len >= n && len <= n + 1 && memcmp(text, data, n) == 0 && (len == n || data[n] == '\n'));
        KEDGE_ASSERT(kedge_reading_parse_size(kedge_view_of(data, len), &size) == KEDGE_OK && size == v);
    }
    return 0;
}
