/* The table of operations that a training back end fills in: kedge_ops_cpu (always there) and
 * kedge_ops_cuda (client/train/cuda, where it was built). The engine (net.c, layers.c) knows shapes, order
 * and memory; a back end knows arithmetic. tests/contract holds every table to the same formulas,
 * written in double precision: ops_table.h each operation, train_ops.h whole nets.
 *
 * Memory. Every float *, uint32_t * and int32_t * below is an address of the back end's own memory (`alloc`),
 * which only upload, download, copy and clear may touch from outside. Blocks begin at 64 bytes; the engine
 * cuts them at multiples of 4 bytes only, so that no pointer but a block's first is aligned further.
 * Arguments of one call never overlap except where it is said.
 *
 * Layouts. Row-major, dense, samples first, F32:
 *   vector    [n][width]                          image   [n][channels][height][width]   (PyTorch's NCHW)
 *   sequence  [n][steps][width]                   dense kernel [out][in], bias [out]
 *   convolution's kernel [out][in][kernel][kernel], bias [out]
 * A whole step runs on n samples, 1 ≤ n ≤ the batch_max that `prepare` was told.
 *
 * Order. Calls may be asynchronous but keep their order. They return nothing: the first error is kept and
 * told by `sync` (and by download), and nothing after it counts. No call but open, alloc and prepare takes
 * memory.
 *
 * Gradients end in a target: target = keep · target + by · gradient (struct kedge_ops_step); keep 0 ignores
 * what the target holds. With target = the weights, keep = 1 − lr·(2·l2 + pull) and by = −lr this *is* the
 * step of plain SGD, and no gradient is ever stored: a back end should fuse it into the product. With keep
 * = 0 and by = 1 it is the gradient, for clipping and momentum. dx is always that of the old weights.
 *
 * Determinism. The same calls with the same numbers give the same bytes on the same device and library: no
 * atomics on floats, no order that depends on time.
 *
 * Recording. `record_begin` … `record_end` bracket the calls of one whole step, which are done as well; a
 * back end that can keeps them (a CUDA graph) and `replay` runs them again. Everything that differs between
 * two steps of the same n is told by `moment` beforehand and read by the operations when they run, never an
 * argument. All three may be NULL together.
 *
 * Many sites at once. A device opened with sites > 1 runs every operation for that many models of the same
 * shapes: each block of `alloc` is there once per site and each pointer means the same place in every site's
 * block; upload and download name the site. n and all scalars are the same for all, but a site may have
 * fewer samples (struct kedge_ops_moment): its rows from there on count for nothing, and one with none keeps
 * its parameters. A back end may refuse sites > 1 (the CPU does).
 *
 * For C and C++ alike; no dependency. */
#ifndef KEDGE_CLIENT_TRAIN_OPS_H
#define KEDGE_CLIENT_TRAIN_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kedge_device; /* a back end's own: memory, streams, handles, scratch; one thread at a time */

/* How far the operands of a product may be rounded before they are multiplied; sums and everything that is
 * stored stay F32. A back end may round less, never more. */
enum kedge_ops_precision {
    KEDGE_OPS_F32 = 0, /* not at all */
    KEDGE_OPS_TF32,    /* to 10 bits behind the leading one */
    KEDGE_OPS_BF16,    /* to 7 */
};

struct kedge_ops_config {
    uint32_t sites;   /* 1, or as many models at once */
    uint32_t threads; /* of the processor, at least 1; the CPU's BLAS */
    enum kedge_ops_precision precision;
};

/* ---- shapes; all values at least 1 unless said otherwise, products below 2^31 ---- */

struct kedge_ops_dense {
    uint32_t in, out;
    bool relu; /* y = max(0, z), fused */
};

/* out_height = (height + 2·padding − kernel) / stride + 1, rounded down; width likewise. padding (zeros) is
 * below kernel. */
struct kedge_ops_conv2d {
    uint32_t in, height, width;          /* channels and size of x */
    uint32_t out, out_height, out_width; /* of y */
    uint32_t kernel, stride, padding;
    bool relu;
};

/* Square windows as for conv2d, without padding; windows lie inside the image. */
struct kedge_ops_pool {
    uint32_t channels, height, width;
    uint32_t out_height, out_width;
    uint32_t kernel, stride;
};

