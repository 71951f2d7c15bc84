/* Blobs from front to back, checked against their names.
 *
 * Whatever asks for content by its digest reads it here. A blob that does not have its digest is damage
 * whatever the reason, and is told as such only after all of it was read; so the caller's buffer is
 * emptied again, and no byte of unverified content is left in it. */
#include <errno.h>
#include <unistd.h>

#include "chain/store/blob/blobs_impl.h"
#include "common/base/try.h"

enum { READ_BYTES = KEDGE_BLOB_CHUNK };

int kedgei_hash_file(int fd, struct kedge_hasher *h, uint64_t *ret_size)
{
    uint8_t chunk[READ_BYTES];
    uint64_t size = 0;
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return kedge_errno(errno);
        }
        if (n == 0) {
            *ret_size = size;
            return KEDGE_OK;
        }
        kedge_hasher_update(h, kedge_view_of(chunk, (size_t)n));
        size += (uint64_t)n;
    }
}

/* Content from front to back: hashed, and appended unless ret is NULL. */
static int read_all(const struct kedge_blob_file *f, struct kedge_hasher *h, struct kedge_buf *ret)
{
    uint8_t chunk[READ_BYTES];
    uint64_t done = 0;
    int err = KEDGE_OK;
    do {
        size_t n = f->size - done < sizeof chunk ? (size_t)(f->size - done) : sizeof chunk;
        err = kedge_blob_file_read(f, done, chunk, n);
        if (!err) {
            kedge_hasher_update(h, kedge_view_of(chunk, n));
            done += n;
        }
        if (!err && ret) {
            kedge_buf_put(ret, chunk, n);
            err = ret->err;
        }
    } while (!err && done < f->size);
    return err;
}

/* The bound is looked at before the first byte is read, because the size comes from a head that anybody
 * may have changed. */
static int read_checked(const struct kedge_blobs *b, const struct kedge_hash *digest, struct kedge_buf *ret,
                        struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_at at;
    struct kedge_blob_file file;
    struct kedge_hasher *h;
    struct kedge_hash actual;
    int err = kedge_blobs_at(b, digest, path, &at);
    if (err) {
        return kedge_diag_set(reterr, err, "%s: path too long", b->blobs_dir);
    }
    KEDGE_TRY(kedge_blob_file_open(&at, KEDGE_BLOB_READ, &file, reterr));
    if (ret && file.size > ret->max - ret->len) {
        err =
            kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: longer than %zu bytes", path, ret->max - ret->len);
    }
    if (!err) {
        err = kedge_hasher_new(&h);
    }
    if (!err) {
        err = read_all(&file, h, ret);
        kedge_hasher_final(h, &actual);
        kedge_hasher_free(h);
        if (err && err != KEDGE_E_CORRUPT) {
            kedge_diag_set(reterr, err, "%s: cannot read", path);
        } else if (err || !kedge_hash_eq(&actual, digest)) {
            err = kedge_diag_set(reterr, KEDGE_E_CORRUPT, "%s: the content does not have this digest", path);
        }
    }
    kedge_blob_file_close(&file);
    return err;
}

int kedge_blobs_verify(const struct kedge_blobs *b, const struct kedge_hash *digest,
                       struct kedge_diag *reterr)
{
    return read_checked(b, digest, NULL, reterr);
}

int kedge_blobs_read(const struct kedge_blobs *b, const struct kedge_hash *digest, struct kedge_buf *ret,
                     struct kedge_diag *reterr)
{
    size_t start = ret->len;
    int err = ret->err ? ret->err : read_checked(b, digest, ret, reterr);
    if (err) {
        ret->len = start;
    }
    return err;
}
