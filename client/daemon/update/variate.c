/* The arithmetic of control variates. Pure.
 *
 * Sums are formed in double precision from integers and rounded once, so that the same bytes come out on
 * every machine. q is what is sent and what is added to c_k, both as integers: site and server then agree
 * exactly on how far c_k has moved, whatever rounding made of the real change. */
#include "client/daemon/update/variate.h"

#include "aggregation/quantise.h"
#include "common/base/mem.h"
#include "common/base/try.h"

void kedge_variate_drift(const struct kedge_job_spec *spec, const int32_t *own, const float *server, size_t n,
                         float *ret)
{
    const double unit = 1.0 / (double)(UINT64_C(1) << spec->scale);
    for (size_t i = 0; i < n; i++) {
        ret[i] = (float)((double)own[i] * unit - (server ? (double)server[i] : 0));
    }
}

/* After an error `own` may be half changed; its owner closes it without writing it. */
int kedge_variate_change(const struct kedge_job_spec *spec, const float *server, const float *base,
                         const float *out, uint64_t steps, size_t n, int32_t *own, int32_t *q,
                         size_t *ret_bad)
{
    const double unit = 1.0 / ((double)steps * spec->learning_rate);
    float *both = kedge_mem_new(2 * n, sizeof *both);
    KEDGE_TRY_MEM(both);
    for (size_t i = 0; i < n; i++) {
        both[i] = server ? server[i] : 0;
        both[n + i] = (float)(((double)base[i] - (double)out[i]) * unit);
    }
    int err = kedge_quantise(both, both + n, n, spec->scale, spec->bound, q, ret_bad);
    for (size_t i = 0; i < n && !err; i++) {
        int64_t sum = (int64_t)own[i] + q[i];
        *ret_bad = i;
        err = sum >= -INT32_MAX && sum <= INT32_MAX ? KEDGE_OK : KEDGE_E_BOUND;
        own[i] = err ? own[i] : (int32_t)sum;
    }
    kedge_mem_free(both);
    return err;
}
