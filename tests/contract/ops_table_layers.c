/* Dense layers, convolutions and pools. */
#include "tests/contract/ops_table.h"

#include <math.h>

enum { STEPS = 3 };
/* A gradient; the step of plain SGD; with decay, biases without it. */
static const struct kedge_ops_step steps[STEPS] = {{0, 0, 1}, {1, 1, -0.125f}, {0.75f, 0.875f, -0.5f}};

static double relu_slope(bool relu, float y)
{
    return !relu || y > 0.0f ? 1.0 : 0.0;
}

/* target = keep · target + by · gradient, but of a site without samples nothing changes. */
static double stepped(const struct suite *s, uint32_t site, const struct kedge_ops_step *step, bool is_bias,
                      float old, double gradient)
{
    const double keep = (double)(is_bias ? step->keep_bias : step->keep);
    return s->counts[site] == 0 ? (double)old
                                : (keep != 0 ? keep * (double)old : 0) + (double)step->by * gradient;
}

static void want_kept(const struct suite *s, struct tensor *t, const struct kedge_ops_step *step)
{
    for (uint32_t site = 0; site < s->sites && step->keep == 0;
         site++) { /* what a gradient is there, nobody reads */
        for (size_t i = 0; i < t->count && s->counts[site] == 0; i++) {
            t->want[site * t->count + i] = (double)t->host[site * t->count + i];
        }
    }
}

static void dense_case(struct suite *s, const struct kedge_ops_dense *d, uint32_t n, uint32_t which,
                       bool wants_dx)
{
    const struct kedge_ops_step *step = &steps[which];
    const struct kedge_ops_layer layer = {.kind = KEDGE_OPS_DENSE, .width = d->out, .as.dense = *d};
    suite_case(s, n, "dense %u×%u→%u%s, step %u", n, d->in, d->out, d->relu ? " relu" : "", which);
    if (suite_failed(s) || s->ops->prepare(s->dev, &layer, 1, n)) {
        suite_fail(s, "cannot be prepared");
        return;
    }
    const size_t in = d->in, out = d->out;
    struct tensor *x = tensor_random(s, n * in, 1), *w = tensor_random(s, out * in, 1),
                  *b = tensor_random(s, out, 1);
    struct tensor *y = tensor_empty(s, n * out), *dy = tensor_random(s, n * out, 1),
                  *dx = tensor_empty(s, n * in);
    tensor_mask(s, dy, out);
    s->ops->dense_forward(s->dev, d, n, x->at, w->at, b->at, y->at);
    for (size_t i = 0; i < s->sites * n * out; i++) {
        const size_t site = i / (n * out), r = i / out % n, o = i % out;
        double sum = (double)b->host[site * out + o];
        for (size_t k = 0; k < in; k++) {
            sum += (double)x->host[(site * n + r) * in + k] * (double)w->host[(site * out + o) * in + k];
        }
        y->want[i] = d->relu && sum < 0 ? 0 : sum;
    }
    tensor_check(s, y, in + 1, "y");
    s->ops->dense_backward(s->dev, d, n, x->at, y->at, dy->at, w->at, wants_dx ? dx->at : NULL, step, w->at,
                           b->at);
    for (size_t i = 0; i < s->sites * n * in; i++) {
        const size_t row = i / in;
        double sum = 0;
        for (size_t o = 0; o < out; o++) {
            sum += (double)dy->host[row * out + o] * relu_slope(d->relu, y->got[row * out + o])
                   * (double)w->host[(row / n * out + o) * in + i % in];
        }
        dx->want[i] = sum;
    }
    for (size_t i = 0; i < s->sites * out * (in + 1); i++) { /* kernels, then the bias as one more column */
        const size_t site = i / (out * (in + 1)), o = i / (in + 1) % out, k = i % (in + 1);
        double sum = 0;
        for (size_t r = 0; r < n; r++) {
            const size_t at = (site * n + r) * out + o;
            sum += (double)dy->host[at] * relu_slope(d->relu, y->got[at])
                   * (k < in ? (double)x->host[(site * n + r) * in + k] : 1.0);
        }
        struct tensor *t = k < in ? w : b;
        const size_t at = k < in ? (site * out + o) * in + k : site * out + o;
        t->want[at] = stepped(s, (uint32_t)site, step, k == in, t->host[at], sum);
    }
    if (wants_dx) {
        tensor_check_rows(s, dx, in, out, "dx");
    }
    want_kept(s, w, step);
    want_kept(s, b, step);
    tensor_check(s, w, n + 1, "kernel");
    tensor_check(s, b, n + 1, "bias");
}

