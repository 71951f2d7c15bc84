/* The regular files of a folder: listed, copied and hashed, for copies of state folders. Links, sockets and
 * devices are left out. */
#ifndef KEDGE_CHAIN_STATE_TREE_H
#define KEDGE_CHAIN_STATE_TREE_H

#include "common/base/diag.h"
#include "common/base/os/file.h"
#include "crypto/hash.h"

enum {
    KEDGE_TREE_DEPTH_MAX = 8,
    KEDGE_TREE_FILES_MAX = 64 << 20, /* more than an LMDB of 1 TiB names */
};

/* Names below the folder ("main/blobs/ab/cd…"), ascending by bytes. */
struct kedge_tree {
    char **names;
    size_t count, cap;
};

/* Whether this file is wanted, or this folder looked into. NULL in its place: all. */
typedef bool kedge_tree_wanted(void *arg, const char *name, bool is_dir);
KEDGE_NODISCARD int kedge_tree_list(const char *dir, kedge_tree_wanted *wanted, void *arg,
                                    struct kedge_tree *ret, struct kedge_diag *reterr);
/* All files, and all folders with "/" at their ends. */
KEDGE_NODISCARD int kedge_tree_list_all(const char *dir, struct kedge_tree *ret, struct kedge_diag *reterr);
void kedge_tree_deinit(struct kedge_tree *t);

/* A new file `to` (0600) with the content of `from`; its folder must be there. KEDGE_E_EXISTS. Not synced.
 * Outputs may be NULL. */
KEDGE_NODISCARD int kedge_tree_copy_file(const char *from, const char *to, struct kedge_hash *ret_digest,
                                         uint64_t *ret_bytes, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_tree_hash_file(const char *path, struct kedge_hash *ret_digest, uint64_t *ret_bytes,
                                         struct kedge_diag *reterr);
/* The folders on the way to DIR/NAME (0700). */
KEDGE_NODISCARD int kedge_tree_make_parents(const char *dir, const char *name, struct kedge_diag *reterr);
/* All that was written on the file system where dir is becomes durable. */
KEDGE_NODISCARD int kedge_tree_sync(const char *dir, struct kedge_diag *reterr);

#endif
