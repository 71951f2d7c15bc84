/* Idea: one loop over "value, then what may follow a value", with the open containers on a small stack of
 * token indices. Invariant: a token's `next` is set when its value is complete, so that complete siblings
 * can be skipped in one hop; the duplicate-key check and kedge_json_find rely on it. */
#include "common/tensor/json.h"

#include <string.h>

#include "common/base/text.h"
#include "common/base/try.h"

struct parser {
    struct kedge_view text;
    uint32_t pos;
    struct kedge_json_token *tokens;
    uint32_t tokens_max, count;
    uint32_t open[KEDGE_JSON_DEPTH_MAX];
    uint32_t depth;
    struct kedge_diag *reterr;
};

static int fail(struct parser *p, const char *expected)
{
    if (p->pos >= p->text.len) {
        return kedge_diag_set(p->reterr, KEDGE_E_FORMAT, "JSON ends at byte %u: expected %s", p->pos,
                              expected);
    }
    uint8_t c = p->text.ptr[p->pos];
    if (c > 0x20 && c < 0x7f) {
        return kedge_diag_set(p->reterr, KEDGE_E_FORMAT, "JSON byte %u: found '%c', expected %s", p->pos, c,
                              expected);
    }
    return kedge_diag_set(p->reterr, KEDGE_E_FORMAT, "JSON byte %u: found 0x%02x, expected %s", p->pos, c,
                          expected);
}

static int peek(const struct parser *p)
{
    return p->pos < p->text.len ? p->text.ptr[p->pos] : -1;
}

static void skip_space(struct parser *p)
{
    int c = peek(p);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        p->pos++;
        c = peek(p);
    }
}

/* The tokens are the caller's array. Its length bounds how many values a text may have, whatever it
 * says. */
static int add_token(struct parser *p, enum kedge_json_type type, uint32_t *ret_at)
{
    if (p->count == p->tokens_max) {
        return kedge_diag_set(p->reterr, KEDGE_E_TOO_LONG, "JSON byte %u: more than %u values", p->pos,
                              p->tokens_max);
    }
    p->tokens[p->count] = (struct kedge_json_token){.type = type, .start = p->pos, .next = p->count + 1};
    *ret_at = p->count++;
    return KEDGE_OK;
}

