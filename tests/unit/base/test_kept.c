/* A folder of evidence: names, ages, bounds for each owner and for all. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/kept.h"
#include "tests/unit/base/check.h"

enum { NOW = 2000000 };

static char dir[KEDGE_PATH_MAX], kept[KEDGE_PATH_MAX];

static void setup(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-kept-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(kedge_path_join(kept, dir, "kept"), KEDGE_OK);
}

static void teardown(void)
{
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

static struct kedge_id owner_of(const char *s)
{
    struct kedge_id id;
    ck_assert_int_eq(kedge_id_from(kedge_view_str(s), &id), KEDGE_OK);
    return id;
}

/* A file of that owner about digest n n n …, last changed at `when`. */
static void put(const char *owner, uint8_t n, const char *kind, size_t len, int64_t when)
{
    static uint8_t content[64];
    struct kedge_id id = owner_of(owner);
    uint8_t digest[KEDGE_KEPT_DIGEST];
    char path[KEDGE_PATH_MAX];
    memset(digest, n, sizeof digest);
    ck_assert_int_eq(kedge_dir_make(kept, 0700, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_kept_path(path, kept, &id, digest, kind), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, kedge_view_of(content, len), 0600, NULL), KEDGE_OK);
    struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static char seen[1024];

static int see(void *arg, const struct kedge_id *owner, const uint8_t digest[KEDGE_KEPT_DIGEST],
               const char *path)
{
    (void)arg;
    (void)digest;
    const char *name = strrchr(path, '/') + 1;
    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s:%.2s ", owner->s,
             name + strlen(owner->s) + 1);
    return KEDGE_OK;
}

static const char *all_of(const char *kind)
{
    seen[0] = '\0';
    ck_assert_int_eq(kedge_kept_each(kept, kind, see, NULL, NULL), KEDGE_OK);
    return seen;
}

static uint32_t tidy(const struct kedge_kept_rule *rules, size_t count, uint64_t seconds)
{
    struct kedge_kept_gone gone = {99, 99};
    ck_assert_int_eq(kedge_kept_tidy(kept, rules, count, NULL, seconds, NOW, &gone, NULL), KEDGE_OK);
    ck_assert_uint_eq(gone.unseen, 0);
    return gone.beyond;
}

START_TEST(oldest_first_and_an_absent_folder_is_empty)
{
    ck_assert_str_eq(all_of("a"), "");
    ck_assert_uint_eq(tidy(NULL, 0, 10), 0);
    put("x.y", 2, "a", 1, NOW - 5);
    put("site-1", 1, "a", 1, NOW - 9);
    put("site-1", 3, "b", 1, NOW - 1);
    ck_assert_str_eq(all_of("a"), "site-1:01 x.y:02 ");
    ck_assert_str_eq(all_of("b"), "site-1:03 ");
}
END_TEST

START_TEST(what_is_too_old_goes)
{
    put("s", 1, "a", 1, NOW - 11);
    put("s", 2, "a", 1, NOW - 10);
    ck_assert_uint_eq(tidy(NULL, 0, 10), 0);
    ck_assert_str_eq(all_of("a"), "s:02 ");
}
END_TEST

START_TEST(an_owner_pushes_out_his_own)
{
    const struct kedge_kept_rule rules[] = {{"a", 2, 4, 0}};
    put("quiet", 9, "a", 1, NOW - 99);
    for (uint8_t i = 1; i <= 5; i++) {
        put("loud", i, "a", 1, NOW - 50 + i);
    }
    ck_assert_uint_eq(tidy(rules, 1, 1000), 3);
    ck_assert_str_eq(all_of("a"), "quiet:09 loud:04 loud:05 ");
    put("third", 6, "a", 1, NOW - 2);
    put("fourth", 7, "a", 1, NOW - 1);
    ck_assert_uint_eq(tidy(rules, 1, 1000), 1); /* four in all: the oldest goes, whosever it is */
    ck_assert_str_eq(all_of("a"), "loud:04 loud:05 third:06 fourth:07 ");
}
END_TEST

START_TEST(bytes_are_bounded)
{
    const struct kedge_kept_rule rules[] = {{"a", 0, 0, 30}};
    put("s", 1, "a", 20, NOW - 4);
    put("s", 2, "a", 20, NOW - 3);
    put("s", 3, "a", 10, NOW - 2);
    put("s", 4, "a", 31, NOW - 1);
    put("s", 5, "b", 60, NOW - 9);
    ck_assert_uint_eq(tidy(rules, 1, 1000), 2);
    ck_assert_str_eq(all_of("a"), "s:02 s:03 ");
    ck_assert_str_eq(all_of("b"), "s:05 ");
}
END_TEST

