/* Requests from the wire: who asks, what they may ask, and the slots in which unanswered ones wait.
 *
 * TLS has shown the peer's key before anything here runs. The key decides which table the request
 * goes to: a site's, a witness's, an operator's or a tenant admin's; a key has one of these roles.
 * What a role may not ask is answered in words that say nothing of what exists. */
#include "coordinator/daemon/sites/requests.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/health.h"
#include "coordinator/daemon/admin/quotas.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/inbox.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/sites/blobs.h"
#include "coordinator/daemon/sites/known.h"
#include "coordinator/daemon/web/model_get.h"
#include "coordinator/daemon/web/tenant_models.h"

struct request_item {
    struct kedge_inbox_item item;
    struct kedge_net_request *req;
};

static void handle_request(struct kedge_host *h, struct kedge_inbox_item *item);

/* On the network thread: nothing is looked at here but whose line it is, and a full line is answered at once
 * instead of holding up all other connections. */
void kedge_host_on_request(void *arg, struct kedge_net_request *req)
{
    struct kedge_host *h = arg;
    struct request_item *r = kedge_mem_new(1, sizeof *r);
    if (r) {
        *r = (struct request_item){.item = {.handle = handle_request}, .req = req};
        if (kedge_inbox_put(h, kedge_host_line_of(h, kedge_net_request_peer(req)), &r->item)) {
            return;
        }
        kedge_mem_free(r);
    }
    kedge_host_reply_error(req, KEDGE_E_BUSY, 1000, "too many requests are waiting already, try again");
}

void kedge_host_on_busy(void *arg, struct kedge_net_request *req, uint32_t retry_ms)
{
    (void)arg;
    kedge_host_reply_error(req, KEDGE_E_BUSY, retry_ms, "too many requests, come back later");
}

/* Asked by the network before it hands a request over, so that the memory for large answers is
 * reserved first: thousands of sites may ask for a model at the same time. */
size_t kedge_host_reply_size(void *arg, struct kedge_view frame)
{
    (void)arg;
    /* u8 version ‖ u8 type (common/wire): chunks are all that is large, and thousands may be asked for. */
    bool is_get = frame.len > 1
                  && (frame.ptr[1] == KEDGE_MSG_BLOB_GET || frame.ptr[1] == KEDGE_MSG_BLOB_GET_SINCE
                      || frame.ptr[1] == KEDGE_MSG_LOG_READ);
    return is_get ? KEDGE_FRAME_MAX : 0;
}

/* A stranger learns that this is a coordinator and which protocol it speaks; its key TLS has shown. Which
 * version runs here is of use to those who look for old ones, whose federation it is and how far it has come
 * to those who watch it: that is told to the door and to known keys. */
static void answer_hello(struct kedge_host *h, struct kedge_net_request *req)
{
    const struct kedge_net_peer *peer = kedge_net_request_peer(req);
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    struct kedge_msg msg = {.type = KEDGE_MSG_HELLO_OK};
    msg.u.hello_ok.protocol = KEDGE_WIRE_VERSION;
    msg.u.hello_ok.program = kedge_view_str("kedge-coordinator");
    if (peer->kind == KEDGE_NET_IPC || (peer->has_key && kedge_host_knows(h, &peer->key))) {
        kedge_host_main_note(h, &note);
        msg.u.hello_ok.program = kedge_view_str("kedge-coordinator " KEDGE_COORDINATOR_VERSION);
        msg.u.hello_ok.deployment = kedge_view_str(h->config.deployment);
        msg.u.hello_ok.main_checkpoint = kedge_buf_view(&note);
    }
    kedge_host_reply(req, &msg);
    kedge_buf_deinit(&note);
}

/* Jobs that a poll names, as the core has them; what is no job here any more is left out. */
static uint64_t jobs_of(struct kedge_host *h, const struct kedge_id *named, uint32_t count)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct kedge_job *job = kedge_host_job_find(h, &named[i], false);
        bits |= job ? UINT64_C(1) << job->slot : 0;
    }
    return bits;
}

/* A site that refuses the main chain is shown what there is of it, until that has grown out of what the site
 * had seen. It gets no task, and to the core it is away; the operator is told. */
