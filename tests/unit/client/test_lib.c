/* libkedge-client: files and lines of the contract, as a program in another language has them. */
#include "client/lib/kedge_client.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], path[128];

static const char *at(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t len)
{
    FILE *f = fopen(at(name), "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

START_TEST(arrays_come_back)
{
    const uint64_t shape[2] = {2, 3};
    const float w[6] = {1, -2, 3.5f, 0, -0.0f, 1e-30f}, b = 7;
    struct kedge_arrays *a = kedge_arrays_new(), *back = NULL;
    uint64_t dims[KEDGE_LIB_DIMS_MAX], count = 0;
    ck_assert_ptr_nonnull(a);
    ck_assert_int_eq(kedge_arrays_add(a, "fc.weight", shape, 2, w), 0);
    ck_assert_int_eq(kedge_arrays_add(a, "bias", NULL, 0, &b), 0);
    ck_assert_int_eq(kedge_arrays_save(a, at("w.safetensors")), 0);
    kedge_arrays_free(a);
    ck_assert_int_eq(kedge_arrays_load(at("w.safetensors"), &back), 0);
    ck_assert_uint_eq(kedge_arrays_count(back), 2);
    ck_assert_str_eq(kedge_arrays_name(back, 0), "fc.weight");
    ck_assert_uint_eq(kedge_arrays_shape(back, 0, dims), 2);
    ck_assert(dims[0] == 2 && dims[1] == 3);
    ck_assert_mem_eq(kedge_arrays_values(back, 0, &count), w, sizeof w);
    ck_assert_uint_eq(count, 6);
    ck_assert_uint_eq(kedge_arrays_shape(back, 1, dims), 0);
    ck_assert(*kedge_arrays_values(back, 1, &count) == b);
    ck_assert_ptr_null(kedge_arrays_name(back, 2));
    ck_assert_ptr_null(kedge_arrays_values(back, 2, &count));
    kedge_arrays_free(back);
}
END_TEST

START_TEST(others_files_are_read)
{
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"}, "
                                 "\"b\":{\"shape\":[1],\"data_offsets\":[4,8],\"dtype\":\"F32\"},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}} ";
    unsigned char file[8 + sizeof header - 1 + 8] = {sizeof header - 1};
    const float values[2] = {3, 4};
    struct kedge_arrays *a = NULL;
    uint64_t count;
    memcpy(file + 8, header, sizeof header - 1);
    memcpy(file + 8 + sizeof header - 1, values, 8);
    put("other", file, sizeof file);
    ck_assert_msg(kedge_arrays_load(at("other"), &a) == 0, "%s", kedge_lib_error());
    for (uint32_t i = 0; i < 2; i++) {
        float expected = kedge_arrays_name(a, i)[0] == 'a' ? 3 : 4;
        ck_assert(*kedge_arrays_values(a, i, &count) == expected);
    }
    kedge_arrays_free(a);
}
END_TEST

START_TEST(what_is_wrong_is_told)
{
    const uint64_t one[1] = {1}, nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1},
                   huge[3] = {1u << 31, 1u << 31, 1u << 31}, none[1] = {0};
    const float values[1] = {NAN};
    struct kedge_arrays *a = kedge_arrays_new(), *back = NULL;
    ck_assert_int_lt(kedge_arrays_save(a, at("empty")), 0);
    ck_assert_int_lt(kedge_arrays_add(a, "w", nine, 9, values), 0);
    ck_assert_int_lt(kedge_arrays_add(a, "w", huge, 3, values), 0);
    ck_assert_int_lt(kedge_arrays_add(a, "w", none, 1, values), 0);
    ck_assert_int_lt(kedge_arrays_add(a, "a\"b", one, 1, values), 0);
    ck_assert_int_eq(kedge_arrays_add(a, "w", one, 1, values), 0);
    ck_assert_int_lt(kedge_arrays_add(a, "w", one, 1, values), 0);
    ck_assert_uint_eq(kedge_arrays_count(a), 1);
    ck_assert_int_lt(kedge_arrays_save(a, at("nan")), 0);
    ck_assert_ptr_nonnull(strstr(kedge_lib_error(), "\"w\": value 0 is NaN"));
    ck_assert_int_ne(access(at("nan"), F_OK), 0);
    kedge_arrays_free(a);
    ck_assert_int_lt(kedge_arrays_load(at("nowhere"), &back), 0);
    ck_assert_ptr_nonnull(strstr(kedge_lib_error(), "nowhere"));
    ck_assert_int_lt(kedge_arrays_load("/dev/zero", &back), 0);
    put("short", "\x40\0\0\0\0\0\0\0{}", 10);
    ck_assert_int_lt(kedge_arrays_load(at("short"), &back), 0);
    put("long", "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
    ck_assert_int_lt(kedge_arrays_load(at("long"), &back), 0);
    put("tiny", "abc", 3);
    ck_assert_int_lt(kedge_arrays_load(at("tiny"), &back), 0);
    ck_assert_ptr_null(back);
}
END_TEST

START_TEST(lines_go_both_ways)
{
    int in[2], out[2];
    struct kedge_session *s = NULL;
    const char *line;
    char told[64] = "", *big = malloc(70000);
    size_t len;
    ck_assert(pipe(in) == 0 && pipe(out) == 0 && big != NULL);
    ck_assert_int_eq(kedge_session_over(in[0], out[1], &s), 0);
    ck_assert_int_eq(write(in[1], "{\"a\":1}\n{\"b\"", 12), 12);
    ck_assert_int_eq(kedge_session_next(s, &line, &len), 1);
    ck_assert_str_eq(line, "{\"a\":1}");
    ck_assert_uint_eq(len, 7);
    ck_assert_int_eq(write(in[1], ":2}\n\nrest", 9), 9);
    ck_assert_int_eq(kedge_session_next(s, &line, &len), 1);
    ck_assert_str_eq(line, "{\"b\":2}");
    ck_assert_int_eq(kedge_session_next(s, &line, &len), 1);
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(kedge_session_reply(s, "{\"c\":3}", 7), 0);
    ck_assert_int_eq(read(out[0], told, sizeof told), 8);
    ck_assert_str_eq(told, "{\"c\":3}\n");
    memset(big, 'x', 70000);
    ck_assert_int_lt(kedge_session_reply(s, big, KEDGE_LIB_LINE_MAX), 0);
    ck_assert_int_lt(kedge_session_reply(s, "a\nb", 3), 0);
    ck_assert_int_lt(kedge_session_reply(s, "", 0), 0);
    close(in[1]);
    ck_assert_int_eq(kedge_session_next(s, &line, &len), 0);
    kedge_session_close(s);
    close(in[0]);
    FILE *f = fopen(at("big"), "w+");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(big, 1, 70000, f), 70000);
    rewind(f);
    ck_assert_int_eq(kedge_session_over(fileno(f), out[1], &s), 0);
    ck_assert_int_lt(kedge_session_next(s, &line, &len), 0);
    kedge_session_close(s);
    fclose(f);
    free(big);
    close(out[0]);
    close(out[1]);
}
END_TEST

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/kedge-lib-XXXXXX");
    if (!mkdtemp(folder)) {
        return EXIT_FAILURE;
    }
    Suite *s = suite_create("client-lib");
    TCase *t = tcase_create("lib");
    tcase_add_test(t, arrays_come_back);
    tcase_add_test(t, others_files_are_read);
    tcase_add_test(t, what_is_wrong_is_told);
    tcase_add_test(t, lines_go_both_ways);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return failed || system(command) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
