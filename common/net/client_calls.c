/* Calls in flight: how they end, and who is woken. */
#include "common/net/client.h"
#include "common/net/client_state.h"

void kedgei_call_end(struct kedgei_call *call, int err, struct kedgei_frame *reply)
{
    call->done = true;
    call->err = err;
    call->reply = reply;
    pthread_cond_signal(&call->changed);
}

void kedgei_client_wake_callers(struct kedge_net_client *client)
{
    for (size_t i = 0; i < KEDGE_NET_CALLS_MAX; i++) {
        if (client->calls[i].used) {
            pthread_cond_signal(&client->calls[i].changed);
        }
    }
}
