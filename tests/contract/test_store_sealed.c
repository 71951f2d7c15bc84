/* Encrypted blobs: content comes back from any offset, and no changed byte goes unseen. */
#include "tests/contract/sealed.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Slices from both kinds of reader. */
static void read_slices(const struct kedge_blob_at *at, size_t len)
{
    for (int how = KEDGE_BLOB_READ; how <= KEDGE_BLOB_MAP; how++) {
        struct kedge_blob_file f;
        ck_assert_int_eq(kedge_blob_file_open(at, (enum kedge_blob_how)how, &f, NULL), KEDGE_OK);
        ck_assert(f.is_sealed);
        ck_assert_uint_eq(f.size, len);
        uint32_t random = 1;
        for (int i = 0; i < 40; i++) {
            random = random * 1103515245u + 12345u;
            size_t from = (random >> 8) % (len + 1), n = (size_t)random * 31 % (len - from + 1);
            n = i == 0 ? len - from : n;
            memset(out, 0xaa, sizeof out);
            ck_assert_int_eq(kedge_blob_file_read(&f, from, out, n), KEDGE_OK);
            ck_assert(n == 0 || memcmp(out, content + from, n) == 0);
            ck_assert(n == sizeof out || out[n] == 0xaa);
        }
        ck_assert_int_eq(kedge_blob_file_read(&f, len, out, 1), KEDGE_E_CORRUPT);
        ck_assert_int_eq(kedge_blob_file_read(&f, len + 1, out, 0), KEDGE_E_CORRUPT);
        kedge_blob_file_close(&f);
    }
}

START_TEST(content_comes_back)
{
    static const size_t lengths[] = {
        0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1, 3 * CHUNK - 1, 3 * CHUNK, MOST};
    static const size_t pieces[] = {MOST, CHUNK, 40000, 777};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (size_t k = i % 2; k < sizeof pieces / sizeof pieces[0]; k += 2) {
            struct kedge_blobs *b = set_up();
            size_t len = lengths[i];
            struct kedge_hash digest = upload(b, &job, len, pieces[k]);
            char path[KEDGE_PATH_MAX];
            struct kedge_blob_at at;
            uint64_t size;
            struct kedge_buf whole;
            kedge_buf_init(&whole, MOST);
            ck_assert_int_eq(kedge_blobs_at(b, &digest, path, &at), KEDGE_OK);
            ck_assert_int_eq(kedge_blobs_find(b, &digest, &size), KEDGE_OK);
            ck_assert_uint_eq(size, len);
            ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_OK);
            ck_assert_int_eq(kedge_blobs_read(b, &digest, &whole, NULL), KEDGE_OK);
            ck_assert_uint_eq(whole.len, len);
            ck_assert(len == 0 || memcmp(whole.ptr, content, len) == 0);
            ck_assert_uint_eq((uint64_t)kedge_file_size(path), kedge_blob_stored_len(kedge_aead_best(), len));
            read_slices(&at, len);
            size_t n = read_stored(path, stored, sizeof stored);
            for (size_t from = 0; len >= 16 && from + 16 <= n; from++) { /* nothing of it is on the disk */
                ck_assert(memcmp(stored + from, content + len / 2 - 8, 16) != 0);
            }
            kedge_buf_deinit(&whole);
            tear_down(b);
        }
    }
}
END_TEST

/* A file of the other cipher than this processor's is read all the same. */
START_TEST(both_ciphers_are_read)
{
    enum { LEN = CHUNK + 500 };
    struct kedge_blobs *b = set_up();
    struct kedge_hash digest = upload(b, &job, LEN, LEN);
    struct kedge_blob_key_id id;
    struct kedge_seed seed;
    struct kedge_blob_cipher c;
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_blobs_path(b, &digest, path), KEDGE_OK);
    ck_assert_int_eq(kedge_blob_keys_get(kedge_blobs_keys(b), &job, &id, &seed, NULL), KEDGE_OK);
    for (int aead = KEDGE_AEAD_AES256_GCM; aead <= KEDGE_AEAD_XCHACHA20_POLY1305; aead++) {
        kedge_blob_cipher_new((enum kedge_aead)aead, &id, &seed, &digest, &c);
        memcpy(stored, c.head, sizeof c.head);
        kedge_blob_chunk_seal(&c, 0, false, kedge_view_of(content, CHUNK), stored + sizeof c.head);
        kedge_blob_chunk_seal(&c, 1, true, kedge_view_of(content + CHUNK, 500),
                              stored + kedge_blob_chunk_offset(c.aead, 1));
        write_stored(path, stored, kedge_blob_stored_len(c.aead, LEN));
        ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_OK);
    }
    tear_down(b);
}
END_TEST

