/* Small blobs that share files: what the contract of blobs says holds for them, and what is in a pack is
 * found again from any copy of it, whatever was interrupted, damaged or removed. */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/blob/packs.h"
#include "chain/store/fsck.h"
#include "common/base/mem.h"
#include "tests/contract/sealed.h"

static struct kedge_blobs *open_packed(bool read_only)
{
    struct kedge_blobs_options options = {
        .keys_dir = keys_dir, .encrypt = true, .pack = true, .read_only = read_only};
    struct kedge_blobs *b;
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_blobs_open(dir, &options, &b, &d) == KEDGE_OK, "%s", d.text);
    return b;
}

static struct kedge_blobs *set_up_packed(void)
{
    kedge_blobs_close(set_up());
    return open_packed(false);
}

static struct kedge_hash put(struct kedge_blobs *b, size_t from, size_t len)
{
    struct kedge_view part = kedge_view_of(content + from, len);
    struct kedge_hash digest;
    ck_assert_int_eq(kedge_blobs_put(b, &part, 1, &digest, NULL), KEDGE_OK);
    return digest;
}

static void has(const struct kedge_blobs *b, const struct kedge_hash *digest, size_t from, size_t len)
{
    struct kedge_buf got;
    uint64_t size;
    kedge_buf_init(&got, MOST);
    ck_assert_int_eq(kedge_blobs_find(b, digest, &size), KEDGE_OK);
    ck_assert_uint_eq(size, len);
    ck_assert_int_eq(kedge_blobs_verify(b, digest, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_read(b, digest, &got, NULL), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&got), kedge_view_of(content + from, len)));
    kedge_buf_deinit(&got);
    for (int how = KEDGE_BLOB_READ; how <= KEDGE_BLOB_MAP; how++) { /* from any offset, either way */
        char path[KEDGE_PATH_MAX];
        struct kedge_blob_at at;
        struct kedge_blob_file f;
        ck_assert_int_eq(kedge_blobs_at(b, digest, path, &at), KEDGE_OK);
        ck_assert(kedge_blob_exists(path));
        ck_assert_int_eq(kedge_blob_file_open(&at, (enum kedge_blob_how)how, &f, NULL), KEDGE_OK);
        ck_assert_uint_eq(f.size, len);
        for (size_t k = 0; k < len; k += len / 3 + 1) {
            ck_assert_int_eq(kedge_blob_file_read(&f, k, out, len - k), KEDGE_OK);
            ck_assert_int_eq(memcmp(out, content + from + k, len - k), 0);
        }
        ck_assert_int_eq(kedge_blob_file_read(&f, len, out, 1), KEDGE_E_CORRUPT);
        kedge_blob_file_close(&f);
    }
}

static void is_gone(const struct kedge_blobs *b, const struct kedge_hash *digest)
{
    ck_assert_int_eq(kedge_blobs_find(b, digest, NULL), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_blobs_verify(b, digest, NULL), KEDGE_E_NOT_FOUND);
}

static const char *at_pack(unsigned number)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/blobs/pack-%u", dir, number);
    return path;
}

static size_t files_below(const char *sub)
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

/* Whether any file below the folder has these bytes. */
static bool is_on_disk(const char *sub, const void *needle, size_t len)
{
    char command[200], path[300];
    bool found = false;
    snprintf(command, sizeof command, "find %s/%s -type f", dir, sub);
    FILE *p = popen(command, "r");
    ck_assert_ptr_nonnull(p);
    while (fgets(path, sizeof path, p)) {
        struct kedge_buf text;
        path[strcspn(path, "\n")] = '\0';
        kedge_buf_init(&text, 1 << 24);
        ck_assert_int_eq(kedge_file_read(path, &text, NULL), KEDGE_OK);
        found = found || (text.len >= len && memmem(text.ptr, text.len, needle, len));
        kedge_buf_deinit(&text);
    }
    ck_assert_int_eq(pclose(p), 0);
    return found;
}

struct seen {
    size_t blobs, strays;
    uint64_t bytes;
    struct kedge_hash condemned;
};

static enum kedge_blob_verdict count(void *arg, const struct kedge_hash *digest, uint64_t size,
                                     const char *path)
{
    struct seen *s = arg;
    ck_assert_ptr_nonnull(strstr(path, "/blobs/"));
    s->blobs += digest != NULL;
    s->strays += !digest;
    s->bytes += size;
    return digest && kedge_hash_eq(digest, &s->condemned) ? KEDGE_BLOB_DELETE : KEDGE_BLOB_KEEP;
}

