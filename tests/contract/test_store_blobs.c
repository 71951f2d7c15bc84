/* Blobs and uploads: what is in blobs/ is whole and named by its digest; uploads resume where they
 * stopped. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "chain/store/blob/blobs.h"
#include "common/base/mem.h"

static char dir[64];

static struct kedge_blobs *open_blobs(const struct kedge_blobs_options *options)
{
    struct kedge_blobs *b;
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_blobs_open(dir, options, &b, &d) == KEDGE_OK, "%s", d.text);
    return b;
}

static struct kedge_blobs *set_up(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-blobs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    return open_blobs(NULL);
}

static void tear_down(struct kedge_blobs *b)
{
    kedge_blobs_close(b);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

static struct kedge_id name_of(const char *s)
{
    struct kedge_id id;
    ck_assert_int_eq(kedge_id_from(kedge_view_str(s), &id), KEDGE_OK);
    return id;
}

static size_t files_in(const char *sub)
{
    char command[200];
    snprintf(command, sizeof command, "find %s/%s -type f", dir, sub);
    FILE *p = popen(command, "r");
    ck_assert_ptr_nonnull(p);
    size_t n = 0;
    for (int c = getc(p); c != EOF; c = getc(p)) {
        n += c == '\n';
    }
    ck_assert_int_eq(pclose(p), 0);
    return n;
}

START_TEST(put_find_read)
{
    struct kedge_blobs *b = set_up();
    struct kedge_view parts[] = {kedge_view_str("ab"), kedge_view_of(NULL, 0), kedge_view_str("c")};
    struct kedge_hash digest, absent;
    ck_assert_int_eq(kedge_blobs_put(b, parts, 3, &digest, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_put(b, parts, 3, &digest, NULL), KEDGE_OK); /* again is fine */
    char hex[KEDGE_HASH_HEX_LEN + 1], path[KEDGE_PATH_MAX], expected[KEDGE_PATH_MAX];
    kedge_hash_hex(&digest, hex); /* FIPS 180-4: SHA-256("abc") */
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_int_eq(kedge_blobs_path(b, &digest, path), KEDGE_OK);
    snprintf(expected, sizeof expected, "%s/blobs/ba/%s", dir, hex + 2);
    ck_assert_str_eq(path, expected);
    uint64_t size;
    ck_assert_int_eq(kedge_blobs_find(b, &digest, &size), KEDGE_OK);
    ck_assert_uint_eq(size, 3);
    struct kedge_buf content;
    kedge_buf_init(&content, 3);
    ck_assert_int_eq(kedge_blobs_read(b, &digest, &content, NULL), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&content), kedge_view_str("abc")));
    memset(&absent, 9, sizeof absent);
    ck_assert_int_eq(kedge_blobs_find(b, &absent, NULL), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_blobs_verify(b, &absent, NULL), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_OK);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "x", 1, 1), 1);
    close(fd);
    struct kedge_diag d = {0};
    ck_assert_int_eq(kedge_blobs_verify(b, &digest, &d), KEDGE_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(d.text, path));
    kedge_buf_clear(&content);
    ck_assert_int_eq(kedge_blobs_read(b, &digest, &content, NULL), KEDGE_E_CORRUPT);
    ck_assert_uint_eq(content.len, 0);
    kedge_buf_deinit(&content);
    ck_assert_uint_eq(files_in("staging"), 0);
    tear_down(b);
}
END_TEST

START_TEST(writer_streams_or_leaves_nothing)
{
    struct kedge_blobs *b = set_up();
    struct kedge_blob_writer *w;
    ck_assert_int_eq(kedge_blob_writer_open(b, 0, &w, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blob_writer_write(w, kedge_view_str("half"), NULL), KEDGE_OK);
    kedge_blob_writer_abort(w);
    ck_assert_uint_eq(files_in("."), 0);
    struct kedge_hash digest;
    uint64_t size;
    ck_assert_int_eq(kedge_blob_writer_open(b, 0, &w, NULL), KEDGE_OK);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(kedge_blob_writer_write(w, kedge_view_str("0123456789"), NULL), KEDGE_OK);
    }
    ck_assert_uint_eq(files_in("blobs"), 0); /* not before it is whole */
    ck_assert_int_eq(kedge_blob_writer_finish(w, &digest, &size, NULL), KEDGE_OK);
    ck_assert_uint_eq(size, 1000);
    ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_OK);
    tear_down(b);
}
END_TEST

