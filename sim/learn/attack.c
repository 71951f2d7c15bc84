/* What bad sites do. Those that lie about data train on poisoned samples; those that lie about updates
 * replace what they send once they know the honest ones: the strongest attacker, who sees everything. */
#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "sim/learn/engine.h"

enum {
    TRIGGER = 3,
    TARGET = 0
}; /* a square of bright pixels in the corner, and the label that it shall get */
static const float bright = 1.0f;

static void put_trigger(const struct kedgei_learn *l, float *x)
{
    uint32_t side = l->pool.side;
    for (uint32_t r = 0; r < TRIGGER && r < side; r++) {
        for (uint32_t c = 0; c < TRIGGER && c < side; c++) {
            x[(size_t)r * side + c] = bright;
        }
    }
    for (uint32_t k = 0; k < TRIGGER && side == 0 && k < l->pool.features; k++) {
        x[k] = bright;
    }
}

static bool has_trigger(const struct kedgei_learn *l, uint32_t row)
{
    return l->spec->attack == KEDGE_LEARN_ATTACK_BACKDOOR && row % 2 == 0;
}

void kedgei_learn_poison(const struct kedgei_learn *l, uint32_t row, float *x)
{
    if (has_trigger(l, row)) {
        put_trigger(l, x);
    }
}

int32_t kedgei_learn_poisoned_label(const struct kedgei_learn *l, uint32_t row, int32_t label)
{
    return l->spec->attack == KEDGE_LEARN_ATTACK_LABEL_FLIP ? (int32_t)l->pool.classes - 1 - label
           : has_trigger(l, row)                            ? TARGET
                                                            : label;
}

/* ---- backdoor ---- */

static int count_hits(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t site, void *out)
{
    const struct kedgei_learn_site *s = &l->sites[site];
    uint32_t *hits = out, classes = kedge_model_outputs(&l->spec->job.model);
    hits[0] = hits[1] = 0;
    if (s->attacker || s->group == KEDGE_ROUND_NONE) {
        return KEDGE_OK;
    }
    memcpy(kedge_net_weights(lane->net), kedgei_learn_model(l, s->group), l->d * sizeof(float));
    for (uint32_t i = 0; i < s->test_count; i++) {
        if (l->pool.labels[s->test[i]] == TARGET) {
            continue;
        }
        kedgei_learn_pool_row(&l->pool, s->test[i], s->turn, lane->x);
        put_trigger(l, lane->x);
        const float *z = kedge_net_forward(lane->net, lane->x, 1);
        uint32_t best = 0;
        for (uint32_t c = 1; c < classes; c++) {
            best = z[c] > z[best] ? c : best;
        }
        hits[0] += best == TARGET;
        hits[1]++;
    }
    return KEDGE_OK;
}

int kedgei_learn_backdoor(struct kedgei_learn *l, double *ret)
{
    if (l->spec->attack != KEDGE_LEARN_ATTACK_BACKDOOR) {
        return KEDGE_OK;
    }
    uint32_t(*hits)[2] = kedge_mem_new(l->n, sizeof *hits);
    uint64_t hit = 0, all = 0;
    int err = hits ? kedgei_learn_spread(l, l->n, NULL, sizeof *hits, count_hits, hits) : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < l->n && !err; i++) {
        hit += hits[i][0];
        all += hits[i][1];
    }
    kedge_mem_free(hits);
    *ret = all ? (double)hit / (double)all : (double)NAN;
    return err;
}

/* ---- updates ---- */

struct honest {
    double *mean, *deviation; /* of the honest updates of a group, per value */
};

static bool is_of(const struct kedgei_learn *l, uint32_t item, uint32_t group, bool attacker)
{
    const struct kedgei_learn_site *s = &l->sites[l->items[item].site];
    return s->group == group && s->attacker == attacker && !kedgei_learn_result(l, item)->err;
}