static struct seen sweep(struct kedge_blobs *b)
{
    struct seen s = {0};
    ck_assert_int_eq(kedge_blobs_for_each(b, count, &s, NULL), KEDGE_OK);
    return s;
}

START_TEST(small_ones_share_a_file_and_large_ones_do_not)
{
    static const size_t lens[] = {0, 1, 63, 64, 65, 300, 4096, CHUNK - 1, CHUNK};
    enum { N = sizeof lens / sizeof lens[0] };
    struct kedge_blobs *b = set_up_packed();
    struct kedge_hash plain[N], sealed[N];
    for (size_t i = 0; i < N; i++) {
        plain[i] = put(b, i, lens[i]);
        ck_assert_int_eq(memcmp(plain[i].b, put(b, i, lens[i]).b, KEDGE_HASH_LEN), 0); /* again is fine */
        sealed[i] = upload(b, i % 2 ? &job : NULL, lens[i] > 0 ? lens[i] : 2, 1000);
    }
    ck_assert_uint_eq(files_below("blobs"), 1);
    ck_assert_uint_eq(files_below("staging"), 0);
    struct kedge_hash large = put(b, 0, CHUNK + 1), large_sealed = upload(b, &job, CHUNK + 2, 5000);
    ck_assert_uint_eq(files_below("blobs"), 3);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < N; i++) {
            has(b, &plain[i], i, lens[i]);
            has(b, &sealed[i], 0, lens[i] > 0 ? lens[i] : 2);
        }
        has(b, &large, 0, CHUNK + 1);
        has(b, &large_sealed, 0, CHUNK + 2);
        ck_assert_uint_eq(sweep(b).blobs, 2 * N + 2);
        ck_assert_uint_eq(sweep(b).strays, 0);
        kedge_blobs_close(b);
        b = open_packed(round == 0);
    }
    ck_assert(is_on_disk("blobs", content + 5, 300)); /* plain ones are; what was encrypted is not twice */
    tear_down(b);
}
END_TEST

START_TEST(readers_see_what_comes_and_goes_beside_them)
{
    struct kedge_blobs *b = set_up_packed(), *reader = open_packed(true);
    struct kedge_hash first = put(b, 0, 500), absent = digest_of(content, 7);
    has(reader, &first, 0, 500);
    is_gone(reader, &absent);
    struct kedge_hash second = put(b, 1, 500);
    has(reader, &second, 1, 500);
    ck_assert_uint_eq(sweep(reader).blobs, 2);
    ck_assert_int_eq(kedge_blobs_remove(b, &first, NULL), KEDGE_OK);
    is_gone(reader, &first);
    has(reader, &second, 1, 500);
    ck_assert_int_ne(kedge_blobs_put(reader, NULL, 0, NULL, NULL), KEDGE_OK);
    kedge_blobs_close(reader);
    tear_down(b);
}
END_TEST

START_TEST(what_is_removed_is_overwritten)
{
    struct kedge_blobs *b = set_up_packed();
    struct kedge_hash gone = put(b, 100, 20000), stays = put(b, 1, 50), swept = put(b, 3, 70);
    uint64_t bytes, ms;
    ck_assert_int_eq(kedge_blobs_stored(b, &gone, &bytes, &ms), KEDGE_OK);
    ck_assert_uint_eq(bytes, 20000);
    ck_assert_uint_gt(ms, UINT64_C(1500000000000));
    ck_assert(is_on_disk("blobs", content + 200, 64));
    ck_assert_int_eq(kedge_blobs_remove(b, &gone, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_remove(b, &gone, NULL), KEDGE_OK); /* an absent one is fine */
    ck_assert(!is_on_disk("blobs", content + 200, 64));
    ck_assert(!is_on_disk("blobs", gone.b, KEDGE_HASH_LEN));
    struct seen s = {.condemned = swept};
    ck_assert_int_eq(kedge_blobs_for_each(b, count, &s, NULL), KEDGE_OK);
    ck_assert_uint_eq(s.blobs, 2);
    is_gone(b, &swept);
    kedge_blobs_close(b);
    b = open_packed(false);
    is_gone(b, &gone);
    is_gone(b, &swept);
    has(b, &stays, 1, 50);
    ck_assert_uint_eq(sweep(b).strays, 0);
    struct kedge_hash again = put(b, 100, 20000); /* and may come back */
    has(b, &again, 100, 20000);
    ck_assert_int_eq(kedge_blobs_drop(b, &again, NULL), KEDGE_OK);
    is_gone(b, &again);
    tear_down(b);
}
END_TEST

START_TEST(an_upload_that_was_removed_does_not_come_back)
{
    struct kedge_blobs *b = set_up_packed();
    struct kedge_hash digest = digest_of(content, 800);
    struct kedge_upload *u;
    uint64_t offset;
    ck_assert_int_eq(kedge_upload_open(b, &site, &job, &digest, 800, &u, &offset, NULL), KEDGE_OK);
    write_pieces(u, content, 0, 800, 300);
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_remove(b, &digest, NULL), KEDGE_OK);
    ck_assert_int_ne(kedge_upload_commit(u, NULL), KEDGE_OK);
    kedge_upload_abort(u);
    is_gone(b, &digest);
    tear_down(b);
}
END_TEST

