/* What the core of a site decides, carried out: one function for each kind of effect, on the loop.
 *
 * What blocks (calls, transfers, training) is handed to a helper thread and ends as an event. The exception
 * is PERSIST: the memory is written here, while the loop waits, because nothing that comes after it may leave
 * the device before it is durable. It is a write of a few kilobytes. */
#include "client/daemon/energy/energy.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"

struct persisted_item {
    struct kedge_site_item item;
    uint64_t serial;
    int err;
};

static void persisted_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    struct persisted_item *p = (struct persisted_item *)item;
    struct kedge_site_event ev = {.type = KEDGE_SITE_EV_PERSISTED, .serial = p->serial, .err = p->err};
    kedge_mem_free(p);
    kedge_client_step(h, &ev);
}

static void persist(struct kedge_site_host *h, const struct kedge_site_effect *fx)
{
    struct kedge_diag d = {.text = ""};
    struct persisted_item *p = kedge_mem_new(1, sizeof *p);
    KEDGE_ASSERT(p);
    *p = (struct persisted_item){{.handle = persisted_handle}, fx->serial, KEDGE_OK};
    if (kedge_client_memory_covers(h, &fx->memory)) {
        /* Settled: the next write says so too. At worst, after a kill, the result is submitted again and the
         * same receipt comes. */
        h->settled = fx->memory;
        h->memory_is_behind = true;
    } else {
        p->err = kedge_client_memory_write(h, &fx->memory, &d);
    }
    if (p->err) {
        kedge_log(KEDGE_LOG_ERROR, "memory", "%s", d.text);
    }
    kedge_client_post(h, &p->item);
}

/* The file of a settled update is not removed: the next update is written over it (files.c says why). */
static void forget(struct kedge_site_host *h, const struct kedge_site_result *r)
{
    char path[KEDGE_PATH_MAX], room[KEDGE_PATH_MAX];
    struct kedge_site_envelope *e = kedge_client_envelope_find(h, &r->envelope);
    if (e) {
        kedge_envelope_free(e);
    }
    const struct kedge_client_work *w = &h->works[r->work];
    if (r->kind != KEDGE_SITE_EVALUATE && kedge_client_work_path(w, "update", &r->update, path) == KEDGE_OK
        && kedge_client_work_file(w, "update.part", room) == KEDGE_OK) {
        kedge_client_reuse_give(path, room);
    }
}

static void note(const struct kedge_site_effect *fx)
{
    bool result = fx->note == KEDGE_SITE_NOTE_RECEIPT || fx->note == KEDGE_SITE_NOTE_DROPPED;
    enum kedge_log_level level = fx->err ? KEDGE_LOG_WARN : KEDGE_LOG_INFO;
    const char *job = result ? fx->result.job.s : fx->task.job.s;
    const char *why = fx->err ? kedge_strerror(fx->err) : "";
    if (!job[0]) { /* of the site as a whole */
        kedge_log(level, kedge_site_note_name(fx->note), "%s", why);
        return;
    }
    kedge_log(level, kedge_site_note_name(fx->note), "job=%s round=%u kind=%s%s%s", job,
              result ? fx->result.round : fx->task.round,
              kedge_site_kind_name(result ? fx->result.kind : fx->task.kind), fx->err ? ": " : "", why);
}

void kedge_client_execute(struct kedge_site_host *h, const struct kedge_site_effect *fx)
{
    switch (fx->type) {
    case KEDGE_SITE_FX_CALL:
        kedge_client_call(h, fx);
        break;
    case KEDGE_SITE_FX_FETCH:
        kedge_client_fetch(h, fx);
        break;
    case KEDGE_SITE_FX_TRAIN:
        kedge_client_train(h, fx);
        break;
    case KEDGE_SITE_FX_UPLOAD:
        kedge_client_upload(h, fx);
        break;
    case KEDGE_SITE_FX_PERSIST:
        persist(h, fx);
        break;
    case KEDGE_SITE_FX_FORGET:
        forget(h, &fx->result);
        break;
    case KEDGE_SITE_FX_ABORT:
        kedge_client_works_stop(&h->works[fx->work], fx->serial);
        break;
    case KEDGE_SITE_FX_SEEN:
        kedge_client_seen_keep(h, fx);
        break;
    case KEDGE_SITE_FX_REFUSE:
        kedge_client_seen_refuse(h, fx);
        break;
    case KEDGE_SITE_FX_LOG:
        kedge_client_service_note(h, fx);
        if (fx->note == KEDGE_SITE_NOTE_REFUSING) {
            kedge_client_seen_say(h);
        } else {
            if (fx->note == KEDGE_SITE_NOTE_RECEIPT && fx->result.kind == KEDGE_SITE_TRAIN) {
                kedge_kept_accepted(&h->kept, &fx->result.job, &fx->result.update);
            }
            note(fx);
        }
        break;
    }
}
