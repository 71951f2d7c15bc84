/* Writes a statement by the tables of statement_kinds.c, from which it is read, too. A value that the
 * reader would refuse is refused here, so that nothing is signed that no auditor can read. JSON is written
 * by hand in one fixed order and spelling, because the digest of these bytes is what is signed. */
#include <inttypes.h>
#include <string.h>

#include "chain/statement/statement_fields.h"
#include "common/base/try.h"
#include "common/json/json.h"

static void put_hex(struct kedge_buf *out, const void *bytes)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hex_encode(bytes, KEDGE_HASH_LEN, hex);
    kedge_buf_put_u8(out, '"');
    kedge_buf_put_str(out, hex);
    kedge_buf_put_u8(out, '"');
}

static void put_names(const char *names, struct kedge_buf *out)
{
    bool first = true;
    for (const char *name = names; *name != '\0'; name += strlen(name) + 1, first = false) {
        kedge_buf_put_u8(out, first ? '[' : ',');
        kedgei_json_put_string(out, name);
    }
    kedge_buf_put_str(out, first ? "[]" : "]");
}

static void put_scalar(const struct kedgei_field *f, const void *p, struct kedge_buf *out)
{
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    double real = 0;
    char text[KEDGE_REAL_MAX];
    switch (f->type) {
    case KEDGEI_ID:
    case KEDGEI_ID_OR_EMPTY:
    case KEDGEI_TEXT:
    case KEDGEI_FILE:
        kedgei_json_put_string(out, p);
        break;
    case KEDGEI_KEY:
    case KEDGEI_HASH:
        put_hex(out, p);
        break;
    case KEDGEI_ENUM:
        memcpy(&u32, p, sizeof u32);
        kedgei_json_put_string(out, f->names[u32]);
        break;
    case KEDGEI_U32:
        memcpy(&u32, p, sizeof u32);
        kedge_buf_printf(out, "%" PRIu32, u32);
        break;
    case KEDGEI_U64:
        memcpy(&u64, p, sizeof u64);
        kedge_buf_printf(out, "%" PRIu64, u64);
        break;
    case KEDGEI_U64_TEXT:
        memcpy(&u64, p, sizeof u64);
        kedge_buf_printf(out, "\"%" PRIu64 "\"", u64);
        break;
    case KEDGEI_REAL:
    case KEDGEI_REAL_POS:
        memcpy(&real, p, sizeof real);
        kedge_real_encode(real, text);
        kedge_buf_printf(out, "\"%s\"", text);
        break;
    case KEDGEI_NAMES:
        put_names(p, out);
        break;
    case KEDGEI_LIST:
        KEDGE_ASSERT(f->type != KEDGEI_LIST); /* no list in a list */
    }
}

static int refuse(const struct kedgei_kind *k, const char *where, const char *expected,
                  struct kedge_diag *reterr)
{
    return kedge_diag_set(reterr, KEDGE_E_ARG, "statement %s: %s: expected %s", k->name, where, expected);
}

static int put_element(const struct kedgei_kind *k, const struct kedgei_field *list_field,
                       const uint8_t *elem, struct kedge_buf *out, struct kedge_diag *reterr)
{
    const struct kedgei_list *list = list_field->list;
    for (size_t i = 0; i < list->field_count; i++) {
        const struct kedgei_field *f = &list->fields[i];
        if (kedgei_field_is_absent(f, elem + f->offset)) {
            continue;
        }
        const char *expected = kedgei_field_check(f, elem + f->offset);
        if (expected) {
            return refuse(k, f->name, expected, reterr);
        }
        if (!list->bare) {
            kedge_buf_printf(out, "%s\"%s\":", i == 0 ? "{" : ",", f->name);
        }
        put_scalar(f, elem + f->offset, out);
    }
    if (!list->bare) {
        kedge_buf_put_u8(out, '}');
    }
    return KEDGE_OK;
}

