/* The key "root_site": whose update is the root of trust of rule "root-trust". The root data stay at a site
 * like all other data: a coordinator holds none. */
#include <jansson.h>
#include <string.h>

#include "job/job_spec_impl.h"

/* "TENANT/SITE"; the tenant is one of the job's. */
static int read_site(const char *text, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const char *slash = text ? strchr(text, '/') : NULL;
    struct kedge_id tenant;
    if (!slash || kedge_id_from(kedge_view_of(text, (size_t)(slash - text)), &tenant)
        || kedge_id_from(kedge_view_str(slash + 1), &s->root_site)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"root_site\": expected \"TENANT/SITE\", the site whose update the "
                              "others are judged by");
    }
    for (uint32_t i = 0; i < s->tenant_count; i++) {
        if (kedge_id_eq(&s->tenants[i], &tenant)) {
            s->root_tenant = i;
            return KEDGE_OK;
        }
    }
    return kedge_diag_set(d, KEDGE_E_FORMAT,
                          "job spec: \"root_site\": \"%s\" is none of the job's \"tenants\"", tenant.s);
}

/* A round of the root alone has nothing to judge. */
static int read_least(const json_t *root, const char *key, uint32_t *value, struct kedge_diag *d)
{
    if (!json_object_get(root, key)) {
        *value = 2;
    }
    return *value >= 2 ? KEDGE_OK
                       : kedge_diag_set(d, KEDGE_E_FORMAT,
                                        "job spec: \"%s\": expected 2 or more with \"root_site\": the root's "
                                        "update and another",
                                        key);
}

/* A round needs the root's update and one more, in every way that a spec can bound it: sites that a job
 * waits for, quorum, draw. With groups or an asynchronous server no round could promise the root. */
int kedgei_spec_read_root(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "root_site");
    if (!s->rule->needs_root) {
        return v ? kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"root_site\": rule \"%s\" has no use for it",
                                  s->rule->name)
                 : KEDGE_OK;
    }
    if (s->in_world && v) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"root_site\": a world has one more site for it; leave it out");
    }
    int err = s->in_world ? KEDGE_OK : read_site(json_string_value(v), s, d);
    if (!err && s->grouping != KEDGE_GROUPING_NONE) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"root_site\": with groups each group's updates begin at a model of "
                              "its own, and a site is in one group only; leave out \"grouping\" or take "
                              "another \"rule\"");
    }
    if (!err && s->strategy->asynchronous) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"root_site\": the server of strategy \"%s\" steps with the updates that came, "
            "the root or not; take another \"rule\"",
            s->strategy->name);
    }
    err = err || s->in_world ? err : read_least(root, "sites_min", &s->sites_min, d);
    if (err) {
        return err;
    }
    err = read_least(root, "quorum", &s->quorum, d);
    if (!err && s->sites_per_round == 1 && !s->in_world) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"sites_per_round\": expected 2 to %d with \"root_site\", which is "
                              "one of them",
                              KEDGE_RULE_VECTORS_MAX);
    }
    return err;
}

bool kedge_job_spec_is_root(const struct kedge_job_spec *spec, uint32_t place, const struct kedge_id *site)
{
    return spec->rule->needs_root && place == spec->root_tenant && kedge_id_eq(&spec->root_site, site);
}
