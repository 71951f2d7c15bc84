/* TLS 1.3 by OpenSSL behind nng's engine interface, for nng 1.5.2 (docs/modules/net.md says what was
 * found there).
 *
 * Rules that this file keeps, because nng 1.5.2 fails in odd ways otherwise:
 * - nng is initialised before the engine is registered, else its own initialisation puts mbedTLS back.
 * - The engine never returns NNG_ECLOSED: one such connection ends the listener's accepting.
 * - nng loses errors of TCP that come while it is not reading; so when nothing can be read or written,
 *   the state of the TCP connection is looked at.
 * - Connections are ended by shutdown(2) on their descriptor; closing nng's stream from another thread
 *   ends the listener.
 * - nng makes configurations of its own for every dialer and listener; those have no identity and fail
 *   closed.
 *
 * The transport argument of a connection is used as its nng_stream, which holds for the layout of
 * 1.5.2 only; hence the check of the version. */
#include "common/net/engine_openssl.h"

#include <nng/supplemental/tls/engine.h>
#include <openssl/err.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/net/meter.h"
#include "common/net/sockets.h"

#define ENGINE_NAME "kedge-openssl"
#define NNG_VERSION_KNOWN "1.5.2"

struct nng_tls_engine_config {
    struct kedgei_tls *tls; /* NULL: made by nng itself, fails closed */
};

/* Set around calls into nng that reach this file on the same thread. */
static _Thread_local struct kedgei_tls *new_config_tls;
struct question { /* asked through the option "verified" */
    struct kedgei_tls_peer peer;
    struct kedgei_meter *meter; /* to attach, or NULL */
};
static _Thread_local struct question *question;

static BIO_METHOD *bio_method;

/* ---- connections: bytes ---- */

static int write_bio(BIO *bio, const char *data, size_t len, size_t *ret_len)
{
    struct nng_tls_engine_conn *conn = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    int rv = nng_tls_engine_send(conn->transport, (const uint8_t *)data, &len);
    if (rv == 0) {
        *ret_len = len;
        return 1;
    }
    if (rv == NNG_EAGAIN && kedgei_socket_is_open(conn->fd)) {
        BIO_set_retry_write(bio);
    } else {
        conn->dead = NNG_ECONNRESET;
    }
    return 0;
}

static int read_bio(BIO *bio, char *data, size_t len, size_t *ret_len)
{
    struct nng_tls_engine_conn *conn = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    int rv = nng_tls_engine_recv(conn->transport, (uint8_t *)data, &len);
    if (rv == 0) {
        *ret_len = len;
        return 1;
    }
    if (rv == NNG_EAGAIN && kedgei_socket_is_open(conn->fd)) {
        BIO_set_retry_read(bio);
    } else {
        conn->dead = NNG_ECONNRESET;
    }
    return 0;
}

static long control_bio(BIO *bio, int command, long number, void *ptr)
{
    (void)bio, (void)number, (void)ptr;
    return command == BIO_CTRL_FLUSH; /* nothing is buffered */
}

static BIO_METHOD *new_bio_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, ENGINE_NAME);
    if (method
        && (BIO_meth_set_write_ex(method, write_bio) != 1 || BIO_meth_set_read_ex(method, read_bio) != 1
            || BIO_meth_set_ctrl(method, control_bio) != 1)) {
        BIO_meth_free(method);
        return NULL;
    }
    return method;
}

/* ---- connections: what nng calls ---- */

static void close_conn(struct nng_tls_engine_conn *conn)
{
    if (conn->ssl && !conn->dead && SSL_is_init_finished(conn->ssl)) {
        ERR_clear_error();
        SSL_shutdown(conn->ssl);
        ERR_clear_error();
    }
    if (!conn->dead) {
        conn->dead = NNG_ECONNRESET; /* a receive that nng queues after this would wait for ever */
    }
}

static void deinit_conn(struct nng_tls_engine_conn *conn)
{
    if (conn->tls) { /* else init was not called or failed */
        kedgei_conn_remove(conn);
        kedgei_meter_drop(conn->meter);
        SSL_free(conn->ssl);
        kedgei_tls_drop(conn->tls);
        conn->tls = NULL;
        conn->ssl = NULL;
    }
}

static int init_conn(struct nng_tls_engine_conn *conn, void *transport, struct nng_tls_engine_config *config)
{
    if (!config->tls) {
        return NNG_EPEERAUTH;
    }
    conn->transport = transport;
    struct kedgei_ends ends;
    conn->since_ns = kedge_os_now_ns();
    conn->ssl = SSL_new(config->tls->ctx);
    BIO *bio = BIO_new(bio_method);
    conn->fd = kedgei_stream_ends(transport, &ends) ? kedgei_find_socket(&ends) : -1;
    if (!conn->ssl || !bio || conn->fd < 0) {
        SSL_free(conn->ssl);
        conn->ssl = NULL;
        BIO_free(bio);
        return NNG_ECONNRESET;
    }
    conn->tls = config->tls;
    kedgei_tls_hold(conn->tls);
    BIO_set_data(bio, conn);
    BIO_set_init(bio, 1);
    SSL_set_bio(conn->ssl, bio, bio);
    if (conn->tls->server) {
        SSL_set_accept_state(conn->ssl);
    } else {
        SSL_set_connect_state(conn->ssl);
    }
    return kedgei_conn_add(conn) ? 0 : NNG_ECONNRESET; /* deinit follows in any case */
}

