/* The TLS connections of one identity: which there are, which have not spoken, and how they are ended. */
#include <sys/socket.h>

#include "common/base/os/clock.h"
#include "common/net/engine_openssl.h"

bool kedgei_conn_add(struct nng_tls_engine_conn *conn)
{
    struct kedgei_tls *tls = conn->tls;
    pthread_mutex_lock(&tls->mutex);
    bool room = !tls->stopped && (!tls->server || tls->young_count < tls->handshakes_max);
    tls->refused_count += !room && !tls->stopped;
    conn->young = true;
    conn->number = ++tls->numbers;
    conn->prev = tls->youngest;
    *(tls->youngest ? &tls->youngest->next : &tls->oldest) = conn;
    tls->youngest = conn;
    tls->young_count++;
    pthread_mutex_unlock(&tls->mutex);
    return room;
}

void kedgei_conn_spoke(struct nng_tls_engine_conn *conn)
{
    pthread_mutex_lock(&conn->tls->mutex);
    conn->tls->young_count -= conn->young;
    conn->young = false;
    pthread_mutex_unlock(&conn->tls->mutex);
}

void kedgei_conn_remove(struct nng_tls_engine_conn *conn)
{
    struct kedgei_tls *tls = conn->tls;
    kedgei_conn_spoke(conn);
    pthread_mutex_lock(&tls->mutex);
    *(conn->prev ? &conn->prev->next : &tls->oldest) = conn->next;
    *(conn->next ? &conn->next->prev : &tls->youngest) = conn->prev;
    pthread_mutex_unlock(&tls->mutex);
}

enum { SETTLE_MS = 5, SETTLE_MAX_MS = 1000 };
#define NS_PER_MS 1000000u

/* A busy connection is ended by its next operation (check_alive), one at rest by shutdown(2), which
 * nng takes for the peer's going. Descriptors are nng's to close, which it does after deinit_conn; so
 * those in the list are open. True when it is done, or nothing is left to do. Caller holds the mutex. */
static bool end_conn(struct nng_tls_engine_conn *conn, uint64_t now_ns)
{
    atomic_store(&conn->ending, true);
    uint64_t touched = atomic_load(&conn->touched_ns), rest = now_ns > touched ? now_ns - touched : 0;
    bool settled =
        !atomic_load(&conn->in.in_gap) && !atomic_load(&conn->out.in_gap) && rest >= SETTLE_MS * NS_PER_MS;
    if (!settled && rest < (uint64_t)SETTLE_MAX_MS * NS_PER_MS) {
        return false;
    }
    shutdown(conn->fd, SHUT_RDWR);
    return true;
}

uint64_t kedgei_tls_reap(struct kedgei_tls *tls, uint64_t now_ns)
{
    uint64_t next = KEDGE_TIME_NEVER, soon = now_ns + SETTLE_MS * NS_PER_MS;
    pthread_mutex_lock(&tls->mutex);
    for (struct nng_tls_engine_conn *c = tls->oldest; c; c = c->next) {
        if (c->young && c->since_ns + tls->handshake_ns <= now_ns) {
            shutdown(c->fd, SHUT_RDWR); /* it waits for its peer, so nothing is between two steps */
            c->young = false;
            tls->young_count--;
            tls->silent_count++;
        } else if (c->young && c->since_ns + tls->handshake_ns < next) {
            next = c->since_ns + tls->handshake_ns;
        }
        if (atomic_load(&c->ending) && !end_conn(c, now_ns)) {
            next = soon < next ? soon : next;
        }
    }
    pthread_mutex_unlock(&tls->mutex);
    return next;
}

static void end_all(struct kedgei_tls *tls, const struct kedge_public_key *key, uint64_t number)
{
    uint64_t now = kedge_os_now_ns();
    for (struct nng_tls_engine_conn *c = tls->oldest; c; c = c->next) {
        if (key ? c->authenticated && kedge_public_key_eq(&c->key, key)
                : number == 0 || c->number == number) {
            end_conn(c, now);
        }
    }
}

void kedgei_tls_end_key(struct kedgei_tls *tls, const struct kedge_public_key *key)
{
    pthread_mutex_lock(&tls->mutex);
    end_all(tls, key, 0);
    pthread_mutex_unlock(&tls->mutex);
}

void kedgei_tls_end(struct kedgei_tls *tls, uint64_t number)
{
    pthread_mutex_lock(&tls->mutex);
    end_all(tls, NULL, number);
    pthread_mutex_unlock(&tls->mutex);
}

void kedgei_tls_stop(struct kedgei_tls *tls)
{
    pthread_mutex_lock(&tls->mutex);
    tls->stopped = true;
    end_all(tls, NULL, 0);
    pthread_mutex_unlock(&tls->mutex);
}