static int hex_value(int c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The code unit of four hex digits at text[i..], or -1. */
static int32_t read_unit(struct kedge_view text, size_t i)
{
    if (text.len < 4 || i > text.len - 4) {
        return -1;
    }
    int32_t v = 0;
    for (size_t j = 0; j < 4; j++) {
        int d = hex_value(text.ptr[i + j]);
        if (d < 0) {
            return -1;
        }
        v = v << 4 | d;
    }
    return v;
}

static bool is_high(int32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(int32_t unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

/* Length of the escape at text[i] ('\\' itself), 0 when it is malformed; the code point goes to ret_point.
 */
static size_t read_escape(struct kedge_view text, size_t i, uint32_t *ret_point)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (i + 1 >= text.len) {
        return 0;
    }
    uint8_t c = text.ptr[i + 1];
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple) {
        *ret_point = (uint8_t)to[simple - from];
        return 2;
    }
    int32_t unit = c == 'u' ? read_unit(text, i + 2) : -1;
    if (unit < 0 || is_low(unit)) {
        return 0;
    }
    if (!is_high(unit)) {
        *ret_point = (uint32_t)unit;
        return 6;
    }
    bool pair = i + 12 <= text.len && text.ptr[i + 6] == '\\' && text.ptr[i + 7] == 'u';
    int32_t low = pair ? read_unit(text, i + 8) : -1;
    if (!is_low(low)) {
        return 0;
    }
    *ret_point = 0x10000u + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return 12;
}

/* Only checked here, not decoded: a token points into the text. Most strings are compared or
 * skipped and never need a copy. */
static int parse_string(struct parser *p, uint32_t *ret_at)
{
    uint32_t at = 0;
    if (peek(p) != '"') {
        return fail(p, "a string");
    }
    KEDGE_TRY(add_token(p, KEDGE_JSON_STRING, &at));
    struct kedge_json_token *t = &p->tokens[at];
    t->start = ++p->pos;
    for (int c = peek(p); c != '"'; c = peek(p)) {
        if (c < 0x20) {
            return fail(p, "the rest of a string without control characters");
        }
        if (c == '\\') {
            uint32_t point;
            size_t len = read_escape(p->text, p->pos, &point);
            if (len == 0) {
                return fail(p, "a valid escape");
            }
            t->escaped = true;
            p->pos += (uint32_t)len;
        } else {
            p->pos++;
        }
    }
    t->len = p->pos - t->start;
    p->pos++;
    *ret_at = at;
    return KEDGE_OK;
}

static uint32_t hash_bytes(struct kedge_view v)
{
    uint32_t h = 2166136261u; /* FNV-1a: only a filter, equality is checked on the bytes */
    for (size_t i = 0; i < v.len; i++) {
        h = (h ^ v.ptr[i]) * 16777619u;
    }
    return h;
}

static struct kedge_view token_text(struct kedge_view text, const struct kedge_json_token *t)
{
    return kedge_view_of(text.ptr + t->start, t->len);
}

/* A key and its colon, for the object on top of the stack. */
static int parse_key(struct parser *p)
{
    uint32_t object = p->open[p->depth - 1], at = 0;
    KEDGE_TRY(parse_string(p, &at));
    struct kedge_json_token *key = &p->tokens[at];
    struct kedge_view name = token_text(p->text, key);
    int shown = name.len < 64 ? (int)name.len : 64;
    if (key->escaped) {
        return kedge_diag_set(p->reterr, KEDGE_E_FORMAT, "JSON key \"%.*s\": escapes are not allowed in keys",
                              shown, (const char *)name.ptr);
    }
    if (p->tokens[object].count == KEDGE_JSON_MEMBERS_MAX) {
        return kedge_diag_set(p->reterr, KEDGE_E_TOO_LONG, "JSON byte %u: more than %d keys in one object",
                              p->pos, KEDGE_JSON_MEMBERS_MAX);
    }
    key->count = hash_bytes(name);
    for (uint32_t k = object + 1; k < at; k = p->tokens[k + 1].next) {
        if (p->tokens[k].count == key->count && kedge_view_eq(token_text(p->text, &p->tokens[k]), name)) {
            return kedge_diag_set(p->reterr, KEDGE_E_FORMAT, "JSON key \"%.*s\" appears twice in one object",
                                  shown, (const char *)name.ptr);
        }
    }
    p->tokens[object].count++;
    skip_space(p);
    if (peek(p) != ':') {
        return fail(p, "':' after the key");
    }
    p->pos++;
    return KEDGE_OK;
}

static bool skip_digits(struct parser *p)
{
    uint32_t before = p->pos;
    while (peek(p) >= '0' && peek(p) <= '9') {
        p->pos++;
    }
    return p->pos > before;
}

/* The grammar of RFC 8259, section 6. The value is read later, by the function that knows which
 * range it should have. */
static int parse_number(struct parser *p)
{
    uint32_t at = 0;
    KEDGE_TRY(add_token(p, KEDGE_JSON_NUMBER, &at));
    if (peek(p) == '-') {
        p->pos++;
    }
    if (peek(p) == '0') {
        p->pos++;
    } else if (!skip_digits(p)) {
        return fail(p, "a digit");
    }
    if (peek(p) == '.') {
        p->pos++;
        if (!skip_digits(p)) {
            return fail(p, "a digit after the point");
        }
    }
    if (peek(p) == 'e' || peek(p) == 'E') {
        p->pos++;
        if (peek(p) == '+' || peek(p) == '-') {
            p->pos++;
        }
        if (!skip_digits(p)) {
            return fail(p, "a digit in the exponent");
        }
    }
    p->tokens[at].len = p->pos - p->tokens[at].start;
    return KEDGE_OK;
}

static int parse_word(struct parser *p)
{
    static const struct {
        const char *word;
        enum kedge_json_type type;
    } words[] = {{"true", KEDGE_JSON_BOOL}, {"false", KEDGE_JSON_BOOL}, {"null", KEDGE_JSON_NULL}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t len = strlen(words[i].word);
        if (p->text.len - p->pos >= len && memcmp(p->text.ptr + p->pos, words[i].word, len) == 0) {
            uint32_t at = 0;
            KEDGE_TRY(add_token(p, words[i].type, &at));
            p->tokens[at].len = (uint32_t)len;
            p->pos += (uint32_t)len;
            return KEDGE_OK;
        }
    }
    return fail(p, "a value");
}

static void close_container(struct parser *p)
{
    struct kedge_json_token *t = &p->tokens[p->open[--p->depth]];
    p->pos++;
    t->len = p->pos - t->start;
    t->next = p->count;
}

/* The stack has a fixed depth; deeper nesting is an error, so no text can exhaust the program's own
 * stack. */
static int open_container(struct parser *p, enum kedge_json_type type, bool *ret_more)
{
    uint32_t at = 0;
    if (p->depth == KEDGE_JSON_DEPTH_MAX) {
        return kedge_diag_set(p->reterr, KEDGE_E_TOO_LONG, "JSON byte %u: nested deeper than %d", p->pos,
                              KEDGE_JSON_DEPTH_MAX);
    }
    KEDGE_TRY(add_token(p, type, &at));
    p->open[p->depth++] = at;
    p->pos++;
    skip_space(p);
    if (peek(p) == (type == KEDGE_JSON_OBJECT ? '}' : ']')) {
        close_container(p);
        *ret_more = false;
        return KEDGE_OK;
    }
    *ret_more = true;
    return type == KEDGE_JSON_OBJECT ? parse_key(p) : KEDGE_OK;
}

/* One value; *ret_more when it opened a container whose first element must follow. */
static int parse_value(struct parser *p, bool *ret_more)
{
    uint32_t at = 0;
    *ret_more = false;
    skip_space(p);
    if (p->depth > 0 && p->tokens[p->open[p->depth - 1]].type == KEDGE_JSON_ARRAY) {
        p->tokens[p->open[p->depth - 1]].count++;
    }
    int c = peek(p);
    if (c == '{' || c == '[') {
        return open_container(p, c == '{' ? KEDGE_JSON_OBJECT : KEDGE_JSON_ARRAY, ret_more);
    }
    if (c == '"') {
        return parse_string(p, &at);
    }
    return c == '-' || (c >= '0' && c <= '9') ? parse_number(p) : parse_word(p);
}

/* What may follow a value: closing brackets, then a comma (another value is due) or the end. */
static int parse_after(struct parser *p, bool *ret_more)
{
    *ret_more = false;
    while (p->depth > 0) {
        bool object = p->tokens[p->open[p->depth - 1]].type == KEDGE_JSON_OBJECT;
        skip_space(p);
        if (peek(p) == (object ? '}' : ']')) {
            close_container(p);
            continue;
        }
        if (peek(p) != ',') {
            return fail(p, object ? "',' or '}'" : "',' or ']'");
        }
        p->pos++;
        *ret_more = true;
        skip_space(p);
        return object ? parse_key(p) : KEDGE_OK;
    }
    return KEDGE_OK;
}

int kedge_json_parse(struct kedge_view text, struct kedge_json_token *tokens, uint32_t tokens_max,
                     struct kedge_json *ret, struct kedge_diag *reterr)
{
    if (text.len > KEDGE_JSON_TEXT_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "JSON of %zu bytes: at most %d", text.len,
                              KEDGE_JSON_TEXT_MAX);
    }
    if (!kedge_utf8_is_valid(text)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "JSON is not valid UTF-8");
    }
    struct parser p = {.text = text, .tokens = tokens, .tokens_max = tokens_max, .reterr = reterr};
    bool more = true;
    while (more) { /* every turn consumes at least one byte */
        int err = parse_value(&p, &more);
        if (!err && !more) {
            err = parse_after(&p, &more);
        }
        if (err) {
            return err;
        }
    }
    skip_space(&p);
    if (p.pos != text.len) {
        return fail(&p, "the end");
    }
    *ret = (struct kedge_json){.text = text, .tokens = tokens, .count = p.count};
    return KEDGE_OK;
}

