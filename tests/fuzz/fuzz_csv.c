/* Any bytes: no crash; what reads has finite features and labels in range, by position and by name. */
#include <math.h>

#include "common/tensor/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const labels[] = {"last", "y"};
    for (int i = 0; i < 2; i++) {
        struct kedge_csv csv;
        struct kedge_diag diag;
        if (kedge_csv_read(kedge_view_of(data, size), labels[i], &csv, &diag) != KEDGE_OK) {
            continue;
        }
        for (size_t k = 0; k < (size_t)csv.rows * csv.features; k++) {
            KEDGE_ASSERT(isfinite(csv.x[k]));
        }
        for (uint32_t k = 0; k < csv.rows; k++) {
            KEDGE_ASSERT(csv.labels[k] >= 0 && csv.labels[k] <= KEDGE_CSV_LABEL_MAX);
        }
        kedge_csv_deinit(&csv);
    }
    return 0;
}
