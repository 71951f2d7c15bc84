/* The one file that knows nng. TLS is left out on purpose: a subscriber that is killed in the middle of a
 * message can leave nng 1.5's TLS so that the socket never closes (nanomsg/nng#1543); ipc, tcp and ws do not.
 *
 * Callbacks about connections come from nng's own threads; all that they touch is one counter. */
#include "coordinator/events/host/publish.h"

#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <stdatomic.h>

#include "common/base/mem.h"

struct kedge_publish {
    nng_socket socket;
    atomic_int subscribers;
};

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct kedge_publish *p = arg;
    if (event == NNG_PIPE_EV_ADD_PRE) {
        if (atomic_fetch_add(&p->subscribers, 1) >= KEDGE_PUBLISH_SUBSCRIBERS_MAX) {
            nng_pipe_close(pipe); /* its REM_POST counts it out again */
        }
    } else if (event == NNG_PIPE_EV_REM_POST) {
        atomic_fetch_sub(&p->subscribers, 1);
    }
}

static int fail(struct kedge_diag *reterr, const char *what, int nng_err)
{
    int err = nng_err == NNG_ENOMEM ? KEDGE_E_NOMEM : KEDGE_E_UNREACHABLE;
    return kedge_diag_set(reterr, err, "%s: %s", what, nng_strerror(nng_err));
}

int kedge_publish_open(struct kedge_publish **ret, struct kedge_diag *reterr)
{
    struct kedge_publish *p = kedge_mem_new(1, sizeof *p);
    if (!p) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for a stream");
    }
    int err = nng_pub0_open(&p->socket);
    if (err) {
        kedge_mem_free(p);
        return fail(reterr, "cannot open a stream", err);
    }
    err = nng_socket_set_int(p->socket, NNG_OPT_SENDBUF, KEDGE_PUBLISH_WAITING_MAX);
    err = err ? err : nng_pipe_notify(p->socket, NNG_PIPE_EV_ADD_PRE, on_pipe, p);
    err = err ? err : nng_pipe_notify(p->socket, NNG_PIPE_EV_REM_POST, on_pipe, p);
    if (err) {
        kedge_publish_close(p);
        return fail(reterr, "cannot set up a stream", err);
    }
    *ret = p;
    return KEDGE_OK;
}

int kedge_publish_listen(struct kedge_publish *p, const char *url, int *ret_port, struct kedge_diag *reterr)
{
    nng_listener listener;
    *ret_port = 0;
    int err = nng_listen(p->socket, url, &listener, 0);
    if (err) {
        return fail(reterr, url, err);
    }
    if (nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, ret_port) != 0) {
        *ret_port = 0;
    }
    return KEDGE_OK;
}

unsigned kedge_publish_subscribers(struct kedge_publish *p)
{
    const int n = atomic_load(&p->subscribers);
    return n > 0 ? (unsigned)n : 0;
}

int kedge_publish_say(struct kedge_publish *p, struct kedge_view message)
{
    nng_msg *msg;
    int err = nng_msg_alloc(&msg, 0);
    if (err) {
        return KEDGE_E_NOMEM;
    }
    err = nng_msg_append(msg, message.ptr, message.len);
    err = err ? err : nng_sendmsg(p->socket, msg, NNG_FLAG_NONBLOCK);
    if (err) {
        nng_msg_free(msg);
    }
    return err ? KEDGE_E_UNREACHABLE : KEDGE_OK;
}

void kedge_publish_close(struct kedge_publish *p)
{
    if (p) {
        (void)nng_close(p->socket);
        kedge_mem_free(p);
    }
}
