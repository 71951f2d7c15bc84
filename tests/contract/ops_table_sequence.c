/* Embeddings, LSTMs, norms. */
#include "tests/contract/ops_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct kedge_ops_step plain = {0.75f, 0.875f, -0.5f};

static void embedding_case(struct suite *s, const struct kedge_ops_embedding *e, uint32_t n)
{
    suite_case(s, n, "embedding %u×%u of %u, %u wide", n, e->steps, e->tokens, e->width);
    const size_t places = (size_t)n * e->steps, width = e->width;
    struct tensor *x = tensor_random(s, places, 1), *w = tensor_random(s, e->tokens * width, 1);
    struct tensor *y = tensor_empty(s, places * width), *dy = tensor_random(s, places * width, 1);
    for (size_t i = 0; i < s->sites * places; i++) {
        x->host[i] = (float)kedge_rng_below(&s->rng, e->tokens);
    }
    tensor_put(s, x);
    tensor_mask(s, dy, e->steps * width);
    s->ops->embedding_forward(s->dev, e, n, x->at, w->at, y->at);
    s->ops->embedding_backward(s->dev, e, n, x->at, dy->at, &plain, w->at);
    for (size_t i = 0; i < s->sites * w->count; i++) {
        const bool keeps = s->counts[i / w->count] == 0;
        w->want[i] = (keeps ? 1 : (double)plain.keep) * (double)w->host[i];
    }
    for (size_t i = 0; i < s->sites * places * width; i++) {
        const size_t site = i / (places * width), token = (size_t)x->host[i / width];
        y->want[i] = (double)w->host[(site * e->tokens + token) * width + i % width];
        w->want[(site * e->tokens + token) * width + i % width] +=
            s->counts[site] > 0 ? (double)plain.by * (double)dy->host[i] : 0;
    }
    tensor_check(s, y, 1, "y");
    tensor_check(s, w, places + 1, "kernel");
}

/* ---- LSTM: one sample of one site at a time, in double ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

struct cell {
    const struct kedge_ops_lstm *l;
    const float *x, *p;      /* of the sample, of the site */
    double *i, *f, *g, *o;   /* [steps][hidden] */
    double *c, *h, *dh, *dc; /* [steps + 1][hidden], a step later */
    double *dx, *to;         /* sums of gradients */
};

static void cell_forward(const struct cell *v)
{
    const size_t hidden = v->l->hidden, in = v->l->in;
    const float *w_hh = v->p + 4 * hidden * in, *b = w_hh + 4 * hidden * hidden;
    for (size_t at = 0; at < v->l->steps * hidden; at++) {
        const size_t t = at / hidden, u = at % hidden;
        double sum[4];
        for (size_t g = 0; g < 4; g++) {
            const size_t row = g * hidden + u;
            sum[g] = (double)b[row] + (double)b[4 * hidden + row];
            for (size_t k = 0; k < in; k++) {
                sum[g] += (double)v->p[row * in + k] * (double)v->x[t * in + k];
            }
            for (size_t k = 0; k < hidden; k++) {
                sum[g] += (double)w_hh[row * hidden + k] * v->h[t * hidden + k];
            }
        }
        v->i[at] = sigmoid(sum[0]);
        v->f[at] = sigmoid(sum[1]);
        v->g[at] = tanh(sum[2]);
        v->o[at] = sigmoid(sum[3]);
        v->c[hidden + at] = v->f[at] * v->c[at] + v->i[at] * v->g[at];
        v->h[hidden + at] = v->o[at] * tanh(v->c[hidden + at]);
    }
}

/* dh[t + 1] holds what comes from y; steps backwards, one unit after the other. */
static void cell_back(const struct cell *v)
{
    const size_t hidden = v->l->hidden, in = v->l->in;
    const float *w_hh = v->p + 4 * hidden * in;
    double *to_hh = v->to + 4 * hidden * in, *to_b = to_hh + 4 * hidden * hidden;
    for (size_t at = v->l->steps * hidden; at-- > 0;) {
        const size_t t = at / hidden, u = at % hidden;
        const double through = tanh(v->c[hidden + at]), dh = v->dh[hidden + at];
        const double dc = v->dc[hidden + at] + dh * v->o[at] * (1 - through * through);
        const double d[4] = {
            dc * v->g[at] * v->i[at] * (1 - v->i[at]), dc * v->c[at] * v->f[at] * (1 - v->f[at]),
            dc * v->i[at] * (1 - v->g[at] * v->g[at]), dh * through * v->o[at] * (1 - v->o[at])};
        v->dc[at] += dc * v->f[at];
        for (size_t g = 0; g < 4; g++) {
            const size_t row = g * hidden + u;
            to_b[row] += d[g];
            to_b[4 * hidden + row] += d[g];
            for (size_t k = 0; k < in; k++) {
                v->to[row * in + k] += d[g] * (double)v->x[t * in + k];
                v->dx[t * in + k] += d[g] * (double)v->p[row * in + k];
            }
            for (size_t k = 0; k < hidden; k++) {
                to_hh[row * hidden + k] += d[g] * v->h[t * hidden + k];
                v->dh[t * hidden + k] += d[g] * (double)w_hh[row * hidden + k];
            }
        }
    }
}

