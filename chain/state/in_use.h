/* STATE/in-use: written by a coordinator when it starts, removed when it stops in good order. It says which
 * file the coordinator's own store is (number and birth), which no copy of the folder is. So a folder that
 * has it, of another file than its own, was copied while its coordinator ran or after it was killed: file by
 * file, at different times. Such a copy is torn, if not by chance. */
#ifndef KEDGE_CHAIN_STATE_IN_USE_H
#define KEDGE_CHAIN_STATE_IN_USE_H

#include "common/base/diag.h"

enum kedge_in_use {
    KEDGE_IN_USE_NOT,       /* stopped in good order, or never started, or a copy of such a folder */
    KEDGE_IN_USE_HERE,      /* a coordinator runs here, or was killed */
    KEDGE_IN_USE_ELSEWHERE, /* a copy, made while its coordinator ran or after it was killed */
};

/* What cannot be read counts as not in use. */
enum kedge_in_use kedge_in_use_look(const char *state);
/* coordinator.lmdb must be there. */
KEDGE_NODISCARD int kedge_in_use_write(const char *state, struct kedge_diag *reterr);
void kedge_in_use_remove(const char *state);

#endif
