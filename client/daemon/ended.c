/* Tasks that ended without a result: what the coordinator is told of them. The reason goes always, so that no
 * round waits; words go only where the owner says so ("tell": "reasons"), and then as a line or two, plain.
 */
#include <string.h>

#include "client/daemon/host.h"

enum { NS_PER_MS = 1000000 };

void kedge_client_ended_note(struct kedge_client_work *w, enum kedge_trouble why, const char *text,
                             struct kedge_site_event *ev)
{
    ev->trouble = why;
    if (ev->err == KEDGE_OK) {
        return;
    }
    /* The words may come from a trainer and go to the coordinator's operator: they are cut to a bound, at a
     * whole character, and lose control characters, here, where they come in. */
    size_t len = strnlen(text, KEDGE_TROUBLE_TEXT_MAX);
    while (len > 0 && !kedge_utf8_is_valid(kedge_view_of(text, len))) {
        len--; /* whole characters */
    }
    memcpy(w->ended, text, len);
    w->ended[len] = '\0';
    kedge_text_make_plain(w->ended);
}

void kedge_client_ended_put(const struct kedge_site_host *h, const struct kedge_site_effect *fx,
                            struct kedge_msg *ret)
{
    const char *text = h->policy->tells_reasons ? h->works[fx->work].ended : "";
    uint64_t ms = fx->wait_ns / NS_PER_MS + 1;
    ret->type = KEDGE_MSG_TASK_ENDED;
    ret->u.task_ended = (struct kedge_msg_task_ended){.job = fx->task.job,
                                                      .round = fx->task.round,
                                                      .kind = (uint8_t)fx->task.kind,
                                                      .trouble = (uint8_t)fx->trouble,
                                                      .retry_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX,
                                                      .text = kedge_view_str(text)};
}
