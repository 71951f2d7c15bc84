/* Who can be asked when, and how fast it then is: a CSV file over virtual time. Inside of sim/learn.
 *
 *   time_s,site,available,samples_per_s        or        time_s,class,available,samples_per_s
 *   0,3,1,1200
 *   21600,3,0,
 *
 * The second column counts sites, or device classes (both from 0); what a line says holds until the next one
 * of the same site or class. `available` is 0 or 1; samples_per_s above 0, or nothing: the device's own.
 * Times of one site or class ascend. Whom no line names is always there, at its device's speed; before its
 * first line a site is, too, but where the trace begins again after a period: then its last line holds. */
#ifndef KEDGE_SIM_LEARN_TRACE_H
#define KEDGE_SIM_LEARN_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/diag.h"

enum { KEDGEI_TRACE_LINES_MAX = 4000000, KEDGEI_TRACE_BYTES_MAX = 128 * 1024 * 1024 };

struct kedgei_trace_line {
    double at, samples_per_s; /* 0: the device's own */
    bool available;
};
struct kedgei_trace {
    bool by_site;
    uint32_t series;                 /* sites or device classes */
    uint32_t *begin;                 /* owned, series + 1: where the lines of each begin */
    struct kedgei_trace_line *lines; /* owned, ascending within a series */
    double period;                   /* 0: it does not begin again */
};
struct kedgei_trace_state {
    bool available;
    double samples_per_s; /* 0: the device's own */
};

/* sites, classes: how many there are. period: 0, or more than the last time. KEDGE_E_FORMAT names the file's
 * line; KEDGE_E_TOO_LONG: more bytes or lines than above; errors of kedge_file_read, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_trace_load(const char *path, uint32_t sites, uint32_t classes, double period,
                                      struct kedgei_trace *ret, struct kedge_diag *reterr);
void kedgei_trace_deinit(struct kedgei_trace *t);

/* now ≥ 0. */
struct kedgei_trace_state kedgei_trace_at(const struct kedgei_trace *t, uint32_t site, uint32_t class_index,
                                          double now);
/* The first time after now at which the site is there (or is not there any more); INFINITY: never, or within
 * the period. */
double kedgei_trace_when(const struct kedgei_trace *t, uint32_t site, uint32_t class_index, double now,
                         bool available);

#endif
