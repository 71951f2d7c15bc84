#include "coordinator/events/frame.h"

int kedge_event_frame_encode(const struct kedge_event_frame *f, struct kedge_buf *out)
{
    const size_t len = KEDGE_EVENT_FRAME_HEAD + f->name.len + f->payload.len;
    if (f->name.len > KEDGE_ID_MAX || len > KEDGE_EVENT_FRAME_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    kedge_buf_put_u16(out, (uint16_t)len);
    kedge_buf_put_u8(out, (uint8_t)f->type);
    kedge_buf_put_u8(out, (uint8_t)f->name.len);
    kedge_buf_put(out, f->name.ptr, f->name.len);
    kedge_buf_put(out, f->payload.ptr, f->payload.len);
    return out->err;
}

int kedge_event_frame_take(struct kedge_view *bytes, struct kedge_event_frame *ret)
{
    struct kedge_reader r = kedge_reader_of(*bytes);
    if (bytes->len < KEDGE_EVENT_FRAME_HEAD) {
        return KEDGE_E_NOT_FOUND;
    }
    const size_t len = kedge_read_u16(&r);
    const uint8_t type = kedge_read_u8(&r), name_len = kedge_read_u8(&r);
    if (len > KEDGE_EVENT_FRAME_MAX || len < (size_t)KEDGE_EVENT_FRAME_HEAD + name_len
        || name_len > KEDGE_ID_MAX || type < KEDGE_EVENT_FRAME_OPEN || type > KEDGE_EVENT_FRAME_BEAT) {
        return KEDGE_E_FORMAT;
    }
    if (bytes->len < len) {
        return KEDGE_E_NOT_FOUND;
    }
    ret->type = (enum kedge_event_frame_type)type;
    ret->name = kedge_read_bytes(&r, name_len);
    ret->payload = kedge_read_bytes(&r, len - KEDGE_EVENT_FRAME_HEAD - name_len);
    *bytes = kedge_view_of(bytes->ptr + len, bytes->len - len);
    return KEDGE_OK;
}
