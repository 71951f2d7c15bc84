/* Cosignatures (c2sp.org/tlog-cosignature v1.0.1, "cosignature/v1"): a witness says that as of a time this is
 * the largest consistent tree of that origin it has seen. Making the lines, and bringing lines of several
 * notes over one text together. Verification is kedge_note_verify with a vkey of type 04. Lines of others are
 * carried byte for byte, of known and unknown keys alike. Pure.
 *
 * Hazards: a witness that cosigns must first have checked consistency with everything of that origin it
 * cosigned before, atomically and durably; and a key that cosigns serves one name and signs nothing else,
 * because the message does not name the witness. */
#ifndef KEDGE_CHAIN_LOG_COSIGNATURE_H
#define KEDGE_CHAIN_LOG_COSIGNATURE_H

#include "chain/log/note.h"

enum {
    /* Characters of a cosignature line with its LF: dash, name, base64(ID ‖ time ‖ signature). */
    KEDGE_COSIGNATURE_LINE_MAX = 4 + KEDGE_KEY_NAME_MAX + 1 + 104 + 1,
};

/* Appends the cosignature line ("— NAME BASE64" LF) over a checkpoint text (without its blank line) at
 * time_s, POSIX seconds up to 2^63−1. KEDGE_E_FORMAT: the text is no checkpoint; KEDGE_E_ARG: name or time;
 * KEDGE_E_KEY; what the buffer says. Deterministic: the same text, key and time give the same bytes. */
KEDGE_NODISCARD int kedge_cosignature_make(struct kedge_view text, struct kedge_view name,
                                           const struct kedge_key_pair *pair, uint64_t time_s,
                                           struct kedge_buf *ret_line);

/* Appends `note` with the signature line `line` (with its LF) added: in the place of the line with the same
 * name and key ID, and only once, else after the last one; all other lines stay as and where they are.
 * KEDGE_E_FORMAT: note or line malformed; KEDGE_E_TOO_LONG: the outcome would exceed KEDGE_NOTE_MAX or
 * KEDGE_NOTE_SIGNATURES_MAX. Checks no signature. Views must not point into ret_note. */
KEDGE_NODISCARD int kedge_note_add_line(struct kedge_view note, struct kedge_view line,
                                        struct kedge_buf *ret_note);

/* Takes the answer of a witness, one or more signature lines, into `note`: appends the note with the lines
 * that `witnesses` (type 04) made over its text added as by kedge_note_add_line; a line that would replace
 * one with a later time, and lines of unknown keys, are left out. KEDGE_E_VERIFY: a line of a given key
 * fails, or none of the lines is of a given key; KEDGE_E_FORMAT, KEDGE_E_TOO_LONG as above; KEDGE_E_ARG: a
 * key of another type. ret_verdicts: count elements, written only on success, or NULL. */
KEDGE_NODISCARD int kedge_cosignature_accept(struct kedge_view note, struct kedge_view lines,
                                             const struct kedge_vkey *witnesses, size_t count,
                                             struct kedge_buf *ret_note,
                                             struct kedge_note_verdict *ret_verdicts);

#endif