/* The input's place under (oy, ox) and kernel place (ky, kx), or SIZE_MAX outside. */
static size_t under(const struct kedge_ops_conv2d *c, size_t image, size_t channel, size_t o, size_t k)
{
    const size_t y = o / c->out_width * c->stride + k / c->kernel,
                 x = o % c->out_width * c->stride + k % c->kernel;
    if (y < c->padding || x < c->padding || y - c->padding >= c->height || x - c->padding >= c->width) {
        return SIZE_MAX;
    }
    return ((image * c->in + channel) * c->height + y - c->padding) * c->width + x - c->padding;
}

struct conv_tensors {
    struct tensor *x, *w, *b, *y, *dy, *dx;
};

static void conv_want_y(const struct suite *s, const struct kedge_ops_conv2d *c, size_t n,
                        const struct conv_tensors *t)
{
    const size_t places = (size_t)c->out_height * c->out_width, window = (size_t)c->kernel * c->kernel;
    for (size_t i = 0; i < s->sites * n * c->out * places; i++) {
        const size_t image = i / places / c->out, o = i / places % c->out, site = image / n;
        double sum = (double)t->b->host[site * c->out + o];
        for (size_t j = 0; j < c->in * window; j++) {
            const size_t at = under(c, image, j / window, i % places, j % window);
            sum += at == SIZE_MAX ? 0
                                  : (double)t->x->host[at]
                                        * (double)t->w->host[(site * c->out + o) * c->in * window + j];
        }
        t->y->want[i] = c->relu && sum < 0 ? 0 : sum;
    }
}

/* Scatters every output's error to what it came from: dx, and the gradients into want of w and b. */
static void conv_want_back(const struct suite *s, const struct kedge_ops_conv2d *c, size_t n,
                           const struct conv_tensors *t)
{
    const size_t places = (size_t)c->out_height * c->out_width, window = (size_t)c->kernel * c->kernel;
    for (size_t i = 0; i < s->sites * t->dx->count; i++) {
        t->dx->want[i] = 0;
    }
    for (size_t i = 0; i < s->sites * t->w->count; i++) {
        t->w->want[i] = 0;
    }
    for (size_t i = 0; i < s->sites * t->b->count; i++) {
        t->b->want[i] = 0;
    }
    for (size_t i = 0; i < s->sites * n * c->out * places; i++) {
        const size_t image = i / places / c->out, o = i / places % c->out, site = image / n;
        const double dy = (double)t->dy->host[i] * relu_slope(c->relu, t->y->got[i]);
        t->b->want[site * c->out + o] += dy;
        for (size_t j = 0; j < c->in * window; j++) {
            const size_t at = under(c, image, j / window, i % places, j % window);
            const size_t of = (site * c->out + o) * c->in * window + j;
            if (at != SIZE_MAX) {
                t->dx->want[at] += dy * (double)t->w->host[of];
                t->w->want[of] += dy * (double)t->x->host[at];
            }
        }
    }
}

static void want_steps(const struct suite *s, struct tensor *t, const struct kedge_ops_step *step,
                       bool is_bias)
{
    for (size_t i = 0; i < s->sites * t->count; i++) {
        t->want[i] = stepped(s, (uint32_t)(i / t->count), step, is_bias, t->host[i], t->want[i]);
    }
}