/* From key to key in hops over whole values (see above); objects have few keys, so no table is made
 * of them. */
uint32_t kedge_json_find(const struct kedge_json *doc, uint32_t object, const char *key)
{
    if (!kedge_json_is(doc, object, KEDGE_JSON_OBJECT)) {
        return KEDGE_JSON_NONE;
    }
    for (uint32_t k = object + 1; k < doc->tokens[object].next; k = doc->tokens[k + 1].next) {
        if (kedge_json_str_is(doc, k, key)) {
            return k + 1;
        }
    }
    return KEDGE_JSON_NONE;
}

struct kedge_view kedge_json_text(const struct kedge_json *doc, uint32_t at)
{
    KEDGE_ASSERT(at < doc->count);
    return token_text(doc->text, &doc->tokens[at]);
}

bool kedge_json_is(const struct kedge_json *doc, uint32_t at, enum kedge_json_type type)
{
    return at < doc->count && doc->tokens[at].type == type;
}

bool kedge_json_str_is(const struct kedge_json *doc, uint32_t at, const char *s)
{
    return kedge_json_is(doc, at, KEDGE_JSON_STRING) && !doc->tokens[at].escaped
           && kedge_view_eq(kedge_json_text(doc, at), kedge_view_str(s));
}

const char *kedge_json_type_name(enum kedge_json_type type)
{
    static const char *const names[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};
    return (size_t)type < sizeof names / sizeof names[0] ? names[type] : "an unknown value";
}

