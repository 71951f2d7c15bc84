/* Small blobs, many to a file: blobs/pack-1, blobs/pack-2, … Each is a row of records that begin at multiples
 * of 64 bytes, integers big-endian:
 *
 *   head (64):  "KPAK" ‖ u8 version = 1 ‖ u8 state (1: a blob, 2: removed) ‖ 2 zeros ‖ u32 length
 *               ‖ u32 seconds since 1970 when it was put there ‖ digest (32) ‖ check of the bytes (8)
 *               ‖ check of the head (8); when removed, time, digest and check of the bytes are zeros
 *   bytes:      what a file of this blob alone would hold, plain or encrypted (blob_cipher.h)
 *   zeros:      up to the next multiple of 64
 *
 * A check is the beginning of a SHA-256: of the bytes, of the 56 bytes of head before it.
 * It tells what an interrupted write left behind; what the content is worth its digest tells. A file is only
 * appended to, by one process at a time (flock), and a record counts when its file was synced: writers that
 * come together share one sync. Removing overwrites the bytes with zeros before it changes the head. A
 * reader finds the records by their heads, goes over what is none 64 bytes at a time, and of two records with
 * one digest believes the later one. So a copy of the files, made at any time, is a store.
 *
 * Inside this room a packed blob's path is "…/pack-N@OFFSET+LENGTH", where its bytes are. */
#ifndef KEDGE_CHAIN_STORE_BLOB_PACKS_H
#define KEDGE_CHAIN_STORE_BLOB_PACKS_H

#include <pthread.h>

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/os/file.h"
#include "crypto/hash.h"

enum {
    KEDGEI_PACK_HEAD = 64,           /* also what records begin at a multiple of */
    KEDGEI_PACK_BLOB_MAX = 64 << 10, /* bytes of content; an encrypted one's file is a little longer */
    KEDGEI_PACK_STORED_MAX = KEDGEI_PACK_BLOB_MAX + 256,
    KEDGEI_PACK_FILE_MAX = 64 << 20, /* then the next file begins */
    KEDGEI_PACKS_MAX = 1 << 20,
};

enum kedgei_pack_state { KEDGEI_PACK_BLOB = 1, KEDGEI_PACK_REMOVED = 2 };

struct kedgei_pack_record {
    uint32_t pack;   /* number of its file */
    uint64_t offset; /* of its head */
    uint32_t len;    /* of its bytes */
    uint32_t time;   /* when it was put there, s since 1970 */
    enum kedgei_pack_state state;
    struct kedge_hash digest;
    uint8_t check[8]; /* of its bytes */
};

/* One file that was looked through. */
struct kedgei_pack {
    uint32_t number;
    uint64_t end; /* behind its last record */
};

/* Where the newest record of a digest is; where is 0 in a free slot. */
struct kedgei_pack_slot {
    uint8_t key[16]; /* the digest begins so */
    uint64_t where;  /* number, offset / 64 and length */
};

struct kedgei_packs {
    char dir[KEDGE_PATH_MAX]; /* the folder blobs/ */
    pthread_mutex_t mutex;    /* guards what follows */
    pthread_cond_t synced;
    struct kedgei_pack *files; /* ascending */
    size_t file_count, file_cap;
    struct kedgei_pack_slot *slots;
    size_t slot_count, slot_cap; /* cap: a power of two */
    uint64_t seed[2];            /* so that nobody chooses where digests meet */
    uint64_t shadowed;           /* records whose digest a later one has too */
    int fd;                      /* of the last file, when this process appends to it; else -1 */
    uint64_t durable;            /* bytes of it */
    uint64_t end;                /* behind what was appended, durable or not */
    uint64_t generation;         /* counts syncs that failed */
    bool is_syncing;
    bool syncs_later; /* the caller does */
    bool begin_anew;  /* what comes next goes into another file than the last */
};

/* Looks the files through. The folder need not be there. */
KEDGE_NODISCARD int kedgei_packs_open(const char *blobs_dir, struct kedgei_packs *ret,
                                      struct kedge_diag *reterr);
void kedgei_packs_close(struct kedgei_packs *p);

