/* Convolutions, one image at a time: the image with its zeros around it, kernels with channels innermost, and
 * the loops of tile.h over both. Going forward, places of a window are counted row by row of it, each with
 * all channels, so that those which lie in the zeros above or below an image are a run at either end, and are
 * left out. The data gradient is a convolution of the error (with zeros between its values where the stride
 * is more than 1) by the kernels turned round; kernels' gradients are summed over the whole batch before they
 * meet the kernels. */
#include <string.h>

#include "client/train/cpu_impl.h"
#include "client/train/tile.h"

enum { CHANNELS_FILL = 6 };

struct frame { /* an image in its zeros: channels × height × width values, `left` zeros before the first */
    uint32_t channels, height, width, left;
};
struct plan {
    const struct kedge_tiles *tiles, *back_tiles;
    uint32_t window, places, ld, back_places, back_ld, pixels;
    struct frame in, error;
};

static uint32_t round_up(uint32_t v, uint32_t to)
{
    return (v + to - 1) / to * to;
}

static struct plan make_plan(const struct kedge_ops_conv2d *s)
{
    uint32_t pad = 2 * s->padding;
    struct plan p = {.tiles = kedge_tiles_for(s->out), .back_tiles = kedge_tiles_for(s->in)};
    p.window = s->kernel * s->kernel;
    p.places = s->in * p.window;
    p.back_places = s->out * p.window;
    p.ld = round_up(s->out, p.tiles->lanes);
    p.back_ld = round_up(s->in, p.back_tiles->lanes);
    p.pixels = s->out_height * s->out_width;
    p.in = (struct frame){s->in, s->height + pad, s->width + pad, s->padding};
    p.error = (struct frame){s->out, s->height + s->kernel - 1, s->width + s->kernel - 1,
                             s->kernel - 1 - s->padding};
    return p;
}

static uint64_t frame_size(const struct frame *f)
{
    return (uint64_t)f->channels * f->height * f->width;
}

/* Where the parts of the scratch lie. */
struct parts {
    float *frame, *error, *w, *back_w, *row, *dy, *dw;
    uint32_t *offset, *back_offset;
};

/* One scratch for all layers of a model, as large as the neediest one wants (cpu_prepare). Parts begin at
 * whole cache lines. Called with NULL it only counts, so that sizes and places cannot get out of step. */
static uint64_t place_parts(const struct kedge_ops_conv2d *s, const struct plan *p, float *at,
                            struct parts *ret)
{
    uint64_t row = (uint64_t)s->out_width * p->ld, back_row = (uint64_t)s->width * p->back_ld;
    const uint64_t sizes[9] = {frame_size(&p->in),
                               frame_size(&p->error),
                               (uint64_t)p->places * p->ld,
                               (uint64_t)p->back_places * p->back_ld,
                               row > back_row ? row : back_row,
                               (uint64_t)p->pixels * p->ld,
                               (uint64_t)p->places * p->ld,
                               p->places,
                               p->back_places};
    uint64_t from[9], total = 0;
    for (int i = 0; i < 9; i++) {
        from[i] = total;
        total += (sizes[i] + 15) / 16 * 16; /* whole lines */
    }
    if (ret) {
        *ret = (struct parts){.frame = at + from[0],
                              .error = at + from[1],
                              .w = at + from[2],
                              .back_w = at + from[3],
                              .row = at + from[4],
                              .dy = at + from[5],
                              .dw = at + from[6],
                              .offset = (uint32_t *)(void *)(at + from[7]),
                              .back_offset = (uint32_t *)(void *)(at + from[8])};
    }
    return total;
}

uint64_t kedge_cpu_conv2d_scratch(const struct kedge_ops_conv2d *s)
{
    struct plan p = make_plan(s);
    return place_parts(s, &p, NULL, NULL);
}

/* Places row by row of the window, as forward_row wants them. */
static void fill_offsets(const struct frame *f, uint32_t kernel, uint32_t *offset)
{
    for (uint32_t ky = 0; ky < kernel; ky++) {
        for (uint32_t c = 0; c < f->channels; c++) {
            for (uint32_t kx = 0; kx < kernel; kx++) {
                *offset++ = (c * f->height + ky) * f->width + kx;
            }
        }
    }
}