/* After an operation of OpenSSL that failed: the error for nng. */
static int judge(struct nng_tls_engine_conn *conn, int result)
{
    int reason = SSL_get_error(conn->ssl, result);
    if (!conn->dead && (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE)) {
        return NNG_EAGAIN;
    }
    if (!conn->dead) {
        conn->dead = reason == SSL_ERROR_SSL ? NNG_EPEERAUTH : NNG_ECONNRESET;
    }
    ERR_clear_error();
    if (conn->dead == NNG_EPEERAUTH) {
        kedgei_tls_report_refusal(conn->tls);
    }
    return conn->dead;
}

/* The handshake may complete within any operation. */
static int check_authenticated(struct nng_tls_engine_conn *conn)
{
    if (!conn->authenticated && SSL_is_init_finished(conn->ssl)) {
        struct kedge_public_key key;
        if (!kedgei_cert_key(SSL_get0_peer_certificate(conn->ssl), &key)) {
            conn->dead = NNG_EPEERAUTH; /* verify_peer saw to it; a second line */
            kedgei_tls_report_refusal(conn->tls);
            return conn->dead;
        }
        pthread_mutex_lock(&conn->tls->mutex);
        conn->key = key;
        conn->authenticated = true;
        pthread_mutex_unlock(&conn->tls->mutex);
    }
    return 0;
}

static int shake_hands(struct nng_tls_engine_conn *conn)
{
    if (conn->dead) {
        return conn->dead;
    }
    ERR_clear_error();
    int result = SSL_do_handshake(conn->ssl);
    return result == 1 ? check_authenticated(conn) : judge(conn, result);
}

/* Before each operation: nng hears of a dead connection in one direction only while the other is not
 * in a gap; that one comes next, and is told in this one's place (flow.h). */
static int check_alive(struct nng_tls_engine_conn *conn, struct kedgei_flow *asking,
                       const struct kedgei_flow *other)
{
    atomic_store(&conn->touched_ns, kedge_os_now_ns());
    if (atomic_load(&conn->ending) && !conn->dead) {
        conn->dead = NNG_ECONNRESET;
    }
    if (conn->dead && atomic_load(&other->in_gap)) {
        kedgei_flow_waits(asking);
        return NNG_EAGAIN;
    }
    return conn->dead;
}

/* After each operation: notes the outcome, which may be the connection's death. */
static int note_result(struct nng_tls_engine_conn *conn, int rv, struct kedgei_flow *asking,
                       const struct kedgei_flow *other)
{
    if ((rv == 0 || rv == NNG_EAGAIN) && check_authenticated(conn) != 0) {
        rv = conn->dead;
    }
    if (rv == NNG_EAGAIN) {
        kedgei_flow_waits(asking);
    } else if (rv != 0) {
        rv = check_alive(conn, asking, other);
    }
    return rv;
}

static int receive(struct nng_tls_engine_conn *conn, uint8_t *data, size_t *len)
{
    int rv = check_alive(conn, &conn->in, &conn->out);
    if (rv != 0) {
        return rv;
    }
    ERR_clear_error();
    int result = SSL_read_ex(conn->ssl, data, *len, len);
    rv = note_result(conn, result == 1 ? 0 : judge(conn, result), &conn->in, &conn->out);
    if (rv == 0) {
        kedgei_flow_moved(&conn->in, data, *len);
        if (!conn->spoken) {
            conn->spoken = true;
            kedgei_conn_spoke(conn);
        }
    }
    return rv;
}

static int transmit(struct nng_tls_engine_conn *conn, const uint8_t *data, size_t *len)
{
    int rv = check_alive(conn, &conn->out, &conn->in);
    if (rv != 0) {
        return rv;
    }
    ERR_clear_error();
    int result = SSL_write_ex(conn->ssl, data, *len, len);
    rv = note_result(conn, result == 1 ? 0 : judge(conn, result), &conn->out, &conn->in);
    if (rv == 0) {
        kedgei_flow_moved(&conn->out, data, *len);
        if (conn->meter) {
            kedgei_meter_sent(conn->meter, *len);
        }
    }
    return rv;
}

static bool is_verified(struct nng_tls_engine_conn *conn)
{
    if (conn->authenticated && question) {
        question->peer = (struct kedgei_tls_peer){conn->key, conn->number};
        if (question->meter && !conn->meter) {
            conn->meter = question->meter;
            kedgei_meter_hold(conn->meter);
        }
    }
    return conn->authenticated;
}

/* ---- configurations: what nng calls ---- */

static int init_config(struct nng_tls_engine_config *config, nng_tls_mode mode)
{
    (void)mode;
    config->tls = new_config_tls;
    if (config->tls) {
        kedgei_tls_hold(config->tls);
    }
    return 0;
}