static int put_list(const struct kedgei_kind *k, const struct kedgei_field *f, const uint8_t *base,
                    struct kedge_buf *out, struct kedge_diag *reterr)
{
    const struct kedgei_list *list = f->list;
    uint32_t count;
    memcpy(&count, base + list->count_offset, sizeof count);
    if (count < list->min || count > list->max) {
        return refuse(k, f->name, "a number of elements in its range", reterr);
    }
    const uint8_t *elem = base + f->offset;
    for (uint32_t i = 0; i < count; i++, elem += list->elem_size) {
        if (i > 0 && kedgei_list_cmp(list, elem - list->elem_size, elem) >= 0) {
            return refuse(k, f->name, "strictly ascending elements", reterr);
        }
        kedge_buf_put_u8(out, i == 0 ? '[' : ',');
        KEDGE_TRY(put_element(k, f, elem, out, reterr));
    }
    kedge_buf_put_str(out, count == 0 ? "[]" : "]");
    return KEDGE_OK;
}

static int put_predicate(const struct kedgei_kind *k, const struct kedge_statement *st, struct kedge_buf *out,
                         struct kedge_diag *reterr)
{
    const uint8_t *base = (const uint8_t *)&st->u;
    for (size_t i = 0; i < k->field_count; i++) {
        const struct kedgei_field *f = &k->fields[i];
        if (!f->in_position && kedgei_field_is_left_out(f, base)) {
            continue;
        }
        kedge_buf_printf(out, "%s\"%s\":", i == 0 ? "{" : ",", f->name);
        if (f->type == KEDGEI_LIST) {
            KEDGE_TRY(put_list(k, f, base, out, reterr));
            continue;
        }
        const char *expected = kedgei_field_check(f, kedgei_field_in(f, st));
        if (expected) {
            return refuse(k, f->name, expected, reterr);
        }
        put_scalar(f, kedgei_field_in(f, st), out);
    }
    kedge_buf_put_u8(out, '}');
    return KEDGE_OK;
}

/* The subject that the kind derives, or the caller's. */
static struct kedge_hash subject_of(const struct kedge_statement *st)
{
    struct kedge_hash subject = st->subject;
    const struct kedgei_kind *k = &kedgei_kinds[st->kind];
    const uint8_t *p = (const uint8_t *)&st->u + k->subject_offset;
    if (k->subject == KEDGEI_SUBJECT_KEY_HASH) {
        kedge_sha256(kedge_view_of(p, KEDGE_KEY_LEN), &subject);
    } else if (k->subject == KEDGEI_SUBJECT_COPY) {
        memcpy(subject.b, p, sizeof subject.b);
    }
    return subject;
}

int kedge_statement_encode(const struct kedge_statement *st, struct kedge_buf *ret_payload,
                           struct kedge_diag *reterr)
{
    if ((unsigned)st->kind >= KEDGE_ST_KIND_COUNT) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "statement: unknown kind %u", (unsigned)st->kind);
    }
    const struct kedgei_kind *k = &kedgei_kinds[st->kind];
    const char *expected = k->check ? k->check(st) : NULL;
    if (expected) {
        return refuse(k, "predicate", expected, reterr);
    }
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&out, KEDGE_ENTRY_MAX);
    struct kedge_hash subject = subject_of(st);
    kedge_buf_printf(&out, "{\"_type\":\"%s\",\"subject\":[{\"name\":\"%s\",\"digest\":{\"sha256\":",
                     KEDGEI_STATEMENT_TYPE, k->subject_name);
    put_hex(&out, subject.b);
    kedge_buf_printf(&out, "}}],\"predicateType\":\"%s\",\"predicate\":", k->predicate_type);
    KEDGE_TRY(put_predicate(k, st, &out, reterr));
    kedge_buf_put_u8(&out, '}');
    int err = out.err;
    if (!err) {
        kedge_buf_put(ret_payload, out.ptr, out.len);
        err = ret_payload->err;
    }
    return err ? kedge_diag_set(reterr, err, "statement %s: %s", k->name, kedge_strerror(err)) : KEDGE_OK;
}
