/* Synthetic(alpha, beta) of Li et al. 2020 (FedProx). Each site draws a linear model and labels its own
 * inputs by it, so alpha is how far sites' models are apart and beta how far their inputs are: the two skews
 * of federated data, each with one number. */
#include <math.h>

#include "common/base/mem.h"
#include "sim/partition/deal.h"
#include "sim/partition/draw.h"

enum { FEATURES = KEDGE_SYNTHETIC_FEATURES, CLASSES = KEDGE_RECIPE_CLASSES, SITE_SAMPLES_MAX = 1000000 };

/* A site's random linear model and where its inputs lie. */
struct site {
    double w[FEATURES][CLASSES], b[CLASSES], v[FEATURES];
};

void kedge_synthetic_deinit(struct kedge_synthetic *s)
{
    kedge_mem_free(s->x);
    kedge_mem_free(s->labels);
    kedge_partition_deinit(&s->partition);
    *s = (struct kedge_synthetic){0};
}

static void draw_site(struct kedge_draw *draw, double alpha, double beta, struct site *site)
{
    double u = sqrt(alpha) * kedge_draw_normal(draw), centre = sqrt(beta) * kedge_draw_normal(draw);
    for (uint32_t j = 0; j < FEATURES; j++) {
        site->v[j] = centre + kedge_draw_normal(draw);
    }
    for (uint32_t j = 0; j < FEATURES; j++) {
        for (uint32_t k = 0; k < CLASSES; k++) {
            site->w[j][k] = u + kedge_draw_normal(draw);
        }
    }
    for (uint32_t k = 0; k < CLASSES; k++) {
        site->b[k] = u + kedge_draw_normal(draw);
    }
}

static int32_t draw_sample(struct kedge_draw *draw, const struct site *site, const double deviation[FEATURES],
                           float x[FEATURES])
{
    double z[CLASSES];
    int32_t best = 0;
    for (uint32_t k = 0; k < CLASSES; k++) {
        z[k] = site->b[k];
    }
    for (uint32_t j = 0; j < FEATURES; j++) {
        double value = site->v[j] + deviation[j] * kedge_draw_normal(draw);
        x[j] = (float)value;
        for (uint32_t k = 0; k < CLASSES; k++) {
            z[k] += value * site->w[j][k];
        }
    }
    for (int32_t k = 1; k < CLASSES; k++) {
        best = z[k] > z[best] ? k : best;
    }
    return best;
}

static int fill(struct kedge_synthetic *s, struct kedgei_deal *deal, const uint32_t *sizes, double alpha,
                double beta, uint64_t seed, struct kedge_diag *reterr)
{
    double deviation[FEATURES]; /* of inputs: the variance of feature j is j^−1.2 */
    uint32_t at = 0;
    int err = KEDGE_OK;
    for (uint32_t j = 0; j < FEATURES; j++) {
        deviation[j] = sqrt(pow((double)j + 1, -1.2));
    }
    for (uint32_t u = 0; u < deal->sites_max && !err; u++) {
        struct kedge_draw draw;
        struct site site;
        kedge_draw_init(&draw, seed, KEDGE_RNG_PARTITION, KEDGEI_STREAM_FEATURES, u);
        draw_site(&draw, alpha, beta, &site);
        for (uint32_t i = 0; i < sizes[u] && !err; i++, at++) {
            s->labels[at] = draw_sample(&draw, &site, deviation, s->x + (size_t)at * FEATURES);
            err = kedgei_deal_row(deal, at);
        }
        if (!err) {
            err = kedgei_deal_split(deal, 0.9, seed, reterr);
        }
    }
    return err;
}

int kedge_recipe_synthetic(uint32_t sites, double alpha, double beta, uint64_t seed,
                           struct kedge_synthetic *ret, struct kedge_diag *reterr)
{
    struct kedge_synthetic s = {0};
    struct kedgei_deal deal = {0};
    struct kedge_pool_labels none = {0};
    struct kedge_draw draw;
    uint64_t total = 0;
    if (!(alpha >= 0) || !(beta >= 0) || !isfinite(alpha) || !isfinite(beta)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "partition: Synthetic(%g, %g), expected numbers from 0",
                              alpha, beta);
    }
    int err = kedgei_deal_init(&deal, &none, sites, reterr);
    uint32_t *sizes = err ? NULL : kedge_mem_new(sites, sizeof *sizes);
    if (!err && !sizes) {
        err = KEDGE_E_NOMEM;
    }
    kedge_draw_init(&draw, seed, KEDGE_RNG_PARTITION, KEDGEI_STREAM_SIZES, 0);
    for (uint32_t u = 0; u < sites && !err; u++) {
        double size = floor(kedge_draw_lognormal(&draw, 4.0, 2.0)) + 50.0;
        sizes[u] = size < SITE_SAMPLES_MAX ? (uint32_t)size : SITE_SAMPLES_MAX;
        total += sizes[u];
    }
    if (!err && total > UINT32_MAX / 2) {
        err = kedge_diag_set(reterr, KEDGE_E_ARG, "partition: too many samples for %u sites", sites);
    }
    s.n = err ? 0 : (uint32_t)total;
    s.x = kedge_mem_new(s.n ? s.n : 1, FEATURES * sizeof *s.x);
    s.labels = kedge_mem_new(s.n ? s.n : 1, sizeof *s.labels);
    if (!err) {
        err = s.x && s.labels ? fill(&s, &deal, sizes, alpha, beta, seed, reterr) : KEDGE_E_NOMEM;
    }
    kedge_mem_free(sizes);
    err = kedgei_deal_end(&deal, err, &s.partition);
    if (err) {
        kedge_synthetic_deinit(&s);
        return err;
    }
    *ret = s;
    return KEDGE_OK;
}
