/* Evidence that a log signed two histories, which convinces everybody who has the log's key: two signed
 * checkpoints, and a path through the tree of the larger one.
 *
 * Two roots of one size need no path. For two sizes, a consistency proof that fails shows nothing, since
 * anybody can make one that fails. So the path is one that succeeds for the larger tree: it rebuilds the
 * root that was signed, and the root of the smaller size that comes out beside it differs from the one
 * that was signed. Only the log can have made such a pair.
 *
 * Checkpoint texts have no empty lines, so two notes and the empty lines between them can be told apart
 * without lengths. */
#include "chain/log/fork_evidence.h"

#include <inttypes.h>
#include <string.h>

#include "chain/log/lines.h"
#include "chain/log/witness_policy.h"
#include "common/base/text.h"
#include "common/base/try.h"

static const char header[] = "kedge.dev/fork-evidence@v1\n";

static int parse_checkpoint(struct kedge_view bytes, struct kedge_checkpoint *ret_checkpoint)
{
    struct kedge_note note;
    int err = kedge_note_parse(bytes, &note);
    return err ? err : kedge_checkpoint_parse(note.text, ret_checkpoint);
}

/* The smaller checkpoint first, whatever the order in which they were met: the same two checkpoints give
 * the same evidence. */
int kedge_fork_evidence_encode(struct kedge_view note, struct kedge_view other, const struct kedge_path *path,
                               struct kedge_buf *ret_text)
{
    struct kedge_checkpoint a, b;
    KEDGE_TRY(parse_checkpoint(note, &a));
    KEDGE_TRY(parse_checkpoint(other, &b));
    size_t count = path ? path->count : 0;
    if (count > KEDGE_PROOF_MAX || (a.size == b.size) != (count == 0)) {
        return KEDGE_E_ARG;
    }
    bool swap = a.size > b.size;
    struct kedge_view first = swap ? other : note, second = swap ? note : other;
    size_t line_len = kedge_base64_len(KEDGE_HASH_LEN) + 1;
    KEDGE_TRY(kedge_buf_reserve(ret_text, sizeof header + count * line_len + 2 + first.len + second.len));
    kedge_buf_put_str(ret_text, header);
    for (size_t i = 0; i < count; i++) {
        kedge_base64_put(ret_text, kedge_view_of(path->hashes[i].b, KEDGE_HASH_LEN));
        kedge_buf_put_u8(ret_text, '\n');
    }
    kedge_buf_put_u8(ret_text, '\n');
    kedge_buf_put(ret_text, first.ptr, first.len);
    kedge_buf_put_u8(ret_text, '\n');
    kedge_buf_put(ret_text, second.ptr, second.len);
    return ret_text->err;
}

/* Lines up to and with the second empty one: a note and what parts it from the next. The note ends before
 * that empty line. */
static bool take_note(struct kedge_view *rest, struct kedge_view *ret_note)
{
    struct kedge_view line;
    const uint8_t *begin = rest->ptr;
    unsigned empty = 0;
    while (empty < 2 && kedgei_take_line(rest, &line)) {
        empty += line.len == 0 ? 1 : 0;
    }
    if (empty < 2) {
        return false;
    }
    *ret_note = kedge_view_of(begin, (size_t)(line.ptr - begin));
    return true;
}

/* Sizes and path must fit together before anything is verified: equal sizes have no path, different ones
 * must have one. */
