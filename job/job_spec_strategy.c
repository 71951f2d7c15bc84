/* The keys of a job spec that choose what sites do, what an update weighs and how the server steps. Tables
 * of strategy/ say what there is; here it is held against what a coordinator can run. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "aggregation/share_cap.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "job/job_spec_impl.h"

/* Words of the key "server", by enum kedge_server; NULL: comes with a strategy only. */
static const struct {
    const char *word, *rule;
} servers[] = {
    [KEDGE_SERVER_NONE] = {"none", NULL},
    [KEDGE_SERVER_MOMENTUM] = {"momentum", "fedavgm"},
    [KEDGE_SERVER_ADAGRAD] = {"adagrad", "fedadagrad"},
    [KEDGE_SERVER_YOGI] = {"yogi", "fedyogi"},
    [KEDGE_SERVER_ADAM] = {"adam", "fedadam"},
    [KEDGE_SERVER_CONTROL] = {NULL, "scaffold"},
};
enum { SERVER_COUNT = sizeof servers / sizeof servers[0] };

/* Appends `word` in quotes; lists that are too long end early. */
static void put_word(char *list, size_t size, const char *word)
{
    size_t len = strlen(list);
    snprintf(list + len, size - len, "%s\"%s\"", len ? ", " : "", word);
}

/* What a coordinator does not run of a strategy, or NULL. */
const char *kedgei_spec_not_run(const struct kedge_strategy *row)
{
    if (row->comparison_only) {
        return "it is there to be compared with";
    }
    if (!kedge_grouping_row(row->grouping)->in_jobs) {
        return "sites come to its groups in a way that no statement tells";
    }
    return NULL;
}

static int refuse_strategy(const char *name, const struct kedge_strategy *row, bool in_world,
                           struct kedge_diag *d)
{
    char list[500] = "";
    for (size_t i = 0; i < kedge_strategy_count(); i++) {
        if (in_world || !kedgei_spec_not_run(kedge_strategy_at(i))) {
            put_word(list, sizeof list, kedge_strategy_at(i)->name);
        }
    }
    if (row) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"strategy\": \"%s\" runs in simulations only, for %s; expected one "
                              "of %s",
                              row->name, kedgei_spec_not_run(row), list);
    }
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"strategy\": \"%.60s\": expected one of %s", name,
                          list);
}

/* The strategy first: its row gives defaults of options and server, over which the other keys are read. */
static int read_name(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "strategy"), *grouping = json_object_get(root, "grouping");
    const char *name = v ? json_string_value(v) : s->grouping == KEDGE_GROUPING_NONE ? "fedavg" : "flexcfl";
    const struct kedge_strategy *row = name ? kedge_strategy_find(name) : NULL;
    if (!row || (kedgei_spec_not_run(row) && !s->in_world)) {
        return refuse_strategy(name ? name : "", row, s->in_world, d);
    }
    if (kedge_grouping_pretrains(row->grouping)) {
        if (grouping && s->grouping == KEDGE_GROUPING_NONE) {
            return kedge_diag_set(d, KEDGE_E_FORMAT,
                                  "job spec: \"grouping\": \"none\", but strategy \"%s\" groups its sites; "
                                  "leave one of the two out",
                                  row->name);
        }
        s->grouping = KEDGE_GROUPING_FLEXCFL;
    }
    s->strategy = row;
    s->options = row->defaults;
    s->server = row->server;
    return KEDGE_OK;
}

/* The server's options of the first strategy that has this server: "server": "adam" beside FedAvg begins
 * with the numbers of FedAdam, not with those of FedAvg, in whose row they mean nothing. */
static void take_defaults(enum kedge_server server, struct kedge_strategy_options *o)
{
    for (size_t i = 0; i < kedge_strategy_count(); i++) {
        const struct kedge_strategy *row = kedge_strategy_at(i);
        if (row->server == server) {
            o->server_lr = row->defaults.server_lr;
            o->settle = row->defaults.settle;
            o->momentum = row->defaults.momentum;
            o->second_moment = row->defaults.second_moment;
            o->adaptivity = row->defaults.adaptivity;
            return;
        }
    }
}

static int read_server(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "server");
    const char *word = json_string_value(v);
    char list[200] = "";
    if (!v) {
        return KEDGE_OK;
    }
    for (uint32_t i = 0; i < SERVER_COUNT; i++) {
        if (!servers[i].word) {
            continue;
        }
        put_word(list, sizeof list, servers[i].word);
        if (word && strcmp(word, servers[i].word) == 0) {
            if ((enum kedge_server)i != s->server) {
                take_defaults((enum kedge_server)i, &s->options);
            }
            s->server = (enum kedge_server)i;
            return KEDGE_OK;
        }
    }
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"server\": expected one of %s", list);
}

