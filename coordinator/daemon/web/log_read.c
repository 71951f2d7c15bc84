/* Resources of logs over Kedge's own protocol, for witnesses: the same paths, the same rules and
 * the same code as over HTTPS (resources.h), in chunks. */
#include "coordinator/daemon/web/log_read.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"

struct read_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_resource_ask ask;
    uint64_t offset;
    uint32_t max;
};

static void read_done(struct kedge_host *h, struct kedge_item *item)
{
    (void)h;
    kedge_mem_free(item);
}

/* Read straight into the frame. At the end of the resource an empty piece is the answer, which says
 * that there is no more. */
static int send_piece(const struct read_work *w, const struct kedge_resource *r)
{
    uint8_t prefix[KEDGE_MSG_PREFIX_MAX], *frame;
    size_t prefix_len, len = 0;
    struct kedge_msg msg = {.type = KEDGE_MSG_CHUNK};
    if (w->offset < r->size) {
        uint64_t left = r->size - w->offset, most = w->max < KEDGE_CHUNK_MAX ? w->max : KEDGE_CHUNK_MAX;
        len = (size_t)(left < most ? left : most);
    }
    msg.u.chunk = (struct kedge_msg_chunk){.total = r->size, .offset = w->offset, .data = {NULL, len}};
    KEDGE_TRY(kedge_msg_prefix(&msg, prefix, &prefix_len));
    int err = kedge_net_reply_begin(w->req, prefix_len + len, &frame);
    if (!err) {
        memcpy(frame, prefix, prefix_len);
        err = kedge_resource_read(r, w->offset, frame + prefix_len, len);
    }
    if (!err) {
        kedge_net_reply_send(w->req);
    }
    return err;
}

static void read_run(struct kedge_host *h, struct kedge_work *work)
{
    struct read_work *w = (struct read_work *)work;
    struct kedge_resource r;
    (void)h;
    int err = kedge_resource_open(&w->ask, &r);
    if (!err) {
        err = w->offset > r.size ? KEDGE_E_ARG : send_piece(w, &r);
        kedge_resource_close(&r);
    }
    if (err) {
        kedge_host_reply_error(w->req, err, 0, kedge_strerror(err));
    }
}

void kedge_host_log_read(struct kedge_host *h, struct kedge_net_request *req,
                         const struct kedge_log_reader *reader, const struct kedge_msg_log_read *msg)
{
    struct kedge_resource_ask ask;
    int err = kedge_host_resource_ask(h, reader, msg->path, &ask);
    struct read_work *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    if (!w) {
        kedge_host_reply_error(req, err ? err : KEDGE_E_NOMEM, 0, kedge_strerror(err ? err : KEDGE_E_NOMEM));
        return;
    }
    *w = (struct read_work){.work = {.item = {read_done}, .run = read_run},
                            .req = req,
                            .ask = ask,
                            .offset = msg->offset,
                            .max = msg->max};
    kedge_host_work(h, &w->work);
}
