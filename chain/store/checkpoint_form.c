/* Checkpoints without what their place says already.
 *
 * A checkpoint is stored under its size in the ledger of its origin, so only root, key id and signature
 * are new in it: the text is left out and 101 bytes are stored. It is shortened only if spelling it again
 * gives the same bytes, so a note with cosignatures or from another program stays as it is. */
#include "chain/store/checkpoint_form.h"

#include <string.h>

#include "common/base/text.h"
#include "common/base/try.h"

enum {
    FORM_SHORT = 1,
    SIGNED = KEDGE_KEY_ID_LEN + KEDGE_SIGNATURE_LEN,
};

int kedgei_checkpoint_spell(struct kedge_view origin, uint64_t size,
                            const uint8_t in[KEDGEI_CHECKPOINT_SHORT], struct kedge_buf *out)
{
    struct kedge_hash root;
    memcpy(root.b, in, sizeof root.b);
    KEDGE_TRY(kedge_checkpoint_format(origin, size, &root, out));
    kedge_buf_put_str(out, "\n\xe2\x80\x94 "); /* U+2014 EM DASH, space */
    kedge_buf_put(out, origin.ptr, origin.len);
    kedge_buf_put_u8(out, ' ');
    kedge_base64_put(out, kedge_view_of(in + KEDGE_HASH_LEN, SIGNED));
    kedge_buf_put_u8(out, '\n');
    return out->err;
}

/* What a note of a log's own key has between its spellings; false: it is none. */
static bool read_parts(struct kedge_view bytes, uint8_t out[KEDGEI_CHECKPOINT_SHORT],
                       struct kedge_checkpoint *ret)
{
    struct kedge_note note;
    if (kedge_note_parse(bytes, &note) != KEDGE_OK || note.line_count != 1
        || kedge_checkpoint_parse(note.text, ret) != KEDGE_OK
        || !kedge_view_eq(note.lines[0].name, ret->origin)) {
        return false;
    }
    struct kedge_buf blob KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&blob, SIGNED);
    if (kedge_base64_decode(note.lines[0].base64, false, &blob) != KEDGE_OK || blob.len != SIGNED) {
        return false;
    }
    memcpy(out, ret->root.b, KEDGE_HASH_LEN);
    memcpy(out + KEDGE_HASH_LEN, blob.ptr, SIGNED);
    return true;
}

/* The comparison at the end is the proof that the form loses nothing; what the parser accepts beyond the
 * one spelling (other base64, another order) is not relied on. */
bool kedgei_checkpoint_shorten(struct kedge_view note, uint8_t out[KEDGEI_CHECKPOINT_SHORT],
                               struct kedge_checkpoint *ret_checkpoint)
{
    struct kedge_checkpoint c;
    if (!read_parts(note, out, &c)) {
        return false;
    }
    struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&again, KEDGE_CHECKPOINT_MAX);
    if (kedgei_checkpoint_spell(c.origin, c.size, out, &again) != KEDGE_OK
        || !kedge_view_eq(kedge_buf_view(&again), note)) {
        return false;
    }
    *ret_checkpoint = c;
    return true;
}

struct kedge_view kedgei_head_store(struct kedge_view origin, uint64_t size, struct kedge_view note,
                                    struct kedge_buf *room)
{
    uint8_t parts[KEDGEI_CHECKPOINT_SHORT];
    struct kedge_checkpoint c;
    if (!kedgei_checkpoint_shorten(note, parts, &c) || c.size != size || !kedge_view_eq(c.origin, origin)) {
        return note;
    }
    kedge_buf_clear(room);
    kedge_buf_put_u8(room, FORM_SHORT);
    kedge_buf_put(room, parts, sizeof parts);
    return room->err ? note : kedge_buf_view(room);
}

/* A stored note of exactly that length which begins with byte 1 cannot be text, because notes are
 * printable lines; so no mark besides the form byte is needed. */
int kedge_head_load(struct kedge_view origin, uint64_t size, struct kedge_view stored, struct kedge_buf *room,
                    struct kedge_view *ret_note)
{
    if (stored.len != 1 + KEDGEI_CHECKPOINT_SHORT || stored.ptr[0] != FORM_SHORT) {
        *ret_note = stored;
        return KEDGE_OK;
    }
    kedge_buf_clear(room);
    int err = kedgei_checkpoint_spell(origin, size, stored.ptr + 1, room);
    if (err) {
        return err == KEDGE_E_NOMEM ? err : KEDGE_E_CORRUPT;
    }
    *ret_note = kedge_buf_view(room);
    return KEDGE_OK;
}
