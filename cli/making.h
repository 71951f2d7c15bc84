/* Copies of state folders that commands make: under another name until they are whole, verified before they
 * have theirs. */
#ifndef KEDGE_CLI_MAKING_H
#define KEDGE_CLI_MAKING_H

#include "cli/cli.h"
#include "common/base/os/file.h"

struct kedge_cli_making {
    char whole[KEDGE_PATH_MAX], unfinished[KEDGE_PATH_MAX + 16], lock_path[KEDGE_PATH_MAX + 32];
    int lock; /* -1: not begun */
};

/* `given` must not be there, or be an empty folder; `unfinished` is an empty folder then. What an interrupted
 * command left under that name goes. KEDGE_E_EXISTS, KEDGE_E_LOCKED: another process makes it. */
KEDGE_NODISCARD int kedge_cli_making_begin(struct kedge_cli_making *m, const char *given,
                                           struct kedge_diag *d);
/* Removes what is left of `unfinished`, and the lock. */
void kedge_cli_making_end(struct kedge_cli_making *m);
/* Gives a file or folder its name, durably. */
KEDGE_NODISCARD int kedge_cli_making_name(const char *unfinished, const char *whole, struct kedge_diag *d);
/* Judges the copy as an auditor does, but for who signed it: that the operator is not asked. Says the errors;
 * KEDGE_E_CORRUPT when there are any. `state`: what it is a copy of. */
KEDGE_NODISCARD int kedge_cli_making_verify(struct kedge_cli *c, const char *dir, const char *state,
                                            struct kedge_diag *d);
/* The folder `given`, or "state" in it. */
KEDGE_NODISCARD int kedge_cli_making_find(const char *given, char out[KEDGE_PATH_MAX], struct kedge_diag *d);

#endif