/* KEDGE_E_NOT_FOUND. */
KEDGE_NODISCARD int kedgei_packs_find(struct kedgei_packs *p, const struct kedge_hash *digest,
                                      struct kedgei_pack_record *ret);
/* Looks at what others have appended meanwhile. *ret_more: there was something. */
KEDGE_NODISCARD int kedgei_packs_refresh(struct kedgei_packs *p, bool *ret_more);
/* "…/pack-N@OFFSET+LENGTH", of the record's bytes. */
KEDGE_NODISCARD int kedgei_packs_path(const struct kedgei_packs *p, const struct kedgei_pack_record *record,
                                      char out[KEDGE_PATH_MAX]);
/* Takes such a path apart; false: it is an ordinary one, and file is it. */
bool kedgei_pack_place(const char *path, char file[KEDGE_PATH_MAX], uint64_t *ret_offset, uint64_t *ret_len);
/* "pack-N", N without leading zeros. */
bool kedgei_pack_name(const char *name, uint32_t *ret_number);

/* Every blob and every stretch that is no record's (record NULL) but for one at a file's end, which an
 * interrupted write may have left. Stops when visit says false. */
typedef bool kedgei_packs_visit(void *arg, const struct kedgei_pack_record *record, const char *path,
                                uint64_t len);
KEDGE_NODISCARD int kedgei_packs_for_each(struct kedgei_packs *p, kedgei_packs_visit *visit, void *arg,
                                          struct kedge_diag *reterr);

/* Durable when this returns. A whole record of the digest that is there already is enough. */
KEDGE_NODISCARD int kedgei_packs_put(struct kedgei_packs *p, const struct kedge_hash *digest,
                                     struct kedge_view stored, struct kedge_diag *reterr);
/* All records of the digest; KEDGE_E_NOT_FOUND. durable: the bytes are overwritten on the disk, and then the
 * name is gone; else whenever the system writes. */
KEDGE_NODISCARD int kedgei_packs_remove(struct kedgei_packs *p, const struct kedge_hash *digest, bool durable,
                                        struct kedge_diag *reterr);
/* Moves what is left of files of which less than half is in use, and removes these. No reader may hold a
 * path meanwhile. *ret_freed: bytes. */
KEDGE_NODISCARD int kedgei_packs_compact(struct kedgei_packs *p, uint64_t *ret_freed,
                                         struct kedge_diag *reterr);

/* ---- shared by packs.c, packs_index.c and packs_write.c; p->mutex is held ---- */

void kedgei_pack_head_write(const struct kedgei_pack_record *record, uint8_t out[KEDGEI_PACK_HEAD]);
void kedgei_pack_check(struct kedge_view bytes, uint8_t out[8]);
/* Bytes of a record with head and zeros. */
uint64_t kedgei_pack_whole(uint32_t len);
KEDGE_NODISCARD int kedgei_pack_file_path(const struct kedgei_packs *p, uint32_t number,
                                          char out[KEDGE_PATH_MAX]);
/* The next record at or behind *at; *at is behind it then. KEDGE_E_NOT_FOUND: none up to size. */
KEDGE_NODISCARD int kedgei_pack_next(int fd, uint32_t number, uint64_t size, uint64_t *at,
                                     struct kedgei_pack_record *ret);
/* Takes the records behind f->end into the index. */
KEDGE_NODISCARD int kedgei_pack_scan(struct kedgei_packs *p, struct kedgei_pack *f, int fd);
KEDGE_NODISCARD int kedgei_packs_add_file(struct kedgei_packs *p, uint32_t number, struct kedgei_pack **ret);
/* Pack, offset and length of the newest record with that digest (or one that begins as it does). */
bool kedgei_packs_recall(const struct kedgei_packs *p, const struct kedge_hash *digest,
                         struct kedgei_pack_record *ret);
KEDGE_NODISCARD int kedgei_packs_note(struct kedgei_packs *p, const struct kedgei_pack_record *record);
void kedgei_packs_forget(struct kedgei_packs *p, const struct kedge_hash *digest);
/* kedgei_packs_find with the mutex held. */
KEDGE_NODISCARD int kedgei_packs_look(struct kedgei_packs *p, const struct kedge_hash *digest,
                                      struct kedgei_pack_record *ret);

#endif
