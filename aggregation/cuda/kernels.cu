/* Written in what C and C++ have in common: nvcc takes it for a device, and a C compiler with KEDGE_GPU_HOST
 * for the test that runs everywhere. Vectors lie one after the other on the device, n values each. */
#include "aggregation/cuda/kernels.h"

#include "aggregation/cuda/vendor.h"

enum {
    GRAM_ONE = 2047,  /* KEDGE_GRAM_ONE */
    GRAM_CHUNK = 512, /* coordinates of one thread's int32 sums: 512 * 2047^2 < 2^31 */
    GRAM_SIDE = 4,    /* a thread makes a block of 4 x 4 products */
    MAX_CHUNK = 1024, /* coordinates in which one thread seeks the largest magnitude */
};

/* ---- arithmetic of one element ---- */

KEDGE_DEVICE float finish(float base, int64_t sum, double divisor)
{
    return (float)((double)base + (double)sum / divisor);
}

/* round-half-even(q * 2047 / max): gram.c shows that the division is exact enough. */
KEDGE_DEVICE int scale12(int32_t q, double max)
{
    const double shift = 0x1.8p52;
    const double scaled = (double)((int64_t)q * GRAM_ONE) / max;
    return (int)((scaled + shift) - shift);
}

/* ---- kernels ---- */

KEDGE_KERNEL mean_kernel(const float *base, const int32_t *values, const uint64_t *weight, size_t count,
                         size_t n, double divisor, float *out)
{
    const size_t i = kedge_gpu_thread();
    if (i < n) {
        uint64_t sum = 0;
        for (size_t k = 0; k < count; k++) {
            sum += weight[k] * (uint64_t)(int64_t)values[k * n + i];
        }
        out[i] = finish(base[i], (int64_t)sum, divisor);
    }
}

KEDGE_KERNEL max_kernel(const int32_t *values, size_t count, size_t n, unsigned *maxima)
{
    const size_t chunks = (n + MAX_CHUNK - 1) / MAX_CHUNK, at = kedge_gpu_thread();
    if (at < chunks * count) {
        const size_t k = at / chunks, first = at % chunks * MAX_CHUNK;
        unsigned most = 0;
        for (size_t i = first; i < first + MAX_CHUNK && i < n; i++) {
            const int32_t q = values[k * n + i];
            const unsigned size = q < 0 ? 0u - (unsigned)q : (unsigned)q;
            most = size > most ? size : most;
        }
        kedge_gpu_max(&maxima[k], most);
    }
}

KEDGE_KERNEL scale_kernel(const int32_t *values, size_t count, size_t n, const unsigned *maxima,
                          int16_t *scaled)
{
    const size_t at = kedge_gpu_thread();
    if (at < count * n) {
        const unsigned max = maxima[at / n];
        scaled[at] = (int16_t)(max == 0 ? 0 : scale12(values[at], (double)max));
    }
}

/* A thread: the products of up to 4 x 4 vectors over one chunk, int32; then added to the int64 totals. */
KEDGE_KERNEL gram_kernel(const int16_t *scaled, size_t count, size_t n, unsigned long long *gram)
{
    const size_t side = (count + GRAM_SIDE - 1) / GRAM_SIDE, chunks = (n + GRAM_CHUNK - 1) / GRAM_CHUNK;
    const size_t at = kedge_gpu_thread();
    const size_t row = at / chunks / side * GRAM_SIDE, column = at / chunks % side * GRAM_SIDE;
    if (at >= side * side * chunks || row > column) {
        return;
    }
    int sum[GRAM_SIDE][GRAM_SIDE] = {{0}};
    const size_t first = at % chunks * GRAM_CHUNK;
    for (size_t i = first; i < first + GRAM_CHUNK && i < n; i++) {
        for (size_t r = 0; r < GRAM_SIDE && row + r < count; r++) {
            for (size_t c = 0; c < GRAM_SIDE && column + c < count; c++) {
                sum[r][c] += scaled[(row + r) * n + i] * scaled[(column + c) * n + i];
            }
        }
    }
    for (size_t r = 0; r < GRAM_SIDE && row + r < count; r++) {
        for (size_t c = 0; c < GRAM_SIDE && column + c < count; c++) {
            kedge_gpu_add(&gram[(row + r) * count + column + c], (unsigned long long)(long long)sum[r][c]);
        }
    }
}

/* A value's place in the sorted column is the number of smaller ones and of equal ones before it: no two have
 * the same, and which of equals comes first changes no sum. */
KEDGE_KERNEL order_kernel(const float *base, const int32_t *values, size_t count, size_t n, size_t from,
                          size_t to, double divisor, float *out)
{
    const size_t i = kedge_gpu_thread();
    if (i < n) {
        int64_t sum = 0;
        for (size_t k = 0; k < count; k++) {
            const int32_t v = values[k * n + i];
            size_t place = 0;
            for (size_t j = 0; j < count; j++) {
                const int32_t w = values[j * n + i];
                place += w < v || (w == v && j < k) ? 1 : 0;
            }
            sum += place >= from && place < to ? v : 0;
        }
        out[i] = finish(base[i], sum, divisor);
    }
}

/* ---- the host's side ---- */

static kedge_gpu_status put_new(void **to, const void *from, size_t bytes)
{
    const kedge_gpu_status status = kedge_gpu_new(to, bytes > 0 ? bytes : 1);
    return status == KEDGE_GPU_OK && from ? kedge_gpu_put(*to, from, bytes) : status;
}

