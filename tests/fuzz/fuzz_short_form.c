/* Files in short form from anywhere: any bytes are refused or content, which is shortened and comes back. */
#include <string.h>

#include "chain/store/blob/short_form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static uint8_t out[KEDGEI_SHORT_CONTENT_MAX], brief[KEDGEI_SHORT_CONTENT_MAX],
        again[KEDGEI_SHORT_CONTENT_MAX];
    size_t said, brief_len;
    if (len < KEDGEI_SHORT_HEAD) {
        return 0;
    }
    struct kedge_view file = kedge_view_of(data, len);
    if (kedgei_short_length(file, &said) == KEDGE_OK) { /* the checksum is right by itself hardly ever: */
        struct kedge_view stream = kedge_view_of(data + KEDGEI_SHORT_HEAD, len - KEDGEI_SHORT_HEAD);
        (void)!kedgei_short_open(file, out, said);
        if (kedgei_lengthen((enum kedgei_short_how)data[8], stream, out, said) == KEDGE_OK
            && kedgei_short_file(kedge_view_of(out, said), brief, &brief_len)) {
            KEDGE_ASSERT(kedgei_short_open(kedge_view_of(brief, brief_len), again, said) == KEDGE_OK);
            KEDGE_ASSERT(memcmp(out, again, said) == 0);
        }
    }
    if (len <= KEDGEI_SHORT_CONTENT_MAX && kedgei_short_file(file, brief, &brief_len)) {
        KEDGE_ASSERT(kedgei_short_open(kedge_view_of(brief, brief_len), again, len) == KEDGE_OK);
        KEDGE_ASSERT(memcmp(data, again, len) == 0);
    }
    return 0;
}
