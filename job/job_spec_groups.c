/* Jobs of several models whose sites come to their groups without a pre-training: what the spec must say, and
 * what the record follows from it. */
#include <jansson.h>

#include "aggregation/share_cap.h"
#include "job/job_spec_impl.h"

enum kedge_entry kedge_job_spec_entry(const struct kedge_job_spec *spec)
{
    return kedge_grouping_row(spec->strategy->grouping)->entry;
}

/* What a site's group follows from decides what the record states of it. Most of the code asks this, and
 * not for the strategy. */
enum kedge_grouped_by kedge_job_spec_grouped_by(const struct kedge_job_spec *spec)
{
    switch (kedge_job_spec_entry(spec)) {
    case KEDGE_ENTRY_TENANT:
        return KEDGE_GROUPED_BY_PLACE;
    case KEDGE_ENTRY_CHOICE:
        return KEDGE_GROUPED_BY_UPDATE;
    case KEDGE_ENTRY_NEAREST:
        return KEDGE_GROUPED_BY_TASK;
    case KEDGE_ENTRY_TOGETHER:
        return KEDGE_GROUPED_BY_CUT;
    case KEDGE_ENTRY_PRETRAIN:
        break;
    }
    return spec->grouping == KEDGE_GROUPING_NONE ? KEDGE_GROUPED_BY_NOTHING : KEDGE_GROUPED_BY_PRETRAIN;
}

bool kedge_job_spec_states_groups(const struct kedge_job_spec *spec)
{
    return kedge_job_spec_grouped_by(spec) >= KEDGE_GROUPED_BY_PRETRAIN;
}

/* More tenants than groups share edges, in the order of the record. It depends on the place alone, so no
 * statement need say it. */
uint32_t kedge_job_spec_edge(uint32_t place)
{
    return place % KEDGE_GROUPS_USUAL;
}

bool kedge_job_spec_meets(const struct kedge_job_spec *spec, uint32_t round)
{
    return kedge_job_spec_grouped_by(spec) == KEDGE_GROUPED_BY_PLACE && round > 0
           && round % (uint32_t)spec->options.edge_rounds == 0;
}

/* Of an update that counted, its samples or 1, as the job's rule counts updates: not its weight, which a
 * cap may have changed within its round, and the meeting has a cap of its own. */
uint64_t kedge_job_spec_meeting_share(const struct kedge_job_spec *spec, uint64_t weight, uint64_t samples)
{
    return weight == 0 ? 0 : spec->rule->samples ? samples : 1;
}

bool kedge_job_spec_has_model_per_group_at_start(const struct kedge_job_spec *spec)
{
    const enum kedge_grouped_by by = kedge_job_spec_grouped_by(spec);
    return by == KEDGE_GROUPED_BY_UPDATE || by == KEDGE_GROUPED_BY_TASK;
}

uint32_t kedge_job_spec_models(const struct kedge_job_spec *spec)
{
    bool several = kedge_job_spec_grouped_by(spec) == KEDGE_GROUPED_BY_PLACE
                   || kedge_job_spec_has_model_per_group_at_start(spec);
    return several ? spec->groups : 1;
}

/* Samples between two meetings, of all edges together, as the cap on a tenant's share can count them. */
static int check_meetings(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    uint64_t sites = s->sites_per_round ? s->sites_per_round : KEDGE_SITES_MAX;
    uint64_t between =
        (uint64_t)s->options.edge_rounds < s->rounds ? (uint64_t)s->options.edge_rounds : s->rounds;
    if (s->weight_max > KEDGE_SHARE_WEIGHT_MAX / (sites * between)) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"weight_max\": with strategy \"%s\" sites · weight_max · edge_rounds "
            "must not be above 2^43; lower it",
            s->strategy->name);
    }
    return KEDGE_OK;
}

static int check_edges(struct kedge_job_spec *s, const json_t *root, struct kedge_diag *d)
{
    uint32_t edges = s->tenant_count < KEDGE_GROUPS_USUAL ? s->tenant_count : KEDGE_GROUPS_USUAL;
    double whole = (double)(uint32_t)s->options.edge_rounds;
    if (s->tenant_count < 2) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"tenants\": with strategy \"%s\" an edge is a tenant, and one has "
                              "nobody to meet; expected 2 or more",
                              s->strategy->name);
    }
    if (json_object_get(root, "groups") && s->groups != edges) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"groups\": with strategy \"%s\" there is one for each tenant, 16 at "
            "most; leave it out",
            s->strategy->name);
    }
    if (s->options.edge_rounds < whole || s->options.edge_rounds > whole) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"options\": \"edge_rounds\": expected a whole number of rounds");
    }
    if (s->mixing > 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"mixing\": with strategy \"%s\" edges meet instead; leave it out",
                              s->strategy->name);
    }
    s->groups = edges;
    return check_meetings(s, d);
}

/* As many models as the spec says, each from its own random beginning. */
static int check_apart(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    if (s->groups < 2) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"groups\": expected 2 to 64 with strategy \"%s\"",
                              s->strategy->name);
    }
    if (s->has_initial_model) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"initial_model\": with strategy \"%s\" every group's model begins at "
            "random; leave it out",
            s->strategy->name);
    }
    return KEDGE_OK;
}

/* One model to begin with, and parts of it later. */
static int check_splits(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    double whole = (double)(uint32_t)s->options.split_after;
    if (s->options.split_after < whole || s->options.split_after > whole) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"options\": \"split_after\": expected a whole number of rounds");
    }
    if (s->mixing > 0) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"mixing\": strategy \"%s\" cuts groups so that they part; leave it out",
            s->strategy->name);
    }
    return KEDGE_OK;
}

/* Strategies with groups of their own: what the spec may not say besides, and how many models there are. */
int kedgei_spec_check_groups(struct kedge_job_spec *s, const json_t *root, struct kedge_diag *d)
{
    const enum kedge_grouped_by by = kedge_job_spec_grouped_by(s);
    if (by == KEDGE_GROUPED_BY_NOTHING || by == KEDGE_GROUPED_BY_PRETRAIN) {
        return KEDGE_OK;
    }
    if (s->grouping != KEDGE_GROUPING_NONE) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"grouping\": \"flexcfl\", but strategy \"%s\" groups its sites by "
                              "itself; leave it out",
                              s->strategy->name);
    }
    if (s->rule->needs_root) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"rule\": \"%s\" measures one group's updates by its root site's; "
                              "strategy \"%s\" has several",
                              s->rule->name, s->strategy->name);
    }
    return by == KEDGE_GROUPED_BY_CUT     ? check_splits(s, d)
           : by == KEDGE_GROUPED_BY_PLACE ? check_edges(s, root, d)
                                          : check_apart(s, d);
}
