#include "common/base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef kedge_diag_set /* diag.h, for the analyser */
#undef kedge_diag_wrap

int kedge_diag_set(struct kedge_diag *d, int err, const char *format, ...)
{
    if (d) {
        va_list ap;
        d->err = err;
        d->hint[0] = '\0';
        va_start(ap, format);
        vsnprintf(d->text, sizeof d->text, format, ap);
        va_end(ap);
    }
    return err;
}

int kedge_diag_wrap(struct kedge_diag *d, int err, const char *format, ...)
{
    if (d) {
        char old[KEDGE_DIAG_TEXT_MAX];
        va_list ap;
        memcpy(old, d->text, sizeof old);
        va_start(ap, format);
        int n = vsnprintf(d->text, sizeof d->text, format, ap);
        va_end(ap);
        size_t used = n < 0 ? 0 : (size_t)n;
        if (used < sizeof d->text - 2) {
            snprintf(d->text + used, sizeof d->text - used, ": %.*s", (int)(sizeof d->text - used - 3), old);
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
    vsnprintf(d->hint, sizeof d->hint, format, ap);
    va_end(ap);
    return d->err;
}
