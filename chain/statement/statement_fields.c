/* Ranges of fields, the same for writing and reading, and what is derived from them. */
#include "chain/statement/statement_fields.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static_assert(sizeof(enum kedge_key_scope) == sizeof(uint32_t), "enums of statements are read as uint32_t");

static struct kedge_view bounded_text(const void *p, size_t max)
{
    return kedge_view_of(p, strnlen(p, max + 1));
}

static const char *check_text(const struct kedgei_field *f, struct kedge_view text)
{
    if (text.len < f->min || text.len > f->max) {
        return f->min > 0 ? "a text that is neither empty nor too long" : "a shorter text";
    }
    if (!kedge_utf8_is_valid(text)) {
        return "UTF-8";
    }
    if (!kedge_text_is_plain(text)) {
        return "a text without control characters and characters that nobody sees";
    }
    if (f->type == KEDGEI_FILE
        && (memchr(text.ptr, '/', text.len) || kedge_view_eq(text, kedge_view_str("."))
            || kedge_view_eq(text, kedge_view_str("..")))) {
        return "the name of a file without folders";
    }
    return NULL;
}

static const char *check_id(const struct kedgei_field *f, const void *p)
{
    struct kedge_view id = bounded_text(p, KEDGE_ID_MAX);
    bool empty = f->type == KEDGEI_ID_OR_EMPTY && id.len == 0;
    return empty || kedge_id_is_valid(id) ? NULL : "an identifier [a-z0-9][a-z0-9._-]{0,62}";
}

static const char *check_u32(const struct kedgei_field *f, const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v >= f->min && v <= f->max ? NULL : "an integer in its range";
}

static const char *check_u64(const struct kedgei_field *f, const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v >= f->min && v <= f->max ? NULL : "a whole number in its range";
}

static const char *check_enum(const struct kedgei_field *f, const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    uint32_t count = 0;
    while (f->names[count]) {
        count++;
    }
    return v < count ? NULL : "one of the field's words";
}

static const char *check_real(const struct kedgei_field *f, const void *p)
{
    double v;
    memcpy(&v, p, sizeof v);
    if (!isfinite(v)) {
        return "a finite number";
    }
    return f->type == KEDGEI_REAL || v >= 0 ? NULL : "a number not below zero";
}

const char *kedgei_field_check(const struct kedgei_field *f, const void *p)
{
    switch (f->type) {
    case KEDGEI_ID:
    case KEDGEI_ID_OR_EMPTY:
        return check_id(f, p);
    case KEDGEI_KEY:
        return kedge_public_key_is_valid(p) ? NULL : "a valid Ed25519 public key";
    case KEDGEI_HASH:
        return NULL;
    case KEDGEI_TEXT:
    case KEDGEI_FILE:
        return check_text(f, bounded_text(p, (size_t)f->max));
    case KEDGEI_ENUM:
        return check_enum(f, p);
    case KEDGEI_U32:
        return check_u32(f, p);
    case KEDGEI_U64:
    case KEDGEI_U64_TEXT:
        return check_u64(f, p);
    case KEDGEI_REAL:
    case KEDGEI_REAL_POS:
        return check_real(f, p);
    case KEDGEI_NAMES:
        return kedge_class_names_expected(p);
    case KEDGEI_LIST:
        break;
    }
    return "no nested array"; /* lists are checked element by element */
}

static size_t value_size(enum kedgei_type type)
{
    switch (type) {
    case KEDGEI_KEY:
    case KEDGEI_HASH:
        return KEDGE_HASH_LEN;
    case KEDGEI_ENUM:
    case KEDGEI_U32:
        return sizeof(uint32_t);
    case KEDGEI_U64:
    case KEDGEI_U64_TEXT:
    case KEDGEI_REAL:
    case KEDGEI_REAL_POS:
        return sizeof(uint64_t);
    case KEDGEI_ID:
    case KEDGEI_ID_OR_EMPTY:
    case KEDGEI_TEXT:
    case KEDGEI_FILE:
    case KEDGEI_NAMES:
        return 1; /* the end of an empty text */
    case KEDGEI_LIST:
        break;
    }
    return 0;
}

