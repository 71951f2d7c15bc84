/* Content-addressed files: DIR/blobs/ab/cdef… (lower-case hex of the SHA-256), and uploads under way in
 * DIR/staging/. Where the options say so, small blobs lie together in files DIR/blobs/pack-N (packs.h); both
 * are read everywhere. Uploads under a key's name are encrypted as they come (blob_cipher.h); all that reads
 * here gives the content, be it stored plain or encrypted. A file in blobs/ is whole and durable: it gets
 * there by fsync, rename and fsync of the folder only; so is what was put into a pack. Nothing outside blobs/
 * and staging/ is touched. Thread-safe; each writer or upload object by one thread at a time. */
#ifndef KEDGE_CHAIN_STORE_BLOB_BLOBS_H
#define KEDGE_CHAIN_STORE_BLOB_BLOBS_H

#include "chain/store/blob/blob_file.h"
#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "crypto/hash.h"

struct kedge_blobs;
struct kedge_blob_writer;
struct kedge_upload;

struct kedge_blobs_options {
    bool read_only;         /* no folder is made, nothing cleaned, no put */
    size_t uploads_max;     /* writers and uploads open at once; 0: 1024, beyond it KEDGE_E_FULL */
    uint64_t reserve_bytes; /* free space that uploads must leave; 0: 64 MiB */
    uint32_t resume_hours;  /* staging files of uploads younger than this survive open; 0: 72 */
    const char *keys_dir;   /* folder of the keys, blob_keys.h; NULL: none. Used by open alone */
    bool encrypt;           /* uploads under a key's name are encrypted; needs keys_dir */
    bool pack;              /* new blobs of up to 64 KiB share files */
    bool sync_later;        /* what goes into packs is durable when the caller syncs the file system */
};

/* Makes DIR/blobs and DIR/staging (0700), removes stale staging files. options may be NULL. */
KEDGE_NODISCARD int kedge_blobs_open(const char *dir, const struct kedge_blobs_options *options,
                                     struct kedge_blobs **ret, struct kedge_diag *reterr);
/* What is not here is looked for there, too, when a path is asked for; `other` outlives b. NULL: no more. */
void kedge_blobs_lean_on(struct kedge_blobs *b, const struct kedge_blobs *other);
/* No writer or upload may be open. NULL is fine. */
void kedge_blobs_close(struct kedge_blobs *b);

/* Its keys; NULL: none. */
struct kedge_blob_keys *kedge_blobs_keys(const struct kedge_blobs *b);
/* Where the blob is or would be, for readers of content; path is the memory that ret borrows. */
KEDGE_NODISCARD int kedge_blobs_at(const struct kedge_blobs *b, const struct kedge_hash *digest,
                                   char path[KEDGE_PATH_MAX], struct kedge_blob_at *ret);
/* Where it is or its file would be: a path for struct kedge_blob_at. */
KEDGE_NODISCARD int kedge_blobs_path(const struct kedge_blobs *b, const struct kedge_hash *digest,
                                     char out[KEDGE_PATH_MAX]);
/* KEDGE_E_NOT_FOUND, or the size of its content (ret_size may be NULL). Does not read the content. */
KEDGE_NODISCARD int kedge_blobs_find(const struct kedge_blobs *b, const struct kedge_hash *digest,
                                     uint64_t *ret_size);
/* What it takes on the disk, and when it came there, ms since 1970. KEDGE_E_NOT_FOUND. */
KEDGE_NODISCARD int kedge_blobs_stored(const struct kedge_blobs *b, const struct kedge_hash *digest,
                                       uint64_t *ret_bytes, uint64_t *ret_ms);
/* Reads the whole file and compares: KEDGE_E_CORRUPT when its content is not what its name says;
 * KEDGE_E_SEALED: its key is not here. */
KEDGE_NODISCARD int kedge_blobs_verify(const struct kedge_blobs *b, const struct kedge_hash *digest,
                                       struct kedge_diag *reterr);
