/* How an entry lies in the table of entries. A statement's envelope is mostly the same words, in base64; it
 * is stored as what differs, and given back byte for byte:
 *
 *   0x01 ‖ CRC-32 of what follows, big-endian ‖ u8 number of signatures ‖ for each: keyid (32) ‖ signature
 * (64) ‖ u16 length of the payload, big-endian ‖ the payload, deflated (RFC 1951) with the words below as its
 *        preset dictionary
 *
 * Every other entry lies there as it is; one whose first byte is 0 or 1 has a 0 before it. What an entry is
 * worth its leaf hash tells, which is that of the entry and never of its form; the checksum is there so that
 * a bit that flipped is noticed also where the same entry would come of it. */
#ifndef KEDGE_CHAIN_STORE_ENTRY_FORM_H
#define KEDGE_CHAIN_STORE_ENTRY_FORM_H

#include "common/base/bytes.h"

/* Their number in a ledger's table of itself ("words"), so that readers need nothing else. They never change:
 * others would be another form. */
struct kedge_view kedge_entry_words(void);

/* What packs the entries of one transaction. NULL when memory is short: then they are stored as they are. */
struct kedge_entry_packer;
struct kedge_entry_packer *kedge_entry_packer_new(void);
void kedge_entry_packer_free(struct kedge_entry_packer *p); /* NULL is fine */

/* Clears out and writes the stored form into it, which has room for KEDGE_ENTRY_STORED_MAX; packer NULL: not
 * deflated. */
enum { KEDGE_ENTRY_STORED_MAX = 65536 };
KEDGE_NODISCARD int kedge_entry_store(struct kedge_entry_packer *packer, struct kedge_view entry,
                                      struct kedge_buf *out);
/* The entry: a view of what is stored, or of room, which is cleared. KEDGE_E_CORRUPT: no entry has this form.
 */
KEDGE_NODISCARD int kedge_entry_load(struct kedge_view stored, struct kedge_buf *room,
                                     struct kedge_view *ret);

#endif
