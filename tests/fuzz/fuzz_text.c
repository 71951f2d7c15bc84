/* Text codecs on any bytes: no fault, and what is accepted encodes back to the same text. */
#include <math.h>

#include "common/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void respell_base64(struct kedge_view text)
{
    struct kedge_buf bytes, again;
    kedge_buf_init(&bytes, 1u << 20);
    kedge_buf_init(&again, 1u << 20);
    if (kedge_base64_decode(text, false, &bytes) == KEDGE_OK) {
        kedge_base64_put(&again, kedge_buf_view(&bytes));
        KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&again), text));
    } else {
        KEDGE_ASSERT(bytes.len == 0);
    }
    kedge_buf_deinit(&bytes);
    kedge_buf_deinit(&again);
}

static void respell_real(struct kedge_view text)
{
    char out[KEDGE_REAL_MAX];
    double v = 0, back = 0;
    if (kedge_real_decode(text, &v) == KEDGE_OK) {
        kedge_real_encode(v, out);
        KEDGE_ASSERT(kedge_real_decode(kedge_view_str(out), &back) == KEDGE_OK);
        KEDGE_ASSERT(v == back && signbit(v) == signbit(back));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kedge_view text = kedge_view_of(data, size);
    uint8_t bytes[32];
    char hex[65];
    uint64_t v = 0;
    struct kedge_id id;
    respell_base64(text);
    respell_real(text);
    if (size / 2 <= sizeof bytes && kedge_hex_decode(text, bytes, size / 2) == KEDGE_OK) {
        kedge_hex_encode(bytes, size / 2, hex);
        KEDGE_ASSERT(kedge_view_eq(kedge_view_str(hex), text));
    }
    if (kedge_decimal_decode(text, 1000, &v) == KEDGE_OK) {
        KEDGE_ASSERT(v <= 1000 && size <= 4);
    }
    if (kedge_id_from(text, &id) == KEDGE_OK) {
        KEDGE_ASSERT(kedge_view_eq(kedge_view_str(id.s), text) && kedge_utf8_is_valid(text));
    }
    (void)kedge_utf8_is_valid(text);
    return 0;
}
