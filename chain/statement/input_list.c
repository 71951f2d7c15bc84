/* What came into a round of a tenant's sites, as a blob that the round's statement names by its digest.
 * Hand-written on both sides, because the blob must have one spelling: the reader compares fixed bytes
 * between the values, and no value can hold a byte that JSON would escape. Rows are strictly ascending, so
 * a list has one order and no doubles, and an auditor who makes the list from the ledger gets the same
 * bytes. */
#include "chain/statement/input_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/lines.h"
#include "common/base/mem.h"
#include "common/base/percent.h"
#include "common/base/try.h"

#define LEAF_MAX ((uint64_t)1 << 53)
#define WEIGHT_MAX ((uint64_t)1 << 62)

static const char *const use_names[] = {"candidate", "selected", "aggregated", "grouped",
                                        "refused",   "working",  "away",       "evaluated"};
enum { USE_COUNT = sizeof use_names / sizeof use_names[0] };

const char *kedge_input_use_name(enum kedge_input_use use)
{
    return (unsigned)use < USE_COUNT ? use_names[use] : "unknown";
}

static int cmp_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int kedge_input_row_cmp(const struct kedge_input_row *a, const struct kedge_input_row *b)
{
    int c = kedge_id_cmp(&a->site, &b->site);
    c = c ? c : cmp_u64((uint64_t)a->use, (uint64_t)b->use);
    c = c ? c : cmp_u64(a->group, b->group);
    c = c ? c : cmp_u64(a->leaf, b->leaf);
    return c ? c : kedge_hash_cmp(&a->update, &b->update);
}

static int cmp_rows(const void *a, const void *b)
{
    return kedge_input_row_cmp(a, b);
}

void kedge_input_rows_sort(struct kedge_input_row *rows, size_t count)
{
    if (count > 1) {
        qsort(rows, count, sizeof rows[0], cmp_rows);
    }
}

static bool is_reason(struct kedge_view reason)
{
    for (size_t i = 0; i < reason.len; i++) {
        uint8_t c = reason.ptr[i];
        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') {
            return false;
        }
    }
    return reason.len <= KEDGE_INPUT_REASON_MAX;
}

static bool is_row(const struct kedge_input_row *row)
{
    return kedge_id_is_valid(kedge_view_of(row->site.s, strnlen(row->site.s, sizeof row->site.s)))
           && (unsigned)row->use < USE_COUNT && row->group < KEDGE_GROUPS_MAX && row->leaf <= LEAF_MAX
           && row->weight <= WEIGHT_MAX && row->round <= KEDGE_ROUNDS_MAX && row->to < KEDGE_GROUPS_MAX
           && row->percent <= KEDGE_PERCENT_ALL
           && is_reason(kedge_view_of(row->reason, strnlen(row->reason, sizeof row->reason)));
}

int kedge_input_list_encode(const struct kedge_input_row *rows, size_t count, struct kedge_buf *out)
{
    if (count > KEDGE_INPUT_ROWS_MAX) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_row(&rows[i]) || (i > 0 && kedge_input_row_cmp(&rows[i - 1], &rows[i]) >= 0)) {
            return KEDGE_E_ARG;
        }
    }
    size_t len = out->len;
    for (size_t i = 0; i < count; i++) {
        const struct kedge_input_row *r = &rows[i];
        char leaf_hash[KEDGE_HASH_HEX_LEN + 1], update[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&r->leaf_hash, leaf_hash);
        kedge_hash_hex(&r->update, update);
        kedge_buf_printf(
            out,
            "{\"site\":\"%s\",\"use\":\"%s\",\"group\":%" PRIu32 ",\"leaf\":%" PRIu64
            ",\"leaf_hash\":\"%s\",\"update\":\"%s\",\"weight\":\"%" PRIu64 "\",\"reason\":\"%s\"",
            r->site.s, use_names[r->use], r->group, r->leaf, leaf_hash, update, r->weight, r->reason);
        if (r->round > 0) {
            kedge_buf_printf(out, ",\"round\":%" PRIu32, r->round);
        }
        if (r->to > 0) {
            kedge_buf_printf(out, ",\"to\":%" PRIu32, r->to);
        }
        if (r->percent > 0) {
            kedge_buf_printf(out, ",\"percent\":%" PRIu32, r->percent);
        }
        kedge_buf_put(out, "}\n", 2);
    }
    if (out->err) {
        out->len = len;
    }
    return out->err;
}

/* `prefix`, then what stands before the next c. */
static bool take_value(struct kedge_view *rest, const char *prefix, uint8_t c, struct kedge_view *ret)
{
    return kedgei_take_prefix(rest, prefix) && kedgei_cut(rest, c, ret);
}

