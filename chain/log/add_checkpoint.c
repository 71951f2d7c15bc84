/* The order of the checks is the protocol's and the ledger reference's: a client tells from the status what
 * to do next, so the first one that fails must be the one it hears of. */
#include "chain/log/add_checkpoint.h"

#include <inttypes.h>
#include <stdio.h>

#include "chain/log/checkpoint_impl.h"
#include "chain/log/lines.h"
#include "chain/log/note_impl.h"
#include "common/base/text.h"

int kedge_add_checkpoint_format(uint64_t old_size, const struct kedge_hash *path, size_t path_len,
                                struct kedge_view note, struct kedge_buf *ret_request)
{
    if (old_size > KEDGE_TREE_SIZE_MAX || path_len > KEDGE_ADD_CHECKPOINT_HASHES_MAX || note.len == 0
        || note.len > KEDGE_NOTE_MAX) {
        return KEDGE_E_ARG;
    }
    size_t line_len = kedge_base64_len(KEDGE_HASH_LEN) + 1;
    int err = kedge_buf_reserve(ret_request, 4 + 19 + 1 + path_len * line_len + 1 + note.len);
    if (err) {
        return err;
    }
    kedge_buf_printf(ret_request, "old %" PRIu64 "\n", old_size);
    for (size_t i = 0; i < path_len; i++) {
        kedge_base64_put(ret_request, kedge_view_of(path[i].b, sizeof path[i].b));
        kedge_buf_put_u8(ret_request, '\n');
    }
    kedge_buf_put_u8(ret_request, '\n');
    kedge_buf_put(ret_request, note.ptr, note.len);
    return ret_request->err;
}

/* The proof's lines and the empty one behind them. */
static int parse_path(struct kedge_view *rest, struct kedge_path *ret_path)
{
    struct kedge_view line;
    ret_path->count = 0;
    while (kedgei_take_line(rest, &line)) {
        if (line.len == 0) {
            return KEDGE_OK;
        }
        if (ret_path->count == KEDGE_ADD_CHECKPOINT_HASHES_MAX) {
            return KEDGE_E_TOO_LONG;
        }
        int err = kedgei_base64_hash(line, &ret_path->hashes[ret_path->count]);
        if (err) {
            return err;
        }
        ret_path->count++;
    }
    return KEDGE_E_FORMAT;
}

