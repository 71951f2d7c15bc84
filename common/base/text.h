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
/* Bytes of the first character of text and, in *ret_point, which it is; 0 where it is none (RFC 3629 §4). */
size_t kedge_utf8_next(struct kedge_view text, uint32_t *ret_point);

/* Texts of peers and of records. Plain is what a reader sees as it is: no control characters (C0, DEL, C1),
 * nothing that turns the direction of what follows (marks, embeddings, overrides, isolates), no separators of
 * lines or paragraphs, and nothing that is not seen (zero width space, soft hyphen, byte order mark, tags).
 * The joiners U+200C and U+200D are plain: Persian and many Indic words are not written without. */
bool kedge_char_is_plain(uint32_t point);
/* Well-formed UTF-8 whose characters are all plain: what is accepted from others. The second allows LF and
 * TAB. */
bool kedge_text_is_plain(struct kedge_view text);
bool kedge_text_is_plain_lines(struct kedge_view text);

/* What is printed of texts that others wrote, for they may be older than these rules: plain characters, LF
 * and TAB as they are, any other as \x1b, \u202e or \U000e0041, and bytes that are no UTF-8 as \xff. */
enum { KEDGE_CHAR_SHOWN_MAX = 16 };
/* The first character of text, which is not empty; returns its bytes in text, and in *ret_len those in out.
 */
size_t kedge_char_show(struct kedge_view text, char out[KEDGE_CHAR_SHOWN_MAX], size_t *ret_len);
void kedge_text_put_shown(struct kedge_buf *out, struct kedge_view text);
/* As much of it as there is room for, by value: for arguments of printf. */
struct kedge_shown {
    char s[4096];
};
struct kedge_shown kedge_text_shown(const char *text);
/* In place: a space for LF, CR and TAB, "?" for any other character that is not plain and for a byte that is
 * no UTF-8. */
void kedge_text_make_plain(char *text);
/* The same in a copy, cut where out is full, between two characters. */
void kedge_text_copy_plain(char *out, size_t size, const char *text);

#endif
