/* Power loss: the writes of a ledger and of its high-water mark are logged on their way to the disk, and
 * crash images are made of them (disk_model.h). On each image the ledger is opened for signing, as after a
 * restart: it must hold all that had been acknowledged, undamaged; then it is gone on with by other entries,
 * and no checkpoint that was handed out before may contradict what it signs now. Positive controls: with
 * LMDB's flushes off the same images must show losses, and without the mark forks, or the model proves
 * nothing. The log goes on through the close, which overwrites what is unused.
 *
 * Each day other images: KEDGE_TEST_TURN=N repeats a day's. KEDGE_CRASH_IMAGES=N makes N different images
 * instead of 2,000. */
#include "disk_model.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../contract/ledger_fixture.h"
#include "chain/store/blob/guard.h"
#include "common/base/os/clock.h"
#include "common/base/text.h"
#include "tests/fixtures/effort.h"

enum {
    BATCHES = 32,
    AFTER = 3, /* entries after the restart */
    WORKERS_MAX = 8,
    SEEN_SLOTS = 1 << 20,
    IMAGES_DEFAULT = 2000,
    IMAGES_FEW = 500,
    IMAGES_CONTROL = 300,
    ROUNDS_MAX = 1000,
    LIMIT_MS = 10000,
};

/* What was acknowledged: the checkpoint's size and root. */
static struct {
    uint64_t size;
    struct kedge_hash root;
} acknowledged[BATCHES + 2];
static uint64_t acknowledged_count;
static size_t close_op; /* the first of the close */

/* What the model is run on: LMDB's flushes; none; or a last commit whose writer was killed before its flush
 * was done, after which another opens the store and closes it. */
enum run { RUN_SYNC, RUN_NO_SYNC, RUN_KILLED };

struct tally {
    uint64_t images, lost, forks, broken; /* shared by all workers */
};

/* ---- the run ---- */

static void start_log(struct fixture *f)
{
    char path[KEDGE_PATH_MAX];
    struct stat st;
    struct kedge_buf start[FILES];
    snprintf(path, sizeof path, "%s/data.mdb", f->store);
    const char *const paths[FILES] = {path, f->mark};
    for (unsigned i = 0; i < FILES; i++) {
        kedge_buf_init(&start[i], IMAGE_MAX);
        ck_assert_int_eq(stat(paths[i], &st), 0);
        ck_assert_int_eq(kedge_file_read(paths[i], &start[i], NULL), KEDGE_OK);
        logged_inodes[i] = st.st_ino;
        struct op *whole = add_op(OP_WRITE, i, 0);
        whole->data = start[i].ptr;
        whole->len = start[i].len;
        (void)add_op(OP_FLUSH, i, 0);
    }
    is_logging = true;
}

static void acknowledge(struct fixture *f)
{
    uint64_t size = kedge_ledger_size(f->l);
    acknowledged[acknowledged_count].size = size;
    ck_assert_int_eq(kedge_ledger_root(f->l, size, &acknowledged[acknowledged_count].root), KEDGE_OK);
    (void)add_op(OP_ACKNOWLEDGE, 0, ++acknowledged_count);
}

static void record_run(struct fixture *f, enum run run)
{
    struct kedge_kv_lmdb_options options = {.create = true, .unsafe_no_sync = run == RUN_NO_SYNC};
    f->kv = fixture_lmdb(f->store, true); /* made and with its mark, before the log begins */
    fixture_must_open(f, true);
    kedge_ledger_close(f->l);
    kedge_kv_close(f->kv);
    f->l = NULL;
    acknowledged_count = 0;
    start_log(f);
    ck_assert_int_eq(kedge_kv_lmdb_open(f->store, &options, &f->kv, NULL), KEDGE_OK);
    fixture_must_open(f, false);
    for (uint64_t i = 0; i < BATCHES; i++) {
        uint64_t size = kedge_ledger_size(f->l);
        ck_assert_int_eq(append_range(f->l, size, size + 1 + i % 9, KEDGE_APPEND_MAX, NULL), KEDGE_OK);
        acknowledge(f);
    }
    is_flush_late = run == RUN_KILLED; /* nobody was told of what follows */
    uint64_t size = kedge_ledger_size(f->l);
    ck_assert_int_eq(append_range(f->l, size, size + 1, 1, NULL), KEDGE_OK);
    kedge_ledger_close(f->l);
    is_flush_late = false;
    close_op = op_count;
    kedge_kv_close(f->kv);
    is_logging = false;
    ck_assert_uint_gt(op_count, close_op + 10); /* there was something to overwrite */
    f->l = NULL;
    f->kv = NULL;
}

/* ---- the verdict on one image ---- */

