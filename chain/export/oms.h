/* OpenSSF model signatures (ossf/model-signing-spec v1.0): a Sigstore bundle with one ECDSA signature over
 * the list of a model's files. Kedge writes the minimum that every verifier must take: method "files",
 * SHA-256, a public key named by its hint; it reads what older producers wrote as well (rawBytes in place of
 * the hint, a single file named "."). Shards, other hashes, certificates and Sigstore identities are refused
 * by name. */
#ifndef KEDGE_CHAIN_EXPORT_OMS_H
#define KEDGE_CHAIN_EXPORT_OMS_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "crypto/hash.h"
#include "crypto/p256.h"

enum {
    KEDGE_OMS_FILES_MAX = 100000,            /* of one model */
    KEDGE_OMS_BUNDLE_MAX = 64 * 1024 * 1024, /* bytes of a signature file: 100,000 files with long names */
    KEDGE_OMS_IGNORE_MAX = 256,              /* paths that a signature leaves out */
};

struct kedge_oms_file {
    char *name; /* relative, '/' between folders; owned */
    struct kedge_hash digest;
};

/* Ascending by name (bytes of UTF-8, which is the order of code points). Zero is empty. */
struct kedge_oms_list {
    struct kedge_oms_file *files; /* owned */
    size_t count, cap;
};
void kedge_oms_list_deinit(struct kedge_oms_list *list);
/* SHA-256 of all digests in order: the model's root digest. */
void kedge_oms_root(const struct kedge_oms_list *list, struct kedge_hash *ret_root);

/* What a signature leaves out besides the four of git's at the root: exact relative paths; a folder's stands
 * for all below it. */
struct kedge_oms_ignore {
    const char *const *paths;
    size_t count;
    bool allow_symlinks;
};

/* Reads and hashes every file below the folder, or the one file path is (its name is "."). KEDGE_E_DENIED for
 * a symbolic link unless allowed, KEDGE_E_FORMAT for a name that is not UTF-8 or a thing that is no file,
 * KEDGE_E_FULL for too many files, KEDGE_E_NOT_FOUND. reterr names the file. */
KEDGE_NODISCARD int kedge_oms_read(const char *path, const struct kedge_oms_ignore *ignore,
                                   struct kedge_oms_list *ret_list, struct kedge_diag *reterr);

/* The same with another limit than KEDGE_OMS_FILES_MAX on files, and on folders. */
KEDGE_NODISCARD int kedge_oms_read_up_to(const char *path, const struct kedge_oms_ignore *ignore,
                                         size_t files_max, struct kedge_oms_list *ret_list,
                                         struct kedge_diag *reterr);

/* Appends the bundle, one line of JSON. `name` is the model's. The same list and key give the same bytes.
 * KEDGE_E_ARG: no file, or a name that is not UTF-8. */
KEDGE_NODISCARD int kedge_oms_sign(const char *name, const struct kedge_oms_list *list,
                                   const struct kedge_oms_ignore *ignore, const struct kedge_p256_key *key,
                                   struct kedge_buf *ret_bundle);

/* An opened signature: everything in it was signed. */
struct kedge_oms {
    char name[256]; /* of the model, as the signer has it; cut to what fits */
    struct kedge_hash root;
    struct kedge_oms_list list;
    bool allow_symlinks;
    char **ignore; /* owned */
    size_t ignore_count;
};
/* Checks form, signature and root digest. KEDGE_E_FORMAT, _TOO_LONG, _KEY (public_pem), KEDGE_E_VERIFY:
 * signed by another key, or not what was signed. */
KEDGE_NODISCARD int kedge_oms_open(struct kedge_view bundle, struct kedge_view public_pem,
                                   struct kedge_oms *ret, struct kedge_diag *reterr);
void kedge_oms_deinit(struct kedge_oms *oms);
/* That the model at path has exactly the files of the signature. `signature` is the path of the signature
 * file, which is left out when it lies in the model's folder (NULL: none). KEDGE_E_VERIFY names the first
 * file that is changed, missing or not signed. */
KEDGE_NODISCARD int kedge_oms_check(const struct kedge_oms *oms, const char *path, const char *signature,
                                    struct kedge_diag *reterr);

#endif
