/* What client/train calls of a BLAS, for machines without one (blas.c): right, not fast. */
#ifndef KEDGE_BENCH_GPU_CBLAS_H
#define KEDGE_BENCH_GPU_CBLAS_H

enum CBLAS_ORDER { CblasRowMajor = 101 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112 };

void cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE a_turned, enum CBLAS_TRANSPOSE b_turned, int m,
                 int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                 float *c, int ldc);
void openblas_set_num_threads(int threads);

#endif
