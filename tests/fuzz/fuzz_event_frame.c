/* Bytes on the companion's standard input: every frame that is taken lies within them and is made of the same
 * bytes again. */
#include <string.h>

#include "coordinator/events/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kedge_view rest = kedge_view_of(data, size);
    struct kedge_event_frame frame;
    for (struct kedge_view before = rest; kedge_event_frame_take(&rest, &frame) == KEDGE_OK; before = rest) {
        struct kedge_buf again;
        const size_t len = before.len - rest.len;
        kedge_buf_init(&again, KEDGE_EVENT_FRAME_MAX);
        KEDGE_ASSERT(len >= KEDGE_EVENT_FRAME_HEAD && len <= KEDGE_EVENT_FRAME_MAX);
        KEDGE_ASSERT(kedge_event_frame_encode(&frame, &again) == KEDGE_OK && again.len == len);
        KEDGE_ASSERT(memcmp(again.ptr, before.ptr, len) == 0);
        kedge_buf_deinit(&again);
    }
    return 0;
}
