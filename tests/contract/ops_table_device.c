/* Memory, data sets, recordings. */
#include "tests/contract/ops_table.h"

#include <math.h>
#include <string.h>

#include "common/base/err.h"

static void memory_case(struct suite *s)
{
    enum { COUNT = 1000 };
    suite_case(s, 1, "memory");
    struct tensor *a = tensor_random(s, COUNT, 1), *b = tensor_random(s, COUNT, 1),
                  *c = tensor_random(s, COUNT, 1);
    float *fresh = s->ops->alloc(s->dev, 64 * sizeof *fresh), host[64];
    s->ops->copy(s->dev, b->at + 3, a->at + 5, 100 * sizeof *b->at);
    s->ops->clear(s->dev, c->at + 7, 11 * sizeof *c->at);
    for (size_t i = 0; i < s->sites * (size_t)COUNT; i++) {
        const size_t at = i % COUNT;
        a->want[i] = (double)a->host[i];
        b->want[i] = at >= 3 && at < 103 ? (double)a->host[i + 2] : (double)b->host[i];
        c->want[i] = at >= 7 && at < 18 ? 0 : (double)c->host[i];
    }
    tensor_check(s, a, 1, "what was uploaded");
    tensor_check(s, b, 1, "a copy");
    tensor_check(s, c, 1, "what was cleared");
    for (uint32_t site = 0; site < s->sites && fresh; site++) {
        if (s->ops->download(s->dev, site, host, fresh, sizeof host)) {
            suite_fail(s, "download failed");
        }
        for (size_t i = 0; i < 64; i++) {
            if (host[i] != 0.0f) {
                suite_fail(s, "a new block is not zero");
            }
        }
    }
    s->ops->free(s->dev, fresh);
}

enum { ROWS = 37, FEATURES = 19, STRIDE = 7, BATCH = 11, AT = 5 };

/* Rows overlap as those of a text do; bytes scaled, or reals. */
static void gather_case(struct suite *s, bool has_bytes)
{
    static uint8_t bytes[OPS_TABLE_SITES_MAX][ROWS * STRIDE + FEATURES];
    static float reals[OPS_TABLE_SITES_MAX][ROWS * STRIDE + FEATURES];
    static int32_t labels[OPS_TABLE_SITES_MAX][ROWS];
    struct kedge_ops_data_handle *handles[OPS_TABLE_SITES_MAX] = {0};
    suite_case(s, BATCH, "gather of %s", has_bytes ? "bytes" : "reals");
    struct tensor *x = tensor_empty(s, (size_t)BATCH * FEATURES), *y = tensor_empty(s, BATCH);
    uint32_t *order = s->ops->alloc(s->dev, ROWS * sizeof *order), host[ROWS];
    int32_t *picked = s->ops->alloc(s->dev, BATCH * sizeof *picked), got[BATCH];
    const struct kedge_ops_moment moment = {NULL, 0, AT, s->counts};
    if (!order || !picked) {
        suite_fail(s, "no memory");
        return;
    }
    for (uint32_t site = 0; site < s->sites; site++) {
        for (size_t i = 0; i < sizeof bytes[0]; i++) {
            bytes[site][i] = (uint8_t)kedge_rng_below(&s->rng, 256);
            reals[site][i] = (float)kedge_rng_unit(&s->rng);
        }
        for (uint32_t i = 0; i < ROWS; i++) {
            host[i] = (i * 5 + site * 3) % ROWS;
            labels[site][i] = (int32_t)kedge_rng_below(&s->rng, 1000);
        }
        const struct kedge_ops_data data = {.rows = ROWS,
                                            .features = FEATURES,
                                            .stride = STRIDE,
                                            .bytes = has_bytes ? bytes[site] : NULL,
                                            .reals = has_bytes ? NULL : reals[site],
                                            .scale = 0.0625f,
                                            .labels = labels[site]};
        handles[site] = s->ops->data_load(s->dev, site, &data);
        s->ops->upload(s->dev, site, order, host, sizeof host);
        if (!handles[site]) {
            suite_fail(s, "no memory");
            return;
        }
        for (size_t i = 0; i < (size_t)BATCH * FEATURES; i++) {
            const size_t row = ((AT + i / FEATURES) * 5 + site * 3) % ROWS, at = row * STRIDE + i % FEATURES;
            x->want[site * x->count + i] = has_bytes ? bytes[site][at] * 0.0625 : (double)reals[site][at];
        }
    }
    s->ops->moment(s->dev, &moment);
    s->ops->gather(s->dev, handles, order, BATCH, x->at, picked);
    tensor_check_rows(s, x, FEATURES, 1, "x");
    for (uint32_t site = 0; site < s->sites && !suite_failed(s); site++) {
        if (s->ops->download(s->dev, site, got, picked, sizeof got)) {
            suite_fail(s, "download failed");
        }
        for (uint32_t r = 0; r < s->counts[site]; r++) {
            if (got[r] != labels[site][((AT + r) * 5 + site * 3) % ROWS]) {
                suite_fail(s, "label %u of site %u", r, site);
            }
        }
        for (size_t i = s->counts[site] * (size_t)FEATURES; i < x->count; i++) {
            if (!isfinite(x->got[site * x->count + i])) {
                suite_fail(s, "a row that does not count is not finite");
            }
        }
    }
    (void)y;
    for (uint32_t site = 0; site < s->sites; site++) {
        s->ops->data_free(s->dev, handles[site]);
    }
    s->ops->free(s->dev, order);
    s->ops->free(s->dev, picked);
}

