/* Checkpoint texts and frontiers: what is accepted comes out again as the same bytes. */
#include "chain/log/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try_frontier(struct kedge_view bytes)
{
    static struct kedge_frontier f;
    if (kedge_frontier_decode(bytes, &f) == KEDGE_OK) {
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&b, 8 + sizeof f.peaks);
        kedge_frontier_encode(&f, &b);
        KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), bytes));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_view text = kedge_view_of(data, len);
    try_frontier(text);
    struct kedge_checkpoint c;
    if (kedge_checkpoint_parse(text, &c) != KEDGE_OK) {
        return 0;
    }
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, len + 64);
    KEDGE_ASSERT(kedge_checkpoint_format(c.origin, c.size, &c.root, &b) == KEDGE_OK);
    kedge_buf_put(&b, c.extensions.ptr, c.extensions.len);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), text));
    return 0;
}
