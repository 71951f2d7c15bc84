#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "chain/store/repair.h"
#include "common/base/mem.h"

enum { PIECE = 1 << 20 };

static const struct kedge_blobs_options reading = {.read_only = true};

/* Copies a blob whose digest is checked on the way; false when it cannot be had. */
static int bring(struct kedge_blobs *from, struct kedge_blobs *to, const struct kedge_hash *digest,
                 struct kedge_diag *d)
{
    struct kedge_blob_writer *w = NULL;
    struct kedge_hash found;
    uint64_t size = 0;
    char path[KEDGE_PATH_MAX];
    int err = kedge_blobs_find(from, digest, &size);
    err = err ? err : kedge_blobs_verify(from, digest, d); /* nothing that is wrong gets a name in blobs/ */
    err = err ? err : kedge_blobs_path(from, digest, path);
    int fd = err ? -1 : kedge_file_open(path, O_RDONLY | O_NOFOLLOW, d);
    uint8_t *piece = fd >= 0 ? kedge_mem_new(PIECE, 1) : NULL;
    err = err ? err : fd < 0 ? fd : !piece ? KEDGE_E_NOMEM : kedge_blob_writer_open(to, size, &w, d);
    for (uint64_t at = 0; at < size && !err;) {
        size_t n = size - at < PIECE ? (size_t)(size - at) : PIECE;
        err = kedge_fd_read_at(fd, piece, n, at);
        err = err ? err : kedge_blob_writer_write(w, kedge_view_of(piece, n), d);
        at += n;
    }
    if (fd >= 0) {
        close(fd);
    }
    kedge_mem_free(piece);
    if (err) {
        kedge_blob_writer_abort(w);
        return err;
    }
    err = kedge_blob_writer_finish(w, &found, NULL, d);
    return err ? err : kedge_hash_eq(&found, digest) ? KEDGE_OK : KEDGE_E_CORRUPT;
}

static bool is_elsewhere(const struct kedge_repair_blobs *r, const struct kedge_hash *digest)
{
    bool found = false;
    for (size_t i = 0; i < r->elsewhere_count && !found; i++) {
        struct kedge_blobs *other;
        if (kedge_blobs_open(r->elsewhere[i], &reading, &other, NULL) == KEDGE_OK) {
            found = kedge_blobs_find(other, digest, NULL) == KEDGE_OK;
            kedge_blobs_close(other);
        }
    }
    return found;
}

/* `must`: its absence is a loss. */
static int mend(const struct kedge_repair_blobs *r, struct kedge_blobs *here, struct kedge_blobs *there,
                const struct kedge_hash *digest, bool must, struct kedge_repaired_blobs *n,
                struct kedge_diag *reterr)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_blobs_verify(here, digest, NULL);
    bool is_absent = err == KEDGE_E_NOT_FOUND;
    if (!err) {
        n->fine++;
        return KEDGE_OK;
    }
    err = there ? bring(there, here, digest, &d) : KEDGE_E_NOT_FOUND;
    if (!err) {
        n->brought++;
        return KEDGE_OK;
    }
    if (err != KEDGE_E_NOT_FOUND && err != KEDGE_E_CORRUPT && err != KEDGE_E_IO) {
        return kedge_diag_set(reterr, err, "%s", d.text[0] ? d.text : kedge_strerror(err));
    }
    if (!is_absent || (must && !is_elsewhere(r, digest))) {
        n->first_lost = n->lost == 0 ? *digest : n->first_lost;
        n->lost++;
    }
    return KEDGE_OK;
}

int kedge_repair_blobs(const struct kedge_repair_blobs *r, struct kedge_repaired_blobs *ret,
                       struct kedge_diag *reterr)
{
    struct kedge_repaired_blobs n = {0};
    struct kedge_blobs *here, *there = NULL;
    const struct kedge_view lists[] = {r->refs, r->also};
    int err = kedge_blobs_open(r->dir, NULL, &here, reterr);
    if (err) {
        return err;
    }
    if (kedge_blobs_open(r->from, &reading, &there, NULL) != KEDGE_OK) {
        there = NULL; /* a replica without blobs: what is here must do */
    }
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < lists[k].len / KEDGE_HASH_LEN && !err; i++) {
            struct kedge_hash digest;
            memcpy(digest.b, lists[k].ptr + i * KEDGE_HASH_LEN, KEDGE_HASH_LEN);
            err = mend(r, here, there, &digest, k == 0, &n, reterr);
        }
    }
    kedge_blobs_close(there);
    kedge_blobs_close(here);
    if (!err) {
        *ret = n;
    }
    return err;
}