enum kedge_ops_pointwise {
    KEDGE_OPS_RELU = 1, /* derivative 0 at 0 */
    KEDGE_OPS_GELU,     /* x · Φ(x) with erf, not the tanh approximation (Hendrycks & Gimpel 2016) */
    KEDGE_OPS_TANH,
};

/* Each row of `channels × spatial` values is cut into `groups` equal runs of channels; each run is normalised
 * to mean 0 and variance 1 (biased, epsilon 1e-5 inside the root), then y = scale[channel] · x̂ +
 * shift[channel]. Layer norm: groups 1, spatial 1, channels the width; rows = samples × steps. Group norm
 * (Wu & He 2018): channels and height · width of an image; rows = samples. */
struct kedge_ops_norm {
    uint32_t rows; /* of one sample: steps of a sequence, else 1 */
    uint32_t channels, spatial, groups;
};

/* x holds token numbers as floats (0 … tokens − 1 exactly; the data were checked). y[n][steps][width]. */
struct kedge_ops_embedding {
    uint32_t tokens, steps, width;
};

/* Gates i, f, g, o in PyTorch's order: [4·hidden] = W_ih·x_t + b_ih + W_hh·h_{t−1} + b_hh;
 * c_t = σ(f)·c_{t−1} + σ(i)·tanh(g), h_t = σ(o)·tanh(c_t), h_0 = c_0 = 0. */
struct kedge_ops_lstm {
    uint32_t steps, in, hidden;
    bool last; /* y is h of the last step, [n][hidden], else all of them, [n][steps][hidden] */
};
/* Floats that one sample's forward pass leaves for the backward pass: gates after their activations
 * [steps][4·hidden], c [steps][hidden], h [steps][hidden]; n of each, one kind behind the other. Where they
 * lie within it is the back end's own affair. */
static inline uint64_t kedge_ops_lstm_saved(const struct kedge_ops_lstm *s)
{
    return (uint64_t)s->steps * 6 * s->hidden;
}

enum kedge_ops_kind {
    KEDGE_OPS_DENSE = 1,
    KEDGE_OPS_CONV2D,
    KEDGE_OPS_MAXPOOL,
    KEDGE_OPS_AVGPOOL,
    KEDGE_OPS_POINTWISE,
    KEDGE_OPS_DROPOUT,
    KEDGE_OPS_NORM,
    KEDGE_OPS_EMBEDDING,
    KEDGE_OPS_LSTM,
};
/* One layer of a net, for `prepare`. */
struct kedge_ops_layer {
    enum kedge_ops_kind kind;
    uint64_t width; /* values of y for one sample */
    union {
        struct kedge_ops_dense dense;
        struct kedge_ops_conv2d conv2d;
        struct kedge_ops_pool pool;
        struct kedge_ops_norm norm;
        struct kedge_ops_embedding embedding;
        struct kedge_ops_lstm lstm;
    } as;
};

struct kedge_ops_step {
    float keep;      /* of kernels: dense, conv2d, embedding, lstm's matrices */
    float keep_bias; /* of biases, and of norms' scale and shift */
    float by;        /* times the gradient */
};

/* What differs from step to step. */
struct kedge_ops_moment {
    const uint64_t *seeds;  /* host memory, one per site: of dropout's stream, see dropout_forward */
    uint64_t step;          /* counts the steps of a training from 0: likewise */
    uint32_t at;            /* gather: place in the order of the batch's first sample */
    const uint32_t *counts; /* host memory, one per site: samples of this step, at most n; NULL: n each */
};

/* A data set as it lies in host memory; row i begins `stride` values behind row i − 1 (rows may overlap). */
struct kedge_ops_data {
    uint32_t rows, features, stride;
    const uint8_t *bytes;                    /* to be multiplied by scale; or NULL */
    const float *reals;                      /* used as they are; or NULL */
    const struct kedge_dataset_maker *maker; /* makes rows in their place; only where memory is unified */
    float scale;
    const int32_t *labels; /* rows of them */
};

struct kedge_ops_data_handle; /* a data set where the back end can read it */

struct kedge_ops {
    const char *name; /* "cpu", "cuda" */
    bool unified;     /* the back end's memory is the host's: pointers may be followed between calls */

