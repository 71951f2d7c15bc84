/* Blobs against what references them. Both lists are ascending, so one walk compares them. */
#include <stdlib.h>
#include <string.h>

#include "chain/store/blob/pruned.h"
#include "chain/store/fsck.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { PRUNED_MAX = 1 << 27 };

struct file {
    struct kedge_hash digest;
    uint64_t size;
};

struct run {
    const struct kedge_fsck *f;
    const struct kedge_fsck_blobs *b;
    struct kedge_blobs *blobs;
    struct kedge_fsck_counts *counts;
    struct file *files;
    size_t count, cap;
    bool nomem;
    struct kedge_buf pruned; /* what its operator gave up */
};

static void find(const struct run *r, enum kedge_fsck_severity severity, const char *where, const char *text,
                 const char *mend)
{
    struct kedge_fsck_finding finding = {
        .severity = severity, .part = "blob", .where = where, .text = text, .mend = mend};
    r->f->report(r->f->arg, &finding);
}

/* All names are listed before any content is read: hashing gigabytes takes minutes, in which a
 * coordinator at work adds and removes blobs. What came or went since is told apart below and never
 * reported as damage. */
static enum kedge_blob_verdict take_file(void *arg, const struct kedge_hash *digest, uint64_t size,
                                         const char *path)
{
    struct run *r = arg;
    if (!digest) {
        find(r, KEDGE_FSCK_STRAY, path, "this is no blob", "look at it and move it away");
        return KEDGE_BLOB_KEEP;
    }
    if (!kedge_mem_grow(&r->files, &r->cap, r->count, 1024, sizeof *r->files)) {
        r->nomem = true;
        return KEDGE_BLOB_STOP;
    }
    r->files[r->count++] = (struct file){*digest, size};
    return KEDGE_BLOB_KEEP;
}

static int compare_files(const void *a, const void *b)
{
    return kedge_hash_cmp(&((const struct file *)a)->digest, &((const struct file *)b)->digest);
}

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, KEDGE_HASH_LEN);
}

static bool is_in(struct kedge_view refs, const struct kedge_hash *digest)
{
    return refs.len > 0
           && bsearch(digest->b, refs.ptr, refs.len / KEDGE_HASH_LEN, KEDGE_HASH_LEN, compare_digests);
}

/* Whether another log has it. */
static bool is_elsewhere(const struct run *r, const struct kedge_hash *digest)
{
    static const struct kedge_blobs_options options = {.read_only = true};
    for (size_t i = 0; i < r->b->elsewhere_count; i++) {
        struct kedge_blobs *other;
        if (kedge_blobs_open(r->b->elsewhere[i], &options, &other, NULL) == KEDGE_OK) {
            bool found = kedge_blobs_find(other, digest, NULL) == KEDGE_OK;
            kedge_blobs_close(other);
            if (found) {
                return true;
            }
        }
    }
    return false;
}

/* A blob may lie in another log's folder, and a model that its operator pruned is made again by a replay:
 * neither is missing. */
static int find_missing(const struct run *r)
{
    for (size_t i = 0; i < r->b->refs.len / KEDGE_HASH_LEN; i++) {
        struct kedge_hash digest;
        char path[KEDGE_PATH_MAX];
        memcpy(digest.b, r->b->refs.ptr + i * KEDGE_HASH_LEN, KEDGE_HASH_LEN);
        struct file key = {.digest = digest};
        if ((r->count > 0 && bsearch(&key, r->files, r->count, sizeof key, compare_files))
            || kedge_blobs_find(r->blobs, &digest, NULL) == KEDGE_OK /* come since the folder was listed */
            || kedge_pruned_has(kedge_buf_view(&r->pruned), &digest) || is_elsewhere(r, &digest)) {
            continue;
        }
        KEDGE_TRY(kedge_blobs_path(r->blobs, &digest, path));
        find(r, KEDGE_FSCK_DAMAGE, path, "an entry names this blob, which is not here",
             "kedge ledger repair brings it back from a replica or backup");
    }
    return KEDGE_OK;
}

/* An encrypted blob without a key is damage where the keys belong to the folder, and a note where they
 * are kept elsewhere on purpose, as in a replica. A blob that no entry names is removed by the
 * coordinator at its next start; beside a running one it may be an update whose statement is about to be
 * appended. */
