/* Reader and writer of the safetensors container. What is signed and hashed has one spelling only:
 * the canonical read parses a header, writes it again from the layout that it found, and compares
 * the bytes. So there is no list of canonical rules in the reader that could differ from the
 * writer.
 *
 * The header comes from outside. It has a bound, is parsed into a bounded number of tokens, and
 * names, types, shapes and offsets are checked before the first byte of data is looked at. */
#include "common/tensor/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/json.h"

/* Per tensor: name, object, three keys, type, two arrays, offsets, shape. */
enum { TOKENS_MAX = KEDGE_TENSORS_MAX * (10 + KEDGE_TENSOR_DIMS_MAX) + 2 * KEDGE_JSON_MEMBERS_MAX };

/* Tensors as the header names them, before they are put in order of their offsets. */
struct entry {
    char name[KEDGE_TENSOR_NAME_MAX + 1];
    uint64_t dims[KEDGE_TENSOR_DIMS_MAX];
    uint32_t dims_count;
    uint64_t begin, end;
    enum kedge_dtype dtype;
};

/* The length is little-endian by the format's definition. It is bounded here, because callers read
 * that many bytes next. */
int kedge_safetensors_data_start(const uint8_t first[8], uint64_t *ret_start, struct kedge_diag *reterr)
{
    uint64_t len = 0;
    for (int i = 7; i >= 0; i--) {
        len = len << 8 | first[i];
    }
    if (len < 2 || len > KEDGE_TENSOR_HEADER_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "not a safetensors file: header length %llu, expected 2 to %d",
                              (unsigned long long)len, KEDGE_TENSOR_HEADER_MAX);
    }
    *ret_start = 8 + len;
    return KEDGE_OK;
}

/* Whole numbers of at most 16 digits, without leading zeros: below 2^64 in any case, and one
 * spelling for each. */
static int read_u64s(const struct kedge_json *doc, uint32_t array, uint64_t *out, uint32_t *ret_count,
                     uint32_t max)
{
    if (!kedge_json_is(doc, array, KEDGE_JSON_ARRAY) || doc->tokens[array].count > max) {
        return KEDGE_E_FORMAT;
    }
    uint32_t n = 0;
    struct kedge_json_token const *tokens = doc->tokens;
    for (uint32_t at = array + 1; at < tokens[array].next; at = tokens[at].next) {
        uint64_t v = 0;
        struct kedge_view text = kedge_json_text(doc, at);
        if (tokens[at].type != KEDGE_JSON_NUMBER || text.len > 16 || (text.len > 1 && text.ptr[0] == '0')) {
            return KEDGE_E_FORMAT;
        }
        for (size_t i = 0; i < text.len; i++) {
            if (text.ptr[i] < '0' || text.ptr[i] > '9') {
                return KEDGE_E_FORMAT;
            }
            v = v * 10 + (uint64_t)(text.ptr[i] - '0');
        }
        out[n++] = v;
    }
    *ret_count = n;
    return KEDGE_OK;
}

/* One tensor of the header: its type, shape and place. All of it is checked before anything is looked at in
 * the data. */
static int read_entry(const struct kedge_json *doc, uint32_t key, struct entry *ret,
                      struct kedge_diag *reterr)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    uint32_t value = key + 1, n;
    uint64_t ends[2];
    *ret = (struct entry){0};
    if (kedge_json_decode_string(doc, key, ret->name, sizeof ret->name) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "tensor name longer than %d bytes",
                              KEDGE_TENSOR_NAME_MAX);
    }
    int err = kedge_json_check_keys(doc, value, ret->name, keys, 3, reterr);
    if (err) {
        return kedge_diag_wrap(reterr, err, "tensor");
    }
    uint32_t dtype = kedge_json_find(doc, value, "dtype");
    if (kedge_json_str_is(doc, dtype, "F32")) {
        ret->dtype = KEDGE_DTYPE_F32;
    } else if (kedge_json_str_is(doc, dtype, "I32")) {
        ret->dtype = KEDGE_DTYPE_I32;
    } else {
        struct kedge_view t =
            dtype == KEDGE_JSON_NONE ? kedge_view_str("missing") : kedge_json_text(doc, dtype);
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "tensor \"%s\": type %.*s, expected F32 or I32",
                              ret->name, t.len < 16 ? (int)t.len : 16, (const char *)t.ptr);
    }
    if (read_u64s(doc, kedge_json_find(doc, value, "shape"), ret->dims, &ret->dims_count,
                  KEDGE_TENSOR_DIMS_MAX)
        != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "tensor \"%s\": shape is not an array of at most %d whole numbers", ret->name,
                              KEDGE_TENSOR_DIMS_MAX);
    }
    if (read_u64s(doc, kedge_json_find(doc, value, "data_offsets"), ends, &n, 2) != KEDGE_OK || n != 2) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "tensor \"%s\": data_offsets is not [begin,end]",
                              ret->name);
    }
    ret->begin = ends[0];
    ret->end = ends[1];
    return KEDGE_OK;
}

