/* Reading a blob's content wherever it begins, be the file plain or encrypted (blob_cipher.h), or in its
 * short form (short_form.h): that is small, and lengthened when it is opened. One reader by one thread at a
 * time, except that reads of a mapped one may be made from several. Memory: a chunk per thread. */
#ifndef KEDGE_CHAIN_STORE_BLOB_BLOB_FILE_H
#define KEDGE_CHAIN_STORE_BLOB_BLOB_FILE_H

#include "chain/store/blob/blob_keys.h"
#include "common/base/os/file.h"

/* Where a blob is, and what opens it. Borrowed. The path is its file's, or "…/pack-N@OFFSET+LENGTH" for one
 * that lies with others in a file (packs.h): such paths are opened here only. */
struct kedge_blob_at {
    const char *path;
    struct kedge_blob_keys *keys; /* NULL: none; plain files need none */
    struct kedge_hash digest;     /* that the content has or shall have; of no account for plain files */
    const void *values; /* there is no file: the values of a vector, in memory, and `path` is what people call
                           it; read by round/ alone. NULL: a file */
};

enum kedge_blob_how {
    KEDGE_BLOB_READ, /* by read(2): an error of the disk is an error */
    KEDGE_BLOB_MAP,  /* mapped, no descriptor is kept: an error of the disk is a signal */
};

struct kedge_blob_file {
    int fd; /* -1: mapped */
    struct kedge_map map;
    uint64_t begin;                  /* where it begins in the file of the descriptor */
    uint64_t size;                   /* of the content */
    bool is_sealed;                  /* chunks are decrypted when they are read; map is none of content */
    uint8_t *content;                /* of a file in short form: `map` is of these bytes; else NULL */
    struct kedge_blob_cipher cipher; /* its head is zeros if the file is not encrypted */
};

/* KEDGE_E_NOT_FOUND; KEDGE_E_SEALED: encrypted, and its key is not here; KEDGE_E_CORRUPT: a head or a length
 * that no encrypted file has. Links are not followed. Digests are not compared: chunks of an encrypted file
 * prove themselves, a plain file proves nothing. */
KEDGE_NODISCARD int kedge_blob_file_open(const struct kedge_blob_at *at, enum kedge_blob_how how,
                                         struct kedge_blob_file *ret, struct kedge_diag *reterr);
void kedge_blob_file_close(struct kedge_blob_file *f);
/* Whether there is a blob at the path of kedge_blobs_path. */
bool kedge_blob_exists(const char *path);
/* len bytes of the content from offset. KEDGE_E_CORRUPT: the file ends before, or a chunk is not as it was
 * written. KEDGE_E_IO. */
KEDGE_NODISCARD int kedge_blob_file_read(const struct kedge_blob_file *f, uint64_t offset, uint8_t *out,
                                         size_t len);

#endif
