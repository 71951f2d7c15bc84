/* Single arrays of the .npy format, and models as sets of arrays. */
#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/idx.h"
#include "common/tensor/npz.h"

static const struct {
    const char *name;
    uint32_t size;
} types[] = {
    [KEDGE_NPY_F4] = {"<f4", 4},   [KEDGE_NPY_F8] = {"<f8", 8}, [KEDGE_NPY_I4] = {"<i4", 4},
    [KEDGE_NPY_I8] = {"<i8", 8},   [KEDGE_NPY_U1] = {"|u1", 1}, [KEDGE_NPY_TEXT] = {"<U", 4},
    [KEDGE_NPY_BYTES] = {"|S", 1},
};
enum { TYPES_END = sizeof types / sizeof types[0] };

const char *kedge_npy_type_name(enum kedge_npy_type type)
{
    return types[type].name;
}

uint32_t kedge_npy_type_size(enum kedge_npy_type type)
{
    return types[type].size;
}

static bool is_text(enum kedge_npy_type type)
{
    return type == KEDGE_NPY_TEXT || type == KEDGE_NPY_BYTES;
}

void kedge_npy_deinit(struct kedge_npy *npy)
{
    kedge_mem_free(npy->storage);
    *npy = (struct kedge_npy){0};
}

/* A walk over the Python literal of the header; every take_ skips blanks, then matches or fails. */
struct walk {
    struct kedge_view rest;
};

static void skip_blanks(struct walk *w)
{
    while (w->rest.len > 0 && (w->rest.ptr[0] == ' ' || w->rest.ptr[0] == '\n')) {
        w->rest = kedge_view_of(w->rest.ptr + 1, w->rest.len - 1);
    }
}

static bool take(struct walk *w, const char *word)
{
    size_t len = strlen(word);
    skip_blanks(w);
    if (w->rest.len < len || memcmp(w->rest.ptr, word, len) != 0) {
        return false;
    }
    w->rest = kedge_view_of(w->rest.ptr + len, w->rest.len - len);
    return true;
}

/* 'text' in single or double quotes. */
static bool take_quoted(struct walk *w, struct kedge_view *ret)
{
    skip_blanks(w);
    if (w->rest.len < 2 || (w->rest.ptr[0] != '\'' && w->rest.ptr[0] != '"')) {
        return false;
    }
    const uint8_t *begin = w->rest.ptr + 1, *end = memchr(begin, w->rest.ptr[0], w->rest.len - 1);
    if (!end) {
        return false;
    }
    *ret = kedge_view_of(begin, (size_t)(end - begin));
    w->rest = kedge_view_of(end + 1, w->rest.len - ret->len - 2);
    return true;
}

/* Dimensions are multiplied only while the product stays within KEDGE_NPY_BYTES_MAX, so count cannot
 * overflow. */
static bool take_shape(struct walk *w, struct kedge_npy *npy)
{
    bool closed = take(w, "(") && take(w, ")");
    if (closed) {
        return true; /* a scalar */
    }
    while (npy->dims_count < KEDGE_TENSOR_DIMS_MAX) {
        size_t len = 0;
        skip_blanks(w);
        while (len < w->rest.len && w->rest.ptr[len] >= '0' && w->rest.ptr[len] <= '9') {
            len++;
        }
        uint64_t dim;
        if (kedge_decimal_decode(kedge_view_of(w->rest.ptr, len), UINT64_MAX, &dim) != KEDGE_OK || dim == 0
            || dim > KEDGE_NPY_BYTES_MAX / npy->count) {
            return false;
        }
        w->rest = kedge_view_of(w->rest.ptr + len, w->rest.len - len);
        npy->dims[npy->dims_count++] = dim;
        npy->count *= dim;
        bool comma = take(w, ",");
        if (take(w, ")")) {
            return true;
        }
        if (!comma) {
            return false;
        }
    }
    return false;
}

/* By the type's spelling and not by its parts: what is not in the table is not read, and a pickled
 * object has no place in it. */
