/* Encrypted blobs: content comes back from any offset, no changed byte goes unseen, uploads go on where whole
 * chunks end, and a key that is destroyed takes its blobs along. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/blobs.h"
#include "common/base/mem.h"
#include "common/base/os/entropy.h"

enum { CHUNK = KEDGE_BLOB_CHUNK, MOST = 3 * CHUNK + 1 };

static char dir[64], keys_dir[80];
static uint8_t content[MOST], stored[MOST + 1024], out[MOST];
static const struct kedge_id site = {"site-1"}, job = {"job-1"}, other_job = {"job-2"};

static struct kedge_blobs *open_blobs(void)
{
    struct kedge_blobs_options options = {.keys_dir = keys_dir, .encrypt = true};
    struct kedge_blobs *b;
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_blobs_open(dir, &options, &b, &d) == KEDGE_OK, "%s", d.text);
    return b;
}

static struct kedge_blobs *set_up(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-sealed-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(keys_dir, sizeof keys_dir, "%s/keys", dir);
    for (size_t i = 0; i < sizeof content; i++) {
        content[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    return open_blobs();
}

static void tear_down(struct kedge_blobs *b)
{
    kedge_blobs_close(b);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

static struct kedge_hash digest_of(const uint8_t *bytes, size_t len)
{
    struct kedge_hash digest;
    kedge_sha256(kedge_view_of(bytes, len), &digest);
    return digest;
}

static void write_pieces(struct kedge_upload *u, const uint8_t *bytes, size_t from, size_t len, size_t piece)
{
    for (size_t at = from; at < len;) {
        size_t n = len - at < piece ? len - at : piece;
        ck_assert_int_eq(kedge_upload_write(u, at, kedge_view_of(bytes + at, n), NULL), KEDGE_OK);
        at += n;
    }
}

static struct kedge_hash upload(struct kedge_blobs *b, const struct kedge_id *key, size_t len, size_t piece)
{
    struct kedge_hash digest = digest_of(content, len);
    struct kedge_upload *u;
    struct kedge_diag d = {0};
    uint64_t offset;
    ck_assert_msg(kedge_upload_open_under(b, &site, key, &digest, len, &u, &offset, &d) == KEDGE_OK, "%s",
                  d.text);
    ck_assert_uint_eq(offset, 0);
    write_pieces(u, content, 0, len, piece);
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_OK);
    return digest;
}

static size_t read_stored(const char *path, uint8_t *bytes, size_t max)
{
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ssize_t n = read(fd, bytes, max);
    ck_assert_int_ge((int)n, 0);
    close(fd);
    return (size_t)n;
}

static void write_stored(const char *path, const uint8_t *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)write(fd, bytes, len), (int)len);
    close(fd);
}

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
        ck_assert_int_eq(kedge_upload_open_under(b, &site, &job, &digest, LEN, &u, &offset, NULL), KEDGE_OK);
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
        ck_assert_int_eq(kedge_upload_open_under(b, &site, &job, &digest, LEN, &u, &offset, NULL), KEDGE_OK);
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
        ck_assert_int_eq(kedge_upload_open_under(b, &site, &job, &digest, len, &u, &offset, NULL), KEDGE_OK);
        if (len > 0) {
            write_pieces(u, content + 1, 0, len, len);
            ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_E_BLOB_DIGEST);
            ck_assert_uint_eq(kedge_upload_offset(u), 0);
        }
        write_pieces(u, content, 0, len, len);
        ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
        kedge_upload_close(u);
        ck_assert_int_eq(kedge_upload_open_under(b, &site, &job, &digest, len, &u, &offset, NULL), KEDGE_OK);
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
    ck_assert_int_eq(kedge_upload_open_under(b, &site, &job, &half, 90000, &u, &offset, NULL), KEDGE_OK);
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
        int err = kedge_upload_open_under(b, &site, &job, &digest, 70000, &u, &offset, NULL);
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
    Suite *suite = suite_create("store sealed");
    TCase *t = tcase_create("sealed");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, content_comes_back);
    tcase_add_test(t, both_ciphers_are_read);
    tcase_add_test(t, every_change_is_found);
    tcase_add_test(t, another_name_or_key_is_no_use);
    tcase_add_test(t, uploads_go_on);
    tcase_add_test(t, complete_and_wrong_uploads);
    tcase_add_test(t, keys_are_shredded);
    tcase_add_test(t, mixed_folders);
    tcase_add_test(t, survives_lack_of_memory);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
