/* What goes element by element, losses, parameters. */
#include "tests/contract/ops_table.h"

#include <math.h>
#include <string.h>

#include "common/base/err.h"

static double point(enum kedge_ops_pointwise kind, double x)
{
    return kind == KEDGE_OPS_RELU   ? (x > 0 ? x : 0)
           : kind == KEDGE_OPS_TANH ? tanh(x)
                                    : x * 0.5 * erfc(-x / sqrt(2));
}

static double point_slope(enum kedge_ops_pointwise kind, double x)
{
    if (kind == KEDGE_OPS_GELU) {
        return 0.5 * erfc(-x / sqrt(2)) + x * exp(-x * x / 2) / sqrt(2 * acos(-1.0));
    }
    return kind == KEDGE_OPS_RELU ? (x > 0 ? 1 : 0) : 1 - tanh(x) * tanh(x);
}

static void pointwise_case(struct suite *s, enum kedge_ops_pointwise kind, size_t count)
{
    suite_case(s, 1, "pointwise %d of %zu", (int)kind, count);
    struct tensor *x = tensor_random(s, count, 4), *y = tensor_empty(s, count);
    struct tensor *dy = tensor_random(s, count, 1), *dx = tensor_empty(s, count);
    x->host[0] = 0.0f;
    tensor_put(s, x);
    s->ops->pointwise_forward(s->dev, kind, count, x->at, y->at);
    s->ops->pointwise_backward(s->dev, kind, count, x->at, y->at, dy->at, dx->at);
    for (size_t i = 0; i < s->sites * count; i++) {
        y->want[i] = point(kind, (double)x->host[i]);
        dx->want[i] = (double)dy->host[i] * point_slope(kind, (double)x->host[i]);
    }
    tensor_check(s, y, 1, "y");
    tensor_check(s, dx, kind == KEDGE_OPS_TANH ? 8192 : 1, "dx"); /* 1 − y² near 0 keeps few digits */
}

/* Philox4x32-10 as its paper has it, one round a line. */
static void philox(uint32_t low, uint32_t high, uint32_t c[4])
{
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53 * c[0], b = (uint64_t)0xCD9E8D57 * c[2];
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ low, (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ c[3] ^ high, (uint32_t)a};
        memcpy(c, next, sizeof next);
        low += 0x9E3779B9;
        high += 0xBB67AE85;
    }
}

static void dropout_case(struct suite *s, double rate, uint32_t layer, size_t count)
{
    suite_case(s, 1, "dropout %g of %zu, layer %u", rate, count, layer);
    struct tensor *x = tensor_random(s, count, 1), *y = tensor_empty(s, count);
    struct tensor *dy = tensor_random(s, count, 1), *dx = tensor_empty(s, count);
    s->ops->dropout_forward(s->dev, rate, layer, count, x->at, y->at);
    s->ops->dropout_backward(s->dev, rate, layer, count, dy->at, dx->at);
    for (size_t i = 0; i < s->sites * count; i++) { /* seed and step as suite_case tells them */
        const uint64_t seed = UINT64_C(0x0123456789abcdef) + i / count;
        uint32_t c[4] = {(uint32_t)(i % count / 4), layer, 2, 1};
        philox((uint32_t)seed, (uint32_t)(seed >> 32), c);
        const double by = (double)c[i % count % 4] < floor(rate * 0x1p32) ? 0 : 1 / (1 - rate);
        y->want[i] = by * (double)x->host[i];
        dx->want[i] = by * (double)dy->host[i];
    }
    tensor_check(s, y, 1, "y");
    tensor_check(s, dx, 1, "dx");
}

/* The paper's own numbers hold this page's formula. */
static void philox_known(struct suite *s)
{
    static const uint32_t zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    uint32_t c[4] = {0, 0, 0, 0};
    philox(0, 0, c);
    if (memcmp(c, zero, sizeof c) != 0) {
        suite_fail(s, "the check's own Philox is wrong");
    }
}

/* One sample: its loss, and z's want. */
static double cross_entropy(const float *z, double *want, size_t width, size_t label, double share)
{
    double most = (double)z[0], sum = 0;
    for (size_t c = 1; c < width; c++) {
        most = (double)z[c] > most ? (double)z[c] : most;
    }
    for (size_t c = 0; c < width; c++) {
        sum += exp((double)z[c] - most);
    }
    for (size_t c = 0; c < width; c++) {
        want[c] = share * (exp((double)z[c] - most) / sum - (c == label ? 1 : 0));
    }
    return log(sum) - ((double)z[label] - most);
}

static double square_error(const float *z, double *want, size_t width, size_t label, double share)
{
    double loss = 0;
    for (size_t c = 0; c < width; c++) {
        const double off = (double)z[c] - (width == 1 ? (double)label : c == label ? 1 : 0);
        want[c] = share * 2 * off / (double)width;
        loss += off * off / (double)width;
    }
    return loss;
}

/* What a label says where it is a real: halves from −1.5 up, as F32. */
static double real_of(int32_t label, int32_t *ret_bits)
{
    const float v = (float)label / 2 - 1.5f;
    memcpy(ret_bits, &v, sizeof v);
    return (double)v;
}

static double real_error(const float *z, double *want, double target, double share)
{
    const double off = (double)z[0] - target;
    want[0] = share * 2 * off;
    return off * off;
}

static void run_loss(struct suite *s, bool is_square, bool reals, uint32_t n, uint32_t width,
                     const int32_t *labels, float *z)
{
    if (is_square) {
        s->ops->square_error(s->dev, n, width, labels, reals, z);
    } else {
        s->ops->cross_entropy(s->dev, n, width, labels, z);
    }
}