static bool find_use(struct kedge_view name, enum kedge_input_use *ret_use)
{
    for (unsigned i = 0; i < USE_COUNT; i++) {
        if (kedge_view_eq(name, kedge_view_str(use_names[i]))) {
            *ret_use = (enum kedge_input_use)i;
            return true;
        }
    }
    return false;
}

/* A number from 1 to `most` after its name, or nothing: 0. */
static bool take_optional(struct kedge_view *rest, const char *name, uint64_t most, uint32_t *ret)
{
    size_t len = 0;
    uint64_t n = 0;
    if (!kedgei_take_prefix(rest, name)) {
        return true;
    }
    while (len < rest->len && rest->ptr[len] >= '0' && rest->ptr[len] <= '9') {
        len++;
    }
    if (kedge_decimal_decode(kedge_view_of(rest->ptr, len), most, &n) || n == 0) {
        return false;
    }
    *rest = kedge_view_of(rest->ptr + len, rest->len - len);
    *ret = (uint32_t)n;
    return true;
}

/* What is left of a row after its reason. */
static bool take_end(struct kedge_view *rest, struct kedge_input_row *ret)
{
    return take_optional(rest, ",\"round\":", KEDGE_ROUNDS_MAX, &ret->round)
           && take_optional(rest, ",\"to\":", KEDGE_GROUPS_MAX - 1, &ret->to)
           && take_optional(rest, ",\"percent\":", KEDGE_PERCENT_ALL, &ret->percent)
           && kedge_view_eq(*rest, kedge_view_str("}"));
}

static int decode_row(struct kedge_view line, struct kedge_input_row *ret)
{
    struct kedge_view site, use, group, leaf, leaf_hash, update, weight, reason;
    struct kedge_view rest = line;
    if (!take_value(&rest, "{\"site\":\"", '"', &site) || !take_value(&rest, ",\"use\":\"", '"', &use)
        || !take_value(&rest, ",\"group\":", ',', &group) || !take_value(&rest, "\"leaf\":", ',', &leaf)
        || !take_value(&rest, "\"leaf_hash\":\"", '"', &leaf_hash)
        || !take_value(&rest, ",\"update\":\"", '"', &update)
        || !take_value(&rest, ",\"weight\":\"", '"', &weight)
        || !take_value(&rest, ",\"reason\":\"", '"', &reason) || !take_end(&rest, ret)) {
        return KEDGE_E_FORMAT;
    }
    uint64_t g = 0;
    if (kedge_id_from(site, &ret->site) || !find_use(use, &ret->use)
        || kedge_decimal_decode(group, KEDGE_GROUPS_MAX - 1, &g)
        || kedge_decimal_decode(leaf, LEAF_MAX, &ret->leaf) || kedge_hash_from_hex(leaf_hash, &ret->leaf_hash)
        || kedge_hash_from_hex(update, &ret->update) || kedge_decimal_decode(weight, WEIGHT_MAX, &ret->weight)
        || !is_reason(reason)) {
        return KEDGE_E_FORMAT;
    }
    ret->group = (uint32_t)g;
    if (reason.len > 0) {
        memcpy(ret->reason, reason.ptr, reason.len);
    }
    return KEDGE_OK;
}

static size_t count_lines(struct kedge_view text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += text.ptr[i] == '\n' ? 1 : 0;
    }
    return count;
}

int kedge_input_list_decode(struct kedge_view blob, struct kedge_input_list *ret_list)
{
    if (blob.len > KEDGE_INPUT_LIST_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    size_t count = count_lines(blob);
    if (count > KEDGE_INPUT_ROWS_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    if (blob.len > 0 && blob.ptr[blob.len - 1] != '\n') {
        return KEDGE_E_FORMAT;
    }
    struct kedge_input_list list = {.rows = kedge_mem_new(count, sizeof list.rows[0])};
    KEDGE_TRY_MEM(list.rows);
    struct kedge_view rest = blob;
    struct kedge_view line;
    int err = KEDGE_OK;
    while (!err && kedgei_take_line(&rest, &line)) {
        struct kedge_input_row *row = &list.rows[list.count];
        err = decode_row(line, row);
        if (!err && list.count > 0 && kedge_input_row_cmp(row - 1, row) >= 0) {
            err = KEDGE_E_FORMAT;
        }
        list.count++;
    }
    if (err) {
        kedge_input_list_deinit(&list);
        return err;
    }
    *ret_list = list;
    return KEDGE_OK;
}

void kedge_input_list_deinit(struct kedge_input_list *list)
{
    if (list) {
        kedge_mem_free(list->rows);
        *list = (struct kedge_input_list){0};
    }
}
