/* Encrypted files from anywhere: a head and a length that are accepted are those of a file that could be
 * written, and no bytes open as a chunk that were not sealed as one. */
#include <string.h>

#include "chain/store/blob/blob_cipher.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct kedge_seed seed = {{1}};
    static const struct kedge_hash digest = {{2}};
    static uint8_t out[KEDGE_BLOB_STORED_MAX];
    struct kedge_blob_key_id id;
    struct kedge_blob_cipher c;
    enum kedge_aead aead;
    uint64_t content;
    if (kedge_crypto_init() != KEDGE_OK || len < KEDGE_BLOB_HEAD_LEN
        || kedge_blob_head_read(data, &aead, &id) != KEDGE_OK) {
        return 0;
    }
    KEDGE_ASSERT(kedge_blob_is_sealed(kedge_view_of(data, len)));
    KEDGE_ASSERT(kedge_blob_cipher_of(data, &seed, &digest, &c) == KEDGE_OK && c.aead == aead);
    if (kedge_blob_content_len(aead, len, &content) != KEDGE_OK) {
        return 0;
    }
    KEDGE_ASSERT(kedge_blob_stored_len(aead, content) == len);
    size_t stored = len - KEDGE_BLOB_HEAD_LEN < KEDGE_BLOB_STORED_MAX ? len - KEDGE_BLOB_HEAD_LEN : 100;
    KEDGE_ASSERT(kedge_blob_chunk_open(&c, 0, true, kedge_view_of(data + KEDGE_BLOB_HEAD_LEN, stored), out)
                 != KEDGE_OK);
    return 0;
}
