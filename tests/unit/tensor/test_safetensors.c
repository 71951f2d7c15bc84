/* Layouts and safetensors: one canonical spelling, everything else refused by name. */
#include <stdio.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/tensor/safetensors.h"
#include "tests/unit/tensor/suite.h"

static void make_layout(struct kedge_layout *l, enum kedge_dtype dtype)
{
    static const uint64_t weight[] = {3, 2}, bias[] = {3};
    kedge_layout_init(l, dtype);
    ck_assert_int_eq(kedge_layout_add(l, "0.weight", weight, 2, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_layout_add(l, "0.bias", bias, 1, NULL), KEDGE_OK);
}

/* Header text behind its length word, padded or not, and data_len zero bytes. */
static void put_file(struct kedge_buf *out, const char *header, size_t data_len)
{
    size_t len = strlen(header);
    kedge_buf_init(out, 1 << 22);
    for (int i = 0; i < 8; i++) {
        kedge_buf_put_u8(out, (uint8_t)(len >> (8 * i)));
    }
    kedge_buf_put_str(out, header);
    for (size_t i = 0; i < data_len; i++) {
        kedge_buf_put_u8(out, 0);
    }
}

static const char golden[] = "{\"0.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},"
                             "\"0.bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[24,36]}}    ";

START_TEST(canonical_header_is_fixed_and_aligned)
{
    struct kedge_layout l, back;
    struct kedge_buf out, file;
    uint64_t start = 0;
    make_layout(&l, KEDGE_DTYPE_I32); /* its own type does not matter */
    kedge_buf_init(&out, 4096);
    ck_assert_int_eq(kedge_safetensors_header(&l, KEDGE_DTYPE_F32, &out), KEDGE_OK);
    ck_assert_uint_eq(out.len % 8, 0);
    ck_assert_uint_eq(out.len, 8 + sizeof golden - 1);
    ck_assert_mem_eq(out.ptr + 8, golden, sizeof golden - 1);
    ck_assert_uint_eq(kedge_safetensors_file_len(&l, KEDGE_DTYPE_F32), out.len + 36);
    put_file(&file, golden, 36);
    ck_assert_int_eq(kedge_safetensors_read(kedge_buf_view(&file), file.len, KEDGE_SAFETENSORS_CANONICAL,
                                            &back, &start, NULL),
                     KEDGE_OK);
    ck_assert_uint_eq(start, out.len);
    ck_assert_int_eq(kedge_layout_check_same(&l, &back, KEDGE_DTYPE_F32, NULL), KEDGE_OK);
    ck_assert_uint_eq(back.tensors[1].offset, 24);
    ck_assert_uint_eq(back.values_count, 9);
    kedge_layout_deinit(&back);
    /* The header alone with the file's length is enough. */
    ck_assert_int_eq(kedge_safetensors_read(kedge_view_of(file.ptr, (size_t)start), file.len,
                                            KEDGE_SAFETENSORS_CANONICAL, &back, &start, NULL),
                     KEDGE_OK);
    kedge_layout_deinit(&back);
    kedge_buf_deinit(&file);
    kedge_buf_deinit(&out);
    kedge_layout_deinit(&l);
}
END_TEST

static const struct {
    const char *header;
    size_t data_len;
    bool any; /* an import accepts it */
    const char *says;
} cases[] = {
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, true,
     "not canonical"}, /* no padding */
    {"{ \"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}} ", 8, true, "not canonical"},
    {"{\"a\":{\"shape\":[2],\"dtype\":\"F32\",\"data_offsets\":[0,8]}}  ", 8, true, "not canonical"},
    {"{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
     8, true, "not canonical"},
    {"{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
     "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
     8, true, "not canonical"},
    {"{\"__metadata__\":{\"n\":1}}", 0, false, "not a string"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, false, "type F64"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 8, false, "expected [0,8]"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, false,
     "expected [0,8]"}, /* a hole */
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 12, false,
     "expected"},                                                                               /* trailing */
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, false, "expected"}, /* cut off */
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
     4, false, "data_offsets"}, /* overlap */
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
     8, false, "one type per file"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, false, "zero dimension"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, false, "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, false,
     "too many"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, false, "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[01],\"data_offsets\":[0,4]}}", 4, false, "JSON"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, false, "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4, false, "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, false, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, false, "data_offsets"},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, false, "type missing"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, false,
     "unknown key \"x\""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
     8, false, "appears twice"},
    {"{\"a b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, false, "printable"},
    {"{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, false, "printable"},
    {"[]", 0, false, "not a JSON object"},
    {"{}}", 0, false, "JSON"},
    {"{\"a\":3}", 0, false, "expected an object"},
};

START_TEST(what_is_not_canonical_is_refused_and_what_is_wrong_always)
{
    struct kedge_buf file;
    struct kedge_layout l;
    struct kedge_diag diag = {0};
    uint64_t start;
    put_file(&file, cases[_i].header, cases[_i].data_len);
    int err = kedge_safetensors_read(kedge_buf_view(&file), file.len, KEDGE_SAFETENSORS_CANONICAL, &l, &start,
                                     &diag);
    ck_assert_msg(err < 0, "accepted as canonical: %s", cases[_i].header);
    ASSERT_SAYS(diag, cases[_i].says);
    err = kedge_safetensors_read(kedge_buf_view(&file), file.len, KEDGE_SAFETENSORS_ANY, &l, &start, &diag);
    ck_assert_msg((err == KEDGE_OK) == cases[_i].any, "%s: %s", cases[_i].header, diag.text);
    if (!err) {
        kedge_layout_deinit(&l);
    }
    kedge_buf_deinit(&file);
}
END_TEST

START_TEST(header_lengths_are_bounded)
{
    static const struct {
        uint8_t first[8];
        size_t len;
    } heads[] = {
        {{0}, 8},
        {{1}, 8},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 8},
        {{0, 0, 0x10, 1}, 8}, /* just above the limit */
        {{16}, 8},            /* cut off */
        {{2}, 7},
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct kedge_layout l;
        uint64_t start;
        ck_assert_int_eq(kedge_safetensors_read(kedge_view_of(heads[i].first, heads[i].len), heads[i].len,
                                                KEDGE_SAFETENSORS_ANY, &l, &start, NULL),
                         KEDGE_E_FORMAT);
    }
}
END_TEST

