/* Where the passphrase of sealed key files comes from: a file, named or in $KEDGE_PASSPHRASE_FILE, or a
 * person at the terminal. Never the command line, which others see. One source per process, set before
 * threads start. */
#ifndef KEDGE_CRYPTO_PASSPHRASE_H
#define KEDGE_CRYPTO_PASSPHRASE_H

#include "common/base/diag.h"
#include "crypto/sealed.h"

/* The name of a file whose first line is the passphrase; NULL: what the environment says. The file is a
 * secret: mode 0600. Kept, not copied. */
void kedge_passphrase_use_file(const char *path);
/* Without a file, ask at the terminal (no echo), once for all keys of the process. */
void kedge_passphrase_use_terminal(void);

/* Appends the passphrase for that key file, for reading it. KEDGE_E_DENIED: nobody may be asked; errors of
 * reading. The caller wipes. `again`: the one that was given last did not fit (a person may try again, a file
 * is not read twice: KEDGE_E_VERIFY). */
KEDGE_NODISCARD int kedge_passphrase_get(const char *key_path, bool again, struct kedge_buf *ret,
                                         struct kedge_diag *reterr);
/* A new one: from the file, or asked for twice. KEDGE_E_VERIFY: the two differ. */
KEDGE_NODISCARD int kedge_passphrase_new(const char *key_path, struct kedge_buf *ret,
                                         struct kedge_diag *reterr);
/* Overwrites what was remembered. */
void kedge_passphrase_forget(void);

#endif
