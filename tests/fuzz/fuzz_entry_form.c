/* Stored entries: any bytes are refused or an entry, which is stored and loaded again as it is. */
#include "chain/store/entry_form.h"
#include "common/base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_buf room, again, stored;
    struct kedge_view entry, loaded;
    kedge_buf_init(&room, KEDGE_ENTRY_MAX);
    kedge_buf_init(&again, KEDGE_ENTRY_MAX);
    kedge_buf_init(&stored, KEDGE_ENTRY_STORED_MAX);
    if (kedge_entry_load(kedge_view_of(data, len), &room, &entry) == KEDGE_OK && entry.len > 0
        && entry.len <= KEDGE_ENTRY_MAX) {
        struct kedge_entry_packer *packer =
            kedge_entry_packer_new((len & 1) ? KEDGE_FORMS_SHORT : KEDGE_FORMS_PACKED);
        KEDGE_ASSERT(kedge_entry_store(packer, entry, &stored) == KEDGE_OK);
        KEDGE_ASSERT(stored.len <= entry.len + 1);
        KEDGE_ASSERT(kedge_entry_load(kedge_buf_view(&stored), &again, &loaded) == KEDGE_OK);
        KEDGE_ASSERT(kedge_view_eq(loaded, entry));
        kedge_entry_packer_free(packer);
    }
    kedge_buf_deinit(&stored);
    kedge_buf_deinit(&again);
    kedge_buf_deinit(&room);
    return 0;
}
