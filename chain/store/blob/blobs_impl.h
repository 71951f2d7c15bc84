/* The blob store's inside, shared by its two files. */
#ifndef KEDGE_CHAIN_STORE_BLOB_BLOBS_IMPL_H
#define KEDGE_CHAIN_STORE_BLOB_BLOBS_IMPL_H

#include <pthread.h>

#include "chain/store/blob/blobs.h"
#include "chain/store/blob/packs.h"

enum { KEDGEI_BLOB_SCRATCH = KEDGE_BLOB_HEAD_LEN + KEDGE_BLOB_STORED_MAX };
/* This thread's, of that many bytes; NULL when out of memory. A caller of anything of this room meanwhile
 * may find it used. */
uint8_t *kedgei_blob_scratch(void);

struct kedge_blobs {
    char dir[KEDGE_PATH_MAX];
    char blobs_dir[KEDGE_PATH_MAX];
    char staging_dir[KEDGE_PATH_MAX];
    struct kedge_blobs_options options;
    struct kedge_blob_keys *keys;    /* NULL: none */
    struct kedgei_packs packs;       /* has its own mutex */
    const struct kedge_blobs *other; /* where what is not here may be; NULL */
    pthread_mutex_t mutex;           /* guards what follows */
    size_t open_count;
    uint64_t promised; /* bytes announced by open uploads and not yet written */
    uint64_t serial;
    bool folder_is_durable[256]; /* whose entry in blobs/ this process has synced */
    struct kedge_upload *uploads;
};

/* What a staged file that is encrypted needs besides. */
struct kedgei_sealing {
    struct kedge_blob_key_id id;
    struct kedge_seed seed;
    struct kedge_hash digest;
    struct kedge_blob_cipher cipher;
    uint64_t total;  /* bytes of content: tells which chunk is the last */
    uint64_t chunks; /* written */
    size_t held;     /* content that waits in `chunk` until it is one, */
    uint8_t *chunk;  /* NULL before the first */
};

/* A file in staging, written from front to back and hashed on the way. */
struct kedgei_staged {
    struct kedge_blobs *b;
    int fd;
    bool is_packed;                    /* its content is in a pack now: the file can go */
    struct kedgei_sealing *sealing;    /* NULL: it is plain */
    uint64_t size, announced, written; /* content; written: since it was opened */
    struct kedge_hasher *hasher;
    char path[KEDGE_PATH_MAX];
};

/* DIR/blobs/ab/cdef…, whether the blob has a file of its own or not. */
KEDGE_NODISCARD int kedgei_blobs_file(const struct kedge_blobs *b, const struct kedge_hash *digest,
                                      char out[KEDGE_PATH_MAX]);
/* Puts content into a pack, plain, in its short form if that is shorter. */
KEDGE_NODISCARD int kedgei_blobs_pack(struct kedge_blobs *b, const struct kedge_hash *digest,
                                      struct kedge_view content, struct kedge_diag *reterr);
/* The file that a blob's path leads to, and which part of it the blob is. A descriptor or an error. */
KEDGE_NODISCARD int kedgei_blob_open(const char *path, uint64_t *ret_begin, uint64_t *ret_len,
                                     struct kedge_diag *d);

/* Takes a slot and the promise of `more` bytes: KEDGE_E_FULL, KEDGE_E_DISK_FULL. */
KEDGE_NODISCARD int kedgei_blobs_admit(struct kedge_blobs *b, uint64_t more, struct kedge_diag *reterr);
void kedgei_blobs_leave(struct kedge_blobs *b, uint64_t promised_left);

/* ---- sealing.c: what encryption adds ---- */
/* Under the key of that name, which is made when there is none. */
KEDGE_NODISCARD int kedgei_sealing_new(struct kedge_blobs *b, const struct kedge_id *key,
                                       const struct kedge_hash *digest, uint64_t total,
                                       struct kedgei_sealing **ret, struct kedge_diag *reterr);
void kedgei_sealing_free(struct kedgei_sealing *s);
/* A new file: another salt, nothing written. */
void kedgei_sealing_restart(struct kedgei_sealing *s);
/* Encrypts and writes what makes whole chunks, holds the rest; chunks, held and what is held are as before
 * after an error. */
KEDGE_NODISCARD int kedgei_sealing_write(struct kedgei_sealing *s, int fd, struct kedge_view bytes);
/* What an earlier upload left: hashes the chunks that are as they were written, up to the first that is not,
 * and cuts the file off there. *ret_size: content that is kept. */
KEDGE_NODISCARD int kedgei_sealing_resume(struct kedgei_sealing *s, int fd, struct kedge_hasher *h,
                                          uint64_t *ret_size);
/* The whole file of what is stored, short: in a pack a small blob's content is encrypted in its short form,
 * if that is shorter. out: room for stored.len bytes; false: it is not. Under another salt. */
bool kedgei_sealing_shorten(const struct kedgei_sealing *s, struct kedge_view stored, uint8_t *out,
                            size_t *ret_len);
/* ---- upload.c ---- */
/* The open uploads, under b->mutex; and what key one is encrypted under, if it is. */
const struct kedge_upload *kedgei_upload_next(const struct kedge_upload *u);
bool kedgei_upload_key(const struct kedge_upload *u, struct kedge_blob_key_id *ret);
/* Hashes the rest of an open file from its present offset on. */
KEDGE_NODISCARD int kedgei_hash_file(int fd, struct kedge_hasher *h, uint64_t *ret_size);

#endif
