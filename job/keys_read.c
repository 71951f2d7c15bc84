/* Which keys a job reads: the others it must not have, and its printer leaves them out. */
#include <string.h>

#include "job/job_spec_impl.h"
#include "job/keys.h"

static bool is_external(const struct kedge_job_spec *s)
{
    return s->is_external;
}

static bool has_layers(const struct kedge_job_spec *s)
{
    return !s->is_external;
}

static bool has_initial_model(const struct kedge_job_spec *s)
{
    return s->has_initial_model;
}

static bool has_classes(const struct kedge_job_spec *s)
{
    return s->learns_classes || s->classes_count > 0;
}

static bool says_scales(const struct kedge_job_spec *s)
{
    return s->standardize != KEDGE_STANDARDIZE_UNSAID;
}

static bool is_asynchronous(const struct kedge_job_spec *s)
{
    return s->strategy->asynchronous;
}

static bool chooses_batch(const struct kedge_job_spec *s)
{
    return s->batch_auto;
}

static bool makes_groups(const struct kedge_job_spec *s)
{
    return s->grouping == KEDGE_GROUPING_FLEXCFL;
}

static bool has_groups(const struct kedge_job_spec *s)
{
    return s->groups > 1 && (makes_groups(s) || kedge_job_spec_models(s) > 1);
}

static bool has_models(const struct kedge_job_spec *s)
{
    return makes_groups(s) || kedge_job_spec_models(s) > 1;
}

static bool has_server(const struct kedge_job_spec *s)
{
    return s->server != KEDGE_SERVER_CONTROL;
}

static bool has_options(const struct kedge_job_spec *s)
{
    for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT; i++) {
        if (kedgei_spec_uses_option(s, kedge_strategy_option_at(i))) {
            return true;
        }
    }
    return false;
}

static bool has_fraction(const struct kedge_job_spec *s)
{
    return s->rule->uses_fraction;
}

static bool has_bound(const struct kedge_job_spec *s)
{
    return s->rule->uses_bound;
}

static bool is_compressed(const struct kedge_job_spec *s)
{
    return s->compression.kind != KEDGE_COMPACT_NONE;
}

static bool has_budget(const struct kedge_job_spec *s)
{
    return s->budget.unit != KEDGE_JOB_BUDGET_NONE;
}

static bool plans(const struct kedge_job_spec *s)
{
    return s->plan.is_on;
}

static bool has_deadline(const struct kedge_job_spec *s)
{
    return s->deadline_s > 0 && !s->in_world;
}

static bool has_targets(const struct kedge_job_spec *s)
{
    return s->target_count > 0;
}

static bool says_priority(const struct kedge_job_spec *s)
{
    return s->priority != KEDGE_SPEC_PRIORITY;
}

static bool has_needs(const struct kedge_job_spec *s)
{
    return s->needs.text[0] != '\0';
}

/* Of a world the sites are all there are, and the root is one more. */
static bool names_root(const struct kedge_job_spec *s)
{
    return s->rule->needs_root && !s->in_world;
}

static bool counts_control(const struct kedge_job_spec *s)
{
    return kedge_job_spec_has_control(s) && !s->in_world;
}

static bool says_least(const struct kedge_job_spec *s)
{
    return s->sites_min > 0 && s->sites_least == 0; /* a range says it itself */
}

/* All other keys are read by every job. */
static const struct {
    const char *key;
    bool (*by)(const struct kedge_job_spec *s);
} read_when[] = {
    {"external", is_external},
    {"initial_model", has_initial_model},
    {"classes", has_classes},
    {"standardize", says_scales},
    {"deadline_s", has_deadline},
    {"round_s", has_deadline},
    {"budget", has_budget},
    {"priority", says_priority},
    {"needs", has_needs},
    {"plan", plans},
    {"targets", has_targets},
    {"hold", has_targets},
    {"staleness_max", is_asynchronous},
    {"batch_start", chooses_batch},
    {"batch_least", chooses_batch},
    {"batch_most", chooses_batch},
    {"learning_rate_rule", chooses_batch},
    {"precision", has_layers},
    {"grouping", makes_groups},
    {"groups", has_groups},
    {"choose", kedgei_spec_lives},
    {"pretrain_steps", makes_groups},
    {"pretrain_sites", makes_groups},
    {"shift", makes_groups},
    {"regroup_every", makes_groups},
    {"migration_pause", makes_groups},
    {"mixing", has_models},
    {"share", kedge_job_spec_is_in_parts},
    {"options", has_options},
    {"server", has_server},
    {"rule_fraction", has_fraction},
    {"rule_bound", has_bound},
    {"compression", is_compressed},
    {"control_sites", counts_control},
    {"root_site", names_root},
    {"sites_min", says_least},
};

bool kedge_job_key_is_read(const struct kedge_job_spec *spec, const struct kedge_job_key *key)
{
    for (size_t i = 0; i < sizeof read_when / sizeof read_when[0]; i++) {
        if (strcmp(read_when[i].key, key->key) == 0) {
            return read_when[i].by(spec);
        }
    }
    return true;
}
