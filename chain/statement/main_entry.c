/* Two kinds of entries without a tag of their own: a statement is JSON and begins with a brace, a tenant's
 * checkpoint begins with a byte above 127, which the salt's first bit sees to. The salt hides a tenant's
 * checkpoint from those who see only its leaf hash. */
#include "chain/statement/main_entry.h"

#include <string.h>

#include "common/base/limits.h"
#include "common/base/try.h"

int kedge_main_entry_encode(const uint8_t salt[KEDGE_SALT_LEN], struct kedge_view note,
                            struct kedge_buf *ret_entry)
{
    if (note.len == 0) {
        return KEDGE_E_ARG;
    }
    if (note.len > KEDGE_ENTRY_MAX - KEDGE_SALT_LEN) {
        return KEDGE_E_TOO_LONG;
    }
    KEDGE_TRY(kedge_buf_reserve(ret_entry, KEDGE_SALT_LEN + note.len));
    kedge_buf_put_u8(ret_entry, salt[0] | 0x80);
    kedge_buf_put(ret_entry, salt + 1, KEDGE_SALT_LEN - 1);
    kedge_buf_put(ret_entry, note.ptr, note.len);
    return KEDGE_OK;
}

int kedge_main_entry_decode(struct kedge_view entry, struct kedge_main_entry *ret_entry)
{
    if (entry.len > KEDGE_ENTRY_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    if (entry.len > 0 && entry.ptr[0] == '{') {
        *ret_entry = (struct kedge_main_entry){.kind = KEDGE_MAIN_STATEMENT, .body = entry};
        return KEDGE_OK;
    }
    if (entry.len <= KEDGE_SALT_LEN || (entry.ptr[0] & 0x80) == 0) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_main_entry e = {.kind = KEDGE_MAIN_CHECKPOINT};
    memcpy(e.salt, entry.ptr, KEDGE_SALT_LEN);
    e.body = kedge_view_of(entry.ptr + KEDGE_SALT_LEN, entry.len - KEDGE_SALT_LEN);
    *ret_entry = e;
    return KEDGE_OK;
}

void kedge_salted_tenant_id(const uint8_t salt[KEDGE_SALT_LEN], const struct kedge_id *tenant,
                            struct kedge_hash *ret_hash)
{
    kedge_sha256_2(kedge_view_of(salt, KEDGE_SALT_LEN), kedge_view_str(tenant->s), ret_hash);
}
