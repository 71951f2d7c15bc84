/* Uploads that are encrypted as they come: whole chunks straight from the caller's bytes, the rest waits. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "chain/store/blob/blobs_impl.h"
#include "chain/store/blob/short_form.h"
#include "common/base/mem.h"
#include "common/base/try.h"

int kedgei_sealing_new(struct kedge_blobs *b, const struct kedge_id *key, const struct kedge_hash *digest,
                       uint64_t total, struct kedgei_sealing **ret, struct kedge_diag *reterr)
{
    struct kedgei_sealing *s = kedge_mem_new(1, sizeof *s);
    if (!s) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", b->staging_dir);
    }
    int err = kedge_blob_keys_get(b->keys, key, &s->id, &s->seed, reterr);
    if (err) {
        kedgei_sealing_free(s);
        return err;
    }
    s->digest = *digest;
    s->total = total;
    kedgei_sealing_restart(s);
    *ret = s;
    return KEDGE_OK;
}

void kedgei_sealing_free(struct kedgei_sealing *s)
{
    if (s) {
        kedge_mem_free(s->chunk);
        kedge_wipe(s, sizeof *s);
        kedge_mem_free(s);
    }
}

/* A new salt gives a new file key. So content that is sent once more, perhaps other content, is never
 * encrypted under a key and nonce that an earlier try used. */
void kedgei_sealing_restart(struct kedgei_sealing *s)
{
    s->chunks = 0;
    s->held = 0;
    kedge_blob_cipher_new(kedge_aead_best(), &s->id, &s->seed, &s->digest, &s->cipher);
}

/* Content of chunk i. */
static size_t chunk_len(const struct kedgei_sealing *s, uint64_t i)
{
    uint64_t left = s->total - i * KEDGE_BLOB_CHUNK;
    return left < KEDGE_BLOB_CHUNK ? (size_t)left : KEDGE_BLOB_CHUNK;
}

static bool is_last(const struct kedgei_sealing *s, uint64_t i)
{
    return s->total - i * KEDGE_BLOB_CHUNK <= KEDGE_BLOB_CHUNK;
}

/* The next chunk; the head goes with the first. The head is written together with the first chunk: a
 * staged file that has a head has something to go on with. */
static int write_chunk(struct kedgei_sealing *s, int fd, struct kedge_view plain)
{
    uint8_t *out = kedgei_blob_scratch();
    KEDGE_TRY_MEM(out);
    size_t head = s->chunks == 0 ? KEDGE_BLOB_HEAD_LEN : 0;
    uint64_t at = kedge_blob_chunk_offset(s->cipher.aead, s->chunks) - head;
    memcpy(out, s->cipher.head, head);
    kedge_blob_chunk_seal(&s->cipher, s->chunks, is_last(s, s->chunks), plain, out + head);
    size_t len = head + plain.len + kedge_blob_chunk_overhead(s->cipher.aead);
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, out + done, len - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return KEDGE_E_IO;
        }
        done += (size_t)n;
    }
    s->chunks++;
    return KEDGE_OK;
}

/* Puts bytes behind what is held. */
static int hold(struct kedgei_sealing *s, struct kedge_view bytes)
{
    s->chunk = s->chunk ? s->chunk : kedge_mem_new(KEDGE_BLOB_CHUNK, 1);
    KEDGE_TRY_MEM(s->chunk);
    if (bytes.len > 0) {
        memcpy(s->chunk + s->held, bytes.ptr, bytes.len);
    }
    s->held += bytes.len;
    return KEDGE_OK;
}

/* Content comes in pieces of any length and leaves in whole chunks, each sealed for itself. What is left of
 * a piece is held until the next. After an error everything is as before the call, so the same piece can be
 * written again. */
int kedgei_sealing_write(struct kedgei_sealing *s, int fd, struct kedge_view bytes)
{
    const uint64_t chunks = s->chunks;
    const size_t held = s->held;
    size_t done = 0;
    int err = KEDGE_OK;
    if (held > 0) { /* what is held comes first; its beginning stays in `chunk` until all is written */
        size_t missing = chunk_len(s, chunks) - held;
        done = bytes.len < missing ? bytes.len : missing;
        err = hold(s, kedge_view_of(bytes.ptr, done));
        if (!err && done == missing) {
            err = write_chunk(s, fd, kedge_view_of(s->chunk, s->held));
            s->held = 0;
        }
    }
    bool is_empty = s->total == 0 && s->chunks == 0;
    while (!err && s->held == 0 && (done < bytes.len || is_empty)) {
        size_t len = chunk_len(s, s->chunks);
        if (bytes.len - done < len) {
            break;
        }
        err = write_chunk(s, fd, kedge_view_of(len > 0 ? bytes.ptr + done : NULL, len));
        done += len;
        is_empty = false;
    }
    if (!err && done < bytes.len) {
        err = hold(s, kedge_view_of(bytes.ptr + done, bytes.len - done));
    }
    if (err) {
        s->chunks = chunks;
        s->held = held;
    }
    return err;
}

