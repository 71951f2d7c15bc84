/* Cutting text without copying it. Every function leaves `rest` as it was when it answers false, and what
 * it returns are views into the caller's bytes. */
#include "chain/log/lines.h"

#include <string.h>

#include "common/base/text.h"
#include "common/base/try.h"

bool kedgei_cut(struct kedge_view *rest, uint8_t c, struct kedge_view *ret_head)
{
    const uint8_t *p = rest->len ? memchr(rest->ptr, c, rest->len) : NULL;
    if (!p) {
        return false;
    }
    *ret_head = kedge_view_of(rest->ptr, (size_t)(p - rest->ptr));
    *rest = kedge_view_of(p + 1, rest->len - ret_head->len - 1);
    return true;
}

bool kedgei_take_line(struct kedge_view *rest, struct kedge_view *ret_line)
{
    return kedgei_cut(rest, '\n', ret_line);
}

bool kedgei_take_prefix(struct kedge_view *text, const char *prefix)
{
    size_t len = strlen(prefix);
    if (text->len < len || memcmp(text->ptr, prefix, len) != 0) {
        return false;
    }
    *text = kedge_view_of(text->ptr + len, text->len - len);
    return true;
}

int kedgei_base64_hash(struct kedge_view base64, struct kedge_hash *ret_hash)
{
    if (base64.len != kedge_base64_len(KEDGE_HASH_LEN)) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_buf raw KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&raw, KEDGE_HASH_LEN + 1);
    KEDGE_TRY(kedge_base64_decode(base64, false, &raw));
    if (raw.len != KEDGE_HASH_LEN) {
        return KEDGE_E_FORMAT;
    }
    memcpy(ret_hash->b, raw.ptr, KEDGE_HASH_LEN);
    return KEDGE_OK;
}

/* Bounded by KEDGE_PROOF_MAX: a longer path cannot be of any tree that fits into 63 bits. */
int kedgei_take_path(struct kedge_view *rest, struct kedge_path *ret_path)
{
    struct kedge_view line;
    ret_path->count = 0;
    while (kedgei_take_line(rest, &line)) {
        if (line.len == 0) {
            return KEDGE_OK;
        }
        if (ret_path->count == KEDGE_PROOF_MAX) {
            return KEDGE_E_FORMAT;
        }
        KEDGE_TRY(kedgei_base64_hash(line, &ret_path->hashes[ret_path->count]));
        ret_path->count++;
    }
    return KEDGE_E_FORMAT;
}