START_TEST(a_damaged_blob_is_found_and_put_anew)
{
    struct kedge_blobs *b = set_up_packed();
    struct kedge_hash digest = put(b, 0, 300), after = put(b, 1000, 400);
    char path[KEDGE_PATH_MAX], file[KEDGE_PATH_MAX];
    uint64_t begin, len;
    ck_assert_int_eq(kedge_blobs_path(b, &digest, path), KEDGE_OK);
    ck_assert(kedgei_pack_place(path, file, &begin, &len));
    ck_assert_uint_eq(len, 300);
    int fd = open(file, O_RDWR);
    ck_assert_int_eq((int)pwrite(fd, "\xff", 1, (off_t)begin + 7), 1);
    close(fd);
    ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_E_CORRUPT);
    has(b, &after, 1000, 400);
    ck_assert_int_eq(memcmp(put(b, 0, 300).b, digest.b, KEDGE_HASH_LEN), 0);
    has(b, &digest, 0, 300);
    kedge_blobs_close(b);
    b = open_packed(false);
    has(b, &digest, 0, 300); /* the later one counts, */
    ck_assert_uint_eq(sweep(b).blobs, 2);
    ck_assert_int_eq(kedge_blobs_remove(b, &digest, NULL), KEDGE_OK); /* and both go */
    is_gone(b, &digest);
    kedge_blobs_close(b);
    b = open_packed(false);
    is_gone(b, &digest);
    ck_assert(!is_on_disk("blobs", content + 20, 64));
    tear_down(b);
}
END_TEST

/* Every bit of a pack: what is read of it is right, or an error, or absent; nothing else is lost with it. */
START_TEST(every_bit_of_a_pack)
{
    struct kedge_blobs *b = set_up_packed();
    enum { N = 4 };
    struct kedge_hash digest[N];
    for (size_t i = 0; i < N; i++) {
        digest[i] = i % 2 ? upload(b, &job, 30 + i, 30) : put(b, i, 30 + 20 * i);
    }
    kedge_blobs_close(b);
    struct stat st;
    ck_assert_int_eq(stat(at_pack(1), &st), 0);
    size_t found = 0, missed = 0;
    for (off_t at = 0; at < st.st_size; at++) {
        for (int bit = 0; bit < 8; bit += at % 3 ? 7 : 1) {
            uint8_t was, is;
            int fd = open(at_pack(1), O_RDWR);
            ck_assert_int_eq((int)pread(fd, &was, 1, at), 1);
            is = was ^ (uint8_t)(1 << bit);
            ck_assert_int_eq((int)pwrite(fd, &is, 1, at), 1);
            b = open_packed(true);
            size_t bad = 0;
            for (size_t i = 0; i < N; i++) {
                int err = kedge_blobs_verify(b, &digest[i], NULL);
                ck_assert(err == KEDGE_OK || err == KEDGE_E_CORRUPT || err == KEDGE_E_SEALED
                          || err == KEDGE_E_NOT_FOUND);
                bad += err != KEDGE_OK;
            }
            ck_assert_uint_le(bad, 1);
            found += bad || sweep(b).strays; /* the zeros up to the next record, too */
            missed += !bad && !sweep(b).strays;
            kedge_blobs_close(b);
            ck_assert_int_eq((int)pwrite(fd, &was, 1, at), 1);
            close(fd);
        }
    }
    ck_assert_uint_gt(found, 1000);
    ck_assert_uint_eq(missed, 0);
    tear_down(open_packed(false));
}
END_TEST

