/* The fast reader of statements, for a record has hundreds of thousands of them. It takes only the form
 * in which Kedge itself writes: members in the table's order, no space between them, no escapes. So it
 * compares fixed texts and builds no tree. Whatever it does not take is left to the JSON reader, which
 * says what is wrong; what it takes, that one takes with the same result, as a test and a fuzz target
 * compare. */
#include <string.h>

#include "chain/log/lines.h"
#include "chain/statement/statement_read.h"

static const char before_name[] = "\",\"subject\":[{\"name\":\"";
static const char before_digest[] = "\",\"digest\":{\"sha256\":\"";
static const char before_type[] = "\"}}],\"predicateType\":\"";
static const char before_predicate[] = "\",\"predicate\":{";

/* A string's characters up to its closing quote, which is taken, too. No escapes and no control bytes: the
 * other reader knows what to say of them. It also reads what is no ASCII but in texts, which are checked. */
static bool take_string(struct kedge_view *rest, struct kedge_view *ret)
{
    size_t len = 0;
    while (len < rest->len && rest->ptr[len] >= 0x20 && rest->ptr[len] != '"' && rest->ptr[len] != '\\') {
        len++;
    }
    if (len == rest->len || rest->ptr[len] != '"') {
        return false;
    }
    *ret = kedge_view_of(rest->ptr, len);
    *rest = kedge_view_of(rest->ptr + len + 1, rest->len - len - 1);
    return true;
}

/* "name": */
static bool take_name(struct kedge_view *rest, const char *name)
{
    return kedgei_take_prefix(rest, "\"") && kedgei_take_prefix(rest, name)
           && kedgei_take_prefix(rest, "\":");
}

static bool take_integer(struct kedge_view *rest, const struct kedgei_field *f, void *p)
{
    size_t len = 0;
    uint64_t v;
    while (len < rest->len && rest->ptr[len] >= '0' && rest->ptr[len] <= '9') {
        len++;
    }
    if (kedge_decimal_decode(kedge_view_of(rest->ptr, len), f->max, &v) != KEDGE_OK) {
        return false;
    }
    *rest = kedge_view_of(rest->ptr + len, rest->len - len);
    if (f->type == KEDGEI_U32) {
        uint32_t narrow = (uint32_t)v;
        memcpy(p, &narrow, sizeof narrow);
    } else {
        memcpy(p, &v, sizeof v);
    }
    return true;
}

static bool take_scalar(struct kedge_view *rest, const struct kedgei_field *f, void *p)
{
    struct kedge_view text;
    if (f->type == KEDGEI_U32 || f->type == KEDGEI_U64) {
        if (!take_integer(rest, f, p)) {
            return false;
        }
    } else if (!kedgei_take_prefix(rest, "\"") || !take_string(rest, &text)
               || kedgei_get_string(f, text, p) != NULL) {
        return false;
    }
    return !kedgei_field_is_absent(f, p) && kedgei_field_check(f, p) == NULL;
}

/* What follows is not this field, which need not be there. */
static bool is_left_out(struct kedge_view rest, const struct kedgei_field *f)
{
    return (f->optional || f->lacks) && !(kedgei_take_prefix(&rest, ",") && take_name(&rest, f->name));
}

static bool take_element(struct kedge_view *rest, const struct kedgei_list *list, uint8_t *elem)
{
    for (size_t i = 0; i < list->field_count; i++) {
        const struct kedgei_field *f = &list->fields[i];
        if (is_left_out(*rest, f)) {
            continue;
        }
        if (!list->bare && (!kedgei_take_prefix(rest, i == 0 ? "{" : ",") || !take_name(rest, f->name))) {
            return false;
        }
        if (!take_scalar(rest, f, elem + f->offset)) {
            return false;
        }
    }
    return list->bare || kedgei_take_prefix(rest, "}");
}

/* Elements must ascend, as the table orders them, which also refuses one that stands twice. Each is read
 * into its place in the statement, so the bound is checked before the element is. */
static bool take_list(struct kedge_view *rest, const struct kedgei_field *f, uint8_t *base)
{
    const struct kedgei_list *list = f->list;
    uint8_t *elem = base + f->offset;
    uint32_t count = 0;
    if (!kedgei_take_prefix(rest, "[")) {
        return false;
    }
    while (!kedgei_take_prefix(rest, "]")) {
        if (count == list->max || (count > 0 && !kedgei_take_prefix(rest, ","))
            || !take_element(rest, list, elem)
            || (count > 0 && kedgei_list_cmp(list, elem - list->elem_size, elem) >= 0)) {
            return false;
        }
        count++;
        elem += list->elem_size;
    }
    memcpy(base + list->count_offset, &count, sizeof count);
    return count >= list->min;
}

