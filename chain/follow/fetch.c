/* A file is fetched piece by piece into an upload of the blob store. The store keeps what came before an
 * interruption, so that the next run goes on there, and compares the digest when all is there. The source
 * is not trusted: before a byte is stored, the size that it tells must be one that such a file can have,
 * and no piece may contradict that size. */
#include "chain/follow/fetch.h"

#include <inttypes.h>

#include "common/base/try.h"

/* How much there is of it is the source's word. */
static int check_size(const struct kedge_follow_pieces *s, const struct kedge_blob_wanted *wanted,
                      uint64_t total, struct kedge_diag *d)
{
    uint64_t max = kedge_follow_blob_max(wanted);
    return total <= max
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT,
                                "%s: said to have %" PRIu64 " bytes; such a file has at most %" PRIu64,
                                s->name, total, max);
}

/* The first piece came along with the size. It is used when the upload begins at 0, and read in vain when
 * an earlier run has stored a part already. Each round brings at least one byte, so a source cannot keep
 * this loop busy for ever with empty pieces. */
static int fetch_pieces(const struct kedge_follow_pieces *s, struct kedge_upload *u, uint64_t have,
                        uint64_t total, struct kedge_view piece, struct kedge_diag *d)
{
    bool is_read = have == 0;
    while (have < total) {
        uint64_t again = total;
        if (s->is_stopped(s->arg)) {
            return kedge_diag_set(d, KEDGE_E_CANCELLED, "%s: interrupted; the next run goes on", s->name);
        }
        if (!is_read) {
            KEDGE_TRY(s->read(s->arg, have, &piece, &again, d));
        }
        if (again != total || piece.len == 0 || piece.len > total - have) {
            return kedge_diag_set(d, KEDGE_E_FORMAT,
                                  "%s: first said to have %" PRIu64 " bytes, then %" PRIu64
                                  ", with a piece of %zu at %" PRIu64,
                                  s->name, total, again, piece.len, have);
        }
        KEDGE_TRY(kedge_upload_write(u, have, piece, d));
        have += piece.len;
        is_read = false;
    }
    return KEDGE_OK;
}

int kedge_follow_fetch(const struct kedge_follow_pieces *source, struct kedge_blobs *blobs,
                       const struct kedge_id *reader, const struct kedge_blob_wanted *wanted,
                       uint64_t *ret_size, struct kedge_diag *reterr)
{
    struct kedge_upload *u = NULL;
    struct kedge_view piece;
    uint64_t total, have = 0;
    const struct kedge_id *key = wanted->job.s[0] ? &wanted->job : NULL;
    KEDGE_TRY(source->read(source->arg, 0, &piece, &total, reterr));
    KEDGE_TRY(check_size(source, wanted, total, reterr));
    KEDGE_TRY(kedge_upload_open(blobs, reader, key, &wanted->digest, total, &u, &have, reterr));
    int err = fetch_pieces(source, u, have, total, piece, reterr);
    if (!err) {
        err = kedge_upload_finish(u, reterr);
    }
    if (!err) {
        err = kedge_upload_commit(u, reterr);
    }
    if (err) {
        kedge_upload_close(u);
        return err;
    }
    *ret_size = total;
    return KEDGE_OK;
}
