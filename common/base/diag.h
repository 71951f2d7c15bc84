/* Diagnostics for people: what is wrong, where, what was expected, what to do. Filled by functions that read
 * configuration, specs, files or peers' input; always the last parameter, may be NULL. No globals. Pure. */
#ifndef KEDGE_COMMON_BASE_DIAG_H
#define KEDGE_COMMON_BASE_DIAG_H

#include "common/base/err.h"

enum {
    KEDGE_DIAG_TEXT_MAX =
        2048, /* two paths of 1,023 bytes would fill it; what they say about them seldom does */
    KEDGE_DIAG_HINT_MAX = 1536, /* a path and a command, or the usage of the longest command */
};

/* What does not fit is cut between characters and ends with "…". */
struct kedge_diag {
    int err;                        /* the kedge_err returned */
    char text[KEDGE_DIAG_TEXT_MAX]; /* "FILE: field: problem, expected …" */
    char hint[KEDGE_DIAG_HINT_MAX]; /* what to do next; may be empty */
};

/* Sets err and text, clears the hint; returns err, so that `return kedge_diag_set(…)` reads well. */
int kedge_diag_set(struct kedge_diag *d, int err, const char *format, ...) KEDGE_PRINTF(3, 4);
/* Puts "prefix: " before the text on the way up; returns err unchanged. */
int kedge_diag_wrap(struct kedge_diag *d, int err, const char *format, ...) KEDGE_PRINTF(3, 4);
/* Sets the hint; returns d->err (KEDGE_E_UNKNOWN when d is NULL). */
int kedge_diag_hint(struct kedge_diag *d, const char *format, ...) KEDGE_PRINTF(2, 3);

/* What they promise, for the path analyser: it sees one file at a time. */
#ifdef __clang_analyzer__
#define kedge_diag_set(d, err, ...) ((void)(kedge_diag_set)((d), (err), __VA_ARGS__), (err))
#define kedge_diag_wrap(d, err, ...) ((void)(kedge_diag_wrap)((d), (err), __VA_ARGS__), (err))
#endif

#endif