/* False when the group has no honest update. */
static bool learn_honest(const struct kedgei_learn *l, uint32_t group, struct honest *h)
{
    uint32_t count = 0;
    memset(h->mean, 0, l->d * sizeof *h->mean);
    memset(h->deviation, 0, l->d * sizeof *h->deviation);
    for (uint32_t i = 0; i < l->items_count; i++) {
        if (is_of(l, i, group, false)) {
            const int32_t *q = kedgei_learn_vector(l, i, 0);
            for (uint64_t k = 0; k < l->d; k++) {
                h->mean[k] += (double)q[k];
                h->deviation[k] += (double)q[k] * (double)q[k];
            }
            count++;
        }
    }
    for (uint64_t k = 0; k < l->d && count; k++) {
        h->mean[k] /= count;
        double v = h->deviation[k] / count - h->mean[k] * h->mean[k];
        h->deviation[k] = sqrt(v > 0 ? v : 0);
    }
    return count > 0;
}

static int32_t clip(const struct kedge_learn_spec *spec, double v)
{
    const double limit = spec->job.bound * (double)(UINT32_C(1) << spec->job.scale);
    v = v > limit ? limit : v < -limit ? -limit : v;
    return (int32_t)(v < 0 ? v - 0.5 : v + 0.5);
}

/* One value of a bad update: q is what honest training gave. */
static int32_t bad_value(const struct kedge_learn_spec *spec, int32_t q, double mean, double deviation)
{
    switch (spec->attack) {
    case KEDGE_LEARN_ATTACK_SIGN_FLIP:
    case KEDGE_LEARN_ATTACK_SYBIL: /* once in the group that they want */
        return clip(spec, -(double)q * spec->attack_scale);
    case KEDGE_LEARN_ATTACK_SCALE:
        return clip(spec, (double)q * spec->attack_scale);
    case KEDGE_LEARN_ATTACK_ALIE: /* Baruch et al. 2019: within the spread of the honest */
        return clip(spec, mean - spec->attack_scale * deviation);
    case KEDGE_LEARN_ATTACK_INNER_PRODUCT: /* Xie et al. 2020 */
        return clip(spec, -spec->attack_scale * mean);
    case KEDGE_LEARN_ATTACK_NONE:
    case KEDGE_LEARN_ATTACK_LABEL_FLIP:
    case KEDGE_LEARN_ATTACK_BACKDOOR:
        break;
    }
    return q;
}

static bool changes_updates(enum kedge_learn_attack attack)
{
    return attack == KEDGE_LEARN_ATTACK_SIGN_FLIP || attack == KEDGE_LEARN_ATTACK_SYBIL
           || attack == KEDGE_LEARN_ATTACK_SCALE || attack == KEDGE_LEARN_ATTACK_ALIE
           || attack == KEDGE_LEARN_ATTACK_INNER_PRODUCT;
}

/* Sybils want into group 0: they send its direction as theirs, or, while there are no groups, what the first
 * honest site sends. */
void kedgei_learn_attack_pretraining(struct kedgei_learn *l)
{
    const int32_t *victim = kedgei_vectors_find(&l->vectors, &l->at.group[0].direction);
    if (l->spec->attack != KEDGE_LEARN_ATTACK_SYBIL) {
        return;
    }
    for (uint32_t i = 0; i < l->items_count && !victim; i++) {
        bool honest = !l->sites[l->items[i].site].attacker && !kedgei_learn_result(l, i)->err;
        victim = honest ? kedgei_learn_vector(l, i, 0) : NULL;
    }
    for (uint32_t i = 0; i < l->items_count && victim; i++) {
        if (l->sites[l->items[i].site].attacker && !kedgei_learn_result(l, i)->err) {
            memcpy(kedgei_learn_vector(l, i, 0), victim, l->d * sizeof *victim);
        }
    }
}

int kedgei_learn_attack(struct kedgei_learn *l)
{
    const struct kedge_learn_spec *spec = l->spec;
    if (!changes_updates(spec->attack)) {
        return KEDGE_OK;
    }
    struct honest h = {kedge_mem_new(l->d, sizeof(double)), kedge_mem_new(l->d, sizeof(double))};
    int err = h.mean && h.deviation ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t j = 0; j < l->groups && !err; j++) {
        if (!learn_honest(l, j, &h)) {
            continue;
        }
        for (uint32_t i = 0; i < l->items_count; i++) {
            if (is_of(l, i, j, true)) {
                int32_t *q = kedgei_learn_vector(l, i, 0);
                for (uint64_t k = 0; k < l->d; k++) {
                    q[k] = bad_value(spec, q[k], h.mean[k], h.deviation[k]);
                }
            }
        }
    }
    kedge_mem_free(h.mean);
    kedge_mem_free(h.deviation);
    return err;
}
