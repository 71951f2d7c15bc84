/* The text that a log signs: origin, size, root. One spelling is taken: decimal without leading zeros,
 * base64 of 32 bytes, LF. Size 0 must come with the empty tree's root, so that an empty log, too, has one
 * checkpoint only. */
#include "chain/log/checkpoint.h"

#include <inttypes.h>

#include "chain/log/lines.h"
#include "common/base/text.h"
#include "common/base/try.h"

/* An origin is the first line of a text that is signed: a line feed in it would let one checkpoint be
 * read as another. */
static bool is_origin(struct kedge_view origin)
{
    for (size_t i = 0; i < origin.len; i++) {
        if (origin.ptr[i] < 0x20) {
            return false;
        }
    }
    return origin.len > 0 && kedge_utf8_is_valid(origin);
}

int kedge_checkpoint_format(struct kedge_view origin, uint64_t size, const struct kedge_hash *root,
                            struct kedge_buf *ret_text)
{
    if (!is_origin(origin) || size > KEDGE_TREE_SIZE_MAX) {
        return KEDGE_E_ARG;
    }
    KEDGE_TRY(kedge_buf_reserve(ret_text, origin.len + 1 + 20 + 1 + kedge_base64_len(KEDGE_HASH_LEN) + 1));
    kedge_buf_put(ret_text, origin.ptr, origin.len);
    kedge_buf_printf(ret_text, "\n%" PRIu64 "\n", size);
    kedge_base64_put(ret_text, kedge_view_of(root->b, sizeof root->b));
    kedge_buf_put_u8(ret_text, '\n');
    return ret_text->err;
}

/* Extension lines are allowed by the format, if they are not empty, and passed over. */
int kedge_checkpoint_parse(struct kedge_view text, struct kedge_checkpoint *ret_checkpoint)
{
    struct kedge_checkpoint c;
    struct kedge_view rest = text;
    struct kedge_view size, root, line;
    if (!kedgei_take_line(&rest, &c.origin) || !kedgei_take_line(&rest, &size)
        || !kedgei_take_line(&rest, &root) || !is_origin(c.origin)) {
        return KEDGE_E_FORMAT;
    }
    KEDGE_TRY(kedge_decimal_decode(size, KEDGE_TREE_SIZE_MAX, &c.size));
    KEDGE_TRY(kedgei_base64_hash(root, &c.root));
    c.extensions = rest;
    while (kedgei_take_line(&rest, &line)) {
        if (line.len == 0) {
            return KEDGE_E_FORMAT;
        }
    }
    struct kedge_hash empty;
    kedge_merkle_empty_root(&empty);
    if (rest.len > 0 || (c.size == 0 && !kedge_hash_eq(&c.root, &empty))) {
        return KEDGE_E_FORMAT;
    }
    *ret_checkpoint = c;
    return KEDGE_OK;
}

int kedge_checkpoint_sign(struct kedge_view origin, uint64_t size, const struct kedge_hash *root,
                          const struct kedge_key_pair *pair, struct kedge_buf *ret_note)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_CHECKPOINT_MAX);
    int err = kedge_checkpoint_format(origin, size, root, &text);
    return err ? err : kedge_note_sign(kedge_buf_view(&text), origin, pair, ret_note);
}

/* Origin, then signatures: a note by the right key about another log is refused, and the verdicts are
 * written only when everything held. */
int kedge_checkpoint_open(struct kedge_view bytes, struct kedge_view expected_origin,
                          const struct kedge_vkey *known, size_t known_count,
                          struct kedge_checkpoint *ret_checkpoint, struct kedge_note_verdict *ret_verdicts)
{
    if (known_count > KEDGE_NOTE_SIGNATURES_MAX) {
        return KEDGE_E_ARG;
    }
    struct kedge_note note;
    struct kedge_checkpoint c;
    KEDGE_TRY(kedge_note_parse(bytes, &note));
    KEDGE_TRY(kedge_checkpoint_parse(note.text, &c));
    if (expected_origin.ptr && !kedge_view_eq(c.origin, expected_origin)) {
        return KEDGE_E_VERIFY;
    }
    struct kedge_note_verdict verdicts[KEDGE_NOTE_SIGNATURES_MAX];
    KEDGE_TRY(kedge_note_verify(&note, known, known_count, verdicts, NULL));
    /* Cosignatures alone say nothing of who keeps the log: one of its own keys must have signed. */
    bool by_log = false;
    for (size_t i = 0; i < known_count; i++) {
        by_log = by_log || (verdicts[i].verified && known[i].type == KEDGE_KEY_ED25519);
    }
    if (!by_log) {
        return KEDGE_E_VERIFY;
    }
    for (size_t i = 0; ret_verdicts && i < known_count; i++) {
        ret_verdicts[i] = verdicts[i];
    }
    *ret_checkpoint = c;
    return KEDGE_OK;
}
