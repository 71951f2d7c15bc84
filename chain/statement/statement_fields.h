/* Internal to chain: the table that says how each kind of statement is written. A new kind is a struct in
 * statement.h, its rows and one line of kinds[] in statement_kinds.c. Pure. */
#ifndef KEDGE_CHAIN_STATEMENT_STATEMENT_FIELDS_H
#define KEDGE_CHAIN_STATEMENT_STATEMENT_FIELDS_H

#include <stddef.h>

#include "chain/statement/statement.h"

enum kedgei_type {
    KEDGEI_ID,          /* struct kedge_id */
    KEDGEI_ID_OR_EMPTY, /* struct kedge_id, "" allowed */
    KEDGEI_KEY,         /* struct kedge_public_key, a valid point; lower-case hex */
    KEDGEI_HASH,        /* struct kedge_hash; lower-case hex */
    KEDGEI_TEXT,        /* char[max + 1], min…max bytes of UTF-8 without control bytes */
    KEDGEI_FILE,        /* as TEXT, a file's name: no '/', not "." or ".." */
    KEDGEI_ENUM,        /* an enum, written as names[value] */
    KEDGEI_U32,         /* uint32_t, JSON integer min…max */
    KEDGEI_U64,         /* uint64_t, JSON integer min…max <= 2^53 */
    KEDGEI_U64_TEXT,    /* uint64_t, decimal string up to max */
    KEDGEI_REAL,        /* double, decimal string, finite */
    KEDGEI_REAL_POS,    /* the same, not below zero */
    KEDGEI_NAMES,       /* char[KEDGE_CLASS_NAMES_ROOM], common/tensor/class_names.h; an array of strings */
    KEDGEI_LIST,        /* array described by list */
};

struct kedgei_field;

/* Array in a statement: elements are objects of scalar fields, ascending by the first; or bare hashes. */
struct kedgei_list {
    size_t elem_size;
    size_t count_offset; /* of the uint32_t count, from the start of the kind's struct */
    uint32_t min, max;
    const struct kedgei_field *fields; /* no LIST among them */
    size_t field_count;
    bool bare; /* elements are written as the value of the one field, not as objects */
};

struct kedgei_field {
    const char *name;
    enum kedgei_type type;
    size_t offset; /* from the start of the kind's struct, or of the element's */
    uint64_t min, max;
    const char *const *names; /* ENUM: NULL-terminated */
    const struct kedgei_list *list;
    /* Not there when its value is zero (a hash of zeros, an empty text), and then in this spelling only; so
     * that a statement can grow without a change to those that were written before. A LIST is not there when
     * it has no element. Never the first field. */
    bool optional;
    bool in_position; /* offset is from the start of st->at; never optional, never a LIST */
    bool lacks; /* a REAL that need not be there either, and then is NaN: zero is a number, and is written */
};

/* Where the subject digest comes from. */
enum kedgei_subject {
    KEDGEI_SUBJECT_GIVEN,    /* the caller's */
    KEDGEI_SUBJECT_KEY_HASH, /* SHA-256 of the key at subject_offset */
    KEDGEI_SUBJECT_COPY,     /* the hash at subject_offset */
};

struct kedgei_kind {
    const char *name;
    const char *predicate_type;
    const char *subject_name;
    enum kedgei_subject subject;
    size_t subject_offset;
    const struct kedgei_field *fields;
    size_t field_count;
    /* What the fields together must satisfy: NULL or what was expected. */
    const char *(*check)(const struct kedge_statement *st);
    bool many_signers; /* its envelope may bear several signatures */
};

extern const struct kedgei_kind kedgei_kinds[KEDGE_ST_KIND_COUNT];
extern const char KEDGEI_STATEMENT_TYPE[];

/* Where the statement has the value. */
static inline const uint8_t *kedgei_field_in(const struct kedgei_field *f, const struct kedge_statement *st)
{
    return (f->in_position ? (const uint8_t *)&st->at : (const uint8_t *)&st->u) + f->offset;
}
static inline uint8_t *kedgei_field_of(const struct kedgei_field *f, struct kedge_statement *st)
{
    return (f->in_position ? (uint8_t *)&st->at : (uint8_t *)&st->u) + f->offset;
}

/* NULL when the value at p (the field's place) is in range, else what was expected. */
const char *kedgei_field_check(const struct kedgei_field *f, const void *p);
/* An optional field whose value is zero, or one that lacks its value: it is not written. */
bool kedgei_field_is_absent(const struct kedgei_field *f, const void *p);
/* May the field be left out? Then p is what that means. */
bool kedgei_field_leave_out(const struct kedgei_field *f, void *p);
/* The same of a field of the kind's struct at base, be it a list. */
bool kedgei_field_is_left_out(const struct kedgei_field *f, const uint8_t *base);
/* Order of two elements by their first field. */
int kedgei_list_cmp(const struct kedgei_list *list, const void *a, const void *b);

#endif
