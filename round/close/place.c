/* Which group a site belongs to, and how near it is to it. Jobs know three answers: the group whose direction
 * is the nearest to the site's pre-training, that whose model is the nearest to the site's last one, and,
 * where closes cut groups by their own updates, none that could be measured. */
#include "round/close/close.h"
#include "round/last_model.h"

/* What the site is compared by, and with. */
struct compared {
    char own[KEDGE_PATH_MAX], from[KEDGE_PATH_MAX], path[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    struct kedge_blob_at at, base, with[KEDGE_GROUPS_MAX];
    bool begins; /* it has trained nothing yet: the initial model */
};

/* A site that has trained nothing yet is compared by the initial model alone. */
static int find(const struct kedge_close_host *host, const struct kedge_place *p, bool by_model,
                const struct kedge_round_state *state, struct compared *c)
{
    c->begins = by_model && kedge_hash_is_zero(&p->update);
    int err = c->begins ? KEDGE_OK : host->update(host->arg, p->site, &p->update, c->own, &c->at);
    if (!err && by_model) {
        err = host->vector(host->arg, c->begins ? &p->initial : &p->base, c->from, &c->base);
    }
    for (uint32_t g = 0; g < p->count && !err; g++) {
        const struct kedge_round_group *group = &state->group[p->first + g];
        const struct kedge_hash *name = by_model ? &group->model : &group->direction;
        err = host->vector(host->arg, name, c->path[g], &c->with[g]);
    }
    return err;
}

/* The update that a site is placed by may have been erased since. Then the site stays where it is, and the
 * statement says similarity 0: nothing was compared. */
int kedge_close_place(const struct kedge_close_host *host, const struct kedge_job_spec *spec,
                      const struct kedge_layout *layout, const struct kedge_round_state *state,
                      const struct kedge_place *place, uint32_t *io_group, double *ret_similarity,
                      struct kedge_diag *reterr)
{
    const enum kedge_entry entry = kedge_job_spec_entry(spec);
    const bool by_model = entry == KEDGE_ENTRY_NEAREST;
    struct compared c;
    uint32_t nearest = 0;
    *ret_similarity = 0;
    if (entry == KEDGE_ENTRY_TOGETHER) { /* a close has cut its group: there are no directions */
        return KEDGE_OK;
    }
    int err = find(host, place, by_model, state, &c);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err; /* gone: it stays where it is, similar to nothing */
    }
    err = by_model
              ? kedge_compute_last_model(spec, layout, &c.base, c.begins ? NULL : &c.at, c.with, place->count,
                                         &nearest, ret_similarity, reterr)
              : kedge_compute_nearest(layout, &c.at, c.with, place->count, &nearest, ret_similarity, reterr);
    if (err == KEDGE_E_NOT_FOUND
        && !by_model) { /* a zero update has no direction: the first group, docs/record.md */
        nearest = 0;
        *ret_similarity = 0;
        err = KEDGE_OK;
    }
    if (!err) {
        *io_group = place->first + nearest;
    }
    return err;
}
