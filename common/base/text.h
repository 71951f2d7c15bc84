/* Strict text codecs: hex, base64, decimals, identifiers. Every decoder accepts exactly one spelling
 * (but reals: "0.10" is "0.1"). Pure. */
#ifndef KEDGE_COMMON_BASE_TEXT_H
#define KEDGE_COMMON_BASE_TEXT_H

#include <stdint.h>

#include "common/base/bytes.h"

/* Identifiers of tenants, sites, jobs: [a-z0-9][a-z0-9._-]{0,62}, NUL-terminated. */
enum { KEDGE_ID_MAX = 63 };
struct kedge_id {
    char s[KEDGE_ID_MAX + 1];
};
bool kedge_id_is_valid(struct kedge_view text);
/* Copies a valid identifier, else KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_id_from(struct kedge_view text, struct kedge_id *ret_id);
bool kedge_id_eq(const struct kedge_id *a, const struct kedge_id *b);
int kedge_id_cmp(const struct kedge_id *a, const struct kedge_id *b);

/* Lower-case hex; out holds 2*len+1 characters. */
void kedge_hex_encode(const uint8_t *in, size_t len, char *out);
/* Exactly 2*len lower-case digits, else KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_hex_decode(struct kedge_view text, uint8_t *out, size_t len);

/* RFC 4648 §4 with padding. */
size_t kedge_base64_len(size_t bytes_len);
void kedge_base64_put(struct kedge_buf *out, struct kedge_view bytes);
/* Strict: no white space, right padding, zero trailing bits. `url_safe_too` accepts - and _ as well (DSSE).
 * Appends to out; KEDGE_E_FORMAT leaves out's length as it was. */
KEDGE_NODISCARD int kedge_base64_decode(struct kedge_view text, bool url_safe_too, struct kedge_buf *out);

/* ASCII decimal without sign or leading zeros, at most max, else KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_decimal_decode(struct kedge_view text, uint64_t max, uint64_t *ret_v);

/* Reals in records: shortest decimal text that reads back to the same binary64 ("0.1", "1e-05"); finite only.
 * Locale-independent. out holds KEDGE_REAL_MAX characters. */
enum { KEDGE_REAL_MAX = 40 };
void kedge_real_encode(double v, char out[KEDGE_REAL_MAX]);
/* Accepts [-]digits[.digits][e[+-]digits], finite, the whole text. */
KEDGE_NODISCARD int kedge_real_decode(struct kedge_view text, double *ret_v);

/* True for well-formed UTF-8 (no surrogates, no overlong forms). */
bool kedge_utf8_is_valid(struct kedge_view text);

#endif
