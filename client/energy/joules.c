/* Joules with their quality. A sum of measured, modelled and unknown parts is not a measurement: it is as
 * good as its worst part, and an unknown part makes the total unknown, not zero. */
#include "client/energy/joules.h"

#include <math.h>
#include <stdio.h>

static const double share_error = 0.3, model_error = 2;

const char *kedge_quality_name(enum kedge_quality q)
{
    return q == KEDGE_QUALITY_MEASURED ? "measured" : q == KEDGE_QUALITY_MODELLED ? "modelled" : "unknown";
}

struct kedge_joules kedge_joules_measured(double joules)
{
    if (!isfinite(joules) || joules < 0) {
        return kedge_joules_unknown("the meter gave no number");
    }
    return (struct kedge_joules){KEDGE_QUALITY_MEASURED, joules, joules, joules, NULL};
}

struct kedge_joules kedge_joules_modelled(double joules, double low, double high)
{
    if (!isfinite(joules) || !isfinite(high) || !(low >= 0) || !(joules >= low) || !(high >= joules)) {
        return kedge_joules_unknown("the model gave no number");
    }
    return (struct kedge_joules){KEDGE_QUALITY_MODELLED, joules, low, high, NULL};
}

struct kedge_joules kedge_joules_unknown(const char *why)
{
    return (struct kedge_joules){KEDGE_QUALITY_UNKNOWN, (double)NAN, (double)NAN, (double)NAN, why};
}

void kedge_joules_add(struct kedge_joule_sum *sum, const struct kedge_joules *j)
{
    switch (j->quality) {
    case KEDGE_QUALITY_MEASURED:
        sum->measured += j->joules;
        sum->measured_count++;
        return;
    case KEDGE_QUALITY_MODELLED:
        sum->modelled += j->joules;
        sum->modelled_low += j->low;
        sum->modelled_high += j->high;
        sum->modelled_count++;
        return;
    case KEDGE_QUALITY_UNKNOWN:
        sum->unknown_count++;
        return;
    }
}

struct kedge_joules kedge_joules_total(const struct kedge_joule_sum *sum)
{
    if (sum->unknown_count > 0 || sum->measured_count + sum->modelled_count == 0) {
        return kedge_joules_unknown("a part is unknown");
    }
    if (sum->modelled_count > 0) {
        return kedge_joules_modelled(sum->measured + sum->modelled, sum->measured + sum->modelled_low,
                                     sum->measured + sum->modelled_high);
    }
    return kedge_joules_measured(sum->measured);
}

void kedge_joules_text(const struct kedge_joule_sum *sum, char out[KEDGE_JOULES_TEXT_MAX])
{
    const uint32_t known = sum->measured_count + sum->modelled_count, all = known + sum->unknown_count;
    const struct kedge_joules total = kedge_joules_total(sum);
    if (known == 0) {
        snprintf(out, KEDGE_JOULES_TEXT_MAX, "unknown");
    } else if (sum->unknown_count > 0) {
        snprintf(out, KEDGE_JOULES_TEXT_MAX, "≥ %.6g J, %u of %u unknown", sum->measured + sum->modelled,
                 sum->unknown_count, all);
    } else {
        snprintf(out, KEDGE_JOULES_TEXT_MAX, "%.6g J %s", total.joules, kedge_quality_name(total.quality));
    }
}

struct kedge_joules kedge_joules_share(const struct kedge_joules *whole, double idle_w, double seconds,
                                       double job_cpu_s, double all_cpu_s, double *ret_idle)
{
    *ret_idle = (double)NAN;
    if (whole->quality == KEDGE_QUALITY_UNKNOWN) {
        return *whole;
    }
    if (!(all_cpu_s > 0) || !(job_cpu_s >= 0) || !(seconds > 0) || !(idle_w >= 0)) {
        return kedge_joules_unknown("no processor time was counted");
    }
    const double idle = fmin(whole->joules, idle_w * seconds), part = fmin(1, job_cpu_s / all_cpu_s);
    const double share = (whole->joules - idle) * part;
    *ret_idle = idle;
    return kedge_joules_modelled(share, share * (1 - share_error), share * (1 + share_error));
}

struct kedge_joules kedge_joules_model(double idle_w, double max_w, double load, double seconds)
{
    if (!(idle_w > 0) || !(max_w >= idle_w) || !(load >= 0) || !(seconds > 0)) {
        return kedge_joules_unknown("no meter, and no power_idle_w and power_max_w in policy.json");
    }
    const double joules = (idle_w + (max_w - idle_w) * fmin(1, load)) * seconds;
    return kedge_joules_modelled(joules, joules / model_error, joules * model_error);
}
