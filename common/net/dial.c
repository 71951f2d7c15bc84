/* A client's connection, on the client's own thread: dial, serve until it is lost, pause, dial again.
 *
 * The pause doubles up to a maximum and is drawn between its half and its whole, so that the many clients
 * of a server that restarts do not come back in one moment. It begins small again after every connection
 * that was made.
 *
 * While it dials, the thread has the link to itself and holds no mutex, so calls that wait can time out.
 * Every wait is a poll on the socket and on the wake descriptor together: closing the client ends it at
 * once, in a handshake too. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "common/base/os/clock.h"
#include "common/base/os/entropy.h"
#include "common/base/try.h"
#include "common/net/client_state.h"
#include "common/net/resolve.h"
#include "common/net/socket.h"

#define NS_PER_MS 1000000u

static bool is_closing(struct kedge_net_client *client)
{
    pthread_mutex_lock(&client->mutex);
    bool closing = client->closing;
    pthread_mutex_unlock(&client->mutex);
    return closing;
}

/* Waits for events of fd (-1: none), a wake, or the deadline. KEDGE_OK when fd has some; KEDGE_E_TIMEOUT;
 * KEDGE_E_CANCELLED when the client is being closed. Other wakes mean nothing here. */
static int wait_for(struct kedge_net_client *client, int fd, short events, uint64_t deadline_ns)
{
    for (;;) { /* a wake each, or the end */
        uint64_t now = kedge_os_now_ns();
        if (is_closing(client)) {
            return KEDGE_E_CANCELLED;
        }
        if (now >= deadline_ns) {
            return KEDGE_E_TIMEOUT;
        }
        struct pollfd fds[2] = {{.fd = client->wake, .events = POLLIN}, {.fd = fd, .events = events}};
        int n = poll(fds, 2, (int)((deadline_ns - now) / NS_PER_MS) + 1);
        if (fds[0].revents) {
            kedgei_wake_clear(client->wake);
        }
        if (n > 0 && fds[1].revents) {
            return KEDGE_OK;
        }
    }
}

/* ---- dialling ---- */

/* Handshake and greetings, in which the thread has the link to itself. */
static int introduce(struct kedge_net_client *client, uint64_t deadline_ns)
{
    struct kedgei_link *link = &client->link;
    struct kedge_public_key key;
    struct kedgei_frame *done = NULL;
    int err = kedgei_stream_handshake(&link->stream, &key);
    while (err == KEDGE_E_BUSY) {
        link->stream.allowance = KEDGEI_TURN_MAX;
        KEDGE_TRY(
            wait_for(client, link->stream.fd, link->stream.wants_write ? POLLOUT : POLLIN, deadline_ns));
        err = kedgei_stream_handshake(&link->stream, &key);
    }
    if (err) {
        return err;
    }
    struct kedgei_frame *greeting = kedgei_frame_greeting(client->has_claim ? &client->claim : NULL);
    KEDGE_TRY_MEM(greeting);
    kedgei_link_queue(link, greeting);
    err = kedgei_link_send(link, &done);
    while (!err && link->in.state == KEDGEI_GREETING) {
        link->stream.allowance = KEDGEI_TURN_MAX;
        int n = kedgei_link_receive(link);
        err = n < 0 ? n : KEDGE_OK;
        if (n == 0) {
            short events = (short)(POLLIN | (kedgei_link_wants_write(link) ? POLLOUT : 0));
            err = wait_for(client, link->stream.fd, events, deadline_ns);
            if (!err) {
                err = kedgei_link_send(link, &done);
            }
        }
    }
    kedgei_frame_free(done);
    return err;
}

