/* The first byte of an item says what it is: below 0x80 it is the item; from 0x80 a string, from 0xc0 a list,
 * with the length in the same byte up to 55, and beyond that the length of the length. Numbers are strings
 * without leading zeros. The reader refuses every second way to write the same thing: hashes are taken over
 * these bytes, and two encodings of one transaction would be two transactions. */
#include "chain/anchor/rlp.h"

#include <string.h>

#include "common/base/try.h"

enum { STRING = 0x80, LIST = 0xc0, SHORT_MAX = 55 };

static struct kedge_view without_zeros(struct kedge_view v)
{
    while (v.len > 0 && v.ptr[0] == 0) {
        v.ptr++;
        v.len--;
    }
    return v;
}

static void put_prefix(struct kedge_buf *out, uint8_t kind, size_t len)
{
    uint8_t be[8];
    if (len <= SHORT_MAX) {
        kedge_buf_put_u8(out, (uint8_t)(kind + len));
        return;
    }
    kedge_store_be64(be, len);
    struct kedge_view digits = without_zeros(kedge_view_of(be, sizeof be));
    kedge_buf_put_u8(out, (uint8_t)(kind + SHORT_MAX + digits.len));
    kedge_buf_put(out, digits.ptr, digits.len);
}

void kedge_rlp_put_string(struct kedge_buf *out, struct kedge_view bytes)
{
    if (bytes.len == 1 && bytes.ptr[0] < STRING) {
        kedge_buf_put_u8(out, bytes.ptr[0]);
        return;
    }
    put_prefix(out, STRING, bytes.len);
    kedge_buf_put(out, bytes.ptr, bytes.len);
}

void kedge_rlp_put_u64(struct kedge_buf *out, uint64_t v)
{
    uint8_t be[8];
    kedge_store_be64(be, v);
    kedge_rlp_put_integer(out, kedge_view_of(be, sizeof be));
}

void kedge_rlp_put_integer(struct kedge_buf *out, struct kedge_view big_endian)
{
    kedge_rlp_put_string(out, without_zeros(big_endian));
}

void kedge_rlp_put_list(struct kedge_buf *out, struct kedge_view items)
{
    put_prefix(out, LIST, items.len);
    kedge_buf_put(out, items.ptr, items.len);
}

/* Length of a long form: len_len bytes that follow the first. One that would fit the short form, begins with
 * a zero or goes beyond the input is refused. */
static int long_length(struct kedge_view in, size_t len_len, size_t *ret_len)
{
    uint64_t len = 0;
    if (in.len < 1 + len_len || in.ptr[1] == 0) {
        return KEDGE_E_FORMAT;
    }
    for (size_t i = 0; i < len_len; i++) {
        len = len << 8 | in.ptr[1 + i];
    }
    if (len <= SHORT_MAX || len > in.len - 1 - len_len) {
        return KEDGE_E_FORMAT;
    }
    *ret_len = (size_t)len;
    return KEDGE_OK;
}

/* One prefix tells kind and length: below 0x80 a byte that stands for itself, then strings and lists, short
 * (up to 55) or with a length of its own length. There is exactly one encoding of each item, and all others
 * are refused. */
int kedge_rlp_take(struct kedge_view *rest, struct kedge_rlp_item *ret_item)
{
    struct kedge_view in = *rest;
    size_t head = 1, len = 0;
    if (in.len == 0) {
        return KEDGE_E_FORMAT;
    }
    uint8_t first = in.ptr[0];
    if (first < STRING) {
        head = 0;
        len = 1;
    } else {
        size_t code = first >= LIST ? first - (size_t)LIST : first - (size_t)STRING;
        len = code;
        if (code > SHORT_MAX) {
            size_t len_len = code - SHORT_MAX;
            KEDGE_TRY(long_length(in, len_len, &len));
            head = 1 + len_len;
        }
    }
    if (len > in.len - head) {
        return KEDGE_E_FORMAT;
    }
    if (first >= STRING && first < LIST && len == 1 && in.ptr[head] < STRING) {
        return KEDGE_E_FORMAT; /* stands for itself */
    }
    ret_item->is_list = first >= LIST;
    ret_item->body = kedge_view_of(in.ptr + head, len);
    ret_item->whole = kedge_view_of(in.ptr, head + len);
    *rest = kedge_view_of(in.ptr + head + len, in.len - head - len);
    return KEDGE_OK;
}

static int take_kind(struct kedge_view *rest, bool list, struct kedge_view *ret_body)
{
    struct kedge_view after = *rest;
    struct kedge_rlp_item item;
    int err = kedge_rlp_take(&after, &item);
    if (err || item.is_list != list) {
        return KEDGE_E_FORMAT;
    }
    *ret_body = item.body;
    *rest = after;
    return KEDGE_OK;
}

int kedge_rlp_take_string(struct kedge_view *rest, struct kedge_view *ret_bytes)
{
    return take_kind(rest, false, ret_bytes);
}

int kedge_rlp_take_list(struct kedge_view *rest, struct kedge_view *ret_items)
{
    return take_kind(rest, true, ret_items);
}

int kedge_rlp_take_fixed(struct kedge_view *rest, uint8_t *out, size_t len)
{
    struct kedge_view after = *rest, bytes;
    if (take_kind(&after, false, &bytes) != KEDGE_OK || bytes.len != len) {
        return KEDGE_E_FORMAT;
    }
    memcpy(out, bytes.ptr, len);
    *rest = after;
    return KEDGE_OK;
}

int kedge_rlp_take_integer(struct kedge_view *rest, uint8_t *out, size_t len)
{
    struct kedge_view after = *rest, bytes;
    if (take_kind(&after, false, &bytes) != KEDGE_OK || bytes.len > len
        || (bytes.len > 0 && bytes.ptr[0] == 0)) {
        return KEDGE_E_FORMAT;
    }
    memset(out, 0, len - bytes.len);
    if (bytes.len > 0) {
        memcpy(out + (len - bytes.len), bytes.ptr, bytes.len);
    }
    *rest = after;
    return KEDGE_OK;
}

int kedge_rlp_take_u64(struct kedge_view *rest, uint64_t *ret_v)
{
    uint8_t be[8];
    KEDGE_TRY(kedge_rlp_take_integer(rest, be, sizeof be));
    *ret_v = kedge_load_be64(be);
    return KEDGE_OK;
}

int kedge_rlp_decode(struct kedge_view bytes, struct kedge_rlp_item *ret_item)
{
    struct kedge_rlp_item item;
    int err = kedge_rlp_take(&bytes, &item);
    if (err || bytes.len > 0) {
        return KEDGE_E_FORMAT;
    }
    *ret_item = item;
    return KEDGE_OK;
}

/* Well-formed at all depths. `open` has what is left of each list that was entered, in place of recursion;
 * its depth is bounded, for the bytes come from outside and could be nothing but opened lists. */
