/* Strict reading. jansson has refused duplicate keys, so that "as many keys as the table has, all of them
 * there" leaves no room for an unknown one. */
#include <jansson.h>
#include <string.h>

#include "chain/statement/statement_read.h"
#include "common/base/try.h"
#include "common/json/json.h"

/* Where in the statement a problem is, for the message. */
struct place {
    const char *kind;
    const char *list; /* NULL outside one */
    uint32_t index;
};

static int refuse(const struct place *at, const char *field, const char *expected, struct kedge_diag *reterr)
{
    if (at->list) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "statement %s: predicate.%s[%u]%s%s: expected %s",
                              at->kind, at->list, at->index, *field ? "." : "", field, expected);
    }
    return kedge_diag_set(reterr, KEDGE_E_FORMAT, "statement %s: %s%s: expected %s", at->kind,
                          strcmp(field, "predicate") == 0 ? "" : "predicate.", field, expected);
}

static struct kedge_view string_view(const json_t *value)
{
    return kedge_view_of(json_string_value(value), json_string_length(value));
}

static const char *get_integer(const struct kedgei_field *f, const json_t *value, void *p)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return "an integer that is not negative";
    }
    uint64_t v = (uint64_t)json_integer_value(value);
    if (v > f->max) { /* before it is narrowed */
        return "an integer in its range";
    }
    if (f->type == KEDGEI_U32) {
        uint32_t narrow = (uint32_t)v;
        memcpy(p, &narrow, sizeof narrow);
    } else {
        memcpy(p, &v, sizeof v);
    }
    return NULL;
}

static const char *get_names(const json_t *value, char *p)
{
    size_t count = json_array_size(value), used = 0; /* 0 when it is no array */
    memset(p, 0, KEDGE_CLASS_NAMES_ROOM);
    for (size_t i = 0; i < count; i++) {
        const json_t *name = json_array_get(value, i);
        size_t len = json_string_length(name);
        if (!json_is_string(name) || len == 0 || memchr(json_string_value(name), '\0', len)) {
            return "names";
        }
        if (used + len + 1 > KEDGE_CLASS_NAMES_BYTES_MAX) {
            return "at most 4096 bytes of names";
        }
        memcpy(p + used, json_string_value(name), len);
        used += len + 1;
    }
    return json_is_array(value) ? NULL : "an array of names";
}

/* NULL, or what was expected. */
static const char *get_scalar(const struct kedgei_field *f, const json_t *value, void *p)
{
    const char *expected;
    if (!value) {
        return kedgei_field_leave_out(f, p) ? NULL : "this field to be there";
    }
    if (f->type == KEDGEI_U32 || f->type == KEDGEI_U64) {
        expected = get_integer(f, value, p);
    } else if (f->type == KEDGEI_NAMES) {
        expected = get_names(value, p);
    } else if (!json_is_string(value)) {
        return "a string";
    } else {
        expected = kedgei_get_string(f, string_view(value), p);
    }
    if (!expected && kedgei_field_is_absent(f, p)) {
        return "no field where its value is zero";
    }
    return expected ? expected : kedgei_field_check(f, p);
}

/* Fit to be shown to people: what a peer wrote must not reach a terminal as it is. */
static bool is_quotable(const char *key)
{
    size_t len = strlen(key);
    for (size_t i = 0; i < len; i++) {
        if (key[i] < 0x21 || key[i] > 0x7e) {
            return false;
        }
    }
    return len <= 64;
}

/* That obj has the table's keys and no other; missing ones are found when they are read. */
static int check_keys(const struct place *at, const struct kedgei_field *fields, size_t count, json_t *obj,
                      struct kedge_diag *reterr)
{
    if (!json_is_object(obj)) {
        return refuse(at, at->list ? "" : "predicate", "an object", reterr);
    }
    size_t required = 0;
    for (size_t i = 0; i < count; i++) {
        required += !fields[i].optional && !fields[i].lacks;
    }
    if (json_object_size(obj) <= required) {
        return KEDGE_OK; /* an unknown key would leave one of ours missing */
    }
    bool all_known = true;
    const char *key;
    json_t *value;
    json_object_foreach(obj, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < count && !known; i++) {
            known = strcmp(key, fields[i].name) == 0;
        }
        if (!known && is_quotable(key)) {
            return refuse(at, key, "no such field", reterr);
        }
        all_known = all_known && known;
    }
    return all_known ? KEDGE_OK : refuse(at, at->list ? "" : "predicate", "only fields of this kind", reterr);
}

static int get_element(const struct place *at, const struct kedgei_list *list, json_t *value, uint8_t *elem,
                       struct kedge_diag *reterr)
{
    if (list->bare) {
        const char *expected = get_scalar(&list->fields[0], value, elem + list->fields[0].offset);
        return expected ? refuse(at, "", expected, reterr) : KEDGE_OK;
    }
    KEDGE_TRY(check_keys(at, list->fields, list->field_count, value, reterr));
    for (size_t i = 0; i < list->field_count; i++) {
        const struct kedgei_field *f = &list->fields[i];
        const char *expected = get_scalar(f, json_object_get(value, f->name), elem + f->offset);
        if (expected) {
            return refuse(at, f->name, expected, reterr);
        }
    }
    return KEDGE_OK;
}

