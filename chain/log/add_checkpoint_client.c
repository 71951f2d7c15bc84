#include "chain/log/add_checkpoint_client.h"

static void judge_conflict(const struct kedge_witness_asked *asked, struct kedge_view body,
                           struct kedge_witness_answer *ret)
{
    uint64_t size;
    if (kedge_add_checkpoint_read_conflict(body, &size) != KEDGE_OK) {
        ret->reason = "it has another size, and does not say which";
    } else if (size == asked->old_size) {
        ret->reason = "it says that it has the size that it was asked from, and refuses it";
    } else {
        ret->size = size;
        ret->outcome = size > asked->size ? KEDGE_WITNESS_AHEAD : KEDGE_WITNESS_AGAIN;
        ret->reason = size > asked->size
                          ? "it has cosigned more entries than there are here: an old backup, or "
                            "two logs with one key"
                          : "it has another size";
    }
}

static const char *reason_of(unsigned status)
{
    switch (status) {
    case KEDGE_WITNESS_BAD_REQUEST:
        return "it finds the request malformed (400)";
    case KEDGE_WITNESS_FORBIDDEN:
        return "it does not take the log's signature (403)";
    case KEDGE_WITNESS_NOT_FOUND:
        return "it does not know this log (404): its operator has to add it";
    case KEDGE_WITNESS_UNPROCESSABLE:
        return "it finds that the log did not grow out of what it cosigned (422): two histories, or it lies";
    default:
        return "its answer is none of the protocol";
    }
}

int kedge_add_checkpoint_judge(const struct kedge_witness_asked *asked, unsigned status,
                               struct kedge_view body, struct kedge_buf *ret_note,
                               struct kedge_witness_answer *ret)
{
    struct kedge_witness_answer a = {.outcome = KEDGE_WITNESS_REFUSED, .reason = ""};
    if (status == KEDGE_WITNESS_CONFLICT) {
        judge_conflict(asked, body, &a);
    } else if (status != KEDGE_WITNESS_OK) {
        a.reason = reason_of(status);
    } else {
        int err = kedge_cosignature_accept(asked->note, body, asked->witness, 1, ret_note, NULL);
        if (err == KEDGE_E_VERIFY || err == KEDGE_E_FORMAT) {
            a.reason = err == KEDGE_E_FORMAT ? "its cosignature is malformed"
                                             : "its answer has no cosignature of its key that verifies";
        } else if (err) {
            return err;
        } else {
            a.outcome = KEDGE_WITNESS_COSIGNED;
            a.size = asked->size;
        }
    }
    *ret = a;
    return KEDGE_OK;
}
