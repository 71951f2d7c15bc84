/* Any bytes as an archive and as a bare array: no crash, values only within the data. */
#include "common/base/mem.h"
#include "common/tensor/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct kedge_npy *npy)
{
    if (npy->count < 1 << 16) {
        float *values = kedge_mem_new(npy->count, sizeof *values);
        int32_t *labels = kedge_mem_new(npy->count, sizeof *labels);
        if (values && labels && kedge_npy_to_f32(npy, values, NULL) != KEDGE_OK) {
            values[0] = 0; /* refused: nothing to compare */
        }
        if (values && labels && kedge_npy_to_labels(npy, 100, labels, NULL) == KEDGE_OK) {
            KEDGE_ASSERT(labels[0] >= 0 && labels[0] <= 100);
        }
        kedge_mem_free(values);
        kedge_mem_free(labels);
    }
    kedge_npy_deinit(npy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kedge_npz npz;
    struct kedge_npy npy;
    struct kedge_diag diag;
    struct kedge_view file = kedge_view_of(data, size);
    if (kedge_npy_read(file, &npy, &diag) == KEDGE_OK) {
        use(&npy);
    }
    if (kedge_npz_open(file, &npz, &diag) == KEDGE_OK) {
        for (uint32_t i = 0; i < npz.count && i < 8; i++) {
            if (kedge_npz_read(&npz, npz.entries[i].name, &npy, &diag) == KEDGE_OK) {
                use(&npy);
            }
        }
        kedge_npz_close(&npz);
    }
    return 0;
}
