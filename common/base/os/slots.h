/* A small record that is replaced often and survives a crash at any moment: one file with two slots that are
 * overwritten in turn, so that a write costs one sync and neither makes nor removes a file. A slot is a line
 * "kedge-slot SEQUENCE LENGTH SUM" and the content; the newest whole one counts. The sum (64-bit FNV-1a)
 * finds torn writes, not tampering: only the owner writes here. */
#ifndef KEDGE_COMMON_BASE_OS_SLOTS_H
#define KEDGE_COMMON_BASE_OS_SLOTS_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum {
    KEDGE_SLOT_SIZE =
        512 * 1024, /* where the second one begins; what is not written takes no room on the disk */
    KEDGE_SLOT_HEAD_MAX = 96,
    KEDGE_SLOT_CONTENT_MAX = KEDGE_SLOT_SIZE - KEDGE_SLOT_HEAD_MAX,
};

/* Puts the newest content into out. *ret_sequence is 1 or more: the next write's is one
 * higher. KEDGE_E_NOT_FOUND: no file; KEDGE_E_CORRUPT: neither slot is whole; KEDGE_E_TOO_LONG: more than out
 * may have. */
KEDGE_NODISCARD int kedge_slots_read(const char *path, struct kedge_buf *out, uint64_t *ret_sequence,
                                     struct kedge_diag *reterr);
/* Durable when it returns KEDGE_OK; else the former content still counts. sequence: one higher than the last
 * write's, 1 for a file that does not exist. KEDGE_E_TOO_LONG: more than KEDGE_SLOT_CONTENT_MAX bytes. */
KEDGE_NODISCARD int kedge_slots_write(const char *path, uint64_t sequence, struct kedge_view content,
                                      struct kedge_diag *reterr);

#endif
