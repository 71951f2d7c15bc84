/* Files that a policy binds are looked at while a job is left alone because of them, and only then. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/daemon/data_files.h"
#include "common/base/os/clock.h"

#define NS_PER_S UINT64_C(1000000000)

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(a_changed_file_is_seen)
{
    char dir[] = "/tmp/kedge-data-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/a.csv", dir);
    put(path, "1,n/a\n");
    json_t *data =
        json_pack("{s:{s:{s:s,s:s},s:s}}", "mine", "train", "format", "csv", "path", path, "split", "0.8");
    struct kedge_data_files f = {.looks = false};
    const uint64_t look = KEDGE_DATA_LOOK_S * NS_PER_S;
    kedge_data_files_begin(&f, data);
    ck_assert(!kedge_data_files_turn(&f, data, false, 0));
    ck_assert_uint_eq(kedge_data_files_deadline_ns(&f), KEDGE_TIME_NEVER);
    ck_assert(!kedge_data_files_turn(&f, data, true, 1)); /* its training has failed */
    ck_assert_uint_eq(kedge_data_files_deadline_ns(&f), 1 + look);
    ck_assert(!kedge_data_files_turn(&f, data, true, 1 + look)); /* nothing has changed */
    put(path, "1,2,3\n");
    kedge_data_files_begin(&f, data);                            /* another job trains meanwhile */
    ck_assert(!kedge_data_files_turn(&f, data, true, 2 * look)); /* not so soon */
    ck_assert(kedge_data_files_turn(&f, data, true, 1 + 2 * look));
    kedge_data_files_begin(&f, data);
    ck_assert(!kedge_data_files_turn(&f, data, true, 2 + 2 * look));
    ck_assert(!kedge_data_files_turn(&f, data, true, 2 + 3 * look));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(kedge_data_files_turn(&f, data, true, 2 + 4 * look));
    ck_assert(!kedge_data_files_turn(&f, NULL, false, 2 + 5 * look));
    json_decref(data);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("data files");
    tcase_add_test(tc, a_changed_file_is_seen);
    Suite *s = suite_create("client/data_files");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
