/* Texts of others, stepped through by characters. What is not plain is a table: everything that a terminal or
 * a viewer obeys instead of showing it, or that hides text from its reader. */
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

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

size_t kedge_utf8_next(struct kedge_view t, uint32_t *ret_point)
{
    static const uint8_t first_bits[] = {0x7f, 0x1f, 0x0f, 0x07};
    if (t.len == 0) {
        return 0;
    }
    uint8_t c = t.ptr[0];
    size_t more = utf8_more(c);
    if (more == 4 || t.len <= more) {
        return 0;
    }
    uint8_t d = more ? t.ptr[1] : 0;
    if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90)
        || (c == 0xf4 && d > 0x8f)) { /* overlong, a surrogate, or above U+10FFFF */
        return 0;
    }
    uint32_t point = c & first_bits[more];
    for (size_t i = 1; i <= more; i++) {
        if ((t.ptr[i] & 0xc0) != 0x80) {
            return 0;
        }
        point = point << 6 | (t.ptr[i] & 0x3fu);
    }
    *ret_point = point;
    return more + 1;
}

bool kedge_utf8_is_valid(struct kedge_view t)
{
    size_t i = 0;
    while (i < t.len) {
        uint32_t point;
        size_t n = kedge_utf8_next(kedge_view_of(t.ptr + i, t.len - i), &point);
        if (n == 0) {
            return false;
        }
        i += n;
    }
    return true;
}

bool kedge_char_is_plain(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } refused[] = {
        {0x0000, 0x001f}, /* C0 controls */
        {0x007f, 0x009f}, /* DEL and C1 controls: terminals obey some */
        {0x00ad, 0x00ad}, /* soft hyphen: not shown */
        {0x061c, 0x061c}, /* Arabic letter mark: direction */
        {0x180e, 0x180e}, /* Mongolian vowel separator: not shown */
        {0x200b, 0x200b}, /* zero width space; 200c and 200d, the joiners, are letters' own in many scripts */
        {0x200e, 0x200f}, /* left-to-right and right-to-left mark */
        {0x2028, 0x202e}, /* line and paragraph separator; embeddings and overrides of direction */
        {0x2060, 0x206f}, /* word joiner, invisible operators, isolates, deprecated formats */
        {0xd800, 0xdfff}, /* surrogates: no characters */
        {0xfdd0, 0xfdef}, /* no characters */
        {0xfeff, 0xfeff}, /* byte order mark */
        {0xfff9, 0xfffb}, /* annotations: hide text */
        {0xe0000, 0xe007f}, /* tags: text that nobody sees */
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (point >= refused[i].first && point <= refused[i].last) {
            return false;
        }
    }
    return (point & 0xfffe) != 0xfffe && point <= 0x10ffff; /* the last two of each plane are no characters */
}

static bool is_plain(struct kedge_view t, const char *besides)
{
    size_t i = 0;
    while (i < t.len) {
        uint32_t point = 0;
        size_t n = kedge_utf8_next(kedge_view_of(t.ptr + i, t.len - i), &point);
        bool besides_that = point > 0 && point < 0x80 && strchr(besides, (int)point);
        if (n == 0 || (!kedge_char_is_plain(point) && !besides_that)) {
            return false;
        }
        i += n;
    }
    return true;
}

bool kedge_text_is_plain(struct kedge_view text)
{
    return is_plain(text, "");
}

bool kedge_text_is_plain_lines(struct kedge_view text)
{
    return is_plain(text, "\n\t");
}

size_t kedge_char_show(struct kedge_view text, char out[KEDGE_CHAR_SHOWN_MAX], size_t *ret_len)
{
    uint32_t point = 0;
    size_t n = kedge_utf8_next(text, &point);
    int len;
    if (n > 0 && (kedge_char_is_plain(point) || point == '\n' || point == '\t')) {
        memcpy(out, text.ptr, n);
        len = (int)n;
    } else if (n == 0 || point < 0x80) {
        len = snprintf(out, KEDGE_CHAR_SHOWN_MAX, "\\x%02x", text.ptr[0]);
    } else {
        len = snprintf(out, KEDGE_CHAR_SHOWN_MAX, point <= 0xffff ? "\\u%04x" : "\\U%08x", (unsigned)point);
    }
    *ret_len = len > 0 ? (size_t)len : 0;
    return n > 0 ? n : 1;
}

void kedge_text_put_shown(struct kedge_buf *out, struct kedge_view text)
{
    for (size_t i = 0; i < text.len;) {
        char shown[KEDGE_CHAR_SHOWN_MAX];
        size_t len;
        i += kedge_char_show(kedge_view_of(text.ptr + i, text.len - i), shown, &len);
        kedge_buf_put(out, shown, len);
    }
}

struct kedge_shown kedge_text_shown(const char *text)
{
    struct kedge_shown r;
    size_t used = 0, all = strlen(text);
    for (size_t i = 0; i < all;) {
        char shown[KEDGE_CHAR_SHOWN_MAX];
        size_t len;
        i += kedge_char_show(kedge_view_of(text + i, all - i), shown, &len);
        if (used + len >= sizeof r.s) {
            break;
        }
        memcpy(r.s + used, shown, len);
        used += len;
    }
    r.s[used] = '\0';
    return r;
}

void kedge_text_copy_plain(char *out, size_t size, const char *text)
{
    KEDGE_ASSERT(size > 0);
    size_t len = strlen(text), i = len < size ? len : size - 1;
    if (i < len) { /* no part of a character is left at the end */
        while (i > 0 && ((unsigned char)text[i] & 0xc0) == 0x80) {
            i--;
        }
    }
    memcpy(out, text, i);
    out[i] = '\0';
    kedge_text_make_plain(out);
}

void kedge_text_make_plain(char *text)
{
    size_t used = 0, all = strlen(text);
    for (size_t i = 0; i < all;) {
        uint32_t point = 0;
        size_t n = kedge_utf8_next(kedge_view_of(text + i, all - i), &point);
        if (n > 0 && kedge_char_is_plain(point)) {
            memmove(text + used, text + i, n);
            used += n;
        } else {
            text[used++] = point == '\n' || point == '\t' || point == '\r' ? ' ' : '?';
        }
        i += n ? n : 1;
    }
    text[used] = '\0';
}