struct judged {
    const char *dir, *mark; /* mark NULL: the control without one */
    const struct kedge_key_pair *key;
    uint64_t acknowledged;
};

static int append_others(struct kedge_ledger *l, struct kedge_diag *d)
{
    struct kedge_ledger_append items[AFTER];
    char texts[AFTER][32];
    for (size_t i = 0; i < AFTER; i++) {
        int n = snprintf(texts[i], sizeof texts[i], "after-%zu", i);
        items[i] = (struct kedge_ledger_append){.entry = kedge_view_of(texts[i], (size_t)n)};
    }
    return kedge_ledger_append(l, items, AFTER, NULL, NULL, d);
}

/* KEDGE_E_NOT_FOUND: something acknowledged is lost; KEDGE_E_FORK: and another history was signed. */
static int judge(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    (void)ret_out;
    const struct judged *j = arg;
    struct kedge_kv_lmdb_options options = {.create = false};
    struct kedge_kv *kv;
    struct kedge_ledger *l;
    uint64_t newest = j->acknowledged > 0 ? acknowledged[j->acknowledged - 1].size : 0;
    int err = kedge_kv_lmdb_open(j->dir, &options, &kv, d);
    struct kedge_ledger_options ledger = {.origin = ORIGIN, .key = j->key, .high_water_path = j->mark};
    err = err ? err : kedge_ledger_open(kv, &ledger, &l, d);
    if (err) {
        return err;
    }
    bool is_lost = kedge_ledger_size(l) < newest;
    err = append_others(l, d);
    err = err ? err : kedge_ledger_check(l, NULL, NULL, d);
    for (uint64_t i = 0; i < j->acknowledged && !err; i++) {
        struct kedge_hash root;
        bool there = acknowledged[i].size <= kedge_ledger_size(l);
        err = there ? kedge_ledger_root(l, acknowledged[i].size, &root) : KEDGE_OK;
        if (!err && there && !kedge_hash_eq(&root, &acknowledged[i].root)) {
            err = KEDGE_E_FORK;
        }
    }
    return err || !is_lost ? err : KEDGE_E_NOT_FOUND;
}

static void put_image(const char *path, const struct disk_file *f)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, f->image, f->image_len, 0), (ssize_t)f->image_len);
    close(fd);
}

