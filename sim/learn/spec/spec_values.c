#include "sim/learn/spec/spec_rows.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

enum { TEXT_MAX = KEDGE_LEARN_PATH_MAX };

/* ---- messages ---- */

struct kedgei_spec_said kedgei_spec_said(const struct kedge_json *doc, uint32_t at)
{
    struct kedgei_spec_said said = {.s = ""};
    struct kedge_view v = kedge_json_text(doc, at);
    const char *quote = kedge_json_is(doc, at, KEDGE_JSON_STRING) ? "\"" : "";
    size_t len = v.len < KEDGEI_SAID_MAX ? v.len : KEDGEI_SAID_MAX, used = strlen(quote);
    memcpy(said.s, quote, used);
    for (size_t i = 0; i < len; i++) {
        said.s[used++] = v.ptr[i] >= 0x20 && v.ptr[i] < 0x7f ? (char)v.ptr[i] : '?';
    }
    memcpy(said.s + used, quote, strlen(quote));
    return said;
}

static int refuse(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row, uint32_t at,
                  const char *expected)
{
    bool inner = row->section[0] != '\0';
    return kedge_diag_set(l->d, KEDGE_E_FORMAT, "\"%s\"%s%s%s: expected %s, found %s", row->key,
                          inner ? " in \"" : "", row->section, inner ? "\"" : "", expected,
                          kedgei_spec_said(l->doc, at).s);
}

static int refuse_real(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row, uint32_t at)
{
    char text[96];
    (void)snprintf(text, sizeof text, "a number %s %.9g %s %.9g", row->above_least ? "above" : "from",
                   row->least, row->below_most ? "to below" : "to", row->most);
    return refuse(l, row, at, text);
}

static int refuse_word(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row, uint32_t at)
{
    struct kedge_buf text;
    kedge_buf_init(&text, 512);
    kedge_buf_put_str(&text, "one of ");
    for (size_t i = 0; row->words[i]; i++) {
        kedge_buf_printf(&text, "%s%s", i ? ", " : "", row->words[i][0] ? row->words[i] : "\"\"");
    }
    kedge_buf_put_u8(&text, 0);
    int err = refuse(l, row, at, text.err ? "another word" : (const char *)text.ptr);
    kedge_buf_deinit(&text);
    return err;
}

/* ---- values ---- */

/* The text of a number, in quotes or not; empty for anything else. */
static struct kedge_view number_text(const struct kedge_json *doc, uint32_t at)
{
    bool is_it = kedge_json_is(doc, at, KEDGE_JSON_NUMBER) || kedge_json_is(doc, at, KEDGE_JSON_STRING);
    return is_it ? kedge_json_text(doc, at) : kedge_view_of(NULL, 0);
}

static int read_whole(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row, uint32_t at,
                      uint64_t most, uint64_t *ret)
{
    uint64_t v = 0;
    struct kedge_view text = number_text(l->doc, at);
    if (text.len == 0 || kedge_decimal_decode(text, most, &v) != KEDGE_OK || v < (uint64_t)row->least) {
        char expected[96];
        (void)snprintf(expected, sizeof expected, "a whole number from %llu to %llu",
                       (unsigned long long)row->least, (unsigned long long)most);
        return refuse(l, row, at, expected);
    }
    *ret = v;
    return KEDGE_OK;
}

static int read_real(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row, uint32_t at,
                     double *ret)
{
    double v = 0;
    struct kedge_view text = number_text(l->doc, at);
    bool is_it = text.len > 0 && kedge_real_decode(text, &v) == KEDGE_OK;
    is_it = is_it && (row->above_least ? v > row->least : v >= row->least);
    is_it = is_it && (row->below_most ? v < row->most : v <= row->most);
    if (!is_it) {
        return refuse_real(l, row, at);
    }
    *ret = v;
    return KEDGE_OK;
}

