/* Typed access to members of a parsed object, with errors that name the key and what was found. */
#include <stdio.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/json.h"

enum { KEY_SHOWN_MAX = 65 };

/* Unknown keys are errors with the nearest known one as a hint. A misspelt key that is ignored
 * would train with a default that nobody chose. */
int kedge_json_check_keys(const struct kedge_json *doc, uint32_t at, const char *what,
                          const char *const *allowed, size_t count, struct kedge_diag *reterr)
{
    if (!kedge_json_is(doc, at, KEDGE_JSON_OBJECT)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: expected an object, found %s", what,
                              at < doc->count ? kedge_json_type_name(doc->tokens[at].type) : "nothing");
    }
    for (uint32_t k = at + 1; k < doc->tokens[at].next; k = doc->tokens[k + 1].next) {
        bool known = false;
        for (size_t i = 0; i < count && !known; i++) {
            known = kedge_json_str_is(doc, k, allowed[i]);
        }
        if (!known) {
            struct kedge_view key = kedge_json_text(doc, k);
            char word[KEY_SHOWN_MAX];
            snprintf(word, sizeof word, "%.*s", key.len < sizeof word ? (int)key.len : 64,
                     (const char *)key.ptr);
            (void)kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: unknown key \"%s\"", what, word);
            kedge_nearest_hint(reterr, word, allowed, count, "");
            return KEDGE_E_FORMAT;
        }
    }
    return KEDGE_OK;
}

/* Finds the member and checks its type. */
static int get(const struct kedge_json *doc, uint32_t object, const char *key, enum kedge_json_type type,
               uint32_t *ret_at, struct kedge_diag *reterr)
{
    uint32_t at = kedge_json_find(doc, object, key);
    if (at == KEDGE_JSON_NONE) {
        return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "\"%s\" is missing: expected %s", key,
                              kedge_json_type_name(type));
    }
    if (doc->tokens[at].type != type) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"%s\": expected %s, found %s", key,
                              kedge_json_type_name(type), kedge_json_type_name(doc->tokens[at].type));
    }
    *ret_at = at;
    return KEDGE_OK;
}

static int shown_len(struct kedge_view v)
{
    return v.len < 40 ? (int)v.len : 40;
}

int kedge_json_get_string(const struct kedge_json *doc, uint32_t object, const char *key, char *out,
                          size_t out_len, struct kedge_diag *reterr)
{
    uint32_t at = 0;
    KEDGE_TRY(get(doc, object, key, KEDGE_JSON_STRING, &at, reterr));
    if (kedge_json_decode_string(doc, at, out, out_len) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"%s\": expected a string of at most %zu bytes without U+0000", key,
                              out_len - 1);
    }
    return KEDGE_OK;
}

int kedge_json_get_u64(const struct kedge_json *doc, uint32_t object, const char *key, uint64_t min,
                       uint64_t max, uint64_t *ret_v, struct kedge_diag *reterr)
{
    uint32_t at = 0;
    uint64_t v = 0;
    KEDGE_TRY(get(doc, object, key, KEDGE_JSON_NUMBER, &at, reterr));
    struct kedge_view text = kedge_json_text(doc, at);
    if (kedge_decimal_decode(text, max, &v) != KEDGE_OK || v < min) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT, "\"%s\": expected a whole number from %llu to %llu, found %.*s", key,
            (unsigned long long)min, (unsigned long long)max, shown_len(text), (const char *)text.ptr);
    }
    *ret_v = v;
    return KEDGE_OK;
}

/* 64-bit numbers stand in strings: many JSON readers hold numbers as doubles and would round them
 * above 2^53. */
int kedge_json_get_u64_string(const struct kedge_json *doc, uint32_t object, const char *key, uint64_t *ret_v,
                              struct kedge_diag *reterr)
{
    uint32_t at = 0;
    KEDGE_TRY(get(doc, object, key, KEDGE_JSON_STRING, &at, reterr));
    struct kedge_view text = kedge_json_text(doc, at);
    if (kedge_decimal_decode(text, UINT64_MAX, ret_v) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"%s\": expected a whole number in a string, found \"%.*s\"", key,
                              shown_len(text), (const char *)text.ptr);
    }
    return KEDGE_OK;
}

/* Reals may stand in strings, too, where they must be read back exactly. */
int kedge_json_get_real(const struct kedge_json *doc, uint32_t object, const char *key, double min,
                        double max, double *ret_v, struct kedge_diag *reterr)
{
    uint32_t at = kedge_json_find(doc, object, key);
    double v = 0;
    if (!kedge_json_is(doc, at, KEDGE_JSON_NUMBER)) {
        KEDGE_TRY(get(doc, object, key, KEDGE_JSON_STRING, &at, reterr));
    }
    struct kedge_view text = kedge_json_text(doc, at);
    if (kedge_real_decode(text, &v) != KEDGE_OK || !(v >= min && v <= max)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"%s\": expected a number from %g to %g, found \"%.*s\"", key, min, max,
                              shown_len(text), (const char *)text.ptr);
    }
    *ret_v = v;
    return KEDGE_OK;
}

int kedge_json_get_bool(const struct kedge_json *doc, uint32_t object, const char *key, bool *ret_v,
                        struct kedge_diag *reterr)
{
    uint32_t at = 0;
    KEDGE_TRY(get(doc, object, key, KEDGE_JSON_BOOL, &at, reterr));
    *ret_v = doc->tokens[at].len == 4; /* "true" */
    return KEDGE_OK;
}