struct lstm_tensors {
    struct tensor *x, *p, *y, *dy, *dx;
};

/* want of y, dx and the parameters, which are stepped. */
static void lstm_want(struct suite *s, const struct kedge_ops_lstm *l, size_t n, const struct lstm_tensors *t)
{
    const size_t hidden = l->hidden, all = l->steps * hidden, more = all + hidden;
    double *room = calloc(4 * all + 4 * more, sizeof *room), *to = calloc(t->p->count, sizeof *to);
    if (!room || !to) {
        abort();
    }
    for (size_t i = 0; i < s->sites * t->dx->count; i++) {
        t->dx->want[i] = 0;
    }
    for (size_t sample = 0; sample < s->sites * n; sample++) {
        const size_t site = sample / n, x = l->steps * l->in;
        const struct cell v = {l,
                               t->x->host + sample * x,
                               t->p->host + site * t->p->count,
                               room,
                               room + all,
                               room + 2 * all,
                               room + 3 * all,
                               room + 4 * all,
                               room + 4 * all + more,
                               room + 4 * all + 2 * more,
                               room + 4 * all + 3 * more,
                               t->dx->want + sample * x,
                               to};
        memset(room, 0, (4 * all + 4 * more) * sizeof *room);
        memset(to, 0, sample % n == 0 ? t->p->count * sizeof *to : 0);
        cell_forward(&v);
        for (size_t i = 0; i < (l->last ? hidden : all); i++) {
            const size_t from = (l->last ? all : hidden) + i, out = sample * (l->last ? hidden : all) + i;
            t->y->want[out] = v.h[from];
            v.dh[from] = (double)t->dy->host[out];
        }
        cell_back(&v);
        for (size_t i = 0; sample % n + 1 == n && i < t->p->count; i++) {
            const bool is_bias = i >= 4 * hidden * (l->in + hidden);
            const double old = (double)t->p->host[site * t->p->count + i];
            t->p->want[site * t->p->count + i] =
                s->counts[site] == 0
                    ? old
                    : (double)(is_bias ? plain.keep_bias : plain.keep) * old + (double)plain.by * to[i];
        }
    }
    free(room);
    free(to);
}

static void lstm_case(struct suite *s, const struct kedge_ops_lstm *l, uint32_t n, bool wants_dx)
{
    const size_t out = (size_t)(l->last ? 1 : l->steps) * l->hidden;
    const struct kedge_ops_layer layer = {.kind = KEDGE_OPS_LSTM, .width = out, .as.lstm = *l};
    suite_case(s, n, "lstm %u×%u×%u→%u%s", n, l->steps, l->in, l->hidden, l->last ? ", the last" : "");
    if (suite_failed(s) || s->ops->prepare(s->dev, &layer, 1, n)) {
        suite_fail(s, "cannot be prepared");
        return;
    }
    const struct lstm_tensors t = {tensor_random(s, (size_t)n * l->steps * l->in, 1),
                                   tensor_random(s, 4 * (size_t)l->hidden * (l->in + l->hidden + 2), 0.5),
                                   tensor_empty(s, n * out), tensor_random(s, n * out, 1),
                                   tensor_empty(s, (size_t)n * l->steps * l->in)};
    struct tensor *saved = tensor_empty(s, n * (size_t)kedge_ops_lstm_saved(l));
    tensor_mask(s, t.dy, out);
    lstm_want(s, l, n, &t);
    s->ops->lstm_forward(s->dev, l, n, t.x->at, t.p->at, t.y->at, saved->at);
    tensor_check(s, t.y, l->steps * (l->in + l->hidden), "y");
    s->ops->lstm_backward(s->dev, l, n, t.x->at, saved->at, t.dy->at, t.p->at, wants_dx ? t.dx->at : NULL,
                          &plain, t.p->at);
    if (wants_dx) {
        tensor_check_rows(s, t.dx, (size_t)l->steps * l->in, 4 * l->steps * (size_t)l->hidden, "dx");
    }
    tensor_check(s, t.p, (size_t)n * l->steps * 4 * l->hidden, "parameters");
}

/* ---- norms ---- */

struct norm_tensors {
    struct tensor *x, *scale, *shift, *y, *saved, *dy, *dx;
};