static int take_type(struct kedge_view descr, struct kedge_npy *npy, struct kedge_diag *reterr)
{
    for (size_t i = KEDGE_NPY_F4; i < TYPES_END; i++) {
        size_t len = strlen(types[i].name);
        uint64_t characters = 1;
        if (descr.len < len || memcmp(descr.ptr, types[i].name, len) != 0) {
            continue;
        }
        bool whole = descr.len == len;
        if (is_text((enum kedge_npy_type)i)) { /* the number of characters stands after it */
            struct kedge_view number = kedge_view_of(descr.ptr + len, descr.len - len);
            whole =
                kedge_decimal_decode(number, KEDGE_NPY_TEXT_MAX, &characters) == KEDGE_OK && characters > 0;
        }
        if (whole) {
            npy->type = (enum kedge_npy_type)i;
            npy->size = types[i].size * (uint32_t)characters;
            return KEDGE_OK;
        }
    }
    return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                          "type '%.*s'%s: expected <f4, <f8, <i4, <i8, |u1, or texts of 1 to 4096 characters",
                          descr.len < 16 ? (int)descr.len : 16, (const char *)descr.ptr,
                          kedge_view_eq(descr, kedge_view_str("|O")) ? " (pickled objects are never read)"
                                                                     : "");
}

/* The header is a literal of Python: {'descr': …, 'fortran_order': …, 'shape': …}. It is read by a small
 * parser of its own that knows these three keys and nothing else. An array of objects holds pickles, which
 * run code when they are read, so it is refused by its type. */
static int read_header(struct kedge_view text, struct kedge_npy *npy, struct kedge_diag *reterr)
{
    struct walk w = {text};
    bool descr = false, order = false, shape = false;
    struct kedge_view key, type;
    bool ok = take(&w, "{");
    while (ok && !take(&w, "}")) {
        ok = take_quoted(&w, &key) && take(&w, ":");
        if (ok && !descr && kedge_view_eq(key, kedge_view_str("descr"))) {
            if (!take_quoted(&w, &type)) {
                return kedge_diag_set(reterr, KEDGE_E_FORMAT, "npy: structured arrays are not supported");
            }
            KEDGE_TRY(take_type(type, npy, reterr));
            descr = true;
        } else if (ok && !order && kedge_view_eq(key, kedge_view_str("fortran_order"))) {
            if (take(&w, "True")) {
                return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                      "npy: Fortran order, expected C order "
                                      "(numpy.ascontiguousarray)");
            }
            ok = order = take(&w, "False");
        } else if (ok && !shape && kedge_view_eq(key, kedge_view_str("shape"))) {
            ok = shape = take_shape(&w, npy);
        } else {
            ok = false;
        }
        bool comma = ok && take(&w, ",");
        skip_blanks(&w);
        ok = ok && (comma || (w.rest.len > 0 && w.rest.ptr[0] == '}'));
    }
    skip_blanks(&w);
    if (!ok || !descr || !order || !shape || w.rest.len != 0) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "npy: header is malformed: expected descr, fortran_order and a shape of 0 to %d "
            "non-zero dimensions",
            KEDGE_TENSOR_DIMS_MAX);
    }
    return KEDGE_OK;
}

/* Version 1 has a header length of 16 bits, version 2 of 32. The number of data bytes must be
 * exactly what shape and type say, so nothing after them can be hidden in a file that is passed on. */
int kedge_npy_read(struct kedge_view file, struct kedge_npy *ret, struct kedge_diag *reterr)
{
    struct kedge_npy npy = {.count = 1};
    if (file.len < 12 || memcmp(file.ptr, "\x93NUMPY", 6) != 0) {
        char found[KEDGE_SNIFF_TEXT_MAX];
        kedge_sniff_text(file, found);
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "not an npy array: first bytes are %s", found);
    }
    const uint8_t *p = file.ptr;
    if (p[6] != 1 && p[6] != 2) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "npy: version %u, expected 1 or 2", p[6]);
    }
    size_t begin = p[6] == 1 ? 10 : 12, len = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] == 2) {
        len |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    }
    if (len > file.len - begin || len > 65536) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "npy: header of %zu bytes in a file of %zu", len,
                              file.len);
    }
    KEDGE_TRY(read_header(kedge_view_of(p + begin, len), &npy, reterr));
    size_t found = file.len - begin - len;
    if (found % npy.size != 0 || found / npy.size != npy.count) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "npy: %zu bytes of data, expected %llu values of %u bytes", found,
                              (unsigned long long)npy.count, npy.size);
    }
    npy.data = p + begin + len;
    *ret = npy;
    return KEDGE_OK;
}

