/* How an entry lies in the table of entries. A statement's envelope is mostly the same words, in base64; it
 * is stored as what differs, and given back byte for byte:
 *
 *   0x02 ‖ CRC-32 of what follows, big-endian ‖ u8 number of signatures ‖ for each: keyid (32) ‖ signature
 *        (64) ‖ u16 length of the payload, big-endian ‖ u8 number of digests ‖ the digests (32 each) ‖ the
 *        text, deflated (RFC 1951) with the words below as its preset dictionary. The text is the payload in
 *        which the byte k, from 1 to 31, stands for the 64 hexadecimal digits of digest k
 *   0x01 ‖ the same without digests: the text is the payload. So ledgers of before store it
 *
 * A tenant's checkpoint in the main chain, 32 bytes of salt and a note:
 *
 *   0x03 ‖ CRC-32 of what follows ‖ salt (32) ‖ root (32) ‖ id of the key (4) ‖ signature (64) ‖ u64 size,
 *        big-endian ‖ origin
 *
 * Every other entry lies there as it is; one whose first byte is at most 3 has a 0 before it. What an entry
 * is worth its leaf hash tells, which is that of the entry and never of its form; the checksum is there so
 * that a bit that flipped is noticed also where the same entry would come of it. */
#ifndef KEDGE_CHAIN_STORE_ENTRY_FORM_H
#define KEDGE_CHAIN_STORE_ENTRY_FORM_H

#include "common/base/bytes.h"

/* What a ledger's schema lets into its table. */
enum kedge_entry_forms {
    KEDGE_FORMS_AS_IS,  /* every entry as it is */
    KEDGE_FORMS_PACKED, /* 0x01 */
    KEDGE_FORMS_SHORT,  /* 0x02, 0x03 */
};

/* They are in a ledger's table of itself ("words"), so that readers need nothing else. They never change:
 * others would be another form. */
struct kedge_view kedge_entry_words(enum kedge_entry_forms forms);

/* What packs the entries of one transaction, PACKED or SHORT. NULL when memory is short: then they are stored
 * as they are. */
struct kedge_entry_packer;
struct kedge_entry_packer *kedge_entry_packer_new(enum kedge_entry_forms forms);
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
