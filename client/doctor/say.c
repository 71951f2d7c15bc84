#include <stdarg.h>
#include <stdio.h>

#include "client/doctor/doctor.h"

enum { DETAIL_LEN = KEDGE_DIAG_TEXT_MAX + 512 };

void kedge_doctor_say(struct kedge_doctor *k, enum kedge_doctor_level level, const char *what,
                      const char *mend, const char *format, ...)
{
    char detail[DETAIL_LEN];
    va_list ap;
    va_start(ap, format);
    vsnprintf(detail, sizeof detail, format, ap);
    va_end(ap);
    k->warnings += level == KEDGE_DOCTOR_WARN;
    k->failures += level == KEDGE_DOCTOR_FAIL;
    k->line(k->arg, level, what, detail, mend);
}

void kedge_doctor_fail(struct kedge_doctor *k, const char *what, const char *mend, int err,
                       const struct kedge_diag *d)
{
    kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, what, d->hint[0] ? d->hint : mend, "%s",
                     d->text[0] ? d->text : kedge_strerror(err));
}
