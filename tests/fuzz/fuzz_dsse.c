/* Envelopes: Kedge's spelling has one encoding, and whatever it accepts the general reader reads alike. */
#include <stdio.h>
#include <string.h>

#include "chain/dsse.h"
#include "common/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void put_entry(struct kedge_buf *b, struct kedge_view payload, const struct kedge_dsse_entry *entry)
{
    char keyid[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&entry->keyid, keyid);
    kedge_buf_put_str(b, "{\"payload\":\"");
    kedge_base64_put(b, payload);
    kedge_buf_printf(b, "\",\"payloadType\":\"%s\",\"signatures\":[{\"keyid\":\"%s\",\"sig\":\"",
                     KEDGE_DSSE_IN_TOTO, keyid);
    kedge_base64_put(b, kedge_view_of(entry->sig.b, sizeof entry->sig.b));
    kedge_buf_put_str(b, "\"}]}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_view envelope = kedge_view_of(data, len);
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    struct kedge_dsse_entry entry;
    static struct kedge_dsse dsse;
    bool ours = kedge_dsse_decode(envelope, &payload, &entry) == KEDGE_OK;
    bool theirs = kedge_dsse_parse(envelope, &dsse, NULL) == KEDGE_OK;
    KEDGE_ASSERT(theirs || !ours);
    if (ours) {
        struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&again, KEDGE_ENTRY_MAX);
        put_entry(&again, kedge_buf_view(&payload), &entry);
        KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&again), envelope));
        KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&payload), kedge_buf_view(&dsse.payload)));
        KEDGE_ASSERT(dsse.signature_count == 1 && dsse.signatures[0].usable);
        KEDGE_ASSERT(memcmp(&dsse.signatures[0].sig, &entry.sig, sizeof entry.sig) == 0);
    }
    if (theirs) {
        struct kedge_public_key key;
        memset(key.b, 0x5a, sizeof key.b);
        KEDGE_ASSERT(kedge_dsse_verify(&dsse, &key, 1, 1) == KEDGE_E_VERIFY);
        kedge_dsse_deinit(&dsse);
    }
    return 0;
}