/* The kernels' gradient goes place by place of the window, each with all channels, where there are zeros to
 * be left out and channels to fill a tile of registers; else channel by channel, as places lie in a kernel.
 */
static bool goes_by_place(const struct kedge_ops_conv2d *s)
{
    return s->padding > 0 && s->in >= CHANNELS_FILL;
}

/* Where its place k lies in a kernel. */
static uint32_t gradient_place(const struct kedge_ops_conv2d *s, uint32_t k)
{
    const uint32_t window = s->kernel * s->kernel;
    return !goes_by_place(s) ? k : k % s->in * window + k / s->in;
}

static void fill_gradient_offsets(const struct kedge_ops_conv2d *s, const struct frame *f, uint32_t *offset)
{
    const uint32_t window = s->kernel * s->kernel;
    for (uint32_t at = 0; at < s->in * window; at++) {
        const uint32_t k = gradient_place(s, at);
        offset[at] = (k / window * f->height + k % window / s->kernel) * f->width + k % s->kernel;
    }
}

/* An image of height × width into its frame, its values `step` apart; the zeros are there already. */
static void fill_frame(const struct frame *f, uint32_t height, uint32_t width, uint32_t step, const float *x,
                       float *out)
{
    for (uint32_t c = 0; c < f->channels; c++) {
        for (uint32_t y = 0; y < height; y++, x += width) {
            float *to = out + ((uint64_t)c * f->height + f->left + (uint64_t)y * step) * f->width + f->left;
            if (step == 1) {
                memcpy(to, x, width * sizeof *x);
            } else {
                for (uint32_t i = 0; i < width; i++) {
                    to[(uint64_t)i * step] = x[i];
                }
            }
        }
    }
}

/* Where place k of a window of `channels` lies in a kernel [channels][kernel][kernel]. */
static uint32_t place_in_kernel(uint32_t channels, uint32_t kernel, uint32_t k)
{
    const uint32_t run = channels * kernel;
    return (k % run / kernel * kernel + k / run) * kernel + k % kernel;
}

/* kernels [out][in][kernel][kernel] as [places][ld], zeros behind the channels. */
static void turn_kernels(const struct kedge_ops_conv2d *s, const struct plan *p, const float *w, float *to)
{
    for (uint32_t k = 0; k < p->places; k++) {
        const uint32_t from = place_in_kernel(s->in, s->kernel, k);
        for (uint32_t o = 0; o < p->ld; o++) {
            to[(uint64_t)k * p->ld + o] = o < s->out ? w[(uint64_t)o * p->places + from] : 0.0f;
        }
    }
}

/* The same for the data gradient: the kernels turned round, [rows of them · out · columns][in]. */
static void turn_kernels_back(const struct kedge_ops_conv2d *s, const struct plan *p, const float *w,
                              float *to)
{
    for (uint32_t k = 0; k < p->back_places; k++, to += p->back_ld) {
        const uint32_t at = place_in_kernel(s->out, s->kernel, k);
        const uint64_t o = at / p->window, turned = p->window - 1 - at % p->window;
        for (uint32_t i = 0; i < p->back_ld; i++) {
            to[i] = i < s->in ? w[(o * s->in + i) * p->window + turned] : 0.0f;
        }
    }
}

/* Of a window that begins at row `row` of a frame with `before` rows of zeros above `height` real ones: its
 * rows from *ret_first to below the result are real, none where they are equal. */
static uint32_t real_rows(uint32_t kernel, uint32_t before, uint32_t row, uint32_t height,
                          uint32_t *ret_first)
{
    const uint32_t first = row < before ? before - row : 0;
    const uint32_t end = height + before > row ? height + before - row : 0;
    *ret_first = first < kernel ? first : kernel;
    return end > kernel ? kernel : end > *ret_first ? end : *ret_first;
}

/* One row of windows that begins at row `row` of its frame, without the places that lie in zeros. */
static void forward_row(const struct kedge_tiles *tiles, const struct kedge_tile_windows *all,
                        const struct frame *f, uint32_t kernel, uint32_t row, uint32_t height, const float *x,
                        const float *w, float *out)
{
    struct kedge_tile_windows r = *all;
    uint32_t first;
    const uint32_t end = real_rows(kernel, f->left, row, height, &first), run = f->channels * kernel;
    r.offset += first * run;
    r.places = (end - first) * run;
    tiles->forward(&r, x + (uint64_t)row * f->width, w + (uint64_t)first * run * r.ld, out);
}

