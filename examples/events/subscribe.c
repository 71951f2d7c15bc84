/* Prints the events of a coordinator, by nng:  subscribe URL [TOPIC]...
 *   cc subscribe.c -lnng -o subscribe
 * A message is a topic, a blank and a line of JSON (docs/events.md). What was lost is said on standard
 * error. */
#include <inttypes.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/sub.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SILENCE_MS = 4000 /* a stream says every second that it lives */, MESSAGE_MAX = 4096 };

static void die(const char *what, int err)
{
    fprintf(stderr, "subscribe: %s: %s\n", what, nng_strerror(err));
    exit(1);
}

/* The number in a line; 0: it has none. A program that wants more of it takes a JSON library. */
static uint64_t number_of(const char *line)
{
    const char *at = strstr(line, "\"seq\":");
    uint64_t n = 0;
    for (at = at ? at + strlen("\"seq\":") : ""; *at >= '0' && *at <= '9'; at++) {
        n = 10 * n + (uint64_t)(*at - '0');
    }
    return n;
}

/* Without topics of one's own there is no loss to be seen in the numbers of those that come. */
static void look_for_gap(uint64_t seq, int is_alive, int has_all, uint64_t *last)
{
    const uint64_t lost_to = is_alive ? seq : seq - 1;
    if (has_all && *last > 0 && lost_to > *last) {
        fprintf(stderr, "gap %" PRIu64 " %" PRIu64 "\n", *last + 1, lost_to);
    }
    *last = seq > *last ? seq : *last;
}

int main(int argc, char **argv)
{
    nng_socket s;
    uint64_t last = 0;
    if (argc < 2) {
        fprintf(stderr, "Usage: subscribe URL [TOPIC]...\n");
        return 2;
    }
    int err = nng_sub0_open(&s);
    for (int i = 2; i < argc && !err; i++) {
        err = nng_socket_set(s, NNG_OPT_SUB_SUBSCRIBE, argv[i], strlen(argv[i]));
    }
    if (!err && argc == 2) {
        err = nng_socket_set(s, NNG_OPT_SUB_SUBSCRIBE, "", 0);
    } else if (!err) {
        err = nng_socket_set(s, NNG_OPT_SUB_SUBSCRIBE, "stream/", strlen("stream/"));
    }
    err = err ? err : nng_socket_set_int(s, NNG_OPT_RECVBUF, 1024);
    err = err ? err : nng_socket_set_ms(s, NNG_OPT_RECVTIMEO, SILENCE_MS);
    err = err ? err : nng_dial(s, argv[1], NULL, 0); /* connects again by itself when it is cut */
    if (err) {
        die(argv[1], err);
    }
    for (;;) {
        static char message[MESSAGE_MAX + 1];
        size_t len = MESSAGE_MAX;
        err = nng_recv(s, message, &len, 0);
        if (err == NNG_ETIMEDOUT) {
            fprintf(stderr, "silence\n");
            continue;
        }
        if (err) {
            die("receive", err);
        }
        message[len] = '\0';
        const char *line = strchr(message, ' ');
        if (line) {
            const int is_alive = strncmp(message, "stream/", strlen("stream/")) == 0;
            look_for_gap(number_of(line), is_alive, argc == 2, &last);
            if (!is_alive) {
                puts(line + 1);
                fflush(stdout);
            }
        }
    }
}
