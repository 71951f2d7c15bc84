#include "common/base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef kedge_diag_set /* diag.h, for the analyser */
#undef kedge_diag_wrap

static const char more[] = "…";

/* As vsnprintf; nobody shall take the beginning of a text for the whole. */
static void put(char *out, size_t size, const char *format, va_list ap) __attribute__((format(printf, 3, 0)));
static void put(char *out, size_t size, const char *format, va_list ap)
{
    int n = vsnprintf(out, size, format, ap);
    if (n < 0) {
        out[0] = '\0';
    } else if ((size_t)n >= size) {
        size_t end = size - sizeof more;
        while (end > 0 && ((unsigned char)out[end] & 0xc0) == 0x80) { /* within a character */
            end--;
        }
        memcpy(out + end, more, sizeof more);
    }
}

static void put_words(char *out, size_t size, const char *format, ...) KEDGE_PRINTF(3, 4);
static void put_words(char *out, size_t size, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    put(out, size, format, ap);
    va_end(ap);
}

int kedge_diag_set(struct kedge_diag *d, int err, const char *format, ...)
{
    if (d) {
        va_list ap;
        d->err = err;
        d->hint[0] = '\0';
        va_start(ap, format);
        put(d->text, sizeof d->text, format, ap);
        va_end(ap);
    }
    return err;
}

/* The outer text comes first, as people read it: where, then what. If there is no room for the
 * inner one the outer stands alone. */
int kedge_diag_wrap(struct kedge_diag *d, int err, const char *format, ...)
{
    if (d) {
        char old[KEDGE_DIAG_TEXT_MAX];
        va_list ap;
        memcpy(old, d->text, sizeof old);
        va_start(ap, format);
        put(d->text, sizeof d->text, format, ap);
        va_end(ap);
        size_t used = strlen(d->text), room = sizeof d->text - used;
        if (room > sizeof more) { /* else it was cut already, or is as good as */
            put_words(d->text + used, room, ": %s", old);
        }
        d->err = err;
    }
    return err;
}

int kedge_diag_hint(struct kedge_diag *d, const char *format, ...)
{
    if (!d) {
        return KEDGE_E_UNKNOWN;
    }
    va_list ap;
    va_start(ap, format);
    put(d->hint, sizeof d->hint, format, ap);
    va_end(ap);
    return d->err;
}
