/* Reads a blob from any offset, whichever of the four ways it is stored in: a file of its own or a record
 * of a pack, plain or encrypted; and small ones perhaps deflated. Means and groupings read 512 updates at
 * the same positions, so an encrypted file is decrypted chunk by chunk where it is needed, while a
 * deflated one, 16 KiB at most, is opened whole. */
#include "chain/store/blob/blob_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/blob/blobs_impl.h"
#include "chain/store/blob/short_form.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* ---- one chunk's memory per thread ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t scratch_key;

static void free_scratch(void *p)
{
    kedge_wipe(p, KEDGEI_BLOB_SCRATCH);
    kedge_mem_free(p);
}

static void make_key(void)
{
    int rc = pthread_key_create(&scratch_key, free_scratch);
    KEDGE_ASSERT(rc == 0);
}

/* One buffer for each thread in place of one for each open file: a mean has hundreds of files open. It
 * may hold decrypted content, so it is overwritten when its thread ends. */
uint8_t *kedgei_blob_scratch(void)
{
    pthread_once(&once, make_key);
    uint8_t *p = pthread_getspecific(scratch_key);
    if (!p) {
        p = kedge_mem_new(KEDGEI_BLOB_SCRATCH, 1);
        if (p && pthread_setspecific(scratch_key, p) != 0) {
            kedge_mem_free(p);
            p = NULL;
        }
    }
    return p;
}

/* ---- opening ---- */

/* Head and length are checked before the key is looked for; so a damaged file is told as damaged also
 * where its key is missing. */
static int open_cipher(const struct kedge_blob_at *at, const uint8_t head[KEDGE_BLOB_HEAD_LEN],
                       uint64_t stored, struct kedge_blob_file *f, struct kedge_diag *d)
{
    struct kedge_blob_key_id id;
    struct kedge_seed seed;
    enum kedge_aead aead;
    int err = kedge_blob_head_read(head, &aead, &id);
    if (!err) {
        err = kedge_blob_content_len(aead, stored, &f->size);
    }
    if (err) {
        return kedge_diag_set(d, err, "%s: an encrypted file whose head or length is damaged", at->path);
    }
    err = kedge_blob_keys_find(at->keys, &id, &seed, d);
    if (err) { /* that nobody gave the passphrase comes to the same */
        return kedge_diag_wrap(d, err == KEDGE_E_NOMEM ? err : KEDGE_E_SEALED, "%s", at->path);
    }
    err = kedge_blob_cipher_of(head, &seed, &at->digest, &f->cipher);
    kedge_wipe(&seed, sizeof seed);
    f->is_sealed = !err;
    return err;
}

/* flags: O_NOFOLLOW, or 0 for files that people name, which may be links. A place in a pack must lie
 * inside the file: the path may be older than the file, or made up. */
static int open_part(const char *path, int flags, uint64_t *ret_begin, uint64_t *ret_len,
                     struct kedge_diag *d)
{
    char file[KEDGE_PATH_MAX];
    struct stat st;
    uint64_t begin = 0, len = 0;
    bool is_packed = kedgei_pack_place(path, file, &begin, &len);
    int fd = kedge_file_open(file, O_RDONLY | flags, d);
    if (fd < 0) {
        return fd;
    }
    int err = fstat(fd, &st) == 0 ? KEDGE_OK : KEDGE_E_IO;
    uint64_t size = err ? 0 : (uint64_t)st.st_size;
    if (!err && is_packed && (begin > size || len > size - begin)) {
        err = KEDGE_E_CORRUPT;
    }
    if (err) {
        close(fd);
        return kedge_diag_set(d, err, "%s: cannot be read: %s", path, kedge_strerror(err));
    }
    *ret_begin = begin;
    *ret_len = is_packed ? len : size;
    return fd;
}

int kedgei_blob_open(const char *path, uint64_t *ret_begin, uint64_t *ret_len, struct kedge_diag *d)
{
    return open_part(path, O_NOFOLLOW, ret_begin, ret_len, d);
}

