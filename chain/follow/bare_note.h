/* A log's checkpoint without what others added to it. */
#ifndef KEDGE_CHAIN_FOLLOW_BARE_NOTE_H
#define KEDGE_CHAIN_FOLLOW_BARE_NOTE_H

#include "chain/log/note.h"

/* Appends the note's text with the first line of `log` that verifies, and no other line: the party that
 * served the note may have filled it with lines that nobody made, so that no room is left for one more.
 * KEDGE_E_VERIFY: no such line; KEDGE_E_FORMAT, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_follow_bare_note(struct kedge_view note, const struct kedge_vkey *log,
                                           struct kedge_buf *ret_note);

#endif
