/* A folder of evidence that is kept for a while: files OWNER.HEX.KIND, HEX the SHA-256 of what the file is
 * about. What may be in it is bounded for each owner and in all; the oldest goes first, so that an owner who
 * makes much of it pushes out his own. Several threads may work in one folder: at worst one more file than
 * the bounds allow stands there until the next kedge_kept_tidy. */
#ifndef KEDGE_COMMON_BASE_OS_KEPT_H
#define KEDGE_COMMON_BASE_OS_KEPT_H

#include <stddef.h>

#include "common/base/os/file.h"
#include "common/base/text.h"

enum { KEDGE_KEPT_DIGEST = 32, KEDGE_KEPT_KIND_MAX = 15 };

/* Files of a kind; 0: no bound. */
struct kedge_kept_rule {
    const char *kind; /* "refusal" … */
    uint32_t per_owner, most;
    uint64_t bytes;
};

/* Where the file is or would be. */
KEDGE_NODISCARD int kedge_kept_path(char out[KEDGE_PATH_MAX], const char *dir, const struct kedge_id *owner,
                                    const uint8_t digest[KEDGE_KEPT_DIGEST], const char *kind);
/* Another name for the file `from`, in the folder, which is made when there is none: no copy, and `from` may
 * go. Its age begins now. Fine when the name is there already. KEDGE_E_NOT_FOUND: there is no `from`. */
KEDGE_NODISCARD int kedge_kept_link(const char *dir, const struct kedge_id *owner,
                                    const uint8_t digest[KEDGE_KEPT_DIGEST], const char *kind,
                                    const char *from);
/* Files that went before their time; of these, files that nobody had been shown. */
struct kedge_kept_gone {
    uint32_t beyond, unseen;
};
/* Removes what is older than `seconds` at unix time now_s, and the oldest of what is beyond the rules; files
 * of other names stay. An absent folder is fine. With `mark`, a kind: what has no file of that kind of its
 * owner and digest has been shown to nobody. It does not go by its age, and beyond the rules what was shown
 * goes first. A mark goes with the last file that it is about. NULL: all counts as shown. */
KEDGE_NODISCARD int kedge_kept_tidy(const char *dir, const struct kedge_kept_rule *rules, size_t count,
                                    const char *mark, uint64_t seconds, uint64_t now_s,
                                    struct kedge_kept_gone *ret, struct kedge_diag *reterr);
/* Removes the files of that kind about the digest, of every owner. */
KEDGE_NODISCARD int kedge_kept_remove(const char *dir, const uint8_t digest[KEDGE_KEPT_DIGEST],
                                      const char *kind, struct kedge_diag *reterr);

/* Another result than KEDGE_OK ends the walk with it. */
typedef int kedge_kept_visit(void *arg, const struct kedge_id *owner, const uint8_t digest[KEDGE_KEPT_DIGEST],
                             const char *path);
/* Every file of that kind, oldest first. An absent folder is an empty one. */
KEDGE_NODISCARD int kedge_kept_each(const char *dir, const char *kind, kedge_kept_visit *visit, void *arg,
                                    struct kedge_diag *reterr);

#endif