bool kedge_blob_exists(const char *path)
{
    uint64_t begin, len;
    int fd = kedgei_blob_open(path, &begin, &len, NULL);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static int open_fd(const struct kedge_blob_at *at, struct kedge_blob_file *f, struct kedge_diag *d)
{
    uint8_t head[KEDGE_BLOB_HEAD_LEN];
    f->fd = kedgei_blob_open(at->path, &f->begin, &f->size, d);
    if (f->fd < 0) {
        return f->fd;
    }
    int err = KEDGE_OK;
    if (f->size >= sizeof head) {
        err = kedge_fd_read_at(f->fd, head, sizeof head, f->begin);
        if (!err && kedge_blob_is_sealed(kedge_view_of(head, sizeof head))) {
            return open_cipher(at, head, f->size, f, d);
        }
    }
    return err ? kedge_diag_set(d, err, "%s: cannot be read: %s", at->path, kedge_strerror(err)) : KEDGE_OK;
}

static int open_map(const struct kedge_blob_at *at, struct kedge_blob_file *f, struct kedge_diag *d)
{
    uint64_t begin, len;
    int fd = open_part(at->path, 0, &begin, &len, d);
    if (fd < 0) {
        return fd;
    }
    int err = kedge_map_part(fd, begin, len, &f->map);
    close(fd);
    if (err) {
        return kedge_diag_set(d, err, "%s: cannot be mapped: %s", at->path, kedge_strerror(err));
    }
    f->size = f->map.len;
    return f->map.len >= KEDGE_BLOB_HEAD_LEN && kedge_blob_is_sealed(kedge_view_of(f->map.ptr, f->map.len))
               ? open_cipher(at, f->map.ptr, f->map.len, f, d)
               : KEDGE_OK;
}

/* The bytes of such a file from `offset` on; the caller's. At most a short form's. */
static int read_stream(const struct kedge_blob_file *f, uint64_t offset, uint64_t len, uint8_t **ret)
{
    uint8_t *bytes = len <= KEDGEI_SHORT_CONTENT_MAX ? kedge_mem_new((size_t)len + 1, 1) : NULL;
    if (!bytes) {
        return len <= KEDGEI_SHORT_CONTENT_MAX ? KEDGE_E_NOMEM : KEDGE_E_CORRUPT;
    }
    int err = kedge_blob_file_read(f, offset, bytes, (size_t)len);
    if (err) {
        kedge_mem_free(bytes);
        return err;
    }
    *ret = bytes;
    return KEDGE_OK;
}

/* From now on its content is in memory. A descriptor stays: that it is there says that the file is open. */
static void turn_into(struct kedge_blob_file *f, uint8_t *content, size_t len)
{
    kedge_map_close(&f->map);
    f->content = content;
    f->map = (struct kedge_map){content, len};
    f->size = len;
    f->is_sealed = false;
}

/* What is in short form becomes its content; all else stays as it is. Plain short forms are in packs
 * only: a file that a site has sent, or one of its own, holds what its digest is of, however it begins.
 * The stream's stated length is bounded by the head's reader; the result must have exactly this length. */
static int lengthen(struct kedge_blob_file *f, const char *path)
{
    char file[KEDGE_PATH_MAX];
    uint64_t begin, stored;
    uint8_t head[KEDGEI_SHORT_HEAD], *stream, *content;
    unsigned how = KEDGEI_SHORT_NOT;
    uint32_t said = 0;
    size_t len = 0;
    int err = KEDGE_OK;
    if (f->is_sealed) {
        kedge_blob_head_form(f->cipher.head, &how, &said);
        len = said;
    } else if (f->size >= sizeof head && kedgei_pack_place(path, file, &begin, &stored)) {
        err = kedge_blob_file_read(f, 0, head, sizeof head);
        if (!err && kedgei_short_is(kedge_view_of(head, sizeof head))) {
            how = KEDGEI_SHORT_BYTES;
            err = kedgei_short_length(kedge_view_of(head, sizeof head), &len);
        }
    }
    if (err || how == KEDGEI_SHORT_NOT) {
        return err;
    }
    KEDGE_TRY(read_stream(f, 0, f->size, &stream));
    struct kedge_view bytes = kedge_view_of(stream, (size_t)f->size);
    content = kedge_mem_new(len, 1);
    err = !content       ? KEDGE_E_NOMEM
          : f->is_sealed ? kedgei_lengthen((enum kedgei_short_how)how, bytes, content, len)
                         : kedgei_short_open(bytes, content, len);
    kedge_mem_free(stream);
    if (err) {
        kedge_mem_free(content);
        return err;
    }
    turn_into(f, content, len);
    return KEDGE_OK;
}

int kedge_blob_file_open(const struct kedge_blob_at *at, enum kedge_blob_how how, struct kedge_blob_file *ret,
                         struct kedge_diag *reterr)
{
    struct kedge_blob_file f = {.fd = -1};
    int err = how == KEDGE_BLOB_MAP ? open_map(at, &f, reterr) : open_fd(at, &f, reterr);
    if (!err) {
        err = lengthen(&f, at->path);
        err = err ? kedge_diag_set(reterr, err, "%s: cannot be read: %s", at->path, kedge_strerror(err))
                  : KEDGE_OK;
    }
    if (err) {
        kedge_blob_file_close(&f);
        return err;
    }
    *ret = f;
    kedge_blob_cipher_wipe(&f.cipher);
    return KEDGE_OK;
}

void kedge_blob_file_close(struct kedge_blob_file *f)
{
    if (f->fd >= 0) {
        close(f->fd);
    }
    if (f->content) {
        kedge_wipe(f->content, f->map.len);
        kedge_mem_free(f->content);
    } else {
        kedge_map_close(&f->map);
    }
    kedge_blob_cipher_wipe(&f->cipher);
    *f = (struct kedge_blob_file){.fd = -1};
}

/* ---- reading ---- */

/* Chunk i as it is stored: in the map, or read into scratch. */
static int take_chunk(const struct kedge_blob_file *f, uint64_t i, size_t len, uint8_t *scratch,
                      struct kedge_view *ret)
{
    uint64_t at = kedge_blob_chunk_offset(f->cipher.aead, i);
    size_t stored = len + kedge_blob_chunk_overhead(f->cipher.aead);
    if (f->fd < 0) {
        *ret = kedge_view_of(f->map.ptr + at, stored);
        return KEDGE_OK;
    }
    *ret = kedge_view_of(scratch, stored);
    return kedge_fd_read_at(f->fd, scratch, stored, f->begin + at);
}

/* The part of chunk i from `skip` on, n bytes. A caller that wants the whole chunk gets it decrypted in
 * place; otherwise the chunk is decrypted into the thread's buffer, behind the nonce that was read with
 * it, and a part of it copied. The tag covers the chunk, so not one byte of it is given out before all of
 * it was verified. */
static int read_chunk(const struct kedge_blob_file *f, uint64_t i, size_t skip, uint8_t *out, size_t n)
{
    uint64_t left = f->size - i * KEDGE_BLOB_CHUNK;
    size_t len = left < KEDGE_BLOB_CHUNK ? (size_t)left : KEDGE_BLOB_CHUNK;
    uint8_t *scratch = kedgei_blob_scratch();
    struct kedge_view stored;
    KEDGE_TRY_MEM(scratch);
    KEDGE_TRY(take_chunk(f, i, len, scratch, &stored));
    bool is_last = left <= KEDGE_BLOB_CHUNK;
    if (skip == 0 && n == len) {
        return kedge_blob_chunk_open(&f->cipher, i, is_last, stored, out);
    }
    uint8_t *plain = scratch + kedge_aead_nonce_len(f->cipher.aead);
    KEDGE_TRY(kedge_blob_chunk_open(&f->cipher, i, is_last, stored, plain));
    memcpy(out, plain + skip, n);
    return KEDGE_OK;
}

/* An empty encrypted file has one empty chunk, whose tag is verified all the same: else a file that was
 * cut to its head would pass for an empty blob. */
int kedge_blob_file_read(const struct kedge_blob_file *f, uint64_t offset, uint8_t *out, size_t len)
{
    if (offset > f->size || len > f->size - offset) {
        return KEDGE_E_CORRUPT;
    }
    if (!f->is_sealed && (f->fd < 0 || f->content)) {
        if (len > 0) {
            memcpy(out, f->map.ptr + offset, len);
        }
        return KEDGE_OK;
    }
    if (!f->is_sealed) {
        return kedge_fd_read_at(f->fd, out, len, f->begin + offset);
    }
    int err = f->size == 0 ? read_chunk(f, 0, 0, out, 0) : KEDGE_OK; /* it has one all the same */
    for (size_t done = 0; done < len && !err;) {
        uint64_t at = offset + done;
        size_t skip = (size_t)(at % KEDGE_BLOB_CHUNK), n = KEDGE_BLOB_CHUNK - skip;
        n = n < len - done ? n : len - done;
        err = read_chunk(f, at / KEDGE_BLOB_CHUNK, skip, out + done, n);
        done += n;
    }
    return err;
}
