/* Any bytes as a frame or a token: what is accepted must encode to the same bytes. */
#include <string.h>

#include "common/wire/messages.h"
#include "common/wire/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kedge_view in = kedge_view_of(data, size);
    struct kedge_msg msg;
    if (kedge_msg_decode(in, &msg) == KEDGE_OK) {
        struct kedge_buf b;
        kedge_buf_init(&b, KEDGE_FRAME_MAX);
        KEDGE_ASSERT(kedge_msg_encode(&msg, &b) == KEDGE_OK);
        KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), in));
        kedge_buf_deinit(&b);
    }
    struct kedge_token token;
    struct kedge_diag diag;
    if (kedge_token_decode(in, &token, &diag) == KEDGE_OK) {
        char text[KEDGE_TOKEN_TEXT_MAX];
        KEDGE_ASSERT(kedge_token_encode(&token, text) == KEDGE_OK);
        KEDGE_ASSERT(kedge_view_eq(kedge_view_str(text), in));
    }
    return 0;
}