static void show_to_refusing(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                             uint64_t seen_size)
{
    struct kedge_site_entry *s = &h->sites[site];
    const bool is_new = s->refuses_since_ms == 0;
    s->refuses_since_ms = is_new ? kedge_os_unix_ms() : s->refuses_since_ms;
    if (is_new && kedge_host_site_may_say(h, site)) {
        kedge_log(
            KEDGE_LOG_ERROR, "main chain refused",
            "tenant=%s site=%s has seen %llu entries, of which this main chain is no extension: was the "
            "state restored from an older copy?",
            h->tenants[s->tenant].id.s, s->id.s, (unsigned long long)seen_size);
    }
    kedge_host_reply_wait(h, req, seen_size, 0);
}

/* A poll may stay unanswered for seconds until there is something to do, so it goes into a slot;
 * the slot keeps which size of the main chain the site has seen, for the answer to prove growth
 * from there. */
static void handle_poll(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                        const struct kedge_msg_poll *poll, uint64_t at_work)
{
    if (poll->flags & KEDGE_POLL_REFUSES) {
        show_to_refusing(h, req, site, poll->seen_size);
        return;
    }
    h->sites[site].refuses_since_ms = 0;
    uint32_t slot = kedge_host_request_put(h, req, site);
    if (slot == KEDGE_COORD_NONE) {
        kedge_host_reply_error(req, KEDGE_E_BUSY, 1000, "too many waiting requests");
        return;
    }
    h->requests[slot].seen_size = poll->seen_size;
    struct kedge_coord_event ev = {.type = KEDGE_EV_POLL,
                                   .site = site,
                                   .request = slot,
                                   .busy = poll->flags & 1,
                                   .anew = (poll->flags & 8) != 0,
                                   .charge = (enum kedge_charge)(poll->flags >> 1 & KEDGE_CHARGE_MAINS),
                                   .wait_ns = (uint64_t)poll->wait_ms * 1000000u,
                                   .shifted = jobs_of(h, poll->shifted, poll->shifted_count),
                                   .at_work = at_work};
    kedge_host_step(h, &ev);
}

/* A task of the site has ended without a result. */
static void handle_ended(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                         const struct kedge_msg_task_ended *m)
{
    struct kedge_job *job = kedge_host_job_find(h, &m->job, false);
    uint32_t slot = kedge_host_request_put(h, req, site);
    if (slot == KEDGE_COORD_NONE) {
        kedge_host_reply_error(req, KEDGE_E_BUSY, 1000, "too many waiting requests");
        return;
    }
    struct kedge_coord_event ev = {.type = KEDGE_EV_TASK_ENDED,
                                   .site = site,
                                   .job = job ? job->slot : KEDGE_COORD_NONE,
                                   .round = m->round,
                                   .kind = (enum kedge_task_kind)m->kind,
                                   .trouble = (enum kedge_trouble)m->trouble,
                                   .wait_ns = (uint64_t)m->retry_ms * 1000000u,
                                   .request = slot};
    if (job) {
        kedge_host_troubled(h, site, job, m);
    }
    kedge_host_step(h, &ev);
}

/* Requests of a site that is enrolled. */
static void handle_site_request(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                                const struct kedge_msg *msg)
{
    const uint32_t tenant = h->sites[site].tenant;
    kedge_host_saw(h, site);
    switch ((int)msg->type) {
    case KEDGE_MSG_POLL:
        handle_poll(h, req, site, &msg->u.poll, 0);
        break;
    case KEDGE_MSG_POLL_BESIDE: {
        const struct kedge_msg_poll_beside *p = &msg->u.poll_beside;
        struct kedge_msg_poll poll = {p->wait_ms, p->flags, p->seen_size, .shifted_count = p->shifted_count};
        memcpy(poll.shifted, p->shifted, sizeof poll.shifted);
        handle_poll(h, req, site, &poll, jobs_of(h, p->at_work, p->at_work_count));
        break;
    }
    case KEDGE_MSG_BLOB_GET:
    case KEDGE_MSG_BLOB_GET_SINCE:
        kedge_host_blob_get(h, req, site, msg);
        break;
    case KEDGE_MSG_BLOB_PUT:
    case KEDGE_MSG_BLOB_PUT_PACKED:
        if (kedge_quota_takes_bytes(h, req, tenant, kedge_net_request_view(req).len)) {
            kedge_host_blob_put(h, req, site, msg);
        }
        break;
    case KEDGE_MSG_TASK_ENDED:
        handle_ended(h, req, site, &msg->u.task_ended);
        break;
    case KEDGE_MSG_SUBMIT:
        if (kedge_quota_takes_statement(h, req, tenant)) {
            kedge_host_submit(h, req, site, msg->u.submit.envelope);
        }
        break;
    default:
        kedge_host_reply_error(req, KEDGE_E_DENIED, 0, "a site may not ask this");
        break;
    }
}

