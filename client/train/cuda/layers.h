/* Dense layers and convolutions: products of product.h. ReLU's derivative is a mask on dy, the bias' gradient
 * a column of ones, the step of plain SGD what a product keeps of its target: so that a layer is one launch
 * forward and two backward (two more where k is split). */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_LAYERS_H
#define KEDGE_CLIENT_TRAIN_CUDA_LAYERS_H

#include "client/train/cuda/blas.h"
#include "client/train/cuda/product.h"

static void dense_forward(struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t n,
                          const float *x, const float *w, const float *b, float *y)
{
    struct kedge_gpu_product p = kedge_gpu_product_of(dev, n, s->out, s->in, y, s->out);
    p.a = kedge_gpu_matrix(dev, x, NULL, s->in, 1);
    p.b = kedge_gpu_matrix(dev, w, NULL, s->in, 1);
    p.bias = b;
    p.bias_site = kedge_gpu_ref(dev, b).site;
    p.relu = s->relu;
    kedge_gpu_product_run(dev, &p);
}

/* to = keep · to + by · Σ_rows dyᵀ · x, to_b = keep_bias · to_b + by · the column sums of dy. */
static void dense_targets(struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t rows,
                          const float *x, const float *mask, const float *dy,
                          const struct kedge_ops_step *step, float *to_w, float *to_b)
{
    struct kedge_gpu_product p = kedge_gpu_product_of(dev, s->out, s->in, rows, to_w, s->in);
    p.a = kedge_gpu_matrix(dev, dy, mask, 1, s->out);
    p.b = kedge_gpu_matrix(dev, x, NULL, 1, s->in);
    p.keep = step->keep;
    p.scale = step->by;
    p.sums = to_b;
    p.sums_site = kedge_gpu_ref(dev, to_b).site;
    p.keep_sums = step->keep_bias;
    p.active = dev->counts;
    kedge_gpu_product_run(dev, &p);
}

static void dense_backward(struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t n,
                           const float *x, const float *y, float *dy, const float *w, float *dx,
                           const struct kedge_ops_step *step, float *to_w, float *to_b)
{
    const float *mask = s->relu ? y : NULL;
    if (dx) {
        struct kedge_gpu_product p = kedge_gpu_product_of(dev, n, s->in, s->out, dx, s->in);
        p.a = kedge_gpu_matrix(dev, dy, mask, s->out, 1);
        p.b = kedge_gpu_matrix(dev, w, NULL, 1, s->in);
        kedge_gpu_product_run(dev, &p);
    }
    dense_targets(dev, s, n, x, mask, dy, step, to_w, to_b);
}

/* The kernel as a matrix [out][in · window]. */
static struct kedge_gpu_operand conv_kernel(struct kedge_device *dev, const struct kedge_ops_conv2d *s,
                                            const float *w)
{
    return kedge_gpu_matrix(dev, w, NULL, (size_t)s->in * s->kernel * s->kernel, 1);
}

/* y[image][out][place] = W[out][k] · patches[(image, place)][k] */
static void conv2d_forward(struct kedge_device *dev, const struct kedge_ops_conv2d *s, uint32_t n,
                           const float *x, const float *w, const float *b, float *y)
{
    const uint32_t places = s->out_height * s->out_width, k = s->in * s->kernel * s->kernel;
    struct kedge_gpu_product p = kedge_gpu_product_of(dev, s->out, n * places, k, y, places);
    p.c_run = places;
    p.c_far = (size_t)s->out * places;
    p.conv = *s;
    p.a = conv_kernel(dev, s, w);
    p.b = kedge_gpu_matrix(dev, x, NULL, 0, 0);
    p.b.rule = KEDGE_GPU_PATCHES;
    p.bias = b;
    p.bias_site = kedge_gpu_ref(dev, b).site;
    p.bias_of_rows = 1;
    p.relu = s->relu;
    kedge_gpu_multiply(dev, &p);
}

/* dx[image][in][place] = Σ over (out, ky, kx) of W[out][in][ky][kx] · dy where that place of the kernel met
 * it */