/* Appends the content to ret after checking its digest. KEDGE_E_NOT_FOUND, _TOO_LONG, _CORRUPT, _SEALED. */
KEDGE_NODISCARD int kedge_blobs_read(const struct kedge_blobs *b, const struct kedge_hash *digest,
                                     struct kedge_buf *ret, struct kedge_diag *reterr);
/* Removes what uploads of the blob, open ones too, have left in staging. */
KEDGE_NODISCARD int kedge_blobs_unstage(struct kedge_blobs *b, const struct kedge_hash *digest,
                                        struct kedge_diag *reterr);
/* Removes the blob, durably: its name is gone and its space free when this returns, in a pack its bytes are
 * overwritten; so is what uploads of it left in staging. What the medium under the file system keeps of it is
 * not overwritten: where files move (copy on write, flash), nothing would be. An absent blob is fine. */
KEDGE_NODISCARD int kedge_blobs_remove(struct kedge_blobs *b, const struct kedge_hash *digest,
                                       struct kedge_diag *reterr);
/* The same for a blob that no statement names: not durably, staging stays. */
KEDGE_NODISCARD int kedge_blobs_drop(struct kedge_blobs *b, const struct kedge_hash *digest,
                                     struct kedge_diag *reterr);
/* Gives the file system back what packs no longer use, where that is worth it: most of a pack. For who has
 * just opened the store: paths of before lead nowhere. *ret_freed: bytes. */
KEDGE_NODISCARD int kedge_blobs_compact(struct kedge_blobs *b, uint64_t *ret_freed,
                                        struct kedge_diag *reterr);
/* Tells the system that the blob will hardly be read again soon: its pages may go to what is written next,
 * instead of memory being claimed anew for every round. Nothing else changes; an absent blob is fine. */
void kedge_blobs_drop_cache(const struct kedge_blobs *b, const struct kedge_hash *digest);
/* Stores the concatenation of the parts, durably; fine when it is there already. */
KEDGE_NODISCARD int kedge_blobs_put(struct kedge_blobs *b, const struct kedge_view *parts, size_t count,
                                    struct kedge_hash *ret_digest, struct kedge_diag *reterr);

/* Takes a blob that lies in a pack of another store, whose path there this is, as it is stored: nothing is
 * decrypted or compared. KEDGE_E_NOT_FOUND: it is gone; KEDGE_E_ARG: the path is that of a file. */
KEDGE_NODISCARD int kedge_blobs_take(struct kedge_blobs *b, const struct kedge_hash *digest, const char *path,
                                     struct kedge_diag *reterr);

/* A file of its own for a blob that lies in a pack: its content, or as it is stored, encrypted under its key.
 * KEDGE_E_NOT_FOUND: it is in none. */
KEDGE_NODISCARD int kedge_blobs_copy_packed(struct kedge_blobs *b, const struct kedge_hash *digest,
                                            const char *to, struct kedge_diag *reterr);

/* ---- streaming: the digest is known at the end ---- */

