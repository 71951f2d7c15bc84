#include "bench/gpu/cblas.h"

#include <stddef.h>

void cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE a_turned, enum CBLAS_TRANSPOSE b_turned, int m,
                 int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                 float *c, int ldc)
{
    (void)order; /* row-major only */
    for (ptrdiff_t i = 0; i < m; i++) {
        float *row = c + i * ldc;
        for (ptrdiff_t j = 0; j < n; j++) {
            row[j] = beta == 0.0f ? 0.0f : beta * row[j];
        }
        for (ptrdiff_t l = 0; l < k; l++) {
            const float left = alpha * (a_turned == CblasTrans ? a[l * lda + i] : a[i * lda + l]);
            for (ptrdiff_t j = 0; j < n; j++) {
                row[j] += left * (b_turned == CblasTrans ? b[j * ldb + l] : b[l * ldb + j]);
            }
        }
    }
}

void openblas_set_num_threads(int threads)
{
    (void)threads;
}
