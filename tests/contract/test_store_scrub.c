/* What a closed store's file holds besides its records: nothing; and when it is left as it is. */
#include "marks_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/rng.h"
#include "ledger_fixture.h"

START_TEST(a_closed_file_holds_each_record_once)
{
    struct tally t;
    make_dir();
    struct kedge_kv *kv = open_store(false);
    write_records(kv, true);
    count_marks(&t); /* the control: copies there are */
    size_t old_states = 0, doubled = 0;
    for (unsigned i = 0; i < RECORDS; i++) {
        old_states += i < RECORDS - 1 && t.states[i] > 0;
        doubled += t.entries[i] > len_of(i) / MARK;
    }
    ck_assert_uint_gt(old_states, 0);
    ck_assert_uint_gt(doubled, 3);
    /* what a transaction leaves that died before its commit */
    int fd = open(marks_file, O_WRONLY | O_APPEND);
    uint8_t remains[10 * MARK];
    fill(remains, sizeof remains, 0, 1);
    ck_assert_int_eq(write(fd, remains, sizeof remains), sizeof remains);
    close(fd);
    kedge_kv_close(kv);
    check_clean(true);
    kv = open_store(true);
    check_records(kv, true);
    kedge_kv_close(kv);
    kv = open_store(false); /* and it can be written on */
    check_records(kv, true);
    put(kv, KEDGE_KV_META, 2, 0, RECORD);
    check_records(kv, true);
    kedge_kv_close(kv);
    check_clean(true);
    struct stat before, after;
    ck_assert_int_eq(stat(marks_file, &before), 0);
    kedge_os_sleep_ms(30);
    kedge_kv_close(open_store(false)); /* with nothing to do it writes nothing */
    ck_assert_int_eq(stat(marks_file, &after), 0);
    ck_assert_int_eq(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
    ck_assert_int_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    ck_assert_int_eq(kedge_dir_remove(marks_dir), KEDGE_OK);
}
END_TEST

/* Records of any length come, change and go, many and few at a time, beside readers that keep old pages and
 * transactions that are dropped: trees with branches, lists of freed pages that fill pages of their own. */
enum { KEYS = 3000, COMMITS = 120, CLOSES = 3 };

static size_t len_in_marks(struct kedge_rng *rng)
{
    uint64_t kind = kedge_rng_below(rng, 20);
    return kind < 7 ? 0 : 1 + (size_t)kedge_rng_below(rng, kind < 19 ? 60 : MORE_PAGES / MARK);
}

/* Changes some records in one transaction; `marks` are what each is long. */
static void change_some(struct kedge_kv *kv, unsigned g, size_t marks[KEYS], struct kedge_rng *rng)
{
    static uint8_t bytes[MORE_PAGES];
    static size_t next[KEYS];
    struct kedge_kv_tx *tx = begin(kv, true);
    memcpy(next, marks, sizeof next);
    for (uint64_t k = kedge_rng_below(rng, 10) == 0 ? 2500 : 20; k > 0; k--) {
        uint8_t key[8];
        unsigned i = (unsigned)kedge_rng_below(rng, KEYS);
        size_t len = MARK * (next[i] = len_in_marks(rng));
        fill(bytes, len, g, i);
        int err = len > 0 ? kedge_kv_put(tx, KEDGE_KV_STATE, key_of(i, key), kedge_view_of(bytes, len),
                                         KEDGE_KV_PUT)
                          : kedge_kv_del(tx, KEDGE_KV_STATE, key_of(i, key));
        ck_assert(err == KEDGE_OK || (len == 0 && err == KEDGE_E_NOT_FOUND));
    }
    if (kedge_rng_below(rng, 6) == 0) {
        kedge_kv_abort(tx);
    } else {
        ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
        memcpy(marks, next, sizeof next);
    }
}

static size_t count_all(void)
{
    struct kedge_buf b;
    size_t count = 0;
    read_file(&b);
    for (size_t at = 0; at + 5 <= b.len; at++) {
        count += memcmp(b.ptr + at, "<rec ", 5) == 0;
    }
    kedge_buf_deinit(&b);
    return count;
}

START_TEST(whatever_was_written_before)
{
    static size_t marks[KEYS];
    struct kedge_kv_lmdb_options options = {.create = true, .unsafe_no_sync = true};
    struct kedge_rng rng;
    struct kedge_kv *kv;
    make_dir();
    memset(marks, 0, sizeof marks);
    kedge_rng_init(&rng, 5, KEDGE_RNG_TEST, 0, 0);
    for (unsigned run = 0; run < CLOSES; run++) {
        struct kedge_kv_tx *reader = NULL;
        size_t live = 0;
        ck_assert_int_eq(kedge_kv_lmdb_open(marks_dir, &options, &kv, NULL), KEDGE_OK);
        for (unsigned n = 0; n < COMMITS; n++) {
            if (kedge_rng_below(&rng, 8) == 0) {
                kedge_kv_abort(reader);
                reader = reader ? NULL : begin(kv, false);
            }
            change_some(kv, run * COMMITS + n, marks, &rng);
        }
        kedge_kv_abort(reader);
        for (unsigned i = 0; i < KEYS; i++) {
            live += marks[i];
        }
        ck_assert_uint_gt(count_all(), live);
        kedge_kv_close(kv);
        ck_assert_uint_eq(count_all(), live);
    }
    ck_assert_int_eq(kedge_dir_remove(marks_dir), KEDGE_OK);
}
END_TEST

/* ---- readers ---- */

struct reader {
    pid_t pid;
    int said, go;
};

static _Noreturn void be_reader(int said, int go)
{
    struct kedge_kv_lmdb_options options = {.read_only = true};
    struct kedge_kv *kv;
    struct kedge_kv_tx *tx;
    char byte;
    if (read(go, &byte, 1) != 1 || kedge_kv_lmdb_open(marks_dir, &options, &kv, NULL)
        || kedge_kv_begin(kv, false, &tx, NULL) || !holds(tx, NEWEST_STATE, 0, RECORD)
        || write(said, &byte, 1) != 1 || read(go, &byte, 1) != 1) {
        _exit(1);
    }
    bool same = holds(tx, NEWEST_STATE, 0, RECORD);
    for (unsigned i = 0; i < RECORDS; i++) {
        same = same && holds(tx, 0, i, len_of(i)) && holds(tx, 1, i, RECORD) == (i % 3 != 0);
    }
    kedge_kv_abort(tx);
    kedge_kv_close(kv);
    _exit(same ? 0 : 2);
}

/* Another process: at the first word it looks at the store, at the second again. Exit code 0: it saw the
 * same whole state both times. To be started before this process has the store open. */
static struct reader start_reader(void)
{
    int said[2], go[2];
    ck_assert_int_eq(pipe(said), 0);
    ck_assert_int_eq(pipe(go), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(go[1]);
        be_reader(said[1], go[0]);
    }
    close(said[1]);
    close(go[0]);
    return (struct reader){pid, said[0], go[1]};
}

static void let_look(const struct reader *r)
{
    char byte;
    ck_assert_int_eq(write(r->go, "", 1), 1);
    ck_assert_int_eq(read(r->said, &byte, 1), 1);
}

static void end_reader(const struct reader *r)
{
    int status = -1;
    ck_assert_int_eq(write(r->go, "", 1), 1);
    ck_assert_int_eq(waitpid(r->pid, &status, 0), r->pid);
    ck_assert_int_eq(status, 0);
    close(r->said);
    close(r->go);
}

/* 0: a reader sees the newest state, which is not touched. 1: an older one, so nothing is. */
START_TEST(readers_keep_what_they_see)
{
    make_dir();
    struct reader r = start_reader();
    struct kedge_kv *kv = open_store(false);
    write_records(kv, true);
    let_look(&r);
    if (_i == 1) {
        struct kedge_buf before, after;
        put(kv, KEDGE_KV_STATE, 100, 0, RECORD);
        put(kv, KEDGE_KV_STATE, 101, 0, RECORD);
        read_file(&before);
        kedge_kv_close(kv);
        read_file(&after);
        ck_assert(kedge_view_eq(kedge_buf_view(&before), kedge_buf_view(&after)));
        kedge_buf_deinit(&before);
        kedge_buf_deinit(&after);
        end_reader(&r);
        kv = open_store(false);
        put(kv, KEDGE_KV_STATE, NEWEST_STATE, 0, RECORD);
        kedge_kv_close(kv);
        check_clean(true);
    } else {
        kedge_kv_close(kv);
        check_clean(true);
        end_reader(&r);
    }
    ck_assert_int_eq(kedge_dir_remove(marks_dir), KEDGE_OK);
}
END_TEST

/* ---- when nothing is emptied ---- */

START_TEST(evidence_is_kept)
{
    struct fixture f;
    struct kedge_buf before, after;
    fixture_init(&f);
    snprintf(marks_file, sizeof marks_file, "%s/data.mdb", f.store);
    f.kv = fixture_lmdb(f.store, true);
    fixture_must_open(&f, true);
    ck_assert_int_eq(append_range(f.l, 0, 20, 1, NULL), KEDGE_OK);
    kedge_ledger_close(f.l);
    f.l = NULL;
    ck_assert_int_eq(unlink(f.mark), 0);
    read_file(&before);
    ck_assert_int_eq(fixture_open(&f, false, NULL), KEDGE_E_CORRUPT); /* the high-water mark is gone */
    kedge_kv_close(f.kv);
    f.kv = NULL;
    read_file(&after);
    ck_assert(kedge_view_eq(kedge_buf_view(&before), kedge_buf_view(&after)));
    kedge_buf_deinit(&after);
    f.kv = fixture_lmdb(f.store, false);
    kedge_kv_close(f.kv); /* the control: there was something to empty */
    f.kv = NULL;
    read_file(&after);
    ck_assert(!kedge_view_eq(kedge_buf_view(&before), kedge_buf_view(&after)));
    kedge_buf_deinit(&before);
    kedge_buf_deinit(&after);
    fixture_deinit(&f);
}
END_TEST

/* Damage that a reader meets while all goes well for the writer, which then closes in good order. */
START_TEST(damage_that_a_read_finds_is_evidence)
{
    struct fixture f;
    struct kedge_buf before, after, entry;
    fixture_init(&f);
    snprintf(marks_file, sizeof marks_file, "%s/data.mdb", f.store);
    f.kv = fixture_lmdb(f.store, true);
    fixture_must_open(&f, true);
    ck_assert_int_eq(append_range(f.l, 0, 200, 7, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_flush(f.l, NULL), KEDGE_OK);
    read_file(&before);
    int fd = open(marks_file, O_WRONLY);
    size_t flipped = 0;
    for (size_t at = 0; at + 7 <= before.len; at++) { /* every copy of an old entry */
        if (memcmp(before.ptr + at, "entry-3", 7) == 0) {
            ck_assert_int_eq(pwrite(fd, "E", 1, (off_t)at), 1);
            flipped++;
        }
    }
    close(fd);
    ck_assert_uint_gt(flipped, 0);
    kedge_buf_deinit(&before);
    read_file(&before);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    if (_i > 0) { /* the control: nobody has read it */
        ck_assert_int_eq(kedge_ledger_get(f.l, 3, &entry), KEDGE_E_CORRUPT);
    }
    kedge_ledger_close(f.l);
    f.l = NULL;
    kedge_kv_close(f.kv);
    f.kv = NULL;
    read_file(&after);
    ck_assert_int_eq(kedge_view_eq(kedge_buf_view(&before), kedge_buf_view(&after)), _i > 0);
    kedge_buf_deinit(&before);
    kedge_buf_deinit(&after);
    kedge_buf_deinit(&entry);
    fixture_deinit(&f);
}
END_TEST

START_TEST(lack_of_memory_leaves_it_for_the_next_close)
{
    struct kedge_buf dirty, now;
    make_dir();
    struct kedge_kv *kv = open_store(false);
    write_records(kv, true);
    read_file(&dirty);
    bool is_done = false;
    for (long n = 1; !is_done; n++) {
        ck_assert_int_lt(n, 100);
        kedge_mem_fail_at(n);
        kedge_kv_close(kv);
        kedge_mem_fail_at(0);
        read_file(&now);
        is_done = !kedge_view_eq(kedge_buf_view(&now), kedge_buf_view(&dirty));
        kedge_buf_deinit(&now);
        kv = open_store(false);
        check_records(kv, true);
    }
    kedge_kv_close(kv);
    check_clean(true);
    kedge_buf_deinit(&dirty);
    ck_assert_int_eq(kedge_dir_remove(marks_dir), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store scrub");
    TCase *t = tcase_create("close");
    tcase_set_timeout(t, 100);
    tcase_add_test(t, a_closed_file_holds_each_record_once);
    tcase_add_test(t, whatever_was_written_before);
    tcase_add_loop_test(t, readers_keep_what_they_see, 0, 2);
    tcase_add_test(t, evidence_is_kept);
    tcase_add_loop_test(t, damage_that_a_read_finds_is_evidence, 0, 2);
    tcase_add_test(t, lack_of_memory_leaves_it_for_the_next_close);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