/* The order of the questions is a rule of its own. HELLO is for everybody; operators and admins
 * come next, since their keys are no site's; ENROLL is for those who are nobody yet; then
 * witnesses, then sites. After a start sites wait until the core runs, but strangers are told "not
 * enrolled" as always and cannot see that the coordinator has just been started. */
static void dispatch(struct kedge_host *h, struct kedge_net_request *req, const struct kedge_msg *msg)
{
    const struct kedge_net_peer *peer = kedge_net_request_peer(req);
    if (msg->type == KEDGE_MSG_HELLO) {
        answer_hello(h, req);
        return;
    }
    if (msg->type == KEDGE_MSG_ADMIN) {
        if (kedge_host_may_ask(h, peer, "status")) { /* the least that anybody with a role may */
            kedge_host_admin(h, req, msg->u.admin.json);
        } else if (kedge_host_is_of_tenant(h, peer)) {
            kedge_host_tenant_admin(h, req, msg->u.admin.json);
        } else {
            kedge_host_reply_error(req, KEDGE_E_DENIED, 0, "not an operator of this coordinator");
        }
        return;
    }
    bool is_site = peer->has_key && kedge_host_site_by_key(h, &peer->key) != KEDGE_COORD_NONE;
    if (msg->type == KEDGE_MSG_BLOB_GET && !is_site && kedge_host_may_ask(h, peer, "job.model")) {
        kedge_host_model_get(h, req, &msg->u.blob_get);
        return;
    }
    if (msg->type == KEDGE_MSG_BLOB_GET && !is_site && kedge_host_is_of_tenant(h, peer)) {
        kedge_host_tenant_model_get(h, req, &msg->u.blob_get);
        return;
    }
    if (!peer->has_key) {
        kedge_host_reply_error(req, KEDGE_E_DENIED, 0, "sites speak TLS with their own key");
        return;
    }
    if (msg->type == KEDGE_MSG_ENROLL) {
        kedge_host_enroll(h, req, &msg->u.enroll);
        return;
    }
    uint32_t witness = kedge_host_witness_by_key(h, &peer->key);
    if (witness != KEDGE_COORD_NONE) {
        if (kedge_host_witness_is_active(h, witness)) {
            kedge_host_witness_request(h, req, witness, msg);
        } else {
            kedge_host_reply_error(req, KEDGE_E_REVOKED, 0, "this witness was revoked by its tenant");
        }
        return;
    }
    uint32_t site = kedge_host_site_by_key(h, &peer->key);
    if (site == KEDGE_COORD_NONE) { /* also just after a start, of which a stranger learns nothing */
        kedge_host_reply_error(req, KEDGE_E_NOT_ENROLLED, 5000,
                               "this site is not enrolled by its tenant; enrol it with a token first");
    } else if (!h->begun) {
        kedge_host_reply_error(req, KEDGE_E_BUSY, KEDGE_SETTLE_RETRY_MS, KEDGE_SETTLE_TEXT);
    } else if (!h->sites[site].active) {
        kedge_host_reply_error(req, KEDGE_E_REVOKED, 0, "this site was revoked by its tenant");
    } else if (h->tenants[h->sites[site].tenant].quota.suspended) {
        kedge_host_reply_error(req, KEDGE_E_BUSY, KEDGE_SUSPENDED_RETRY_MS,
                               "this site's tenant is suspended by the operator: come back later");
    } else {
        handle_site_request(h, req, site, msg);
    }
}

static void handle_request(struct kedge_host *h, struct kedge_inbox_item *item)
{
    struct request_item *r = (struct request_item *)item;
    struct kedge_net_request *req = r->req;
    struct kedge_msg msg;
    kedge_mem_free(r);
    int err = kedge_msg_decode(kedge_net_request_view(req), &msg);
    if (err) {
        kedge_host_reply_error(req, err, 0,
                               err == KEDGE_E_VERSION ? "this coordinator speaks protocol version 1"
                                                      : "malformed request");
        return;
    }
    dispatch(h, req, &msg);
}