struct step_tensors {
    struct tensor *x, *w, *b, *z, *dropped;
    int32_t *labels;
};

/* A little step: dropout, so that the moment counts, a layer, a loss, the layer's step. */
static void little_step(struct suite *s, const struct step_tensors *t)
{
    static const struct kedge_ops_dense dense = {12, 5, false};
    static const struct kedge_ops_step sgd = {1, 1, -0.25f};
    s->ops->dropout_forward(s->dev, 0.5, 1, 6 * 12, t->x->at, t->dropped->at);
    s->ops->dense_forward(s->dev, &dense, 6, t->dropped->at, t->w->at, t->b->at, t->z->at);
    s->ops->cross_entropy(s->dev, 6, 5, t->labels, t->z->at);
    s->ops->dense_backward(s->dev, &dense, 6, t->dropped->at, t->z->at, t->z->at, t->w->at, NULL, &sgd,
                           t->w->at, t->b->at);
}

/* Three steps with moments of their own, plainly or the first recorded and the others replayed. */
static void three_steps(struct suite *s, const struct step_tensors *t, bool recorded)
{
    uint64_t seeds[OPS_TABLE_SITES_MAX];
    void *recording = NULL;
    for (uint32_t i = 0; i < OPS_TABLE_SITES_MAX; i++) {
        seeds[i] = 7 + i;
    }
    for (uint32_t step = 0; step < 3; step++) {
        const struct kedge_ops_moment moment = {seeds, step, 0, s->counts};
        s->ops->moment(s->dev, &moment);
        if (recording) {
            s->ops->replay(s->dev, recording);
        } else if (recorded && s->ops->record_begin) {
            s->ops->record_begin(s->dev);
            little_step(s, t);
            recording = s->ops->record_end(s->dev);
        } else {
            little_step(s, t);
        }
    }
    if (recording) {
        s->ops->record_free(s->dev, recording);
    }
}

static void record_case(struct suite *s)
{
    static const struct kedge_ops_layer layer = {
        .kind = KEDGE_OPS_DENSE, .width = 5, .as.dense = {12, 5, false}};
    static const int32_t labels[6] = {0, 4, 2, 2, 1, 3};
    double sums[2][OPS_TABLE_SITES_MAX] = {{0}};
    suite_case(s, 6, "recording");
    if (s->ops->prepare(s->dev, &layer, 1, 6)) {
        suite_fail(s, "cannot be prepared");
        return;
    }
    struct step_tensors t = {tensor_random(s, 72, 1), tensor_random(s, 60, 1),
                             tensor_random(s, 5, 1),  tensor_empty(s, 30),
                             tensor_empty(s, 72),     s->ops->alloc(s->dev, sizeof labels)};
    for (uint32_t site = 0; site < s->sites; site++) {
        s->ops->upload(s->dev, site, t.labels, labels, sizeof labels);
    }
    for (int recorded = 0; recorded < 2 && !suite_failed(s); recorded++) {
        tensor_put(s, t.w);
        tensor_put(s, t.b);
        three_steps(s, &t, recorded == 1);
        if (s->ops->take_loss(s->dev, sums[recorded])) {
            suite_fail(s, "a step failed");
        }
        for (uint32_t site = 0; site < s->sites; site++) {
            float got[60];
            if (s->ops->download(s->dev, site, got, t.w->at, sizeof got)) {
                suite_fail(s, "a step failed");
            }
            for (size_t i = 0; i < 60; i++) {
                double *want = &t.w->want[site * 60 + i];
                if (recorded && (float)*want != got[i]) {
                    suite_fail(s, "replayed steps do not give the bytes of plain ones: site %u, weight %zu",
                               site, i);
                }
                if (s->counts[site] > 0 && got[i] == t.w->host[site * 60 + i] && i % 12 == 0
                    && recorded == 2) {
                    suite_fail(s, "nothing was learnt");
                }
                *want = (double)got[i];
            }
        }
    }
    s->checks++;
    if (!suite_failed(s) && (memcmp(sums[0], sums[1], sizeof sums[0]) != 0 || !(sums[0][0] > 0))) {
        suite_fail(s, "losses of replayed steps: %.17g, of plain ones %.17g", sums[1][0], sums[0][0]);
    }
    s->ops->free(s->dev, t.labels);
}

void ops_table_device(struct suite *s)
{
    memory_case(s);
    gather_case(s, true);
    gather_case(s, false);
    record_case(s);
}
