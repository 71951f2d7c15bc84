/* Any bytes as the beginning of an HTTP connection: the end of a head does not depend on the pieces that it
 * came in, and what is taken has one meaning: the same head without what was ignored is taken the same way.
 */
#include <string.h>

#include "common/net/web/http_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned find_in_pieces(struct kedge_view in, size_t piece, size_t *ret_len)
{
    unsigned status = 0;
    size_t seen = 0;
    *ret_len = 0;
    while (!status && *ret_len == 0 && seen < in.len) {
        size_t n = in.len - seen < piece ? in.len - seen : piece;
        status = kedge_http_find_end(kedge_view_of(in.ptr, seen + n), seen, ret_len);
        seen += n;
    }
    return status;
}

static bool is_within(struct kedge_view inner, struct kedge_view outer)
{
    return inner.len == 0 || (inner.ptr >= outer.ptr && inner.ptr + inner.len <= outer.ptr + outer.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kedge_http_head h;
    size_t len = 0, pieces = 0;
    if (size == 0) {
        return 0;
    }
    struct kedge_view in = kedge_view_of(data + 1, size - 1);
    in.len = in.len < KEDGE_HTTP_HEAD_MAX ? in.len : KEDGE_HTTP_HEAD_MAX; /* as a connection's buffer */
    unsigned status = find_in_pieces(in, SIZE_MAX, &len);
    unsigned other = find_in_pieces(in, (size_t)data[0] + 1, &pieces);
    KEDGE_ASSERT(status == other);
    KEDGE_ASSERT(status != 0 || len == pieces);
    struct kedge_view head = kedge_view_of(in.ptr, pieces > 0 ? pieces : in.len);
    if (kedge_http_parse(head, &h) == 0) {
        uint64_t offset, n;
        struct kedge_view token;
        KEDGE_ASSERT(other == 0 && pieces == head.len);
        KEDGE_ASSERT(is_within(h.target, head) && is_within(h.authorization, head));
        KEDGE_ASSERT(h.target.len > 0 && h.target.len <= KEDGE_HTTP_TARGET_MAX && h.target.ptr[0] == '/');
        KEDGE_ASSERT(h.method == KEDGE_HTTP_GET || h.method == KEDGE_HTTP_HEAD);
        if (h.range.present && kedge_http_range_resolve(&h.range, size, &offset, &n)) {
            KEDGE_ASSERT(n > 0 && offset < size && n <= size - offset);
        }
        KEDGE_ASSERT(!kedge_http_bearer(h.authorization, &token) || is_within(token, head));
    }
    return 0;
}
