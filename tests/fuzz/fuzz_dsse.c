/* Envelopes: what is taken apart is put together to the same bytes. */
#include <stdio.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "common/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void put_envelope(struct kedge_buf *b, struct kedge_view payload,
                         const struct kedge_dsse_entry *entries, uint32_t count)
{
    kedge_buf_put_str(b, "{\"payload\":\"");
    kedge_base64_put(b, payload);
    kedge_buf_printf(b, "\",\"payloadType\":\"%s\",\"signatures\":[", KEDGE_DSSE_IN_TOTO);
    for (uint32_t i = 0; i < count; i++) {
        char keyid[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&entries[i].keyid, keyid);
        kedge_buf_printf(b, "%s{\"keyid\":\"%s\",\"sig\":\"", i ? "," : "", keyid);
        kedge_base64_put(b, kedge_view_of(entries[i].sig.b, sizeof entries[i].sig.b));
        kedge_buf_put_str(b, "\"}");
    }
    kedge_buf_put_str(b, "]}");
}

static void check_ours(struct kedge_view envelope, struct kedge_view payload,
                       const struct kedge_dsse_entry *entries, uint32_t count)
{
    struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&again, KEDGE_ENTRY_MAX);
    put_envelope(&again, payload, entries, count);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&again), envelope));
    for (uint32_t i = 1; i < count; i++) {
        KEDGE_ASSERT(memcmp(&entries[i - 1].keyid, &entries[i].keyid, KEDGE_HASH_LEN) < 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_view envelope = kedge_view_of(data, len);
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit), one KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_dsse_entry entries[KEDGE_DSSE_SIGNATURES_MAX], entry;
    uint32_t count = 0;
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    bool ours = kedge_dsse_decode_all(envelope, &payload, entries, &count) == KEDGE_OK;
    bool single = kedge_dsse_decode(envelope, &one, &entry) == KEDGE_OK;
    KEDGE_ASSERT(single == (ours && count == 1));
    if (ours) {
        check_ours(envelope, kedge_buf_view(&payload), entries, count);
    }
    return 0;
}