static void conv_case(struct suite *s, const struct kedge_ops_conv2d *c, uint32_t n, uint32_t which,
                      bool wants_dx)
{
    const size_t places = (size_t)c->out_height * c->out_width, window = (size_t)c->kernel * c->kernel;
    const struct kedge_ops_layer layer = {
        .kind = KEDGE_OPS_CONV2D, .width = c->out * places, .as.conv2d = *c};
    suite_case(s, n, "conv2d %u×%u×%u×%u→%u by %u stride %u padding %u%s, step %u", n, c->in, c->height,
               c->width, c->out, c->kernel, c->stride, c->padding, c->relu ? " relu" : "", which);
    if (suite_failed(s) || s->ops->prepare(s->dev, &layer, 1, n)) {
        suite_fail(s, "cannot be prepared");
        return;
    }
    const size_t image = (size_t)c->in * c->height * c->width;
    const struct conv_tensors t = {tensor_random(s, n * image, 1),
                                   tensor_random(s, c->out * c->in * window, 1),
                                   tensor_random(s, c->out, 1),
                                   tensor_empty(s, n * c->out * places),
                                   tensor_random(s, n * c->out * places, 1),
                                   tensor_empty(s, n * image)};
    tensor_mask(s, t.dy, c->out * places);
    s->ops->conv2d_forward(s->dev, c, n, t.x->at, t.w->at, t.b->at, t.y->at);
    conv_want_y(s, c, n, &t);
    tensor_check(s, t.y, c->in * window + 1, "y");
    s->ops->conv2d_backward(s->dev, c, n, t.x->at, t.y->at, t.dy->at, t.w->at, wants_dx ? t.dx->at : NULL,
                            &steps[which], t.w->at, t.b->at);
    conv_want_back(s, c, n, &t);
    want_steps(s, t.w, &steps[which], false);
    want_steps(s, t.b, &steps[which], true);
    want_kept(s, t.w, &steps[which]);
    want_kept(s, t.b, &steps[which]);
    if (wants_dx) {
        tensor_check_rows(s, t.dx, image, c->out * window, "dx");
    }
    tensor_check(s, t.w, n * places + 1, "kernel");
    tensor_check(s, t.b, n * places + 1, "bias");
}

/* A window's values: the place of the greatest, and the mean. */
static size_t window_at(const struct kedge_ops_pool *p, size_t plane, size_t o, size_t k)
{
    return (plane * p->height + o / p->out_width * p->stride + k / p->kernel) * p->width
           + o % p->out_width * p->stride + k % p->kernel;
}

static void pool_case(struct suite *s, const struct kedge_ops_pool *p, uint32_t n)
{
    const size_t out = (size_t)p->out_height * p->out_width, window = (size_t)p->kernel * p->kernel;
    suite_case(s, n, "pool %u×%u×%u×%u by %u stride %u", n, p->channels, p->height, p->width, p->kernel,
               p->stride);
    struct tensor *x = tensor_random(s, (size_t)n * p->channels * p->height * p->width, 1);
    for (size_t i = 0; i < s->sites * x->count; i++) { /* few values: equals in a window */
        x->host[i] = roundf(x->host[i] * 4) / 4;
    }
    tensor_put(s, x);
    struct tensor *y = tensor_empty(s, n * p->channels * out), *mean = tensor_empty(s, y->count);
    struct tensor *dy = tensor_random(s, y->count, 1), *dx = tensor_empty(s, x->count),
                  *dm = tensor_empty(s, x->count);
    uint8_t *which = s->ops->alloc(s->dev, y->count);
    if (!which) {
        suite_fail(s, "no memory");
        return;
    }
    s->ops->maxpool_forward(s->dev, p, n, x->at, y->at, which);
    s->ops->avgpool_forward(s->dev, p, n, x->at, mean->at);
    s->ops->maxpool_backward(s->dev, p, n, which, dy->at, dx->at);
    s->ops->avgpool_backward(s->dev, p, n, dy->at, dm->at);
    for (size_t i = 0; i < s->sites * x->count; i++) {
        dx->want[i] = dm->want[i] = 0;
    }
    for (size_t i = 0; i < s->sites * y->count; i++) {
        size_t winner = window_at(p, i / out, i % out, 0);
        double sum = 0;
        for (size_t k = 0; k < window; k++) {
            const size_t at = window_at(p, i / out, i % out, k);
            winner = x->host[at] > x->host[winner] ? at : winner;
            sum += (double)x->host[at];
            dm->want[at] += (double)dy->host[i] / (double)window;
        }
        y->want[i] = (double)x->host[winner];
        mean->want[i] = sum / (double)window;
        dx->want[winner] += (double)dy->host[i];
    }
    tensor_check(s, y, 1, "greatest");
    tensor_check(s, mean, window, "mean");
    tensor_check(s, dx, window, "dx of greatest");
    tensor_check(s, dm, window, "dx of mean");
    s->ops->free(s->dev, which);
}

