/* With a stream the coordinator is asked when something has happened, and once a second for what makes no
 * event, such as an update that was accepted; without one it is asked five times a second. A job with short
 * rounds has hundreds of events a second: all that came meanwhile are one reason to ask, and between two
 * questions there is a pause. */
#include "cli/events/wake.h"

#include <stdio.h>
#include <string.h>

#include "cli/events/stream.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"

enum { PAUSE_MS = 50, QUIET_MS = 1000, TOPIC_MAX = 80 };

struct kedge_cli_wake {
    struct kedge_cli_stream stream;
    char topic[TOPIC_MAX]; /* "job/NAME/" */
};

struct kedge_cli_wake *kedge_cli_wake_new(struct kedge_cli *c, const char *job)
{
    struct kedge_diag d = {.text = ""};
    json_auto_t *o = NULL;
    if (c->connect
        || kedge_cli_ask(c, json_pack("{s:s,s:I}", "verb", "event.list", "from", (json_int_t)1 << 53), &o, &d)
               != KEDGE_OK) {
        return NULL;
    }
    struct kedge_cli_wake *w = kedge_mem_new(1, sizeof *w);
    if (w && kedge_cli_stream_open(kedge_cli_text(o, "stream"), &w->stream) == KEDGE_OK) {
        snprintf(w->topic, sizeof w->topic, "job/%s/", job);
        return w;
    }
    kedge_mem_free(w);
    return NULL;
}

static bool is_wanted(const struct kedge_cli_wake *w, struct kedge_view message)
{
    const size_t len = strlen(w->topic);
    return message.len > len && memcmp(message.ptr, w->topic, len) == 0;
}

bool kedge_cli_wake_wait(struct kedge_cli_wake *w, uint32_t poll_ms)
{
    if (!w || w->stream.fd < 0) {
        return kedge_cli_pause(poll_ms);
    }
    const uint64_t until_ns = kedge_os_now_ns() + QUIET_MS * UINT64_C(1000000);
    struct kedge_view message;
    bool woken = false;
    int err = KEDGE_OK;
    if (kedge_cli_pause(PAUSE_MS)) {
        return true;
    }
    while (!err && !kedge_cli_interrupted()) {
        const uint64_t now_ns = kedge_os_now_ns();
        const uint64_t left_ns = woken || now_ns >= until_ns ? 0 : until_ns - now_ns;
        err = kedge_cli_stream_next(&w->stream, (uint32_t)(left_ns / 1000000), &message);
        woken = woken || (!err && is_wanted(w, message));
    }
    if (err && err != KEDGE_E_TIMEOUT && err != KEDGE_E_CANCELLED) {
        kedge_cli_stream_close(&w->stream); /* from now on by asking alone */
    }
    return kedge_cli_interrupted();
}

void kedge_cli_wake_drop(struct kedge_cli_wake **w)
{
    if (*w) {
        kedge_cli_stream_close(&(*w)->stream);
        kedge_mem_free(*w);
    }
}
