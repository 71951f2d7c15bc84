#include "sim/learn/compare.h"

#include <math.h>

double kedge_learn_t(uint32_t freedom)
{
    static const double exact[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646,
                                   2.3060,  2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448,
                                   2.1314,  2.1199, 2.1098, 2.1009, 2.0930, 2.0860};
    KEDGE_ASSERT(freedom >= 1);
    if (freedom <= sizeof exact / sizeof exact[0]) {
        return exact[freedom - 1];
    }
    /* Abramowitz and Stegun 26.7.5, from the normal's 97.5 % point */
    double z = 1.959964, z2 = z * z, v = freedom;
    double first = z * (z2 + 1) / 4, second = z * ((5 * z2 + 16) * z2 + 3) / 96;
    double third = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    return z + first / v + second / (v * v) + third / (v * v * v);
}

struct kedge_learn_estimate kedge_learn_difference_of(const double *a, const double *b, size_t n)
{
    struct kedge_learn_estimate e = {(double)NAN, (double)NAN, (uint32_t)n};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += a[i] - (b ? b[i] : 0);
    }
    if (n == 0 || !isfinite(sum)) {
        return e;
    }
    e.mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double off = a[i] - (b ? b[i] : 0) - e.mean;
        squares += off * off;
    }
    if (n >= 2) {
        e.half = kedge_learn_t((uint32_t)n - 1) * sqrt(squares / (double)(n - 1) / (double)n);
    }
    return e;
}

struct kedge_learn_estimate kedge_learn_estimate_of(const double *values, size_t n)
{
    return kedge_learn_difference_of(values, NULL, n);
}

static void take(const struct kedge_learn_comparison *c, uint32_t v, enum kedge_learn_measure m,
                 double values[KEDGE_LEARN_SEEDS_MAX])
{
    KEDGE_ASSERT(v < c->variants && c->seeds <= KEDGE_LEARN_SEEDS_MAX);
    for (uint32_t s = 0; s < c->seeds; s++) {
        values[s] = c->at[(size_t)v * c->seeds + s].value[m];
    }
}

struct kedge_learn_estimate kedge_learn_compare(const struct kedge_learn_comparison *c, uint32_t v,
                                                enum kedge_learn_measure m)
{
    double values[KEDGE_LEARN_SEEDS_MAX];
    take(c, v, m, values);
    return kedge_learn_estimate_of(values, c->seeds);
}

struct kedge_learn_estimate kedge_learn_compare_first(const struct kedge_learn_comparison *c, uint32_t v,
                                                      enum kedge_learn_measure m)
{
    double values[KEDGE_LEARN_SEEDS_MAX], first[KEDGE_LEARN_SEEDS_MAX];
    take(c, v, m, values);
    take(c, 0, m, first);
    return kedge_learn_difference_of(values, first, c->seeds);
}

static void put_estimate(struct kedge_buf *out, struct kedge_learn_estimate e)
{
    kedge_buf_put_str(out, "\"mean\":");
    kedge_learn_put_real(out, e.mean);
    kedge_buf_put_str(out, ",\"half\":");
    kedge_learn_put_real(out, e.half);
}

void kedge_learn_put_comparison(const struct kedge_learn_comparison *c, uint32_t v, struct kedge_buf *out)
{
    kedge_buf_printf(out, "{\"name\":\"%s\",\"measures\":{", c->names[v]);
    for (int m = 0; m < KEDGE_LEARN_MEASURE_COUNT; m++) {
        enum kedge_learn_measure measure = (enum kedge_learn_measure)m;
        kedge_buf_printf(out, "%s\"%s\":{", m ? "," : "", kedge_learn_measure_name(measure));
        put_estimate(out, kedge_learn_compare(c, v, measure));
        kedge_buf_put_str(out, ",\"difference\":{");
        put_estimate(out, kedge_learn_compare_first(c, v, measure));
        kedge_buf_put_str(out, "}}");
    }
    kedge_buf_put_str(out, "},\"runs\":[");
    for (uint32_t s = 0; s < c->seeds; s++) {
        kedge_buf_put_str(out, s ? ",{" : "{");
        kedge_learn_put_summary(&c->at[(size_t)v * c->seeds + s], out);
        kedge_buf_put_str(out, "}");
    }
    kedge_buf_put_str(out, "]}");
}
