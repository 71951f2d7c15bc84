#include "common/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_id_first(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

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

static int base64_digit(uint8_t c, bool url_safe_too)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == '+' || (url_safe_too && c == '-')) {
        return 62;
    }
    return c == '/' || (url_safe_too && c == '_') ? 63 : -1;
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
    uint8_t *p = out->ptr + out->len;
    for (size_t i = 0; i < text.len; i += 4) {
        bool last = i + 4 == text.len;
        uint32_t v = 0;
        for (size_t j = 0; j < 4; j++) {
            int d = last && j >= 4 - pad ? 0 : base64_digit(text.ptr[i + j], url_safe_too);
            if (d < 0) {
                return KEDGE_E_FORMAT;
            }
            v = v << 6 | (uint32_t)d;
        }
        if (last && ((pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff)))) {
            return KEDGE_E_FORMAT; /* non-zero trailing bits: a second spelling */
        }
        size_t n = last ? 3 - pad : 3;
        for (size_t j = 0; j < n; j++) {
            *p++ = (uint8_t)(v >> (16 - 8 * j));
        }
    }
    out->len += bytes_len;
    return KEDGE_OK;
}

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

void kedge_real_encode(double v, char out[KEDGE_REAL_MAX])
{
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(out, KEDGE_REAL_MAX, "%.*g", precision, v);
        if (strtod(out, NULL) == v) {
            break;
        }
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

/* Bytes that follow a first byte, 4 for a byte that cannot be first. */
static size_t utf8_more(uint8_t c)
{
    if (c < 0x80) {
        return 0;
    }
    if (c >= 0xc2 && c <= 0xdf) {
        return 1;
    }
    if ((c & 0xf0) == 0xe0) {
        return 2;
    }
    return c >= 0xf0 && c <= 0xf4 ? 3 : 4;
}

bool kedge_utf8_is_valid(struct kedge_view t)
{
    size_t i = 0;
    while (i < t.len) {
        uint8_t c = t.ptr[i];
        size_t more = utf8_more(c);
        if (more == 4 || t.len - i <= more) {
            return false;
        }
        for (size_t j = 1; j <= more; j++) {
            if ((t.ptr[i + j] & 0xc0) != 0x80) {
                return false;
            }
        }
        uint8_t d = more ? t.ptr[i + 1] : 0;
        if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90)
            || (c == 0xf4 && d > 0x8f)) {
            return false;
        }
        i += more + 1;
    }
    return true;
}