/* Programs may leave notes here; they are checked for their form and not used. */
static int check_metadata(const struct kedge_json *doc, uint32_t at, struct kedge_diag *reterr)
{
    if (!kedge_json_is(doc, at, KEDGE_JSON_OBJECT)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "__metadata__ is not an object");
    }
    for (uint32_t k = at + 1; k < doc->tokens[at].next; k = doc->tokens[k + 1].next) {
        if (!kedge_json_is(doc, k + 1, KEDGE_JSON_STRING)) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "__metadata__ holds a value that is not a string");
        }
    }
    return KEDGE_OK;
}

static int compare_begin(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Sorted by place: other programs write tensors in any order of the header, and only the order of
 * the data counts. */
static int read_entries(const struct kedge_json *doc, struct entry *entries, uint32_t *ret_count,
                        struct kedge_diag *reterr)
{
    uint32_t n = 0;
    if (!kedge_json_is(doc, 0, KEDGE_JSON_OBJECT)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "safetensors header is not a JSON object");
    }
    for (uint32_t k = 1; k < doc->tokens[0].next; k = doc->tokens[k + 1].next) {
        int err;
        if (kedge_json_str_is(doc, k, "__metadata__")) {
            err = check_metadata(doc, k + 1, reterr);
        } else if (n == KEDGE_TENSORS_MAX) {
            err = kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "more than %d tensors", KEDGE_TENSORS_MAX);
        } else {
            err = read_entry(doc, k, &entries[n++], reterr);
        }
        if (err) {
            return err;
        }
    }
    qsort(entries, n, sizeof entries[0], compare_begin);
    *ret_count = n;
    return KEDGE_OK;
}

/* Tensors must lie one after another without gaps or overlaps, in the order of their places. So every byte
 * belongs to one tensor, two files of the same model have the same bytes, and no place can point outside
 * the file. */
static int build_layout(const struct entry *entries, uint32_t count, struct kedge_layout *layout,
                        struct kedge_diag *reterr)
{
    kedge_layout_init(layout, count ? entries[0].dtype : KEDGE_DTYPE_F32);
    for (uint32_t i = 0; i < count; i++) {
        const struct entry *e = &entries[i];
        if (e->dtype != layout->dtype) {
            return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                                  "tensor \"%s\": type %s, but \"%s\" is %s: one type per "
                                  "file",
                                  e->name, kedge_dtype_name(e->dtype), entries[0].name,
                                  kedge_dtype_name(layout->dtype));
        }
        uint64_t begin = kedge_layout_data_len(layout);
        KEDGE_TRY(kedge_layout_add(layout, e->name, e->dims, e->dims_count, reterr));
        uint64_t end = kedge_layout_data_len(layout);
        if (e->begin != begin || e->end != end) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                  "tensor \"%s\": data_offsets [%llu,%llu], expected [%llu,%llu]", e->name,
                                  (unsigned long long)e->begin, (unsigned long long)e->end,
                                  (unsigned long long)begin, (unsigned long long)end);
        }
    }
    return KEDGE_OK;
}

/* Memory is taken for as many tokens as a text of this length can have, at most: two bytes for
 * each. */
