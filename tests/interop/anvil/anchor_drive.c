/* Drives the anchoring process with a clock of its own against a real node, for tests/interop/anvil/run:
 *   anchor_drive new STATE                       a state folder with an empty main chain
 *   anchor_drive grow STATE N                    N more entries; prints the size
 *   anchor_drive run STATE URL NOW_MS SECONDS UNTIL
 *       anchors until UNTIL (sent, mined, settled, time) or for so many seconds of its clock, which begins at
 *       NOW_MS; each wait mines a block and takes no longer than that. Prints what is said, then one line
 * with the clock and the state. Exit code 0: UNTIL came; 1: it did not; 3: an error, told. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/anchor/host/evm_host.h"
#include "chain/state/state.h"
#include "common/base/os/clock.h"

struct drive {
    uint64_t now_ms, end_ms;
    const char *until;
    struct kedge_http *http;
    bool reached;
    struct kedge_evm_state last;
};

static int complain(int err, const struct kedge_diag *d)
{
    printf("error: %s: %s\n", kedge_err_code(err), d->text[0] ? d->text : kedge_strerror(err));
    return 3;
}

static uint64_t now_ms(void *arg)
{
    return ((const struct drive *)arg)->now_ms;
}

static void mine(struct drive *d)
{
    struct kedge_buf reply;
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"evm_mine\",\"params\":[]}";
    kedge_buf_init(&reply, 65536);
    if (kedge_http_post(d->http, kedge_view_str(request), 2000, NULL, &reply, NULL) != KEDGE_OK) {
        kedge_os_sleep_ms(1); /* nobody there */
    }
    kedge_buf_deinit(&reply);
}

static void wait_until(void *arg, uint64_t ms)
{
    struct drive *d = arg;
    mine(d);
    d->now_ms = ms > d->now_ms ? ms : d->now_ms;
}

static bool go_on(void *arg, const struct kedge_evm_anchor *machine)
{
    struct drive *d = arg;
    const struct kedge_evm_state *s = &machine->state;
    const struct kedge_evm_flight *last = s->flight_count > 0 ? &s->flights[s->flight_count - 1] : NULL;
    d->last = *s;
    d->reached |= strcmp(d->until, "settled") == 0 && kedge_evm_anchor_is_settled(machine);
    d->reached |= strcmp(d->until, "sent") == 0 && last && last->phase == KEDGE_EVM_SENT;
    d->reached |= strcmp(d->until, "mined") == 0 && last && last->phase == KEDGE_EVM_MINED;
    return !d->reached && d->now_ms < d->end_ms;
}

static void say(void *arg, const char *text)
{
    printf("%10.1f s  %s\n", (double)(((const struct drive *)arg)->now_ms % 100000000) / 1000.0, text);
}

static int run(const char *state, const char *url, const char *from, const char *seconds, const char *until)
{
    struct kedge_diag d = {.text = ""};
    struct drive drive = {.until = until, .now_ms = strtoull(from, NULL, 10)};
    drive.end_ms = drive.now_ms + 1000 * strtoull(seconds, NULL, 10);
    struct kedge_anchor_hooks hooks = {now_ms, wait_until, go_on, say, &drive};
    struct kedge_http_options options = {.url = url, .what = "URL", .content_type = "application/json"};
    int err = kedge_http_open(&options, &drive.http, &d);
    err = err ? err : kedge_anchor_run(state, 0, &hooks, &d);
    kedge_http_close(drive.http);
    if (err) {
        return complain(err, &d);
    }
    const struct kedge_evm_state *s = &drive.last;
    const struct kedge_evm_flight *f = s->flight_count > 0 ? &s->flights[s->flight_count - 1] : NULL;
    printf("now=%" PRIu64 " seq=%" PRIu64 " size=%" PRIu64 " under_way=%u transactions=%u nonce=%" PRIu64
           "\n",
           drive.now_ms, s->last.seq, s->last.size, s->flight_count, f ? f->attempt_count : 0, s->next_nonce);
    return drive.reached || strcmp(until, "time") == 0 ? 0 : 1;
}

static int grow(const char *state, const char *count)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_state_log log;
    int err = kedge_state_log_open(state, NULL, KEDGE_STATE_WRITE, &log, &d);
    if (err) {
        return complain(err, &d);
    }
    for (unsigned long i = strtoul(count, NULL, 10); !err && i > 0; i--) {
        char text[64];
        snprintf(text, sizeof text, "{\"entry\":%" PRIu64 "}", kedge_ledger_size(log.ledger));
        struct kedge_ledger_append item = {.entry = kedge_view_str(text)};
        err = kedge_ledger_append(log.ledger, &item, 1, NULL, NULL, &d);
    }
    err = err ? err : kedge_ledger_flush(log.ledger, &d);
    if (!err) {
        printf("%" PRIu64 "\n", kedge_ledger_size(log.ledger));
    }
    kedge_state_log_close(&log);
    return err ? complain(err, &d) : 0;
}

int main(int argc, char **argv)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_crypto_init();
    if (!err && argc == 3 && strcmp(argv[1], "new") == 0) {
        err = kedge_state_create(argv[2], "anvil.test", &d);
        return err ? complain(err, &d) : 0;
    }
    if (!err && argc == 4 && strcmp(argv[1], "grow") == 0) {
        return grow(argv[2], argv[3]);
    }
    if (!err && argc == 7 && strcmp(argv[1], "run") == 0) {
        return run(argv[2], argv[3], argv[4], argv[5], argv[6]);
    }
    printf("usage: anchor_drive new STATE | grow STATE N | run STATE URL NOW_MS SECONDS UNTIL\n");
    return 2;
}
