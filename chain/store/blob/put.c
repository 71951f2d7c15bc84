/* Blobs from memory: small ones in a file with others, large ones through a writer.
 *
 * The one way for what this process has in memory already: lists, specs and small models. A small blob
 * costs one append to a shared file in place of a file, a rename and two syncs. */
#include <string.h>

#include "chain/store/blob/blobs.h"
#include "chain/store/blob/blobs_impl.h"
#include "chain/store/blob/short_form.h"
#include "common/base/mem.h"

/* Straight into a pack. */
static int put_packed(struct kedge_blobs *b, const struct kedge_view *parts, size_t count, size_t total,
                      struct kedge_hash *ret_digest, struct kedge_diag *reterr)
{
    int err = kedgei_blobs_admit(b, total, reterr);
    if (err) {
        return err;
    }
    struct kedge_hash digest;
    uint8_t *bytes = kedge_mem_new(total + 1, 1);
    size_t at = 0;
    for (size_t i = 0; bytes && i < count; i++) {
        if (parts[i].len > 0) {
            memcpy(bytes + at, parts[i].ptr, parts[i].len);
        }
        at += parts[i].len;
    }
    if (!bytes) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", b->blobs_dir);
    } else {
        kedge_sha256(kedge_view_of(bytes, total), &digest);
        err = kedgei_blobs_pack(b, &digest, kedge_view_of(bytes, total), reterr);
    }
    kedge_mem_free(bytes);
    kedgei_blobs_leave(b, total);
    if (!err && ret_digest) {
        *ret_digest = digest;
    }
    return err;
}

/* Content that begins like a short form may not lie in a pack: it would be taken for one. */
static bool begins_short(const struct kedge_view *parts, size_t count)
{
    uint8_t head[KEDGEI_SHORT_HEAD];
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n = parts[i].len < sizeof head - len ? parts[i].len : sizeof head - len;
        if (n > 0) {
            memcpy(head + len, parts[i].ptr, n);
        }
        len += n;
    }
    return kedgei_short_is(kedge_view_of(head, len));
}

int kedge_blobs_put(struct kedge_blobs *b, const struct kedge_view *parts, size_t count,
                    struct kedge_hash *ret_digest, struct kedge_diag *reterr)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += parts[i].len;
    }
    if (b->options.pack && total <= KEDGEI_PACK_BLOB_MAX && !begins_short(parts, count)) {
        return put_packed(b, parts, count, (size_t)total, ret_digest, reterr);
    }
    struct kedge_blob_writer *w;
    int err = kedge_blob_writer_open(b, total, &w, reterr);
    if (err) {
        return err;
    }
    for (size_t i = 0; i < count && !err; i++) {
        err = kedge_blob_writer_write(w, parts[i], reterr);
    }
    if (err) {
        kedge_blob_writer_abort(w);
        return err;
    }
    return kedge_blob_writer_finish(w, ret_digest, NULL, reterr);
}
