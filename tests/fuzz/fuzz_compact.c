/* The input's first byte is a kind, the next two a number of values, the rest a block of such an update: when
 * it is taken, its values are in range and come back from our own writing as they are, in the same bytes
 * where they have one form. */
#include <string.h>

#include "aggregation/compact.h"
#include "common/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(enum kedge_compact_kind kind, const int32_t *values, size_t n,
                        struct kedge_view block)
{
    static int32_t left[KEDGE_COMPACT_BLOCK], again[KEDGE_COMPACT_BLOCK];
    static uint8_t out[KEDGE_COMPACT_BLOCK_BYTES_MAX];
    const struct kedge_compact all = {kind, KEDGE_COMPACT_SHARE_ONE, 0};
    struct kedge_compact_plan plan;
    uint32_t entries;
    memcpy(left, values, n * sizeof *left);
    KEDGE_ASSERT(kedge_compact_plan(&all, left, n, &plan) == KEDGE_OK);
    size_t len = kedge_compact_block_write(&plan, left, n, INT32_MAX, out);
    KEDGE_ASSERT(kedge_compact_block_read(kind, kedge_view_of(out, len), n, again, &entries) == KEDGE_OK);
    for (size_t i = 0; i < n; i++) {
        KEDGE_ASSERT((int64_t)again[i] + left[i] == values[i]);
    }
    if (kind == KEDGE_COMPACT_BF16 || kind == KEDGE_COMPACT_TOPK) {
        KEDGE_ASSERT(kedge_view_eq(kedge_view_of(out, len), block));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int32_t values[KEDGE_COMPACT_BLOCK];
    if (size < 5) {
        return 0;
    }
    const enum kedge_compact_kind kind = (enum kedge_compact_kind)(1 + data[0] % (KEDGE_COMPACT_KINDS - 1));
    const size_t n = 1 + ((size_t)data[1] << 8 | data[2]) % KEDGE_COMPACT_BLOCK;
    struct kedge_view block = kedge_view_of(data + 3, size - 3);
    uint32_t entries = 0;
    if (kedge_compact_block_read(kind, block, n, values, &entries) != KEDGE_OK) {
        return 0;
    }
    KEDGE_ASSERT(entries <= n && block.len == kedge_compact_block_len(kind, n, block.ptr));
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++) {
        KEDGE_ASSERT(values[i] != INT32_MIN);
        found += values[i] != 0;
    }
    KEDGE_ASSERT(!kedge_compact_is_sparse(kind) || found == entries);
    check_again(kind, values, n, block);
    return 0;
}
