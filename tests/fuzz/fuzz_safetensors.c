/* Any bytes: no crash; a canonical read accepts exactly what writing the layout again gives. */
#include "common/tensor/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kedge_layout any, canonical;
    uint64_t start;
    struct kedge_diag diag;
    struct kedge_view file = kedge_view_of(data, size);
    if (kedge_safetensors_read(file, size, KEDGE_SAFETENSORS_ANY, &any, &start, &diag) != KEDGE_OK) {
        KEDGE_ASSERT(
            kedge_safetensors_read(file, size, KEDGE_SAFETENSORS_CANONICAL, &canonical, &start, &diag)
            != KEDGE_OK);
        return 0;
    }
    KEDGE_ASSERT(start + kedge_layout_data_len(&any) == size);
    struct kedge_buf again;
    kedge_buf_init(&again, 2 * KEDGE_TENSOR_HEADER_MAX);
    int err = kedge_safetensors_header(&any, any.dtype, &again);
    bool same = !err && kedge_view_eq(kedge_buf_view(&again), kedge_view_of(data, (size_t)start));
    err = kedge_safetensors_read(file, size, KEDGE_SAFETENSORS_CANONICAL, &canonical, &start, &diag);
    KEDGE_ASSERT((err == KEDGE_OK) == same);
    if (!err) {
        KEDGE_ASSERT(start % 8 == 0);
        KEDGE_ASSERT(kedge_safetensors_file_len(&canonical, canonical.dtype) == size);
        KEDGE_ASSERT(kedge_layout_check_same(&any, &canonical, any.dtype, NULL) == KEDGE_OK);
        kedge_layout_deinit(&canonical);
    }
    kedge_buf_deinit(&again);
    kedge_layout_deinit(&any);
    return 0;
}
