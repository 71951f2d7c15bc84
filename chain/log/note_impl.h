/* Internal to chain: the parts of a signed note that cosignatures and the witness protocol share. Pure. */
#ifndef KEDGE_CHAIN_LOG_NOTE_IMPL_H
#define KEDGE_CHAIN_LOG_NOTE_IMPL_H

#include "chain/log/note.h"

/* Bytes of a signature line of a name of that length, LF included, over a blob that begins with the key ID.
 */
size_t kedgei_note_line_len(size_t name_len, size_t blob_len);
/* Appends "— NAME base64(blob)" LF; the buffer's err tells. */
void kedgei_note_put_line(struct kedge_view name, struct kedge_view blob, struct kedge_buf *out);
/* Appends what a cosignature/v1 signs: two lines of its own, then the checkpoint text. */
void kedgei_cosignature_message(struct kedge_view text, uint64_t time_s, struct kedge_buf *out);
/* Reads signature lines to the end of rest into ret_note, whose text is left alone: 1 to
 * KEDGE_NOTE_SIGNATURES_MAX of them. KEDGE_E_FORMAT, KEDGE_E_TOO_LONG, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_note_parse_lines(struct kedge_view rest, struct kedge_note *ret_note);
bool kedgei_note_line_is_of(const struct kedge_note_line *line, struct kedge_view name,
                            const uint8_t id[KEDGE_KEY_ID_LEN]);

#endif
