#include "common/base/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_id_first(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Names become parts of paths, keys and origins of logs. So they have no slash, no upper case (some
 * file systems do not tell it apart) and do not begin with a dot. */
bool kedge_id_is_valid(struct kedge_view text)
{
    if (text.len == 0 || text.len > KEDGE_ID_MAX || !is_id_first(text.ptr[0])) {
        return false;
    }
    for (size_t i = 1; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (!is_id_first(c) && c != '.' && c != '_' && c != '-') {
            return false;
        }
    }
    return true;
}

int kedge_id_from(struct kedge_view text, struct kedge_id *ret_id)
{
    if (!kedge_id_is_valid(text)) {
        return KEDGE_E_FORMAT;
    }
    memset(ret_id, 0, sizeof *ret_id);
    memcpy(ret_id->s, text.ptr, text.len);
    return KEDGE_OK;
}

bool kedge_id_eq(const struct kedge_id *a, const struct kedge_id *b)
{
    return strcmp(a->s, b->s) == 0;
}

int kedge_id_cmp(const struct kedge_id *a, const struct kedge_id *b)
{
    return strcmp(a->s, b->s);
}

void kedge_hex_encode(const uint8_t *in, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[in[i] >> 4];
        out[2 * i + 1] = digits[in[i] & 15];
    }
    out[2 * len] = '\0';
}

/* Value of a digit, 16 when it is none. */
static unsigned hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return (unsigned)c - '0';
    }
    return c >= 'a' && c <= 'f' ? (unsigned)c - 'a' + 10 : 16;
}

/* All digits are checked before one byte is written. */
int kedge_hex_decode(struct kedge_view text, uint8_t *out, size_t len)
{
    if (text.len / 2 != len || text.len % 2 != 0) {
        return KEDGE_E_FORMAT;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (hex_digit(text.ptr[i]) > 15) {
            return KEDGE_E_FORMAT;
        }
    }
    for (size_t i = 0; i < len; i++) {
        out[i] = (uint8_t)(hex_digit(text.ptr[2 * i]) << 4 | hex_digit(text.ptr[2 * i + 1]));
    }
    return KEDGE_OK;
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t kedge_base64_len(size_t bytes_len)
{
    return (bytes_len + 2) / 3 * 4;
}

void kedge_base64_put(struct kedge_buf *out, struct kedge_view bytes)
{
    size_t text_len = kedge_base64_len(bytes.len);
    if (text_len == 0 || kedge_buf_reserve(out, text_len) != KEDGE_OK) {
        return;
    }
    uint8_t *p = out->ptr + out->len;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
        uint32_t v = (uint32_t)bytes.ptr[i] << 16;
        v |= n > 1 ? (uint32_t)bytes.ptr[i + 1] << 8 : 0;
        v |= n > 2 ? bytes.ptr[i + 2] : 0;
        *p++ = (uint8_t)base64_digits[v >> 18];
        *p++ = (uint8_t)base64_digits[v >> 12 & 63];
        *p++ = n > 1 ? (uint8_t)base64_digits[v >> 6 & 63] : '=';
        *p++ = n > 2 ? (uint8_t)base64_digits[v & 63] : '=';
    }
    out->len += text_len;
}

/* Values of base64 digits. URL_DIGIT: a digit of the other alphabet, NO_DIGIT: none; the rest of the table is
 * NO_DIGIT, too. One disjunction over a group then tells whether all of it may stand. */
enum { URL_DIGIT = 0x40, NO_DIGIT = 0x80 };
/* clang-format off */
static const uint8_t base64_values[128] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x3e, 0x80, 0x7e, 0x80, 0x3f,
    0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0x80, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e,
    0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x80, 0x80, 0x80, 0x80, 0x7f,
    0x80, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
    0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f, 0x30, 0x31, 0x32, 0x33, 0x80, 0x80, 0x80, 0x80, 0x80,
};
/* clang-format on */

static uint8_t base64_value(uint8_t c)
{
    return c < sizeof base64_values ? base64_values[c] : NO_DIGIT;
}

/* Four digits to 24 bits; false when one is none. */
static bool base64_group(const uint8_t *in, unsigned refused, uint32_t *ret)
{
    uint8_t a = base64_value(in[0]), b = base64_value(in[1]), c = base64_value(in[2]),
            d = base64_value(in[3]);
    *ret = (uint32_t)(a & 63) << 18 | (uint32_t)(b & 63) << 12 | (uint32_t)(c & 63) << 6 | (d & 63);
    return ((a | b | c | d) & refused) == 0;
}

