#include "tests/unit/aggregation/digests.h"

#include <pthread.h>
#include <string.h>

#include "aggregation/gram.h"
#include "aggregation/mean.h"
#include "aggregation/mixing.h"
#include "aggregation/norm.h"
#include "aggregation/quantise.h"
#include "aggregation/rule/rule.h"
#include "common/base/rng.h"
#include "grouping/flexcfl.h"
#include "strategy/server.h"
#include "tests/fixtures/whole_updates.h"

enum { SITES = 21, LENGTH = 5003, SCALE = 20, GROUPS = 3, LIMIT = 1 << 21 };

static int32_t values[SITES + 1][LENGTH]; /* the last is what a root update would be */
static uint64_t samples[SITES];
static float model[LENGTH], trained[LENGTH], models[GROUPS][LENGTH];

void digests_open(void)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 4, KEDGE_RNG_TEST, 0, 0);
    for (size_t k = 0; k <= SITES; k++) {
        for (size_t i = 0; i < LENGTH; i++) { /* a pattern of its group, and noise; some values alike */
            const int32_t own = (int32_t)(kedge_rng_u64(&rng) >> 45) - (1 << 18);
            const int32_t common =
                (int32_t)((i * 2654435761u + k % GROUPS * 40503u) >> 12 & 0xfffff) - (1 << 19);
            values[k][i] = (common + own) >> (i % 5 * 3);
        }
        if (k < SITES) {
            samples[k] = 1 + kedge_rng_below(&rng, 5000);
        }
    }
    memset(values[5], 0, sizeof values[5]); /* a site that has learnt nothing */
    for (size_t i = 0; i < LENGTH; i++) {
        model[i] = (float)(kedge_rng_unit(&rng) - 0.5);
        trained[i] = model[i] + (float)(kedge_rng_unit(&rng) - 0.5) * 0.25f;
        for (size_t g = 0; g < GROUPS; g++) {
            models[g][i] = (float)(kedge_rng_unit(&rng) - 0.5);
        }
    }
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t digest_of(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static const uint64_t start = UINT64_C(0xcbf29ce484222325);

/* ---- ranges, tiles and threads ---- */

typedef int range_fn(void *arg, unsigned thread, size_t first, size_t n);

struct share {
    range_fn *fn;
    void *arg;
    unsigned thread;
    size_t first, end, tile;
    int err;
};

static void *run_share(void *arg)
{
    struct share *s = arg;
    for (size_t at = s->first, n; at < s->end && !s->err; at += n) {
        n = s->end - at < s->tile ? s->end - at : s->tile;
        s->err = s->fn(s->arg, s->thread, at, n);
    }
    return NULL;
}

static int in_ranges(const struct digest_way *way, range_fn *fn, void *arg)
{
    struct share shares[DIGEST_THREADS_MAX];
    pthread_t threads[DIGEST_THREADS_MAX];
    int err = KEDGE_OK;
    for (unsigned t = 0; t < way->threads; t++) {
        shares[t] = (struct share){.fn = fn, .arg = arg, .thread = t, .tile = way->tile};
        shares[t].first = (size_t)LENGTH * t / way->threads;
        shares[t].end = (size_t)LENGTH * (t + 1) / way->threads;
        if (pthread_create(&threads[t], NULL, run_share, &shares[t]) != 0) {
            shares[t].err = KEDGE_E_NOMEM;
            threads[t] = pthread_self();
        }
    }
    for (unsigned t = 0; t < way->threads; t++) {
        if (!pthread_equal(threads[t], pthread_self())) {
            (void)pthread_join(threads[t], NULL);
        }
        if (!err) {
            err = shares[t].err;
        }
    }
    return err;
}

/* Who came as the i-th. */
static size_t arrived(const struct digest_way *way, size_t i)
{
    return (i + way->turn) % SITES;
}

/* ---- kernels ---- */

static int32_t quantised[LENGTH];

static int quantise_range(void *arg, unsigned thread, size_t first, size_t n)
{
    (void)arg, (void)thread;
    int err = kedge_quantise(model + first, trained + first, n, SCALE, 1.0, quantised + first, NULL);
    return err ? err : kedge_update_check(quantised + first, n, LIMIT, NULL);
}

static uint64_t make_quantise(const struct digest_way *way, size_t arg)
{
    (void)arg;
    return in_ranges(way, quantise_range, NULL) ? 0 : digest_of(start, quantised, sizeof quantised);
}

struct mean_job {
    struct kedge_mean_source sources[SITES];
    uint64_t sum;
    float out[LENGTH];
};

static int mean_range(void *arg, unsigned thread, size_t first, size_t n)
{
    struct mean_job *job = arg;
    (void)thread;
    return kedge_mean_tile(model, job->sources, SITES, first, n, SCALE, job->sum, job->out + first);
}

static uint64_t make_mean(const struct digest_way *way, size_t weight)
{
    static struct mean_job job;
    for (size_t i = 0; i < SITES; i++) {
        const size_t k = arrived(way, i);
        job.sources[i] = (struct kedge_mean_source){
            .values = values[k], .weight = samples[weight == 1 ? k : SITES - 1 - k] * weight};
    }
    return kedge_mean_weight_sum(job.sources, SITES, LIMIT, &job.sum) || in_ranges(way, mean_range, &job)
               ? 0
               : digest_of(start, job.out, sizeof job.out);
}

struct gram_job {
    const int32_t *vectors[SITES];
    uint32_t maxima[SITES];
    int64_t gram[DIGEST_THREADS_MAX][SITES * SITES];
    int16_t scratch[DIGEST_THREADS_MAX][40 * 1100];
    struct kedge_norm norm[DIGEST_THREADS_MAX];
};

static int gram_range(void *arg, unsigned thread, size_t first, size_t n)
{
    struct gram_job *job = arg;
    return kedge_gram_tile(job->vectors, job->maxima, SITES, first, n, job->scratch[thread],
                           job->gram[thread]);
}

/* The matrix of the sites in their own order, whatever the order in which they came. */
static int make_matrix(const struct digest_way *way, int64_t gram[SITES * SITES], uint32_t maxima[SITES])
{
    static struct gram_job job;
    memset(&job, 0, sizeof job);
    if (kedge_gram_scratch(SITES) > sizeof job.scratch[0] / sizeof(int16_t)) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < SITES; i++) {
        job.vectors[i] = values[arrived(way, i)];
        for (size_t at = 0, n; at < LENGTH; at += n) {
            n = LENGTH - at < way->tile ? LENGTH - at : way->tile;
            job.maxima[i] = kedge_max_abs(job.vectors[i] + at, n, job.maxima[i]);
        }
        maxima[arrived(way, i)] = job.maxima[i];
    }
    int err = in_ranges(way, gram_range, &job);
    for (size_t i = 0; i < SITES * SITES; i++) {
        int64_t sum = 0;
        for (unsigned t = 0; t < way->threads; t++) {
            sum += job.gram[t][i];
        }
        gram[arrived(way, i / SITES) * SITES + arrived(way, i % SITES)] = sum;
    }
    return err;
}

