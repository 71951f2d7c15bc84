/* A disk that may lose, reorder and tear whatever was not flushed. The writes of a few files are logged on
 * their way (libc's functions are taken over), and crash images are made of the log. Model (after "All File
 * Systems Are Not Created Equal", Pillai et al., OSDI 2014): a write is pending until the next flush of its
 * file or, through an O_DSYNC descriptor, until it returns; a crash applies the pending writes in random
 * order, drops 35 % and tears 25 % of them at 512-byte sectors. */
#ifndef KEDGE_TESTS_CRASH_DISK_MODEL_H
#define KEDGE_TESTS_CRASH_DISK_MODEL_H

#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/rng.h"

enum { OPS_MAX = 20000, SECTOR = 512, IMAGE_MAX = 8 << 20, FILES = 2 };

enum op_kind { OP_WRITE, OP_FLUSH, OP_RESIZE, OP_ACKNOWLEDGE };

struct op {
    enum op_kind kind;
    unsigned file;
    uint64_t offset; /* also: new size, acknowledged commits */
    size_t len;
    uint8_t *data;
    bool is_synchronous;
};

/* ---- the log ---- */

static struct op *ops;
static size_t op_count;
static ino_t logged_inodes[FILES]; /* 0: none */
static bool is_logging;
static bool is_flush_late; /* the writer is killed in a synchronous write, before that is flushed: and so
                            * before it notes in the second file what it would have signed next */

static inline int logged_file(int fd)
{
    struct stat st;
    if (is_logging && fstat(fd, &st) == 0) {
        for (int i = 0; i < FILES; i++) {
            if (st.st_ino == logged_inodes[i]) {
                return i;
            }
        }
    }
    return -1;
}

static inline struct op *add_op(enum op_kind kind, unsigned file, uint64_t offset)
{
    ck_assert_uint_lt(op_count, OPS_MAX);
    ops[op_count] = (struct op){.kind = kind, .file = file, .offset = offset};
    return &ops[op_count++];
}

static inline void log_write(int fd, int file, const void *buf, size_t len, uint64_t offset)
{
    if (is_flush_late && file == 1) {
        return;
    }
    struct op *op = add_op(OP_WRITE, (unsigned)file, offset);
    op->len = len;
    op->data = kedge_mem_new(len, 1);
    ck_assert_ptr_nonnull(op->data);
    memcpy(op->data, buf, len);
    op->is_synchronous = !is_flush_late && (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t offset)
{
    ssize_t n = syscall(SYS_pwrite64, fd, buf, len, offset);
    int file = logged_file(fd);
    if (n > 0 && file >= 0) {
        log_write(fd, file, buf, (size_t)n, (uint64_t)offset);
    }
    return n;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    int file = logged_file(fd);
    off_t offset = file >= 0 ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t n = syscall(SYS_writev, fd, parts, count);
    ssize_t left = n;
    for (int i = 0; i < count && left > 0 && file >= 0; i++) {
        size_t len = parts[i].iov_len < (size_t)left ? parts[i].iov_len : (size_t)left;
        log_write(fd, file, parts[i].iov_base, len, (uint64_t)offset);
        offset += (off_t)len;
        left -= (ssize_t)len;
    }
    return n;
}

ssize_t write(int fd, const void *buf, size_t len)
{
    int file = logged_file(fd);
    off_t offset = file >= 0 ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t n = syscall(SYS_write, fd, buf, len);
    if (n > 0 && file >= 0) {
        log_write(fd, file, buf, (size_t)n, (uint64_t)offset);
    }
    return n;
}

int ftruncate(int fd, off_t len)
{
    int rc = (int)syscall(SYS_ftruncate, fd, len);
    int file = logged_file(fd);
    if (rc == 0 && file >= 0) {
        (void)add_op(OP_RESIZE, (unsigned)file, (uint64_t)len);
    }
    return rc;
}

static inline int flush(int fd, long call)
{
    int rc = (int)syscall(call, fd);
    int file = logged_file(fd);
    if (rc == 0 && file >= 0) {
        (void)add_op(OP_FLUSH, (unsigned)file, 0);
    }
    return rc;
}

int fdatasync(int fd)
{
    return flush(fd, SYS_fdatasync);
}

int fsync(int fd)
{
    return flush(fd, SYS_fsync);
}

/* ---- the disk ---- */

struct disk_file {
    uint8_t *durable, *image;
    size_t durable_len, image_len;
    const struct op *pending[OPS_MAX];
    size_t pending_count;
};

struct disk {
    struct disk_file files[FILES];
    uint64_t acknowledged;
};

static inline void apply(uint8_t *bytes, size_t *len, const struct op *op, size_t from, size_t to)
{
    ck_assert_uint_le(op->offset + op->len, IMAGE_MAX);
    memcpy(bytes + op->offset + from, op->data + from, to - from);
    if (op->offset + to > *len) {
        *len = (size_t)op->offset + to;
    }
}

static inline void step(struct disk *d, const struct op *op)
{
    struct disk_file *f = &d->files[op->file];
    switch (op->kind) {
    case OP_ACKNOWLEDGE:
        d->acknowledged = op->offset;
        break;
    case OP_RESIZE:
        f->durable_len = (size_t)op->offset; /* metadata of the file system: journalled */
        break;
    case OP_WRITE:
        if (op->is_synchronous) {
            apply(f->durable, &f->durable_len, op, 0, op->len);
        } else {
            f->pending[f->pending_count++] = op;
        }
        break;
    case OP_FLUSH:
        for (size_t i = 0; i < f->pending_count; i++) {
            apply(f->durable, &f->durable_len, f->pending[i], 0, f->pending[i]->len);
        }
        f->pending_count = 0;
        break;
    }
}

static inline void crash_file(struct disk_file *f, const struct op *under_way, struct kedge_rng *rng)
{
    static uint32_t order[OPS_MAX];
    size_t count = 0;
    memset(f->image, 0, f->image_len); /* a page that was never written reads as zeros */
    memcpy(f->image, f->durable, f->durable_len);
    f->image_len = f->durable_len;
    for (; count < f->pending_count; count++) {
        order[count] = (uint32_t)count;
    }
    if (under_way) {
        order[count++] = UINT32_MAX;
    }
    kedge_rng_sample(rng, order, count, count);
    for (size_t i = 0; i < count; i++) {
        const struct op *op = order[i] == UINT32_MAX ? under_way : f->pending[order[i]];
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
        apply(f->image, &f->image_len, op, from, to);
    }
}

/* What the disk may hold when the power fails now, with `last` under way. */
static inline void crash(struct disk *d, const struct op *last, struct kedge_rng *rng)
{
    for (unsigned i = 0; i < FILES; i++) {
        bool here = last->kind == OP_WRITE && last->is_synchronous && last->file == i;
        crash_file(&d->files[i], here ? last : NULL, rng);
    }
}

static inline struct disk *disk_new(void)
{
    struct disk *d = kedge_mem_new(1, sizeof *d);
    ck_assert_ptr_nonnull(d);
    for (unsigned i = 0; i < FILES; i++) {
        d->files[i].durable = kedge_mem_new(IMAGE_MAX, 1);
        d->files[i].image = kedge_mem_new(IMAGE_MAX, 1);
        ck_assert(d->files[i].durable && d->files[i].image);
    }
    return d;
}

static inline void disk_free(struct disk *d)
{
    for (unsigned i = 0; i < FILES; i++) {
        kedge_mem_free(d->files[i].durable);
        kedge_mem_free(d->files[i].image);
    }
    kedge_mem_free(d);
}

#endif