static int get_list(const struct place *outer, const struct kedgei_field *f, const json_t *value,
                    uint8_t *base, struct kedge_diag *reterr)
{
    const struct kedgei_list *list = f->list;
    size_t count = json_array_size(value); /* 0 when it is no array */
    if (!json_is_array(value) || count < list->min || count > list->max) {
        return refuse(outer, f->name, "an array with a number of elements in its range", reterr);
    }
    uint8_t *elem = base + f->offset;
    for (uint32_t i = 0; i < count; i++, elem += list->elem_size) {
        struct place at = {outer->kind, f->name, i};
        KEDGE_TRY(get_element(&at, list, json_array_get(value, i), elem, reterr));
        if (i > 0 && kedgei_list_cmp(list, elem - list->elem_size, elem) >= 0) {
            return refuse(&at, "", "elements in strictly ascending order", reterr);
        }
    }
    uint32_t narrow = (uint32_t)count;
    memcpy(base + list->count_offset, &narrow, sizeof narrow);
    return KEDGE_OK;
}

static int get_predicate(const struct kedgei_kind *k, json_t *predicate, struct kedge_statement *st,
                         struct kedge_diag *reterr)
{
    struct place at = {k->name, NULL, 0};
    int err = check_keys(&at, k->fields, k->field_count, predicate, reterr);
    uint8_t *base = (uint8_t *)&st->u;
    for (size_t i = 0; i < k->field_count && !err; i++) {
        const struct kedgei_field *f = &k->fields[i];
        json_t *value = json_object_get(predicate, f->name);
        if (f->type == KEDGEI_LIST && f->optional && !value) {
            continue;
        }
        if (f->type == KEDGEI_LIST) {
            err = get_list(&at, f, value, base, reterr);
        } else {
            const char *expected = get_scalar(f, value, kedgei_field_of(f, st));
            err = expected ? refuse(&at, f->name, expected, reterr) : KEDGE_OK;
        }
    }
    if (!err && k->check) {
        const char *expected = k->check(st);
        err = expected ? refuse(&at, "predicate", expected, reterr) : KEDGE_OK;
    }
    return err;
}

/* Exactly [{"name": subject name, "digest": {"sha256": hex}}], and the digest that the kind derives. */
static int get_subject(const struct kedgei_kind *k, const json_t *value, struct kedge_statement *st,
                       struct kedge_diag *reterr)
{
    const json_t *subject = json_array_size(value) == 1 ? json_array_get(value, 0) : NULL;
    const json_t *name = json_object_get(subject, "name");
    const json_t *digest = json_object_get(subject, "digest");
    const json_t *hex = json_object_get(digest, "sha256");
    if (json_object_size(subject) != 2 || json_object_size(digest) != 1 || !json_is_string(name)
        || !kedge_view_eq(string_view(name), kedge_view_str(k->subject_name)) || !json_is_string(hex)
        || kedge_hash_from_hex(string_view(hex), &st->subject) != KEDGE_OK) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "statement %s: subject: expected [{\"name\":\"%s\",\"digest\":{\"sha256\":64 lower-case "
            "hex digits}}]",
            k->name, k->subject_name);
    }
    return KEDGE_OK;
}

static int check_subject(const struct kedgei_kind *k, struct kedge_statement *st, struct kedge_diag *reterr)
{
    struct kedge_hash stated = st->subject;
    kedge_statement_derive_subject(st);
    if (!kedge_hash_eq(&stated, &st->subject)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "statement %s: subject: expected the digest that follows from the predicate",
                              k->name);
    }
    return KEDGE_OK;
}

static const struct kedgei_kind *find_kind(const json_t *type)
{
    for (size_t i = 0; json_is_string(type) && i < KEDGE_ST_KIND_COUNT; i++) {
        if (kedge_view_eq(string_view(type), kedge_view_str(kedgei_kinds[i].predicate_type))) {
            return &kedgei_kinds[i];
        }
    }
    return NULL;
}

static int get_root(const json_t *root, struct kedge_statement *st, struct kedge_diag *reterr)
{
    const json_t *type = json_object_get(root, "_type");
    if (json_object_size(root) != 4 || !json_is_string(type)
        || !kedge_view_eq(string_view(type), kedge_view_str(KEDGEI_STATEMENT_TYPE))) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "statement: expected an in-toto Statement v1: _type, subject, predicateType, predicate");
    }
    const struct kedgei_kind *k = find_kind(json_object_get(root, "predicateType"));
    if (!k) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "statement: predicateType: expected one that Kedge knows");
    }
    memset(st, 0, sizeof *st);
    st->kind = (enum kedge_statement_kind)(k - kedgei_kinds);
    KEDGE_TRY(get_subject(k, json_object_get(root, "subject"), st, reterr));
    KEDGE_TRY(get_predicate(k, json_object_get(root, "predicate"), st, reterr));
    return check_subject(k, st, reterr);
}

int kedge_statement_decode(struct kedge_view payload, struct kedge_statement *ret_st,
                           struct kedge_diag *reterr)
{
    json_t *root = NULL;
    struct kedge_statement st;
    if (payload.len <= KEDGE_ENTRY_MAX && kedgei_statement_scan(payload, &st)) {
        *ret_st = st;
        return KEDGE_OK;
    }
    KEDGE_TRY(kedgei_json_load(payload, KEDGE_ENTRY_MAX, "statement", &root, reterr));
    int err = get_root(root, &st, reterr);
    json_decref(root);
    if (!err) {
        *ret_st = st;
    }
    return err;
}
