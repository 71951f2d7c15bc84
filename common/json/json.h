/* Loading untrusted JSON: size and depth are bounded before the parser runs (it recurses), duplicate keys,
 * NUL and malformed UTF-8 are refused. The result is jansson's; free it with json_decref. Pure but for
 * jansson's seed, which programs set by json_object_seed. */
#ifndef KEDGE_COMMON_JSON_JSON_H
#define KEDGE_COMMON_JSON_JSON_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

struct json_t;

/* One object of at most max_len bytes and KEDGE_JSON_DEPTH_MAX levels. `what` begins the message, such as
 * "statement". KEDGE_E_FORMAT, KEDGE_E_TOO_LONG, KEDGE_E_NOMEM (where memory runs out inside a token jansson
 * reports a syntax error, hence KEDGE_E_FORMAT: refused all the same). */
KEDGE_NODISCARD int kedgei_json_load(struct kedge_view text, size_t max_len, const char *what,
                                     struct json_t **ret_root, struct kedge_diag *reterr);
/* A real of a file that people write: a number, or decimal text in quotes (kedge_real_decode). Both are
 * rounded to the nearest binary64, so that 0.1 and "0.1" are the same. KEDGE_E_FORMAT for anything else, and
 * NULL. */
KEDGE_NODISCARD int kedgei_json_real(const struct json_t *v, double *ret);
/* A real for people's tools, in what --format json tells: a number, null where it is not finite. (Statements,
 * which are signed, have decimal text.) NULL without memory. */
struct json_t *kedgei_json_number(double v);
/* A string of lower-case hex digits, of at most KEDGE_JSON_HEX_MAX bytes. NULL without memory. */
enum { KEDGE_JSON_HEX_MAX = 64 };
struct json_t *kedgei_json_hex(const uint8_t *bytes, size_t len);
/* Appends text as a JSON string with quotes: UTF-8 as it is, only '"', '\' and bytes below 20 escaped. */
void kedgei_json_put_string(struct kedge_buf *out, const char *text);

#endif