int kedge_fork_evidence_decode(struct kedge_view text, struct kedge_fork_evidence *ret_evidence)
{
    if (text.len > KEDGE_FORK_EVIDENCE_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    struct kedge_view rest = text;
    struct kedge_fork_evidence e;
    if (!kedgei_take_prefix(&rest, header)) {
        return KEDGE_E_FORMAT;
    }
    KEDGE_TRY(kedgei_take_path(&rest, &e.path));
    if (!take_note(&rest, &e.old_note)) {
        return KEDGE_E_FORMAT;
    }
    e.new_note = rest;
    KEDGE_TRY(parse_checkpoint(e.old_note, &e.old_checkpoint));
    KEDGE_TRY(parse_checkpoint(e.new_note, &e.new_checkpoint));
    uint64_t m = e.old_checkpoint.size;
    uint64_t n = e.new_checkpoint.size;
    if (m > n || (m == n) != (e.path.count == 0)) {
        return KEDGE_E_FORMAT;
    }
    *ret_evidence = e;
    return KEDGE_OK;
}

/* That a key of the log signed this one; says which of the two when none did. */
static int check_signed(struct kedge_view note, const struct kedge_checkpoint *c,
                        const struct kedge_vkey *keys, size_t key_count, struct kedge_diag *reterr)
{
    struct kedge_checkpoint opened;
    int err = kedge_checkpoint_open(note, c->origin, keys, key_count, &opened, NULL);
    return err ? kedge_diag_set(reterr, err,
                                "proves nothing: the checkpoint of size %" PRIu64
                                " is not validly signed by a given key of the log",
                                c->size)
               : KEDGE_OK;
}

/* Two checkpoints of one log convict it when a path of its own rebuilds the newer root from other old
 * leaves than the older checkpoint signed, or when two roots of one size differ. Everything that would
 * convict an honest log is refused first: other origins, other keys, a path that does not lead anywhere. */
int kedge_fork_evidence_verify(const struct kedge_fork_evidence *evidence, const struct kedge_vkey *log_keys,
                               size_t key_count, struct kedge_hash *ret_actual_root,
                               struct kedge_diag *reterr)
{
    const struct kedge_checkpoint *old = &evidence->old_checkpoint, *new = &evidence->new_checkpoint;
    if (!kedge_view_eq(old->origin, new->origin)) {
        return kedge_diag_set(reterr, KEDGE_E_VERIFY, "proves nothing: the checkpoints are of two origins");
    }
    KEDGE_TRY(check_signed(evidence->old_note, old, log_keys, key_count, reterr));
    KEDGE_TRY(check_signed(evidence->new_note, new, log_keys, key_count, reterr));
    struct kedge_hash actual = new->root, root = new->root;
    if (old->size < new->size
        && kedge_consistency_roots(old->size, new->size, evidence->path.hashes, evidence->path.count, &actual,
                                   &root)
               != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_VERIFY,
                              "proves nothing: the path does not lead from size %" PRIu64 " to %" PRIu64,
                              old->size, new->size);
    }
    if (!kedge_hash_eq(&root, &new->root)) {
        return kedge_diag_set(reterr, KEDGE_E_VERIFY,
                              "proves nothing: the path does not rebuild the root signed for size %" PRIu64,
                              new->size);
    }
    if (kedge_hash_eq(&actual, &old->root)) {
        return kedge_diag_set(reterr, KEDGE_E_VERIFY,
                              "proves nothing: the checkpoints of sizes %" PRIu64 " and %" PRIu64
                              " are consistent",
                              old->size, new->size);
    }
    if (ret_actual_root) {
        *ret_actual_root = actual;
    }
    return KEDGE_OK;
}

/* Names in it were written by the log under suspicion and are shown with control bytes made visible. */
void kedge_fork_evidence_describe(const struct kedge_fork_evidence *evidence,
                                  const struct kedge_hash *actual_root, struct kedge_buf *out)
{
    const struct kedge_checkpoint *old = &evidence->old_checkpoint, *new = &evidence->new_checkpoint;
    char shown[KEDGE_WITNESS_SHOWN_MAX], signed_hex[KEDGE_HASH_HEX_LEN + 1],
        actual_hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&old->root, signed_hex);
    kedge_hash_hex(actual_root, actual_hex);
    kedge_buf_printf(out, "the log \"%s\" signed two histories\n",
                     kedge_witness_name_show(old->origin, shown));
    kedge_buf_printf(out, "  signed for size %" PRIu64 ":        root %s\n", old->size, signed_hex);
    if (old->size == new->size) {
        kedge_buf_printf(out, "  and signed for it, too: root %s\n", actual_hex);
    } else {
        kedge_buf_printf(
            out, "  in the tree signed for size %" PRIu64 " the first %" PRIu64 " leaves have root %s\n",
            new->size, old->size, actual_hex);
    }
}