int kedge_base64_decode(struct kedge_view text, bool url_safe_too, struct kedge_buf *out)
{
    if (text.len % 4 != 0) {
        return KEDGE_E_FORMAT;
    }
    size_t pad = 0;
    while (pad < 2 && pad < text.len && text.ptr[text.len - 1 - pad] == '=') {
        pad++;
    }
    size_t bytes_len = text.len / 4 * 3 - pad;
    int err = kedge_buf_reserve(out, bytes_len);
    if (err || text.len == 0) {
        return err;
    }
    unsigned refused = url_safe_too ? NO_DIGIT : NO_DIGIT | URL_DIGIT;
    uint8_t *p = out->ptr + out->len;
    uint32_t v;
    for (size_t i = 0; i + 4 < text.len || (i < text.len && pad == 0); i += 4) {
        if (!base64_group(text.ptr + i, refused, &v)) {
            return KEDGE_E_FORMAT;
        }
        *p++ = (uint8_t)(v >> 16);
        *p++ = (uint8_t)(v >> 8);
        *p++ = (uint8_t)v;
    }
    if (pad > 0) {
        uint8_t last[4] = {'A', 'A', 'A', 'A'}; /* zero bits in place of the padding */
        memcpy(last, text.ptr + text.len - 4, 4 - pad);
        if (!base64_group(last, refused, &v) || (v & (pad == 1 ? 0xffu : 0xffffu)) != 0) {
            return KEDGE_E_FORMAT; /* no digit; or non-zero trailing bits, a second spelling */
        }
        *p++ = (uint8_t)(v >> 16);
        if (pad == 1) {
            *p = (uint8_t)(v >> 8);
        }
    }
    out->len += bytes_len;
    return KEDGE_OK;
}

/* One spelling for each number: no sign, no blanks, no leading zero. What two programs could read
 * differently must not be signed. */
int kedge_decimal_decode(struct kedge_view text, uint64_t max, uint64_t *ret_v)
{
    if (text.len == 0 || text.len > 20 || (text.len > 1 && text.ptr[0] == '0')) {
        return KEDGE_E_FORMAT;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return KEDGE_E_FORMAT;
        }
        uint64_t d = (uint64_t)(text.ptr[i] - '0');
        if (v > (UINT64_MAX - d) / 10) {
            return KEDGE_E_FORMAT;
        }
        v = v * 10 + d;
    }
    if (v > max) {
        return KEDGE_E_FORMAT;
    }
    *ret_v = v;
    return KEDGE_OK;
}

static bool reads_back(double v, int precision, char out[KEDGE_REAL_MAX])
{
    snprintf(out, KEDGE_REAL_MAX, "%.*g", precision, v);
    return strtod(out, NULL) == v;
}

/* The fewest digits that read back as the same number, at most 17 (enough for every double). Most numbers
 * that were computed need 16 or 17, so these come first: a text of up to DBL_DIG digits is what its number
 * gives back with DBL_DIG of them, so where these do not read back, no fewer do. */
void kedge_real_encode(double v, char out[KEDGE_REAL_MAX])
{
    int precision = reads_back(v, DBL_DIG, out) ? 1 : DBL_DIG + 1;
    while (!reads_back(v, precision, out) && precision < 17) {
        precision++;
    }
}

static size_t skip_digits(struct kedge_view t, size_t i)
{
    while (i < t.len && t.ptr[i] >= '0' && t.ptr[i] <= '9') {
        i++;
    }
    return i;
}

/* End of the longest prefix of the form [-]digits[.digits][e[+-]digits], 0 when there is none. */
static size_t real_grammar(struct kedge_view t)
{
    size_t i = t.len > 0 && t.ptr[0] == '-' ? 1 : 0;
    size_t j = skip_digits(t, i);
    if (j == i) {
        return 0;
    }
    if (j < t.len && t.ptr[j] == '.') {
        size_t k = skip_digits(t, j + 1);
        if (k == j + 1) {
            return 0;
        }
        j = k;
    }
    if (j < t.len && t.ptr[j] == 'e') {
        size_t k = j + 1;
        k += k < t.len && (t.ptr[k] == '+' || t.ptr[k] == '-') ? 1 : 0;
        size_t end = skip_digits(t, k);
        if (end == k) {
            return 0;
        }
        j = end;
    }
    return j;
}

/* The grammar is checked before strtod sees the text, for strtod takes more: blanks, hexadecimal,
 * "inf", "nan". */
int kedge_real_decode(struct kedge_view text, double *ret_v)
{
    char copy[KEDGE_REAL_MAX];
    if (text.len == 0 || text.len >= sizeof copy || real_grammar(text) != text.len) {
        return KEDGE_E_FORMAT;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    double v = strtod(copy, NULL); /* programs of Kedge never leave the "C" locale */
    if (!isfinite(v)) {
        return KEDGE_E_FORMAT;
    }
    *ret_v = v;
    return KEDGE_OK;
}