static size_t put_utf8(uint32_t point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    uint32_t lead = more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0;
    out[0] = (char)(lead | point >> (6 * more));
    for (size_t i = 1; i <= more; i++) {
        out[i] = (char)(0x80 | (point >> (6 * (more - i)) & 0x3f));
    }
    return more + 1;
}

/* U+0000 is refused although JSON allows it: the result is a C string, which it would cut. */
int kedge_json_decode_string(const struct kedge_json *doc, uint32_t at, char *out, size_t out_len)
{
    if (!kedge_json_is(doc, at, KEDGE_JSON_STRING) || out_len == 0) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_view raw = kedge_json_text(doc, at);
    size_t used = 0;
    for (size_t i = 0; i < raw.len;) {
        char bytes[4] = {(char)raw.ptr[i]};
        size_t len = 1, step = 1;
        if (raw.ptr[i] == '\\') {
            uint32_t point = 0;
            step = read_escape(raw, i, &point);
            if (step == 0 || point == 0) {
                return KEDGE_E_FORMAT;
            }
            len = put_utf8(point, bytes);
        }
        if (len >= out_len - used) {
            return KEDGE_E_FORMAT;
        }
        memcpy(out + used, bytes, len);
        used += len;
        i += step;
    }
    out[used] = '\0';
    return KEDGE_OK;
}

/* Bytes that are no UTF-8 become '?': this writes messages and reports, and a broken name must not
 * break the document around it. */
void kedge_json_put_string(struct kedge_buf *out, struct kedge_view s)
{
    bool text = kedge_utf8_is_valid(s);
    kedge_buf_put_u8(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.ptr[i];
        if (c < 0x20 || c == 0x7f) {
            kedge_buf_printf(out, "\\u%04x", c);
            continue;
        }
        if (c == '"' || c == '\\') {
            kedge_buf_put_u8(out, '\\');
        }
        kedge_buf_put_u8(out, c >= 0x80 && !text ? '?' : c);
    }
    kedge_buf_put_u8(out, '"');
}
