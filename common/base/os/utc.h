/* Times as people and other programs read them: always UTC, always one of a few forms. The only place that
 * turns seconds into a date, and back.
 */
#ifndef KEDGE_COMMON_BASE_OS_UTC_H
#define KEDGE_COMMON_BASE_OS_UTC_H

#include <stdbool.h>
#include <stdint.h>

enum kedge_utc_form {
    KEDGE_UTC_RFC3339, /* 2026-11-28T17:45:09Z */
    KEDGE_UTC_SECONDS, /* 2026-11-28 17:45:09Z */
    KEDGE_UTC_MINUTES, /* 2026-11-28 17:45Z */
    KEDGE_UTC_DAY,     /* 2026-11-28 */
};

struct kedge_utc {
    char s[32];
};

/* unix_s as text; `otherwise` (cut to 31 bytes) where unix_s is not above 0, which stands for "no time", or
 * lies after the year 9999. */
struct kedge_utc kedge_utc(int64_t unix_s, enum kedge_utc_form form, const char *otherwise);

/* Reads "2026-11-28T17:45:09Z", from 1970 on; every other spelling and every date that does not exist
 * (31 April) is refused, so that two texts of one time are equal byte for byte. */
bool kedge_utc_parse(const char *text, int64_t *ret_unix_s);

#endif
