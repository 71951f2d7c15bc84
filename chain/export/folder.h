/* Internal to chain/export: the folder that is written. It grows under a temporary name beside its place and
 * appears there whole, by one rename; every file is remembered for the manifest. */
#ifndef KEDGE_CHAIN_EXPORT_FOLDER_H
#define KEDGE_CHAIN_EXPORT_FOLDER_H

#include "common/base/os/file.h"
#include "crypto/hash.h"

/* Files of an export, and bytes of its manifest: what the check of an export reads at most. */
enum { KEDGEI_EX_FILES_MAX = 300000, KEDGEI_EX_MANIFEST_MAX = 96 * 1024 * 1024 };

struct kedgei_ex_file {
    char *path; /* relative; owned */
    uint64_t size;
    struct kedge_hash digest;
};

struct kedgei_ex_folder {
    char place[KEDGE_PATH_MAX], temporary[KEDGE_PATH_MAX]; /* temporary empty: not open */
    struct kedgei_ex_file *files;                          /* owned */
    size_t count, cap;
    uint64_t bytes;
};

/* KEDGE_E_EXISTS when there is something at the place. */
KEDGE_NODISCARD int kedgei_ex_folder_open(const char *place, struct kedgei_ex_folder *ret,
                                          struct kedge_diag *reterr);
/* Writes a new file; folders in its path are made. */
KEDGE_NODISCARD int kedgei_ex_put(struct kedgei_ex_folder *f, struct kedge_view content,
                                  struct kedge_diag *reterr, const char *format, ...) KEDGE_PRINTF(4, 5);
/* Copies a file; KEDGE_E_VERIFY when its content is not what the digest says. */
KEDGE_NODISCARD int kedgei_ex_copy(struct kedgei_ex_folder *f, const char *from,
                                   const struct kedge_hash *digest, const char *path,
                                   struct kedge_diag *reterr);
/* Files in ascending order of their paths. */
void kedgei_ex_sort(struct kedgei_ex_folder *f);
/* Makes everything durable and gives the folder its name; KEDGE_E_EXISTS when something came there
 * meanwhile. */
KEDGE_NODISCARD int kedgei_ex_folder_commit(struct kedgei_ex_folder *f, struct kedge_diag *reterr);
/* Removes what was not committed, frees the list. */
void kedgei_ex_folder_deinit(struct kedgei_ex_folder *f);

#endif