static void expect_damage(const struct kedge_blobs *b, const struct kedge_hash *digest, const char *path,
                          size_t len, const char *what, size_t where)
{
    write_stored(path, stored, len);
    int err = kedge_blobs_verify(b, digest, NULL);
    ck_assert_msg(err == KEDGE_E_CORRUPT || err == KEDGE_E_SEALED, "%s at %zu: %d", what, where, err);
}

START_TEST(every_change_is_found)
{
    enum { LEN = 2 * CHUNK + 99 };
    static const size_t lengths[] = {0, 40, LEN};
    for (size_t k = 0; k < 3; k++) {
        struct kedge_blobs *b = set_up();
        struct kedge_hash digest = upload(b, &job, lengths[k], 50000);
        char path[KEDGE_PATH_MAX];
        ck_assert_int_eq(kedge_blobs_path(b, &digest, path), KEDGE_OK);
        size_t n = read_stored(path, stored, sizeof stored);
        for (size_t i = 0; i < n; i += i < 400 ? 1 : i < n - 200 ? 4099 : 1) {
            for (unsigned bit = 0; bit < 8; bit += i < KEDGE_BLOB_HEAD_LEN || lengths[k] < 100 ? 1 : 3) {
                stored[i] ^= (uint8_t)(1u << bit);
                expect_damage(b, &digest, path, n, "bit", 8 * i + bit);
                stored[i] ^= (uint8_t)(1u << bit);
            }
        }
        size_t whole = CHUNK + kedge_blob_chunk_overhead(kedge_aead_best());
        size_t cuts[] = {1, 2, 16, 28, 99, 99 + 28, whole, n - 65, n - 64, n - 1, n};
        for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
            if (cuts[i] < n || (cuts[i] == n && lengths[k] > 0)) { /* an empty file is a plain empty blob */
                expect_damage(b, &digest, path, n - cuts[i], "cut", cuts[i]);
            }
        }
        stored[n] = 0;
        expect_damage(b, &digest, path, n + 1, "longer", 1);
        if (lengths[k] == LEN) { /* the two whole chunks change places; one stands twice */
            memcpy(out, stored + 64, whole);
            memmove(stored + 64, stored + 64 + whole, whole);
            expect_damage(b, &digest, path, n, "doubled", 0);
            memcpy(stored + 64 + whole, out, whole);
            expect_damage(b, &digest, path, n, "swapped", 0);
            memmove(stored + 64 + whole, stored + 64, whole);
            memcpy(stored + 64, out, whole);
        }
        write_stored(path, stored, n);
        tear_down(b);
    }
}
END_TEST

/* Where chunk k is read alone: KEDGE_OK or KEDGE_E_CORRUPT. */
static int read_chunk(const struct kedge_blob_at *at, size_t k)
{
    struct kedge_blob_file f;
    ck_assert_int_eq(kedge_blob_file_open(at, k % 2 ? KEDGE_BLOB_MAP : KEDGE_BLOB_READ, &f, NULL), KEDGE_OK);
    size_t from = k * CHUNK, n = f.size - from < CHUNK ? (size_t)(f.size - from) : CHUNK;
    int err = kedge_blob_file_read(&f, from, out, n);
    ck_assert(err || memcmp(out, content + from, n) == 0);
    kedge_blob_file_close(&f);
    return err;
}

