/* What a trainer says on standard error: for the site's log, and for the reason when it fails. */
#include <poll.h>
#include <unistd.h>

#include "client/daemon/trainer/trainer.h"
#include "common/base/os/log.h"

const char *kedgei_trainer_name(const struct kedge_client_work *w)
{
    return w->trainer.name.s[0] ? w->trainer.name.s : "built-in";
}

/* Whole lines go to the log, so many of a task; the last one is kept for the reason, should it fail. */
static void hear(struct kedge_client_work *w, const char *text, size_t len)
{
    struct kedge_trainer *t = &w->trainer;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c != '\n') {
            t->said_len = t->said_ends ? 0 : t->said_len;
            t->said_ends = false;
            if (t->said_len < sizeof t->said - 1) {
                t->said[t->said_len++] = c >= 0x20 && c < 0x7f ? c : '?';
            }
            continue;
        }
        t->said[t->said_len] = '\0';
        if (!t->said_ends && t->said_len > 0 && t->said_lines++ < KEDGE_TRAINER_SAID_MAX) {
            kedge_log(KEDGE_LOG_INFO, "trainer says", "name=%s: %s", kedgei_trainer_name(w), t->said);
        }
        t->said_ends = true;
    }
    t->said[t->said_len] = '\0';
}

/* Never blocks: it reads what is there. The built-in trainer's standard error is the daemon's own, so there
 * is nothing to read of it. After the end of the pipe its descriptor is closed, or poll would report it for
 * ever. */
bool kedgei_trainer_hear(struct kedge_client_work *w)
{
    char chunk[4096];
    struct pollfd p = {.fd = w->trainer.process.err_fd, .events = POLLIN};
    if (!w->trainer.process.confined || p.fd < 0 || poll(&p, 1, 0) <= 0) {
        return false;
    }
    ssize_t got = read(p.fd, chunk, sizeof chunk);
    if (got <= 0) {
        close(p.fd);
        w->trainer.process.err_fd = -1;
        return false;
    }
    hear(w, chunk, (size_t)got);
    return true;
}

const char *kedgei_trainer_last_words(struct kedge_client_work *w)
{
    for (int i = 0; i < 256 && kedgei_trainer_hear(w); i++) {
    }
    return w->trainer.said_len > 0 ? w->trainer.said : "nothing";
}
