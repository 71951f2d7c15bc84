/* Power loss: the writes of a ledger are logged on their way to the file; crash images are made of them
 * by a model of a disk that may lose, reorder and tear whatever was not flushed; a ledger opened on each
 * image must hold all that had been acknowledged, undamaged. The positive control turns LMDB's flushes
 * off and must show losses, or the model proves nothing. The log goes on through the close, which overwrites
 * what is unused, and every instant of that is looked at. Model (after "All File Systems Are Not Created
 * Equal", Pillai et al., OSDI 2014): a write is pending until the next flush of the file or, through an
 * O_DSYNC descriptor, until it returns; a crash applies the pending writes in random order, drops 35 %
 * and tears 25 % of them at 512-byte sectors. */
#include "../contract/ledger_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "chain/store/guard.h"
#include "common/base/mem.h"
#include "common/base/rng.h"

enum { OPS_MAX = 20000, BATCHES = 60, POINTS = 60, IMAGES = 2, SECTOR = 512, IMAGE_MAX = 16 << 20 };

enum op_kind { OP_WRITE, OP_FLUSH, OP_RESIZE, OP_ACKNOWLEDGE };

struct op {
    enum op_kind kind;
    uint64_t offset; /* also: new size, acknowledged entries */
    size_t len;
    uint8_t *data;
    bool is_synchronous;
};

/* ---- the log: libc's functions are taken over for one file ---- */

static struct op *ops;
static size_t op_count;
static size_t close_op;    /* the first of the close */
static ino_t logged_inode; /* 0: nothing is logged */
static bool is_flush_late; /* synchronous writes are not flushed yet when their writer is killed */

static bool is_logged(int fd)
{
    struct stat st;
    return logged_inode != 0 && fstat(fd, &st) == 0 && st.st_ino == logged_inode;
}

static struct op *add_op(enum op_kind kind, uint64_t offset)
{
    ck_assert_uint_lt(op_count, OPS_MAX);
    ops[op_count] = (struct op){.kind = kind, .offset = offset};
    return &ops[op_count++];
}

