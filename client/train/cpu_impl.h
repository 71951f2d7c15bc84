/* The CPU back end's device and what its files share. */
#ifndef KEDGE_CLIENT_TRAIN_CPU_IMPL_H
#define KEDGE_CLIENT_TRAIN_CPU_IMPL_H

#include "client/train/ops.h"

struct kedge_cpu_block;
struct kedge_device {
    bool has_small;                 /* kedge_small_is_available */
    struct kedge_cpu_block *blocks; /* what alloc gave */
    float *scratch;                 /* of prepare */
    double loss;
    uint64_t seed, step;
    uint32_t at;
};

/* Rows of operations, by file. */
uint64_t kedge_cpu_dense_scratch(const struct kedge_ops_dense *s, uint32_t n); /* floats */
void kedge_cpu_dense_forward(struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t n,
                             const float *x, const float *w, const float *b, float *y);
void kedge_cpu_dense_backward(struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t n,
                              const float *x, const float *y, float *dy, const float *w, float *dx,
                              const struct kedge_ops_step *step, float *to_w, float *to_b);
uint64_t kedge_cpu_conv2d_scratch(const struct kedge_ops_conv2d *s); /* floats */
void kedge_cpu_conv2d_forward(struct kedge_device *dev, const struct kedge_ops_conv2d *s, uint32_t n,
                              const float *x, const float *w, const float *b, float *y);
void kedge_cpu_conv2d_backward(struct kedge_device *dev, const struct kedge_ops_conv2d *s, uint32_t n,
                               const float *x, const float *y, float *dy, const float *w, float *dx,
                               const struct kedge_ops_step *step, float *to_w, float *to_b);
void kedge_cpu_maxpool_forward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                               const float *x, float *y, uint8_t *which);
void kedge_cpu_maxpool_backward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                                const uint8_t *which, const float *dy, float *dx);
void kedge_cpu_avgpool_forward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                               const float *x, float *y);
void kedge_cpu_avgpool_backward(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                                const float *dy, float *dx);
void kedge_cpu_pointwise_forward(struct kedge_device *dev, enum kedge_ops_pointwise kind, uint64_t count,
                                 const float *x, float *y);
void kedge_cpu_pointwise_backward(struct kedge_device *dev, enum kedge_ops_pointwise kind, uint64_t count,
                                  const float *x, const float *y, const float *dy, float *dx);
void kedge_cpu_dropout_forward(struct kedge_device *dev, double rate, uint32_t layer, uint64_t count,
                               const float *x, float *y);
void kedge_cpu_dropout_backward(struct kedge_device *dev, double rate, uint32_t layer, uint64_t count,
                                const float *dy, float *dx);
void kedge_cpu_norm_forward(struct kedge_device *dev, const struct kedge_ops_norm *s, uint32_t n,
                            const float *x, const float *scale, const float *shift, float *y, float *saved);
void kedge_cpu_norm_backward(struct kedge_device *dev, const struct kedge_ops_norm *s, uint32_t n,
                             const float *x, const float *saved, float *dy, const float *scale, float *dx,
                             const struct kedge_ops_step *step, float *to_scale, float *to_shift);
void kedge_cpu_embedding_forward(struct kedge_device *dev, const struct kedge_ops_embedding *s, uint32_t n,
                                 const float *x, const float *w, float *y);
void kedge_cpu_embedding_backward(struct kedge_device *dev, const struct kedge_ops_embedding *s, uint32_t n,
                                  const float *x, const float *dy, const struct kedge_ops_step *step,
                                  float *to_w);
uint64_t kedge_cpu_lstm_scratch(const struct kedge_ops_lstm *s, uint32_t n); /* floats */
void kedge_cpu_lstm_forward(struct kedge_device *dev, const struct kedge_ops_lstm *s, uint32_t n,
                            const float *x, const float *params, float *y, float *saved);
void kedge_cpu_lstm_backward(struct kedge_device *dev, const struct kedge_ops_lstm *s, uint32_t n,
                             const float *x, float *saved, float *dy, const float *params, float *dx,
                             const struct kedge_ops_step *step, float *to);
void kedge_cpu_cross_entropy(struct kedge_device *dev, uint32_t n, uint32_t width, const int32_t *labels,
                             float *z);
void kedge_cpu_square_error(struct kedge_device *dev, uint32_t n, uint32_t width, const int32_t *labels,
                            bool reals, float *z);
void kedge_cpu_clip(struct kedge_device *dev, uint64_t count, float *g, float most);

#endif
