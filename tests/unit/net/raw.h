/* A TLS or TCP peer by hand, for doing everything that Kedge's own would not. */
#ifndef KEDGE_TESTS_UNIT_NET_RAW_H
#define KEDGE_TESTS_UNIT_NET_RAW_H

#include <stdatomic.h>
#include <stdbool.h>

#include "crypto/sign.h"

enum raw_kind {
    RAW_GOOD, /* TLS 1.3, Ed25519 certificate */
    RAW_NO_CERT,
    RAW_RSA_CERT, /* self-signed RSA-2048 */
    RAW_P256_CERT,
    RAW_TLS12,        /* nothing newer */
    RAW_WRONG_CIPHER, /* AES-128 only */
    RAW_HTTP,
    RAW_NOISE,      /* a handshake record full of noise */
    RAW_HALF_HELLO, /* then the end */
    RAW_INSTANT_CLOSE,
    RAW_RESET, /* closes with a reset */
    RAW_KINDS,
};

/* Makes what takes long beforehand, for those who measure time. */
void raw_prepare(void);
/* A connected TCP socket to 127.0.0.1. */
int raw_connect(unsigned port);
/* The same from 127.0.<from>.1, which is another address than 127.0.0.1 unless it is 0. */
int raw_connect_from(unsigned port, unsigned char from);
/* Connects, does what the kind says, and waits for the outcome: true if a TLS session came about and the
 * server did not end it for `patience_ms`. */
bool raw_try(enum raw_kind kind, unsigned port, const struct kedge_key_pair *key, int patience_ms);
/* The same of a good peer; *ret_is_greeted becomes true as soon as the server has let it in. */
bool raw_hold(unsigned port, const struct kedge_key_pair *key, int patience_ms, atomic_bool *ret_is_greeted);
/* True when the other side closes within timeout_ms. What it sends before is thrown away. */
bool raw_is_closed(int fd, int timeout_ms);
/* A listening socket on loopback. */
int raw_listen(unsigned *ret_port);
/* Accepts one connection within 5 s and answers the handshake as a TLS server of that kind (RAW_GOOD,
 * RAW_RSA_CERT, RAW_TLS12, RAW_HTTP, RAW_INSTANT_CLOSE); closes. */
void raw_serve(int listener, enum raw_kind kind, const struct kedge_key_pair *key);

#endif