static int parse(struct kedge_view bytes, struct kedge_add_checkpoint *ret_request,
                 struct kedge_note *ret_note, bool *ret_is_strict)
{
    struct kedge_view rest = bytes, line;
    if (bytes.len > KEDGE_ADD_CHECKPOINT_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    if (!kedgei_take_line(&rest, &line) || !kedgei_take_prefix(&line, "old ")) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_add_checkpoint r;
    int err = kedge_decimal_decode(line, KEDGE_TREE_SIZE_MAX, &r.old_size);
    err = err ? err : parse_path(&rest, &r.path);
    r.note = rest;
    err = err ? err : kedgei_note_parse_lenient(rest, ret_note, ret_is_strict);
    err = err ? err : kedgei_checkpoint_parse_any_root(ret_note->text, &r.checkpoint);
    if (err) {
        return err;
    }
    r.text = ret_note->text;
    *ret_request = r;
    return KEDGE_OK;
}

int kedge_add_checkpoint_parse(struct kedge_view bytes, struct kedge_add_checkpoint *ret_request)
{
    struct kedge_note note;
    bool is_strict;
    return parse(bytes, ret_request, &note, &is_strict);
}

/* One of the origin's keys signed and none of them fails. *ret_known: the origin has keys at all. */
static int verify_log(const struct kedge_note *note, struct kedge_view origin,
                      const struct kedge_witnessed_log *logs, size_t log_count, bool *ret_known)
{
    struct kedge_vkey keys[KEDGE_NOTE_SIGNATURES_MAX];
    size_t count = 0;
    *ret_known = false;
    for (size_t i = 0; i < log_count; i++) {
        if (!kedge_view_eq(logs[i].origin, origin)) {
            continue;
        }
        if (count == KEDGE_NOTE_SIGNATURES_MAX || logs[i].key.type != KEDGE_KEY_ED25519) {
            return KEDGE_E_ARG;
        }
        *ret_known = true;
        keys[count++] = logs[i].key;
    }
    return count ? kedge_note_verify(note, keys, count, NULL, NULL) : KEDGE_E_VERIFY;
}

static int answer(enum kedge_witness_status status, const char *reason, enum kedge_witness_status *ret_status,
                  const char **ret_reason)
{
    *ret_status = status;
    *ret_reason = reason;
    return KEDGE_OK;
}

int kedge_add_checkpoint_open(struct kedge_view bytes, const struct kedge_witnessed_log *logs,
                              size_t log_count, struct kedge_add_checkpoint *ret_request,
                              enum kedge_witness_status *ret_status, const char **ret_reason)
{
    struct kedge_add_checkpoint r;
    struct kedge_note note;
    bool is_strict, is_known;
    int err = parse(bytes, &r, &note, &is_strict);
    if (err == KEDGE_E_NOMEM) {
        return err;
    }
    if (err) {
        return answer(KEDGE_WITNESS_BAD_REQUEST, "malformed request", ret_status, ret_reason);
    }
    err = verify_log(&note, r.checkpoint.origin, logs, log_count, &is_known);
    if (err == KEDGE_E_NOMEM || err == KEDGE_E_ARG) {
        return err;
    }
    *ret_request = r;
    if (!is_known) {
        return answer(KEDGE_WITNESS_NOT_FOUND, "origin unknown", ret_status, ret_reason);
    }
    if (err || !is_strict) {
        return answer(KEDGE_WITNESS_FORBIDDEN, "no valid signature of the log", ret_status, ret_reason);
    }
    if (r.old_size > r.checkpoint.size) {
        return answer(KEDGE_WITNESS_BAD_REQUEST, "old size above the checkpoint's", ret_status, ret_reason);
    }
    return answer(KEDGE_WITNESS_OK, "", ret_status, ret_reason);
}

static struct kedge_witness_decision refuse(enum kedge_witness_status status, const char *reason)
{
    return (struct kedge_witness_decision){.status = status, .reason = reason};
}

static struct kedge_witness_decision decide(const struct kedge_add_checkpoint *r, uint64_t recorded_size,
                                            const struct kedge_hash *recorded_root)
{
    const struct kedge_checkpoint *c = &r->checkpoint;
    if (r->old_size > c->size) {
        return refuse(KEDGE_WITNESS_BAD_REQUEST, "old size above the checkpoint's");
    }
    if (r->old_size != recorded_size) {
        return refuse(KEDGE_WITNESS_CONFLICT, "old size is not the recorded one");
    }
    if (!kedgei_checkpoint_root_fits(c)) {
        return refuse(KEDGE_WITNESS_UNPROCESSABLE, "size 0 with a root that is not the empty tree's");
    }
    if (r->old_size == c->size) {
        if (c->size > 0 && !kedge_hash_eq(&c->root, recorded_root)) {
            return refuse(KEDGE_WITNESS_UNPROCESSABLE, "another root than the recorded one at the same size");
        }
        return r->path.count == 0 ? refuse(KEDGE_WITNESS_OK, "")
                                  : refuse(KEDGE_WITNESS_UNPROCESSABLE, "a proof between equal sizes");
    }
    if (r->old_size == 0) {
        return r->path.count == 0 ? refuse(KEDGE_WITNESS_OK, "")
                                  : refuse(KEDGE_WITNESS_UNPROCESSABLE, "a proof from the empty tree");
    }
    int err = kedge_consistency_verify(r->old_size, c->size, recorded_root, &c->root, r->path.hashes,
                                       r->path.count);
    return err ? refuse(KEDGE_WITNESS_UNPROCESSABLE, "the consistency proof fails")
               : refuse(KEDGE_WITNESS_OK, "");
}

void kedge_add_checkpoint_decide(const struct kedge_add_checkpoint *request, uint64_t recorded_size,
                                 const struct kedge_hash *recorded_root,
                                 struct kedge_witness_decision *ret_decision)
{
    *ret_decision = decide(request, recorded_size, recorded_root);
    ret_decision->recorded_size = recorded_size;
    ret_decision->is_fork = recorded_size > 0 && request->checkpoint.size == recorded_size
                            && !kedge_hash_eq(&request->checkpoint.root, recorded_root);
}

const char *kedge_add_checkpoint_reply(const struct kedge_witness_decision *decision, struct kedge_view lines,
                                       struct kedge_buf *ret_body)
{
    switch (decision->status) {
    case KEDGE_WITNESS_OK:
        kedge_buf_put(ret_body, lines.ptr, lines.len);
        break;
    case KEDGE_WITNESS_CONFLICT:
        kedge_buf_printf(ret_body, "%" PRIu64 "\n", decision->recorded_size);
        return "text/x.tlog.size";
    case KEDGE_WITNESS_BAD_REQUEST:
    case KEDGE_WITNESS_FORBIDDEN:
    case KEDGE_WITNESS_NOT_FOUND:
    case KEDGE_WITNESS_UNPROCESSABLE:
        break;
    }
    return "text/plain; charset=utf-8";
}

int kedge_add_checkpoint_read_conflict(struct kedge_view body, uint64_t *ret_size)
{
    struct kedge_view rest = body, line;
    if (!kedgei_take_line(&rest, &line) || rest.len > 0) {
        return KEDGE_E_FORMAT;
    }
    return kedge_decimal_decode(line, KEDGE_TREE_SIZE_MAX, ret_size);
}

void kedge_witness_monitoring_path(struct kedge_view origin, char out[KEDGE_MONITORING_PATH_LEN + 1])
{
    struct kedge_hash h;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_sha256(origin, &h);
    kedge_hash_hex(&h, hex);
    snprintf(out, KEDGE_MONITORING_PATH_LEN + 1, "%s/checkpoint", hex);
}