/* An option is told by its place in the struct. Which ones a job reads depends on its server and way of
 * grouping as well as on its strategy, so the strategy's list alone does not say it. Parser and printer ask
 * here, and agree. */
bool kedgei_spec_uses_option(const struct kedge_job_spec *s, const struct kedge_strategy_option *option)
{
    bool adapts =
        s->server == KEDGE_SERVER_ADAGRAD || s->server == KEDGE_SERVER_YOGI || s->server == KEDGE_SERVER_ADAM;
    const struct {
        size_t offset;
        bool used;
    } uses[] = {
        {offsetof(struct kedge_strategy_options, proximal), kedge_strategy_uses(s->strategy, option)},
        {offsetof(struct kedge_strategy_options, personal), kedge_strategy_uses(s->strategy, option)},
        {offsetof(struct kedge_strategy_options, head_epochs), kedge_strategy_uses(s->strategy, option)},
        {offsetof(struct kedge_strategy_options, fairness), kedge_strategy_uses(s->strategy, option)},
        {offsetof(struct kedge_strategy_options, edge_rounds), kedge_strategy_uses(s->strategy, option)},
        {offsetof(struct kedge_strategy_options, link), kedge_strategy_uses(s->strategy, option)},
        {offsetof(struct kedge_strategy_options, split_mean), kedge_strategy_uses(s->strategy, option)},
        {offsetof(struct kedge_strategy_options, split_max), kedge_strategy_uses(s->strategy, option)},
        {offsetof(struct kedge_strategy_options, split_after), kedge_strategy_uses(s->strategy, option)},
        {offsetof(struct kedge_strategy_options, most),
         s->choose != KEDGE_CHOOSE_FIXED || kedgei_spec_lives(s)},
        {offsetof(struct kedge_strategy_options, refresh),
         kedgei_spec_lives(s) && s->strategy->defaults.trial_every <= 0},
        {offsetof(struct kedge_strategy_options, merge),
         kedgei_spec_lives(s) && s->strategy->defaults.trial_every <= 0},
        {offsetof(struct kedge_strategy_options, silhouette),
         kedgei_spec_lives(s) && s->strategy->defaults.trial_every <= 0},
        {offsetof(struct kedge_strategy_options, trial_every), kedge_strategy_uses(s->strategy, option)},
        {offsetof(struct kedge_strategy_options, buffer), s->strategy->asynchronous},
        {offsetof(struct kedge_strategy_options, server_lr), s->server != KEDGE_SERVER_NONE},
        {offsetof(struct kedge_strategy_options, settle),
         s->server != KEDGE_SERVER_NONE && s->server != KEDGE_SERVER_CONTROL},
        {offsetof(struct kedge_strategy_options, momentum), s->server == KEDGE_SERVER_MOMENTUM || adapts},
        {offsetof(struct kedge_strategy_options, second_moment), adapts && s->server != KEDGE_SERVER_ADAGRAD},
        {offsetof(struct kedge_strategy_options, adaptivity), adapts},
    };
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        if (uses[i].offset == option->offset) {
            return uses[i].used;
        }
    }
    return false;
}

static int refuse_option(const struct kedge_job_spec *s, const char *name, struct kedge_diag *d)
{
    char list[400] = "";
    for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT; i++) {
        const struct kedge_strategy_option *option = kedge_strategy_option_at(i);
        if (kedgei_spec_uses_option(s, option)) {
            put_word(list, sizeof list, option->name);
        }
    }
    return kedge_diag_set(d, KEDGE_E_FORMAT,
                          "job spec: \"options\": \"%.60s\": strategy \"%s\" with server \"%s\" takes %s%s",
                          name, s->strategy->name, kedge_job_spec_server_name(s), list[0] ? list : "none",
                          list[0] ? " only" : "");
}

static int read_options(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    json_t *all = json_object_get(root, "options");
    if (!all) {
        return KEDGE_OK;
    }
    if (!json_is_object(all)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"options\": expected an object of numbers, like "
                              "{\"server_lr\": \"0.1\"}");
    }
    for (void *it = json_object_iter(all); it; it = json_object_iter_next(all, it)) {
        const char *name = json_object_iter_key(it);
        const json_t *v = json_object_iter_value(it);
        const struct kedge_strategy_option *option = kedge_strategy_option_find(name);
        double value;
        if (!option || !kedgei_spec_uses_option(s, option)) {
            return refuse_option(s, name, d);
        }
        if (kedgei_json_real(v, &value) || kedge_strategy_option_set(&s->options, option, value)) {
            return kedge_diag_set(d, KEDGE_E_FORMAT,
                                  "job spec: \"options\": \"%s\": expected a number from %g to %g", name,
                                  option->least, option->largest);
        }
    }
    return KEDGE_OK;
}