static int read_word(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row, uint32_t at,
                     uint32_t *ret)
{
    for (uint32_t i = 0; row->words[i]; i++) {
        if (kedge_json_str_is(l->doc, at, row->words[i])) {
            *ret = i;
            return KEDGE_OK;
        }
    }
    return refuse_word(l, row, at);
}

static int read_text(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row, uint32_t at,
                     char *ret)
{
    char text[TEXT_MAX];
    uint32_t word;
    if (row->words) {
        int err = read_word(l, row, at, &word);
        if (!err) {
            memcpy(ret, row->words[word], strlen(row->words[word]) + 1);
        }
        return err;
    }
    if (!kedge_json_is(l->doc, at, KEDGE_JSON_STRING)
        || kedge_json_decode_string(l->doc, at, text, (size_t)row->most + 1) != KEDGE_OK) {
        return refuse(l, row, at, "text that is not too long");
    }
    for (const char *s = text; *s; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7f) {
            return refuse(l, row, at, "text without control characters");
        }
    }
    memcpy(ret, text, strlen(text) + 1);
    return KEDGE_OK;
}

static int read_rounds(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row, uint32_t at,
                       struct kedge_learn_rounds *ret)
{
    struct kedge_learn_rounds rounds = {0};
    char expected[96];
    (void)snprintf(expected, sizeof expected, "a list of at most %d rounds from 1, in ascending order",
                   KEDGE_LEARN_STEPS_MAX);
    if (!kedge_json_is(l->doc, at, KEDGE_JSON_ARRAY)) {
        return refuse(l, row, at, expected);
    }
    for (uint32_t one = at + 1; one < l->doc->tokens[at].next; one = l->doc->tokens[one].next) {
        uint64_t round = 0;
        bool is_it =
            rounds.count < KEDGE_LEARN_STEPS_MAX && kedge_json_is(l->doc, one, KEDGE_JSON_NUMBER)
            && kedge_decimal_decode(kedge_json_text(l->doc, one), (uint64_t)row->most, &round) == KEDGE_OK
            && round > (rounds.count ? rounds.at[rounds.count - 1] : 0);
        if (!is_it) {
            return refuse(l, row, one, expected);
        }
        rounds.at[rounds.count++] = (uint32_t)round;
    }
    *ret = rounds;
    return KEDGE_OK;
}

int kedgei_spec_read(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row, uint32_t at,
                     void *base)
{
    char *to = (char *)base + row->offset;
    uint64_t whole = 0;
    uint32_t word = 0;
    double real = 0;
    int err = KEDGE_OK;
    switch (row->kind) {
    case KEDGEI_SPEC_U32:
        err = read_whole(l, row, at, (uint64_t)row->most, &whole);
        word = (uint32_t)whole;
        memcpy(to, err ? to : (const char *)&word, sizeof word);
        return err;
    case KEDGEI_SPEC_U64:
        err = read_whole(l, row, at, UINT64_MAX, &whole);
        memcpy(to, err ? to : (const char *)&whole, sizeof whole);
        return err;
    case KEDGEI_SPEC_REAL:
        err = read_real(l, row, at, &real);
        memcpy(to, err ? to : (const char *)&real, sizeof real);
        return err;
    case KEDGEI_SPEC_BOOL:
        if (!kedge_json_is(l->doc, at, KEDGE_JSON_BOOL)) {
            return refuse(l, row, at, "true or false");
        }
        *(bool *)to = kedge_json_text(l->doc, at).len == strlen("true");
        return KEDGE_OK;
    case KEDGEI_SPEC_WORD:
        err = read_word(l, row, at, &word);
        memcpy(to, err ? to : (const char *)&word, sizeof word);
        return err;
    case KEDGEI_SPEC_TEXT:
        return read_text(l, row, at, to);
    case KEDGEI_SPEC_ROUNDS:
        return read_rounds(l, row, at, (struct kedge_learn_rounds *)(void *)to);
    }
    return KEDGE_E_BUG;
}
