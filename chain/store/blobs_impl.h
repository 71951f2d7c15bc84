/* The blob store's inside, shared by its two files. */
#ifndef KEDGE_CHAIN_STORE_BLOBS_IMPL_H
#define KEDGE_CHAIN_STORE_BLOBS_IMPL_H

#include <pthread.h>

#include "chain/store/blobs.h"

struct kedge_blobs {
    char dir[KEDGE_PATH_MAX];
    char blobs_dir[KEDGE_PATH_MAX];
    char staging_dir[KEDGE_PATH_MAX];
    struct kedge_blobs_options options;
    pthread_mutex_t mutex; /* guards what follows */
    size_t open_count;
    uint64_t promised; /* bytes announced by open uploads and not yet written */
    uint64_t serial;
    bool folder_is_durable[256]; /* whose entry in blobs/ this process has synced */
    struct kedge_upload *uploads;
};

/* A file in staging, written from front to back and hashed on the way. */
struct kedgei_staged {
    struct kedge_blobs *b;
    int fd;
    uint64_t size, announced, written; /* written since it was opened */
    struct kedge_hasher *hasher;
    char path[KEDGE_PATH_MAX];
};

/* Takes a slot and the promise of `more` bytes: KEDGE_E_FULL, KEDGE_E_DISK_FULL. */
KEDGE_NODISCARD int kedgei_blobs_admit(struct kedge_blobs *b, uint64_t more, struct kedge_diag *reterr);
void kedgei_blobs_leave(struct kedge_blobs *b, uint64_t promised_left);

/* Fills s (path set by the caller); the file is made or found. */
KEDGE_NODISCARD int kedgei_staged_open(struct kedgei_staged *s, bool must_be_new, struct kedge_diag *reterr);
/* All of it or nothing: size and hash are as before after an error. */
KEDGE_NODISCARD int kedgei_staged_write(struct kedgei_staged *s, struct kedge_view bytes,
                                        struct kedge_diag *reterr);
/* Durable move into blobs/. The descriptor stays open. */
KEDGE_NODISCARD int kedgei_staged_move_in(struct kedgei_staged *s, const struct kedge_hash *digest,
                                          struct kedge_diag *reterr);
/* Closes, removes the file when told, gives slot and promise back. */
void kedgei_staged_close(struct kedgei_staged *s, bool remove_file);
/* Hashes the rest of an open file from its present offset on. */
KEDGE_NODISCARD int kedgei_hash_file(int fd, struct kedge_hasher *h, uint64_t *ret_size);

#endif