/* A row of pixels [pixels][ld] to its place in [channels][…]. */
static void put_row(const float *row, uint32_t pixels, uint32_t ld, uint32_t channels, uint64_t apart,
                    const float *bias, bool relu, float *to)
{
    for (uint32_t c = 0; c < channels; c++) {
        float b = bias ? bias[c] : 0.0f;
        for (uint32_t p = 0; p < pixels; p++) {
            float v = row[(uint64_t)p * ld + c] + b;
            to[c * apart + p] = relu && !(v > 0.0f) ? 0.0f : v;
        }
    }
}

void kedge_cpu_conv2d_forward(struct kedge_device *dev, const struct kedge_ops_conv2d *s, uint32_t n,
                              const float *x, const float *w, const float *b, float *y)
{
    struct plan p = make_plan(s);
    struct parts m;
    place_parts(s, &p, dev->scratch, &m);
    struct kedge_tile_windows r = {p.places, p.ld, m.offset, s->stride, 0, 1, s->out_width, 0};
    fill_offsets(&p.in, s->kernel, m.offset);
    turn_kernels(s, &p, w, m.w);
    memset(m.frame, 0, frame_size(&p.in) * sizeof *m.frame);
    for (uint32_t i = 0; i < n; i++) {
        fill_frame(&p.in, s->height, s->width, 1, x + (uint64_t)i * s->in * s->height * s->width, m.frame);
        for (uint32_t oy = 0; oy < s->out_height; oy++) {
            forward_row(p.tiles, &r, &p.in, s->kernel, oy * s->stride, s->height, m.frame, m.w, m.row);
            put_row(m.row, s->out_width, p.ld, s->out, p.pixels, b, s->relu,
                    y + (uint64_t)i * s->out * p.pixels + (uint64_t)oy * s->out_width);
        }
    }
}

/* [channels][pixels] as [pixels][ld], times by: 8 channels at a time, so that a line is written once. */
static void turn_error(const struct plan *p, uint32_t channels, const float *restrict dy, float by,
                       float *restrict turned)
{
    enum { TOGETHER = 8 };
    for (uint32_t from = 0; from < channels; from += TOGETHER) {
        uint32_t end = from + TOGETHER < channels ? from + TOGETHER : channels;
        for (uint32_t i = 0; i < p->pixels; i++) {
            for (uint32_t c = from; c < end; c++) {
                turned[(uint64_t)i * p->ld + c] = by * dy[(uint64_t)c * p->pixels + i];
            }
        }
    }
}

/* The ReLU's mask on one image's error; `by` times it with channels innermost, and its sums into the bias. */
static void take_error(const struct kedge_ops_conv2d *s, const struct plan *p, const float *restrict y,
                       float *restrict dy, float by, float *restrict to_b, float *restrict turned)
{
    uint64_t count = (uint64_t)s->out * p->pixels;
    for (uint64_t i = 0; s->relu && i < count; i++) {
        dy[i] = y[i] > 0.0f ? dy[i] : 0.0f;
    }
    turn_error(p, s->out, dy, by, turned);
    for (uint32_t i = 0; i < p->pixels; i++, turned += p->ld) {
        for (uint32_t c = 0; c < s->out; c++) {
            to_b[c] += turned[c];
        }
    }
}

static void data_gradient(const struct kedge_ops_conv2d *s, const struct plan *p, const struct parts *m,
                          const float *dy, float *dx)
{
    struct kedge_tile_windows r = {p->back_places, p->back_ld, m->back_offset, 1, 0, 1, s->width, 0};
    fill_frame(&p->error, s->out_height, s->out_width, s->stride, dy, m->error);
    for (uint32_t iy = 0; iy < s->height; iy++) {
        forward_row(p->back_tiles, &r, &p->error, s->kernel, iy, (s->out_height - 1) * s->stride + 1,
                    m->error, m->back_w, m->row);
        put_row(m->row, s->width, p->back_ld, s->in, (uint64_t)s->height * s->width, NULL, false,
                dx + (uint64_t)iy * s->width);
    }
}