static void check_loss(struct suite *s, const double *want, size_t terms)
{
    double got[OPS_TABLE_SITES_MAX] = {0};
    const int err = s->ops->take_loss(s->dev, got);
    s->checks++;
    for (uint32_t site = 0; site < s->sites; site++) {
        const double allowed =
            OPS_TABLE_TOLERANCE * 0x1p-23 * sqrt((double)terms) * (fabs(want[site]) + s->counts[site]);
        if (err || !(fabs(got[site] - want[site]) <= allowed)) {
            suite_fail(s, "loss of site %u: %.9g, expected %.9g (error %d)", site, got[site], want[site],
                       err);
        }
    }
}

/* reals: of square errors of one value. */
static void loss_case(struct suite *s, bool is_square, bool reals, uint32_t n, uint32_t width)
{
    suite_case(s, n, "%s %u×%u",
               reals       ? "square error of reals"
               : is_square ? "square error"
                           : "cross-entropy",
               n, width);
    struct tensor *z = tensor_random(s, (size_t)n * width, 5);
    int32_t *labels = s->ops->alloc(s->dev, n * sizeof *labels);
    int32_t host[512];
    double loss[OPS_TABLE_SITES_MAX] = {0}, none[OPS_TABLE_SITES_MAX] = {0};
    if (!labels || n > sizeof host / sizeof *host) {
        suite_fail(s, "no memory");
        return;
    }
    for (uint32_t site = 0; site < s->sites; site++) {
        for (uint32_t r = 0; r < n; r++) {
            const size_t row = (size_t)site * n + r;
            host[r] = (int32_t)kedge_rng_below(&s->rng, width == 1 && is_square ? 5 : width);
            memset(z->want + row * width, 0, width * sizeof *z->want);
            const double target = reals ? real_of(host[r], &host[r]) : 0;
            if (r < s->counts[site] && reals) {
                loss[site] += real_error(z->host + row, z->want + row, target, 1.0 / s->counts[site]);
            } else if (r < s->counts[site]) {
                loss[site] +=
                    (is_square ? square_error : cross_entropy)(z->host + row * width, z->want + row * width,
                                                               width, (size_t)host[r], 1.0 / s->counts[site]);
            }
        }
        s->ops->upload(s->dev, site, labels, host, n * sizeof *labels);
    }
    run_loss(s, is_square, reals, n, width, labels, z->at);
    tensor_check(s, z, 256 * (size_t)width, "dz"); /* p − 1 where p is nearly 1 keeps few digits */
    tensor_put(s, z);                              /* the same again: losses add up until they are taken */
    run_loss(s, is_square, reals, n, width, labels, z->at);
    for (uint32_t site = 0; site < s->sites; site++) {
        loss[site] *= 2;
    }
    check_loss(s, loss, width);
    check_loss(s, none, 1);
    s->ops->free(s->dev, labels);
}

static void parameters_case(struct suite *s, size_t count)
{
    suite_case(s, 4, "parameters, %zu of them", count);
    struct tensor *w = tensor_random(s, count, 1), *v = tensor_random(s, count, 1),
                  *u = tensor_random(s, count, 1);
    struct tensor *long_one = tensor_random(s, count, 8), *short_one = tensor_random(s, count, 0.01);
    s->ops->add(s->dev, count, w->at, v->at, 0.375f);
    s->ops->blend(s->dev, count, u->at, 0.875f, v->at, -2.0f);
    const double most = sqrt((double)count) * 0.5;
    s->ops->clip(s->dev, count, long_one->at, (float)most);
    s->ops->clip(s->dev, count, short_one->at, (float)most);
    for (uint32_t site = 0; site < s->sites; site++) {
        double squares = 0;
        for (size_t i = 0; i < count; i++) {
            squares += (double)long_one->host[site * count + i] * (double)long_one->host[site * count + i];
        }
        const bool idle = s->counts[site] == 0; /* it keeps its parameters */
        for (size_t i = site * count; i < (site + 1) * count; i++) {
            w->want[i] = (double)w->host[i] + (idle ? 0 : 0.375 * (double)v->host[i]);
            u->want[i] = idle ? (double)u->host[i] : 0.875 * (double)u->host[i] - 2 * (double)v->host[i];
            long_one->want[i] = (double)long_one->host[i] * fmin(1, (double)(float)most / sqrt(squares));
            short_one->want[i] = (double)short_one->host[i];
        }
    }
    tensor_check(s, w, 1, "add");
    tensor_check(s, u, 1, "blend");
    tensor_check(s, long_one, 1, "clip");
    tensor_check(s, short_one, 1, "nothing to clip");
}

void ops_table_rest(struct suite *s)
{
    static const size_t counts[] = {1, 255, 256, 257, 1031};
    philox_known(s);
    for (uint32_t i = 0; i < sizeof counts / sizeof *counts && !suite_failed(s); i++) {
        pointwise_case(s, KEDGE_OPS_RELU, counts[i]);
        pointwise_case(s, KEDGE_OPS_GELU, counts[i]);
        pointwise_case(s, KEDGE_OPS_TANH, counts[i]);
        dropout_case(s, i % 2 ? 0.25 : 0.5, i, counts[i]);
        parameters_case(s, counts[i]);
    }
    static const uint32_t losses[][2] = {{1, 2}, {10, 10}, {33, 62}, {5, 300}, {257, 3}, {64, 1}};
    for (uint32_t i = 0; i < sizeof losses / sizeof *losses && !suite_failed(s); i++) {
        loss_case(s, true, false, losses[i][0], losses[i][1]);
        loss_case(s, true, true, losses[i][0], 1);
        if (losses[i][1] > 1) {
            loss_case(s, false, false, losses[i][0], losses[i][1]);
        }
    }
}
