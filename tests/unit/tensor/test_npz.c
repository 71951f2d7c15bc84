#include <math.h>
#include <stdio.h>

#include "common/base/mem.h"
#include "common/tensor/npz.h"
#include "tests/unit/tensor/numpy_files.h"
#include "tests/unit/tensor/suite.h"

START_TEST(numpy_archives_read)
{
    struct kedge_npz npz;
    struct kedge_npy x, y, z;
    struct kedge_diag diag = {0};
    float values[12];
    int32_t labels[3];
    ck_assert_msg(kedge_npz_open(kedge_view_of(numpy_stored, sizeof numpy_stored), &npz, &diag) == KEDGE_OK,
                  "%s", diag.text);
    ck_assert_int_eq(kedge_npz_read(&npz, "x", &x, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_npz_read(&npz, "y", &y, &diag), KEDGE_OK);
    ck_assert_uint_eq(x.dims_count, 2);
    ck_assert_uint_eq(x.dims[0], 3);
    ck_assert_uint_eq(x.dims[1], 2);
    ck_assert_int_eq(kedge_npy_to_f32(&x, values, &diag), KEDGE_OK);
    for (int i = 0; i < 6; i++) {
        ck_assert_float_eq(values[i], (float)i / 4);
    }
    ck_assert_int_eq(y.type, KEDGE_NPY_I8);
    ck_assert_int_eq(kedge_npy_to_labels(&y, 9, labels, &diag), KEDGE_OK);
    ck_assert_int_eq(labels[1], 2);
    ck_assert_int_eq(kedge_npy_to_labels(&y, 1, labels, &diag), KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "label 1 is 2: expected 0 to 1");
    ck_assert_int_eq(kedge_npy_to_labels(&x, 9, labels, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_npz_read(&npz, "w", &z, &diag), KEDGE_E_NOT_FOUND);
    ASSERT_SAYS(diag, "no array \"w\" among 2: x, y");
    kedge_npy_deinit(&x);
    kedge_npy_deinit(&y);
    kedge_npz_close(&npz);
    ck_assert_int_eq(kedge_npz_open(kedge_view_of(numpy_deflated, sizeof numpy_deflated), &npz, &diag),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_npz_read(&npz, "x", &x, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_npz_read(&npz, "z", &z, &diag), KEDGE_OK);
    ck_assert_uint_eq(x.dims_count, 3);
    ck_assert_int_eq(x.type, KEDGE_NPY_U1);
    ck_assert_uint_eq(x.data[11], 220);
    ck_assert_uint_eq(z.dims_count, 0);
    ck_assert_int_eq(kedge_npy_to_f32(&z, values, &diag), KEDGE_OK);
    ck_assert_float_eq(values[0], 1.5f);
    kedge_npy_deinit(&x);
    kedge_npy_deinit(&z);
    kedge_npz_close(&npz);
}
END_TEST

START_TEST(pickles_and_fortran_order_are_refused)
{
    struct kedge_npy npy;
    struct kedge_diag diag = {0};
    ck_assert_int_eq(kedge_npy_read(kedge_view_of(numpy_pickled, sizeof numpy_pickled), &npy, &diag),
                     KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "pickled objects are never read");
    ck_assert_int_eq(kedge_npy_read(kedge_view_of(numpy_fortran, sizeof numpy_fortran), &npy, &diag),
                     KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "Fortran order");
}
END_TEST

static struct kedge_view npy_of(const char *type, uint32_t count, const void *values, size_t len,
                                uint8_t *out)
{
    char head[119];
    int n =
        snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%u,), }", type, count);
    memcpy(out, "\x93NUMPY\1\0\x76\0", 10); /* NOLINT(bugprone-not-null-terminated-result): no text */
    memset(out + 10, ' ', 118);
    memcpy(out + 10, head, (size_t)n);
    memcpy(out + 128, values, len);
    return kedge_view_of(out, 128 + len);
}

/* Texts are as wide as the longest; bytes that are no characters of them are refused. */
START_TEST(texts_are_read_within_bounds)
{
    static const uint32_t wide[] = {'a', 0x20ac, 0x1f600, 'b', 0,        0, 0xd800, 0,
                                    0,   'x',    0,       'y', 0x110000, 0, 0};
    static const struct {
        const char *text, *says;
    } expected[] = {{"a\xe2\x82\xac\xf0\x9f\x98\x80", NULL},
                    {"b", NULL},
                    {NULL, "value 2: 0xd800 is no character"},
                    {NULL, "value 3: 0x0 is no character"},
                    {NULL, "value 4: 0x110000 is no character"}};
    static const char *const types[] = {"<U0", "|S", "<U4097", "|S-1", "|S3x", ">U3", "<U 3"};
    uint8_t file[512];
    struct kedge_npy npy;
    struct kedge_diag diag = {0};
    char text[16];
    float f[5];
    int32_t labels[5];
    ck_assert_msg(kedge_npy_read(npy_of("<U3", 5, wide, sizeof wide, file), &npy, &diag) == KEDGE_OK, "%s",
                  diag.text);
    for (uint32_t i = 0; i < 5; i++) {
        int err = kedge_npy_text(&npy, i, text, sizeof text, &diag);
        ck_assert_int_eq(err, expected[i].text ? KEDGE_OK : KEDGE_E_FORMAT);
        ck_assert_msg(err ? strstr(diag.text, expected[i].says) != NULL : strcmp(text, expected[i].text) == 0,
                      "%s", err ? diag.text : text);
    }
    ck_assert_int_eq(kedge_npy_text(&npy, 0, text, 9, &diag), KEDGE_OK); /* eight bytes and the NUL */
    ck_assert_int_eq(kedge_npy_text(&npy, 0, text, 8, &diag), KEDGE_E_TOO_LONG);
    ck_assert_int_eq(kedge_npy_to_f32(&npy, f, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_npy_to_labels(&npy, 9, labels, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_npy_read(npy_of("|S2", 2, "x\0yz", 4, file), &npy, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_npy_text(&npy, 1, text, sizeof text, &diag), KEDGE_OK);
    ck_assert_str_eq(text, "yz");
    ck_assert_int_eq(kedge_npy_read(npy_of("|S2", 2, "x\0yz!", 5, file), &npy, &diag), KEDGE_E_FORMAT);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        ck_assert_int_eq(kedge_npy_read(npy_of(types[i], 1, "abcdefghijkl", 12, file), &npy, &diag),
                         KEDGE_E_FORMAT);
        ASSERT_SAYS(diag, "or texts of 1 to 4096 characters");
    }
    ck_assert_int_eq(kedge_npy_read(npy_of("<i4", 1, "abcd", 4, file), &npy, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_npy_text(&npy, 0, text, sizeof text, &diag), KEDGE_E_FORMAT);
}
END_TEST

/* The layout and values of a small model, written and read. */
static void make_model(struct kedge_layout *l, float values[9])
{
    static const uint64_t weight[] = {3, 2}, bias[] = {3};
    kedge_layout_init(l, KEDGE_DTYPE_F32);
    ck_assert_int_eq(kedge_layout_add(l, "0.weight", weight, 2, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_layout_add(l, "0.bias", bias, 1, NULL), KEDGE_OK);
    for (int i = 0; i < 9; i++) {
        values[i] = (float)i * 0.1f - 0.3f;
    }
}

START_TEST(models_round_trip_bit_for_bit)
{
    struct kedge_layout l;
    float values[9], back[9];
    struct kedge_buf out, again;
    make_model(&l, values);
    kedge_buf_init(&out, 1 << 16);
    kedge_buf_init(&again, 1 << 16);
    ck_assert_int_eq(kedge_npz_write_model(&l, values, &out), KEDGE_OK);
    ck_assert_int_eq(kedge_npz_write_model(&l, values, &again), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&out), kedge_buf_view(&again)));
    struct kedge_npz npz;
    float *to = back;
    ck_assert_int_eq(kedge_npz_open(kedge_buf_view(&out), &npz, NULL), KEDGE_OK);
    ck_assert_uint_eq(npz.count, l.count);
    for (uint32_t i = 0; i < l.count; i++) {
        struct kedge_npy npy;
        const struct kedge_tensor *t = &l.tensors[i];
        ck_assert_int_eq(kedge_npz_read(&npz, t->name, &npy, NULL), KEDGE_OK);
        ck_assert_uint_eq(npy.dims_count, t->dims_count);
        ck_assert_mem_eq(npy.dims, t->dims, t->dims_count * sizeof t->dims[0]);
        ck_assert_int_eq(kedge_npy_to_f32(&npy, to, NULL), KEDGE_OK);
        to += t->count;
        kedge_npy_deinit(&npy);
    }
    kedge_npz_close(&npz);
    ck_assert_mem_eq(values, back, sizeof values);
    kedge_buf_deinit(&out);
    kedge_buf_deinit(&again);
    kedge_layout_deinit(&l);
}
END_TEST

/* No flip may crash, and none in the data may go unnoticed (the CRC sees it). */
static void flip_everything(const uint8_t *file, size_t len)
{
    uint8_t *copy = kedge_mem_new(len, 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, file, len);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        struct kedge_npz npz;
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (kedge_npz_open(kedge_view_of(copy, len), &npz, NULL) == KEDGE_OK) {
            for (uint32_t i = 0; i < npz.count; i++) {
                struct kedge_npy npy;
                if (kedge_npz_read(&npz, npz.entries[i].name, &npy, NULL) == KEDGE_OK) {
                    kedge_npy_deinit(&npy);
                }
            }
            kedge_npz_close(&npz);
        }
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    kedge_mem_free(copy);
}

START_TEST(damaged_archives_never_crash)
{
    flip_everything(numpy_stored, sizeof numpy_stored);
    flip_everything(numpy_deflated, sizeof numpy_deflated);
    for (size_t len = 0; len < sizeof numpy_stored; len++) {
        struct kedge_npz npz;
        uint8_t *exact = kedge_mem_new(len, 1); /* so that a read beyond the end is seen */
        memcpy(exact, numpy_stored, len);
        ck_assert_int_lt(kedge_npz_open(kedge_view_of(exact, len), &npz, NULL), 0);
        kedge_mem_free(exact);
    }
}
END_TEST

START_TEST(data_damage_is_seen)
{
    uint8_t copy[sizeof numpy_stored];
    struct kedge_npz npz;
    struct kedge_npy npy;
    struct kedge_diag diag = {0};
    memcpy(copy, numpy_stored, sizeof copy);
    ck_assert_int_eq(kedge_npz_open(kedge_view_of(copy, sizeof copy), &npz, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_npz_read(&npz, "x", &npy, NULL), KEDGE_OK);
    copy[npy.data - copy] ^= 1;
    ck_assert_int_eq(kedge_npz_read(&npz, "x", &npy, &diag), KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "checksum");
    kedge_npz_close(&npz);
}
END_TEST

START_TEST(bombs_take_no_memory)
{
    uint8_t copy[sizeof numpy_deflated];
    struct kedge_npz npz;
    struct kedge_npy npy;
    struct kedge_diag diag = {0};
    memcpy(copy, numpy_deflated, sizeof copy);
    ck_assert_int_eq(kedge_npz_open(kedge_view_of(copy, sizeof copy), &npz, NULL), KEDGE_OK);
    npz.entries[0].len = (uint64_t)3 << 30;
    ck_assert_int_eq(kedge_npz_read(&npz, npz.entries[0].name, &npy, &diag), KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "cannot come from");
    kedge_npz_close(&npz);
}
END_TEST

START_TEST(other_files_are_named_for_what_they_are)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *says;
    } files[] = {{"", 0, "an empty file"},
                 {"\x1f\x8b\x08\x00", 4, "a gzip file"},
                 {"hello, world", 12, "text"},
                 {"PK\x03\x04rest", 8, "a zip archive"},
                 {"\x93NUMPY\x01\x00", 8, "a NumPy array"}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct kedge_npz npz;
        struct kedge_diag diag = {0};
        ck_assert_int_eq(kedge_npz_open(kedge_view_of(files[i].bytes, files[i].len), &npz, &diag),
                         KEDGE_E_FORMAT);
        ASSERT_SAYS(diag, files[i].says);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("npz");
    tcase_add_test(tc, numpy_archives_read);
    tcase_add_test(tc, pickles_and_fortran_order_are_refused);
    tcase_add_test(tc, texts_are_read_within_bounds);
    tcase_add_test(tc, models_round_trip_bit_for_bit);
    tcase_add_test(tc, damaged_archives_never_crash);
    tcase_add_test(tc, data_damage_is_seen);
    tcase_add_test(tc, bombs_take_no_memory);
    tcase_add_test(tc, other_files_are_named_for_what_they_are);
    return run_suite(suite_create("npz"), tc);
}
