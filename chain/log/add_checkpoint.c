/* c2sp.org/tlog-witness: a log asks a witness to cosign its checkpoint and proves that it grew out of what
 * the witness cosigned last.
 *
 * The log cannot know for sure what that was. A 409 with a size tells it, and the log asks again from
 * there; but only if the size is not beyond its own. A witness that has cosigned more entries than there
 * are here shows that this log is an old copy, or that a second one with its key exists. That must be told
 * to a person and never be repaired by asking again. */
#include "chain/log/add_checkpoint.h"

#include <inttypes.h>

#include "chain/log/lines.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum {
    STATUS_OK = 200,
    STATUS_BAD_REQUEST = 400,
    STATUS_FORBIDDEN = 403,
    STATUS_NOT_FOUND = 404,
    STATUS_CONFLICT = 409,
    STATUS_UNPROCESSABLE = 422,
};

/* Room is reserved for the whole request before the first byte, so an error leaves no half of one in the
 * buffer. */
int kedge_add_checkpoint_format(uint64_t old_size, const struct kedge_hash *path, size_t path_len,
                                struct kedge_view note, struct kedge_buf *ret_request)
{
    if (old_size > KEDGE_TREE_SIZE_MAX || path_len > KEDGE_ADD_CHECKPOINT_HASHES_MAX || note.len == 0
        || note.len > KEDGE_NOTE_MAX) {
        return KEDGE_E_ARG;
    }
    size_t line_len = kedge_base64_len(KEDGE_HASH_LEN) + 1;
    KEDGE_TRY(kedge_buf_reserve(ret_request, 4 + 19 + 1 + path_len * line_len + 1 + note.len));
    kedge_buf_printf(ret_request, "old %" PRIu64 "\n", old_size);
    for (size_t i = 0; i < path_len; i++) {
        kedge_base64_put(ret_request, kedge_view_of(path[i].b, sizeof path[i].b));
        kedge_buf_put_u8(ret_request, '\n');
    }
    kedge_buf_put_u8(ret_request, '\n');
    kedge_buf_put(ret_request, note.ptr, note.len);
    return ret_request->err;
}

/* The size that a 409 states: decimal, LF. Strict, since the size decides where the next proof starts;
 * nothing else of the body is used. */
static int read_conflict(struct kedge_view body, uint64_t *ret_size)
{
    struct kedge_view rest = body, line;
    if (!kedgei_take_line(&rest, &line) || rest.len > 0) {
        return KEDGE_E_FORMAT;
    }
    return kedge_decimal_decode(line, KEDGE_TREE_SIZE_MAX, ret_size);
}

static void judge_conflict(const struct kedge_witness_asked *asked, struct kedge_view body,
                           struct kedge_witness_answer *ret)
{
    uint64_t size;
    if (read_conflict(body, &size) != KEDGE_OK) {
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
    case STATUS_BAD_REQUEST:
        return "it finds the request malformed (400)";
    case STATUS_FORBIDDEN:
        return "it does not take the log's signature (403)";
    case STATUS_NOT_FOUND:
        return "it does not know this log (404): its operator has to add it";
    case STATUS_UNPROCESSABLE:
        return "it finds that the log did not grow out of what it cosigned (422): two histories, or it lies";
    default:
        return "its answer is none of the protocol";
    }
}

/* Refusals are results and not errors: the caller goes on with its other witnesses. Only what says nothing of
 * the witness (no memory, a note that is too long) ends the call. A 200 counts only if the body has a
 * cosignature of this witness that verifies over this note. */
int kedge_add_checkpoint_judge(const struct kedge_witness_asked *asked, unsigned status,
                               struct kedge_view body, struct kedge_buf *ret_note,
                               struct kedge_witness_answer *ret)
{
    struct kedge_witness_answer a = {.outcome = KEDGE_WITNESS_REFUSED, .reason = ""};
    if (status == STATUS_CONFLICT) {
        judge_conflict(asked, body, &a);
    } else if (status != STATUS_OK) {
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