START_TEST(every_flipped_header_bit_is_refused_or_changes_the_layout)
{
    struct kedge_buf file;
    struct kedge_layout expected, got;
    uint64_t start;
    make_layout(&expected, KEDGE_DTYPE_F32);
    put_file(&file, golden, 36);
    for (size_t bit = 0; bit < 8 * (8 + sizeof golden - 1); bit++) {
        file.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (kedge_safetensors_read(kedge_buf_view(&file), file.len, KEDGE_SAFETENSORS_CANONICAL, &got, &start,
                                   NULL)
            == KEDGE_OK) {
            ck_assert_int_eq(kedge_layout_check_same(&expected, &got, KEDGE_DTYPE_F32, NULL), KEDGE_E_SHAPE);
            kedge_layout_deinit(&got);
        }
        file.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    kedge_buf_deinit(&file);
    kedge_layout_deinit(&expected);
}
END_TEST

START_TEST(random_layouts_round_trip)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 1, KEDGE_RNG_TEST, 0, 0);
    for (int round = 0; round < 50; round++) {
        struct kedge_layout l, back;
        struct kedge_buf out;
        uint64_t start, count = 1 + kedge_rng_below(&rng, 40);
        kedge_layout_init(&l, KEDGE_DTYPE_I32);
        for (uint64_t t = 0; t < count; t++) {
            char name[32];
            uint64_t dims[KEDGE_TENSOR_DIMS_MAX];
            uint32_t n = (uint32_t)kedge_rng_below(&rng, 5);
            for (uint32_t d = 0; d < n; d++) {
                dims[d] = 1 + kedge_rng_below(&rng, 30);
            }
            snprintf(name, sizeof name, "t%llu.w", (unsigned long long)t);
            ck_assert_int_eq(kedge_layout_add(&l, name, dims, n, NULL), KEDGE_OK);
        }
        kedge_buf_init(&out, 1 << 20);
        ck_assert_int_eq(kedge_safetensors_header(&l, KEDGE_DTYPE_I32, &out), KEDGE_OK);
        ck_assert_int_eq(kedge_safetensors_read(kedge_buf_view(&out),
                                                kedge_safetensors_file_len(&l, KEDGE_DTYPE_I32),
                                                KEDGE_SAFETENSORS_CANONICAL, &back, &start, NULL),
                         KEDGE_OK);
        ck_assert_int_eq(kedge_layout_check_same(&l, &back, KEDGE_DTYPE_I32, NULL), KEDGE_OK);
        kedge_layout_deinit(&back);
        kedge_buf_deinit(&out);
        kedge_layout_deinit(&l);
    }
}
END_TEST