bool kedgei_field_is_absent(const struct kedgei_field *f, const void *p)
{
    static const uint8_t zero[KEDGE_HASH_LEN];
    size_t size = f->optional ? value_size(f->type) : 0;
    double real;
    if (f->lacks) {
        memcpy(&real, p, sizeof real);
        return isnan(real);
    }
    return size > 0 && memcmp(p, zero, size) == 0;
}

bool kedgei_field_leave_out(const struct kedgei_field *f, void *p)
{
    static const double none = (double)NAN;
    if (f->lacks) {
        memcpy(p, &none, sizeof none);
    }
    return f->lacks || f->optional;
}

bool kedgei_field_is_left_out(const struct kedgei_field *f, const uint8_t *base)
{
    uint32_t count = 1;
    if (f->optional && f->type == KEDGEI_LIST) {
        memcpy(&count, base + f->list->count_offset, sizeof count);
    }
    return count == 0 || kedgei_field_is_absent(f, base + f->offset);
}

int kedgei_list_cmp(const struct kedgei_list *list, const void *a, const void *b)
{
    const struct kedgei_field *key = &list->fields[0];
    const uint8_t *x = (const uint8_t *)a + key->offset;
    const uint8_t *y = (const uint8_t *)b + key->offset;
    if (key->type == KEDGEI_HASH) {
        return memcmp(x, y, KEDGE_HASH_LEN);
    }
    KEDGE_ASSERT(key->type == KEDGEI_U32);
    uint32_t u, v;
    memcpy(&u, x, sizeof u);
    memcpy(&v, y, sizeof v);
    return (u > v) - (u < v);
}

const char *kedge_statement_kind_name(enum kedge_statement_kind kind)
{
    return (unsigned)kind < KEDGE_ST_KIND_COUNT ? kedgei_kinds[kind].name : "unknown";
}

void kedge_statement_derive_subject(struct kedge_statement *st)
{
    const struct kedgei_kind *k = &kedgei_kinds[st->kind];
    const uint8_t *p = (const uint8_t *)&st->u + k->subject_offset;
    switch (k->subject) {
    case KEDGEI_SUBJECT_GIVEN:
        return;
    case KEDGEI_SUBJECT_KEY_HASH:
        kedge_sha256(kedge_view_of(p, KEDGE_KEY_LEN), &st->subject);
        return;
    case KEDGEI_SUBJECT_COPY:
        memcpy(st->subject.b, p, KEDGE_HASH_LEN);
        return;
    }
}

/* Insertion sort: at most 128 elements, and most callers have them sorted. */
static void sort_list(const struct kedgei_list *list, uint8_t *elems, uint32_t count)
{
    uint8_t moved[512];
    KEDGE_ASSERT(list->elem_size <= sizeof moved && count <= list->max);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t j = i;
        memcpy(moved, elems + i * list->elem_size, list->elem_size);
        while (j > 0 && kedgei_list_cmp(list, elems + (j - 1) * list->elem_size, moved) > 0) {
            memcpy(elems + j * list->elem_size, elems + (j - 1) * list->elem_size, list->elem_size);
            j--;
        }
        memcpy(elems + j * list->elem_size, moved, list->elem_size);
    }
}

void kedge_statement_sort(struct kedge_statement *st)
{
    const struct kedgei_kind *k = &kedgei_kinds[st->kind];
    uint8_t *base = (uint8_t *)&st->u;
    for (size_t i = 0; i < k->field_count; i++) {
        const struct kedgei_field *f = &k->fields[i];
        if (f->type == KEDGEI_LIST) {
            uint32_t count;
            memcpy(&count, base + f->list->count_offset, sizeof count);
            sort_list(f->list, base + f->offset, count);
        }
    }
}