/* No digest is asked: a chunk knows its place, its file, and whether it is the last one. */
START_TEST(chunks_prove_themselves)
{
    enum { LEN = 2 * CHUNK + 99 };
    struct kedge_blobs *b = set_up();
    struct kedge_hash digest = upload(b, &job, LEN, LEN), other = upload(b, &job, 2 * CHUNK, 2 * CHUNK);
    const size_t whole = CHUNK + kedge_blob_chunk_overhead(kedge_aead_best());
    struct kedge_blob_at at, there;
    char path[KEDGE_PATH_MAX], other_path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_blobs_at(b, &digest, path, &at), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_at(b, &other, other_path, &there), KEDGE_OK);
    size_t n = read_stored(path, stored, sizeof stored);
    for (size_t kept = 1; kept <= 2; kept++) { /* cut off where a chunk ends: it is not the last one */
        write_stored(path, stored, 64 + kept * whole);
        ck_assert_int_eq(read_chunk(&at, kept - 1), KEDGE_E_CORRUPT);
        ck_assert(kept == 1 || read_chunk(&at, 0) == KEDGE_OK);
    }
    memcpy(out, stored + 64, whole); /* change places */
    memmove(stored + 64, stored + 64 + whole, whole);
    memcpy(stored + 64 + whole, out, whole);
    write_stored(path, stored, n);
    ck_assert_int_eq(read_chunk(&at, 0), KEDGE_E_CORRUPT);
    ck_assert_int_eq(read_chunk(&at, 1), KEDGE_E_CORRUPT);
    ck_assert_int_eq(read_chunk(&at, 2), KEDGE_OK);
    ck_assert_int_eq(read_chunk(&there, 0), KEDGE_OK);
    int fd = open(other_path, O_RDONLY); /* the same content at the same place, of another file */
    ck_assert(fd >= 0 && pread(fd, stored + 64, whole, 64) == (ssize_t)whole && close(fd) == 0);
    write_stored(path, stored, n);
    ck_assert_int_eq(read_chunk(&at, 0), KEDGE_E_CORRUPT);
    tear_down(b);
}
END_TEST

START_TEST(another_name_or_key_is_no_use)
{
    struct kedge_blobs *b = set_up();
    struct kedge_hash digest = upload(b, &job, 5000, 5000), wrong = digest_of(content, 4999);
    struct kedge_blob_key_id id;
    struct kedge_seed seed;
    struct kedge_blob_at at;
    struct kedge_blob_file f;
    char path[KEDGE_PATH_MAX], key[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_blobs_at(b, &digest, path, &at), KEDGE_OK);
    at.digest = wrong; /* as if another update had been given this one's file */
    ck_assert_int_eq(kedge_blob_file_open(&at, KEDGE_BLOB_READ, &f, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blob_file_read(&f, 0, out, 10), KEDGE_E_CORRUPT);
    kedge_blob_file_close(&f);
    at.digest = digest;
    at.keys = NULL;
    ck_assert_int_eq(kedge_blob_file_open(&at, KEDGE_BLOB_MAP, &f, NULL), KEDGE_E_SEALED);
    struct stat st;
    snprintf(key, sizeof key, "%s/job-1.pem", keys_dir);
    ck_assert_int_eq(stat(key, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    /* Elsewhere: not readable until the key's file is named. */
    struct kedge_blobs_options options = {.read_only = true};
    struct kedge_blobs *copy;
    kedge_blobs_close(b);
    options.keys_dir = "/nowhere";
    ck_assert_int_eq(kedge_blobs_open(dir, &options, &copy, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_verify(copy, &digest, NULL), KEDGE_E_SEALED);
    ck_assert_uint_eq(kedge_blob_keys_count(kedge_blobs_keys(copy)), 0);
    ck_assert_int_eq(kedge_blob_keys_add(kedge_blobs_keys(copy), "/nowhere/x.pem", NULL), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_blob_keys_add(kedge_blobs_keys(copy), key, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blob_keys_add(kedge_blobs_keys(copy), keys_dir, NULL), KEDGE_OK); /* the same */
    ck_assert_uint_eq(kedge_blob_keys_count(kedge_blobs_keys(copy)), 1);
    ck_assert_int_eq(kedge_blobs_verify(copy, &digest, NULL), KEDGE_OK);
    kedge_blobs_close(copy);
    b = open_blobs();
    /* A key that another process made since. */
    struct kedge_blobs *beside = open_blobs();
    struct kedge_hash later = upload(beside, &other_job, 70000, 70000);
    ck_assert_int_eq(kedge_blobs_verify(b, &later, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blob_keys_get(kedge_blobs_keys(b), &other_job, &id, &seed, NULL), KEDGE_OK);
    ck_assert_uint_eq(kedge_blob_keys_count(kedge_blobs_keys(b)), 2);
    kedge_blobs_close(beside);
    tear_down(b);
}
END_TEST

int main(void)
{
    if (kedge_crypto_init() != KEDGE_OK) {
        return 1;
    }
    Suite *suite = suite_create("store sealed");
    TCase *t = tcase_create("sealed");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, content_comes_back);
    tcase_add_test(t, both_ciphers_are_read);
    tcase_add_test(t, every_change_is_found);
    tcase_add_test(t, chunks_prove_themselves);
    tcase_add_test(t, another_name_or_key_is_no_use);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
