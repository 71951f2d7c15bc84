/* What came of work and of calls: for status.json, and for the words of a refusal. */
#include <stdio.h>
#include <string.h>

#include "client/daemon/energy/energy.h"
#include "common/base/os/clock.h"

enum { ANSWER_MS = 5000 }; /* so old an answer may look in status.json */

void kedge_client_service_note(struct kedge_site_host *h, const struct kedge_site_effect *fx)
{
    bool result = fx->note == KEDGE_SITE_NOTE_RECEIPT || fx->note == KEDGE_SITE_NOTE_DROPPED;
    if (!result && fx->note != KEDGE_SITE_NOTE_REFUSED && fx->note != KEDGE_SITE_NOTE_FAILED) {
        return;
    }
    struct kedge_status_outcome o = {.at_ms = kedge_os_unix_ms(),
                                     .job = result ? fx->result.job : fx->task.job,
                                     .round = result ? fx->result.round : fx->task.round,
                                     .kind = result ? fx->result.kind : fx->task.kind,
                                     .note = fx->note,
                                     .err = fx->err};
    if (fx->err) {
        memcpy(o.detail, h->service.why, sizeof o.detail);
    }
    kedge_status_note(&h->service.status, &o);
    h->service.changed = true;
}

/* The core's events have error codes but no words, so the words of the completion are lent to the step, in
 * which the core decides whether to log that error. */
void kedge_client_service_step(struct kedge_site_host *h, struct kedge_site_event *ev, const char *why)
{
    snprintf(h->service.why, sizeof h->service.why, "%.*s", KEDGE_STATUS_TEXT_MAX - 1, why);
    kedge_client_step(h, ev);
    h->service.why[0] = '\0';
}

/* Heartbeats are answered every few seconds, and each answer moves answered_ms: the file is written for that
 * only when what stands in it looks old. */
void kedge_client_service_answered(struct kedge_site_host *h)
{
    struct kedge_status *s = &h->service.status;
    const uint64_t now_ms = kedge_os_unix_ms();
    h->service.changed = h->service.changed || s->answered_ms == 0 || s->written_ms + ANSWER_MS < now_ms;
    s->answered_ms = now_ms;
}