static uint64_t make_gram(const struct digest_way *way, size_t arg)
{
    int64_t gram[SITES * SITES];
    uint32_t maxima[SITES];
    (void)arg;
    int err = make_matrix(way, gram, maxima);
    return err ? 0 : digest_of(digest_of(start, gram, sizeof gram), maxima, sizeof maxima);
}

static uint64_t make_grouping(const struct digest_way *way, size_t edc)
{
    int64_t gram[SITES * SITES];
    uint32_t maxima[SITES], group[SITES];
    double eigenvalues[SITES], embedding[SITES * GROUPS];
    const struct kedge_flexcfl_params params = {.edc = (enum kedge_edc)edc, .groups = GROUPS, .seed = 7};
    struct kedge_flexcfl_result result = {.group = group, .eigenvalues = eigenvalues, .embedding = embedding};
    if (make_matrix(way, gram, maxima) || kedge_flexcfl_group_gram(gram, maxima, SITES, &params, &result)) {
        return 0;
    }
    uint64_t hash = digest_of(start, group, sizeof group);
    hash = digest_of(hash, eigenvalues, sizeof eigenvalues);
    return digest_of(hash, embedding, sizeof embedding);
}

static int norm_range(void *arg, unsigned thread, size_t first, size_t n)
{
    struct kedge_norm *norms = arg;
    kedge_norm_add(&norms[thread], values[3] + first, n);
    return KEDGE_OK;
}