/* Asks a proxy for a way to the server, byte for byte up to the end of its answer: what follows is TLS. */
static int ask_proxy(struct kedge_net_client *client, int fd, uint64_t deadline_ns)
{
    char request[KEDGE_PROXY_REQUEST_MAX];
    uint8_t head[KEDGE_PROXY_HEAD_MAX];
    size_t len = 0, request_len = kedgei_proxy_request(&client->address, client->proxy_basic, request);
    bool sent = request_len > 0 && send(fd, request, request_len, MSG_NOSIGNAL) == (ssize_t)request_len;
    kedge_wipe(request, sizeof request);
    if (!sent) {
        return KEDGE_E_UNREACHABLE; /* an empty socket takes a line */
    }
    unsigned status = 0;
    while (status == 0) {
        ssize_t n = recv(fd, head + len, 1, 0);
        if (n == 1) {
            status = kedgei_proxy_status(kedge_view_of(head, ++len));
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return KEDGE_E_PROXY;
        } else {
            KEDGE_TRY(wait_for(client, fd, POLLIN, deadline_ns));
        }
    }
    return status >= 200 && status < 300       ? KEDGE_OK
           : status == KEDGE_PROXY_WANTS_LOGIN ? KEDGE_E_PROXY_LOGIN
                                               : KEDGE_E_PROXY;
}

/* Owns fd. */
static int try_socket(struct kedge_net_client *client, int fd)
{
    if (fd < 0) {
        return KEDGE_E_UNREACHABLE;
    }
    uint64_t deadline = kedge_os_now_ns() + (uint64_t)KEDGE_NET_HANDSHAKE_MS * NS_PER_MS;
    KEDGE_TRY(kedgei_link_init(&client->link, fd, client->tls, client->frame_max));
    int err = wait_for(client, fd, POLLOUT, deadline);
    err = !err && kedgei_socket_error(fd) != 0 ? KEDGE_E_UNREACHABLE : err;
    if (!err && client->has_proxy && client->proxy.connects) {
        err = ask_proxy(client, fd, deadline);
    }
    if (!err) {
        err = introduce(client, deadline);
    }
    if (err) {
        kedgei_link_deinit(&client->link);
    }
    return err;
}

/* The addresses of a name are tried one after the other until one answers with the right key. An
 * address that refuses costs little; one that does not answer costs the deadline that it has. */
static int try_names(struct kedge_net_client *client)
{
    struct kedgei_resolution *r = NULL;
    uint64_t deadline = kedge_os_now_ns() + (uint64_t)KEDGE_NET_CONNECT_MS * NS_PER_MS;
    const struct kedgei_address *to = client->has_proxy ? &client->proxy.address : &client->address;
    KEDGE_TRY(kedgei_resolve_begin(to->host, to->port, &r));
    int err = wait_for(client, kedgei_resolve_fd(r), POLLIN, deadline);
    if (!err) {
        err = KEDGE_E_UNREACHABLE;
        for (const struct addrinfo *a = kedgei_resolve_list(r); a && err && err != KEDGE_E_CANCELLED;
             a = a->ai_next) {
            err = try_socket(client, kedgei_socket_connect(a->ai_addr, a->ai_addrlen));
        }
    }
    kedgei_resolve_end(r);
    return err;
}

static int dial(struct kedge_net_client *client)
{
    return client->address.kind == KEDGE_NET_IPC
               ? try_socket(client, kedgei_socket_connect_path(client->address.host))
               : try_names(client);
}

/* ---- serving ---- */

/* Caller holds the mutex. A reply for which nobody waits any more is thrown away. */
static void hand_over(struct kedge_net_client *client, struct kedgei_frame *reply)
{
    struct kedgei_call *call = &client->calls[reply->call % KEDGE_NET_CALLS_MAX];
    if (call->used && call->sent && !call->done && call->id == reply->call) {
        kedgei_call_end(call, KEDGE_OK, reply);
    } else {
        kedgei_frame_free(reply);
    }
}

