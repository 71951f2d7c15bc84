#include "common/net/flow.h"

#include <string.h>

#include "common/base/bytes.h"

/* Takes bytes of a greeting or a length; true when it is complete. */
static bool take_head(struct kedgei_flow *flow, const uint8_t **data, size_t *n)
{
    size_t want = sizeof flow->head - flow->head_len, take = *n < want ? *n : want;
    memcpy(flow->head + flow->head_len, *data, take);
    flow->head_len += take;
    *data += take;
    *n -= take;
    return flow->head_len == sizeof flow->head;
}

void kedgei_flow_moved(struct kedgei_flow *flow, const uint8_t *data, size_t n)
{
    while (n > 0) { /* every turn takes a byte or more */
        if (flow->body_left > 0) {
            size_t take = n < flow->body_left ? n : (size_t)flow->body_left;
            flow->body_left -= take;
            data += take;
            n -= take;
        } else if (take_head(flow, &data, &n)) {
            flow->body_left = flow->greeted ? kedge_load_be64(flow->head) : 0;
            flow->greeted = true;
            flow->head_len = 0;
        }
    }
    atomic_store(&flow->in_gap, flow->body_left > 0 || flow->head_len > 0);
}

void kedgei_flow_waits(struct kedgei_flow *flow)
{
    atomic_store(&flow->in_gap, false);
}
