/* Joules with a word on how good they are. Unknown is no number: it never counts as 0, and sums say how much
 * of what is missing. Pure. */
#ifndef KEDGE_CLIENT_ENERGY_JOULES_H
#define KEDGE_CLIENT_ENERGY_JOULES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/bytes.h"

enum kedge_quality {
    KEDGE_QUALITY_MEASURED, /* a counter or sensor covers the component for ≥ 95 % of the window */
    KEDGE_QUALITY_MODELLED, /* any other number, between low and high */
    KEDGE_QUALITY_UNKNOWN,  /* no number */
};
const char *kedge_quality_name(enum kedge_quality q); /* static */

struct kedge_joules {
    enum kedge_quality quality;
    double joules, low, high; /* not below 0; UNKNOWN: NaN, so that a caller that forgets to ask sees it */
    const char *why;          /* of UNKNOWN, for people; static */
};
struct kedge_joules kedge_joules_measured(double joules);
struct kedge_joules kedge_joules_modelled(double joules, double low, double high);
struct kedge_joules kedge_joules_unknown(const char *why);

/* Sums by quality. */
struct kedge_joule_sum {
    double measured, modelled, modelled_low, modelled_high;
    uint32_t measured_count, modelled_count, unknown_count;
};
void kedge_joules_add(struct kedge_joule_sum *sum, const struct kedge_joules *j);
/* The whole with the worst label of its parts: unknown when a part is, or when there are none. */
struct kedge_joules kedge_joules_total(const struct kedge_joule_sum *sum);
/* "12.5 J measured", "≥ 12.5 J, 1 of 3 unknown", "unknown". */
enum { KEDGE_JOULES_TEXT_MAX = 96 };
void kedge_joules_text(const struct kedge_joule_sum *sum, char out[KEDGE_JOULES_TEXT_MAX]);

/* What a job has of the energy of a shared component (Kepler's way): idle power apart, the rest by its share
 * of all processor time. job_cpu_s ≤ all_cpu_s. The share is MODELLED (± 30 %), for others used the
 * component, too; *ret_idle is the idle part. Shares of all jobs make the whole of what is above idle.
 * UNKNOWN when the whole is, or no processor time passed. */
struct kedge_joules kedge_joules_share(const struct kedge_joules *whole, double idle_w, double seconds,
                                       double job_cpu_s, double all_cpu_s, double *ret_idle);
/* Owner's P_idle and P_max in watts at a load of 0 … 1 over so many seconds; uncalibrated: half to double.
 * UNKNOWN when the powers are not 0 < idle ≤ max. */
struct kedge_joules kedge_joules_model(double idle_w, double max_w, double load, double seconds);

#endif
