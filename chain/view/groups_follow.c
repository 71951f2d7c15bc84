/* Groups of sites that no group-assigned gives: a tenant's edge, the choices that sites sign, the group in
 * which all begin. */
#include <stdio.h>

#include "chain/view/groups_view_impl.h"

static int take_enrolled(struct kedgei_view_walk *w, uint64_t index)
{
    uint32_t site;
    int err = kedgei_view_site(w, &w->st->u.site_enrolled.site, &site);
    struct kedge_groups_move move = {
        .site = site, .group = kedge_job_spec_edge(w->place), .how = "tenant", .entry = index};
    return err ? err : kedgei_view_move(w, site, &move, &w->st->subject);
}

/* What a site trained last; a move where that is another group than before. */
static int take_update(struct kedgei_view_walk *w, uint64_t index)
{
    const struct kedge_st_update *u = &w->st->u.update;
    struct kedge_groups_view *v = w->view;
    uint32_t site;
    if (u->update_kind != KEDGE_TRAIN_TRAIN) {
        return KEDGE_OK;
    }
    int err = kedgei_view_site(w, &u->site, &site);
    if (err || (v->sites[site].moves > 0 && v->sites[site].group == u->group)) {
        return err;
    }
    v->sites[site].group = u->group;
    struct kedge_groups_move move = {
        .site = site, .round = u->round, .group = u->group, .how = "choice", .entry = index};
    return kedgei_view_move(w, site, &move, &w->st->subject);
}

/* Where all begin in one group: who has trained is in it until a cut moves it. */
static int take_first(struct kedgei_view_walk *w, uint64_t index)
{
    const struct kedge_st_update *u = &w->st->u.update;
    struct kedge_groups_view *v = w->view;
    uint32_t site;
    int err = kedgei_view_site(w, &u->site, &site);
    if (err || v->sites[site].group != KEDGE_GROUPS_NO_GROUP) {
        return err;
    }
    v->sites[site].group = 0; /* it is known from here on */
    struct kedge_groups_move move = {
        .site = site, .round = u->round, .group = 0, .how = "start", .entry = index};
    return kedgei_view_move(w, site, &move, &w->st->subject);
}

int kedgei_view_follow(struct kedgei_view_walk *w, const struct kedge_groups_log *tenant)
{
    const struct kedge_job_spec *spec = w->spec;
    char prefix[KEDGE_IDEM_KEY_MAX + 1];
    if (!spec->strategy) {
        return KEDGE_OK;
    }
    const enum kedge_grouped_by by = kedge_job_spec_grouped_by(spec);
    bool edges = by == KEDGE_GROUPED_BY_PLACE, together = by == KEDGE_GROUPED_BY_CUT;
    w->view->is_followed = edges || together || by == KEDGE_GROUPED_BY_UPDATE;
    for (w->place = 0; w->place < spec->tenant_count; w->place++) {
        if (kedge_id_eq(&spec->tenants[w->place], &tenant->tenant)) {
            break;
        }
    }
    if (!w->view->is_followed || w->place == spec->tenant_count) {
        return KEDGE_OK;
    }
    snprintf(prefix, sizeof prefix, edges ? "site-enrolled/" : "update/%s/", w->view->job.s);
    return kedgei_view_walk_log(w, tenant, edges ? KEDGE_ST_SITE_ENROLLED : KEDGE_ST_UPDATE, prefix,
                                edges      ? take_enrolled
                                : together ? take_first
                                           : take_update);
}
