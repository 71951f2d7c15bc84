/* Any bytes, by options that the first two of them choose: no crash; what reads has finite features, but for
 * those that may be missing, labels in range or finite reals, and as many names as it says. */
#include <math.h>

#include "common/tensor/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kedge_csv *csv, const struct kedge_csv_options *o)
{
    const char *name = csv->columns;
    KEDGE_ASSERT(csv->rows > 0 && csv->features > 0 && (csv->labels == NULL) == (csv->targets != NULL));
    for (size_t k = 0; k < (size_t)csv->rows * csv->features; k++) {
        KEDGE_ASSERT(isfinite(csv->x[k]) || (isnan(csv->x[k]) && o->missing == KEDGE_CSV_MISSING_MEAN));
    }
    for (uint32_t k = 0; k < csv->rows; k++) {
        int32_t most = o->classes.count ? (int32_t)o->classes.count - 1
                       : csv->classes   ? (int32_t)csv->classes_count - 1
                                        : KEDGE_CSV_LABEL_MAX;
        KEDGE_ASSERT(csv->targets ? isfinite(csv->targets[k])
                                  : csv->labels[k] >= 0 && csv->labels[k] <= most);
    }
    for (uint32_t k = 0; k < csv->features; k++) {
        KEDGE_ASSERT(kedge_names_next(name) - name <= KEDGE_CSV_NAME_MAX + 1);
        name = kedge_names_next(name);
    }
    name = csv->classes;
    for (uint32_t k = 0; k < csv->classes_count; k++) {
        KEDGE_ASSERT(name[0] != '\0' || k == 0);
        name = kedge_names_next(name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const labels[] = {NULL, "first", "y", "last"};
    static const char separators[] = {'\0', ',', ';', ' ', '\t', '|', '\0', '\0'};
    if (size < 2) {
        return 0;
    }
    uint8_t a = data[0], b = data[1];
    struct kedge_csv_options o = {.label = labels[a & 3],
                                  .label_place = b & 128 ? 1 + (b & 3) : 0,
                                  .separator = separators[(a >> 2) & 7],
                                  .header = (enum kedge_csv_header)((a >> 5) % 3),
                                  .decimal_comma = b & 1,
                                  .missing = (enum kedge_csv_missing)((b >> 1) % 3),
                                  .target = (enum kedge_csv_target)((b >> 3) % 3)};
    if (b & 32) {
        o.classes = (struct kedge_names){3, "0\0b\0\"q\"\0"};
    }
    if (b & 64) {
        o.ignore_count = 1;
        o.ignore_places[0] = 2;
        o.ignore = (struct kedge_names){a & 128 ? 1 : 0, "id"};
    }
    struct kedge_csv csv;
    struct kedge_diag diag = {.text = ""};
    int err = kedge_csv_read(kedge_view_of(data + 2, size - 2), &o, &csv, &diag);
    if (err != KEDGE_OK) {
        KEDGE_ASSERT(err < 0 && diag.text[0] != '\0');
        return 0;
    }
    check(&csv, &o);
    kedge_csv_deinit(&csv);
    return 0;
}
