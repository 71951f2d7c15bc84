/* Encrypted uploads go on where whole chunks end, and a key that is destroyed takes its blobs along. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "crypto/keyfile.h"
#include "crypto/passphrase.h"
#include "tests/contract/sealed.h"

/* What was written stays as far as whole chunks reach; torn, changed or another key's: from the beginning. */
START_TEST(uploads_go_on)
{
    enum { LEN = 3 * CHUNK + 1, SENT = 2 * CHUNK + 1000 };
    static const struct {
        long cut;  /* bytes off the end */
        long flip; /* byte of the file; -1: none */
        uint64_t left;
    } cases[] = {{0, -1, 2 * CHUNK}, {1, -1, CHUNK}, {0, CHUNK + 200, CHUNK},
                 {0, 100, 0},        {0, 40, 0},     {0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_blobs *b = set_up();
        struct kedge_hash digest = digest_of(content, LEN);
        struct kedge_upload *u;
        uint64_t offset;
        char path[KEDGE_PATH_MAX];
        ck_assert_int_eq(kedge_upload_open(b, &site, &job, &digest, LEN, &u, &offset, NULL), KEDGE_OK);
        write_pieces(u, content, 0, SENT, 10000);
        ck_assert_uint_eq(kedge_upload_offset(u), SENT);
        snprintf(path, sizeof path, "%s", kedge_upload_path(u));
        kedge_upload_close(u);
        kedge_blobs_close(b);
        size_t n = read_stored(path, stored, sizeof stored);
        if (cases[i].flip >= 0) {
            stored[cases[i].flip] ^= 1;
        }
        write_stored(path, stored, n - (size_t)cases[i].cut);
        b = open_blobs();
        ck_assert_int_eq(kedge_upload_open(b, &site, &job, &digest, LEN, &u, &offset, NULL), KEDGE_OK);
        ck_assert_uint_eq(offset, cases[i].left);
        write_pieces(u, content, offset, LEN, 99999);
        struct kedge_blob_at at;
        struct kedge_blob_file f;
        ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
        kedge_upload_at(u, &at);
        ck_assert_int_eq(kedge_blob_file_open(&at, KEDGE_BLOB_MAP, &f, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_blob_file_read(&f, 5, out, LEN - 5), KEDGE_OK);
        ck_assert_mem_eq(out, content + 5, LEN - 5);
        kedge_blob_file_close(&f);
        ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_OK);
        tear_down(b);
    }
}
END_TEST

/* Once complete but not committed; and wrong content under a digest, then the right one. */
START_TEST(complete_and_wrong_uploads)
{
    static const size_t lengths[] = {0, 10, CHUNK, CHUNK + 10};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t len = lengths[i];
        struct kedge_blobs *b = set_up();
        struct kedge_hash digest = digest_of(content, len);
        struct kedge_upload *u;
        uint64_t offset;
        ck_assert_int_eq(kedge_upload_open(b, &site, &job, &digest, len, &u, &offset, NULL), KEDGE_OK);
        if (len > 0) {
            write_pieces(u, content + 1, 0, len, len);
            ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_E_BLOB_DIGEST);
            ck_assert_uint_eq(kedge_upload_offset(u), 0);
        }
        write_pieces(u, content, 0, len, len);
        ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
        kedge_upload_close(u);
        ck_assert_int_eq(kedge_upload_open(b, &site, &job, &digest, len, &u, &offset, NULL), KEDGE_OK);
        ck_assert_uint_eq(offset, len);
        ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_OK);
        tear_down(b);
    }
}
END_TEST

static bool is_job(void *arg, const struct kedge_id *name)
{
    return kedge_id_eq(arg, name);
}

static bool shred(struct kedge_blobs *b)
{
    struct kedge_id only = job;
    size_t done = 9;
    ck_assert_int_eq(kedge_blobs_shred(b, is_job, &only, &done, NULL), KEDGE_OK);
    ck_assert_uint_le(done, 1);
    return done == 1;
}

/* When nothing is left under a key it goes, and with it what copies of the files were worth. */
START_TEST(keys_are_shredded)
{
    struct kedge_blobs *b = set_up();
    struct kedge_hash one = upload(b, &job, 1000, 1000), two = upload(b, &job, 2000, 2000),
                      kept = upload(b, &other_job, 3000, 3000), half = digest_of(content, 90000);
    char path[KEDGE_PATH_MAX], key[KEDGE_PATH_MAX], staged[KEDGE_PATH_MAX];
    struct kedge_upload *u;
    uint64_t offset;
    snprintf(key, sizeof key, "%s/job-1.pem", keys_dir);
    ck_assert_int_eq(kedge_blobs_path(b, &one, path), KEDGE_OK);
    size_t n = read_stored(path, stored, sizeof stored);
    ck_assert_int_eq(kedge_upload_open(b, &site, &job, &half, 90000, &u, &offset, NULL), KEDGE_OK);
    write_pieces(u, content, 0, 80000, 80000);
    snprintf(staged, sizeof staged, "%s", kedge_upload_path(u));
    ck_assert(!shred(b)); /* two blobs and an upload */
    ck_assert_int_eq(kedge_blobs_remove(b, &one, NULL), KEDGE_OK);
    ck_assert(!shred(b) && kedge_file_exists(key));
    ck_assert_int_eq(kedge_blobs_remove(b, &two, NULL), KEDGE_OK);
    ck_assert(!shred(b));
    kedge_upload_close(u);
    ck_assert(kedge_file_exists(staged));
    ck_assert(shred(b) && !kedge_file_exists(key) && !kedge_file_exists(staged));
    ck_assert(!shred(b));                          /* once more */
    int fd = open(path, O_WRONLY | O_CREAT, 0600); /* from a backup */
    ck_assert(fd >= 0 && write(fd, stored, n) == (ssize_t)n && close(fd) == 0);
    ck_assert_int_eq(kedge_blobs_verify(b, &one, NULL), KEDGE_E_SEALED);
    (void)upload(b, &job, 1500, 1500); /* another key under the old name opens nothing of then */
    ck_assert_int_eq(kedge_blobs_verify(b, &one, NULL), KEDGE_E_SEALED);
    ck_assert_int_eq(kedge_blobs_verify(b, &kept, NULL), KEDGE_OK);
    tear_down(b);
}
END_TEST

