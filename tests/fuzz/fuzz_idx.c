/* Any bytes: no crash; what reads writes back to the same bytes. */
#include "common/tensor/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kedge_idx idx;
    struct kedge_diag diag;
    if (kedge_idx_read(kedge_view_of(data, size), &idx, &diag) == KEDGE_OK) {
        struct kedge_buf out;
        kedge_buf_init(&out, size);
        kedge_idx_put_header(idx.dims, idx.dims_count, &out);
        kedge_buf_put(&out, idx.data, (size_t)idx.count);
        KEDGE_ASSERT(out.err == KEDGE_OK && kedge_view_eq(kedge_buf_view(&out), kedge_view_of(data, size)));
        kedge_buf_deinit(&out);
    }
    return 0;
}
