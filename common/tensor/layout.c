/* Layouts: named tensors in an order. Offsets follow from the shapes alone, so two programs that
 * agree on the layout agree on every byte of a model. */
#include "common/tensor/layout.h"

#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"

const char *kedge_dtype_name(enum kedge_dtype dtype)
{
    return dtype == KEDGE_DTYPE_F32 ? "F32" : dtype == KEDGE_DTYPE_I32 ? "I32" : "?";
}

uint64_t kedge_dtype_size(enum kedge_dtype dtype)
{
    KEDGE_ASSERT(dtype == KEDGE_DTYPE_F32 || dtype == KEDGE_DTYPE_I32);
    return 4;
}

void kedge_layout_init(struct kedge_layout *layout, enum kedge_dtype dtype)
{
    *layout = (struct kedge_layout){.dtype = dtype};
}

void kedge_layout_deinit(struct kedge_layout *layout)
{
    kedge_mem_free(layout->tensors);
    *layout = (struct kedge_layout){.dtype = layout->dtype};
}

void kedge_shape_text(const uint64_t *dims, uint32_t dims_count, char out[KEDGE_SHAPE_TEXT_MAX])
{
    size_t used = 0; /* 8 dimensions of at most 20 digits fit */
    out[used++] = '[';
    for (uint32_t i = 0; i < dims_count && i < KEDGE_TENSOR_DIMS_MAX; i++) {
        int n = snprintf(out + used, KEDGE_SHAPE_TEXT_MAX - used, "%s%llu", i ? "," : "",
                         (unsigned long long)dims[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    out[used++] = ']';
    out[used] = '\0';
}

/* Names go into JSON and into messages unescaped. */
static bool is_name(const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len > KEDGE_TENSOR_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (name[i] <= 0x20 || name[i] >= 0x7f || name[i] == '"' || name[i] == '\\') {
            return false;
        }
    }
    return strcmp(name, "__metadata__") != 0; /* reserved by safetensors */
}

/* Divides before it multiplies, so no shape can overflow; a zero dimension is refused, for a tensor
 * without elements has no place of its own. */
static int count_elements(const char *name, const uint64_t *dims, uint32_t dims_count, uint64_t left,
                          uint64_t *ret_count, struct kedge_diag *reterr)
{
    uint64_t count = 1;
    if (dims_count > KEDGE_TENSOR_DIMS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "tensor \"%s\": %u dimensions, at most %d", name,
                              dims_count, KEDGE_TENSOR_DIMS_MAX);
    }
    for (uint32_t i = 0; i < dims_count; i++) {
        if (dims[i] == 0 || dims[i] > left / count) {
            char shape[KEDGE_SHAPE_TEXT_MAX];
            kedge_shape_text(dims, dims_count, shape);
            return kedge_diag_set(reterr, KEDGE_E_SHAPE, "tensor \"%s\": shape %s has %s", name, shape,
                                  dims[i] == 0 ? "a zero dimension" : "too many elements (2^36 in a model)");
        }
        count *= dims[i];
    }
    *ret_count = count;
    return KEDGE_OK;
}

int kedge_layout_add(struct kedge_layout *layout, const char *name, const uint64_t *dims, uint32_t dims_count,
                     struct kedge_diag *reterr)
{
    uint64_t count = 0, left = KEDGE_LAYOUT_VALUES_MAX - layout->values_count;
    if (!is_name(name)) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                              "tensor name of %zu bytes: expected 1 to %d printable ASCII "
                              "characters without quotes, spaces and backslashes",
                              strlen(name), KEDGE_TENSOR_NAME_MAX);
    }
    if (layout->count == KEDGE_TENSORS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "more than %d tensors", KEDGE_TENSORS_MAX);
    }
    if (kedge_layout_find(layout, name)) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "tensor \"%s\" appears twice", name);
    }
    KEDGE_TRY(left == 0 ? kedge_diag_set(reterr, KEDGE_E_SHAPE,
                                         "tensor \"%s\": model is full (2^36 elements)", name)
                        : count_elements(name, dims, dims_count, left, &count, reterr));
    if (layout->count == layout->cap) {
        uint32_t cap = layout->cap ? layout->cap * 2 : 8;
        struct kedge_tensor *p = kedge_mem_resize(layout->tensors, cap, sizeof *p);
        if (!p) {
            return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u tensors", cap);
        }
        layout->tensors = p;
        layout->cap = cap;
    }
    struct kedge_tensor *t = &layout->tensors[layout->count++];
    *t = (struct kedge_tensor){.dims_count = dims_count, .count = count};
    memcpy(t->name, name, strlen(name) + 1);
    if (dims_count > 0) {
        memcpy(t->dims, dims, dims_count * sizeof dims[0]);
    }
    t->offset = layout->values_count * kedge_dtype_size(layout->dtype);
    layout->values_count += count;
    return KEDGE_OK;
}

