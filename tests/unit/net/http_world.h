/* An HTTP server on loopback, and a client that writes every byte itself. */
#ifndef KEDGE_TESTS_UNIT_NET_HTTP_WORLD_H
#define KEDGE_TESTS_UNIT_NET_HTTP_WORLD_H

#include <pthread.h>

#include "common/net/web/http.h"

enum { BIG = 3 * KEDGE_HTTP_PIECE_MAX + 17, ANSWER_MAX = BIG + 4096 };
enum { QUICK_MS = 600, PATIENT_MS = 30000 };

/* urls[0] is http://, urls[1] https://. Answers /hello, /mine (to party 7), /big (BIG bytes, to party 7),
 * /wide (as many, to nobody known), /cut (less than it says), /late (by another thread); parks /park;
 * /who tells whom it has to do with. */
struct http_world {
    struct kedge_key_pair key;
    struct kedge_http_options options;
    struct kedge_http_server *server;
    pthread_mutex_t mutex;
    struct kedge_http_request *parked[64];
    size_t parked_count;
    uint8_t big[BIG];
};

/* Keys and options with these limits of time; the server is not open yet. */
struct http_world *http_world_new(uint32_t ms);
void http_world_start(struct http_world *w);
void http_world_close(struct http_world *w);
unsigned http_world_port(const struct http_world *w, unsigned i);
struct kedge_http_counters http_world_counters(struct http_world *w);
/* Until these are the counters; fails after 10 s. */
void http_world_wait(struct http_world *w, uint64_t connections, uint64_t held, uint64_t bytes);
/* For a parked request. */
void http_world_answer(struct kedge_http_request *req, const char *text);

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"

void http_send(int fd, const void *bytes, size_t len);
void http_say(int fd, const char *text);
/* Reads one answer: its status, and its body in `body` (NULL: not looked at). 0: the connection ended before.
 */
unsigned http_hear(int fd, bool has_body, char *body, size_t body_max, size_t *ret_len);
void http_expect(int fd, unsigned status, const char *body); /* body NULL: any */
/* One request on a new connection. */
void http_expect_service(struct http_world *w);

#endif
