/* Puts back blobs that are missing or damaged, from another copy's folder. A blob is its own proof: its
 * name is the digest of its content, so the source needs no trust. Updates are encrypted again under this
 * folder's keys, under the key's name that they have in the source, so that shredding a job's key covers
 * them here as well; models and lists stay plain. */
#include <string.h>

#include "chain/store/blob/pruned.h"
#include "chain/store/repair.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { PIECE = 1 << 20, PRUNED_MAX = 1 << 27 };

static const struct kedge_blobs_options reading = {.read_only = true};
static const struct kedge_id plain_there = {"repaired"}, uploader = {"repair"};

/* Where content goes: the one way for files that are plain, the other for those that are encrypted here. */
struct target {
    struct kedge_blob_writer *writer;
    struct kedge_upload *upload;
};

/* The name of the key that the blob has there. A file's head names its key by an identifier only; the
 * source's key folder says which job that is. Where it does not, the blob goes under a key of its own
 * name, "repaired", and is not left in the clear. */
static struct kedge_id key_there(struct kedge_blobs *from, const struct kedge_blob_file *file)
{
    struct kedge_id name, found = plain_there;
    struct kedge_blob_key_id id, is;
    enum kedge_aead aead;
    bool sealed = kedge_blob_head_read(file->cipher.head, &aead, &id) == KEDGE_OK;
    for (size_t i = 0; sealed && kedge_blob_keys_at(kedge_blobs_keys(from), i, &name, &is); i++) {
        if (memcmp(is.b, id.b, sizeof id.b) == 0 && name.s[0]) {
            found = name;
        }
    }
    return found;
}

/* What is damaged here makes room first: what comes was looked at. */
static int target_open(struct kedge_blobs *from, struct kedge_blobs *to, const struct kedge_hash *digest,
                       const struct kedge_blob_file *file, bool seal, struct target *ret,
                       struct kedge_diag *d)
{
    *ret = (struct target){NULL, NULL};
    uint64_t offset = 0;
    KEDGE_TRY(kedge_blobs_unstage(to, digest, d));
    KEDGE_TRY(kedge_blobs_remove(to, digest, d));
    if (!seal) {
        return kedge_blob_writer_open(to, file->size, &ret->writer, d);
    }
    struct kedge_id key = key_there(from, file);
    return kedge_upload_open(to, &uploader, &key, digest, file->size, &ret->upload, &offset, d);
}

/* An upload is committed only after it was finished, which is where its digest is verified; on any error
 * its staged bytes go. */
static int target_end(struct target *t, int err, struct kedge_diag *d)
{
    if (err || !t->upload) {
        kedge_upload_abort(t->upload);
        if (err) {
            kedge_blob_writer_abort(t->writer);
        }
        return err ? err : kedge_blob_writer_finish(t->writer, NULL, NULL, d);
    }
    err = kedge_upload_finish(t->upload, d);
    if (!err) {
        err = kedge_upload_commit(t->upload, d);
    }
    if (err) {
        kedge_upload_abort(t->upload);
    }
    return err;
}

/* Copies a blob whose digest was checked; an error when it cannot be had. The result is verified once
 * more from the disk: what is reported as brought can be read. */