/* Caller holds the mutex. All that is there for this turn, or the error that ends the connection. */
static int receive(struct kedge_net_client *client)
{
    struct kedgei_link *link = &client->link;
    link->stream.allowance = KEDGEI_TURN_MAX;
    int n;
    do {
        n = kedgei_link_receive(link);
        if (n > 0 && link->in.state == KEDGEI_NO_MEMORY) {
            int err = kedgei_link_give(link);
            n = err ? err : n;
        }
        if (n > 0 && link->in.state == KEDGEI_WHOLE) {
            hand_over(client, kedgei_decoder_take(&link->in));
            n = kedgei_stream_has_pending(&link->stream);
        }
    } while (n > 0);
    return n;
}

/* Caller holds the mutex; returns with it, when the connection is lost or the client is being closed. */
static void serve(struct kedge_net_client *client)
{
    struct kedgei_link *link = &client->link;
    for (int err = KEDGE_OK; !err && !client->closing;) {
        struct pollfd fds[2] = {{.fd = client->wake, .events = POLLIN},
                                {.fd = link->stream.fd, .events = POLLIN}};
        if (kedgei_link_wants_write(link)) {
            fds[1].events |= POLLOUT;
        }
        pthread_mutex_unlock(&client->mutex);
        (void)poll(fds, 2, -1);
        if (fds[0].revents) {
            kedgei_wake_clear(client->wake);
        }
        pthread_mutex_lock(&client->mutex);
        if ((fds[1].revents & ~POLLOUT) || link->stream.wants_write) {
            err = receive(client);
        }
        if (!err && link->first) {
            struct kedgei_frame *done = NULL;
            err = kedgei_link_send(link, &done);
            for (struct kedgei_frame *next; done; done = next) {
                next = done->next;
                kedgei_frame_free(done);
            }
        }
    }
}

static void tell_changed(struct kedge_net_client *client)
{
    if (client->changed) {
        client->changed(client->changed_arg);
    }
}

/* Caller holds the mutex. Whether the server has acted on a request that was sent is unknown: it fails as
 * closed, and the caller decides. Calls that wait for a connection go on waiting. */
static void lose(struct kedge_net_client *client)
{
    client->connected = false;
    tell_changed(client);
    kedgei_link_deinit(&client->link);
    for (size_t i = 0; i < KEDGE_NET_CALLS_MAX; i++) {
        struct kedgei_call *call = &client->calls[i];
        if (call->used && call->sent && !call->done) {
            kedgei_call_end(call, KEDGE_E_CLOSED, NULL);
        }
    }
    kedgei_client_wake_callers(client);
}

/* Between half of it and all of it, so that many clients of one server do not come back at once. */
static uint64_t jitter(uint64_t pause_ns)
{
    uint32_t r;
    uint64_t half_ns = pause_ns / 2;
    kedge_os_random(&r, sizeof r);
    return half_ns + (uint64_t)((double)half_ns * ((double)r / (double)UINT32_MAX));
}

void *kedgei_client_run(void *arg)
{
    struct kedge_net_client *client = arg;
    const uint64_t least = (uint64_t)KEDGE_NET_RECONNECT_MIN_MS * NS_PER_MS;
    uint64_t pause = least;
    while (!is_closing(client)) {
        int err = dial(client);
        pthread_mutex_lock(&client->mutex);
        if (!err) {
            pause = least;
            client->connected = true;
            tell_changed(client);
            client->reported = client->refusals;
            kedgei_client_wake_callers(client);
            serve(client);
            lose(client);
        } else if (err == KEDGE_E_PEER_AUTH || err == KEDGE_E_FORMAT || err == KEDGE_E_VERSION
                   || err == KEDGE_E_PROXY || err == KEDGE_E_PROXY_LOGIN) {
            client->refusal = err == KEDGE_E_FORMAT ? KEDGE_E_VERSION : err;
            client->refusals++;
            kedgei_client_wake_callers(client);
        }
        pthread_mutex_unlock(&client->mutex);
        (void)wait_for(client, -1, 0, kedge_os_now_ns() + jitter(pause));
        pause = pause * 2 < client->pause_max_ns ? pause * 2 : client->pause_max_ns;
    }
    return NULL;
}