/* Value i; integers beyond 2^53 round, which the callers' ranges exclude or do not mind. */
static double value_at(const struct kedge_npy *npy, uint64_t i)
{
    const uint8_t *p = npy->data + i * types[npy->type].size;
    float f4;
    double f8;
    int32_t i4;
    int64_t i8;
    switch (npy->type) {
    case KEDGE_NPY_F4:
        memcpy(&f4, p, sizeof f4);
        return (double)f4;
    case KEDGE_NPY_F8:
        memcpy(&f8, p, sizeof f8);
        return f8;
    case KEDGE_NPY_I4:
        memcpy(&i4, p, sizeof i4);
        return i4;
    case KEDGE_NPY_I8:
        memcpy(&i8, p, sizeof i8);
        return (double)i8;
    case KEDGE_NPY_U1:
        return *p;
    case KEDGE_NPY_TEXT:
    case KEDGE_NPY_BYTES:
        break; /* the callers have refused them */
    }
    return 0;
}

int kedge_npy_to_f32(const struct kedge_npy *npy, float *out, struct kedge_diag *reterr)
{
    if (is_text(npy->type)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "type %s: expected numbers", types[npy->type].name);
    }
    for (uint64_t i = 0; i < npy->count; i++) {
        double v = value_at(npy, i);
        if (!(fabs(v) <= 3.4028234e38)) {
            return kedge_diag_set(reterr, KEDGE_E_NOT_FINITE,
                                  "value %llu is %g: expected a number within F32", (unsigned long long)i, v);
        }
        out[i] = (float)v;
    }
    return KEDGE_OK;
}

/* Labels as reals are refused and not rounded: 0.9999999 would silently become another class. */
int kedge_npy_to_labels(const struct kedge_npy *npy, int32_t max, int32_t *out, struct kedge_diag *reterr)
{
    if (npy->type == KEDGE_NPY_F4 || npy->type == KEDGE_NPY_F8 || is_text(npy->type)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "type %s: expected whole numbers (<i4, <i8 or |u1)",
                              types[npy->type].name);
    }
    for (uint64_t i = 0; i < npy->count; i++) {
        double v = value_at(npy, i);
        if (!(v >= 0 && v <= max)) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "label %llu is %.0f: expected 0 to %d",
                                  (unsigned long long)i, v, max);
        }
        out[i] = (int32_t)v;
    }
    return KEDGE_OK;
}

/* A code point as UTF-8: its bytes, 0 for what is no character. */
static size_t utf8_of(uint32_t point, char out[4])
{
    size_t len = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
        return 0;
    }
    for (size_t i = len; i-- > 1; point >>= 6) {
        out[i] = (char)(0x80 | (point & 0x3f));
    }
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(first[len] | point);
    return len;
}

/* NumPy stores texts in UTF-32, padded with NULs to the longest one; here they become UTF-8. A NUL
 * inside a text is an error, since it would end the name early. */
int kedge_npy_text(const struct kedge_npy *npy, uint64_t i, char *out, size_t out_len,
                   struct kedge_diag *reterr)
{
    if (!is_text(npy->type)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "type %s: expected texts", types[npy->type].name);
    }
    const uint8_t *at = npy->data + i * npy->size;
    uint32_t step = types[npy->type].size, end = npy->size;
    static const uint8_t nul[4];
    while (end > 0 && memcmp(at + end - step, nul, step) == 0) { /* shorter values end in NULs */
        end -= step;
    }
    size_t used = 0;
    for (uint32_t k = 0; k < end; k += step) {
        uint32_t point = at[k];
        char bytes[4] = {(char)at[k]};
        size_t len = 1;
        if (npy->type == KEDGE_NPY_TEXT) {
            point = (uint32_t)at[k] | (uint32_t)at[k + 1] << 8 | (uint32_t)at[k + 2] << 16
                    | (uint32_t)at[k + 3] << 24;
            len = utf8_of(point, bytes);
        }
        if (len == 0 || point == 0) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "value %llu: 0x%x is no character of a text",
                                  (unsigned long long)i, point);
        }
        if (used + len >= out_len) {
            return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "value %llu: a text of more than %zu bytes",
                                  (unsigned long long)i, out_len - 1);
        }
        memcpy(out + used, bytes, len);
        used += len;
    }
    out[used] = '\0';
    return KEDGE_OK;
}