static int read_header(struct kedge_view text, struct kedge_layout *layout, struct kedge_diag *reterr)
{
    size_t tokens_max = text.len / 2 + 1 < TOKENS_MAX ? text.len / 2 + 1 : TOKENS_MAX;
    struct kedge_json_token *tokens KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(tokens_max, sizeof *tokens);
    struct kedge_json doc;
    struct entry *entries KEDGE_CLEANUP(kedge_mem_release) = NULL;
    uint32_t count = 0;
    KEDGE_TRY(tokens
                  ? kedge_json_parse(text, tokens, (uint32_t)tokens_max, &doc, reterr)
                  : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a header of %zu bytes", text.len));
    uint32_t max = doc.tokens[0].count < KEDGE_TENSORS_MAX ? doc.tokens[0].count : KEDGE_TENSORS_MAX;
    entries = kedge_mem_new(max, sizeof *entries);
    KEDGE_TRY(entries ? read_entries(&doc, entries, &count, reterr)
                      : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u tensors", max));
    return build_layout(entries, count, layout, reterr);
}

static int check_canonical(struct kedge_view head, uint64_t start, const struct kedge_layout *layout,
                           struct kedge_diag *reterr)
{
    struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&again, KEDGE_TENSOR_HEADER_MAX + 16);
    KEDGE_TRY(kedge_safetensors_header(layout, layout->dtype, &again));
    if (!kedge_view_eq(kedge_buf_view(&again), kedge_view_of(head.ptr, (size_t)start))) {
        KEDGE_TRY(
            kedge_diag_set(reterr, KEDGE_E_FORMAT,
                           "safetensors header is not canonical: expected compact JSON, "
                           "keys dtype, shape, data_offsets, no metadata, padded with spaces to 8 bytes"));
    }
    return KEDGE_OK;
}

/* Only the head is needed; the data may be on the disk. Their length must be exactly what the
 * header says. */
int kedge_safetensors_read(struct kedge_view head, uint64_t file_len, enum kedge_safetensors_form form,
                           struct kedge_layout *ret_layout, uint64_t *ret_data_start,
                           struct kedge_diag *reterr)
{
    uint64_t start = 0;
    if (head.len < 8) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "not a safetensors file: %zu bytes", head.len);
    }
    KEDGE_TRY(kedge_safetensors_data_start(head.ptr, &start, reterr));
    if (start > head.len || start > file_len) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "safetensors header of %llu bytes is cut off at %zu",
                              (unsigned long long)start, head.len);
    }
    struct kedge_layout layout;
    kedge_layout_init(&layout, KEDGE_DTYPE_F32);
    int err = read_header(kedge_view_of(head.ptr + 8, (size_t)start - 8), &layout, reterr);
    if (!err && file_len - start != kedge_layout_data_len(&layout)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "file of %llu bytes, expected %llu by its header",
                             (unsigned long long)file_len,
                             (unsigned long long)(start + kedge_layout_data_len(&layout)));
    }
    if (!err && form == KEDGE_SAFETENSORS_CANONICAL) {
        err = check_canonical(head, start, &layout, reterr);
    }
    if (err) {
        kedge_layout_deinit(&layout);
        return err;
    }
    *ret_layout = layout;
    *ret_data_start = start;
    return KEDGE_OK;
}

/* The length is written last, over eight bytes that were left for it; padding to eight makes the
 * data begin at an address that is good for any element type. */
int kedge_safetensors_header(const struct kedge_layout *layout, enum kedge_dtype dtype, struct kedge_buf *out)
{
    size_t begin = out->len;
    uint64_t offset = 0;
    kedge_buf_put_u64(out, 0); /* the length, known at the end */
    kedge_buf_put_u8(out, '{');
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct kedge_tensor *t = &layout->tensors[i];
        char shape[KEDGE_SHAPE_TEXT_MAX];
        uint64_t end = offset + t->count * kedge_dtype_size(dtype);
        kedge_shape_text(t->dims, t->dims_count, shape);
        kedge_buf_printf(out, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%llu,%llu]}",
                         i ? "," : "", t->name, kedge_dtype_name(dtype), shape, (unsigned long long)offset,
                         (unsigned long long)end);
        offset = end;
    }
    kedge_buf_put_u8(out, '}');
    while (!out->err && (out->len - begin) % 8 != 0) {
        kedge_buf_put_u8(out, ' ');
    }
    if (!out->err && out->len - begin - 8 > KEDGE_TENSOR_HEADER_MAX) {
        out->err = KEDGE_E_TOO_LONG;
    }
    if (out->err) {
        return out->err;
    }
    uint64_t len = out->len - begin - 8;
    for (int i = 0; i < 8; i++) {
        out->ptr[begin + (size_t)i] = (uint8_t)(len >> (8 * i));
    }
    return KEDGE_OK;
}

uint64_t kedge_safetensors_file_len(const struct kedge_layout *layout, enum kedge_dtype dtype)
{
    struct kedge_buf header;
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 16);
    int err = kedge_safetensors_header(layout, dtype, &header);
    uint64_t len = err ? 0 : header.len + layout->values_count * kedge_dtype_size(dtype);
    kedge_buf_deinit(&header);
    return len;
}
