/* Errors: one list (err.def), stable values, a class that decides behaviour. Pure.
 * Functions return KEDGE_OK or a negative kedge_err; outputs are written only on success. */
#ifndef KEDGE_COMMON_BASE_ERR_H
#define KEDGE_COMMON_BASE_ERR_H

#include <stdbool.h>

#define KEDGE_NODISCARD __attribute__((warn_unused_result))
#define KEDGE_PRINTF(fmt_index, first) __attribute__((format(printf, fmt_index, first)))
#define KEDGE_CLEANUP(fn) __attribute__((cleanup(fn)))

enum kedge_err {
    KEDGE_OK = 0,
#define KEDGE_ERR(name, value, class, text) name = (value),
#include "common/base/err.def"
#undef KEDGE_ERR
};

enum kedge_err_class {
    KEDGE_CLASS_OK,
    KEDGE_CLASS_RETRY,
    KEDGE_CLASS_REJECT,
    KEDGE_CLASS_FULL,
    KEDGE_CLASS_UNKNOWN,
    KEDGE_CLASS_CORRUPT,
    KEDGE_CLASS_BUG,
};

/* Text for any int, "unknown error" outside the list. Static storage. */
const char *kedge_strerror(int err);
/* Name such as "KEDGE_E_ROUND_CLOSED"; static storage. */
const char *kedge_err_name(int err);
/* Stable code for JSON output, such as "ROUND_CLOSED" (the name without its prefix); static storage. */
const char *kedge_err_code(int err);
/* The error with that code (as kedge_err_code prints it), or KEDGE_E_UNKNOWN. */
int kedge_err_find(const char *code);
enum kedge_err_class kedge_err_class(int err);
/* 0 done, 1 the answer is no, 3 cannot reach or read, 4 refused by policy, 5 corrupt, 70 bug (DESIGN §4). */
int kedge_exit_code(int err);

/* Always on, release included. Never on outside input. */
#define KEDGE_ASSERT(cond)                                  \
    do {                                                    \
        if (!(cond)) {                                      \
            kedge_assert_failed(#cond, __FILE__, __LINE__); \
        }                                                   \
    } while (0)
_Noreturn void kedge_assert_failed(const char *cond, const char *file, int line);

#endif