START_TEST(upload_resumes_across_processes)
{
    struct kedge_blobs *b = set_up();
    struct kedge_id site = name_of("site-1");
    struct kedge_hash digest;
    kedge_sha256(kedge_view_str("hello world"), &digest);
    struct kedge_upload *u, *twin;
    uint64_t offset;
    ck_assert_int_eq(kedge_upload_open(b, &site, NULL, &digest, 11, &u, &offset, NULL), KEDGE_OK);
    ck_assert_uint_eq(offset, 0);
    ck_assert_int_eq(kedge_upload_open(b, &site, NULL, &digest, 11, &twin, &offset, NULL), KEDGE_E_BUSY);
    ck_assert_int_eq(kedge_upload_write(u, 1, kedge_view_str("hello"), NULL), KEDGE_E_STATE);
    ck_assert_int_eq(kedge_upload_write(u, 0, kedge_view_str("hello"), NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_write(u, 0, kedge_view_str("hello"), NULL), KEDGE_E_STATE);
    ck_assert_int_eq(kedge_upload_write(u, 5, kedge_view_str(" world!"), NULL), KEDGE_E_BLOB_SIZE);
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_E_STATE);
    ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_E_STATE);
    ck_assert_uint_eq(kedge_upload_offset(u), 5);
    kedge_upload_close(u);
    kedge_blobs_close(b);
    b = open_blobs(NULL); /* as after a restart */
    ck_assert_int_eq(kedge_upload_open(b, &site, NULL, &digest, 11, &u, &offset, NULL), KEDGE_OK);
    ck_assert_uint_eq(offset, 5);
    ck_assert_int_eq(kedge_upload_write(u, 5, kedge_view_str(" world"), NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
    ck_assert(kedge_file_exists(kedge_upload_path(u)));
    ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_open(b, &site, NULL, &digest, 11, &u, &offset, NULL), KEDGE_E_EXISTS);
    ck_assert_uint_eq(files_in("staging"), 0);
    tear_down(b);
}
END_TEST

