/* Internal to chain/export: signing, text and JSON that its files share. */
#ifndef KEDGE_CHAIN_EXPORT_INTERNAL_H
#define KEDGE_CHAIN_EXPORT_INTERNAL_H

#include "common/base/bytes.h"
#include "crypto/hash.h"
#include "crypto/sign.h"

struct json_t;

/* {"_type", "subject", "predicateType", "predicate"} as one object; steals subject and predicate. NULL when
 * memory ran out. */
struct json_t *kedgei_ex_statement(struct json_t *subject, const char *predicate_type,
                                   struct json_t *predicate);
/* {"sha256": hex} */
struct json_t *kedgei_ex_digest(const struct kedge_hash *hash);
struct json_t *kedgei_ex_hex(const struct kedge_hash *hash);
/* Appends one line of JSON without LF; KEDGE_E_NOMEM, also for NULL. Members keep their order. */
KEDGE_NODISCARD int kedgei_ex_dump(const struct json_t *o, struct kedge_buf *out);
/* Appends the DSSE envelope over the statement, one Ed25519 signature, in the spelling of kedge_dsse_build
 * but of any size. Steals statement. */
KEDGE_NODISCARD int kedgei_ex_envelope(struct json_t *statement, const struct kedge_key_pair *pair,
                                       struct kedge_buf *out);
/* Appends text for HTML or SVG: the five special characters escaped, control characters and what is no UTF-8
 * as U+FFFD. */
void kedgei_ex_html(struct kedge_buf *out, const char *text);

#endif
