/* Internal to chain: reading LF-terminated lines of C2SP texts. Pure. */
#ifndef KEDGE_CHAIN_LOG_LINES_H
#define KEDGE_CHAIN_LOG_LINES_H

#include "chain/log/merkle.h"
#include "common/base/bytes.h"
#include "crypto/hash.h"

/* What stands before c; rest becomes what stands after it. False when c is absent: nothing changes. */
bool kedgei_cut(struct kedge_view *rest, uint8_t c, struct kedge_view *ret_head);
/* The next line without its LF; false at the end or when the LF is missing. */
bool kedgei_take_line(struct kedge_view *rest, struct kedge_view *ret_line);
/* Cuts prefix off the front; false when it is not there. */
bool kedgei_take_prefix(struct kedge_view *text, const char *prefix);
/* 44 characters of strict base64. KEDGE_E_FORMAT, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_base64_hash(struct kedge_view base64, struct kedge_hash *ret_hash);
/* Lines of hashes up to and with the empty one. KEDGE_E_FORMAT (too many, or no empty one), KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_take_path(struct kedge_view *rest, struct kedge_path *ret_path);

#endif