    /* A device. Where there is none, or it cannot do what is asked: a negative error (common/base/err.h) and
     * one line of text for people. */
    int (*open)(const struct kedge_ops_config *config, struct kedge_device **ret, char *text,
                size_t text_len);
    void (*close)(struct kedge_device *dev); /* and what was not freed; NULL is fine */
    /* "cpu openblas", "cuda cublas tf32 NVIDIA H200": what runs, static or the device's own text. */
    const char *(*engine)(const struct kedge_device *dev);
    /* `bytes` zeroed bytes per site, or NULL. */
    void *(*alloc)(struct kedge_device *dev, size_t bytes);
    void (*free)(struct kedge_device *dev, void *block); /* NULL is fine */
    void (*upload)(struct kedge_device *dev, uint32_t site, void *to, const void *host, size_t bytes);
    /* Waits for all that was asked before. KEDGE_OK or the first error. */
    int (*download)(struct kedge_device *dev, uint32_t site, void *host, const void *from, size_t bytes);
    void (*copy)(struct kedge_device *dev, void *to, const void *from, size_t bytes);
    void (*clear)(struct kedge_device *dev, void *block, size_t bytes); /* zeros */
    /* Waits; the first error since open, with a line of text for people. */
    int (*sync)(struct kedge_device *dev, char *text, size_t text_len);
    /* The net that will run, once before its first step: scratch, plans, handles. KEDGE_E_NOMEM. May be
     * called again for another net; what the former had is given back. */
    int (*prepare)(struct kedge_device *dev, const struct kedge_ops_layer *layers, uint32_t count,
                   uint32_t batch_max);

    void (*moment)(struct kedge_device *dev, const struct kedge_ops_moment *moment);
    void (*record_begin)(struct kedge_device *dev);
    void *(*record_end)(
        struct kedge_device *dev); /* a recording, freed by record_free; NULL: none was made */
    void (*replay)(struct kedge_device *dev, void *recording);
    void (*record_free)(struct kedge_device *dev, void *recording);

    /* ---- data ---- */

    /* Makes a data set readable for gather; the host's memory stays as it is until data_free. NULL: no
     * memory. */
    struct kedge_ops_data_handle *(*data_load)(struct kedge_device *dev, uint32_t site,
                                               const struct kedge_ops_data *data);
    void (*data_free)(struct kedge_device *dev, struct kedge_ops_data_handle *data);
    /* x[n][features] and labels[n]: rows order[at …  at + n) with `at` of the moment; data holds one handle
     * per site. */
    void (*gather)(struct kedge_device *dev, struct kedge_ops_data_handle *const *data, const uint32_t *order,
                   uint32_t n, float *x, int32_t *labels);

    /* ---- layers: y from x; then dx (NULL: not wanted) and the targets from dy, which a call may overwrite.
     * x and y are what the forward call had. ---- */

    void (*dense_forward)(struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t n,
                          const float *x, const float *w, const float *b, float *y);
    void (*dense_backward)(struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t n,
                           const float *x, const float *y, float *dy, const float *w, float *dx,
                           const struct kedge_ops_step *step, float *to_w, float *to_b);

    void (*conv2d_forward)(struct kedge_device *dev, const struct kedge_ops_conv2d *s, uint32_t n,
                           const float *x, const float *w, const float *b, float *y);
    void (*conv2d_backward)(struct kedge_device *dev, const struct kedge_ops_conv2d *s, uint32_t n,
                            const float *x, const float *y, float *dy, const float *w, float *dx,
                            const struct kedge_ops_step *step, float *to_w, float *to_b);

    /* which[n][channels][out_height][out_width]: the winner's place in its window, row · kernel + column; the
     * first of equals. kernel ≤ 15. */
    void (*maxpool_forward)(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                            const float *x, float *y, uint8_t *which);
    /* A value that won in several windows gets the sum of theirs. */
    void (*maxpool_backward)(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                             const uint8_t *which, const float *dy, float *dx);
    void (*avgpool_forward)(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                            const float *x, float *y);
    void (*avgpool_backward)(struct kedge_device *dev, const struct kedge_ops_pool *s, uint32_t n,
                             const float *dy, float *dx);