START_TEST(a_link_outlives_its_file)
{
    char from[KEDGE_PATH_MAX];
    struct kedge_id id = owner_of("s");
    uint8_t digest[KEDGE_KEPT_DIGEST];
    memset(digest, 7, sizeof digest);
    ck_assert_int_eq(kedge_path_join(from, dir, "from"), KEDGE_OK);
    ck_assert_int_eq(kedge_kept_link(kept, &id, digest, "a", from), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_file_write(from, kedge_view_str("content"), 0600, NULL), KEDGE_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(kedge_kept_link(kept, &id, digest, "a", from), KEDGE_OK);
    }
    ck_assert_int_eq(unlink(from), 0);
    ck_assert_str_eq(all_of("a"), "s:07 ");
    ck_assert_int_eq(kedge_kept_remove(kept, digest, "b", NULL), KEDGE_OK);
    ck_assert_str_eq(all_of("a"), "s:07 ");
    ck_assert_int_eq(kedge_kept_remove(kept, digest, "a", NULL), KEDGE_OK);
    ck_assert_str_eq(all_of("a"), "");
}
END_TEST

/* What has no mark of its own owner and digest is unseen: no age removes it, and the bound takes it last. */
START_TEST(unseen_stays)
{
    const struct kedge_kept_rule rules[] = {{"a", 2, 0, 0}};
    struct kedge_kept_gone gone;
    put("s", 1, "a", 1, NOW - 99);
    put("s", 2, "a", 1, NOW - 98);
    put("s", 2, "b", 1, NOW - 98);
    put("s", 2, "mark", 1, NOW - 1);
    put("other", 1, "mark", 1, NOW - 1); /* about nothing that is here */
    ck_assert_int_eq(kedge_kept_tidy(kept, rules, 1, "mark", 10, NOW, &gone, NULL), KEDGE_OK);
    ck_assert_uint_eq(gone.beyond, 0);
    ck_assert_str_eq(all_of("a"), "s:01 ");
    ck_assert_str_eq(all_of("b"), "");
    ck_assert_str_eq(all_of("mark"), "");
    put("s", 3, "a", 1, NOW - 5);
    put("s", 4, "a", 1, NOW - 4);
    put("s", 4, "mark", 1, NOW - 4);
    ck_assert_int_eq(kedge_kept_tidy(kept, rules, 1, "mark", 1000, NOW, &gone, NULL), KEDGE_OK);
    ck_assert_uint_eq(gone.beyond, 1);
    ck_assert_uint_eq(gone.unseen, 0);
    ck_assert_str_eq(all_of("a"), "s:01 s:03 "); /* the newest one, which was seen */
    put("s", 5, "a", 1, NOW - 3);
    ck_assert_int_eq(kedge_kept_tidy(kept, rules, 1, "mark", 1000, NOW, &gone, NULL), KEDGE_OK);
    ck_assert_uint_eq(gone.unseen, 1);
    ck_assert_str_eq(all_of("a"), "s:03 s:05 ");
}
END_TEST

START_TEST(other_names_stay)
{
    static const char *const names[] = {"x", "s.a", "s.0101.a", ".hidden"};
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_dir_make(kept, 0700, NULL), KEDGE_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ck_assert_int_eq(kedge_path_join(path, kept, names[i]), KEDGE_OK);
        ck_assert_int_eq(kedge_file_write(path, kedge_view_str("x"), 0600, NULL), KEDGE_OK);
    }
    ck_assert_int_eq(kedge_path_join(path, dir, "kept"), KEDGE_OK);
    struct kedge_kept_gone gone;
    ck_assert_int_eq(kedge_kept_tidy(kept, NULL, 0, NULL, 0, (uint64_t)1 << 40, &gone, NULL), KEDGE_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ck_assert_int_eq(kedge_path_join(path, kept, names[i]), KEDGE_OK);
        ck_assert(kedge_file_exists(path));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kept");
    TCase *t = tcase_create("kept");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, oldest_first_and_an_absent_folder_is_empty);
    tcase_add_test(t, what_is_too_old_goes);
    tcase_add_test(t, an_owner_pushes_out_his_own);
    tcase_add_test(t, bytes_are_bounded);
    tcase_add_test(t, a_link_outlives_its_file);
    tcase_add_test(t, unseen_stays);
    tcase_add_test(t, other_names_stay);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