static void deinit_config(struct nng_tls_engine_config *config)
{
    if (config->tls) {
        kedgei_tls_drop(config->tls);
    }
}

static int set_server_name(struct nng_tls_engine_config *config, const char *name)
{
    (void)config, (void)name; /* servers are known by key */
    return 0;
}

static int set_auth_mode(struct nng_tls_engine_config *config, nng_tls_auth_mode mode)
{
    (void)config, (void)mode; /* nng asks for NONE by itself; authentication is always required */
    return 0;
}

/* Identities come from kedgei_tls_new, not through nng. */
static int set_ca_chain(struct nng_tls_engine_config *config, const char *chain, const char *crl)
{
    (void)config, (void)chain, (void)crl;
    return NNG_ENOTSUP;
}

static int set_own_cert(struct nng_tls_engine_config *config, const char *cert, const char *key,
                        const char *pass)
{
    (void)config, (void)cert, (void)key, (void)pass;
    return NNG_ENOTSUP;
}

static int set_version(struct nng_tls_engine_config *config, nng_tls_version least, nng_tls_version most)
{
    (void)config;
    return least <= NNG_TLS_1_3 && NNG_TLS_1_3 <= most ? 0 : NNG_ENOTSUP;
}

static nng_tls_engine_config_ops config_ops = {
    .size = sizeof(struct nng_tls_engine_config),
    .init = init_config,
    .fini = deinit_config,
    .server = set_server_name,
    .auth = set_auth_mode,
    .ca_chain = set_ca_chain,
    .own_cert = set_own_cert,
    .version = set_version,
};

static nng_tls_engine_conn_ops conn_ops = {
    .size = sizeof(struct nng_tls_engine_conn),
    .init = init_conn,
    .fini = deinit_conn,
    .close = close_conn,
    .handshake = shake_hands,
    .recv = receive,
    .send = transmit,
    .verified = is_verified,
};

static const nng_tls_engine engine = {
    .version = NNG_TLS_ENGINE_V1,
    .config_ops = &config_ops,
    .conn_ops = &conn_ops,
    .name = ENGINE_NAME,
    .description = "TLS 1.3 with pinned Ed25519 keys",
};

/* ---- start ---- */

static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static int start_err;

static void start_engine(void)
{
    start_err = KEDGE_E_VERSION;
    if (strcmp(nng_version(), NNG_VERSION_KNOWN) != 0) {
        return;
    }
    (void)nng_tls_engine_name(); /* initialises nng */
    bio_method = new_bio_method();
    if (bio_method && nng_tls_engine_register(&engine) == 0
        && strcmp(nng_tls_engine_name(), ENGINE_NAME) == 0) {
        start_err = KEDGE_OK;
    }
}

int kedgei_tls_new(const struct kedgei_tls_options *options, struct kedgei_tls **ret_tls,
                   struct kedge_diag *reterr)
{
    pthread_once(&start_once, start_engine);
    if (start_err) {
        kedge_diag_set(reterr, start_err, "tls: needs nng " NNG_VERSION_KNOWN " with TLS, found %s",
                       nng_version());
        return kedge_diag_hint(reterr, "install Debian 12's libnng1"), start_err;
    }
    if (!options->key || (!options->server && !options->pinned)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "tls: expected a key%s",
                              options->key ? " that the server must have" : "");
    }
    struct kedgei_tls *tls = kedge_mem_new(1, sizeof *tls);
    if (!tls) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "tls: out of memory");
    }
    pthread_mutex_init(&tls->mutex, NULL);
    tls->refs = 1;
    tls->server = options->server;
    tls->pinned = options->pinned ? *options->pinned : (struct kedge_public_key){{0}};
    tls->handshakes_max = options->handshakes_max;
    tls->handshake_ns = options->handshake_ns;
    tls->refused = options->refused;
    tls->arg = options->arg;
    tls->ctx = SSL_CTX_new(options->server ? TLS_server_method() : TLS_client_method());
    if (!tls->ctx || !kedgei_tls_set_rules(tls) || !kedgei_tls_load_identity(tls, options->key)) {
        ERR_clear_error();
        kedgei_tls_drop(tls);
        return kedge_diag_set(reterr, KEDGE_E_KEY,
                              "tls: OpenSSL does not take the key or the rules of TLS 1.3");
    }
    new_config_tls = tls;
    int rv = nng_tls_config_alloc(&tls->config, options->server ? NNG_TLS_MODE_SERVER : NNG_TLS_MODE_CLIENT);
    new_config_tls = NULL;
    if (rv != 0) {
        kedgei_tls_drop(tls);
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "tls: %s", nng_strerror(rv));
    }
    *ret_tls = tls;
    return KEDGE_OK;
}

bool kedgei_tls_peer(uint32_t pipe_id, struct kedgei_tls_peer *ret_peer, struct kedgei_meter *meter)
{
    struct question q = {.meter = meter};
    bool verified = false;
    question = &q;
    int rv = nng_pipe_get_bool((nng_pipe){pipe_id}, NNG_OPT_TLS_VERIFIED, &verified);
    question = NULL;
    if (rv != 0 || !verified) {
        return false;
    }
    *ret_peer = q.peer;
    return true;
}
