/* The layouts of a job's files beside its model: updates, which may have each tensor a second time, and the
 * server's state, which has it once for each of its vectors. */
#include <stdio.h>

#include "common/base/try.h"
#include "job/job_spec_impl.h"
#include "strategy/server.h"

static int add_all(struct kedge_layout *ret, const char *prefix, const struct kedge_layout *layout,
                   struct kedge_diag *reterr)
{
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct kedge_tensor *t = &layout->tensors[i];
        char name[2 * KEDGE_TENSOR_NAME_MAX];
        snprintf(name, sizeof name, "%s%s", prefix, t->name);
        KEDGE_TRY(kedge_layout_add(ret, name, t->dims, t->dims_count, reterr));
    }
    return KEDGE_OK;
}

/* Of a job with control variates an update is one vector with the change of the control variate after that of
 * the model, so that it is encrypted, checked, refused and erased as one. */
int kedge_job_spec_update_layout(const struct kedge_job_spec *spec, const struct kedge_layout *layout,
                                 struct kedge_layout *ret, struct kedge_diag *reterr)
{
    kedge_layout_init(ret, KEDGE_DTYPE_I32);
    int err = add_all(ret, "", layout, reterr);
    if (!err && kedge_job_spec_has_control(spec)) {
        err = add_all(ret, "control/", layout, reterr);
    }
    if (err) {
        kedge_layout_deinit(ret);
    }
    return err;
}

int kedge_job_spec_control_layout(const struct kedge_layout *layout, struct kedge_layout *ret,
                                  struct kedge_diag *reterr)
{
    kedge_layout_init(ret, KEDGE_DTYPE_F32);
    int err = add_all(ret, "control/", layout, reterr);
    if (err) {
        kedge_layout_deinit(ret);
    }
    return err;
}

static const char *state_prefix(enum kedge_server server, size_t k)
{
    return server == KEDGE_SERVER_CONTROL ? "control/" : k == 0 ? "momentum/" : "second_moment/";
}

/* A state is a file like a model, with a name for each of its tensors, so that any reader of safetensors
 * can look at it. */
int kedge_job_spec_state_layout(const struct kedge_layout *layout, enum kedge_server server,
                                struct kedge_layout *ret, struct kedge_diag *reterr)
{
    int err = KEDGE_OK;
    kedge_layout_init(ret, KEDGE_DTYPE_F32);
    for (size_t k = 0; k < kedge_server_states(server) && !err; k++) {
        err = add_all(ret, state_prefix(server, k), layout, reterr);
    }
    if (err) {
        kedge_layout_deinit(ret);
    }
    return err;
}

/* Names with a prefix, twice as many tensors and values may be more than a file can have, though the model
 * itself is not. */
int kedgei_spec_check_room(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    struct kedge_layout model, more;
    const size_t states = kedge_server_states(s->server);
    KEDGE_TRY(kedge_job_spec_layout(s, &model, d));
    int err = kedge_job_spec_update_layout(s, &model, &more, d);
    if (err) {
        err =
            kedge_diag_wrap(d, err,
                            "job spec: \"strategy\": there is no room for the updates of \"%s\", which have "
                            "each tensor a second time, as \"control/NAME\"",
                            s->strategy->name);
    } else {
        kedge_layout_deinit(&more);
        err = kedge_job_spec_state_layout(&model, s->server, &more, d);
        if (err) {
            err =
                kedge_diag_wrap(d, err,
                                "job spec: \"server\": there is no room for the state of \"%s\", \"%sNAME\" "
                                "for each tensor",
                                kedge_job_spec_server_name(s), state_prefix(s->server, states - 1));
        } else {
            kedge_layout_deinit(&more);
        }
    }
    kedge_layout_deinit(&model);
    return err;
}
