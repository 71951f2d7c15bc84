/* The job that a learning spec stands for, as the text that an operator would submit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregation/quantise.h"
#include "common/base/mem.h"
#include "sim/protocol/impl.h"
#include "sim/sim.h"

enum { TIMEOUT_S = 3600 };

/* ---- what no job does ---- */

static const char *not_done(const struct kedge_learn_spec *s)
{
    const struct kedge_strategy *row = s->strategy;
    bool poisons = s->attack == KEDGE_LEARN_ATTACK_NONE || s->attack == KEDGE_LEARN_ATTACK_LABEL_FLIP
                   || s->attack == KEDGE_LEARN_ATTACK_BACKDOOR;
    const struct {
        bool is_asked;
        const char *what;
    } table[] = {
        {row->comparison_only, "strategy: it is there to be compared with, no job runs it"},
        {!poisons, "attack: sites that know each other's updates are in \"through\": \"rounds\" only"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].is_asked) {
            return table[i].what;
        }
    }
    if (s->trace[0]) {
        return "trace: sites are there always, but for \"fail\" and \"faults\"; traces are for \"rounds\"";
    }
    for (uint32_t k = 0; k < s->device_count; k++) {
        if (s->devices[k].available < 1) {
            return "devices: available: sites are there always, but for \"fail\" and \"faults\"";
        }
    }
    return NULL;
}

int kedgei_protocol_refuse(const struct kedge_learn_spec *spec, struct kedge_diag *d)
{
    const char *why = not_done(spec);
    return why ? kedge_diag_set(d, KEDGE_E_FORMAT, "through: \"protocol\": %s", why) : KEDGE_OK;
}

static int check_size(struct kedgei_protocol *p)
{
    if (p->sites > KEDGE_SIM_SITES_MAX || p->spec->tenants > KEDGE_SIM_TENANTS_MAX) {
        return kedge_diag_set(p->d, KEDGE_E_FORMAT,
                              "through: \"protocol\": %u sites of %u tenants, expected at most %d of %d",
                              p->sites, p->spec->tenants, KEDGE_SIM_SITES_MAX, KEDGE_SIM_TENANTS_MAX);
    }
    return KEDGE_OK;
}

/* ---- the text ---- */

static void put_real(struct kedge_buf *out, const char *key, double v)
{
    char text[KEDGE_REAL_MAX];
    kedge_real_encode(v, text);
    kedge_buf_printf(out, ",\"%s\":\"%s\"", key, text);
}

/* Jobs have names of a-z, 0-9, ".", "_" and "-". */
static void put_name(struct kedge_buf *out, const char *name)
{
    char text[KEDGE_ID_MAX + 1];
    size_t len = 0;
    for (; name[len] && len < KEDGE_ID_MAX; len++) {
        char c = name[len];
        bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')
                    || (len > 0 && (c == '.' || c == '_' || c == '-'));
        text[len] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : fits ? c : len > 0 ? '-' : 'x';
    }
    text[len] = '\0';
    kedge_buf_printf(out, "{\"name\":\"%s\"", len > 0 ? text : "simulation");
}

static void put_tenants(const struct kedgei_names *names, struct kedge_buf *out)
{
    for (uint32_t i = 0; i < names->tenants; i++) {
        struct kedge_id id;
        kedgei_names_tenant(names, i, &id);
        kedge_buf_printf(out, "%s\"%s\"", i ? "," : ",\"tenants\":[", id.s);
    }
    kedge_buf_put_str(out, "]");
}

/* Options of the job. `regroup` has a key of its own. */
static void put_options(const struct kedge_learn_spec *s, struct kedge_buf *out)
{
    const char *between = ",\"options\":{";
    struct kedge_strategy_options options = s->options;
    options.regroup = s->strategy->defaults.regroup;
    for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT; i++) {
        const struct kedge_strategy_option *o = kedge_strategy_option_at(i);
        double v = kedge_strategy_option_get(&options, o);
        char text[KEDGE_REAL_MAX];
        if (v != kedge_strategy_option_get(&s->strategy->defaults, o)) {
            kedge_real_encode(v, text);
            kedge_buf_printf(out, "%s\"%s\":\"%s\"", between, o->name, text);
            between = ",";
        }
    }
    kedge_buf_put_str(out, between[1] ? "" : "}");
}

/* How groups are found: one-shot clustering leaves no number of them to say. */
static void put_groups(const struct kedge_learn_spec *s, uint32_t sites, struct kedge_buf *out)
{
    static const char *const tests[] = {"none", "labels", "counts", "update"};
    const bool oneshot = s->strategy->grouping == KEDGE_GROUPING_KIND_ONESHOT;
    uint32_t wanted = kedge_learn_pretrain_sites(s);
    uint32_t regroup = s->options.regroup > 0 ? (uint32_t)s->options.regroup : s->regroup_every;
    kedge_buf_printf(out, ",\"pretrain_steps\":%u,\"pretrain_sites\":%u,\"shift\":\"%s\"", s->pretrain_steps,
                     wanted > 0 && wanted < sites ? wanted : sites, tests[s->detector]);
    if (!oneshot) {
        kedge_buf_printf(out, ",\"groups\":%u", s->groups);
    }
    if (!oneshot && (regroup > 0 || s->strategy->defaults.regroup > 0)) {
        kedge_buf_printf(out, ",\"regroup_every\":%u", regroup);
    }
    if (s->choose_groups && !oneshot) {
        kedge_buf_put_str(out, ",\"choose\":\"silhouette\"");
    }
    put_real(out, "mixing", s->mixing);
}