START_TEST(layouts_are_compared_by_name)
{
    static const uint64_t weight[] = {3, 2}, turned[] = {2, 3}, bias[] = {3};
    static const struct {
        struct {
            const char *name;
            const uint64_t *dims;
            uint32_t n;
        } t[3];
        enum kedge_dtype dtype;
        const char *says;
    } wrong[] = {
        {{{"0.weight", weight, 2}, {"0.bias", bias, 1}}, KEDGE_DTYPE_I32, "type I32, expected F32"},
        {{{"0.weight", turned, 2}, {"0.bias", bias, 1}},
         KEDGE_DTYPE_F32,
         "\"0.weight\": shape [2,3], expected [3,2]"},
        {{{"0.weight", weight, 2}}, KEDGE_DTYPE_F32, "\"0.bias\" is missing"},
        {{{"0.bias", bias, 1}}, KEDGE_DTYPE_F32, "\"0.weight\" is missing"},
        {{{"0.weight", weight, 2}, {"0.bias", bias, 1}, {"z", bias, 1}},
         KEDGE_DTYPE_F32,
         "extra tensor \"z\""},
        {{{"y", weight, 2}, {"0.bias", bias, 1}}, KEDGE_DTYPE_F32, "extra tensor \"y\""},
        {{{"0.bias", bias, 1}, {"0.weight", weight, 2}}, KEDGE_DTYPE_F32, "another order"},
        {{{NULL, NULL, 0}}, KEDGE_DTYPE_F32, "\"0.weight\" is missing"},
    };
    struct kedge_layout expected;
    make_layout(&expected, KEDGE_DTYPE_F32);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct kedge_layout got;
        struct kedge_diag diag = {0};
        kedge_layout_init(&got, wrong[i].dtype);
        for (int t = 0; t < 3 && wrong[i].t[t].name; t++) {
            ck_assert_int_eq(
                kedge_layout_add(&got, wrong[i].t[t].name, wrong[i].t[t].dims, wrong[i].t[t].n, NULL),
                KEDGE_OK);
        }
        ck_assert_int_eq(kedge_layout_check_same(&expected, &got, KEDGE_DTYPE_F32, &diag), KEDGE_E_SHAPE);
        ASSERT_SAYS(diag, wrong[i].says);
        kedge_layout_deinit(&got);
    }
    kedge_layout_deinit(&expected);
}
END_TEST

START_TEST(layouts_are_bounded)
{
    static const uint64_t half[] = {1 << 17, 1 << 18}, one[] = {1};
    struct kedge_layout l;
    char name[32];
    kedge_layout_init(&l, KEDGE_DTYPE_F32);
    ck_assert_int_eq(kedge_layout_add(&l, "a", half, 2, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_layout_add(&l, "a", half, 2, NULL), KEDGE_E_SHAPE); /* twice */
    ck_assert_int_eq(kedge_layout_add(&l, "b", half, 2, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_layout_add(&l, "c", one, 1, NULL), KEDGE_E_SHAPE); /* 2^36 are there */
    ck_assert_int_eq(kedge_layout_add(&l, "d", NULL, 0, NULL), KEDGE_E_SHAPE);
    ck_assert_uint_eq(l.count, 2);
    kedge_layout_deinit(&l);
    for (int i = 0; i < KEDGE_TENSORS_MAX; i++) {
        snprintf(name, sizeof name, "%d", i);
        ck_assert_int_eq(kedge_layout_add(&l, name, one, 1, NULL), KEDGE_OK);
    }
    ck_assert_int_eq(kedge_layout_add(&l, "more", one, 1, NULL), KEDGE_E_TOO_LONG);
    kedge_layout_deinit(&l);
}
END_TEST

START_TEST(every_failing_allocation_leaves_nothing_behind)
{
    struct kedge_buf file;
    put_file(&file, golden, 36);
    int err = KEDGE_E_NOMEM;
    for (long n = 1; err == KEDGE_E_NOMEM && n < 100; n++) {
        struct kedge_layout l;
        uint64_t start;
        kedge_mem_fail_at(n);
        err = kedge_safetensors_read(kedge_buf_view(&file), file.len, KEDGE_SAFETENSORS_CANONICAL, &l, &start,
                                     NULL);
        kedge_mem_fail_at(0);
        if (!err) {
            ck_assert_int_gt(n, 3); /* it did fail before */
            kedge_layout_deinit(&l);
        }
    }
    ck_assert_int_eq(err, KEDGE_OK);
    kedge_buf_deinit(&file);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("safetensors");
    tcase_add_test(tc, canonical_header_is_fixed_and_aligned);
    tcase_add_loop_test(tc, what_is_not_canonical_is_refused_and_what_is_wrong_always, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_test(tc, header_lengths_are_bounded);
    tcase_add_test(tc, every_flipped_header_bit_is_refused_or_changes_the_layout);
    tcase_add_test(tc, random_layouts_round_trip);
    tcase_add_test(tc, layouts_are_compared_by_name);
    tcase_add_test(tc, layouts_are_bounded);
    tcase_add_test(tc, every_failing_allocation_leaves_nothing_behind);
    return run_suite(suite_create("safetensors"), tc);
}
