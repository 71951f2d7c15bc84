/* A small strict JSON reader (RFC 8259) for headers and task lines: one pass over borrowed text into the
 * caller's array of tokens, no heap, no recursion. Refused: anything after the value, duplicate keys,
 * escapes in keys, invalid UTF-8, lone surrogates, nesting deeper than KEDGE_JSON_DEPTH_MAX, objects beyond
 * KEDGE_JSON_MEMBERS_MAX. Writing is kedge_buf_printf with kedge_json_put_string. Pure. */
#ifndef KEDGE_COMMON_TENSOR_JSON_H
#define KEDGE_COMMON_TENSOR_JSON_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/limits.h"

enum {
    KEDGE_JSON_MEMBERS_MAX = 2048, /* of one object: keys are compared pairwise */
    KEDGE_JSON_TEXT_MAX = 16 * 1024 * 1024,
};

enum kedge_json_type {
    KEDGE_JSON_NULL,
    KEDGE_JSON_BOOL,
    KEDGE_JSON_NUMBER,
    KEDGE_JSON_STRING,
    KEDGE_JSON_ARRAY,
    KEDGE_JSON_OBJECT,
};

/* One value or key. An object's tokens follow it as key, value, key, value…; an array's as values. */
struct kedge_json_token {
    enum kedge_json_type type;
    bool escaped;        /* a string with at least one escape */
    uint32_t start, len; /* in the text; of a string without its quotes */
    uint32_t count;      /* elements of an array, members of an object; of a key its hash */
    uint32_t next;       /* index of the first token after this value */
};

struct kedge_json {
    struct kedge_view text;
    const struct kedge_json_token *tokens; /* tokens[0] is the whole value */
    uint32_t count;
};

#define KEDGE_JSON_NONE UINT32_MAX

/* Parses text, which must stay alive as long as ret, into tokens[0..tokens_max). KEDGE_E_FORMAT names the
 * byte, KEDGE_E_TOO_LONG when a limit or tokens_max is exceeded. */
KEDGE_NODISCARD int kedge_json_parse(struct kedge_view text, struct kedge_json_token *tokens,
                                     uint32_t tokens_max, struct kedge_json *ret, struct kedge_diag *reterr);

/* Index of the value of `key` in the object at `object`, or KEDGE_JSON_NONE (also when it is no object). */
uint32_t kedge_json_find(const struct kedge_json *doc, uint32_t object, const char *key);
/* The raw text of a token; of a string without quotes and still escaped. */
struct kedge_view kedge_json_text(const struct kedge_json *doc, uint32_t at);
bool kedge_json_is(const struct kedge_json *doc, uint32_t at, enum kedge_json_type type);
/* True for a string (or key) without escapes that equals s. */
bool kedge_json_str_is(const struct kedge_json *doc, uint32_t at, const char *s);
const char *kedge_json_type_name(enum kedge_json_type type);

/* The token at `at` must be an object with no keys beyond allowed[0..count); KEDGE_E_FORMAT names the first
 * other one. `what` names the object in the message. */
KEDGE_NODISCARD int kedge_json_check_keys(const struct kedge_json *doc, uint32_t at, const char *what,
                                          const char *const *allowed, size_t count,
                                          struct kedge_diag *reterr);

/* Members of an object by key. An absent key (or `object` that is no object) is KEDGE_E_NOT_FOUND, a value
 * of another type or out of range KEDGE_E_FORMAT; both set reterr. */
/* Decoded into out with a NUL; a string of out_len bytes or more, or with U+0000, is KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_json_get_string(const struct kedge_json *doc, uint32_t object, const char *key,
                                          char *out, size_t out_len, struct kedge_diag *reterr);
/* A JSON number that is a whole decimal in [min, max]. */
KEDGE_NODISCARD int kedge_json_get_u64(const struct kedge_json *doc, uint32_t object, const char *key,
                                       uint64_t min, uint64_t max, uint64_t *ret_v,
                                       struct kedge_diag *reterr);
/* A string that holds a whole decimal in [0, 2^64): numbers beyond 2^53 travel as strings. */
KEDGE_NODISCARD int kedge_json_get_u64_string(const struct kedge_json *doc, uint32_t object, const char *key,
                                              uint64_t *ret_v, struct kedge_diag *reterr);
/* A real in [min, max]: a number, or decimal text in a string (kedge_real_decode); 0.1 and "0.1" are the
 * same. */
KEDGE_NODISCARD int kedge_json_get_real(const struct kedge_json *doc, uint32_t object, const char *key,
                                        double min, double max, double *ret_v, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_json_get_bool(const struct kedge_json *doc, uint32_t object, const char *key,
                                        bool *ret_v, struct kedge_diag *reterr);

/* Decodes the escapes of the string at `at` into out with a NUL; see kedge_json_get_string. */
KEDGE_NODISCARD int kedge_json_decode_string(const struct kedge_json *doc, uint32_t at, char *out,
                                             size_t out_len);

/* Appends s with quotes and escapes. Bytes that are no UTF-8 become '?', so that the result is always JSON.
 */
void kedge_json_put_string(struct kedge_buf *out, struct kedge_view s);

#endif
