#include "strategy/server.h"

#include <math.h>
#include <string.h>

size_t kedge_server_states(enum kedge_server server)
{
    switch (server) {
    case KEDGE_SERVER_NONE:
        return 0;
    case KEDGE_SERVER_MOMENTUM:
    case KEDGE_SERVER_CONTROL:
        return 1;
    case KEDGE_SERVER_ADAGRAD:
    case KEDGE_SERVER_YOGI:
    case KEDGE_SERVER_ADAM:
        return 2;
    }
    return 0;
}

/* Only the rate changes with the round; the states' own decay stays as the paper has it. */
struct kedge_strategy_options kedge_server_options(const struct kedge_strategy_options *options,
                                                   uint32_t round)
{
    struct kedge_strategy_options now = *options;
    if (options->settle > 0) {
        now.server_lr = options->server_lr * (options->settle / (options->settle + (double)round));
    }
    return now;
}

/* The second moment's new value. */
static double second_moment(enum kedge_server server, const struct kedge_strategy_options *o, double v,
                            double d)
{
    double d2 = d * d;
    if (server == KEDGE_SERVER_ADAGRAD) {
        return v + d2;
    }
    double keep = 1 - o->second_moment;
    if (server == KEDGE_SERVER_YOGI) {
        double gap = v - d2;
        double sign = gap > 0 ? 1.0 : gap < 0 ? -1.0 : 0.0;
        return v - (keep * d2) * sign;
    }
    return o->second_moment * v + keep * d2;
}

/* The direction in which the server steps; states are brought up to date. Each state is rounded to float
 * before it is used: an auditor has the file, in which there are floats, and must come to the same step. */
static double step_of(enum kedge_server server, const struct kedge_strategy_options *o, double d,
                      float *const state[KEDGE_SERVER_STATES_MAX], size_t i)
{
    if (server == KEDGE_SERVER_CONTROL) {
        return d;
    }
    if (server == KEDGE_SERVER_MOMENTUM) { /* v ← βv − D; x ← x − ηv, with the sign turned */
        state[0][i] = (float)(o->momentum * (double)state[0][i] + d);
        return (double)state[0][i];
    }
    state[0][i] = (float)(o->momentum * (double)state[0][i] + (1 - o->momentum) * d);
    state[1][i] = (float)second_moment(server, o, (double)state[1][i], d);
    if (!isfinite(state[1][i])) { /* an infinite one would silently stop this value for good */
        return (double)NAN;
    }
    return (double)state[0][i] / (sqrt((double)state[1][i]) + o->adaptivity);
}

int kedge_server_step(enum kedge_server server, const struct kedge_strategy_options *options,
                      const float *before, const float *aggregate,
                      float *const state[KEDGE_SERVER_STATES_MAX], size_t n, float *after)
{
    bool whole = server == KEDGE_SERVER_CONTROL && options->server_lr >= 1 && options->server_lr <= 1;
    if (server == KEDGE_SERVER_NONE || whole) { /* x + (a − x) may miss a by a bit */
        for (size_t i = 0; i < n; i++) {
            if (!isfinite(aggregate[i])) {
                return KEDGE_E_NOT_FINITE;
            }
        }
        memmove(after, aggregate, n * sizeof *after);
        return KEDGE_OK;
    }
    for (size_t i = 0; i < n; i++) {
        double x = (double)before[i];
        double step = step_of(server, options, (double)aggregate[i] - x, state, i);
        float result = (float)(x + options->server_lr * step);
        if (!isfinite(result)) {
            return KEDGE_E_NOT_FINITE;
        }
        after[i] = result;
    }
    return KEDGE_OK;
}