/* ---- small ones ---- */

/* A small blob is read back, deflated and sealed again as one chunk, if that saves enough. Its head says
 * which form it has. Sealed under a cipher of its own: reusing the upload's key with another head is
 * impossible, because the head enters the derivation. Decrypted content is overwritten before its memory
 * is freed. */
bool kedgei_sealing_shorten(const struct kedgei_sealing *s, struct kedge_view stored, uint8_t *out,
                            size_t *ret_len)
{
    const enum kedge_aead aead = s->cipher.aead;
    const size_t frame = KEDGE_BLOB_HEAD_LEN + kedge_blob_chunk_overhead(aead);
    if (s->total > KEDGEI_SHORT_CONTENT_MAX || stored.len != frame + s->total
        || s->total <= KEDGEI_SHORT_GAIN_MIN) {
        return false;
    }
    size_t most = (size_t)s->total - KEDGEI_SHORT_GAIN_MIN, len = 0;
    uint8_t *content = kedge_mem_new((size_t)s->total, 1), *brief = kedge_mem_new(most, 1);
    struct kedge_view chunk =
        kedge_view_of(stored.ptr + KEDGE_BLOB_HEAD_LEN, stored.len - KEDGE_BLOB_HEAD_LEN);
    enum kedgei_short_how how = KEDGEI_SHORT_NOT;
    if (content && brief && kedge_blob_chunk_open(&s->cipher, 0, true, chunk, content) == KEDGE_OK) {
        how = kedgei_shorten(kedge_view_of(content, (size_t)s->total), brief, most, &len);
    }
    if (how != KEDGEI_SHORT_NOT) {
        struct kedge_blob_cipher c;
        kedge_blob_cipher_short(aead, &s->id, &s->seed, &s->digest, how, (uint32_t)s->total, &c);
        memcpy(out, c.head, sizeof c.head);
        kedge_blob_chunk_seal(&c, 0, true, kedge_view_of(brief, len), out + sizeof c.head);
        kedge_blob_cipher_wipe(&c);
        *ret_len = frame + len;
    }
    if (content) {
        kedge_wipe(content, (size_t)s->total);
    }
    if (brief) {
        kedge_wipe(brief, most);
    }
    kedge_mem_free(content);
    kedge_mem_free(brief);
    return how != KEDGEI_SHORT_NOT;
}

/* ---- going on ---- */

/* The cipher of the file that is there; false: it is none of ours, or of another key. */
static bool take_head(struct kedgei_sealing *s, int fd)
{
    uint8_t head[KEDGE_BLOB_HEAD_LEN];
    struct kedge_blob_key_id id;
    enum kedge_aead aead;
    return kedge_fd_read_at(fd, head, sizeof head, 0) == KEDGE_OK
           && kedge_blob_head_read(head, &aead, &id) == KEDGE_OK && memcmp(id.b, s->id.b, sizeof id.b) == 0
           && kedge_blob_cipher_of(head, &s->seed, &s->digest, &s->cipher) == KEDGE_OK;
}

/* What a former upload left is read as long as its chunks open; the rest of the file is cut off, and the
 * upload goes on there. Chunks that do not open may be half written or another one's. Nothing about the
 * upload's progress is stored; the tags themselves say up to where the file is good. The hash runs over
 * the decrypted content, which is what the digest is of. Half a chunk that waited in memory at the crash
 * is lost and comes again. */
int kedgei_sealing_resume(struct kedgei_sealing *s, int fd, struct kedge_hasher *h, uint64_t *ret_size)
{
    uint64_t size = 0;
    uint8_t *scratch = kedgei_blob_scratch();
    KEDGE_TRY_MEM(scratch);
    bool is_ours = take_head(s, fd);
    while (is_ours && (size < s->total || s->chunks == 0)) {
        size_t len = chunk_len(s, s->chunks), stored = len + kedge_blob_chunk_overhead(s->cipher.aead);
        uint8_t *plain = scratch + kedge_aead_nonce_len(s->cipher.aead);
        if (kedge_fd_read_at(fd, scratch, stored, kedge_blob_chunk_offset(s->cipher.aead, s->chunks))
                != KEDGE_OK
            || kedge_blob_chunk_open(&s->cipher, s->chunks, is_last(s, s->chunks),
                                     kedge_view_of(scratch, stored), plain)
                   != KEDGE_OK) {
            break;
        }
        kedge_hasher_update(h, kedge_view_of(plain, len));
        size += len;
        s->chunks++;
    }
    if (s->chunks == 0) {
        kedgei_sealing_restart(s);
    }
    uint64_t end = s->chunks == 0     ? 0
                   : size == s->total ? kedge_blob_stored_len(s->cipher.aead, size)
                                      : kedge_blob_chunk_offset(s->cipher.aead, s->chunks);
    if (ftruncate(fd, (off_t)end) != 0) {
        return kedge_errno(errno);
    }
    *ret_size = size;
    return KEDGE_OK;
}