static void log_write(int fd, const void *buf, size_t len, uint64_t offset)
{
    struct op *op = add_op(OP_WRITE, offset);
    op->len = len;
    op->data = kedge_mem_new(len, 1);
    ck_assert_ptr_nonnull(op->data);
    memcpy(op->data, buf, len);
    op->is_synchronous = !is_flush_late && (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t offset)
{
    ssize_t n = syscall(SYS_pwrite64, fd, buf, len, offset);
    if (n > 0 && is_logged(fd)) {
        log_write(fd, buf, (size_t)n, (uint64_t)offset);
    }
    return n;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t n = syscall(SYS_writev, fd, parts, count);
    ssize_t left = n;
    for (int i = 0; i < count && left > 0 && is_logged(fd); i++) {
        size_t len = parts[i].iov_len < (size_t)left ? parts[i].iov_len : (size_t)left;
        log_write(fd, parts[i].iov_base, len, (uint64_t)offset);
        offset += (off_t)len;
        left -= (ssize_t)len;
    }
    return n;
}

ssize_t write(int fd, const void *buf, size_t len)
{
    bool logged = is_logged(fd);
    off_t offset = logged ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t n = syscall(SYS_write, fd, buf, len);
    if (n > 0 && logged) {
        log_write(fd, buf, (size_t)n, (uint64_t)offset);
    }
    return n;
}

int ftruncate(int fd, off_t len)
{
    int rc = (int)syscall(SYS_ftruncate, fd, len);
    if (rc == 0 && is_logged(fd)) {
        (void)add_op(OP_RESIZE, (uint64_t)len);
    }
    return rc;
}

int fdatasync(int fd)
{
    int rc = (int)syscall(SYS_fdatasync, fd);
    if (rc == 0 && is_logged(fd)) {
        (void)add_op(OP_FLUSH, 0);
    }
    return rc;
}

int fsync(int fd)
{
    int rc = (int)syscall(SYS_fsync, fd);
    if (rc == 0 && is_logged(fd)) {
        (void)add_op(OP_FLUSH, 0);
    }
    return rc;
}

/* ---- the model ---- */

struct disk {
    uint8_t *durable, *image;
    size_t durable_len, image_len;
    const struct op *pending[OPS_MAX];
    size_t pending_count;
    uint64_t acknowledged;
};

static void apply(uint8_t *bytes, size_t *len, const struct op *op, size_t from, size_t to)
{
    ck_assert_uint_le(op->offset + op->len, IMAGE_MAX);
    memcpy(bytes + op->offset + from, op->data + from, to - from);
    if (op->offset + to > *len) {
        *len = (size_t)op->offset + to;
    }
}

static void step(struct disk *d, const struct op *op)
{
    switch (op->kind) {
    case OP_ACKNOWLEDGE:
        d->acknowledged = op->offset;
        break;
    case OP_RESIZE:
        d->durable_len = (size_t)op->offset; /* metadata of the file system: journalled */
        break;
    case OP_WRITE:
        if (op->is_synchronous) {
            apply(d->durable, &d->durable_len, op, 0, op->len);
        } else {
            d->pending[d->pending_count++] = op;
        }
        break;
    case OP_FLUSH:
        for (size_t i = 0; i < d->pending_count; i++) {
            apply(d->durable, &d->durable_len, d->pending[i], 0, d->pending[i]->len);
        }
        d->pending_count = 0;
        break;
    }
}

/* What the disk may hold when the power fails now, with `last` under way. */
static void crash(struct disk *d, const struct op *last, struct kedge_rng *rng)
{
    memcpy(d->image, d->durable, IMAGE_MAX);
    d->image_len = d->durable_len;
    uint32_t order[OPS_MAX];
    size_t count = 0;
    for (; count < d->pending_count; count++) {
        order[count] = (uint32_t)count;
    }
    bool is_under_way = last->kind == OP_WRITE && last->is_synchronous;
    if (is_under_way) {
        order[count++] = UINT32_MAX;
    }
    kedge_rng_sample(rng, order, count, count);
    for (size_t i = 0; i < count; i++) {
        const struct op *op = order[i] == UINT32_MAX ? last : d->pending[order[i]];
        uint64_t fate = kedge_rng_below(rng, 100);
        if (fate < 35) {
            continue;
        }
        size_t sectors = (op->len + SECTOR - 1) / SECTOR, from = 0, to = op->len;
        if (fate < 60 && sectors > 1) {
            size_t cut = (1 + (size_t)kedge_rng_below(rng, sectors - 1)) * SECTOR;
            if (kedge_rng_below(rng, 2)) {
                from = cut;
            } else {
                to = cut;
            }
        }
        apply(d->image, &d->image_len, op, from, to);
    }
}

/* ---- the run and the verdict ---- */

/* What the model is run on: LMDB's flushes; or a last commit whose writer was killed before its flush was
 * done, after which another opens the store and closes it. */
enum run { RUN_SYNC, RUN_NO_SYNC, RUN_KILLED };

static void record_run(struct fixture *f, enum run run)
{
    struct kedge_kv_lmdb_options options = {.create = true, .unsafe_no_sync = run == RUN_NO_SYNC};
    struct stat st;
    char path[KEDGE_PATH_MAX];
    f->kv = fixture_lmdb(f->store, true); /* made and empty, before the log begins */
    fixture_must_open(f, true);
    kedge_ledger_close(f->l);
    kedge_kv_close(f->kv);
    f->l = NULL;
    snprintf(path, sizeof path, "%s/data.mdb", f->store);
    ck_assert_int_eq(stat(path, &st), 0);
    struct kedge_buf start;
    kedge_buf_init(&start, IMAGE_MAX);
    ck_assert_int_eq(kedge_file_read(path, &start, NULL), KEDGE_OK);
    logged_inode = st.st_ino;
    struct op *whole = add_op(OP_WRITE, 0);
    whole->data = start.ptr;
    whole->len = start.len;
    (void)add_op(OP_FLUSH, 0);
    ck_assert_int_eq(kedge_kv_lmdb_open(f->store, &options, &f->kv, NULL), KEDGE_OK);
    fixture_must_open(f, false);
    for (uint64_t i = 0; i < BATCHES; i++) {
        uint64_t size = kedge_ledger_size(f->l);
        ck_assert_int_eq(append_range(f->l, size, size + 1 + i % 9, KEDGE_APPEND_MAX, NULL), KEDGE_OK);
        (void)add_op(OP_ACKNOWLEDGE, kedge_ledger_size(f->l));
    }
    is_flush_late = run == RUN_KILLED; /* nobody was told of what follows */
    uint64_t size = kedge_ledger_size(f->l);
    ck_assert_int_eq(append_range(f->l, size, size + 1, 1, NULL), KEDGE_OK);
    kedge_ledger_close(f->l);
    is_flush_late = false;
    close_op = op_count;
    kedge_kv_close(f->kv);
    logged_inode = 0;
    ck_assert_uint_gt(op_count, close_op + 10); /* there was something to overwrite */
    f->l = NULL;
    f->kv = NULL;
}

struct judged {
    const char *dir;
    uint64_t acknowledged;
};

static int judge(void *arg, struct kedge_buf *ret_out, struct kedge_diag *reterr)
{
    (void)ret_out;
    const struct judged *j = arg;
    struct kedge_kv_lmdb_options options = {.read_only = true, .no_lock = true};
    struct kedge_kv *kv;
    int err = kedge_kv_lmdb_open(j->dir, &options, &kv, reterr);
    struct kedge_ledger_options ledger = {.origin = ORIGIN};
    struct kedge_ledger *l;
    err = err ? err : kedge_ledger_open(kv, &ledger, &l, reterr);
    err = err ? err : kedge_ledger_check(l, NULL, NULL, reterr);
    if (!err && kedge_ledger_size(l) < j->acknowledged) {
        err = KEDGE_E_NOT_FOUND;
    }
    return err;
}

/* Images that lost or damaged something. */
static size_t count_bad(const struct fixture *f, struct disk *d)
{
    char dir[80], path[100];
    snprintf(dir, sizeof dir, "%s/image", f->dir);
    snprintf(path, sizeof path, "%s/data.mdb", dir);
    ck_assert_int_eq(kedge_dir_make(dir, 0700, NULL), KEDGE_OK);
    struct kedge_rng rng;
    kedge_rng_init(&rng, 3, KEDGE_RNG_TEST, 0, 0);
    size_t bad = 0, interval = op_count / POINTS + 1;
    for (size_t i = 0; i < op_count; i++) {
        /* Every synchronous write is a meta page, the instant of a commit: look there, and here and
         * there. */
        bool is_point = i > 2
                        && (i >= close_op
                            || (ops[i].is_synchronous ? kedge_rng_below(&rng, 3) == 0
                                                      : kedge_rng_below(&rng, interval) == 0));
        for (int k = 0; is_point && k < IMAGES; k++) {
            crash(d, &ops[i], &rng);
            ck_assert_int_eq(kedge_file_write(path, kedge_view_of(d->image, d->image_len), 0600, NULL),
                             KEDGE_OK);
            struct judged j = {dir, d->acknowledged};
            struct kedge_diag diag = {0};
            int err = kedge_store_guarded(judge, &j, 10000, NULL, &diag);
            bad += err != KEDGE_OK;
        }
        step(d, &ops[i]);
    }
    return bad;
}

static size_t run_model(enum run run)
{
    struct fixture f;
    fixture_init(&f);
    op_count = 0;
    ops = kedge_mem_new(OPS_MAX, sizeof *ops);
    struct disk *d = kedge_mem_new(1, sizeof *d);
    ck_assert(ops && d);
    d->durable = kedge_mem_new(IMAGE_MAX, 1);
    d->image = kedge_mem_new(IMAGE_MAX, 1);
    ck_assert(d->durable && d->image);
    record_run(&f, run);
    size_t bad = count_bad(&f, d);
    for (size_t i = 0; i < op_count; i++) {
        kedge_mem_free(ops[i].data);
    }
    kedge_mem_free(ops);
    kedge_mem_free(d->durable);
    kedge_mem_free(d->image);
    kedge_mem_free(d);
    fixture_deinit(&f);
    return bad;
}

START_TEST(power_loss_loses_nothing_acknowledged)
{
    size_t bad = run_model(RUN_SYNC);
    printf("power loss, default sync: %zu bad images of %zu operations\n", bad, op_count);
    ck_assert_uint_gt(op_count, 2 * BATCHES);
    ck_assert_uint_eq(bad, 0);
}
END_TEST

START_TEST(closing_flushes_first_what_a_killed_writer_did_not)
{
    size_t bad = run_model(RUN_KILLED);
    printf("power loss while closing after a kill: %zu bad images\n", bad);
    ck_assert_uint_eq(bad, 0);
}
END_TEST

START_TEST(the_model_does_find_losses)
{
    size_t bad = run_model(RUN_NO_SYNC);
    printf("power loss, no sync (control): %zu bad images\n", bad);
    ck_assert_uint_gt(bad, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store power");
    TCase *t = tcase_create("crash");
    tcase_set_timeout(t, 100);
    tcase_add_test(t, power_loss_loses_nothing_acknowledged);
    tcase_add_test(t, closing_flushes_first_what_a_killed_writer_did_not);
    tcase_add_test(t, the_model_does_find_losses);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