/* A real number; *ret stays where the key is absent. */
static int read_real(const json_t *root, const char *key, const char *expected, double *ret,
                     struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, key);
    if (!v) {
        return KEDGE_OK;
    }
    if (kedgei_json_real(v, ret) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"%s\": expected %s", key, expected);
    }
    return KEDGE_OK;
}

static int read_rule_name(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "rule");
    const char *name = v ? json_string_value(v) : "mean";
    char list[400] = "";
    s->rule = name ? kedge_rule_find(name) : NULL;
    if (s->rule) {
        s->rule_params = s->rule->defaults;
        return KEDGE_OK;
    }
    for (size_t i = 0; i < kedge_rule_count(); i++) {
        put_word(list, sizeof list, kedge_rule_at(i)->name);
    }
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"rule\": expected one of %s", list);
}

static int read_rule(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    static const struct {
        const char *key, *expected;
    } keys[] = {{"rule_fraction", "a number from 0 to 0.499999: the share of bad updates"},
                {"rule_bound", "a number, 0 or above: the longest update"}};
    int err = read_rule_name(root, s, d);
    for (int i = 0; i < 2 && !err; i++) {
        bool used = i == 0 ? s->rule->uses_fraction : s->rule->uses_bound;
        if (json_object_get(root, keys[i].key) && !used) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"%s\": rule \"%s\" has no use for it",
                                  keys[i].key, s->rule->name);
        }
        err = read_real(root, keys[i].key, keys[i].expected,
                        i == 0 ? &s->rule_params.fraction : &s->rule_params.bound, d);
        if (!err && used && kedge_rule_params_check(s->rule, &s->rule_params) != KEDGE_OK) {
            /* the other number is the rule's default or was found good */
            return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"%s\": expected %s", keys[i].key,
                                  keys[i].expected);
        }
    }
    return err;
}

/* What does not go together, each with its reason in the message: more updates than a robust rule compares,
 * momentum where updates are divided by their steps, a cap under a rule or a strategy whose weights may be
 * 0. */
int kedgei_spec_check_strategy(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    bool many = !s->strategy->asynchronous && kedgei_spec_updates_most(s) > KEDGE_RULE_VECTORS_MAX;
    bool many_cold = s->grouping != KEDGE_GROUPING_NONE
                     && (s->pretrain_sites == 0 || s->pretrain_sites > KEDGE_RULE_VECTORS_MAX);
    if (s->strategy->everybody && s->sites_per_round != 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"sites_per_round\": with strategy \"%s\" every site takes part in "
                              "every round; leave it out",
                              s->strategy->name);
    }
    if (s->local_momentum > 0
        && (s->strategy->weigh == kedge_weigh_fednova || kedge_job_spec_has_control(s))) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"local_momentum\": strategy \"%s\" divides updates by their steps, "
                              "which momentum makes longer; expected \"0\"",
                              s->strategy->name);
    }
    if (s->strategy->weigh == kedge_weigh_fednova && !s->batch_auto
        && kedgei_spec_steps_most(s, s->weight_max) > KEDGE_WEIGHT_ONE) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"weight_max\": with strategy \"%s\" local_epochs · weight_max / batch must "
            "not be above %d; lower it",
            s->strategy->name, KEDGE_WEIGHT_ONE);
    }
    if (s->rule->kind != KEDGE_RULE_MEAN && s->strategy->everybody) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"rule\": \"%s\" takes at most %d updates, strategy \"%s\" those of all "
            "sites; expected \"mean\"",
            s->rule->name, KEDGE_RULE_VECTORS_MAX, s->strategy->name);
    }
    if (s->rule->kind != KEDGE_RULE_MEAN && (many || many_cold)) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"rule\": \"%s\" takes at most %d updates of a round: expected \"%s\" "
            "from 1 to %d",
            s->rule->name, KEDGE_RULE_VECTORS_MAX, many ? "sites_per_round" : "pretrain_sites",
            KEDGE_RULE_VECTORS_MAX);
    }
    bool capped = s->tenant_share_max < KEDGE_SHARE_ONE;
    if (capped && !s->rule->caps) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"tenant_share_max\": rule \"%s\" cannot keep to a cap",
                              s->rule->name);
    }
    if (capped && s->rule->samples && s->strategy->weigh == kedge_weigh_qffl) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"tenant_share_max\": weights of strategy \"%s\" may be 0, which no cap "
            "takes",
            s->strategy->name);
    }
    return KEDGE_OK;
}