/* One run of one site: want of y and dx, and what it adds to those of scale and shift. */
static void norm_want(const struct kedge_ops_norm *m, const struct norm_tensors *t, size_t run, size_t site,
                      double by)
{
    const size_t channels = m->channels / m->groups, length = channels * m->spatial, at = run * length;
    const size_t first = site * m->channels + run % m->groups * channels;
    double mean = 0, variance = 0, sum = 0, along = 0;
    for (size_t i = 0; i < length; i++) {
        mean += (double)t->x->host[at + i] / (double)length;
    }
    for (size_t i = 0; i < length; i++) {
        const double off = (double)t->x->host[at + i] - mean;
        variance += off * off / (double)length;
    }
    const double inverse = 1 / sqrt(variance + 1e-5);
    for (size_t i = 0; i < length; i++) {
        const double place = ((double)t->x->host[at + i] - mean) * inverse;
        const size_t c = first + i / m->spatial;
        const double dy = (double)t->dy->host[at + i], g = dy * (double)t->scale->host[c];
        t->y->want[at + i] = place * (double)t->scale->host[c] + (double)t->shift->host[c];
        t->scale->want[c] += by * dy * place;
        t->shift->want[c] += by * dy;
        sum += g / (double)length;
        along += g * place / (double)length;
    }
    for (size_t i = 0; i < length; i++) {
        const double place = ((double)t->x->host[at + i] - mean) * inverse;
        const double g = (double)t->dy->host[at + i] * (double)t->scale->host[first + i / m->spatial];
        t->dx->want[at + i] = inverse * (g - sum - place * along);
    }
}

static void norm_case(struct suite *s, const struct kedge_ops_norm *m, uint32_t n)
{
    suite_case(s, n, "norm %u×%u×%u×%u in %u groups", n, m->rows, m->channels, m->spatial, m->groups);
    const size_t row = (size_t)m->rows * m->channels * m->spatial, runs = (size_t)n * m->rows * m->groups;
    const struct norm_tensors t = {tensor_random(s, n * row, 2),     tensor_random(s, m->channels, 1),
                                   tensor_random(s, m->channels, 1), tensor_empty(s, n * row),
                                   tensor_empty(s, 2 * runs),        tensor_random(s, n * row, 1),
                                   tensor_empty(s, n * row)};
    tensor_mask(s, t.dy, row);
    s->ops->norm_forward(s->dev, m, n, t.x->at, t.scale->at, t.shift->at, t.y->at, t.saved->at);
    s->ops->norm_backward(s->dev, m, n, t.x->at, t.saved->at, t.dy->at, t.scale->at, t.dx->at, &plain,
                          t.scale->at, t.shift->at);
    for (size_t i = 0; i < s->sites * (size_t)m->channels; i++) {
        const double keep = s->counts[i / m->channels] == 0 ? 1 : (double)plain.keep_bias;
        t.scale->want[i] = keep * (double)t.scale->host[i];
        t.shift->want[i] = keep * (double)t.shift->host[i];
    }
    for (size_t run = 0; run < s->sites * runs; run++) {
        norm_want(m, &t, run, run / runs, s->counts[run / runs] == 0 ? 0 : (double)plain.by);
    }
    const size_t terms = (size_t)m->channels * m->spatial;
    tensor_check(s, t.y, terms, "y");
    tensor_check_rows(s, t.dx, row, 16 * terms, "dx");
    tensor_check(s, t.scale, n * row, "scale");
    tensor_check(s, t.shift, n * row, "shift");
}

void ops_table_sequence(struct suite *s)
{
    const struct kedge_ops_embedding embeddings[] = {{1, 1, 1}, {80, 5, 8}, {7, 300, 3}, {300, 2, 257}};
    for (uint32_t i = 0; i < sizeof embeddings / sizeof *embeddings && !suite_failed(s); i++) {
        embedding_case(s, &embeddings[i], 1 + i);
    }
    const struct kedge_ops_lstm lstms[] = {{1, 1, 1, true},   {3, 5, 4, false}, {5, 8, 17, true},
                                           {4, 33, 9, false}, {2, 3, 33, true}, {1, 2, 3, false}};
    for (uint32_t i = 0; i < sizeof lstms / sizeof *lstms && !suite_failed(s); i++) {
        lstm_case(s, &lstms[i], i % 2 == 0 ? 1 + 8 * i : 3, i != 2);
    }
    const struct kedge_ops_norm norms[] = {
        {1, 1, 1, 1}, {1, 300, 1, 1}, {5, 7, 1, 1}, {1, 6, 10, 3}, {1, 8, 49, 8}};
    for (uint32_t i = 0; i < sizeof norms / sizeof *norms && !suite_failed(s); i++) {
        norm_case(s, &norms[i], 1 + 2 * i);
    }
}
