/* Internal to net: TLS identities and the engine behind nng's tls+tcp://. Third-party types stay in the
 * .c files; void * stands for nng's. */
#ifndef KEDGE_COMMON_NET_ENGINE_H
#define KEDGE_COMMON_NET_ENGINE_H

#include "common/base/diag.h"
#include "crypto/sign.h"

/* One identity with its rule for peers; shared by the connections that use it, so counted. */
struct kedgei_tls;
struct kedgei_meter;

struct kedgei_tls_options {
    bool server;
    const struct kedge_key_pair *key;      /* read during new only */
    const struct kedge_public_key *pinned; /* client: the only key a server may have; server: NULL, any key */
    unsigned handshakes_max;               /* server: silent connections, beyond which new ones are
                                              refused */
    uint64_t handshake_ns;                 /* time to the first byte of the application */
    /* The peer failed authentication, or refused ours. Called with locks of the connection held: must
     * not call nng. */
    void (*refused)(void *arg);
    void *arg;
};

KEDGE_NODISCARD int kedgei_tls_new(const struct kedgei_tls_options *options, struct kedgei_tls **ret_tls,
                                   struct kedge_diag *reterr);
/* No more calls of options.refused after it returns; connections that are left may live on for a moment. */
void kedgei_tls_free(struct kedgei_tls *tls);
/* The nng_tls_config * for NNG_OPT_TLS_CONFIG, borrowed. */
void *kedgei_tls_config(struct kedgei_tls *tls);

/* Shuts down the connections that are older than handshake_ns and have not spoken; returns when to call again
 * (monotonic ns), KEDGE_TIME_NEVER if none is young. */
uint64_t kedgei_tls_reap(struct kedgei_tls *tls, uint64_t now_ns);
void kedgei_tls_counters(struct kedgei_tls *tls, uint64_t *ret_handshakes, uint64_t *ret_silent,
                         uint64_t *ret_refused);

/* Ends connections from below, as if the peer had gone: those of a key, or the one with that number.
 * Busy ones end at their next step; kedgei_tls_reap ends those that come to rest before, so call that
 * soon. */
void kedgei_tls_end_key(struct kedgei_tls *tls, const struct kedge_public_key *key);
void kedgei_tls_end(struct kedgei_tls *tls, uint64_t number);
/* The same for all, and no new ones come about from now on. */
void kedgei_tls_stop(struct kedgei_tls *tls);

struct kedgei_tls_peer {
    struct kedge_public_key key;
    uint64_t number; /* of the connection, for kedgei_tls_end */
};
/* Who is at the other end of a TLS pipe; false when the pipe is gone, is not TLS or is not
 * authenticated. With a meter, the connection reports to it what it sends from now on (only the first
 * meter of a connection counts). */
bool kedgei_tls_peer(uint32_t pipe_id, struct kedgei_tls_peer *ret_peer, struct kedgei_meter *meter);

#endif
