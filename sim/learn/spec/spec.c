#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/learn/engine.h"

enum { TENANTS_MAX = KEDGE_TENANTS_MAX / 2 }; /* a cap on shares takes so many (aggregation/share_cap.h) */

void kedge_learn_spec_default(struct kedge_learn_spec *ret)
{
    *ret = (struct kedge_learn_spec){
        .name = "simulation",
        .seed = 1,
        .images = "data/mnist",
        .partition = KEDGE_LEARN_MNIST,
        .sites = 1000,
        .alpha = 1,
        .beta = 1,
        .per_site = 2,
        .rounds = 300,
        .sites_per_round = 20,
        .epochs = 10,
        .batch = 10,
        .lr = 0.03,
        .l2 = 0.001,
        .strategy = kedge_strategy_find("fedavg"),
        .groups = 3,
        .pretrain_steps = 50,
        .pretrain_sites = KEDGE_LEARN_UNSAID,
        .detector = KEDGE_LEARN_DETECT_LABELS,
        .rule = "mean",
        .tenant_share_max = 1,
        .tenants = 1,
        .compression_share = 0.01,
        .compression_carry = 1,
        .shift_rate = 0.05,
        .attack_scale = 10,
        .device_count = 1,
        .devices = {{.share = 1,
                     .samples_per_s = 1000,
                     .bytes_per_s = 1e6,
                     .joules_per_sample = 0.01,
                     .joules_per_s = 1,
                     .available = 1}},
        .evaluate_every = 1,
    };
    ret->options = ret->strategy->defaults;
    int err = kedge_model_mclr(784, 10, &ret->model, NULL);
    KEDGE_ASSERT(!err);
}

struct number {
    const char *name;
    double value, least, largest;
};

static int check_numbers(const struct number *n, size_t count, struct kedge_diag *reterr)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(n[i].value) || n[i].value < n[i].least || n[i].value > n[i].largest) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: %g, expected %g to %g", n[i].name, n[i].value,
                                  n[i].least, n[i].largest);
        }
    }
    return KEDGE_OK;
}

static int check_devices(const struct kedge_learn_spec *s, struct kedge_diag *reterr)
{
    if (s->device_count < 1 || s->device_count > KEDGE_LEARN_DEVICES_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "devices: %u classes, expected 1 to %d",
                              s->device_count, KEDGE_LEARN_DEVICES_MAX);
    }
    for (uint32_t k = 0; k < s->device_count; k++) {
        const struct kedge_learn_device *d = &s->devices[k];
        const struct number n[] = {
            {"devices: share", d->share, 1e-9, 1e9},
            {"devices: samples_per_s", d->samples_per_s, 1e-9, 1e15},
            {"devices: bytes_per_s", d->bytes_per_s, 1e-9, 1e15},
            {"devices: joules_per_sample", d->joules_per_sample, 0, 1e9},
            {"devices: joules_per_s", d->joules_per_s, 0, 1e9},
            {"devices: available", d->available, 1e-6, 1},
        };
        int err = check_numbers(n, sizeof n / sizeof n[0], reterr);
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

static int check_fit(const struct kedge_learn_spec *s, struct kedge_diag *reterr)
{
    bool grouped = s->strategy->grouping != KEDGE_GROUPING_KIND_NONE;
    if (s->sites_per_round > s->sites && !kedge_learn_spec_is_natural(s)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "sites_per_round: %u of %u sites", s->sites_per_round,
                              s->sites);
    }
    if (s->partition == KEDGE_LEARN_FASHION && s->sites != KEDGE_FASHION_SITES) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "sites: %u, but this partition has %d", s->sites,
                              KEDGE_FASHION_SITES);
    }
    if (s->tenants > s->sites && !kedge_learn_spec_is_natural(s)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "tenants: %u of %u sites", s->tenants, s->sites);
    }
    if (s->strategy->grouping == KEDGE_GROUPING_KIND_EDGE
        && (s->tenants < 2 || s->tenants > KEDGE_LEARN_GROUPS_MAX)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "tenants: %u, but %s has an edge per tenant: expected 2 to %d", s->tenants,
                              s->strategy->name, KEDGE_LEARN_GROUPS_MAX);
    }
    if (s->mixing > 0 && !grouped) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "mixing: %g, but %s has no groups to mix", s->mixing,
                              s->strategy->name);
    }
    if (s->attack == KEDGE_LEARN_ATTACK_NONE ? s->attackers > 0 : s->attackers <= 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "attack: share %g does not go with this kind",
                              s->attackers);
    }
    if (s->train_on != KEDGE_LEARN_ON_CPU && s->through == KEDGE_LEARN_THROUGH_PROTOCOL) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "train_on: through the protocol each site trains by itself, on the processor");
    }
    if (s->trace_period_s > 0 && !s->trace[0]) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "trace_period_s: %g, but there is no trace",
                              s->trace_period_s);
    }
    if (s->options.silhouette < 1 && s->through != KEDGE_LEARN_THROUGH_PROTOCOL) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "silhouette: %g, but groups are cut in two through the protocol only: \"through\": "
            "\"protocol\"",
            s->options.silhouette);
    }
    if (s->strategy->asynchronous && s->options.buffer > s->sites_per_round) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "buffer: %g updates, but only %u sites work at a time",
                              s->options.buffer, s->sites_per_round);
    }
    return KEDGE_OK;
}

