/* kedge-relay: the program around common/net/relay.h. It has no key and keeps no state; options say
 * where it listens, where it may lead to and how much it lets through. */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/os/log.h"
#include "common/base/os/notify.h"
#include "common/base/text.h"
#include "common/net/relay.h"

enum { CONNECTIONS = 256, PER_SOURCE = 64, IDLE_S = 120, DAY_S = 86400 };

static int usage(FILE *out, int code)
{
    fputs("Usage: kedge-relay --listen HOST:PORT --to HOST:PORT [--connect] [options]\n"
          "Forwards TCP byte for byte to a coordinator. What goes through is TLS between the two: nothing "
          "can be\n"
          "read or changed here, and no key is needed. Sites name it in policy.json, \"proxy\":\n"
          "\"relay://HOST:PORT\", or with --connect \"http://HOST:PORT\".\n"
          "  --to HOST:PORT      where to; with --connect up to 16 that clients may ask for\n"
          "  --connect           clients ask by HTTP's CONNECT\n"
          "  --from ADDRESS/BITS who may connect, up to 16; without it everybody who reaches it\n"
          "  --connections N     at once, 1 to 4096 (256); --per-address N of one address (64)\n"
          "  --rate BYTES        per second, each way of a connection, 1024 or more (0: no bound)\n"
          "  --idle SECONDS      a connection on which nothing moves so long is closed (120)\n"
          "Exit codes: 0 done, 2 usage, 3 cannot listen.\n",
          out);
    return code;
}

static bool number(const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
    return kedge_decimal_decode(kedge_view_str(text), most, ret) == KEDGE_OK && *ret >= least;
}

/* Adds to a list that ends with NULL. */
static bool add(const char **list, size_t max, const char *text)
{
    for (size_t i = 0; i < max; i++) {
        if (!list[i]) {
            list[i] = text;
            return true;
        }
    }
    return false;
}

/* False after an option that nobody knows or whose value is out of range. */
static bool take(int option, const char *value, struct kedge_relay_options *o)
{
    uint64_t n = 0;
    switch (option) {
    case 'l':
        o->listen = value;
        return true;
    case 't':
        return add(o->targets, KEDGE_RELAY_TARGETS_MAX, value);
    case 'f':
        return add(o->sources, KEDGE_RELAY_SOURCES_MAX, value);
    case 'c':
        o->connect = true;
        return true;
    case 'n':
        o->connections = number(value, 1, KEDGE_RELAY_CONNECTIONS_MAX, &n) ? (uint32_t)n : 0;
        return n > 0;
    case 'p':
        o->per_source = number(value, 1, KEDGE_RELAY_CONNECTIONS_MAX, &n) ? (uint32_t)n : 0;
        return n > 0;
    case 'r':
        return number(value, 0, UINT32_MAX, &o->rate);
    case 'i':
        o->idle_s = number(value, 1, DAY_S, &n) ? (uint32_t)n : 0;
        return n > 0;
    default:
        return false;
    }
}

/* One thread waits for the signals and tells the loop, so that no handler runs anywhere. They are
 * blocked before any thread is made, so all threads inherit that. */
static void *signal_main(void *arg)
{
    sigset_t set;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (sigwait(&set, &got) == 0) {
        kedge_relay_stop(arg);
    }
    return NULL;
}

static int run(const struct kedge_relay_options *o)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    struct kedge_relay *r = NULL;
    pthread_t signals;
    int err = kedge_relay_open(o, &r, &d);
    if (!err && pthread_create(&signals, NULL, signal_main, r) != 0) {
        err = kedge_diag_set(&d, KEDGE_E_NOMEM, "cannot start a thread");
    }
    if (err) {
        fprintf(stderr, "kedge-relay: %s\n", kedge_text_shown(d.text).s);
        kedge_relay_close(r);
        return err == KEDGE_E_ARG ? 2 : kedge_exit_code(err);
    }
    kedge_log(KEDGE_LOG_INFO, "listening", "port=%u", kedge_relay_port(r));
    (void)kedge_notify("READY=1", "forwarding");
    kedge_relay_run(r);
    (void)kedge_notify("STOPPING=1", NULL);
    pthread_join(signals, NULL);
    kedge_relay_close(r);
    return 0;
}

/* Options, then one loop until a signal. The relay keeps nothing on disk. */
int main(int argc, char **argv)
{
    static const struct option options[] = {{"listen", required_argument, NULL, 'l'},
                                            {"to", required_argument, NULL, 't'},
                                            {"from", required_argument, NULL, 'f'},
                                            {"connect", no_argument, NULL, 'c'},
                                            {"connections", required_argument, NULL, 'n'},
                                            {"per-address", required_argument, NULL, 'p'},
                                            {"rate", required_argument, NULL, 'r'},
                                            {"idle", required_argument, NULL, 'i'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"version", no_argument, NULL, 'V'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct kedge_relay_options o = {.connections = CONNECTIONS, .per_source = PER_SOURCE, .idle_s = IDLE_S};
    enum kedge_log_level least = KEDGE_LOG_INFO;
    int opt;
    while ((opt = getopt_long(argc, argv, "vVh", options, NULL)) != -1) {
        if (opt == 'h') {
            return usage(stdout, 0);
        }
        if (opt == 'V') {
            puts("kedge-relay 0.1.0");
            return 0;
        }
        least = opt == 'v' ? KEDGE_LOG_DEBUG : least;
        if (opt != 'v' && !take(opt, optarg, &o)) {
            return usage(stderr, 2);
        }
    }
    if (!o.listen || !o.targets[0] || optind != argc) {
        return usage(stderr, 2);
    }
    signal(SIGPIPE, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kedge_log_init("kedge-relay", least);
    return run(&o);
}