/* expected_bytes: a guess for the check of free space, 0 when unknown. */
KEDGE_NODISCARD int kedge_blob_writer_open(struct kedge_blobs *b, uint64_t expected_bytes,
                                           struct kedge_blob_writer **ret, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_blob_writer_write(struct kedge_blob_writer *w, struct kedge_view bytes,
                                            struct kedge_diag *reterr);
/* Makes it a blob, durably. Frees w in every case. Outputs may be NULL. */
KEDGE_NODISCARD int kedge_blob_writer_finish(struct kedge_blob_writer *w, struct kedge_hash *ret_digest,
                                             uint64_t *ret_size, struct kedge_diag *reterr);
/* Drops what was written and frees w. NULL is fine. */
void kedge_blob_writer_abort(struct kedge_blob_writer *w);

/* ---- uploads: digest and size are announced, may be resumed ---- */

/* Begins, or resumes what a former process or connection left: *ret_offset is how much is there, where
 * the next write must start. `name` tells uploaders apart (a site's id). Resuming reads and hashes what
 * is on disk. KEDGE_E_EXISTS: the blob is there already. KEDGE_E_BUSY: the same upload is open.
 * KEDGE_E_FULL: too many. KEDGE_E_DISK_FULL: no room for the announced size.
 * Where the store encrypts, it is kept under the key of that name (NULL: plain), which is made when there is
 * none. What waits for the rest of its chunk is lost with the process: resuming starts at a whole one. */
KEDGE_NODISCARD int kedge_upload_open(struct kedge_blobs *b, const struct kedge_id *name,
                                      const struct kedge_id *key, const struct kedge_hash *digest,
                                      uint64_t total, struct kedge_upload **ret, uint64_t *ret_offset,
                                      struct kedge_diag *reterr);
/* Sequential: offset must be what is there already (kedge_upload_offset), else KEDGE_E_STATE and nothing
 * changes; bytes beyond the announced size: KEDGE_E_BLOB_SIZE. After an error of the disk the offset is
 * what it was. */
KEDGE_NODISCARD int kedge_upload_write(struct kedge_upload *u, uint64_t offset, struct kedge_view bytes,
                                       struct kedge_diag *reterr);
uint64_t kedge_upload_offset(const struct kedge_upload *u);
/* Checks size (KEDGE_E_STATE while bytes are missing) and digest. KEDGE_E_BLOB_DIGEST: the staging file
 * is gone, the offset is 0 again. The content may be read at kedge_upload_at afterwards, before it is
 * committed. */
KEDGE_NODISCARD int kedge_upload_finish(struct kedge_upload *u, struct kedge_diag *reterr);
/* The staging file; valid as long as u. */
const char *kedge_upload_path(const struct kedge_upload *u);
void kedge_upload_at(const struct kedge_upload *u, struct kedge_blob_at *ret);
/* Something of the caller's that lives as long as u; release is called with it. Replaces nothing: once per u.
 */
void kedge_upload_attach(struct kedge_upload *u, void *what, void (*release)(void *what));
void *kedge_upload_attached(const struct kedge_upload *u); /* NULL: nothing */
/* After finish: moves it into blobs/, durably. Frees u on success; on an error u stays, commit may be
 * tried again. */
KEDGE_NODISCARD int kedge_upload_commit(struct kedge_upload *u, struct kedge_diag *reterr);
/* Leaves the staging file for a later resume; frees u. NULL is fine. */
void kedge_upload_close(struct kedge_upload *u);
/* Removes the staging file; frees u. NULL is fine. */
void kedge_upload_abort(struct kedge_upload *u);

/* ---- keys ---- */

typedef bool kedge_blobs_may_shred(void *arg, const struct kedge_id *name);
/* Destroys the keys under which no file of blobs/ and no open upload is encrypted, if `may` says yes to them:
 * that no file is here is no proof that none is elsewhere, on a disk that is not mounted or in a backup;
 * uploads under them that were left in staging go. For keys that nobody will want again. *ret_count of them,
 * also after an error. */
KEDGE_NODISCARD int kedge_blobs_shred(struct kedge_blobs *b, kedge_blobs_may_shred *may, void *arg,
                                      size_t *ret_count, struct kedge_diag *reterr);

/* ---- sweep ---- */

enum kedge_blob_verdict { KEDGE_BLOB_KEEP, KEDGE_BLOB_DELETE, KEDGE_BLOB_STOP };
/* digest is NULL for a file or folder in blobs/ that is not a blob's name, and for a stretch of a pack that
 * is no record: `path` says which. size: what it takes as a file or in its pack. */
typedef enum kedge_blob_verdict kedge_blobs_visit(void *arg, const struct kedge_hash *digest, uint64_t size,
                                                  const char *path);
/* Every file below blobs/ and every blob in packs, in no order. Deleting frees nothing but that. Not meant to
 * run while blobs that no statement references yet are being committed: the caller knows which those are and
 * keeps them.
 */
KEDGE_NODISCARD int kedge_blobs_for_each(struct kedge_blobs *b, kedge_blobs_visit *visit, void *arg,
                                         struct kedge_diag *reterr);

#endif
