/* Adding lines to a note that others have signed. Notes are taken apart by kedge_note_parse and put
 * together again from the very bytes it found, so that a line nobody here understands comes out as it went
 * in.
 *
 * A new line of the same key takes the place of the old one: a witness that cosigns every minute must not
 * fill the note. A cosignature that is older than the one that is there does not, or a replayed answer
 * would put an old time in the place of a newer one. */
#include "chain/log/cosignature.h"

#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/note_impl.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum { TIME_LEN = 8, BLOB_LEN = KEDGE_KEY_ID_LEN + TIME_LEN + KEDGE_SIGNATURE_LEN };

/* What is cosigned must be a checkpoint: a witness whose key signed arbitrary text would be of use to
 * the one who chose the text. */
int kedge_cosignature_make(struct kedge_view text, struct kedge_view name, const struct kedge_key_pair *pair,
                           uint64_t time_s, struct kedge_buf *ret_line)
{
    struct kedge_checkpoint checkpoint;
    struct kedge_vkey vkey;
    if (time_s > (uint64_t)INT64_MAX) {
        return KEDGE_E_ARG;
    }
    KEDGE_TRY(kedge_vkey_make(name, KEDGE_KEY_COSIGNATURE, &pair->public, &vkey));
    KEDGE_TRY(kedge_checkpoint_parse(text, &checkpoint));
    struct kedge_buf message KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&message, KEDGE_NOTE_MAX + 64);
    kedgei_cosignature_message(text, time_s, &message);
    int err =
        message.err ? message.err : kedge_buf_reserve(ret_line, kedgei_note_line_len(name.len, BLOB_LEN));
    if (err) {
        return err;
    }
    uint8_t blob[BLOB_LEN];
    struct kedge_signature sig;
    kedge_sign(kedge_buf_view(&message), pair, &sig);
    memcpy(blob, vkey.id, KEDGE_KEY_ID_LEN);
    kedge_store_be64(blob + KEDGE_KEY_ID_LEN, time_s);
    memcpy(blob + KEDGE_KEY_ID_LEN + TIME_LEN, sig.b, sizeof sig.b);
    kedgei_note_put_line(name, kedge_view_of(blob, sizeof blob), ret_line);
    return ret_line->err;
}

static bool is_same_line_key(const struct kedge_note_line *a, const struct kedge_note_line *b)
{
    return kedgei_note_line_is_of(a, b->name, b->id);
}

/* Puts line in the place of its key's first line and closes the gaps that further ones leave. */
static int put_line(struct kedge_note *note, const struct kedge_note_line *line)
{
    uint32_t kept = 0;
    bool placed = false;
    for (uint32_t i = 0; i < note->line_count; i++) {
        bool same = is_same_line_key(&note->lines[i], line);
        if (!same) {
            note->lines[kept++] = note->lines[i];
        } else if (!placed) {
            note->lines[kept++] = *line;
            placed = true;
        }
    }
    if (!placed && kept == KEDGE_NOTE_SIGNATURES_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    if (!placed) {
        note->lines[kept++] = *line;
    }
    note->line_count = kept;
    return KEDGE_OK;
}

/* All or nothing. The length is known beforehand, so the buffer is reserved once and the caller's is
 * either as before or has the whole note. */
static int write_note(const struct kedge_note *note, struct kedge_buf *ret_note)
{
    size_t len = note->text.len + 1;
    for (uint32_t i = 0; i < note->line_count; i++) {
        len += note->lines[i].line.len;
    }
    if (len > KEDGE_NOTE_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    KEDGE_TRY(kedge_buf_reserve(ret_note, len));
    kedge_buf_put(ret_note, note->text.ptr, note->text.len);
    kedge_buf_put_u8(ret_note, '\n');
    for (uint32_t i = 0; i < note->line_count; i++) {
        kedge_buf_put(ret_note, note->lines[i].line.ptr, note->lines[i].line.len);
    }
    return ret_note->err;
}

int kedge_note_add_line(struct kedge_view note, struct kedge_view line, struct kedge_buf *ret_note)
{
    struct kedge_note into, from;
    KEDGE_TRY(kedge_note_parse(note, &into));
    KEDGE_TRY(kedgei_note_parse_lines(line, &from));
    if (from.line_count != 1) {
        return KEDGE_E_FORMAT;
    }
    KEDGE_TRY(put_line(&into, &from.lines[0]));
    return write_note(&into, ret_note);
}

/* The time that key's line of the note states and holds for, 0 when there is none. A line that does not
 * hold has no time, so it is replaced by one that does. */
static uint64_t time_there(const struct kedge_note *note, const struct kedge_vkey *key)
{
    struct kedge_note_verdict verdict;
    return kedge_note_verify(note, key, 1, &verdict, NULL) == KEDGE_OK ? verdict.time_s : 0;
}

/* The lines are verified against the text of our own note and never against one that came with them;
 * lines of other keys are left out. */
int kedge_cosignature_accept(struct kedge_view note, struct kedge_view lines,
                             const struct kedge_vkey *witnesses, size_t count, struct kedge_buf *ret_note,
                             struct kedge_note_verdict *ret_verdicts)
{
    struct kedge_note into, from;
    struct kedge_note_verdict verdicts[KEDGE_NOTE_SIGNATURES_MAX];
    for (size_t i = 0; i < count; i++) {
        if (witnesses[i].type != KEDGE_KEY_COSIGNATURE) {
            return KEDGE_E_ARG;
        }
    }
    if (count > KEDGE_NOTE_SIGNATURES_MAX) {
        return KEDGE_E_ARG;
    }
    KEDGE_TRY(kedge_note_parse(note, &into));
    KEDGE_TRY(kedgei_note_parse_lines(lines, &from));
    from.text = into.text;
    int err = kedge_note_verify(&from, witnesses, count, verdicts, NULL);
    for (size_t i = 0; !err && i < count; i++) {
        if (!verdicts[i].verified || time_there(&into, &witnesses[i]) > verdicts[i].time_s) {
            continue;
        }
        for (uint32_t j = 0; j < from.line_count; j++) {
            if (kedgei_note_line_is_of(&from.lines[j], kedge_view_str(witnesses[i].name), witnesses[i].id)) {
                err = put_line(&into, &from.lines[j]); /* of repeated ones the first, as in verification */
                break;
            }
        }
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(write_note(&into, ret_note));
    for (size_t i = 0; ret_verdicts && i < count; i++) {
        ret_verdicts[i] = verdicts[i];
    }
    return KEDGE_OK;
}