const struct kedge_tensor *kedge_layout_find(const struct kedge_layout *layout, const char *name)
{
    for (uint32_t i = 0; i < layout->count; i++) {
        if (strcmp(layout->tensors[i].name, name) == 0) {
            return &layout->tensors[i];
        }
    }
    return NULL;
}

uint64_t kedge_layout_data_len(const struct kedge_layout *layout)
{
    return layout->values_count * kedge_dtype_size(layout->dtype);
}

static bool same_shape(const struct kedge_tensor *a, const struct kedge_tensor *b)
{
    return a->dims_count == b->dims_count && memcmp(a->dims, b->dims, a->dims_count * sizeof a->dims[0]) == 0;
}

static int say_name_differs(const struct kedge_layout *expected, const struct kedge_layout *got, uint32_t i,
                            struct kedge_diag *reterr)
{
    const char *want = expected->tensors[i].name, *found = got->tensors[i].name;
    if (!kedge_layout_find(expected, found)) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "extra tensor \"%s\": expected \"%s\" there", found,
                              want);
    }
    if (!kedge_layout_find(got, want)) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "tensor \"%s\" is missing: found \"%s\" in its place",
                              want, found);
    }
    return kedge_diag_set(reterr, KEDGE_E_SHAPE, "tensors in another order: expected \"%s\", found \"%s\"",
                          want, found);
}

/* Names first, then shapes, in order: the message tells the first difference in the words of the
 * model, which is what its author needs. */
int kedge_layout_check_same(const struct kedge_layout *expected, const struct kedge_layout *got,
                            enum kedge_dtype dtype, struct kedge_diag *reterr)
{
    if (got->dtype != dtype) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "tensor \"%s\": type %s, expected %s",
                              got->count ? got->tensors[0].name : "", kedge_dtype_name(got->dtype),
                              kedge_dtype_name(dtype));
    }
    uint32_t common = expected->count < got->count ? expected->count : got->count;
    for (uint32_t i = 0; i < common; i++) {
        const struct kedge_tensor *want = &expected->tensors[i], *found = &got->tensors[i];
        if (strcmp(want->name, found->name) != 0) {
            return say_name_differs(expected, got, i, reterr);
        }
        if (!same_shape(want, found)) {
            char want_text[KEDGE_SHAPE_TEXT_MAX], found_text[KEDGE_SHAPE_TEXT_MAX];
            kedge_shape_text(want->dims, want->dims_count, want_text);
            kedge_shape_text(found->dims, found->dims_count, found_text);
            return kedge_diag_set(reterr, KEDGE_E_SHAPE, "tensor \"%s\": shape %s, expected %s", want->name,
                                  found_text, want_text);
        }
    }
    if (common < expected->count) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "tensor \"%s\" is missing",
                              expected->tensors[common].name);
    }
    if (common < got->count) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "extra tensor \"%s\"", got->tensors[common].name);
    }
    return KEDGE_OK;
}
