/* A state file has its vectors one behind the other, a step needs and makes them side by side: so the step is
 * run once for each vector, which costs less than the memory of a model. */
#include "round/step.h"

#include <string.h>

#include "common/base/try.h"
#include "round/compute_impl.h"
#include "round/shards.h"

enum { TILE = KEDGEI_TENSORS_TILE_MAX };

int kedge_compute_check_state(const struct kedge_layout *layout, enum kedge_server server, const char *path,
                              struct kedge_diag *reterr)
{
    struct kedge_layout state;
    int err = kedge_job_spec_state_layout(layout, server, &state, reterr);
    if (!err) {
        err = kedge_compute_check_model(&state, path, reterr);
        kedge_layout_deinit(&state);
    }
    return err;
}

struct step {
    const struct kedge_job_spec *spec;
    struct kedge_strategy_options options;   /* as they hold in the round */
    const float *before, *aggregate, *state; /* coordinate 0; state NULL: zeros */
    uint64_t values;                         /* of a model */
    size_t states, pass;
    struct kedge_sink after, state_after;
};

static size_t tile_len(void *arg, uint64_t first)
{
    const struct step *s = arg;
    return s->values - first < TILE ? (size_t)(s->values - first) : TILE;
}

/* One tile: the model after and all states after, side by side in `out`. The state before is copied to where
 * the state after is made, since kedge_server_step changes it in place and the file before is mapped
 * read-only. */
static int step_tile(void *arg, unsigned thread, uint64_t first, size_t n, void *out, struct kedge_diag *d)
{
    const struct step *s = arg;
    float *tiles = out, *state[KEDGE_SERVER_STATES_MAX] = {NULL};
    (void)thread;
    (void)d;
    for (size_t k = 0; k < s->states; k++) {
        state[k] = tiles + (k + 1) * TILE;
        if (s->state) {
            memcpy(state[k], s->state + k * s->values + first, n * sizeof *state[k]);
        } else {
            memset(state[k], 0, n * sizeof *state[k]);
        }
    }
    return kedge_server_step(s->spec->server, &s->options, s->before + first, s->aggregate + first, state, n,
                             tiles);
}

static int put_tile(void *arg, uint64_t first, size_t n, const void *out)
{
    const struct step *s = arg;
    const float *tiles = out;
    (void)first;
    if (s->pass == 0) {
        KEDGE_TRY(s->after.write(s->after.arg, kedge_view_of(tiles, n * sizeof *tiles)));
    }
    return s->state_after.write(s->state_after.arg,
                                kedge_view_of(tiles + (s->pass + 1) * TILE, n * sizeof *tiles));
}

/* For each state vector all tiles of the step are computed again and one vector is written; the model is
 * written in the first pass. The result is the same as side by side, for a tile depends on no other. */
static int run_step(struct step *s, struct kedge_diag *d)
{
    const struct kedge_cut *cut = &s->after.cut;
    const struct kedgei_tiles tiles = {.arg = s,
                                       .values = s->values,
                                       .tile_bytes = (s->states + 1) * TILE * sizeof(float),
                                       .length = tile_len,
                                       .make = step_tile,
                                       .take = put_tile};
    for (s->pass = 0; s->pass < s->states; s->pass++) {
        KEDGE_TRY(kedgei_shards_run(cut, kedgei_shards_threads(cut, s->values), &tiles, d));
    }
    return KEDGE_OK;
}

int kedge_compute_server(const struct kedge_job_spec *spec, uint32_t round, const struct kedge_layout *layout,
                         const struct kedge_blob_at *before, const struct kedge_blob_at *aggregate,
                         const struct kedge_blob_at *state_before, struct kedge_sink after,
                         struct kedge_sink state_after, struct kedge_diag *reterr)
{
    const struct kedge_blob_at both[2] = {*before, *aggregate};
    struct kedgei_tensors models = {.count = 0}, state = {.count = 0};
    struct kedge_layout state_layout;
    struct step s = {.spec = spec,
                     .options = kedge_server_options(&spec->options, round),
                     .values = layout->values_count,
                     .states = kedge_server_states(spec->server),
                     .after = after,
                     .state_after = state_after};
    int err = kedge_job_spec_state_layout(layout, spec->server, &state_layout, reterr);
    if (err) {
        return err;
    }
    err = kedgei_tensors_open(layout, KEDGE_DTYPE_F32, both, sizeof *both, 2, &models, reterr);
    if (!err && state_before) {
        err = kedgei_tensors_open(&state_layout, KEDGE_DTYPE_F32, state_before, sizeof *state_before, 1,
                                  &state, reterr);
    }
    if (!err) {
        err = kedgei_write_header(layout, KEDGE_DTYPE_F32, after);
    }
    if (!err) {
        err = kedgei_write_header(&state_layout, KEDGE_DTYPE_F32, state_after);
    }
    if (!err) {
        s.before = models.values[0];
        s.aggregate = models.values[1];
        s.state = state_before ? state.values[0] : NULL;
        err = run_step(&s, reterr);
        if (err == KEDGE_E_NOT_FINITE) {
            (void)kedge_diag_set(reterr, err,
                                 "%s: the server's step is not finite; a smaller server_lr may help",
                                 aggregate->path);
        }
    }
    kedgei_tensors_close(&models);
    kedgei_tensors_close(&state);
    kedge_layout_deinit(&state_layout);
    return err;
}
