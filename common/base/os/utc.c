#include "common/base/os/utc.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* 9999-12-31T23:59:59Z: RFC 3339 has four digits for a year. */
static const int64_t last_s = INT64_C(253402300799);

struct kedge_utc kedge_utc(int64_t unix_s, enum kedge_utc_form form, const char *otherwise)
{
    static const char *const formats[] = {[KEDGE_UTC_RFC3339] = "%Y-%m-%dT%H:%M:%SZ",
                                          [KEDGE_UTC_SECONDS] = "%Y-%m-%d %H:%M:%SZ",
                                          [KEDGE_UTC_MINUTES] = "%Y-%m-%d %H:%MZ",
                                          [KEDGE_UTC_DAY] = "%Y-%m-%d"};
    struct kedge_utc text;
    time_t t = (time_t)unix_s;
    struct tm tm;
    if (unix_s <= 0 || unix_s > last_s || !gmtime_r(&t, &tm)
        || strftime(text.s, sizeof text.s, formats[form], &tm) == 0) {
        snprintf(text.s, sizeof text.s, "%s", otherwise);
    }
    return text;
}

static bool read_digits(const char *s, int count, int *ret)
{
    *ret = 0;
    for (int i = 0; i < count; i++) {
        if (s[i] < '0' || s[i] > '9') {
            return false;
        }
        *ret = 10 * *ret + (s[i] - '0');
    }
    return true;
}

bool kedge_utc_parse(const char *text, int64_t *ret_unix_s)
{
    struct tm tm = {.tm_sec = 0};
    if (strlen(text) != 20 || !read_digits(text, 4, &tm.tm_year) || !read_digits(text + 5, 2, &tm.tm_mon)
        || !read_digits(text + 8, 2, &tm.tm_mday) || !read_digits(text + 11, 2, &tm.tm_hour)
        || !read_digits(text + 14, 2, &tm.tm_min) || !read_digits(text + 17, 2, &tm.tm_sec)) {
        return false;
    }
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ret_unix_s = (int64_t)timegm(&tm); /* which mends what does not exist: so it is written again */
    return strcmp(text, kedge_utc(*ret_unix_s, KEDGE_UTC_RFC3339, "1970-01-01T00:00:00Z").s) == 0;
}
