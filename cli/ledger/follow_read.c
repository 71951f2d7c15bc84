/* Reading what the coordinator serves a witness. */
#include "cli/ledger/follow.h"
#include "common/base/try.h"

enum { LATER_TRIES = 20, LATER_MAX_MS = 5000 };

/* When the coordinator wants to be asked again, in milliseconds from now; 0: the answer is one. */
static uint32_t told_to_come_later(const struct kedge_msg *answer)
{
    bool busy = answer->type == KEDGE_MSG_ERROR && kedge_msg_error_code(answer) == KEDGE_E_BUSY;
    uint32_t told = busy ? answer->u.error.retry_ms : 0;
    return told < LATER_MAX_MS ? told : LATER_MAX_MS;
}

/* "Come back later" is obeyed a bounded number of times and for a bounded time each: a coordinator cannot
 * keep a witness busy for ever with patience. */
int kedgei_follow_call(struct kedgei_watch *f, const struct kedge_msg *ask, struct kedge_net_reply *reply,
                       struct kedge_msg *ret, struct kedge_diag *d)
{
    kedge_buf_clear(&f->frame);
    int err = kedge_msg_encode(ask, &f->frame);
    for (unsigned i = 0; !err; i++) {
        err = kedge_net_call(f->client, kedge_buf_view(&f->frame), KEDGEI_FOLLOW_CALL_MS, reply);
        if (!err) {
            err = kedge_msg_decode(reply->view, ret);
        }
        uint32_t told = err ? 0 : told_to_come_later(ret);
        if (told == 0 || i == LATER_TRIES || kedge_cli_pause(told)) {
            break;
        }
        kedge_net_reply_release(reply);
        *reply = (struct kedge_net_reply){.impl = NULL};
    }
    if (err) {
        return kedge_diag_set(d, err, "coordinator at %s: %s", f->w.address, kedge_strerror(err));
    }
    if (ret->type == KEDGE_MSG_ERROR) {
        f->c->told = true;
        return kedge_diag_set(d, kedge_msg_error_code(ret), "%.*s", (int)ret->u.error.text.len,
                              (const char *)ret->u.error.text.ptr);
    }
    return KEDGE_OK;
}

/* An answer must continue exactly where it was asked to and must not be empty before the end; both would be a
 * way to make the loop above run without end. */
int kedgei_follow_piece(struct kedgei_watch *f, const char *path, uint64_t offset,
                        struct kedge_net_reply *reply, struct kedge_view *ret, uint64_t *ret_total,
                        struct kedge_diag *d)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_LOG_READ}, got;
    msg.u.log_read = (struct kedge_msg_log_read){
        .path = kedge_view_str(path), .offset = offset, .max = KEDGEI_FOLLOW_PIECE};
    KEDGE_TRY(kedgei_follow_call(f, &msg, reply, &got, d));
    const struct kedge_msg_chunk *chunk = &got.u.chunk;
    if (got.type != KEDGE_MSG_CHUNK || chunk->offset != offset || chunk->data.len > KEDGEI_FOLLOW_PIECE
        || chunk->total < offset || chunk->data.len > chunk->total - offset
        || (chunk->data.len == 0 && chunk->total > offset)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator gave an answer that is none");
    }
    *ret = chunk->data;
    *ret_total = chunk->total;
    return KEDGE_OK;
}

/* The caller's buffer bounds the resource: a coordinator that tells of more is in error, and this machine's
 * memory is not at its mercy. */
int kedgei_follow_resource(struct kedgei_watch *f, const char *path, struct kedge_buf *ret,
                           struct kedge_diag *d)
{
    uint64_t offset = 0, total = 0;
    do {
        struct kedge_net_reply reply = {.impl = NULL};
        struct kedge_view piece;
        int err = kedgei_follow_piece(f, path, offset, &reply, &piece, &total, d);
        if (!err) {
            kedge_buf_put(ret, piece.ptr, piece.len);
            offset += piece.len;
            err = ret->err ? kedge_diag_set(d, ret->err, "%s: more than there can be", path) : KEDGE_OK;
        }
        kedge_net_reply_release(&reply);
        if (err) {
            return err;
        }
    } while (offset < total);
    return KEDGE_OK;
}