static uint64_t make_norm(const struct digest_way *way, size_t arg)
{
    struct kedge_norm norms[DIGEST_THREADS_MAX] = {{0, 0}};
    (void)arg;
    int err = in_ranges(way, norm_range, norms);
    for (unsigned t = 1; t < way->threads; t++) {
        kedge_norm_join(&norms[0], &norms[t]);
    }
    const double value = kedge_norm_value(&norms[0]);
    return err ? 0 : digest_of(start, &value, sizeof value);
}

static int32_t direction[LENGTH];

static int direction_range(void *arg, unsigned thread, size_t first, size_t n)
{
    (void)thread;
    return kedge_direction_tile((const int32_t *const *)arg, SITES, first, n, direction + first);
}

static uint64_t make_direction(const struct digest_way *way, size_t arg)
{
    const int32_t *members[SITES];
    (void)arg;
    for (size_t i = 0; i < SITES; i++) {
        members[i] = values[arrived(way, i)];
    }
    return in_ranges(way, direction_range, members) ? 0 : digest_of(start, direction, sizeof direction);
}

static float mixed[GROUPS][LENGTH];
static const float *const groups_models[GROUPS] = {models[0], models[1], models[2]};

static int mixing_range(void *arg, unsigned thread, size_t first, size_t n)
{
    float *const out[GROUPS] = {mixed[0] + first, mixed[1] + first, mixed[2] + first};
    (void)thread;
    kedge_mixing_tile(arg, groups_models, first, n, out);
    return KEDGE_OK;
}

static uint64_t make_mixing(const struct digest_way *way, size_t arg)
{
    static const bool all[GROUPS] = {true, true, true};
    struct kedge_mixing mixing;
    double norms[GROUPS];
    (void)arg;
    for (size_t g = 0; g < GROUPS; g++) { /* norms come in tiles of whole blocks */
        const size_t want = way->tile < LENGTH ? way->tile : LENGTH;
        const size_t tile = (want / KEDGE_REDUCE_BLOCK + 1) * KEDGE_REDUCE_BLOCK;
        struct kedge_reduce reduce;
        kedge_reduce_init(&reduce);
        for (size_t at = 0; at < LENGTH; at += tile) {
            kedge_sumsq_push(&reduce, models[g] + at, LENGTH - at < tile ? LENGTH - at : tile);
        }
        norms[g] = kedge_mixing_norm(&reduce);
    }
    return kedge_mixing_init(&mixing, norms, all, GROUPS, 0.01) || in_ranges(way, mixing_range, &mixing)
               ? 0
               : digest_of(start, mixed, sizeof mixed);
}

struct server_job {
    enum kedge_server server;
    float state[KEDGE_SERVER_STATES_MAX][LENGTH], after[LENGTH];
};

static int server_range(void *arg, unsigned thread, size_t first, size_t n)
{
    static const struct kedge_strategy_options options = {
        .server_lr = 0.1, .momentum = 0.9, .second_moment = 0.99, .adaptivity = 0.001};
    struct server_job *job = arg;
    (void)thread;
    float *const state[] = {job->state[0] + first, job->state[1] + first};
    return kedge_server_step(job->server, &options, model + first, trained + first, state, n,
                             job->after + first);
}

/* Two steps, so that the states count. */
static uint64_t make_server(const struct digest_way *way, size_t server)
{
    static struct server_job job;
    memset(&job, 0, sizeof job);
    job.server = (enum kedge_server)server;
    for (int step = 0; step < 2; step++) {
        if (in_ranges(way, server_range, &job)) {
            return 0;
        }
    }
    return digest_of(start, &job.state, sizeof job.state + sizeof job.after);
}

struct rule_job {
    const struct kedge_rule *rule;
    const struct kedge_rule_params *params;
    struct mean_job mean; /* in the order in which updates came */
    const int32_t *vectors[SITES];
    uint64_t weight[SITES];
};

static int rule_range(void *arg, unsigned thread, size_t first, size_t n)
{
    struct rule_job *job = arg;
    if (job->rule->kind != KEDGE_RULE_COORDINATE) {
        return mean_range(&job->mean, thread, first, n);
    }
    return kedge_rule_tile(job->rule, job->params, model, job->vectors, job->weight, SITES, first, n, SCALE,
                           job->mean.out + first);
}

