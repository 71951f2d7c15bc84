#include "strategy/server.h"

#include <math.h>

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
        return v - keep * d2 * sign;
    }
    return o->second_moment * v + keep * d2;
}

int kedge_server_step(enum kedge_server server, const struct kedge_strategy_options *options,
                      const float *before, const float *aggregate,
                      float *const state[KEDGE_SERVER_STATES_MAX], size_t n, float *after)
{
    const struct kedge_strategy_options *o = options;
    for (size_t i = 0; i < n; i++) {
        double x = (double)before[i], d = (double)aggregate[i] - x, step = d;
        if (server == KEDGE_SERVER_MOMENTUM) { /* v ← βv − D; x ← x − ηv, with the sign turned */
            float m = (float)(o->momentum * (double)state[0][i] + d);
            state[0][i] = m;
            step = (double)m;
        } else if (kedge_server_states(server) == 2) {
            float m = (float)(o->momentum * (double)state[0][i] + (1 - o->momentum) * d);
            float v = (float)second_moment(server, o, (double)state[1][i], d);
            state[0][i] = m;
            state[1][i] = v;
            step = (double)m / (sqrt((double)v) + o->adaptivity);
        }
        float result = (float)(x + o->server_lr * step);
        if (!isfinite(result)) {
            return KEDGE_E_NOT_FINITE;
        }
        after[i] = result;
    }
    return KEDGE_OK;
}