static struct kedge_fsck_counts counts;
static size_t damages, strays;

static void take_finding(void *arg, const struct kedge_fsck_finding *f)
{
    (void)arg;
    damages += f->severity == KEDGE_FSCK_DAMAGE;
    strays += f->severity == KEDGE_FSCK_STRAY;
}

static void fsck(const struct kedge_hash *refs, size_t n)
{
    struct kedge_fsck f = {.report = take_finding};
    struct kedge_fsck_blobs look = {.dir = dir,
                                    .keys_dir = keys_dir,
                                    .keys_belong_here = true,
                                    .refs = kedge_view_of(refs, n * sizeof *refs)};
    damages = strays = counts.blobs = 0;
    ck_assert_int_eq(kedge_fsck_blobs(&f, &look, &counts, NULL), KEDGE_OK);
}

static int compare_digests(const void *a, const void *b)
{
    return kedge_hash_cmp(a, b);
}

START_TEST(an_interrupted_write_is_cut_off_and_damage_is_not)
{
    struct kedge_blobs *b = set_up_packed();
    struct kedge_hash digest[3] = {put(b, 0, 100), put(b, 1, 100), put(b, 2, 100)};
    kedge_blobs_close(b);
    struct stat st;
    ck_assert_int_eq(stat(at_pack(1), &st), 0);
    off_t record = st.st_size / 3, whole = st.st_size;
    qsort(digest, 3, sizeof *digest, compare_digests); /* the refs of fsck ascend */
    fsck(digest, 3);
    ck_assert_uint_eq(counts.blobs, 3);
    ck_assert_uint_eq(damages + strays, 0);
    int fd = open(at_pack(1), O_RDWR);
    ck_assert_int_eq((int)pwrite(fd, content + 5000, 90, whole), 90); /* what a crash may leave */
    fsck(digest, 3);
    ck_assert_uint_eq(damages + strays, 0);
    b = open_packed(false);
    ck_assert_uint_eq(sweep(b).blobs, 3);
    struct kedge_hash next = put(b, 9, 10);
    ck_assert(!is_on_disk("blobs", content + 5000, 90));
    ck_assert_int_eq(kedge_blobs_remove(b, &next, NULL), KEDGE_OK);
    kedge_blobs_close(b);
    ck_assert_int_eq((int)pwrite(fd, "x", 1, record + 3), 1); /* a head in the middle */
    close(fd);
    fsck(digest, 3);
    ck_assert_uint_eq(damages, 1); /* is missing, */
    ck_assert_uint_eq(strays, 1);  /* and what is left of it is told */
    b = open_packed(false);
    ck_assert_uint_eq(sweep(b).blobs, 2);
    put(b, 5, 10);
    ck_assert_int_eq(stat(at_pack(1), &st), 0);
    ck_assert_int_gt(st.st_size, whole); /* what is damaged stays as evidence */
    tear_down(b);
}
END_TEST

static bool any(void *arg, const struct kedge_id *name)
{
    (void)arg;
    (void)name;
    return true;
}