/* Rule `at` of the table: weights from the sites in their own order, vectors as they came. */
static uint64_t make_rule(const struct digest_way *way, size_t at)
{
    static int64_t gram[(SITES + 1) * (SITES + 1)];
    static struct rule_job job;
    const struct kedge_rule *rule = kedge_rule_at(at);
    const struct kedge_rule_params params = {.fraction = 0.1, .bound = rule->defaults.bound};
    const int32_t *vectors[SITES + 1];
    uint64_t base[SITES], weight[SITES], divisor = 0;
    double norm_sq[SITES + 1];
    uint32_t maxima[SITES + 1];
    for (size_t k = 0; k <= SITES; k++) {
        vectors[k] = values[k];
        divisor += k < SITES ? samples[k] : 0;
    }
    kedge_rule_base(rule, samples, SITES, base);
    job.rule = kedge_rule_effective(rule, &params, base, SITES);
    job.params = &params;
    if (measure_of(job.rule, vectors, SITES + (job.rule->needs_root ? 1 : 0), LENGTH, norm_sq, maxima,
                   gram)) {
        return 0;
    }
    const struct kedge_rule_inputs inputs = {.count = SITES,
                                             .weight = base,
                                             .divisor = divisor,
                                             .scale_bits = SCALE,
                                             .norm_sq = norm_sq,
                                             .gram = gram,
                                             .maxima = maxima,
                                             .has_root = job.rule->needs_root};
    if (kedge_rule_weigh(job.rule, &params, &inputs, weight, &job.mean.sum)) {
        return 0;
    }
    for (size_t i = 0; i < SITES; i++) {
        const size_t k = arrived(way, i);
        job.vectors[i] = values[k];
        job.weight[i] = weight[k];
        job.mean.sources[i] = (struct kedge_mean_source){.values = values[k], .weight = weight[k]};
    }
    return in_ranges(way, rule_range, &job)
               ? 0
               : digest_of(digest_of(start, weight, sizeof weight), job.mean.out, sizeof job.mean.out);
}

const struct digest digests[] = {
    {"quantise", make_quantise, 0, UINT64_C(0xfbc8da7ddb3589fb)},
    {"mean", make_mean, 1, UINT64_C(0x60259e4bdf1979b3)},
    {"mean, wide weights", make_mean, UINT64_C(1) << 22, UINT64_C(0x9d8ab341650b11c5)},
    {"gram", make_gram, 0, UINT64_C(0xd868eb8005e40564)},
    {"norm", make_norm, 0, UINT64_C(0xd2ccbfa667c4f32a)},
    {"grouping, cosines", make_grouping, KEDGE_EDC_UNIT, UINT64_C(0xff03d0acdf322ded)},
    {"grouping, plain", make_grouping, KEDGE_EDC_PLAIN, UINT64_C(0x82847d674305ecbd)},
    {"grouping, madc", make_grouping, KEDGE_EDC_MADC, UINT64_C(0x674120b698cf1120)},
    {"direction", make_direction, 0, UINT64_C(0xb8233f8672a7d119)},
    {"mixing", make_mixing, 0, UINT64_C(0x47b94d8c6c40ea0e)},
    {"server momentum", make_server, KEDGE_SERVER_MOMENTUM, UINT64_C(0x66bbe0761c367322)},
    {"server adagrad", make_server, KEDGE_SERVER_ADAGRAD, UINT64_C(0xc1e30ee8220b7a94)},
    {"server yogi", make_server, KEDGE_SERVER_YOGI, UINT64_C(0x7a6213126bae228b)},
    {"server adam", make_server, KEDGE_SERVER_ADAM, UINT64_C(0xa3b17fbec178fc19)},
    {"rule mean", make_rule, 0, UINT64_C(0xbf73e0d98c6ef6f1)},
    {"rule median", make_rule, 1, UINT64_C(0x1908c0a854483063)},
    {"rule trimmed-mean", make_rule, 2, UINT64_C(0xb89db0983481b97e)},
    {"rule krum", make_rule, 3, UINT64_C(0x8eb77a49152223f7)},
    {"rule multi-krum", make_rule, 4, UINT64_C(0x488775a18381f1d4)},
    {"rule bulyan", make_rule, 5, UINT64_C(0x2936a2e5f0878eb9)},
    {"rule geometric-median", make_rule, 6, UINT64_C(0x552140416749592f)},
    {"rule norm-clipping", make_rule, 7, UINT64_C(0x78b6d25a8f3dfd7c)},
    {"rule root-trust", make_rule, 8, UINT64_C(0x2af682117b75dac2)},
};
const size_t digests_count = sizeof digests / sizeof digests[0];
