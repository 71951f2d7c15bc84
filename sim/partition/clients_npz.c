/* Clients of an .npz file: samples, labels, and an array of whole numbers that says whose each sample is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/tensor/csv.h"
#include "common/tensor/dataset.h"
#include "common/tensor/npz.h"
#include "sim/partition/clients_impl.h"

enum { NUMBER_MAX = 24 };
#define BYTE_SCALE (1.0f / 255.0f)

/* Value i of an array of whole numbers. */
static int64_t whole_at(const struct kedge_npy *a, uint64_t i)
{
    int64_t wide;
    int32_t narrow;
    if (a->type == KEDGE_NPY_U1) {
        return a->data[i];
    }
    if (a->type == KEDGE_NPY_I4) {
        memcpy(&narrow, a->data + i * sizeof narrow, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, a->data + i * sizeof wide, sizeof wide);
    return wide;
}

/* An array of n whole numbers. */
static int read_numbers(const struct kedge_npz *npz, const char *name, uint64_t n, struct kedge_npy *ret,
                        struct kedge_diag *reterr)
{
    int err = kedge_npz_read(npz, name, ret, reterr);
    if (err) {
        return err;
    }
    bool is_whole = ret->type == KEDGE_NPY_U1 || ret->type == KEDGE_NPY_I4 || ret->type == KEDGE_NPY_I8;
    if (!is_whole || ret->dims_count != 1 || ret->count != n) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "array \"%.60s\": %" PRIu64 " values of type %s, expected %" PRIu64
                             " whole numbers in one dimension",
                             name, ret->count, kedge_npy_type_name(ret->type), n);
        kedge_npy_deinit(ret);
    }
    return err;
}

/* What a number of the array at row i becomes. */
typedef int use_fn(struct kedgei_clients *b, uint32_t row, const char *text, struct kedge_diag *reterr);

static int use_client(struct kedgei_clients *b, uint32_t row, const char *text, struct kedge_diag *reterr)
{
    return kedgei_clients_name(b, text, &b->c.client[row], reterr);
}

static int use_group(struct kedgei_clients *b, uint32_t row, const char *text, struct kedge_diag *reterr)
{
    return kedgei_clients_group(b, b->c.client[row], text, reterr);
}

static int use_step(struct kedgei_clients *b, uint32_t row, const char *text, struct kedge_diag *reterr)
{
    uint32_t step;
    int err = kedgei_clients_step(text, &step, reterr);
    if (!err) {
        b->c.step[row] = (uint8_t)step;
    }
    return err;
}

static int use_numbers(struct kedgei_clients *b, const struct kedge_npz *npz, const char *name, uint32_t n,
                       use_fn *use, struct kedge_diag *reterr)
{
    struct kedge_npy a;
    int err = name[0] ? read_numbers(npz, name, n, &a, reterr) : KEDGE_OK;
    if (err || !name[0]) {
        return err;
    }
    for (uint32_t i = 0; i < n && !err; i++) {
        char text[NUMBER_MAX];
        (void)snprintf(text, sizeof text, "%" PRId64, whole_at(&a, i));
        err = use(b, b->c.n + i, text, reterr);
    }
    kedge_npy_deinit(&a);
    return err;
}

static int read_x(struct kedgei_clients *b, const struct kedge_npz *npz, uint32_t *ret_rows,
                  struct kedge_diag *reterr)
{
    struct kedge_npy x;
    int err = kedge_npz_read(npz, "x", &x, reterr);
    if (err) {
        return err;
    }
    uint64_t features = x.dims_count > 0 && x.dims[0] > 0 ? x.count / x.dims[0] : 0;
    if (x.dims_count < 2 || x.dims[0] > INT32_MAX || features > KEDGE_CSV_COLUMNS_MAX) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "array \"x\": expected samples × features, at most %d features",
                             KEDGE_CSV_COLUMNS_MAX);
    }
    err = err ? err : kedgei_clients_room(b, (uint32_t)x.dims[0], (uint32_t)features, reterr);
    if (!err) {
        float *out = b->c.x + (size_t)b->c.n * b->c.features;
        err = kedge_npy_to_f32(&x, out, reterr);
        for (uint64_t i = 0; i < x.count && !err && x.type == KEDGE_NPY_U1; i++) { /* an image's bytes */
            out[i] *= BYTE_SCALE;
        }
        *ret_rows = (uint32_t)x.dims[0];
    }
    kedge_npy_deinit(&x);
    return err;
}

static int read_y(struct kedgei_clients *b, const struct kedge_npz *npz, uint32_t n,
                  struct kedge_diag *reterr)
{
    const char *name = b->source->label[0] ? b->source->label : "y";
    struct kedge_npy y;
    int err = read_numbers(npz, name, n, &y, reterr);
    if (err) {
        return err;
    }
    err = kedge_npy_to_labels(&y, KEDGE_CSV_LABEL_MAX, b->c.labels + b->c.n, reterr);
    kedge_npy_deinit(&y);
    return err ? err : kedgei_clients_labels(b, KEDGEI_LABELS_NUMBERS, reterr);
}

static int read_arrays(struct kedgei_clients *b, const struct kedge_npz *npz,
                       const struct kedgei_clients_file *as, struct kedge_diag *reterr)
{
    const struct kedge_clients_source *s = b->source;
    uint32_t rows = 0;
    int err = read_x(b, npz, &rows, reterr);
    err = err ? err : read_y(b, npz, rows, reterr);
    for (uint32_t i = 0; i < rows && !err; i++) {
        b->c.client[b->c.n + i] = as->client;
        b->c.part[b->c.n + i] = (uint8_t)as->part;
        b->c.step[b->c.n + i] = (uint8_t)as->step;
    }
    if (!err && as->client == UINT32_MAX) {
        err = use_numbers(b, npz, s->client[0] ? s->client : "client", rows, use_client, reterr);
        err = err ? err : use_numbers(b, npz, s->group, rows, use_group, reterr);
        err = err ? err : use_numbers(b, npz, s->step, rows, use_step, reterr);
    }
    b->c.n += err ? 0 : rows;
    return err;
}

int kedgei_clients_npz(struct kedgei_clients *b, const char *path, const struct kedgei_clients_file *as,
                       struct kedge_diag *reterr)
{
    struct kedge_npz npz;
    uint8_t *bytes = NULL;
    size_t len = 0;
    int err = kedge_data_file_read(path, &bytes, &len, reterr);
    if (err) {
        return err;
    }
    err = kedge_npz_open(kedge_view_of(bytes, len), &npz, reterr);
    if (!err) {
        err = read_arrays(b, &npz, as, reterr);
        kedge_npz_close(&npz);
    }
    kedge_mem_free(bytes);
    return err ? kedge_diag_wrap(reterr, err, "%s", path) : KEDGE_OK;
}
