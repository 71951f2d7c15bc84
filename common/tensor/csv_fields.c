/* Records and fields: RFC 4180, with CR alone as an end of line, blanks around quotes, and blanks as a
 * separator. Nothing is copied; a field is a view of the file. */
#include <string.h>

#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/csv_impl.h"

const char *kedge_names_next(const char *name)
{
    return name + strlen(name) + 1;
}

struct kedgei_csv_reader kedgei_csv_reader_of(struct kedge_view file, char separator)
{
    return (struct kedgei_csv_reader){.rest = file, .separator = separator, .line = 1, .column = 1};
}

static void skip(struct kedge_view *v, size_t count)
{
    v->ptr += count;
    v->len -= count;
}

static bool ends_line(uint8_t c)
{
    return c == '\n' || c == '\r';
}

/* A blank that separates nothing. */
static bool is_blank(const struct kedgei_csv_reader *r, uint8_t c)
{
    return c == ' ' || (c == '\t' && r->separator != '\t');
}

static void skip_blanks(struct kedgei_csv_reader *r)
{
    while (r->rest.len > 0 && is_blank(r, r->rest.ptr[0])) {
        skip(&r->rest, 1);
    }
}

/* Past LF, CR LF or CR, where rest begins with one. */
static void skip_line_end(struct kedgei_csv_reader *r)
{
    size_t len = r->rest.len > 1 && r->rest.ptr[0] == '\r' && r->rest.ptr[1] == '\n' ? 2 : 1;
    skip(&r->rest, r->rest.len < len ? r->rest.len : len);
    r->line++;
}

/* Blank lines, and lines of separators alone, are passed over: spreadsheets leave such lines at the
 * end. */
bool kedgei_csv_next_record(struct kedgei_csv_reader *r)
{
    for (;;) {
        size_t at = 0;
        while (at < r->rest.len
               && (is_blank(r, r->rest.ptr[at]) || r->rest.ptr[at] == (uint8_t)r->separator)) {
            at++;
        }
        if (at == r->rest.len) {
            r->more = false;
            return false;
        }
        if (!ends_line(r->rest.ptr[at])) {
            break;
        }
        skip(&r->rest, at);
        skip_line_end(r);
    }
    if (r->separator == ' ') {
        skip_blanks(r);
    }
    r->more = true;
    r->column = 1;
    return true;
}

/* After a field: a separator, or the end of the record. False: there is something else. */
static bool end_field(struct kedgei_csv_reader *r)
{
    size_t before = r->rest.len;
    skip_blanks(r);
    bool apart = r->separator == ' ' && r->rest.len < before;
    if (r->rest.len == 0 || ends_line(r->rest.ptr[0])) {
        skip_line_end(r);
        r->more = false;
        return true;
    }
    if (r->rest.ptr[0] == (uint8_t)r->separator) {
        skip(&r->rest, 1);
        return true;
    }
    return apart;
}

/* From the opening quote on. */
static int read_quoted(struct kedgei_csv_reader *r, struct kedgei_csv_field *f, struct kedge_diag *reterr)
{
    skip(&r->rest, 1);
    const uint8_t *begin = r->rest.ptr;
    f->quoted = true;
    for (;;) {
        const uint8_t *end = r->rest.len ? memchr(r->rest.ptr, '"', r->rest.len) : NULL;
        if (!end) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                  "line %u, column %u: a quote opens here and no other closes it", f->line,
                                  f->column);
        }
        for (const uint8_t *p = r->rest.ptr; p < end; p++) {
            r->line += *p == '\n' || (*p == '\r' && p[1] != '\n');
        }
        skip(&r->rest, (size_t)(end - r->rest.ptr) + 1);
        if (r->rest.len == 0 || r->rest.ptr[0] != '"') {
            f->text = kedge_view_of(begin, (size_t)(end - begin));
            break;
        }
        skip(&r->rest, 1);
        f->doubled = true;
    }
    if (!end_field(r)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "line %u, column %u: text follows the closing quote; within quotes a quote is "
                              "written twice",
                              r->line, f->column);
    }
    return KEDGE_OK;
}

/* Blanks around a field belong to nobody. After an unquoted field there is always a separator or an
 * end, because the field ends only there; after a quoted one there may be more text, which is an
 * error. */
