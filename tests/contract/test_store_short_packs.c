/* Small blobs in packs, in their short form: what lies there is never taken for what it is not. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "chain/store/blob/short_form.h"
#include "tests/contract/sealed.h"

static struct kedge_blobs *set_up_packed(void)
{
    struct kedge_blobs_options options = {.keys_dir = keys_dir, .encrypt = true, .pack = true};
    struct kedge_blobs *b;
    kedge_blobs_close(set_up());
    ck_assert_int_eq(kedge_blobs_open(dir, &options, &b, NULL), KEDGE_OK);
    return b;
}

static struct kedge_hash put(struct kedge_blobs *b, size_t from, size_t len)
{
    struct kedge_view part = kedge_view_of(content + from, len);
    struct kedge_hash digest;
    ck_assert_int_eq(kedge_blobs_put(b, &part, 1, &digest, NULL), KEDGE_OK);
    return digest;
}

/* A site may send what looks like a short form: it is its own bytes that count, wherever they lie. */
START_TEST(content_that_looks_like_a_short_form_stays_what_it_is)
{
    struct kedge_blobs *b = set_up_packed();
    uint8_t brief[2000];
    size_t len;
    ck_assert(kedgei_short_file(kedge_view_of(content, sizeof brief), brief, &len));
    struct kedge_view parts[2] = {kedge_view_of(brief, 3), kedge_view_of(brief + 3, len - 3)};
    struct kedge_hash digest = digest_of(brief, len), put_as;
    struct kedge_upload *u;
    uint64_t offset;
    struct kedge_blob_file f;
    struct kedge_blob_at at;
    struct kedge_buf got;
    kedge_buf_init(&got, MOST);
    for (int how = 0; how < 3; how++) {
        char path[KEDGE_PATH_MAX];
        uint64_t size;
        if (how == 0) {
            ck_assert_int_eq(kedge_blobs_put(b, parts, 2, &put_as, NULL), KEDGE_OK);
            ck_assert(kedge_hash_eq(&put_as, &digest));
        } else { /* plain, and encrypted */
            ck_assert_int_eq(
                kedge_upload_open(b, &site, how == 1 ? NULL : &job, &digest, len, &u, &offset, NULL),
                KEDGE_OK);
            ck_assert_int_eq(kedge_upload_write(u, 0, kedge_view_of(brief, len), NULL), KEDGE_OK);
            ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
            kedge_upload_at(u, &at);
            ck_assert_int_eq(kedge_blob_file_open(&at, KEDGE_BLOB_MAP, &f, NULL), KEDGE_OK);
            ck_assert_uint_eq(f.size, len);
            kedge_blob_file_close(&f);
            ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_OK);
        }
        ck_assert_int_eq(kedge_blobs_find(b, &digest, &size), KEDGE_OK);
        ck_assert_uint_eq(size, len);
        ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_OK);
        kedge_buf_clear(&got);
        ck_assert_int_eq(kedge_blobs_read(b, &digest, &got, NULL), KEDGE_OK);
        ck_assert(kedge_view_eq(kedge_buf_view(&got), kedge_view_of(brief, len)));
        ck_assert_int_eq(kedge_blobs_path(b, &digest, path), KEDGE_OK);
        ck_assert_int_eq(kedge_blobs_remove(b, &digest, NULL), KEDGE_OK);
    }
    kedge_buf_deinit(&got);
    tear_down(b);
}
END_TEST

/* A file made of a packed blob has its content, which is not in short form. */
START_TEST(a_copy_of_a_packed_blob_has_its_content)
{
    struct kedge_blobs *b = set_up_packed();
    struct kedge_hash digest = put(b, 0, 3000);
    char to[KEDGE_PATH_MAX];
    struct kedge_buf got;
    uint64_t bytes, ms;
    ck_assert_int_eq(kedge_blobs_stored(b, &digest, &bytes, &ms), KEDGE_OK);
    ck_assert_uint_lt(bytes, 2000);
    ck_assert_int_eq(kedge_path_join(to, dir, "copy"), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_copy_packed(b, &digest, to, NULL), KEDGE_OK);
    kedge_buf_init(&got, MOST);
    ck_assert_int_eq(kedge_file_read(to, &got, NULL), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&got), kedge_view_of(content, 3000)));
    kedge_buf_deinit(&got);
    tear_down(b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store short packs");
    TCase *t = tcase_create("short packs");
    tcase_add_test(t, content_that_looks_like_a_short_form_stays_what_it_is);
    tcase_add_test(t, a_copy_of_a_packed_blob_has_its_content);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
