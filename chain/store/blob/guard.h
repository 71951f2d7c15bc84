/* Runs a function in a child process, so that data which make a library crash or loop cost an error and
 * not the program. LMDB trusts its file: a damaged page can end in an assertion, SIGSEGV or SIGBUS. */
#ifndef KEDGE_CHAIN_STORE_BLOB_GUARD_H
#define KEDGE_CHAIN_STORE_BLOB_GUARD_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

/* Runs in the child. May append to ret_out and fill reterr; both travel back. Opens what it reads itself:
 * no LMDB store of the parent may be touched after the fork. */
typedef int kedge_store_guarded_fn(void *arg, struct kedge_buf *ret_out, struct kedge_diag *reterr);

/* Returns the function's result; KEDGE_E_CORRUPT when the child died or timeout_ms (0: no limit) ran out.
 * ret_out (may be NULL) receives what the child appended, at most its max. Not for processes whose other
 * threads hold locks that fn needs (call before threads start, or from a program without any). */
KEDGE_NODISCARD int kedge_store_guarded(kedge_store_guarded_fn *fn, void *arg, uint32_t timeout_ms,
                                        struct kedge_buf *ret_out, struct kedge_diag *reterr);
/* The same; while the child runs, watch(watch_arg) is called here some five times a second: what the child
 * does can be seen in memory that both share. */
typedef void kedge_store_watch(void *arg);
KEDGE_NODISCARD int kedge_store_guarded_watched(kedge_store_guarded_fn *fn, void *arg, uint32_t timeout_ms,
                                                kedge_store_watch *watch, void *watch_arg,
                                                struct kedge_buf *ret_out, struct kedge_diag *reterr);

#endif