static bool take_predicate(struct kedge_view *rest, const struct kedgei_kind *k, struct kedge_statement *st)
{
    uint8_t *base = (uint8_t *)&st->u;
    for (size_t i = 0; i < k->field_count; i++) {
        const struct kedgei_field *f = &k->fields[i];
        if (is_left_out(*rest, f)) {
            (void)kedgei_field_leave_out(f, kedgei_field_of(f, st));
            continue;
        }
        if ((i > 0 && !kedgei_take_prefix(rest, ",")) || !take_name(rest, f->name)
            || !(f->type == KEDGEI_LIST ? take_list(rest, f, base)
                                        : take_scalar(rest, f, kedgei_field_of(f, st)))) {
            return false;
        }
    }
    return kedgei_take_prefix(rest, "}}") && rest->len == 0;
}

static const struct kedgei_kind *find_kind(struct kedge_view type)
{
    for (size_t i = 0; i < KEDGE_ST_KIND_COUNT; i++) {
        if (kedge_view_eq(type, kedge_view_str(kedgei_kinds[i].predicate_type))) {
            return &kedgei_kinds[i];
        }
    }
    return NULL;
}

bool kedgei_statement_scan(struct kedge_view payload, struct kedge_statement *ret_st)
{
    struct kedge_view rest = payload, name, hex, type;
    struct kedge_hash stated;
    if (!kedgei_take_prefix(&rest, "{\"_type\":\"") || !kedgei_take_prefix(&rest, KEDGEI_STATEMENT_TYPE)
        || !kedgei_take_prefix(&rest, before_name) || !take_string(&rest, &name)
        || !kedgei_take_prefix(&rest, before_digest + 1) || !take_string(&rest, &hex)
        || kedge_hash_from_hex(hex, &stated) != KEDGE_OK || !kedgei_take_prefix(&rest, before_type + 1)
        || !take_string(&rest, &type) || !kedgei_take_prefix(&rest, before_predicate + 1)) {
        return false;
    }
    const struct kedgei_kind *k = find_kind(type);
    if (!k || !kedge_view_eq(name, kedge_view_str(k->subject_name))) {
        return false;
    }
    memset(ret_st, 0, sizeof *ret_st);
    ret_st->kind = (enum kedge_statement_kind)(k - kedgei_kinds);
    ret_st->subject = stated;
    if (!take_predicate(&rest, k, ret_st) || (k->check && k->check(ret_st))) {
        return false;
    }
    kedge_statement_derive_subject(ret_st);
    return kedge_hash_eq(&stated, &ret_st->subject);
}

static const char *get_id(const struct kedgei_field *f, struct kedge_view text, void *p)
{
    struct kedge_id *id = p;
    memset(id, 0, sizeof *id);
    if (f->type == KEDGEI_ID_OR_EMPTY && text.len == 0) {
        return NULL;
    }
    return kedge_id_from(text, id) == KEDGE_OK ? NULL : "an identifier [a-z0-9][a-z0-9._-]{0,62}";
}

static const char *get_enum(const struct kedgei_field *f, struct kedge_view text, void *p)
{
    for (uint32_t i = 0; f->names[i]; i++) {
        if (kedge_view_eq(text, kedge_view_str(f->names[i]))) {
            memcpy(p, &i, sizeof i);
            return NULL;
        }
    }
    return "one of the field's words";
}

static const char *get_text(const struct kedgei_field *f, struct kedge_view text, void *p)
{
    if (text.len > f->max) {
        return "a shorter text";
    }
    memcpy(p, text.ptr, text.len);
    ((char *)p)[text.len] = '\0';
    return NULL;
}

const char *kedgei_get_string(const struct kedgei_field *f, struct kedge_view text, void *p)
{
    uint64_t u64 = 0;
    double real = 0;
    switch (f->type) {
    case KEDGEI_ID:
    case KEDGEI_ID_OR_EMPTY:
        return get_id(f, text, p);
    case KEDGEI_KEY:
    case KEDGEI_HASH:
        return kedge_hex_decode(text, p, KEDGE_HASH_LEN) == KEDGE_OK ? NULL : "64 lower-case hex digits";
    case KEDGEI_TEXT:
    case KEDGEI_FILE:
        return get_text(f, text, p);
    case KEDGEI_ENUM:
        return get_enum(f, text, p);
    case KEDGEI_U64_TEXT:
        if (kedge_decimal_decode(text, f->max, &u64) != KEDGE_OK) {
            return "a decimal string in its range";
        }
        memcpy(p, &u64, sizeof u64);
        return NULL;
    case KEDGEI_REAL:
    case KEDGEI_REAL_POS:
        if (kedge_real_decode(text, &real) != KEDGE_OK) {
            return "a finite number as a decimal string";
        }
        memcpy(p, &real, sizeof real);
        return NULL;
    case KEDGEI_U32:
    case KEDGEI_U64:
    case KEDGEI_NAMES:
    case KEDGEI_LIST:
        break;
    }
    return "another type";
}