/* Of windows that begin `stride` apart: those for which place `at` of a window lies among `size` real values
 * behind `before` zeros; *ret_first … below the result, none where they are equal. */
static uint32_t real_windows(uint32_t at, uint32_t before, uint32_t size, uint32_t stride, uint32_t count,
                             uint32_t *ret_first)
{
    const uint32_t first = at < before ? (before - at + stride - 1) / stride : 0;
    const uint32_t end = size + before > at ? (size + before - at + stride - 1) / stride : 0;
    *ret_first = first < count ? first : count;
    return end > count ? count : end > *ret_first ? end : *ret_first;
}

/* dw[places][ld] += what an image's error m->dy has to say of each place; windows in which it lies in zeros
 * are left out where places go one by one. */
static void kernel_gradient(const struct kedge_ops_conv2d *s, const struct plan *p, const struct parts *m)
{
    const uint64_t row = (uint64_t)s->out_width * p->ld;
    struct kedge_tile_windows r = {p->places,     p->ld,        m->offset, s->stride, s->stride * p->in.width,
                                   s->out_height, s->out_width, row};
    if (!goes_by_place(s)) {
        p->tiles->weights(&r, m->frame, m->dy, m->dw);
        return;
    }
    r.places = s->in;
    for (uint32_t k = 0; k < p->window; k++, r.offset += s->in) {
        uint32_t y, x;
        r.rows = real_windows(k / s->kernel, s->padding, s->height, s->stride, s->out_height, &y) - y;
        r.pixels = real_windows(k % s->kernel, s->padding, s->width, s->stride, s->out_width, &x) - x;
        if (r.rows > 0 && r.pixels > 0) {
            p->tiles->weights(&r, m->frame + (uint64_t)y * r.row_stride + (uint64_t)x * s->stride,
                              m->dy + y * row + (uint64_t)x * p->ld, m->dw + (uint64_t)k * s->in * p->ld);
        }
    }
}

/* to [out][in][kernel][kernel] = keep · to + dw [places][ld]. */
static void put_kernels(const struct kedge_ops_conv2d *s, const struct plan *p, const float *dw, float keep,
                        float *to)
{
    for (uint32_t o = 0; o < s->out; o++, to += p->places) {
        for (uint32_t k = 0; k < p->places; k++) {
            float *one = to + gradient_place(s, k);
            *one = (keep == 0.0f ? 0.0f : keep * *one) + dw[(uint64_t)k * p->ld + o];
        }
    }
}

void kedge_cpu_conv2d_backward(struct kedge_device *dev, const struct kedge_ops_conv2d *s, uint32_t n,
                               const float *x, const float *y, float *dy, const float *w, float *dx,
                               const struct kedge_ops_step *step, float *to_w, float *to_b)
{
    struct plan p = make_plan(s);
    struct parts m;
    place_parts(s, &p, dev->scratch, &m);
    uint64_t in = (uint64_t)s->in * s->height * s->width, out = (uint64_t)s->out * p.pixels;
    fill_gradient_offsets(s, &p.in, m.offset);
    memset(m.frame, 0, frame_size(&p.in) * sizeof *m.frame);
    memset(m.dy, 0, (uint64_t)p.pixels * p.ld * sizeof *m.dy);
    memset(m.dw, 0, (uint64_t)p.places * p.ld * sizeof *m.dw);
    if (dx) {
        fill_offsets(&p.error, s->kernel, m.back_offset);
        turn_kernels_back(s, &p, w, m.back_w);
        memset(m.error, 0, frame_size(&p.error) * sizeof *m.error);
    }
    for (uint32_t c = 0; c < s->out; c++) {
        to_b[c] = step->keep_bias == 0.0f ? 0.0f : step->keep_bias * to_b[c];
    }
    for (uint32_t i = 0; i < n; i++) {
        take_error(s, &p, y + i * out, dy + i * out, step->by, to_b, m.dy);
        fill_frame(&p.in, s->height, s->width, 1, x + i * in, m.frame);
        kernel_gradient(s, &p, &m);
        if (dx) {
            data_gradient(s, &p, &m, dy + i * out, dx + i * in);
        }
    }
    put_kernels(s, &p, m.dw, step->keep, to_w);
}
