#include "common/json/json.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/text.h"

/* Deepest nesting of brackets outside strings. Text that is no JSON may count anything; the parser then
 * refuses it. */
static size_t nesting(struct kedge_view text)
{
    size_t depth = 0;
    size_t deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
            deepest = depth > deepest ? depth : deepest;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return deepest;
}

static bool is_blank(struct kedge_view text)
{
    bool blank = true;
    for (size_t i = 0; i < text.len && blank; i++) {
        uint8_t c = text.ptr[i];
        blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    }
    return blank;
}

/* Everything that jansson would take but Kedge must not is refused before or by it: texts that are
 * too long or nested too deep (its parser descends by recursion), keys that stand twice (two
 * readers could take different ones), anything but an object. Every file of JSON that a person
 * writes comes through here. */
int kedgei_json_load(struct kedge_view text, size_t max_len, const char *what, struct json_t **ret_root,
                     struct kedge_diag *reterr)
{
    if (text.len > max_len) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: %zu bytes, expected at most %zu", what, text.len,
                              max_len);
    }
    if (nesting(text) > KEDGE_JSON_DEPTH_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: nested deeper than %d levels", what,
                              KEDGE_JSON_DEPTH_MAX);
    }
    if (is_blank(text)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: empty, expected a JSON object", what);
    }
    json_error_t error;
    json_t *root =
        json_loadb(text.len ? (const char *)text.ptr : "", text.len, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        /* Where an allocation fails jansson says so or says nothing; every other refusal has a text. */
        bool nomem = json_error_code(&error) == json_error_out_of_memory || error.text[0] == '\0';
        if (nomem) {
            return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: %s", what, kedge_strerror(KEDGE_E_NOMEM));
        }
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: not valid JSON: %s (line %d, column %d)", what,
                              error.text, error.line, error.column);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: expected a JSON object", what);
    }
    *ret_root = root;
    return KEDGE_OK;
}

int kedgei_json_real(const struct json_t *v, double *ret)
{
    if (json_is_number(v)) { /* jansson refuses what is not finite */
        *ret = json_number_value(v);
        return KEDGE_OK;
    }
    const char *text = json_string_value(v);
    return text ? kedge_real_decode(kedge_view_of(text, json_string_length(v)), ret) : KEDGE_E_FORMAT;
}

json_t *kedgei_json_number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *kedgei_json_hex(const uint8_t *bytes, size_t len)
{
    char hex[2 * KEDGE_JSON_HEX_MAX + 1];
    KEDGE_ASSERT(len <= KEDGE_JSON_HEX_MAX);
    kedge_hex_encode(bytes, len, hex);
    return json_string(hex);
}

/* The shortest escapes that RFC 8259 demands and no others, so a text has one spelling. */
void kedgei_json_put_string(struct kedge_buf *out, const char *text)
{
    kedge_buf_put_u8(out, '"');
    for (const char *p = text; *p != '\0'; p++) {
        uint8_t c = (uint8_t)*p;
        if (c == '"' || c == '\\') {
            kedge_buf_put_u8(out, '\\');
            kedge_buf_put_u8(out, c);
        } else if (c < 0x20) {
            kedge_buf_printf(out, "\\u%04x", c);
        } else {
            kedge_buf_put_u8(out, c);
        }
    }
    kedge_buf_put_u8(out, '"');
}