int kedgei_spec_read_kind(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const char *batch = json_string_value(json_object_get(root, "batch"));
    s->batch_auto = batch && strcmp(batch, "auto") == 0;
    KEDGE_TRY(read_name(root, s, d));
    s->choose = s->strategy->choose;
    int err = read_server(root, s, d);
    return err ? err : read_rule_name(root, s, d);
}

/* The order matters: name, then what it leaves open, then options, whose set depends on both; rule, root,
 * compression and control variates are held against all of these. */
int kedgei_spec_read_strategy(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    KEDGE_TRY(read_name(root, s, d));
    KEDGE_TRY(kedgei_spec_read_choose(root, s, d));
    KEDGE_TRY(read_server(root, s, d));
    KEDGE_TRY(read_options(root, s, d));
    KEDGE_TRY(kedgei_spec_check_refresh(s, d));
    KEDGE_TRY(kedgei_spec_check_trials(s, d));
    KEDGE_TRY(read_rule(root, s, d));
    KEDGE_TRY(kedgei_spec_read_root(root, s, d));
    int err = kedgei_spec_read_compression(root, s, d);
    return err ? err : kedgei_spec_read_control(root, s, d);
}

const char *kedgei_spec_server_word(uint32_t i)
{
    uint32_t seen = 0;
    for (uint32_t k = 0; k < SERVER_COUNT; k++) {
        if (servers[k].word && seen++ == i) {
            return servers[k].word;
        }
    }
    return NULL;
}

const char *kedge_job_spec_server_name(const struct kedge_job_spec *spec)
{
    return servers[spec->server].word ? servers[spec->server].word : servers[spec->server].rule;
}

bool kedge_job_spec_weighs_samples(const struct kedge_job_spec *spec)
{
    return spec->strategy->weigh == kedge_weigh_samples;
}

/* What a site states of steps and loss is bounded before it weighs anything. A job that weighs by samples
 * alone reads neither, and takes any. */
bool kedge_job_spec_takes(const struct kedge_job_spec *spec, uint64_t samples, uint64_t steps, double loss)
{
    uint64_t most =
        spec->strategy->weigh == kedge_weigh_fednova ? kedgei_spec_steps_most(spec, samples) : INT32_MAX;
    return kedge_job_spec_weighs_samples(spec)
           || (steps >= 1 && steps <= most && steps <= INT32_MAX && loss >= 0 && loss <= KEDGE_LOSS_MAX);
}

/* ---- names in the record ---- */

/* Names are FIRST+SECOND-capped/vN, with the parts that apply. */
static struct kedge_rule_name name_at(int version, const char *first, const char *second, bool capped)
{
    struct kedge_rule_name name;
    snprintf(name.s, sizeof name.s, "%s%s%s%s/v%d", first, first[0] && second[0] ? "+" : "", second,
             capped ? "-capped" : "", version);
    return name;
}

static struct kedge_rule_name name_of(const char *first, const char *second, bool capped)
{
    return name_at(1, first, second, capped);
}

/* The name of a rule in the record says all that an auditor must run: weights, robust rule, cap, version. A
 * version is raised when the same name would otherwise give other numbers; records of the former one stay
 * as they are. */
struct kedge_rule_name kedge_job_spec_aggregate_rule(const struct kedge_job_spec *spec, bool cold_start,
                                                     const struct kedge_rule *rule)
{
    bool mean = rule->kind == KEDGE_RULE_MEAN;
    const char *weights = cold_start                             ? "flexcfl-cold-start"
                          : !rule->samples                       ? ""
                          : !kedge_job_spec_weighs_samples(spec) ? spec->strategy->name
                          : mean                                 ? "fedavg"
                                                                 : "";
    int version = cold_start ? 2 : 1; /* 2: tenants count alike, whatever the number of their sites */
    return name_at(version, weights, mean ? "" : rule->name, spec->tenant_share_max < KEDGE_SHARE_ONE);
}

const char KEDGE_RULE_RECLUSTER[] = "flexcfl-recluster/v2";
const char KEDGE_RULE_KEPT[] = "flexcfl-kept/v1";

struct kedge_rule_name kedge_job_spec_meeting_rule(const struct kedge_job_spec *spec)
{
    return name_of(servers[spec->server].rule ? servers[spec->server].rule : "", "edge-meeting", false);
}

struct kedge_rule_name kedge_job_spec_step_rule(const struct kedge_job_spec *spec, bool cold_start,
                                                bool mixed)
{
    const char *server = servers[spec->server].rule ? servers[spec->server].rule : "";
    if (cold_start) {
        return name_at(2, "flexcfl-cold-start", "", false);
    }
    return name_of(server, mixed ? "flexcfl-mixing" : server[0] ? "" : "identity", false);
}