START_TEST(a_key_stays_while_a_pack_needs_it)
{
    struct kedge_blobs *b = set_up_packed();
    struct kedge_hash digest = upload(b, &job, 400, 400);
    size_t done;
    ck_assert_int_eq(kedge_blobs_shred(b, any, NULL, &done, NULL), KEDGE_OK);
    ck_assert_uint_eq(done, 0);
    has(b, &digest, 0, 400);
    ck_assert_int_eq(kedge_blobs_remove(b, &digest, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_shred(b, any, NULL, &done, NULL), KEDGE_OK);
    ck_assert_uint_eq(done, 1);
    digest = upload(b, &job, 400, 400);
    kedge_blobs_close(b);
    ck_assert_int_eq(kedge_dir_remove(keys_dir), KEDGE_OK);
    b = open_packed(true);
    uint64_t size;
    ck_assert_int_eq(kedge_blobs_find(b, &digest, &size), KEDGE_OK); /* without the key */
    ck_assert_uint_eq(size, 400);
    ck_assert_int_eq(kedge_blobs_verify(b, &digest, NULL), KEDGE_E_SEALED);
    tear_down(b);
}
END_TEST

START_TEST(space_comes_back_when_most_is_removed)
{
    enum { N = 40, KEPT = 7, LEN = 20000 };
    struct kedge_blobs *b = set_up_packed();
    struct kedge_hash digest[N];
    uint64_t freed;
    struct stat before, after;
    for (size_t i = 0; i < N; i++) {
        digest[i] = put(b, i, LEN);
    }
    ck_assert_int_eq(kedge_blobs_compact(b, &freed, NULL), KEDGE_OK);
    ck_assert_uint_eq(freed, 0);
    ck_assert_int_eq(stat(at_pack(1), &before), 0);
    for (size_t i = 0; i < N; i++) {
        ck_assert(i == KEPT || kedge_blobs_remove(b, &digest[i], NULL) == KEDGE_OK);
    }
    ck_assert_int_eq(kedge_blobs_compact(b, &freed, NULL), KEDGE_OK);
    ck_assert_uint_gt(freed, (N - 1) * LEN);
    ck_assert(!kedge_file_exists(at_pack(1)));
    ck_assert_int_eq(stat(at_pack(2), &after), 0);
    ck_assert_int_lt(after.st_size, before.st_size / 10);
    has(b, &digest[KEPT], KEPT, LEN);
    kedge_blobs_close(b);
    b = open_packed(false);
    has(b, &digest[KEPT], KEPT, LEN);
    ck_assert_uint_eq(sweep(b).blobs, 1);
    ck_assert_int_eq(kedge_blobs_remove(b, &digest[KEPT], NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_compact(b, &freed, NULL), KEDGE_OK);
    ck_assert_uint_eq(files_below("blobs"), 0);
    struct kedge_hash next = put(b, 3, 40);
    has(b, &next, 3, 40);
    tear_down(b);
}
END_TEST

enum { THREADS = 8, EACH = 40 };

static void *put_many(void *arg)
{
    struct kedge_blobs *b = arg;
    for (size_t i = 0; i < EACH; i++) { /* all put the same: half of them at the same time */
        struct kedge_view part = kedge_view_of(content + i, 700);
        if (kedge_blobs_put(b, &part, 1, NULL, NULL) != KEDGE_OK) {
            return arg;
        }
    }
    return NULL;
}

START_TEST(threads_share_syncs)
{
    struct kedge_blobs *b = set_up_packed();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, put_many, b), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    for (int round = 0; round < 2; round++) {
        ck_assert_uint_eq(sweep(b).blobs, EACH);
        for (size_t i = 0; i < EACH; i++) {
            struct kedge_hash digest = digest_of(content + i, 700);
            has(b, &digest, i, 700);
        }
        kedge_blobs_close(b);
        b = open_packed(false);
    }
    tear_down(b);
}
END_TEST

START_TEST(two_writers_never_share_a_file)
{
    struct kedge_blobs *one = set_up_packed(), *two = open_packed(false);
    struct kedge_hash a = put(one, 0, 90), b = put(two, 1, 90), c = put(one, 2, 90);
    ck_assert(kedge_file_exists(at_pack(2)));
    kedge_blobs_close(two);
    kedge_blobs_close(one);
    one = open_packed(true);
    has(one, &a, 0, 90);
    has(one, &b, 1, 90);
    has(one, &c, 2, 90);
    tear_down(one);
}
END_TEST

START_TEST(a_full_file_is_followed_by_another)
{
    struct kedge_blobs *b = set_up_packed();
    put(b, 0, 10);
    kedge_blobs_close(b);
    ck_assert_int_eq(truncate(at_pack(1), KEDGEI_PACK_FILE_MAX - 300), 0); /* as if much had been removed */
    struct kedgei_pack_record last = {.state = KEDGEI_PACK_REMOVED};
    uint8_t head[KEDGEI_PACK_HEAD];
    kedgei_pack_head_write(&last, head);
    int fd = open(at_pack(1), O_WRONLY);
    ck_assert_int_eq((int)pwrite(fd, head, sizeof head, KEDGEI_PACK_FILE_MAX - 512), (int)sizeof head);
    close(fd);
    b = open_packed(false);
    struct kedge_hash fits = put(b, 1, 100), next = put(b, 2, 1000);
    struct stat st;
    ck_assert_int_eq(stat(at_pack(1), &st), 0);
    ck_assert_int_le(st.st_size, KEDGEI_PACK_FILE_MAX);
    ck_assert(kedge_file_exists(at_pack(2)));
    for (int round = 0; round < 2; round++) {
        has(b, &fits, 1, 100);
        has(b, &next, 2, 1000);
        kedge_blobs_close(b);
        b = open_packed(round == 0);
    }
    tear_down(b);
}
END_TEST

START_TEST(stored_bytes_move_to_another_store)
{
    struct kedge_blobs_options options = {.pack = true, .sync_later = true};
    struct kedge_blobs *b = set_up_packed(), *to;
    struct kedge_hash digest = upload(b, &job, 700, 700), gone = put(b, 4, 90), large = put(b, 0, CHUNK + 1);
    char other[80], path[KEDGE_PATH_MAX], away[KEDGE_PATH_MAX];
    snprintf(other, sizeof other, "%s/copy", dir);
    ck_assert_int_eq(kedge_blobs_open(other, &options, &to, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_path(b, &large, path), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_take(to, &large, path, NULL), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_blobs_path(b, &gone, away), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_remove(b, &gone, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_take(to, &gone, away, NULL), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_blobs_path(b, &digest, path), KEDGE_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(kedge_blobs_take(to, &digest, path, NULL), KEDGE_OK);
    }
    ck_assert_int_eq(kedge_blobs_verify(to, &digest, NULL), KEDGE_E_SEALED); /* as it is stored */
    kedge_blobs_close(to);
    options = (struct kedge_blobs_options){.keys_dir = keys_dir, .read_only = true};
    ck_assert_int_eq(kedge_blobs_open(other, &options, &to, NULL), KEDGE_OK);
    has(to, &digest, 0, 700);
    kedge_blobs_close(to);
    tear_down(b);
}
END_TEST

START_TEST(names_that_are_none)
{
    static const char *const bad[] = {"pack-0",  "pack-",        "pack-01", "pack-1x",
                                      "pack--1", "pack-1048576", "pack",    "pack-99999999999999999999",
                                      "Pack-1"};
    uint32_t number;
    char file[KEDGE_PATH_MAX];
    uint64_t offset, len;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!kedgei_pack_name(bad[i], &number), "%s", bad[i]);
    }
    ck_assert(kedgei_pack_name("pack-1048575", &number));
    ck_assert(!kedgei_pack_place("/a@1+2/blobs/ab/cd", file, &offset, &len));
    ck_assert_str_eq(file, "/a@1+2/blobs/ab/cd");
    ck_assert(!kedgei_pack_place("/a/pack-0@1+2", file, &offset, &len));
    ck_assert_str_eq(file, "/a/pack-0@1+2");
    ck_assert(kedgei_pack_place("/a@1+2/pack-3@64+2", file, &offset, &len));
    ck_assert_str_eq(file, "/a@1+2/pack-3");
    ck_assert_uint_eq(offset, 64);
    struct kedge_blobs *b = set_up_packed(); /* a folder or link that is called so is a stray */
    ck_assert_int_eq(mkdir(at_pack(4), 0700), 0);
    ck_assert_int_eq(symlink("/etc/passwd", at_pack(5)), 0);
    kedge_blobs_close(b);
    b = open_packed(false);
    ck_assert_uint_eq(sweep(b).strays, 1);
    tear_down(b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store packs");
    TCase *t = tcase_create("packs");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, small_ones_share_a_file_and_large_ones_do_not);
    tcase_add_test(t, readers_see_what_comes_and_goes_beside_them);
    tcase_add_test(t, what_is_removed_is_overwritten);
    tcase_add_test(t, an_upload_that_was_removed_does_not_come_back);
    tcase_add_test(t, a_damaged_blob_is_found_and_put_anew);
    tcase_add_test(t, every_bit_of_a_pack);
    tcase_add_test(t, an_interrupted_write_is_cut_off_and_damage_is_not);
    tcase_add_test(t, a_key_stays_while_a_pack_needs_it);
    tcase_add_test(t, space_comes_back_when_most_is_removed);
    tcase_add_test(t, threads_share_syncs);
    tcase_add_test(t, two_writers_never_share_a_file);
    tcase_add_test(t, a_full_file_is_followed_by_another);
    tcase_add_test(t, stored_bytes_move_to_another_store);
    tcase_add_test(t, names_that_are_none);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