static uint64_t most_samples(const struct kedgei_learn *l)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < l->n; i++) {
        most = l->sites[i].train_all > most ? l->sites[i].train_all : most;
    }
    return l->spec->shift == KEDGE_LEARN_SHIFT_SWAP_PART ? l->pool.n : most;
}

/* Whose update the others are judged by. */
static void put_root(const struct kedgei_names *names, uint32_t site, struct kedge_buf *out)
{
    struct kedge_id tenant, id;
    kedgei_names_tenant(names, names->tenant[site], &tenant);
    kedgei_names_site(names, site, &id);
    kedge_buf_printf(out, ",\"root_site\":\"%s/%s\"", tenant.s, id.s);
}

/* Updates with which a round may close at its deadline: never more than one closes with anyway. */
static uint32_t quorum_of(const struct kedge_learn_spec *s, bool has_root)
{
    uint32_t least = has_root ? 2 : 1, quorum = s->quorum > least ? s->quorum : least;
    uint32_t buffer = (uint32_t)s->options.buffer;
    return s->strategy->asynchronous && quorum > buffer ? buffer : quorum;
}

static void put_share(struct kedge_buf *out, const char *key, double v)
{
    const long millionths = lround(v * KEDGE_COMPACT_SHARE_ONE);
    kedge_buf_printf(out, millionths == 0 ? ",\"%s\":\"0\"" : ",\"%s\":\"%ld.%06ld\"", key,
                     millionths / KEDGE_COMPACT_SHARE_ONE, millionths % KEDGE_COMPACT_SHARE_ONE);
}

static void put_compression(const struct kedge_learn_spec *s, struct kedge_buf *out)
{
    if (s->compression == KEDGE_COMPACT_NONE) {
        return;
    }
    kedge_buf_printf(out, ",\"compression\":{\"kind\":\"%s\"", kedge_compact_name(s->compression));
    if (kedge_compact_is_sparse(s->compression)) {
        put_share(out, "share", s->compression_share);
    }
    put_share(out, "carry", s->compression_carry);
    kedge_buf_put_str(out, "}");
}

static void put_job(const struct kedgei_learn *l, const struct kedgei_names *names, struct kedge_buf *out)
{
    const struct kedge_learn_spec *s = l->spec;
    const bool has_root = names->sites > l->n;
    const uint32_t each_round = s->sites_per_round + has_root;
    put_name(out, s->name);
    put_tenants(names, out);
    kedge_buf_printf(out, ",\"seed\":\"%llu\",\"model\":", (unsigned long long)s->seed);
    kedge_model_put_json(&s->model, out);
    kedge_buf_printf(out,
                     ",\"data\":\"%s\",\"rounds\":%u,\"sites_per_round\":%u,\"sites_min\":%u,\"quorum\":%u",
                     KEDGEI_PROTOCOL_DATA, s->rounds, s->strategy->everybody ? 0 : each_round, names->sites,
                     quorum_of(s, has_root));
    kedge_buf_printf(out, ",\"round_timeout_s\":%u,\"local_epochs\":%u,\"batch\":%u",
                     s->deadline_s > 0 ? (uint32_t)ceil(s->deadline_s) : TIMEOUT_S, s->epochs, s->batch);
    put_real(out, "learning_rate", s->lr);
    put_real(out, "l2", s->l2);
    kedge_buf_printf(out, ",\"bound\":\"%d\",\"scale\":%d,\"weight_max\":%llu", KEDGEI_LEARN_BOUND,
                     KEDGEI_LEARN_SCALE_BITS, (unsigned long long)most_samples(l));
    if (s->tenant_share_max < 1) {
        put_real(out, "tenant_share_max", s->tenant_share_max);
    }
    kedge_buf_printf(out, ",\"evaluate_every\":%u,\"strategy\":\"%s\"", s->evaluate_every, s->strategy->name);
    if (s->strategy->grouping == KEDGE_GROUPING_KIND_FLEXCFL
        || s->strategy->grouping == KEDGE_GROUPING_KIND_ONESHOT) {
        put_groups(s, l->n, out);
    } else if (s->strategy->grouping == KEDGE_GROUPING_KIND_CHOICE
               || s->strategy->grouping == KEDGE_GROUPING_KIND_NEAREST) {
        kedge_buf_printf(out, ",\"groups\":%u", s->groups);
    }
    if (s->strategy->local->variate) {
        kedge_buf_printf(out, ",\"control_sites\":%u", l->n);
    }
    if (has_root) {
        put_root(names, l->n, out);
    }
    put_options(s, out);
    put_compression(s, out);
    kedge_buf_printf(out, ",\"rule\":\"%s\"", s->rule);
    if (kedge_rule_find(s->rule)->uses_fraction) {
        put_real(out, "rule_fraction", s->rule_fraction);
    }
    kedge_buf_put_str(out, "}");
}

int kedgei_protocol_job(struct kedgei_protocol *p)
{
    int err = check_size(p);
    kedge_buf_init(&p->job_text, KEDGE_SPEC_MAX);
    if (err) {
        return err;
    }
    put_job(p->l, &p->names, &p->job_text);
    err =
        p->job_text.err ? p->job_text.err : kedge_job_spec_parse(kedge_buf_view(&p->job_text), &p->job, p->d);
    err = err ? err : kedge_job_spec_layout(&p->job, &p->layout, p->d);
    err = err ? err : kedge_job_spec_update_layout(&p->job, &p->layout, &p->update_layout, p->d);
    err = err ? err : kedge_scale_limit(p->job.bound, p->job.scale, &p->limit);
    return err;
}
