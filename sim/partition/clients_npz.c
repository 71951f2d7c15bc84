/* Clients of an .npz file: samples, labels, and an array of whole numbers or texts that says whose each
 * sample is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/try.h"
#include "common/tensor/csv.h"
#include "common/tensor/npz.h"
#include "sim/partition/clients_impl.h"

enum { NUMBER_MAX = 24 }; /* of a whole number's text, less than a client's name may have */
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

static bool is_whole(const struct kedge_npy *a)
{
    return a->type == KEDGE_NPY_U1 || a->type == KEDGE_NPY_I4 || a->type == KEDGE_NPY_I8;
}

/* An array of n whole numbers, or of texts where they may be. */
static int read_names(const struct kedge_npz *npz, const char *name, uint64_t n, bool texts,
                      struct kedge_npy *ret, struct kedge_diag *reterr)
{
    int err = kedge_npz_read(npz, name, ret, reterr);
    if (err) {
        return err;
    }
    bool fits = is_whole(ret) || (texts && (ret->type == KEDGE_NPY_TEXT || ret->type == KEDGE_NPY_BYTES));
    if (!fits || ret->dims_count != 1 || ret->count != n) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "array \"%.60s\": %" PRIu64 " values of type %s, expected %" PRIu64
                             " whole numbers%s in one dimension",
                             name, ret->count, kedge_npy_type_name(ret->type), n, texts ? " or texts" : "");
        kedge_npy_deinit(ret);
    }
    return err;
}

/* What a value of the array at row i becomes. */
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
    KEDGE_TRY(kedgei_clients_step(text, &step, reterr));
    b->c.step[row] = (uint8_t)step;
    return KEDGE_OK;
}

static int use_names(struct kedgei_clients *b, const struct kedge_npz *npz, const char *name, uint32_t n,
                     use_fn *use, struct kedge_diag *reterr)
{
    struct kedge_npy a;
    int err = name[0] ? read_names(npz, name, n, true, &a, reterr) : KEDGE_OK;
    if (err || !name[0]) {
        return err;
    }
    for (uint32_t i = 0; i < n && !err; i++) {
        char text[KEDGE_CLIENTS_NAME_MAX + 1];
        if (is_whole(&a)) {
            (void)snprintf(text, NUMBER_MAX, "%" PRId64, whole_at(&a, i));
        } else {
            err = kedge_npy_text(&a, i, text, sizeof text, reterr);
        }
        if (!err) {
            err = use(b, b->c.n + i, text, reterr);
        }
    }
    kedge_npy_deinit(&a);
    return err ? kedge_diag_wrap(reterr, err, "array \"%.60s\"", name) : KEDGE_OK;
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
    if (!err) {
        err = kedgei_clients_room(b, (uint32_t)x.dims[0], (uint32_t)features, reterr);
    }
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
    KEDGE_TRY(read_names(npz, name, n, false, &y, reterr));
    int err = kedge_npy_to_labels(&y, KEDGE_CSV_LABEL_MAX, b->c.labels + b->c.n, reterr);
    kedge_npy_deinit(&y);
    return err ? err : kedgei_clients_labels(b, KEDGEI_LABELS_NUMBERS, reterr);
}

static int read_arrays(struct kedgei_clients *b, const struct kedge_npz *npz,
                       const struct kedgei_clients_file *as, struct kedge_diag *reterr)
{
    const struct kedge_clients_source *s = b->source;
    uint32_t rows = 0;
    KEDGE_TRY(read_x(b, npz, &rows, reterr));
    KEDGE_TRY(read_y(b, npz, rows, reterr));
    for (uint32_t i = 0; i < rows; i++) {
        b->c.client[b->c.n + i] = as->client;
        b->c.part[b->c.n + i] = (uint8_t)as->part;
        b->c.step[b->c.n + i] = (uint8_t)as->step;
    }
    if (as->client == UINT32_MAX) {
        KEDGE_TRY(use_names(b, npz, s->client[0] ? s->client : "client", rows, use_client, reterr));
        KEDGE_TRY(use_names(b, npz, s->group, rows, use_group, reterr));
        KEDGE_TRY(use_names(b, npz, s->step, rows, use_step, reterr));
    }
    b->c.n += rows;
    return KEDGE_OK;
}

int kedgei_clients_npz(struct kedgei_clients *b, struct kedge_view bytes,
                       const struct kedgei_clients_file *as, struct kedge_diag *reterr)
{
    struct kedge_npz npz;
    KEDGE_TRY(kedge_npz_open(bytes, &npz, reterr));
    int err = read_arrays(b, &npz, as, reterr);
    kedge_npz_close(&npz);
    return err;
}
