/* A site that refuses the main chain asks from time to time what the coordinator shows by now. Once that has
 * grown out of what the site had seen, it was not this history that was cut or forked, and the site goes on
 * by itself: the evidence is kept under another name, and the process begins anew, as after a start. Only its
 * owner can make it go on with another history (kedge-client accept-main). On the loop, but for the request.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/daemon/host.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"

#define NS_PER_S UINT64_C(1000000000)
enum { ASK_FIRST_S = 5, ASK_MOST_S = 60, ASK_MS = 15000 };

struct ask_item {
    struct kedge_site_item item;
    struct kedge_site_chain seen, shown;
    struct kedge_buf note; /* the checkpoint that `shown` is */
    bool breaks;
    int err;
};

/* ---- on the thread of heartbeats ---- */

/* A task that comes instead is not looked at: a coordinator that does not know the flag may send one. */
static int take_answer(struct kedge_site_host *h, struct ask_item *a, struct kedge_view frame)
{
    struct kedge_msg msg;
    KEDGE_TRY(kedge_msg_decode(frame, &msg));
    if (msg.type == KEDGE_MSG_ERROR) {
        return kedge_msg_error_code(&msg);
    }
    if (msg.type != KEDGE_MSG_WAIT || msg.u.wait.main_checkpoint.len == 0) {
        return KEDGE_E_FORMAT;
    }
    const struct kedge_shown_main shown = {msg.u.wait.main_checkpoint, msg.u.wait.since_seen,
                                           msg.u.wait.cosigned, msg.u.wait.since_cosigned};
    KEDGE_TRY(kedge_client_check_main(h, &a->seen, &shown, &a->shown, &a->breaks));
    kedge_buf_put(&a->note, shown.newest.ptr, shown.newest.len);
    return a->note.err;
}

static void ask_run(struct kedge_client_work *w, struct kedge_site_item *item)
{
    struct ask_item *a = (struct ask_item *)item;
    struct kedge_net_reply reply = {.impl = NULL};
    struct kedge_msg msg = {
        .type = KEDGE_MSG_POLL,
        .u.poll = {.flags = KEDGE_POLL_BUSY | KEDGE_POLL_REFUSES, .seen_size = a->seen.size}};
    struct kedge_buf frame;
    kedge_buf_init(&frame, KEDGE_FRAME_MAX);
    a->err = kedge_msg_encode(&msg, &frame);
    a->err = a->err ? a->err : kedge_net_call(w->h->net, kedge_buf_view(&frame), ASK_MS, &reply);
    a->err = a->err ? a->err : take_answer(w->h, a, reply.view);
    kedge_net_reply_release(&reply);
    kedge_buf_deinit(&frame);
}

/* ---- on the loop ---- */

int kedge_client_heal_set_aside(const char *dir, const char *why, struct kedge_diag *d)
{
    char from[KEDGE_PATH_MAX], name[64], to[KEDGE_PATH_MAX];
    snprintf(name, sizeof name, "refused-main.%s-%" PRIu64, why, kedge_os_unix_ms() / 1000);
    KEDGE_TRY(kedge_path_join(from, dir, "refused-main"));
    int err = kedge_path_join(to, dir, name);
    if (!err && rename(from, to) != 0) {
        err = kedge_diag_set(d, KEDGE_E_IO, "%s: cannot be renamed to %s", from, name);
    }
    return err ? err : kedge_dir_sync(dir);
}

/* A new process is the one path that is known to be right: what it knows is read from the disk, and nothing
 * of the refused history lingers in the core, in open calls or in helper threads. */
static void begin_anew(struct kedge_site_host *h)
{
    h->refusal.err = KEDGE_OK;
    h->fatal = KEDGE_OK;
    h->again = true;
    h->stop = true;
}

static void keep_latest(struct kedge_site_host *h, const struct ask_item *a)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_client_path(h, path, "refused-main/latest");
    if (!err) {
        err = kedge_client_put_file(path, kedge_buf_view(&a->note));
    }
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "refused-main", "%s: %s", path, kedge_strerror(err));
    }
}

static void ask_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    struct ask_item *a = (struct ask_item *)item;
    struct kedge_diag d = {.text = ""};
    h->heal.asks = false;
    if (!a->err) {
        kedge_client_service_answered(h);
    }
    if (!a->err && !kedge_client_heals(&a->seen, &a->shown, a->breaks)) {
        keep_latest(h, a);
    } else if (!a->err && h->refusal.err) {
        int err = kedge_client_heal_set_aside(h->dir, "healed", &d);
        if (err) {
            kedge_log(KEDGE_LOG_ERROR, "main chain", "%s", d.text[0] ? d.text : kedge_strerror(err));
        } else {
            kedge_log(KEDGE_LOG_WARN, "main chain",
                      "the coordinator shows %" PRIu64 " entries that grew out of the %" PRIu64
                      " that this site had seen: it goes on. What it had refused is kept in %s",
                      a->shown.size, a->seen.size, h->dir);
            begin_anew(h);
        }
    }
    kedge_buf_deinit(&a->note);
    kedge_mem_free(a);
}

void kedge_client_heal_turn(struct kedge_site_host *h)
{
    struct kedge_site_heal *heal = &h->heal;
    const uint64_t now = kedge_os_now_ns();
    if (!h->refusal.err || h->refusal.seen.size == 0 || h->stop || heal->asks || now < heal->next_ns) {
        return;
    }
    struct ask_item *a = kedge_mem_new(1, sizeof *a);
    KEDGE_ASSERT(a);
    *a = (struct ask_item){.item = {.run = ask_run, .handle = ask_handle}, .seen = h->refusal.seen};
    kedge_buf_init(&a->note, KEDGE_NOTE_MAX);
    heal->pause_ns = heal->pause_ns == 0 ? ASK_FIRST_S * NS_PER_S : heal->pause_ns * 2;
    heal->pause_ns = heal->pause_ns < ASK_MOST_S * NS_PER_S ? heal->pause_ns : ASK_MOST_S * NS_PER_S;
    heal->next_ns = now + heal->pause_ns;
    heal->asks = kedge_queue_put(h->beat_queue, a) == KEDGE_OK;
    if (!heal->asks) {
        kedge_mem_free(a);
    }
}

uint64_t kedge_client_heal_deadline_ns(const struct kedge_site_host *h)
{
    bool waits = h->refusal.err && h->refusal.seen.size > 0 && !h->heal.asks;
    return waits ? h->heal.next_ns : KEDGE_TIME_NEVER;
}

bool kedge_client_heal_reload(struct kedge_site_host *h)
{
    char path[KEDGE_PATH_MAX];
    if (!h->refusal.err || kedge_client_path(h, path, "refused-main/shown") != KEDGE_OK
        || kedge_file_exists(path)) {
        return false;
    }
    kedge_log(KEDGE_LOG_WARN, "main chain", "its owner has accepted what was shown: it goes on");
    begin_anew(h);
    return true;
}
