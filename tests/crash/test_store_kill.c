/* kill -9 at random instants, and bits flipped in the file of a ledger. Every verdict on a damaged file
 * is made in a child process, for LMDB may crash on it; this process never does. */
#include "../contract/ledger_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chain/store/blob/guard.h"
#include "common/base/os/clock.h"
#include "common/base/rng.h"
#include "tests/fixtures/effort.h"

enum {
    STORES = EFFORT(20, 2),
    ROUNDS = 50, /* of each store: 1,000 kills together, with sanitizers 100 */
    BATCH = 7,
    CLOSE_EVERY = 5,
    LIFE_MS_MAX = 12,
    KEPT = 64, /* checkpoints that are remembered */
    FLIPS = EFFORT(300, 60),
    FLIP_ENTRIES = 300
};

/* A checkpoint that was handed out. */
struct handed {
    uint64_t size;
    struct kedge_hash root;
};

static void open_victim(struct fixture *f)
{
    struct kedge_kv_lmdb_options options = {.create = false};
    if (kedge_kv_lmdb_open(f->store, &options, &f->kv, NULL) || fixture_open(f, false, NULL)) {
        _exit(1);
    }
}

/* The victim: appends without end, tells each checkpoint that it was given, and closes the store now and
 * then, which overwrites what is unused, to open it again. */
static _Noreturn void append_until_killed(struct fixture *f, int fd)
{
    open_victim(f);
    for (uint64_t size = kedge_ledger_size(f->l);; size += BATCH) {
        struct kedge_ledger_append items[BATCH];
        char texts[BATCH][48];
        for (size_t i = 0; i < BATCH; i++) { /* another process, other entries: histories can be told apart */
            unsigned long long number = size + i;
            int n = snprintf(texts[i], sizeof texts[i], "entry-%llu-%d", number, (int)getpid());
            items[i] = (struct kedge_ledger_append){.entry = kedge_view_of(texts[i], (size_t)n)};
            items[i].idem_key = items[i].entry;
        }
        struct handed h = {.size = size + BATCH};
        if (kedge_ledger_append(f->l, items, BATCH, NULL, NULL, NULL)
            || kedge_ledger_root(f->l, h.size, &h.root) || write(fd, &h, sizeof h) != sizeof h) {
            _exit(2);
        }
        if (h.size / BATCH % CLOSE_EVERY == 0) {
            kedge_ledger_close(f->l);
            kedge_kv_close(f->kv);
            open_victim(f);
        }
    }
}

/* The last KEPT checkpoints, in a ring. */
struct memory {
    struct handed handed[KEPT];
    uint64_t count;
};

static void remember(struct memory *m, const struct handed *h)
{
    m->handed[m->count++ % KEPT] = *h;
}

/* Starts, kills after life_ms (counted from the first acknowledgement when `working`, else from the
 * start, so that deaths while opening occur too); false when nothing was acknowledged. */
static bool run_victim(struct fixture *f, struct memory *m, uint32_t life_ms, bool working)
{
    int fds[2];
    struct handed h;
    uint64_t before = m->count;
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_gt(fcntl(fds[1], F_SETPIPE_SZ, 1 << 20), 0); /* it never waits for us */
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(fds[0]);
        append_until_killed(f, fds[1]);
    }
    close(fds[1]);
    if (working) {
        ck_assert_int_eq(read(fds[0], &h, sizeof h), sizeof h);
        remember(m, &h);
    }
    kedge_os_sleep_ms(life_ms);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSIGNALED(status), "the victim ended by itself: %d", status);
    while (read(fds[0], &h, sizeof h) == sizeof h) {
        remember(m, &h);
    }
    close(fds[0]);
    return m->count > before;
}

/* Nothing acknowledged is lost, nothing half is there, and no checkpoint is contradicted. */
static void check_after_kill(struct fixture *f, const struct memory *m, uint64_t before)
{
    uint64_t size = kedge_ledger_size(f->l), head;
    uint64_t told = m->count > 0 ? m->handed[(m->count - 1) % KEPT].size : 0;
    uint64_t least = told > before ? told : before;
    ck_assert_uint_ge(size, least);
    ck_assert_uint_le(size, least + BATCH);
    ck_assert_uint_eq(size % BATCH, 0);
    ck_assert_int_eq(kedge_ledger_checkpoint(f->l, NULL, &head), KEDGE_OK);
    ck_assert_uint_eq(head, size);
    for (uint64_t i = 0; i < KEPT && i < m->count; i++) {
        struct kedge_hash root;
        ck_assert_int_eq(kedge_ledger_root(f->l, m->handed[i].size, &root), KEDGE_OK);
        ck_assert(kedge_hash_eq(&root, &m->handed[i].root));
    }
}

START_TEST(kill_9_loses_nothing)
{
    struct fixture f;
    static struct memory m;
    m.count = 0;
    fixture_init(&f);
    f.kv = fixture_lmdb(f.store, true);
    fixture_must_open(&f, true);
    struct kedge_rng rng;
    kedge_rng_init(&rng, 1, KEDGE_RNG_TEST, (uint64_t)_i, 0);
    uint64_t size = 0, grown = 0;
    for (int round = 0; round < ROUNDS; round++) {
        kedge_ledger_close(f.l);
        kedge_kv_close(f.kv);
        f.l = NULL;
        f.kv = NULL;
        (void)run_victim(&f, &m, (uint32_t)kedge_rng_below(&rng, LIFE_MS_MAX), round % 2 == 0);
        f.kv = fixture_lmdb(f.store, false);
        fixture_must_open(&f, false);
        check_after_kill(&f, &m, size);
        grown += kedge_ledger_size(f.l) > size;
        size = kedge_ledger_size(f.l);
        if (round % 10 == 9) {
            check_is_clean(f.l);
        }
    }
    ck_assert_uint_ge(grown, ROUNDS / 3); /* the victims did work before they died */
    fixture_deinit(&f);
}
END_TEST