static void judge_image(const struct fixture *f, const struct disk *d, const char *dir, bool has_mark,
                        struct tally *t)
{
    char path[KEDGE_PATH_MAX], mark[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%s/lock.mdb", dir);
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/data.mdb", dir);
    snprintf(mark, sizeof mark, "%s.mark", dir);
    put_image(path, &d->files[0]);
    put_image(mark, &d->files[1]);
    struct judged j = {dir, has_mark ? mark : NULL, &f->key, d->acknowledged};
    struct kedge_diag diag = {.text = ""};
    int err = kedge_store_guarded(judge, &j, LIMIT_MS, NULL, &diag);
    __atomic_fetch_add(err == KEDGE_E_FORK        ? &t->forks
                       : err == KEDGE_E_NOT_FOUND ? &t->lost
                       : err                      ? &t->broken
                                                  : &t->images,
                       1, __ATOMIC_RELAXED);
    if (err) {
        __atomic_fetch_add(&t->images, 1, __ATOMIC_RELAXED);
    }
}

/* ---- all images ---- */

static uint64_t wanted; /* different images, of all workers */
static uint64_t turn;   /* the generator's seed */

/* True for an image that no worker has had; open addressing over the first bytes of their digests. */
static bool is_new(uint64_t *seen, const struct disk *d)
{
    struct kedge_hasher *h;
    struct kedge_hash digest;
    uint8_t tail[8];
    kedge_store_be64(tail, d->acknowledged);
    ck_assert_int_eq(kedge_hasher_new(&h), KEDGE_OK);
    for (unsigned i = 0; i < FILES; i++) {
        kedge_hasher_update(h, kedge_view_of(d->files[i].image, d->files[i].image_len));
    }
    kedge_hasher_update(h, kedge_view_of(tail, sizeof tail));
    kedge_hasher_final(h, &digest);
    kedge_hasher_free(h);
    uint64_t name = kedge_load_be64(digest.b) | 1;
    for (uint64_t at = name % SEEN_SLOTS;; at = (at + 1) % SEEN_SLOTS) {
        uint64_t empty = 0;
        if (__atomic_compare_exchange_n(&seen[at], &empty, name, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            return true;
        }
        if (empty == name) {
            return false;
        }
    }
}

/* Walks the log again and again with another seed; at each operation one image. */
static void run_worker(const struct fixture *f, unsigned worker, bool has_mark, uint64_t *seen,
                       struct tally *t)
{
    char dir[80];
    snprintf(dir, sizeof dir, "%s/image-%u", f->dir, worker);
    ck_assert_int_eq(kedge_dir_make(dir, 0700, NULL), KEDGE_OK);
    struct disk *d = disk_new();
    for (uint64_t round = 0; round < ROUNDS_MAX; round++) {
        struct kedge_rng rng;
        kedge_rng_init(&rng, turn, KEDGE_RNG_TEST, worker, round);
        for (unsigned i = 0; i < FILES; i++) {
            d->files[i].pending_count = d->files[i].durable_len = 0;
        }
        d->acknowledged = 0;
        for (size_t i = 0; i < op_count; i++) {
            if (i > 3) {
                crash(d, &ops[i], &rng);
                if (__atomic_load_n(&t->images, __ATOMIC_RELAXED) >= wanted) {
                    disk_free(d);
                    return;
                }
                if (is_new(seen, d)) {
                    judge_image(f, d, dir, has_mark, t);
                }
            }
            step(d, &ops[i]);
        }
    }
    disk_free(d);
}

static unsigned worker_count(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > WORKERS_MAX ? WORKERS_MAX : (unsigned)n;
}

static struct tally run_model(enum run run, bool has_mark, uint64_t images, const char *what)
{
    struct fixture f;
    uint64_t start = kedge_os_now_ns();
    fixture_init(&f);
    op_count = 0;
    wanted = images;
    ops = kedge_mem_new(OPS_MAX, sizeof *ops);
    struct tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t *seen =
        mmap(NULL, SEEN_SLOTS * sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(ops && t != MAP_FAILED && seen != MAP_FAILED);
    record_run(&f, run);
    pid_t pids[WORKERS_MAX];
    unsigned workers = worker_count();
    for (unsigned i = 0; i < workers; i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            run_worker(&f, i, has_mark, seen, t);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < workers; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    struct tally result = *t;
    printf("%s: %llu different images of %zu operations, %llu lost something acknowledged, %llu forked, %llu "
           "would not open or were damaged; %.1f s\n",
           what, (unsigned long long)result.images, op_count, (unsigned long long)result.lost,
           (unsigned long long)result.forks, (unsigned long long)result.broken,
           (double)(kedge_os_now_ns() - start) / 1e9);
    for (size_t i = 0; i < op_count; i++) {
        kedge_mem_free(ops[i].data);
    }
    kedge_mem_free(ops);
    munmap(t, sizeof *t);
    munmap(seen, SEEN_SLOTS * sizeof *seen);
    fixture_deinit(&f);
    return result;
}

START_TEST(power_loss_loses_nothing_acknowledged)
{
    uint64_t images = IMAGES_DEFAULT;
    const char *text = getenv("KEDGE_CRASH_IMAGES");
    ck_assert(!text || kedge_decimal_decode(kedge_view_str(text), SEEN_SLOTS / 2, &images) == KEDGE_OK);
    struct tally t = run_model(RUN_SYNC, true, images, "power loss, default sync");
    ck_assert_uint_gt(op_count, 2 * BATCHES);
    ck_assert_uint_ge(t.images, images);
    ck_assert_uint_eq(t.lost + t.forks + t.broken, 0);
}
END_TEST

START_TEST(closing_flushes_first_what_a_killed_writer_did_not)
{
    struct tally t = run_model(RUN_KILLED, true, IMAGES_FEW, "power loss while closing after a kill");
    ck_assert_uint_ge(t.images, IMAGES_FEW);
    ck_assert_uint_eq(t.lost + t.forks + t.broken, 0);
}
END_TEST

START_TEST(the_model_does_find_losses)
{
    struct tally t = run_model(RUN_NO_SYNC, true, IMAGES_CONTROL, "control: no sync");
    ck_assert_uint_gt(t.broken + t.lost, 10);
    ck_assert_uint_eq(t.forks, 0); /* the mark forbids what is left to be signed */
}
END_TEST

START_TEST(the_model_does_find_forks)
{
    struct tally t = run_model(RUN_NO_SYNC, false, IMAGES_CONTROL, "control: no sync and no mark");
    ck_assert_uint_gt(t.forks, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store power");
    TCase *t = tcase_create("crash");
    tcase_set_timeout(t, 0); /* ctest has one */
    turn = test_turn();
    tcase_add_test(t, power_loss_loses_nothing_acknowledged);
    tcase_add_test(t, closing_flushes_first_what_a_killed_writer_did_not);
    tcase_add_test(t, the_model_does_find_losses);
    tcase_add_test(t, the_model_does_find_forks);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