    void (*pointwise_forward)(struct kedge_device *dev, enum kedge_ops_pointwise kind, uint64_t count,
                              const float *x, float *y);
    void (*pointwise_backward)(struct kedge_device *dev, enum kedge_ops_pointwise kind, uint64_t count,
                               const float *x, const float *y, const float *dy, float *dx);

    /* Value e (of n · width) is kept and multiplied by 1 / (1 − rate) unless r < ⌊rate · 2^32⌋, else it is
     * 0, where r is word e mod 4 of Philox4x32-10 (Salmon et al. 2011) with key (seed low, seed high) and
     * counter (⌊e / 4⌋, layer, step low, step high) of the moment. Backward draws the same again. */
    void (*dropout_forward)(struct kedge_device *dev, double rate, uint32_t layer, uint64_t count,
                            const float *x, float *y);
    void (*dropout_backward)(struct kedge_device *dev, double rate, uint32_t layer, uint64_t count,
                             const float *dy, float *dx);

    /* saved: 2 floats for each normalised run (mean, 1 / root of the variance), n · rows · groups runs. */
    void (*norm_forward)(struct kedge_device *dev, const struct kedge_ops_norm *s, uint32_t n, const float *x,
                         const float *scale, const float *shift, float *y, float *saved);
    void (*norm_backward)(struct kedge_device *dev, const struct kedge_ops_norm *s, uint32_t n,
                          const float *x, const float *saved, float *dy, const float *scale, float *dx,
                          const struct kedge_ops_step *step, float *to_scale, float *to_shift);

    void (*embedding_forward)(struct kedge_device *dev, const struct kedge_ops_embedding *s, uint32_t n,
                              const float *x, const float *w, float *y);
    /* Rows of no token in the batch are multiplied by keep as well. */
    void (*embedding_backward)(struct kedge_device *dev, const struct kedge_ops_embedding *s, uint32_t n,
                               const float *x, const float *dy, const struct kedge_ops_step *step,
                               float *to_w);

    /* The whole sequence: params and targets are w_ih [4·hidden][in], w_hh [4·hidden][hidden], b_ih
     * [4·hidden], b_hh [4·hidden], one behind the other. saved: n · kedge_ops_lstm_saved floats. */
    void (*lstm_forward)(struct kedge_device *dev, const struct kedge_ops_lstm *s, uint32_t n, const float *x,
                         const float *params, float *y, float *saved);
    void (*lstm_backward)(struct kedge_device *dev, const struct kedge_ops_lstm *s, uint32_t n,
                          const float *x, float *saved, float *dy, const float *params, float *dx,
                          const struct kedge_ops_step *step, float *to);

    /* ---- losses: z[n][width] becomes dL/dz, the summed loss is added to the device's, in double ---- */

    /* Cross-entropy of the softmax of z against labels (each below width); L is its mean over the samples. */
    void (*cross_entropy)(struct kedge_device *dev, uint32_t n, uint32_t width, const int32_t *labels,
                          float *z);
    /* Σ (z − t)² / width, its mean over the samples; t is 1 at the label and 0 elsewhere, or, with width 1,
     * the label as a number. reals (width 1 alone): labels are the bits of F32. */
    void (*square_error)(struct kedge_device *dev, uint32_t n, uint32_t width, const int32_t *labels,
                         bool reals, float *z);
    /* The loss summed since the last call, per site; waits. NaN or infinity where training diverged. KEDGE_OK
     * or the first error. */
    int (*take_loss)(struct kedge_device *dev, double *ret_sums);

    /* ---- parameters, `count` of them ---- */

    /* w += by · v. FedProx's and SCAFFOLD's pull, weights with momentum. */
    void (*add)(struct kedge_device *dev, uint64_t count, float *w, const float *v, float by);
    /* v = a · v + b · w. Momentum: v = momentum · v + g (PyTorch's, without dampening); decay: g += 2·l2·w.
     */
    void (*blend)(struct kedge_device *dev, uint64_t count, float *v, float a, const float *w, float b);
    /* g is scaled to Euclidean norm `most` when its own, over all count values, is greater: g · most / norm
     * (Pascanu et al. 2013). */
    void (*clip)(struct kedge_device *dev, uint64_t count, float *g, float most);
};

extern const struct kedge_ops kedge_ops_cpu;

#ifdef __cplusplus
}
#endif
#endif