static int bring(struct kedge_blobs *from, struct kedge_blobs *to, const struct kedge_hash *digest, bool seal,
                 struct kedge_diag *d)
{
    struct target target = {NULL, NULL};
    struct kedge_blob_at at;
    struct kedge_blob_file file = {.fd = -1};
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_blobs_verify(from, digest, d)); /* nothing that is wrong gets a name in blobs/ */
    KEDGE_TRY(kedge_blobs_at(from, digest, path, &at));
    KEDGE_TRY(kedge_blob_file_open(&at, KEDGE_BLOB_READ, &file, d));
    uint8_t *piece = kedge_mem_new(PIECE, 1);
    int err = piece ? target_open(from, to, digest, &file, seal, &target, d) : KEDGE_E_NOMEM;
    for (uint64_t done = 0; done < file.size && !err;) {
        size_t n = file.size - done < PIECE ? (size_t)(file.size - done) : PIECE;
        struct kedge_view bytes = kedge_view_of(piece, n);
        err = kedge_blob_file_read(&file, done, piece, n);
        if (!err) {
            err = target.upload ? kedge_upload_write(target.upload, done, bytes, d)
                                : kedge_blob_writer_write(target.writer, bytes, d);
        }
        done += n;
    }
    kedge_mem_free(piece);
    kedge_blob_file_close(&file);
    err = target.upload || target.writer ? target_end(&target, err, d) : err;
    return err ? err : kedge_blobs_verify(to, digest, d);
}

/* A model that belongs to several tenants' ledgers lies in one folder only, so its absence here is no
 * loss when another folder of the same state has it. */
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

/* `must`: its absence is a loss. What cannot be brought is counted and the rest goes on; only errors of
 * this side (no space, no memory) end the repair. Absence alone is no loss for blobs that were pruned on
 * purpose. */
static int mend(const struct kedge_repair_blobs *r, struct kedge_blobs *here, struct kedge_blobs *there,
                const struct kedge_hash *digest, bool must, struct kedge_view pruned,
                struct kedge_repaired_blobs *n, struct kedge_diag *reterr)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_blobs_verify(here, digest, NULL);
    bool is_absent = err == KEDGE_E_NOT_FOUND;
    if (!err) {
        n->fine++;
        return KEDGE_OK;
    }
    err = there ? bring(there, here, digest, must && r->encrypt, &d) : KEDGE_E_NOT_FOUND;
    if (!err) {
        n->brought++;
        return KEDGE_OK;
    }
    if (err != KEDGE_E_NOT_FOUND && err != KEDGE_E_CORRUPT && err != KEDGE_E_IO && err != KEDGE_E_SEALED) {
        return kedge_diag_set(reterr, err, "%s", d.text[0] ? d.text : kedge_strerror(err));
    }
    if (!is_absent || (must && !kedge_pruned_has(pruned, digest) && !is_elsewhere(r, digest))) {
        n->first_lost = n->lost == 0 ? *digest : n->first_lost;
        n->lost++;
    }
    return KEDGE_OK;
}

int kedge_repair_blobs(const struct kedge_repair_blobs *r, struct kedge_repaired_blobs *ret,
                       struct kedge_diag *reterr)
{
    struct kedge_repaired_blobs n = {0};
    struct kedge_buf pruned;
    struct kedge_blobs *here, *there = NULL;
    const struct kedge_view lists[] = {r->refs, r->also};
    const struct kedge_blobs_options writing = {
        .keys_dir = r->keys_dir, .encrypt = r->encrypt, .pack = r->pack};
    const struct kedge_blobs_options source = {.read_only = true, .keys_dir = r->from_keys_dir};
    KEDGE_TRY(kedge_blobs_open(r->dir, &writing, &here, reterr));
    kedge_buf_init(&pruned, PRUNED_MAX);
    int err = kedge_pruned_read(r->dir, &pruned, reterr);
    if (kedge_blobs_open(r->from, &source, &there, NULL) != KEDGE_OK) {
        there = NULL; /* a replica without blobs: what is here must do */
    }
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < lists[k].len / KEDGE_HASH_LEN && !err; i++) {
            struct kedge_hash digest;
            memcpy(digest.b, lists[k].ptr + i * KEDGE_HASH_LEN, KEDGE_HASH_LEN);
            err = mend(r, here, there, &digest, k == 0, kedge_buf_view(&pruned), &n, reterr);
        }
    }
    kedge_buf_deinit(&pruned);
    kedge_blobs_close(there);
    kedge_blobs_close(here);
    if (!err) {
        *ret = n;
    }
    return err;
}
