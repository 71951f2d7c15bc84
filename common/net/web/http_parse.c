/* Requests are read once, from left to right; what the grammar does not have is an error, so that nothing
 * is left for another program to understand differently (RFC 9112 §11). */
#include "common/net/web/http_parse.h"

#include <string.h>

#include "common/base/text.h"

enum { BAD = 400 };

/* token characters: RFC 9110 §5.6.2 */
static bool is_tchar(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
           || (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_token(struct kedge_view v)
{
    for (size_t i = 0; i < v.len; i++) {
        if (!is_tchar(v.ptr[i])) {
            return false;
        }
    }
    return v.len > 0;
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

/* `word` in lower case. */
static bool is_word(struct kedge_view v, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i < len && i < v.len; i++) {
        if (lower(v.ptr[i]) != (uint8_t)word[i]) {
            return false;
        }
    }
    return v.len == len;
}

static struct kedge_view trim(struct kedge_view v)
{
    while (v.len > 0 && (v.ptr[0] == ' ' || v.ptr[0] == '\t')) {
        v = kedge_view_of(v.ptr + 1, v.len - 1);
    }
    while (v.len > 0 && (v.ptr[v.len - 1] == ' ' || v.ptr[v.len - 1] == '\t')) {
        v.len--;
    }
    return v;
}

/* Cuts the part before the first `c` off *rest, which goes on after it. */
static bool cut(struct kedge_view *rest, uint8_t c, struct kedge_view *ret)
{
    const uint8_t *at = rest->len > 0 ? memchr(rest->ptr, c, rest->len) : NULL;
    if (!at) {
        return false;
    }
    *ret = kedge_view_of(rest->ptr, (size_t)(at - rest->ptr));
    *rest = kedge_view_of(at + 1, rest->len - ret->len - 1);
    return true;
}

/* A line without its CRLF; false when it does not end so. */
static bool next_line(struct kedge_view *rest, struct kedge_view *ret)
{
    struct kedge_view line;
    if (!cut(rest, '\n', &line) || line.len == 0 || line.ptr[line.len - 1] != '\r') {
        return false;
    }
    line.len--;
    *ret = line;
    return line.len == 0 || memchr(line.ptr, '\r', line.len) == NULL;
}

/* Finds the empty line that ends a head, in what has come so far. Another protocol is told at its
 * first byte, and a head that cannot become a valid one is refused before the rest of it is waited
 * for. */
unsigned kedge_http_find_end(struct kedge_view in, size_t seen, size_t *ret_len)
{
    for (size_t i = seen; i < in.len; i++) {
        if ((i == 0 && !is_tchar(in.ptr[0])) || in.ptr[i] == 0) {
            return BAD; /* no method begins so: another protocol */
        }
        if (in.ptr[i] != '\n') {
            continue;
        }
        if (i == 0 || in.ptr[i - 1] != '\r') {
            return BAD;
        }
        if (i >= 3 && in.ptr[i - 2] == '\n') {
            *ret_len = i + 1;
            return *ret_len <= KEDGE_HTTP_HEAD_MAX ? 0 : 431;
        }
    }
    *ret_len = 0;
    if (in.len < KEDGE_HTTP_HEAD_MAX) {
        return 0;
    }
    return memchr(in.ptr, '\n', in.len) == NULL ? 414 : 431;
}

/* ---- the request line ---- */

static unsigned read_target(struct kedge_view t, struct kedge_view *ret)
{
    static const char *const schemes[] = {"https://", "http://"};
    if (t.len > KEDGE_HTTP_TARGET_MAX) {
        return 414;
    }
    for (size_t i = 0; i < t.len; i++) {
        if (t.ptr[i] <= ' ' || t.ptr[i] >= 0x7f || t.ptr[i] == '#') {
            return BAD;
        }
    }
    for (size_t i = 0; i < 2; i++) { /* absolute-form, which a server must take: RFC 9112 §3.2.2 */
        size_t len = strlen(schemes[i]);
        if (t.len > len && is_word(kedge_view_of(t.ptr, len), schemes[i])) {
            struct kedge_view rest = kedge_view_of(t.ptr + len, t.len - len), authority;
            if (!cut(&rest, '/', &authority) || authority.len == 0) {
                return BAD;
            }
            t = kedge_view_of(rest.ptr - 1, rest.len + 1);
        }
    }
    if (t.len == 0 || t.ptr[0] != '/') {
        return BAD;
    }
    *ret = t;
    return 0;
}

static unsigned read_method(struct kedge_view name, enum kedge_http_method *ret)
{
    static const char *const names[] = {[KEDGE_HTTP_GET] = "GET", [KEDGE_HTTP_HEAD] = "HEAD"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (kedge_view_eq(name, kedge_view_str(names[i]))) {
            *ret = (enum kedge_http_method)i;
            return 0;
        }
    }
    return 405;
}

/* Other versions of HTTP/1 are told what is spoken here (505); anything else is no HTTP. */
static unsigned read_version(struct kedge_view v, bool *ret_old)
{
    if (kedge_view_eq(v, kedge_view_str("HTTP/1.1")) || kedge_view_eq(v, kedge_view_str("HTTP/1.0"))) {
        *ret_old = v.ptr[7] == '0';
        return 0;
    }
    bool shaped = v.len == 8 && memcmp(v.ptr, "HTTP/", 5) == 0 && v.ptr[5] >= '0' && v.ptr[5] <= '9'
                  && v.ptr[6] == '.' && v.ptr[7] >= '0' && v.ptr[7] <= '9';
    return shaped ? 505 : BAD;
}

/* ---- fields ---- */

struct fields {
    struct kedge_http_head *head;
    bool old; /* HTTP/1.0 */
    bool has_host, has_length, has_body, has_range, has_if_range, has_authorization;
};

/* A field that may stand once only: two of them could be understood differently by another program
 * in between. */
static bool take_once(bool *has)
{
    bool first = !*has;
    *has = true;
    return first;
}

/* Digits only, without leading zeros. A length that two programs read differently moves the border
 * between requests. */
static unsigned read_length(struct fields *f, struct kedge_view value)
{
    bool digits = value.len > 0 && (value.len == 1 || value.ptr[0] != '0');
    for (size_t i = 0; i < value.len; i++) {
        digits = digits && value.ptr[i] >= '0' && value.ptr[i] <= '9';
    }
    if (!digits || !take_once(&f->has_length)) {
        return BAD;
    }
    f->has_body = value.ptr[0] != '0';
    return 0;
}

static unsigned read_connection(struct fields *f, struct kedge_view value)
{
    struct kedge_view option;
    while (cut(&value, ',', &option)) {
        f->head->closes = f->head->closes || is_word(trim(option), "close");
    }
    f->head->closes = f->head->closes || is_word(trim(value), "close");
    return 0;
}

/* What is not understood is as if it were not there: the whole answer is always right (RFC 9110,
 * section 14.2). */
static void read_range(struct kedge_view value, struct kedge_http_range *ret)
{
    struct kedge_http_range r = {.present = true, .last = UINT64_MAX};
    struct kedge_view first, rest = value;
    if (!cut(&rest, '=', &first) || !is_word(first, "bytes") || !cut(&rest, '-', &first)) {
        return;
    }
    r.is_suffix = first.len == 0;
    if ((first.len > 0 && kedge_decimal_decode(first, INT64_MAX, &r.first) != KEDGE_OK)
        || (rest.len > 0 && kedge_decimal_decode(rest, INT64_MAX, &r.last) != KEDGE_OK)
        || (rest.len == 0 && r.is_suffix) || r.first > r.last) {
        return;
    }
    *ret = r;
}

/* Transfer-Encoding is refused, also of a method that is not served: without chunks there is one way less to
 * disagree about where a request ends. */
static unsigned read_field(struct fields *f, struct kedge_view line)
{
    struct kedge_view value = line, name;
    if (!cut(&value, ':', &name) || !is_token(name)) {
        return BAD; /* folded lines, and white space before the colon, among others */
    }
    value = trim(value);
    for (size_t i = 0; i < value.len; i++) {
        if ((value.ptr[i] < ' ' && value.ptr[i] != '\t') || value.ptr[i] == 0x7f) {
            return BAD;
        }
    }
    if (is_word(name, "content-length")) {
        return read_length(f, value);
    }
    if (is_word(name, "transfer-encoding")) {
        return BAD;
    }
    if (is_word(name, "host")) {
        return take_once(&f->has_host) && value.len > 0 ? 0 : BAD;
    }
    if (is_word(name, "connection")) {
        return read_connection(f, value);
    }
    if (is_word(name, "authorization")) {
        f->head->authorization = value;
        return take_once(&f->has_authorization) && value.len > 0 ? 0 : BAD;
    }
    if (is_word(name, "range")) {
        read_range(value, &f->head->range);
        return take_once(&f->has_range) ? 0 : BAD;
    }
    if (is_word(name, "expect")) {
        return 417; /* it announces a body, and none is read here */
    }
    f->has_if_range = f->has_if_range || is_word(name, "if-range");
    return 0;
}

/* The method is judged last, so a malformed request is told so whatever its method is. */
unsigned kedge_http_parse(struct kedge_view head, struct kedge_http_head *ret)
{
    struct kedge_http_head h = {.method = KEDGE_HTTP_GET};
    struct fields f = {.head = &h};
    struct kedge_view rest = head, line, method;
    if (head.len > KEDGE_HTTP_HEAD_MAX) {
        return 431;
    }
    if (!next_line(&rest, &line) || !cut(&line, ' ', &method) || !is_token(method)) {
        return BAD;
    }
    struct kedge_view target;
    if (!cut(&line, ' ', &target)) {
        return BAD;
    }
    unsigned status = read_target(target, &h.target);
    status = status ? status : read_version(line, &f.old);
    size_t count = 0;
    while (!status) {
        if (!next_line(&rest, &line)) {
            return BAD;
        }
        if (line.len == 0) {
            break;
        }
        status = ++count > KEDGE_HTTP_FIELDS_MAX ? 431 : read_field(&f, line);
    }
    status = status ? status : rest.len > 0 || (!f.has_host && !f.old) ? BAD : 0;
    status = status ? status : read_method(method, &h.method);
    if (!status && f.has_body) {
        status = BAD; /* a body has no meaning there, and others may not see it: RFC 9110 §9.3.1 */
    }
    if (!status) {
        h.closes = h.closes || f.old;
        h.range.present = h.range.present && !f.has_if_range;
        *ret = h;
    }
    return status;
}

/* A suffix longer than the whole is the whole; a first position after the end is not satisfiable. */
bool kedge_http_range_resolve(const struct kedge_http_range *range, uint64_t total, uint64_t *ret_offset,
                              uint64_t *ret_len)
{
    if (range->is_suffix) {
        if (range->last == 0 || total == 0) {
            return false;
        }
        *ret_len = range->last < total ? range->last : total;
        *ret_offset = total - *ret_len;
        return true;
    }
    if (range->first >= total) {
        return false;
    }
    uint64_t last = range->last < total ? range->last : total - 1;
    *ret_offset = range->first;
    *ret_len = last - range->first + 1;
    return true;
}

bool kedge_http_bearer(struct kedge_view authorization, struct kedge_view *ret_token)
{
    struct kedge_view rest = authorization, scheme;
    if (!cut(&rest, ' ', &scheme) || !is_word(scheme, "bearer")) {
        return false;
    }
    rest = trim(rest);
    for (size_t i = 0; i < rest.len; i++) {
        if (rest.ptr[i] <= ' ' || rest.ptr[i] >= 0x7f) {
            return false;
        }
    }
    *ret_token = rest;
    return rest.len > 0;
}

const char *kedge_http_reason(unsigned status)
{
    static const struct {
        unsigned status;
        const char *reason;
    } rows[] = {
        {200, "OK"},
        {206, "Partial Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {414, "URI Too Long"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].status == status) {
            return rows[i].reason;
        }
    }
    return "Unknown";
}