static int check_files(struct run *r, struct kedge_diag *reterr)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct file *file = &r->files[i];
        struct kedge_diag d = {.text = ""};
        char path[KEDGE_PATH_MAX];
        int err = kedge_blobs_path(r->blobs, &file->digest, path);
        if (!err) {
            err = kedge_blobs_verify(r->blobs, &file->digest, &d);
        }
        if (err == KEDGE_E_NOT_FOUND) {
            continue; /* gone since the folder was listed */
        }
        if (err == KEDGE_E_SEALED && !r->b->keys_belong_here
            && kedge_blob_keys_count(kedge_blobs_keys(r->blobs)) == 0) {
            find(r, KEDGE_FSCK_NOTE, path,
                 "it is encrypted and no key is here: its content was not looked at",
                 "look where the keys are");
        } else if (err == KEDGE_E_SEALED) {
            find(r, KEDGE_FSCK_DAMAGE, path, "it is encrypted, and its key is not here",
                 "restore the key from a backup, or kedge ledger repair brings the blob from a replica");
        } else if (err == KEDGE_E_CORRUPT || err == KEDGE_E_IO) {
            find(r, KEDGE_FSCK_DAMAGE, path,
                 err == KEDGE_E_IO ? "it cannot be read" : "its content does not have this digest",
                 "kedge ledger repair brings it back from a replica or backup");
        } else if (err) {
            return kedge_diag_set(reterr, err, "%s: %s", path, d.text[0] ? d.text : kedge_strerror(err));
        }
        bool is_known = is_in(r->b->refs, &file->digest) || is_in(r->b->also, &file->digest);
        if (!is_known && !r->b->strays_are_fine) {
            bool on_its_way = r->f->beside;
            find(r, on_its_way ? KEDGE_FSCK_NOTE : KEDGE_FSCK_STRAY, path, "no entry names this blob",
                 on_its_way ? "it may be on its way" : "the coordinator removes it when it starts");
        }
        r->counts->blobs++;
        r->counts->blob_bytes += file->size;
        if (r->f->progress) {
            r->f->progress(r->f->arg, "blobs", i + 1, r->count);
        }
    }
    return KEDGE_OK;
}

/* A damaged key file must not hide what it encrypts nor everything else: it is told, and the rest is
 * looked at without keys. */
int kedge_fsck_blobs(const struct kedge_fsck *f, const struct kedge_fsck_blobs *blobs,
                     struct kedge_fsck_counts *counts, struct kedge_diag *reterr)
{
    struct kedge_blobs_options options = {.read_only = true, .keys_dir = blobs->keys_dir};
    struct run r = {.f = f, .b = blobs, .counts = counts};
    struct kedge_diag d = {.text = ""};
    int err = kedge_blobs_open(blobs->dir, &options, &r.blobs, &d);
    if (err == KEDGE_E_KEY) { /* one key's file; what the others open is looked at when it is mended */
        find(&r, KEDGE_FSCK_DAMAGE, blobs->keys_dir, d.text,
             "restore this key from its backup, then look once more");
        options.keys_dir = NULL;
        err = kedge_blobs_open(blobs->dir, &options, &r.blobs, &d);
    }
    if (err && reterr) {
        *reterr = d;
    }
    if (err == KEDGE_E_NOT_FOUND) {
        find(&r, KEDGE_FSCK_DAMAGE, blobs->dir, "its folder of blobs is missing", "restore it from a backup");
        return KEDGE_OK;
    }
    if (err) {
        return err;
    }
    kedge_buf_init(&r.pruned, PRUNED_MAX);
    if (kedge_pruned_read(blobs->dir, &r.pruned, &d) != KEDGE_OK) {
        find(&r, KEDGE_FSCK_DAMAGE, blobs->dir, d.text, "restore it from a backup");
        kedge_buf_clear(&r.pruned);
    }
    err = kedge_blobs_for_each(r.blobs, take_file, &r, reterr);
    err = r.nomem ? kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", blobs->dir) : err;
    if (!err) {
        if (r.count > 0) {
            qsort(r.files, r.count, sizeof *r.files, compare_files);
        }
        err = find_missing(&r);
        if (!err) {
            err = check_files(&r, reterr);
        }
    }
    kedge_buf_deinit(&r.pruned);
    kedge_mem_free(r.files);
    kedge_blobs_close(r.blobs);
    return err;
}
