/* CSV files as data sets. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/dataset_impl.h"

static struct kedge_csv_options options_of(const struct kedge_data_source *source,
                                           const struct kedgei_load_as *as)
{
    struct kedge_csv_options o = source->csv;
    o.label = source->y[0] ? source->y : NULL;
    o.target = as->target;
    o.classes = as->classes;
    o.finds_classes = as->finds_classes;
    o.ignore.text = source->ignore;
    return o;
}

/* The rows move from the table to the set: copying them would double the memory of a large table. */
static void take_rows(struct kedge_csv *csv, double scale, struct kedge_dataset *ds)
{
    float by = (float)scale;
    for (size_t i = 0; by != 1.0f && i < (size_t)csv->rows * csv->features; i++) {
        csv->x[i] *= by;
    }
    ds->n = csv->rows;
    ds->features = csv->features;
    ds->is_real = csv->targets != NULL;
    ds->labels = ds->is_real ? kedgei_reals_as_labels(csv->targets, csv->rows) : csv->labels;
    ds->storage = csv->x;
    ds->reals = csv->x;
    ds->scale = 1.0f;
    csv->x = NULL;
    csv->labels = NULL;
    csv->targets = NULL;
}

int kedgei_dataset_load_csv(const struct kedge_data_source *source, const struct kedgei_load_as *as,
                            struct kedgei_loaded *ret, struct kedge_diag *reterr)
{
    const struct kedge_csv_options o = options_of(source, as);
    uint8_t *file;
    size_t len;
    KEDGE_TRY(kedge_data_file_read(source->path, &file, &len, reterr));
    int err = kedge_csv_read(kedge_view_of(file, len), &o, &ret->csv, reterr);
    kedge_mem_free(file);
    if (err) {
        return kedge_diag_wrap(reterr, err, "%s", source->path);
    }
    take_rows(&ret->csv, source->scale, &ret->ds);
    return KEDGE_OK;
}

int kedge_data_csv_features(const struct kedge_data_source *source, uint32_t *ret, struct kedge_diag *reterr)
{
    const struct kedge_csv_options o = options_of(source, &(struct kedgei_load_as){0});
    uint8_t *file;
    size_t len;
    KEDGE_TRY(kedge_data_file_read(source->path, &file, &len, reterr));
    int err = kedge_csv_count_features(kedge_view_of(file, len), &o, ret, reterr);
    kedge_mem_free(file);
    return err ? kedge_diag_wrap(reterr, err, "%s", source->path) : KEDGE_OK;
}

/* ---- facts ---- */