/* Data that change by steps change by nothing else, and jobs know of no steps. */
static int check_steps(const struct kedge_learn_spec *s, struct kedge_diag *reterr)
{
    const uint32_t count = s->steps.count;
    if (s->partition == KEDGE_LEARN_CLIENTS && s->synthetic_updates) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "planted: not with the partition clients, whose data nothing would read");
    }
    if (s->standardize == KEDGE_LEARN_STANDARDIZE_FEDERATED && s->through != KEDGE_LEARN_THROUGH_ROUNDS) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "standardize: \"federated\" takes a job's first two rounds, which are not simulated; "
            "expected \"local\" or \"none\", or \"through\": \"rounds\"");
    }
    if (count == 0) {
        return KEDGE_OK;
    }
    if (s->standardize != KEDGE_LEARN_AS_IT_IS || s->missing == KEDGE_CSV_MISSING_MEAN) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "steps: not with %s: what a site scales and fills by would change within its data",
            s->missing == KEDGE_CSV_MISSING_MEAN ? "\"missing\": \"mean\"" : "\"standardize\"");
    }
    if (count > KEDGE_LEARN_STEPS_MAX || s->steps.at[count - 1] >= s->rounds) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "steps: one begins in round %u, but there are %u rounds",
                              s->steps.at[count - 1], s->rounds);
    }
    if (s->shift != KEDGE_LEARN_SHIFT_NONE) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "steps: not with a shift of the world: the data change by their files");
    }
    if (s->through == KEDGE_LEARN_THROUGH_PROTOCOL) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "steps: not through the protocol");
    }
    return KEDGE_OK;
}

/* What jobs refuse too (job/job_spec_compression.c), and attackers, who would have to make compact updates.
 */
static int check_compression(const struct kedge_learn_spec *s, struct kedge_diag *reterr)
{
    const char *why = kedge_strategy_refuses_compact(s->strategy, kedge_compact_is_sparse(s->compression),
                                                     kedge_rule_find(s->rule)->kind == KEDGE_RULE_MEAN);
    if (s->compression == KEDGE_COMPACT_NONE) {
        return KEDGE_OK;
    }
    why = !why
                  && (s->attack != KEDGE_LEARN_ATTACK_NONE
                      || (s->synthetic_updates && s->through != KEDGE_LEARN_THROUGH_PROTOCOL))
              ? "attacks and planted updates are made of whole updates"
              : why;
    return why ? kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                "compression: not with strategy \"%s\", rule \"%s\": %s", s->strategy->name,
                                s->rule, why)
               : KEDGE_OK;
}

int kedge_learn_spec_check(const struct kedge_learn_spec *s, struct kedge_diag *reterr)
{
    if (!s->strategy) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "strategy: none given");
    }
    const struct number n[] = {
        {"sites", s->sites, kedge_learn_spec_is_natural(s) ? 0 : 2, KEDGE_LEARN_SITES_MAX},
        {"alpha", s->alpha, s->partition == KEDGE_LEARN_DIRICHLET ? 1e-4 : 0, 1e6},
        {"beta", s->beta, 0, 1e6},
        {"per_site", s->per_site, 1, 1000},
        {"rounds", s->rounds, 1, 1000000},
        {"sites_per_round", s->sites_per_round, 1, KEDGE_SITES_MAX},
        {"epochs", s->epochs, 1, 10000},
        {"batch", s->batch, 1, 4096},
        {"lr", s->lr, 1e-12, 1e6},
        {"l2", s->l2, 0, 1e3},
        {"groups", s->groups, 1, KEDGE_LEARN_GROUPS_MAX},
        {"pretrain_steps", s->pretrain_steps, 1, 1000000},
        {"pretrain_sites", kedge_learn_pretrain_sites(s), 0, KEDGE_LEARN_SITES_MAX},
        {"mixing", s->mixing, 0, 1e6},
        {"rule_fraction", s->rule_fraction, 0, 0.499999},
        {"tenant_share_max", s->tenant_share_max, 1e-6, 1},
        {"tenants", s->tenants, 1, TENANTS_MAX},
        {"compression: share", s->compression_share, 1e-6, 1},
        {"compression: carry", s->compression_carry, 0, 1},
        {"shift: rate", s->shift_rate, 0, 1},
        {"attack: share", s->attackers, 0, 1},
        {"attack: scale", s->attack_scale, -1e9, 1e9},
        {"fail", s->fail, 0, 0.999999},
        {"round_timeout_s", s->deadline_s, 0, 1e12},
        {"trace_period_s", s->trace_period_s, 0, 1e12},
        {"evaluate_every", s->evaluate_every, 1, 1000000},
    };
    int err = check_numbers(n, sizeof n / sizeof n[0], reterr);
    for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT && !err; i++) {
        const struct kedge_strategy_option *row = kedge_strategy_option_at(i);
        const struct number one = {row->name, kedge_strategy_option_get(&s->options, row), row->least,
                                   row->largest};
        err = check_numbers(&one, 1, reterr);
    }
    if (!err && !kedge_rule_find(s->rule)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "rule: no rule is called \"%s\"", s->rule);
    }
    err = err ? err : kedge_model_check(&s->model, reterr);
    err = err ? err : check_devices(s, reterr);
    err = err ? err : check_compression(s, reterr);
    err = err ? err : check_steps(s, reterr);
    return err ? err : check_fit(s, reterr);
}