static kedge_gpu_status put_vectors(void **to, const int32_t *const *vectors, size_t count, size_t n)
{
    const size_t bytes = n * sizeof(int32_t);
    kedge_gpu_status status = put_new(to, NULL, count * bytes);
    for (size_t k = 0; k < count && status == KEDGE_GPU_OK; k++) {
        status = kedge_gpu_put((int32_t *)*to + k * n, vectors[k], bytes);
    }
    return status;
}

int kedge_cuda_devices(void)
{
    return kedge_gpu_devices();
}

const char *kedge_cuda_text(int status)
{
    return kedge_gpu_text(status);
}

int kedge_cuda_mean(const float *base, const int32_t *const *vectors, const uint64_t *weight, size_t count,
                    size_t n, unsigned scale_bits, uint64_t weight_sum, float *out)
{
    void *d_base = NULL, *d_values = NULL, *d_weight = NULL, *d_out = NULL;
    const double divisor = (double)weight_sum * (double)((uint64_t)1 << scale_bits);
    kedge_gpu_status status = put_new(&d_base, base, n * sizeof *base);
    status = status == KEDGE_GPU_OK ? put_vectors(&d_values, vectors, count, n) : status;
    status = status == KEDGE_GPU_OK ? put_new(&d_weight, weight, count * sizeof *weight) : status;
    status = status == KEDGE_GPU_OK ? put_new(&d_out, NULL, n * sizeof *out) : status;
    if (status == KEDGE_GPU_OK && n > 0) {
        KEDGE_LAUNCH(mean_kernel, n, (const float *)d_base, (const int32_t *)d_values,
                     (const uint64_t *)d_weight, count, n, divisor, (float *)d_out);
        status = kedge_gpu_launched();
        status = status == KEDGE_GPU_OK ? kedge_gpu_get(out, d_out, n * sizeof *out) : status;
    }
    kedge_gpu_free(d_base);
    kedge_gpu_free(d_values);
    kedge_gpu_free(d_weight);
    kedge_gpu_free(d_out);
    return (int)status;
}

static kedge_gpu_status launch_gram(const int32_t *values, size_t count, size_t n, unsigned *maxima,
                                    int16_t *scaled, unsigned long long *gram)
{
    const size_t side = (count + GRAM_SIDE - 1) / GRAM_SIDE;
    KEDGE_LAUNCH(max_kernel, (n + MAX_CHUNK - 1) / MAX_CHUNK * count, values, count, n, maxima);
    KEDGE_LAUNCH(scale_kernel, count * n, values, count, n, (const unsigned *)maxima, scaled);
    KEDGE_LAUNCH(gram_kernel, side * side * ((n + GRAM_CHUNK - 1) / GRAM_CHUNK), (const int16_t *)scaled,
                 count, n, gram);
    return kedge_gpu_launched();
}

int kedge_cuda_gram(const int32_t *const *vectors, size_t count, size_t n, uint32_t *maxima, int64_t *gram)
{
    void *d_values = NULL, *d_maxima = NULL, *d_scaled = NULL, *d_gram = NULL;
    kedge_gpu_status status = put_vectors(&d_values, vectors, count, n);
    status = status == KEDGE_GPU_OK ? put_new(&d_maxima, NULL, count * sizeof *maxima) : status;
    status = status == KEDGE_GPU_OK ? put_new(&d_scaled, NULL, count * n * sizeof(int16_t)) : status;
    status = status == KEDGE_GPU_OK ? put_new(&d_gram, NULL, count * count * sizeof *gram) : status;
    if (status == KEDGE_GPU_OK && n > 0 && count > 0) {
        status = launch_gram((const int32_t *)d_values, count, n, (unsigned *)d_maxima, (int16_t *)d_scaled,
                             (unsigned long long *)d_gram);
    }
    status = status == KEDGE_GPU_OK ? kedge_gpu_get(maxima, d_maxima, count * sizeof *maxima) : status;
    status = status == KEDGE_GPU_OK ? kedge_gpu_get(gram, d_gram, count * count * sizeof *gram) : status;
    for (size_t i = 0; i < count && status == KEDGE_GPU_OK; i++) {
        for (size_t j = 0; j < i; j++) {
            gram[i * count + j] = gram[j * count + i];
        }
    }
    kedge_gpu_free(d_values);
    kedge_gpu_free(d_maxima);
    kedge_gpu_free(d_scaled);
    kedge_gpu_free(d_gram);
    return (int)status;
}

int kedge_cuda_order_mean(const float *base, const int32_t *const *vectors, size_t count, size_t n,
                          size_t from, size_t to, unsigned scale_bits, float *out)
{
    void *d_base = NULL, *d_values = NULL, *d_out = NULL;
    const double divisor = (double)(to - from) * (double)((uint64_t)1 << scale_bits);
    kedge_gpu_status status = put_new(&d_base, base, n * sizeof *base);
    status = status == KEDGE_GPU_OK ? put_vectors(&d_values, vectors, count, n) : status;
    status = status == KEDGE_GPU_OK ? put_new(&d_out, NULL, n * sizeof *out) : status;
    if (status == KEDGE_GPU_OK && n > 0) {
        KEDGE_LAUNCH(order_kernel, n, (const float *)d_base, (const int32_t *)d_values, count, n, from, to,
                     divisor, (float *)d_out);
        status = kedge_gpu_launched();
        status = status == KEDGE_GPU_OK ? kedge_gpu_get(out, d_out, n * sizeof *out) : status;
    }
    kedge_gpu_free(d_base);
    kedge_gpu_free(d_values);
    kedge_gpu_free(d_out);
    return (int)status;
}