/* ---- bit flips ---- */

static int add_record(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct kedge_hash *running = arg;
    struct kedge_hash record;
    kedge_sha256_2(key, value, &record);
    kedge_sha256_2(kedge_view_of(running->b, KEDGE_HASH_LEN), kedge_view_of(record.b, KEDGE_HASH_LEN),
                   running);
    return 0;
}

static struct kedge_kv *open_copy(const char *dir, int *ret_err)
{
    struct kedge_kv_lmdb_options options = {.read_only = true, .no_lock = true};
    struct kedge_kv *kv = NULL;
    *ret_err = kedge_kv_lmdb_open(dir, &options, &kv, NULL);
    return kv;
}

/* Digest of everything that reads of the store return. */
static int digest_all(void *arg, struct kedge_buf *ret_out, struct kedge_diag *reterr)
{
    (void)reterr;
    int err;
    struct kedge_kv *kv = open_copy(arg, &err);
    struct kedge_kv_tx *tx;
    err = err ? err : kedge_kv_begin(kv, false, &tx, NULL);
    struct kedge_hash running = {{0}};
    struct kedge_view all = {NULL, 0};
    for (int t = 0; t < KEDGE_KV_TABLES && !err; t++) {
        err = kedge_kv_scan(tx, (enum kedge_kv_table)t, all, all, add_record, &running);
    }
    kedge_buf_put(ret_out, running.b, KEDGE_HASH_LEN);
    return err;
}

static int check_all(void *arg, struct kedge_buf *ret_out, struct kedge_diag *reterr)
{
    (void)ret_out;
    int err;
    struct kedge_kv *kv = open_copy(arg, &err);
    struct kedge_ledger_options options = {.origin = ORIGIN};
    struct kedge_ledger *l;
    err = err ? err : kedge_ledger_open(kv, &options, &l, reterr);
    return err ? err : kedge_ledger_check(l, NULL, NULL, reterr);
}

START_TEST(every_flip_that_a_read_returns_is_found)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = fixture_lmdb(f.store, true);
    fixture_must_open(&f, true);
    static char texts[FLIP_ENTRIES][600];
    for (uint64_t i = 0; i < FLIP_ENTRIES; i++) {
        int n = snprintf(texts[i], sizeof texts[i], "%0*llu", (int)(100 + i), (unsigned long long)i);
        struct kedge_ledger_append item = {.entry = kedge_view_of(texts[i], (size_t)n)};
        item.idem_key = kedge_view_of(texts[i] + n - 10, 10);
        ck_assert_int_eq(kedge_ledger_append(f.l, &item, 1, NULL, NULL, NULL), KEDGE_OK);
    }
    kedge_ledger_close(f.l);
    kedge_kv_close(f.kv);
    f.l = NULL;
    f.kv = NULL;
    struct kedge_buf good, now;
    kedge_buf_init(&good, KEDGE_HASH_LEN);
    kedge_buf_init(&now, KEDGE_HASH_LEN);
    ck_assert_int_eq(kedge_store_guarded(digest_all, f.store, 0, &good, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_store_guarded(check_all, f.store, 0, NULL, NULL), KEDGE_OK);
    char path[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%s/data.mdb", f.store);
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    uint64_t size = (uint64_t)kedge_file_size(path);
    struct kedge_rng rng;
    kedge_rng_init(&rng, 2, KEDGE_RNG_TEST, 0, 0);
    size_t visible = 0, missed = 0;
    for (int i = 0; i < FLIPS; i++) {
        uint64_t at = kedge_rng_below(&rng, size);
        uint8_t byte, flipped;
        ck_assert_int_eq(pread(fd, &byte, 1, (off_t)at), 1);
        flipped = byte ^ (uint8_t)(1u << kedge_rng_below(&rng, 8));
        ck_assert_int_eq(pwrite(fd, &flipped, 1, (off_t)at), 1);
        kedge_buf_clear(&now);
        int err = kedge_store_guarded(digest_all, f.store, 10000, &now, NULL);
        bool is_visible = err || !kedge_view_eq(kedge_buf_view(&good), kedge_buf_view(&now));
        int verdict = kedge_store_guarded(check_all, f.store, 10000, NULL, NULL);
        visible += is_visible;
        if (is_visible && verdict == KEDGE_OK) {
            missed++;
            fprintf(stderr, "flip at byte %llu was not found\n", (unsigned long long)at);
        }
        ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
    }
    close(fd);
    printf("bit flips: %d made, %zu visible to reads, %zu missed\n", FLIPS, visible, missed);
    ck_assert_uint_gt(visible, FLIPS / 20);
    ck_assert_uint_eq(missed, 0);
    kedge_buf_deinit(&good);
    kedge_buf_deinit(&now);
    fixture_deinit(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store kill");
    TCase *t = tcase_create("crash");
    tcase_set_timeout(t, 100);
    tcase_add_loop_test(t, kill_9_loses_nothing, 0, STORES);
    tcase_add_test(t, every_flip_that_a_read_returns_is_found);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