int kedgei_csv_next_field(struct kedgei_csv_reader *r, struct kedgei_csv_field *ret,
                          struct kedge_diag *reterr)
{
    skip_blanks(r);
    struct kedgei_csv_field f = {.line = r->line, .column = r->column++};
    if (r->rest.len > 0 && r->rest.ptr[0] == '"') {
        KEDGE_TRY(read_quoted(r, &f, reterr));
        *ret = f;
        return KEDGE_OK;
    }
    size_t len = 0;
    while (len < r->rest.len && r->rest.ptr[len] != (uint8_t)r->separator && !ends_line(r->rest.ptr[len])
           && !(r->separator == ' ' && r->rest.ptr[len] == '\t')) {
        len++;
    }
    f.text = kedge_view_of(r->rest.ptr, len);
    while (f.text.len > 0 && is_blank(r, f.text.ptr[f.text.len - 1])) {
        f.text.len--;
    }
    skip(&r->rest, len);
    KEDGE_ASSERT(end_field(r));
    *ret = f;
    return KEDGE_OK;
}

/* ---- what a field holds ---- */

/* Compared in place, with doubled quotes as one. */
bool kedgei_csv_field_is(const struct kedgei_csv_field *f, const char *name)
{
    size_t at = 0;
    for (; *name != '\0' && at < f->text.len; name++, at++) {
        if (f->text.ptr[at] != (uint8_t)*name) {
            return false;
        }
        at += f->doubled && *name == '"';
    }
    return *name == '\0' && at == f->text.len;
}

/* Equal but for the case of letters; word is in lower case. */
static bool is_word(struct kedge_view text, const char *word)
{
    size_t len = strlen(word);
    if (text.len != len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        uint8_t c = text.ptr[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != (uint8_t)word[i]) {
            return false;
        }
    }
    return true;
}

/* What spreadsheets, R, pandas and SQL exports write for "no value". */
bool kedgei_csv_is_missing(const struct kedgei_csv_field *f)
{
    static const char *const words[] = {"", "na", "n/a", "#n/a", "nan", "null", "none", "?"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (is_word(f->text, words[i])) {
            return true;
        }
    }
    return false;
}

/* Numbers as spreadsheets and statistics programs write them, in the one spelling of kedge_real_decode. */
int kedgei_csv_number(const struct kedgei_csv_field *f, bool decimal_comma, double *ret)
{
    char text[KEDGE_REAL_MAX];
    size_t used = 0, i = 0, len = f->text.len;
    const uint8_t *p = f->text.ptr;
    if (is_word(f->text, "true") || is_word(f->text, "false")) {
        *ret = len == 4;
        return KEDGE_OK;
    }
    while (len > 0 && p[0] == ' ') {
        p++;
        len--;
    }
    while (len > 0 && p[len - 1] == ' ') {
        len--;
    }
    if (len == 0 || len > sizeof text - 2) {
        return KEDGE_E_FORMAT;
    }
    if (p[0] == '+' || p[0] == '-') {
        if (p[0] == '-') {
            text[used++] = '-';
        }
        i = 1;
        if (len == 1 || p[1] == '-') {
            return KEDGE_E_FORMAT;
        }
    }
    uint8_t point = decimal_comma ? ',' : '.';
    if (i + 1 < len && p[i] == point && p[i + 1] >= '0' && p[i + 1] <= '9') {
        text[used++] = '0';
    }
    for (; i < len; i++) {
        if (p[i] == point && (i + 1 == len || p[i + 1] == 'e' || p[i + 1] == 'E')) {
            continue; /* "5." */
        }
        if (decimal_comma && p[i] == '.') {
            return KEDGE_E_FORMAT; /* a separator of thousands, perhaps */
        }
        text[used++] = (char)(p[i] == 'E' ? 'e' : p[i] == point ? '.' : p[i]);
    }
    return kedge_real_decode(kedge_view_of(text, used), ret);
}

/* Cut at a whole character, so that what is shown in a message is valid UTF-8. */
bool kedgei_csv_text(const struct kedgei_csv_field *f, char *out, size_t out_len)
{
    size_t used = 0, at = 0;
    while (at < f->text.len) {
        uint32_t point;
        size_t len = kedge_utf8_next(kedge_view_of(f->text.ptr + at, f->text.len - at), &point);
        len = len ? len : 1;
        if (used + len >= out_len) {
            break;
        }
        memcpy(out + used, f->text.ptr + at, len);
        used += len;
        at += len + (f->doubled && f->text.ptr[at] == '"');
    }
    out[used] = '\0';
    return at >= f->text.len;
}
