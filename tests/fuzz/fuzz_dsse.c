/* Envelopes: Kedge's spelling has one encoding, and whatever it accepts the general reader reads alike. */
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
                       const struct kedge_dsse_entry *entries, uint32_t count, const struct kedge_dsse *dsse)
{
    struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&again, KEDGE_ENTRY_MAX);
    put_envelope(&again, payload, entries, count);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&again), envelope));
    KEDGE_ASSERT(kedge_view_eq(payload, kedge_buf_view(&dsse->payload)));
    KEDGE_ASSERT(dsse->signature_count == count);
    for (uint32_t i = 0; i < count; i++) {
        KEDGE_ASSERT(dsse->signatures[i].usable);
        KEDGE_ASSERT(memcmp(&dsse->signatures[i].sig, &entries[i].sig, sizeof entries[i].sig) == 0);
        KEDGE_ASSERT(i == 0 || memcmp(&entries[i - 1].keyid, &entries[i].keyid, KEDGE_HASH_LEN) < 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_view envelope = kedge_view_of(data, len);
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit), one KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_dsse_entry entries[KEDGE_DSSE_SIGNATURES_MAX], entry;
    static struct kedge_dsse dsse;
    uint32_t count = 0;
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    bool ours = kedge_dsse_decode_all(envelope, &payload, entries, &count) == KEDGE_OK;
    bool single = kedge_dsse_decode(envelope, &one, &entry) == KEDGE_OK;
    bool theirs = kedge_dsse_parse(envelope, &dsse, NULL) == KEDGE_OK;
    KEDGE_ASSERT(theirs || !ours);
    KEDGE_ASSERT(single == (ours && count == 1));
    if (ours) {
        check_ours(envelope, kedge_buf_view(&payload), entries, count, &dsse);
    }
    if (theirs) {
        struct kedge_public_key key;
        memset(key.b, 0x5a, sizeof key.b);
        KEDGE_ASSERT(kedge_dsse_verify(&dsse, &key, 1, 1) == KEDGE_E_VERIFY);
        kedge_dsse_deinit(&dsse);
    }
    return 0;
}