static void conv2d_input(struct kedge_device *dev, const struct kedge_ops_conv2d *s, uint32_t n,
                         const float *mask, const float *dy, const float *w, float *dx)
{
    const uint32_t places = s->height * s->width, window = s->kernel * s->kernel;
    struct kedge_gpu_product p = kedge_gpu_product_of(dev, s->in, n * places, s->out * window, dx, places);
    p.c_run = places;
    p.c_far = (size_t)s->in * places;
    p.conv = *s;
    p.a = conv_kernel(dev, s, w);
    p.a.rule = KEDGE_GPU_STRIDED_RUNS;
    p.a.row = window;
    p.a.run = window;
    p.a.far = (size_t)s->in * window;
    p.b = kedge_gpu_matrix(dev, dy, mask, 0, 0);
    p.b.rule = KEDGE_GPU_COL2IM;
    kedge_gpu_multiply(dev, &p);
}

static void conv2d_backward(struct kedge_device *dev, const struct kedge_ops_conv2d *s, uint32_t n,
                            const float *x, const float *y, float *dy, const float *w, float *dx,
                            const struct kedge_ops_step *step, float *to_w, float *to_b)
{
    const uint32_t places = s->out_height * s->out_width, k = s->in * s->kernel * s->kernel;
    const float *mask = s->relu ? y : NULL;
    if (dx) {
        conv2d_input(dev, s, n, mask, dy, w, dx);
    }
    struct kedge_gpu_product p = kedge_gpu_product_of(dev, s->out, k, n * places, to_w, k);
    p.conv = *s;
    p.a = kedge_gpu_matrix(dev, dy, mask, places, 1);
    p.a.rule = KEDGE_GPU_STRIDED_RUNS;
    p.a.run = places;
    p.a.far = (size_t)s->out * places;
    p.b = kedge_gpu_matrix(dev, x, NULL, 0, 0);
    p.b.rule = KEDGE_GPU_PATCHES_K;
    p.b.along_k = 1;
    p.keep = step->keep;
    p.scale = step->by;
    p.sums = to_b;
    p.sums_site = kedge_gpu_ref(dev, to_b).site;
    p.keep_sums = step->keep_bias;
    p.active = dev->counts;
    kedge_gpu_multiply(dev, &p);
}

/* Scratch for the products of a layer on n samples. */
static size_t parts_of_layer(const struct kedge_ops_layer *l, uint32_t n, uint32_t sites)
{
    const struct kedge_ops_conv2d *c = &l->as.conv2d;
    const struct kedge_ops_dense *d = &l->as.dense;
    const struct kedge_ops_lstm *r = &l->as.lstm;
    uint32_t k = 0;
    switch ((int)l->kind) {
    case KEDGE_OPS_DENSE:
        return kedge_gpu_parts_most(kedge_gpu_parts_of(n, d->out, d->in, sites),
                                    kedge_gpu_parts_of(n, d->in, d->out, sites),
                                    kedge_gpu_parts_of(d->out, d->in + 1, n, sites));
    case KEDGE_OPS_CONV2D:
        k = c->kernel * c->kernel;
        return kedge_gpu_parts_most(
            kedge_gpu_parts_of(c->out, n * c->out_height * c->out_width, c->in * k, sites),
            kedge_gpu_parts_of(c->in, n * c->height * c->width, c->out * k, sites),
            kedge_gpu_parts_of(c->out, c->in * k + 1, n * c->out_height * c->out_width, sites));
    case KEDGE_OPS_LSTM:
        k = 4 * r->hidden;
        return kedge_gpu_parts_most(kedge_gpu_parts_most(kedge_gpu_parts_of(n * r->steps, k, r->in, sites),
                                                         kedge_gpu_parts_of(n * r->steps, r->in, k, sites),
                                                         0),
                                    kedge_gpu_parts_of(k, r->in + 1, n * r->steps, sites),
                                    kedge_gpu_parts_of(k, r->hidden + 1, n * r->steps, sites));
    default:
        return 0;
    }
}

#endif
