/* The input's first two bytes are a length, the rest any bytes. As a packed piece of that length: when it is
 * taken, exactly so many bytes come out, and they come back from our own packing. As content: it comes back.
 */
#include <string.h>

#include "common/base/mem.h"
#include "common/wire/packed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Into a block of exactly the right size, in rooms that the length decides; the caller frees it. */
static uint8_t *unpack(struct kedge_unpacker *u, size_t len)
{
    static uint8_t piece[7 * KEDGE_PACKED_BLOCK];
    const size_t room = KEDGE_PACKED_BLOCK + len % (sizeof piece - KEDGE_PACKED_BLOCK);
    uint8_t *out = kedge_mem_new(len + 1, 1);
    KEDGE_ASSERT(out);
    size_t at = 0;
    for (size_t n; (n = kedge_unpack(u, piece, room)) > 0; at += n) {
        KEDGE_ASSERT(n <= room && n <= len - at);
        memcpy(out + at, piece, n);
    }
    KEDGE_ASSERT(at == len);
    return out;
}

static void check_round_trip(struct kedge_view content)
{
    struct kedge_unpacker u;
    size_t len = kedge_packed_len(content);
    KEDGE_ASSERT(len <= content.len + content.len / KEDGE_PACKED_BLOCK + KEDGE_PACKED_BLOCK);
    uint8_t *packed = kedge_mem_new(len > 0 ? len : 1, 1);
    KEDGE_ASSERT(packed && kedge_pack(content, packed, len) == len);
    KEDGE_ASSERT(kedge_unpack_begin(&u, kedge_view_of(packed, len), content.len) == KEDGE_OK);
    uint8_t *back = unpack(&u, content.len);
    KEDGE_ASSERT(kedge_view_eq(kedge_view_of(back, content.len), content));
    kedge_mem_free(back);
    kedge_mem_free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kedge_unpacker u;
    if (size < 2) {
        return 0;
    }
    const size_t len = (size_t)data[0] << 8 | data[1];
    struct kedge_view in = kedge_view_of(data + 2, size - 2);
    if (kedge_unpack_begin(&u, in, len) == KEDGE_OK) {
        uint8_t *content = unpack(&u, len);
        check_round_trip(kedge_view_of(content, len));
        kedge_mem_free(content);
    }
    check_round_trip(in);
    return 0;
}