/* With the coordinator's key under a passphrase, new keys are sealed alike. */
START_TEST(new_keys_are_guarded_alike)
{
    static const struct kedge_seal_cost cheap = {1, KEDGE_SEAL_MEMORY_MIN_KIB};
    char keys[128], path[160], word[128];
    struct kedge_key_pair pair;
    struct kedge_public_key claimed;
    bool is_sealed = false;
    struct kedge_blobs *b = set_up();
    kedge_blobs_close(b);
    snprintf(keys, sizeof keys, "%s/k/updates/org-a", dir);
    ck_assert_int_eq(kedge_dir_make(keys, 0700, NULL), KEDGE_OK);
    snprintf(path, sizeof path, "%s/k/statement.pem", dir);
    snprintf(word, sizeof word, "%s/word", dir);
    kedge_key_generate(&pair);
    ck_assert_int_eq(kedge_keyfile_seal(path, &pair, kedge_view_str("open"), &cheap, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(word, kedge_view_str("open\n"), 0600, NULL), KEDGE_OK);
    const struct kedge_blobs_options options = {.keys_dir = keys, .encrypt = true};
    kedge_passphrase_use_file(word);
    ck_assert_int_eq(kedge_blobs_open(dir, &options, &b, NULL), KEDGE_OK);
    struct kedge_hash digest = upload(b, &job, 70000, 70000);
    snprintf(path, sizeof path, "%s/job-1.pem", keys);
    ck_assert_int_eq(kedge_keyfile_is_sealed(path, &is_sealed, &claimed, NULL), KEDGE_OK);
    ck_assert(is_sealed);
    kedge_blobs_close(b);
    ck_assert_int_eq(kedge_file_write(word, kedge_view_str("another\n"), 0600, NULL), KEDGE_OK);
    kedge_passphrase_forget();
    ck_assert_int_eq(kedge_blobs_open(dir, &options, &b, NULL), KEDGE_OK); /* asks for nothing yet */
    ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_E_SEALED);
    ck_assert_int_eq(kedge_file_write(word, kedge_view_str("open\n"), 0600, NULL), KEDGE_OK);
    kedge_passphrase_forget();
    ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_OK);
    kedge_passphrase_use_file(NULL);
    kedge_passphrase_forget();
    tear_down(b);
}
END_TEST

/* Plain and encrypted side by side; a store that does not encrypt reads both. */
START_TEST(mixed_folders)
{
    struct kedge_blobs *b = set_up();
    struct kedge_hash sealed = upload(b, &job, 1000, 1000), plain = upload(b, NULL, 2000, 2000), list;
    const struct kedge_view part = kedge_view_str("a list");
    uint64_t size;
    ck_assert_int_eq(kedge_blobs_put(b, &part, 1, &list, NULL), KEDGE_OK);
    kedge_blobs_close(b);
    struct kedge_blobs_options options = {.keys_dir = keys_dir};
    ck_assert_int_eq(kedge_blobs_open(dir, &options, &b, NULL), KEDGE_OK);
    struct kedge_hash later = upload(b, &job, 3000, 3000);
    const struct kedge_hash *all[] = {&sealed, &plain, &list, &later};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(kedge_blobs_verify(b, all[i], NULL), KEDGE_OK);
    }
    ck_assert_int_eq(kedge_blobs_find(b, &later, &size), KEDGE_OK);
    ck_assert_uint_eq(size, 3000);
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_blobs_path(b, &later, path), KEDGE_OK);
    ck_assert_uint_eq((uint64_t)kedge_file_size(path), 3000); /* not encrypted */
    tear_down(b);
}
END_TEST

START_TEST(survives_lack_of_memory)
{
    bool done = false;
    struct kedge_blobs *b = set_up();
    struct kedge_hash digest = digest_of(content, 70000);
    for (long n = 1; !done; n++) {
        struct kedge_upload *u = NULL;
        uint64_t offset = 0;
        kedge_mem_fail_at(n);
        int err = kedge_upload_open(b, &site, &job, &digest, 70000, &u, &offset, NULL);
        err = err ? err
                  : kedge_upload_write(u, offset, kedge_view_of(content + offset, 70000 - offset - 1), NULL);
        kedge_mem_fail_at(0);
        done = !err;
        ck_assert(done || err == KEDGE_E_NOMEM);
        kedge_upload_close(u);
        ck_assert_int_lt((int)n, 200);
    }
    (void)upload(b, &other_job, 10, 10);
    tear_down(b);
}
END_TEST

int main(void)
{
    if (kedge_crypto_init() != KEDGE_OK) {
        return 1;
    }
    Suite *suite = suite_create("store sealed uploads");
    TCase *t = tcase_create("sealed");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, uploads_go_on);
    tcase_add_test(t, complete_and_wrong_uploads);
    tcase_add_test(t, keys_are_shredded);
    tcase_add_test(t, new_keys_are_guarded_alike);
    tcase_add_test(t, mixed_folders);
    tcase_add_test(t, survives_lack_of_memory);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
