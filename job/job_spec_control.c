/* Jobs whose sites and server keep control variates (strategy "scaffold"): the key "control_sites", and what
 * such a job cannot be besides. */
#include <jansson.h>

#include "aggregation/share_cap.h"
#include "job/job_spec_impl.h"

bool kedge_job_spec_has_control(const struct kedge_job_spec *spec)
{
    return spec->strategy->local->variate != NULL;
}

static int refuse(struct kedge_diag *d, const char *key, const char *why)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"%s\": not with strategy \"scaffold\": %s", key,
                          why);
}

static int read_sites(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < 1 || n > KEDGE_SITES_MAX) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"control_sites\": expected a whole number from 1 to %d with strategy "
            "\"scaffold\": the sites of the job, whose control variates the server's is "
            "the mean of",
            KEDGE_SITES_MAX);
    }
    s->control_sites = (uint32_t)n;
    return KEDGE_OK;
}

/* The server's variate is divided by control_sites, so no round may have more sites than that: it would
 * move further than all sites together. The other bound is that of updates whose tiles are in memory side
 * by side. */
static int check_draw(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    uint32_t most = s->control_sites > 0 && s->control_sites < KEDGE_RULE_VECTORS_MAX
                        ? s->control_sites
                        : KEDGE_RULE_VECTORS_MAX;
    if (s->sites_per_round < 1 || s->sites_per_round > most) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"sites_per_round\": expected 1 to %u with strategy \"scaffold\": at "
            "most \"control_sites\", and at most %d",
            most, KEDGE_RULE_VECTORS_MAX);
    }
    return KEDGE_OK;
}

/* SCAFFOLD corrects every site's steps by the server's variate. What would make that variate something else
 * than the mean of all sites' own is refused, each with its reason. */
int kedgei_spec_read_control(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "control_sites");
    if (!kedge_job_spec_has_control(s)) {
        return v ? kedge_diag_set(d, KEDGE_E_FORMAT,
                                  "job spec: \"control_sites\": strategy \"%s\" has no use for it",
                                  s->strategy->name)
                 : KEDGE_OK;
    }
    if (s->grouping != KEDGE_GROUPING_NONE) {
        return refuse(d, "grouping",
                      "a site that moves would take its control variate out of one group's mean and into "
                      "another's, unseen by both");
    }
    if (s->server != KEDGE_SERVER_CONTROL) {
        return refuse(d, "server", "the server's state is the control variate");
    }
    if (s->rule->kind != KEDGE_RULE_MEAN) {
        return refuse(d, "rule",
                      "control variates are averaged as they come and bend every site's steps, so no rule "
                      "for the models holds its promise");
    }
    if (s->tenant_share_max < KEDGE_SHARE_ONE) {
        return refuse(d, "tenant_share_max", "control variates count alike, whatever the weights");
    }
    if (s->in_world && v) {
        return refuse(d, "control_sites", "of a world they are all sites; leave it out");
    }
    int err = s->in_world ? KEDGE_OK : read_sites(v, s, d);
    return err ? err : check_draw(s, d);
}