static struct kedge_ops_conv2d conv(uint32_t in, uint32_t height, uint32_t width, uint32_t out,
                                    uint32_t kernel, uint32_t stride, uint32_t padding)
{
    return (struct kedge_ops_conv2d){in,
                                     height,
                                     width,
                                     out,
                                     (height + 2 * padding - kernel) / stride + 1,
                                     (width + 2 * padding - kernel) / stride + 1,
                                     kernel,
                                     stride,
                                     padding,
                                     false};
}

static struct kedge_ops_pool pool(uint32_t channels, uint32_t height, uint32_t width, uint32_t kernel,
                                  uint32_t stride)
{
    return (struct kedge_ops_pool){
        channels, height, width, (height - kernel) / stride + 1, (width - kernel) / stride + 1,
        kernel,   stride};
}

void ops_table_layers(struct suite *s)
{
    static const uint32_t dense[][3] = {{1, 1, 1},   {3, 5, 7},    {10, 64, 10}, {10, 300, 65}, {17, 33, 64},
                                        {32, 16, 3}, {33, 129, 2}, {65, 67, 63}, {2, 1025, 1}};
    for (uint32_t i = 0; i < sizeof dense / sizeof *dense && !suite_failed(s); i++) {
        const struct kedge_ops_dense d = {dense[i][1], dense[i][2], i % 2 == 1};
        dense_case(s, &d, dense[i][0], i % STEPS, i % 4 != 2);
    }
    const struct kedge_ops_conv2d convs[] = {conv(1, 1, 1, 1, 1, 1, 0),   conv(1, 9, 7, 6, 5, 1, 2),
                                             conv(3, 8, 8, 4, 3, 1, 1),   conv(2, 11, 6, 5, 3, 2, 1),
                                             conv(17, 5, 5, 33, 2, 2, 0), conv(2, 6, 9, 3, 4, 3, 3),
                                             conv(2, 1, 2, 17, 5, 2, 4),  conv(7, 6, 5, 9, 3, 1, 2),
                                             conv(8, 4, 7, 17, 4, 3, 3),  conv(6, 1, 2, 5, 5, 2, 4)};
    for (uint32_t i = 0; i < sizeof convs / sizeof *convs && !suite_failed(s); i++) {
        struct kedge_ops_conv2d c = convs[i];
        c.relu = i % 2 == 1;
        conv_case(s, &c, 1 + i % 3 * 2, i % STEPS, i % 3 != 2 || i == 5);
    }
    const struct kedge_ops_pool pools[] = {pool(1, 2, 2, 2, 2), pool(3, 9, 7, 2, 2), pool(2, 7, 8, 3, 2),
                                           pool(1, 5, 6, 3, 1), pool(2, 6, 6, 2, 3), pool(1, 3, 3, 1, 1)};
    for (uint32_t i = 0; i < sizeof pools / sizeof *pools && !suite_failed(s); i++) {
        pool_case(s, &pools[i], 1 + i);
    }
}
