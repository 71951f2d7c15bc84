/* Any bytes in pieces of any size as one direction of a connection: what is taken apart must be what
 * was sent, whatever the pieces were. */
#include <string.h>

#include "common/base/bytes.h"
#include "common/net/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FRAME_MAX = 300 };

/* Takes the direction apart; *ret_at: how far it was good. The frames, put together again, must be the
 * bytes from the greeting to there. */
static int take_apart(struct kedge_view in, size_t piece, size_t *ret_at)
{
    struct kedgei_decoder d;
    size_t at = 0, checked = KEDGEI_GREETING_LEN;
    int err = KEDGE_OK;
    kedgei_decoder_init(&d, FRAME_MAX);
    while (!err && at < in.len) {
        size_t room = 0;
        uint8_t *space = kedgei_decoder_space(&d, &room);
        size_t n = room < in.len - at ? room : in.len - at;
        n = n < piece ? n : piece;
        memcpy(space, in.ptr + at, n);
        at += n;
        err = kedgei_decoder_advance(&d, n);
        if (!err && d.state == KEDGEI_NO_MEMORY) {
            KEDGE_ASSERT(d.len <= FRAME_MAX);
            err = kedgei_decoder_give(&d);
        }
        if (!err && d.state == KEDGEI_WHOLE) {
            struct kedgei_frame *frame = kedgei_decoder_take(&d);
            uint32_t call = frame->call;
            kedgei_frame_seal(frame, call);
            struct kedge_view sent = kedgei_frame_bytes(frame);
            KEDGE_ASSERT(checked + sent.len == at);
            KEDGE_ASSERT(kedge_view_eq(sent, kedge_view_of(in.ptr + checked, sent.len)));
            checked = at;
            kedgei_frame_free(frame);
        }
    }
    kedgei_decoder_deinit(&d);
    *ret_at = checked;
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct kedge_view in = kedge_view_of(data + 1, size - 1);
    size_t whole = 0, pieces = 0;
    int err = take_apart(in, SIZE_MAX, &whole);
    KEDGE_ASSERT(take_apart(in, (size_t)data[0] + 1, &pieces) == err);
    KEDGE_ASSERT(whole == pieces);
    return 0;
}
