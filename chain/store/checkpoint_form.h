/* How a signed checkpoint is stored. A note of a log that nobody else signed is mostly base64 and twice the
 * log's origin; what differs from one to the next is 100 bytes:
 *
 *   root (32) ‖ id of the key (4) ‖ signature (64)
 *
 * With origin and size, which the place tells (a record of the table of heads) or stands beside it (an entry
 * of the main chain, entry_form.h), the note is spelled again byte for byte. A note that is spelled in any
 * other way, or has other signatures, is stored as it is. Pure. */
#ifndef KEDGE_CHAIN_STORE_CHECKPOINT_FORM_H
#define KEDGE_CHAIN_STORE_CHECKPOINT_FORM_H

#include "chain/log/checkpoint.h"

enum {
    KEDGEI_CHECKPOINT_SHORT = KEDGE_HASH_LEN + KEDGE_KEY_ID_LEN + KEDGE_SIGNATURE_LEN,
};

/* True: `out` has what differs, ret_checkpoint origin (borrowed) and size. False: store it as it is. */
bool kedgei_checkpoint_shorten(struct kedge_view note, uint8_t out[KEDGEI_CHECKPOINT_SHORT],
                               struct kedge_checkpoint *ret_checkpoint);
/* Appends the note. KEDGE_E_ARG: no log has such an origin or size. */
KEDGE_NODISCARD int kedgei_checkpoint_spell(struct kedge_view origin, uint64_t size,
                                            const uint8_t in[KEDGEI_CHECKPOINT_SHORT], struct kedge_buf *out);

/* A record of the table of heads: 0x01 and the 100 bytes, or the note, which never begins so. The result is a
 * view of the note or of room, which is cleared. */
struct kedge_view kedgei_head_store(struct kedge_view origin, uint64_t size, struct kedge_view note,
                                    struct kedge_buf *room);
/* The note: a view of what is stored, or of room, which is cleared. What has another form comes as it is: its
 * reader finds that it is no note. KEDGE_E_NOMEM, KEDGE_E_CORRUPT. */
KEDGE_NODISCARD int kedge_head_load(struct kedge_view origin, uint64_t size, struct kedge_view stored,
                                    struct kedge_buf *room, struct kedge_view *ret_note);

#endif
