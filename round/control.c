/* The server's step of a job with control variates: a new model and a new control.
 *
 * An update of such a job has two halves, the change of the model and the change of the site's control; the
 * second begins where a model's values end. A control that no round has written yet is zero. */
#include "round/control.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/compute_impl.h"
#include "round/step.h"

enum { TILE = KEDGEI_TENSORS_TILE_MAX, HELD = KEDGEI_TENSORS_HELD_MAX };

/* Files of a step, all of whose values begin at coordinate 0. */
struct step {
    const struct kedge_job_spec *spec;
    struct kedgei_tensors models, state, updates; /* models: before, aggregate */
    bool has_state;
    uint64_t values; /* of a model: the changes of an update begin there */
    float *tile, *control;
};

static int model_run(const struct step *s, struct kedge_sink after)
{
    const float *before = s->models.values[0], *aggregate = s->models.values[1];
    float *state[KEDGE_SERVER_STATES_MAX] = {NULL};
    for (size_t first = 0, n; first < s->values; first += n) {
        n = s->values - first < TILE ? (size_t)(s->values - first) : TILE;
        KEDGE_TRY(kedge_server_step(s->spec->server, &s->spec->options, before + first, aggregate + first,
                                    state, n, s->tile));
        KEDGE_TRY(after.write(after.arg, kedge_view_of(s->tile, n * sizeof *s->tile)));
    }
    return KEDGE_OK;
}

/* Tiles are sought from `values` on, behind the change of the model. Control variates are summed over all
 * inputs, also those that weigh nothing in the aggregate: SCAFFOLD divides by the number of sites in the
 * job, and a site whose change was left out would keep a variate that the server does not know of. */
static int control_run(struct step *s, struct kedge_sink state_after, struct kedge_diag *d)
{
    for (size_t first = 0, n; first < s->values; first += n) {
        n = kedgei_tensors_tile(&s->updates, (size_t)s->values + first);
        KEDGE_TRY(kedgei_tensors_seek(&s->updates, 0, s->updates.count, (size_t)s->values + first, n, d));
        if (s->has_state) {
            memcpy(s->control, (const float *)s->state.values[0] + first, n * sizeof *s->control);
        } else {
            memset(s->control, 0, n * sizeof *s->control);
        }
        KEDGE_TRY(kedge_server_control_tile(s->control, (const int32_t *const *)s->updates.tile,
                                            s->updates.count, s->spec->control_sites, s->spec->scale, 0, n,
                                            s->tile));
        KEDGE_TRY(state_after.write(state_after.arg, kedge_view_of(s->tile, n * sizeof *s->tile)));
    }
    return KEDGE_OK;
}

/* Every update's tile is needed at once here, unlike in a mean, so their number has a bound. */
static int open_all(struct step *s, const struct kedge_layout *layout,
                    const struct kedge_layout *state_layout, const struct kedge_layout *update_layout,
                    const struct kedge_blob_at models[2], const struct kedge_blob_at *state,
                    const struct kedge_compute_input *inputs, size_t count, struct kedge_diag *d)
{
    if (count > HELD) {
        return kedge_diag_set(d, KEDGE_E_ARG, "%zu updates, a round of this job takes at most %d", count,
                              HELD);
    }
    s->tile = kedge_mem_new(TILE, sizeof *s->tile);
    s->control = kedge_mem_new(TILE, sizeof *s->control);
    if (!s->tile || !s->control) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for the server's step");
    }
    KEDGE_TRY(kedgei_tensors_open(layout, KEDGE_DTYPE_F32, models, sizeof *models, 2, &s->models, d));
    if (state) {
        KEDGE_TRY(kedgei_tensors_open(state_layout, KEDGE_DTYPE_F32, state, sizeof *state, 1, &s->state, d));
        s->has_state = true;
    }
    return kedgei_tensors_open(update_layout, KEDGE_DTYPE_I32, &inputs[0].update, sizeof *inputs, count,
                               &s->updates, d);
}

static int write_both(struct step *s, const struct kedge_layout *layout,
                      const struct kedge_layout *state_layout, struct kedge_sink after,
                      struct kedge_sink state_after, struct kedge_diag *d)
{
    KEDGE_TRY(kedgei_write_header(layout, KEDGE_DTYPE_F32, after));
    KEDGE_TRY(model_run(s, after));
    KEDGE_TRY(kedgei_write_header(state_layout, KEDGE_DTYPE_F32, state_after));
    return control_run(s, state_after, d);
}

int kedge_compute_control_step(const struct kedge_job_spec *spec, const struct kedge_layout *layout,
                               const struct kedge_blob_at *before, const struct kedge_blob_at *aggregate,
                               const struct kedge_blob_at *state, const struct kedge_compute_input *inputs,
                               size_t count, struct kedge_sink after, struct kedge_sink state_after,
                               struct kedge_diag *reterr)
{
    const struct kedge_blob_at models[2] = {*before, *aggregate};
    struct step s = {.spec = spec, .values = layout->values_count};
    struct kedge_layout state_layout, update_layout;
    int err = kedge_job_spec_control_layout(layout, &state_layout, reterr);
    if (err) {
        return err;
    }
    err = kedge_job_spec_update_layout(spec, layout, &update_layout, reterr);
    if (err) {
        kedge_layout_deinit(&state_layout);
        return err;
    }
    err = open_all(&s, layout, &state_layout, &update_layout, models, state, inputs, count, reterr);
    if (!err) {
        err = write_both(&s, layout, &state_layout, after, state_after, reterr);
    }
    if (err == KEDGE_E_NOT_FINITE) {
        (void)kedge_diag_set(reterr, err, "%s: the server's step is not finite; a smaller server_lr may help",
                             aggregate->path);
    }
    kedgei_tensors_close(&s.models);
    kedgei_tensors_close(&s.state);
    kedgei_tensors_close(&s.updates);
    kedge_mem_free(s.tile);
    kedge_mem_free(s.control);
    kedge_layout_deinit(&state_layout);
    kedge_layout_deinit(&update_layout);
    return err;
}