START_TEST(what_is_removed_is_not_left_in_staging)
{
    struct kedge_blobs *b = set_up();
    struct kedge_id sites[] = {name_of("site-1"), name_of("site-2")};
    struct kedge_hash digest, other;
    struct kedge_upload *u, *open, *third;
    struct kedge_view all = kedge_view_str("hello world");
    uint64_t offset;
    kedge_sha256(all, &digest);
    kedge_sha256(kedge_view_str("hello there"), &other);
    ck_assert_int_eq(kedge_upload_open(b, &sites[0], NULL, &digest, 11, &u, &offset, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_write(u, 0, kedge_view_str("hello"), NULL), KEDGE_OK);
    kedge_upload_close(u);
    ck_assert_int_eq(kedge_upload_open(b, &sites[1], NULL, &digest, 11, &open, &offset, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_write(open, 0, all, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_finish(open, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_open(b, &sites[1], NULL, &other, 11, &third, &offset, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_write(third, 0, kedge_view_str("hello"), NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_put(b, &all, 1, NULL, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_remove(b, &digest, NULL), KEDGE_OK);
    ck_assert_uint_eq(files_in("blobs"), 0);
    ck_assert_uint_eq(files_in("staging"), 1);                   /* the other blob's */
    ck_assert_int_ne(kedge_upload_commit(open, NULL), KEDGE_OK); /* nor does it come back */
    kedge_upload_abort(open);
    ck_assert_uint_eq(files_in("blobs"), 0);
    kedge_upload_abort(third);
    tear_down(b);
}
END_TEST

START_TEST(wrong_content_never_becomes_a_blob)
{
    struct kedge_blobs *b = set_up();
    struct kedge_id site = name_of("site-1");
    struct kedge_hash digest;
    kedge_sha256(kedge_view_str("right"), &digest);
    struct kedge_upload *u;
    uint64_t offset;
    ck_assert_int_eq(kedge_upload_open(b, &site, NULL, &digest, 5, &u, &offset, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_write(u, 0, kedge_view_str("wrong"), NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_E_BLOB_DIGEST);
    ck_assert_uint_eq(kedge_upload_offset(u), 0);
    ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_E_STATE);
    ck_assert_int_eq(kedge_upload_write(u, 0, kedge_view_str("right"), NULL), KEDGE_OK); /* another try */
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
    kedge_upload_abort(u);
    ck_assert_uint_eq(files_in("."), 0);
    /* What lies in staging was changed while nobody looked. */
    ck_assert_int_eq(kedge_upload_open(b, &site, NULL, &digest, 5, &u, &offset, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_write(u, 0, kedge_view_str("rig"), NULL), KEDGE_OK);
    char path[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%s", kedge_upload_path(u));
    kedge_upload_close(u);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
    close(fd);
    ck_assert_int_eq(kedge_upload_open(b, &site, NULL, &digest, 5, &u, &offset, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_write(u, 3, kedge_view_str("ht"), NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_E_BLOB_DIGEST);
    kedge_upload_close(u);
    ck_assert_uint_eq(files_in("."), 0);
    tear_down(b);
}
END_TEST

START_TEST(limits_and_cleaning)
{
    struct kedge_blobs *b = set_up();
    struct kedge_id site = name_of("s");
    struct kedge_hash digest = {{1}}, other = {{2}};
    struct kedge_upload *u, *v;
    uint64_t offset;
    struct kedge_diag d = {0};
    ck_assert_int_eq(kedge_upload_open(b, &site, NULL, &digest, UINT64_MAX / 2, &u, &offset, &d),
                     KEDGE_E_DISK_FULL);
    ck_assert_ptr_nonnull(strstr(d.text, "no room"));
    kedge_blobs_close(b);
    struct kedge_blobs_options options = {.uploads_max = 1};
    b = open_blobs(&options);
    ck_assert_int_eq(kedge_upload_open(b, &site, NULL, &digest, 10, &u, &offset, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_open(b, &site, NULL, &other, 10, &v, &offset, NULL), KEDGE_E_FULL);
    ck_assert_int_eq(kedge_upload_write(u, 0, kedge_view_str("abc"), NULL), KEDGE_OK);
    char path[KEDGE_PATH_MAX], stray[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%s", kedge_upload_path(u));
    snprintf(stray, sizeof stray, "%s/staging/put-1-1", dir);
    kedge_upload_close(u);
    kedge_blobs_close(b);
    ck_assert_int_eq(kedge_file_write(stray, kedge_view_str("x"), 0600, NULL), KEDGE_OK);
    b = open_blobs(NULL);
    ck_assert(kedge_file_exists(path)); /* young: may be resumed */
    ck_assert(!kedge_file_exists(stray));
    kedge_blobs_close(b);
    struct utimbuf long_ago = {1000, 1000};
    ck_assert_int_eq(utime(path, &long_ago), 0);
    b = open_blobs(NULL);
    ck_assert(!kedge_file_exists(path));
    kedge_blobs_close(b);
    options = (struct kedge_blobs_options){.read_only = true};
    b = open_blobs(&options);
    struct kedge_view part = kedge_view_str("a");
    ck_assert_int_eq(kedge_blobs_put(b, &part, 1, NULL, NULL), KEDGE_E_DISK_FULL);
    tear_down(b);
}
END_TEST

struct sweep {
    size_t blobs, strangers;
    struct kedge_hash condemned;
};

static enum kedge_blob_verdict judge(void *arg, const struct kedge_hash *digest, uint64_t size,
                                     const char *path)
{
    struct sweep *s = arg;
    (void)size;
    if (!digest) {
        ck_assert(strstr(path, "stray") || strstr(path, "link"));
        s->strangers++;
        return KEDGE_BLOB_KEEP;
    }
    s->blobs++;
    return kedge_hash_eq(digest, &s->condemned) ? KEDGE_BLOB_DELETE : KEDGE_BLOB_KEEP;
}

START_TEST(sweep_visits_everything)
{
    struct kedge_blobs *b = set_up();
    struct sweep s = {0, 0, {{0}}};
    for (int i = 0; i < 20; i++) {
        char text[8];
        int n = snprintf(text, sizeof text, "%d", i);
        struct kedge_view part = kedge_view_of(text, (size_t)n);
        ck_assert_int_eq(kedge_blobs_put(b, &part, 1, &s.condemned, NULL), KEDGE_OK);
    }
    char path[KEDGE_PATH_MAX], blob[KEDGE_PATH_MAX], link_path[KEDGE_PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/blobs/stray", dir);
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str("x"), 0600, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_path(b, &s.condemned, blob), KEDGE_OK);
    snprintf(link_path, sizeof link_path, "%s.link", blob);
    ck_assert_int_eq(symlink("/etc/passwd", link_path), 0);
    ck_assert_int_eq(kedge_blobs_for_each(b, judge, &s, NULL), KEDGE_OK);
    ck_assert_uint_eq(s.blobs, 20);
    ck_assert_uint_eq(s.strangers, 2);
    ck_assert_int_eq(kedge_blobs_find(b, &s.condemned, NULL), KEDGE_E_NOT_FOUND);
    ck_assert_uint_eq(files_in("blobs"), 20); /* 19 blobs and the stray file */
    tear_down(b);
}
END_TEST

START_TEST(survives_lack_of_memory)
{
    struct kedge_blobs *b = set_up();
    struct kedge_id site = name_of("s");
    struct kedge_hash digest;
    kedge_sha256(kedge_view_str("abc"), &digest);
    bool done = false;
    for (long n = 1; n < 100 && !done; n++) {
        struct kedge_upload *u = NULL;
        uint64_t offset = 0;
        kedge_mem_fail_at(n);
        int err = kedge_upload_open(b, &site, NULL, &digest, 3, &u, &offset, NULL);
        kedge_mem_fail_at(0);
        done = err == KEDGE_OK;
        ck_assert(done || err == KEDGE_E_NOMEM);
        if (done) {
            ck_assert_int_eq(kedge_upload_write(u, 0, kedge_view_str("abc"), NULL), KEDGE_OK);
            ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
            ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_OK);
        }
    }
    ck_assert(done);
    tear_down(b); /* asserts that no slot was lost */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store blobs");
    TCase *t = tcase_create("blobs");
    tcase_set_timeout(t, 30);
    tcase_add_test(t, put_find_read);
    tcase_add_test(t, writer_streams_or_leaves_nothing);
    tcase_add_test(t, upload_resumes_across_processes);
    tcase_add_test(t, what_is_removed_is_not_left_in_staging);
    tcase_add_test(t, wrong_content_never_becomes_a_blob);
    tcase_add_test(t, limits_and_cleaning);
    tcase_add_test(t, sweep_visits_everything);
    tcase_add_test(t, survives_lack_of_memory);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
