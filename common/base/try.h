/* Early return in one line. Pure. */
#ifndef KEDGE_COMMON_BASE_TRY_H
#define KEDGE_COMMON_BASE_TRY_H

#include "common/base/err.h"

/* Calls something that returns KEDGE_OK or an error, and leaves the calling function with that error. For
 * steps after which nothing has to be released, or only what KEDGE_CLEANUP releases; elsewhere the error is
 * looked at by hand. */
#define KEDGE_TRY(call)       \
    do {                      \
        int try_err = (call); \
        if (try_err) {        \
            return try_err;   \
        }                     \
    } while (0)

/* The same for memory, which is there or not: leaves with KEDGE_E_NOMEM where `there` is false. */
#define KEDGE_TRY_MEM(there) KEDGE_TRY((there) ? KEDGE_OK : KEDGE_E_NOMEM)

#endif
